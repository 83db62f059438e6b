r"""Alarms: watch a series for changes while it comes, with a threshold for a chosen rate of false alarms.

The run length r after datum t (counted from 0) says that the segment began with datum t - r; the run that began before
the stream (errata E17) began with datum 0. Let c be the start of the last regime that was confirmed. The odds of a new
one are $P(\text{start} > c) / P(\text{start} \le c)$. They need the current hypotheses alone, so a watch runs in
bounded memory for any length of time. The whole posterior over time, (T, C), is kept on request.

`detect` scales a stream by its first `warmup` readings. After that a segment that begins at t expects the mean and the
variance of $y_{<t}$. At growing intervals the past is searched for a cycle, which must be the clearer the fewer times
it came round. When a cycle shows, or its length becomes clearer, the past is read once more in blocks of it, without
alarms, and the watch goes on from there. An alarm that was given stays given.

Axes: T data, O outputs, C slots. Cost: that of `scan`, and once more for each cycle found; memory T numbers, or T C
with the posterior. Thesis: eq:transition-rl-markov, algo:rl-pr-step, experiment:segmentation (errata E12, E17).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.nn import logsumexp
from jaxtyping import Array, Bool, Float, Int, PyTree

from filtax import _validation as checks
from filtax._step import cast_and_bind, filter_step
from filtax.bone import Bone
from filtax.protocols import Module, RunLengthValue
from filtax.segmentation._cycle import block_means, block_of, find_period
from filtax.segmentation._plan import ONLINE, Settings, build, finite_readings, rows_of, start
from filtax.state import State, with_slots

FIRST_LOOK, GROWTH = 48, 1.25  # readings before the first search for a cycle, and the factor between two searches
ENOUGH = ((6, 0.25), (4, 0.6), (3, 0.75), (2, 0.9))  # periods in the past, and the least share they must explain
YOUNG = 1000  # readings up to which fewer periods than the first of these numbers are accepted
OUT_OF_STEP = 0.01  # cycles by which the period in use may be off after all readings so far


class Watched(Module):
    """The result of `watch` over T data.

    Attributes:
        alarm: Whether an alarm was given at each datum.
        start: Most probable start of the present segment, as an index; at an alarm, the estimated start.
        log_odds: Log odds of a segment after the confirmed one; -inf as long as it holds less than `least` data.
        log_evidence: Log predictive density of each datum.
        log_hazard: Log probability that each run length ends at the next step, (T, C); None if not kept.
        starts: Start of the segment under each hypothesis, (T, C); None if not kept.
        log_weight: Their log probabilities, (T, C); -inf where a slot is unused; None if not kept.

    >>> import filtax as fx
    >>> rl = fx.method("NIG+RL[9]-PR(hazard=0.01)", model=fx.models.since_change(1.0))
    >>> watch(rl, rl.init(mean=jnp.zeros(2), cov=10.0), None, jnp.zeros(20))[1].alarm.any().item()
    False
    """

    alarm: Bool[Array, "*T"]
    start: Int[Array, "*T"]
    log_odds: Float[Array, "*T"]
    log_evidence: Float[Array, "*T"]
    log_hazard: Float[Array, "*T C"] | None = None
    starts: Int[Array, "*T C"] | None = None
    log_weight: Float[Array, "*T C"] | None = None


def watch(
    method: Bone,
    state: State,
    X: Any,
    Y: Any,
    *,
    threshold: Any = 0.99,
    least: int = 5,
    since: Any = 0,
    initial: PyTree = None,
    silent: Any = None,
    posterior: bool = False,
) -> tuple[State, Watched]:
    """Learn from a series with a method that has run lengths, and give an alarm at each change.

    Args:
        method: One with run lengths, RL[K] or RL[inf].
        state: From `init`, or from an earlier `watch` whose series goes on here.
        X: Rows of x (T, M), or None.
        Y: Rows of y, (T,) or (T, O); NaN where missing.
        threshold: Probability of a new segment at which to give an alarm; `calibrate` finds one.
        least: Data that a new segment must hold before an alarm.
        since: Index at which the last confirmed regime began: the start that the last alarm of an earlier watch named.
        initial: Belief of a segment that begins at each datum, with a leading axis T, where the prior must follow the
            data; the initial belief of the state by default.
        silent: (T,) True where no alarm is to be given.
        posterior: Keep the run-length posterior at every datum.

    Returns:
        The state after the series, and the alarms.

    >>> import filtax as fx
    >>> rl = fx.method("NIG+RL[30]-PR(hazard=0.01)", model=fx.models.since_change(1.0))
    >>> y = jnp.concatenate([0.1 * jnp.sin(jnp.arange(30.0)), 3.0 + 0.1 * jnp.cos(jnp.arange(20.0))])
    >>> _, watched = watch(rl, rl.init(mean=jnp.zeros(2), cov=10.0), None, y)
    >>> watched.start[watched.alarm].tolist()
    [30]
    """
    checks.check_state("watch", state)
    if not isinstance(state.hypotheses.aux, RunLengthValue):
        raise ValueError(f"watch: {method.name} has no run lengths; use RL[K] or RL[inf], such as NIG+RL[100]-PR.")
    X, Y, silent = checks.arrays(X=X, Y=Y, silent=silent)
    silent = np.zeros(len(Y), bool) if silent is None else silent
    checks.share("watch(threshold=...)", threshold, hint="It is the probability of a new segment that gives an alarm.")
    slots = method.auxiliary.slots_needed(int(state.t - state.began) + len(Y))
    state = state if slots is None else with_slots(method, state, slots)
    with np.errstate(divide="ignore"):
        odds = np.log(threshold) - np.log1p(-threshold)
    rows = (X, Y, initial, silent)
    carry, watched = watch_scan(method, state, rows, odds, np.int32(since), np.int32(least), posterior=posterior)
    return state.after(*carry), watched


@partial(jax.jit, static_argnames=("posterior",))
def watch_scan(
    method: Bone, state: State, rows: tuple, odds: Any, since: Any, least: Any, *, posterior: bool
) -> tuple[tuple, Watched]:
    """Scan rows (x, y, initial belief, silent) with checked arguments; `odds` is the threshold as log odds."""
    method = cast_and_bind(method, state)

    def body(carry: tuple, row: tuple) -> tuple[tuple, Watched]:
        inner, since = carry
        x, y, initial, silent = row
        here = state if initial is None else eqx.tree_at(lambda s: s.initial, state, initial)
        after, info, _ = filter_step(method, here.after(*inner), x, y)
        inner = after.carry
        hypotheses, t = inner[0], inner[1] - 1
        log_weight = hypotheses.log_weight
        starts = jnp.maximum(t - hypotheses.aux.runlength, inner[2])
        new = starts > since
        best = jnp.argmax(jnp.where(new, log_weight, -jnp.inf))
        enough = new[best] & (t - starts[best] + 1 >= least) & (log_weight[best] > -jnp.inf)
        log_odds = jnp.where(enough, _log_mass(log_weight, new) - _log_mass(log_weight, ~new), -jnp.inf)
        alarm = (log_odds > jnp.asarray(odds, log_odds.dtype)) & ~silent
        start = starts[jnp.where(alarm, best, jnp.argmax(log_weight))]
        kept = (None, None, None)
        if posterior:
            log_hazard = jnp.log(method.auxiliary.hazard(hypotheses.aux.runlength, None)).astype(log_weight.dtype)
            kept = (log_hazard, starts, log_weight)
        watched = Watched(alarm, start, log_odds, jnp.asarray(info.log_evidence), *kept)
        return (inner, jnp.where(alarm, start, since)), watched

    (carry, _), watched = jax.lax.scan(body, (state.carry, jnp.asarray(since)), rows)
    return carry, watched


def _log_mass(log_weight: Array, chosen: Array) -> Array:
    return logsumexp(jnp.where(chosen, log_weight, -jnp.inf))


@dataclass(frozen=True, eq=False)
class Alarms:
    """The alarms of a stream.

    Attributes:
        times: Index of the reading at which each alarm was given.
        starts: Index of the estimated first reading of the new regime.
        period: Length of the cycle as known at the end; None if none was found.

    >>> Alarms([57], [50], None).delays
    [7]
    """

    times: list[int]
    starts: list[int]
    period: float | None

    @property
    def delays(self) -> list[int]:
        """Steps from each estimated start to its alarm."""
        return [time - first for time, first in zip(self.times, self.starts, strict=True)]


def detect(
    y: Any,
    *,
    settings: Settings = ONLINE,
    threshold: float = 0.99,
    least: int = 5,
    warmup: int = 30,
    period: Any = "auto",
) -> Alarms:
    """Give alarms at the changes of a stream; each uses the readings up to its own alone.

    Args:
        y: Readings (T,), or (T, O) of several series that change together; NaN where missing. A reading that is
            infinite, or absurdly far from the first ones, counts as missing.
        settings: The prior of a segment.
        threshold: Probability of a new regime at which to give an alarm; `calibrate` finds one for a rate of false
            alarms.
        least: Readings (blocks of them, in a cycle) that a new regime must hold before an alarm.
        warmup: Readings before the first possible alarm. A cycle that shows within them gives none.
        period: Length of the cycle in steps; None if there is none; "auto" to search the past for one.

    Returns:
        When the alarms were given, and the starts they named. The alarms of the first part of a stream are the first
        ones of the whole.

    >>> rng = np.random.default_rng(0)
    >>> y = np.r_[rng.normal(size=80), rng.normal(9.0, 1.0, size=60)]
    >>> detect(y).starts
    [80]
    """
    y = finite_readings("detect", y, warmup)
    if len(y) < warmup:
        return Alarms([], [], None)
    scaled = causal_scale(y, warmup)
    since, times, starts = 0, [], []
    looks = [(0, None if isinstance(period, str) else period), *_looks(y, period)]
    early = [cycle for begin, cycle in looks if begin <= warmup]  # no alarm was possible yet: the last one counts
    looks = [(0, early[-1]), *(look for look in looks if look[0] > warmup)]
    ends = [begin for begin, _ in looks[1:]] + [len(y)]
    for (begin, cycle), end in zip(looks, ends, strict=True):
        block = block_of(cycle)
        watched = _watch_blocks(scaled, settings, cycle, (begin, end), since, threshold, least)
        for at in np.flatnonzero(watched.alarm):
            since = int(watched.start[at]) * block
            if block > 1 and starts and since - starts[-1] <= block:
                continue  # a change inside a block can be named twice, with that block and with the next one
            times.append(max((int(at) + 1) * block - 1, warmup - 1))
            starts.append(since)
    return Alarms(times, starts, looks[-1][1])


def _watch_blocks(
    scaled: tuple[np.ndarray, np.ndarray, np.ndarray],
    settings: Settings,
    period: float | None,
    between: tuple[int, int],
    since: int,
    threshold: float,
    least: int,
) -> Watched:
    """Read the scaled stream up to an end in blocks, with alarms after a beginning only."""
    z, centre, variance = scaled
    begin, end = between
    block = block_of(period)
    means = block_means(z[:end], block)
    X, Y = rows_of(means, block, period)
    first = np.minimum(np.arange(len(Y)) * block, end - 1)  # a new segment knows what came before its first reading
    method, state = build(settings, z.shape[1], block)
    state, initial = start(state, settings, centre[first], variance[first])
    silent = np.arange(len(Y)) < -(-begin // block) if begin else None
    _, watched = watch(
        method,
        state,
        X,
        Y if z.shape[1] > 1 else Y[:, 0],
        threshold=threshold,
        least=least,
        since=-(-since // block),
        initial=initial,
        silent=silent,
    )
    return jax.tree.map(lambda leaf: np.asarray(leaf)[: len(means)], watched)


def causal_scale(y: np.ndarray, warmup: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scale readings by the first ones, and compute the mean and the variance that were known before each.

    Args:
        y: (T, O).
        warmup: Readings that give the unit; until all of them are there, they count as known.

    Returns:
        Readings (T, O), means (T, O) and variances (T,), these averaged over outputs.

    >>> z, centre, variance = causal_scale(np.array([[1.0], [3.0], [5.0]]), warmup=2)
    >>> z[:, 0].tolist(), centre[:, 0].tolist(), variance.tolist()
    ([-1.0, 1.0, 3.0], [0.0, 0.0, 0.0], [1.0, 1.0, 1.0])
    """
    T = len(y)
    warmup = min(warmup, T)
    finite = np.isfinite(y)
    first = np.where(finite, y, 0.0)[:warmup]
    number = np.maximum(finite[:warmup].sum(axis=0), 1)
    middle = first.sum(axis=0) / number
    spread = np.sqrt(np.where(finite[:warmup], (first - middle) ** 2, 0.0).sum(axis=0) / number)
    z = (y - middle) / np.where(spread > 0.0, spread, 1.0)
    filled = np.where(finite, z, 0.0)
    count = np.maximum(np.cumsum(finite, axis=0), 1)
    mean = np.cumsum(filled, axis=0) / count
    variance = np.cumsum(filled**2, axis=0) / count - mean**2
    last = np.maximum(np.arange(T), warmup) - 1
    return z, mean[last], np.maximum(variance[last].mean(axis=1), 1e-6)


def _cycle(y: np.ndarray) -> float | None:
    """The cycle of a series; a short series may hold two periods only, which must then explain nearly all of it."""
    allowed = ENOUGH if len(y) <= YOUNG else ENOUGH[:1]
    found = (find_period(y, cycles=cycles, level=level) for cycles, level in allowed)
    return next((period for period in found if period is not None), None)


def _looks(y: np.ndarray, period: Any) -> list[tuple[int, float]]:
    """After how many readings a cycle was found, or one that is out of step with the last one found."""
    found, length = [], float(FIRST_LOOK)
    while isinstance(period, str) and length < len(y):
        cycle = _cycle(y[: int(length)])
        if cycle is not None and (not found or abs(length / cycle - length / found[-1][1]) > OUT_OF_STEP):
            found.append((int(length), cycle))
        length *= GROWTH
    return found


def calibrate(
    false_alarms: float,
    length: int,
    *,
    key: Array,
    runs: int = 400,
    settings: Settings = ONLINE,
    least: int = 5,
    warmup: int = 30,
    outputs: int = 1,
    simulate: Callable[[Array, tuple[int, ...]], Array] | None = None,
) -> float:
    r"""Find the threshold at which a stream without a change gives an alarm with a chosen probability.

    With M the largest odds of a new regime in a stream of n data without a change, the threshold is the order statistic
    of rank $\lceil (1 - \alpha)(N + 1) \rceil$ of N simulated M. An (N + 1)-th stream of the same law then gives an
    alarm with probability at most $\alpha$, whatever that law is. Cost: N runs of `detect`, in one batch.

    Args:
        false_alarms: Probability of at least one alarm among `length` data, alpha.
        length: Data in a stream, n.
        key: Random key.
        runs: Streams to simulate, N; more for rarer alarms.
        settings: As for `detect`.
        least: As for `detect`.
        warmup: As for `detect`.
        outputs: Numbers read at a step.
        simulate: Law of a stream without a change, from (key, shape) to readings; independent Gaussian noise if left
            out. Correlated noise looks like change: simulate it if you expect it.

    Returns:
        A threshold for `detect(..., period=None)`.

    >>> level = calibrate(0.2, 60, key=jax.random.key(0), runs=20, settings=Settings(noise=0.5, keep=20))
    >>> 0.0 < level < 1.0
    True
    """
    checks.whole("calibrate(length=...)", length, least=2, hint="It is a number of data.")
    rank = math.ceil((1.0 - false_alarms) * (runs + 1)) if 0.0 < false_alarms < 1.0 else runs + 1
    if rank > runs:
        raise ValueError(
            f"calibrate(false_alarms={false_alarms}, runs={runs}): a rate must lie between 1 / (runs + 1) and 1; "
            "simulate more runs."
        )
    noise = jax.random.normal if simulate is None else simulate
    Y = np.asarray(noise(key, (runs, length, outputs)), np.float64)
    method, state = build(settings, outputs, cyclic=False)
    scaled = [causal_scale(y, warmup) for y in Y]
    begun = [start(state, settings, centre, variance) for _, centre, variance in scaled]
    states, initial = jax.tree.map(lambda *leaves: jnp.stack(leaves), *begun)
    series = np.stack([z if outputs > 1 else z[:, 0] for z, _, _ in scaled])
    highest = _highest_odds(method, states, series, initial, np.zeros((runs, length), bool), least)
    odds = float(np.sort(np.asarray(highest, np.float64))[rank - 1])
    return 1.0 / (1.0 + math.exp(-odds)) if odds > -700.0 else 0.0


@jax.jit
def _highest_odds(method: Any, states: Any, series: Any, initial: Any, silent: Any, least: Any) -> Array:
    """Largest log odds of a new regime in each stream; at infinite odds no alarm is ever given."""

    def highest(state: State, *row: Any) -> Array:
        _, watched = watch_scan(method, state, (None, *row), jnp.inf, np.int32(0), least, posterior=False)
        return jnp.max(watched.log_odds)

    return jax.vmap(highest)(states, series, initial, silent)
