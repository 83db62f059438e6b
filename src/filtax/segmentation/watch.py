r"""Run a method with run lengths over a series, and keep what tells of changes.

The run length r after datum t (counted from 0) says that the segment began with datum t - r; the run that began before
the stream (errata E17) began with datum 0. With c the start of the regime that was last agreed upon, the odds of a new
one are $P(\text{start} > c) / P(\text{start} \le c)$: they only need the bank of the moment, so a run in bounded memory
gives alarms for ever. The whole posterior over time, (T, C), is kept on request.

Axes: T data, C slots. Cost: that of `scan`; memory T numbers, or T C with the posterior.
Thesis: eq:transition-rl-markov, algo:rl-pr-step, experiment:segmentation (errata E12, E17).
"""

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.nn import logsumexp
from jaxtyping import Array, Bool, Float, Int, PyTree

from filtax import boundary, checks
from filtax.bone import Bone
from filtax.growth import grown
from filtax.module import Module
from filtax.programs import advance
from filtax.state import State
from filtax.tick import conform

__all__ = ["Watched", "watch"]


class Watched(Module):
    """What a run over T data told.

    Attributes:
        alarm: Whether an alarm was given at each datum.
        start: The most probable start of the present segment, as an index; at an alarm, the estimated start.
        log_odds: Of a segment that began after the one agreed upon; -inf as long as it holds less than `least` data.
        log_evidence: Of each datum.
        log_hazard: Log probability that each run length ends at the next tick, (T, C); None if not kept.
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
    """Learn from a series and watch for changes.

    Args:
        method: One with run lengths, RL[K] or RL[inf].
        state: From `init`, or from an earlier `watch` whose series goes on here.
        X: Rows of x (T, M), or None.
        Y: Rows of y, (T,) or (T, O); NaN where missing.
        threshold: Probability of a new segment at which to give an alarm; `calibrate` finds one.
        least: Data that a new segment must hold before it is told of.
        since: Index at which the regime began that was last agreed upon; of an earlier watch, its last alarm's start.
        initial: Beliefs that a segment born at each datum starts from, with a leading axis T, where the prior must
            follow the data; the initial belief of the state if left out.
        silent: (T,) True where no alarm is to be given.
        posterior: Keep the run-length posterior at every datum.

    Returns:
        The state after the series, and what was seen.

    >>> import filtax as fx
    >>> rl = fx.method("NIG+RL[30]-PR(hazard=0.01)", model=fx.models.since_change(1.0))
    >>> y = jnp.concatenate([0.1 * jnp.sin(jnp.arange(30.0)), 3.0 + 0.1 * jnp.cos(jnp.arange(20.0))])
    >>> _, seen = watch(rl, rl.init(mean=jnp.zeros(2), cov=10.0), None, y)
    >>> seen.start[seen.alarm].tolist()
    [30]
    """
    boundary.check_state("watch", state)
    if not hasattr(state.hypotheses.aux, "runlength"):
        raise ValueError(f"watch: {method.name} has no run lengths; use RL[K] or RL[inf], such as NIG+RL[100]-PR.")
    X, Y, silent = boundary.arrays(X=X, Y=Y, silent=silent)
    silent = np.zeros(len(Y), bool) if silent is None else silent
    checks.share("watch(threshold=...)", threshold, hint="It is the probability of a new segment that gives an alarm.")
    room = method.auxiliary.slots_needed(int(state.t - state.began) + len(Y))
    state = state if room is None else grown(method, state, room)
    with np.errstate(divide="ignore"):
        odds = np.log(threshold) - np.log1p(-threshold)
    rows = (X, Y, initial, silent)
    carry, seen = _watch(method, state, rows, odds, np.int32(since), np.int32(least), posterior=posterior)
    return state.after(*carry), seen


@partial(jax.jit, static_argnames=("posterior",))
def _watch(
    method: Bone, state: State, rows: tuple, odds: Any, since: Any, least: Any, *, posterior: bool
) -> tuple[tuple, Watched]:
    method = conform(method, state)

    def body(carry: tuple, row: tuple) -> tuple[tuple, Watched]:
        inner, since = carry
        x, y, born, silent = row
        here = state if born is None else eqx.tree_at(lambda s: s.initial, state, born)
        inner, info = advance(method, here, inner, x, y, None, None, None, complete=False)
        hypotheses, t = inner[0], inner[1] - 1
        starts = jnp.maximum(t - hypotheses.aux.runlength, inner[2])
        new = starts > since
        best = jnp.argmax(jnp.where(new, hypotheses.log_weight, -jnp.inf))
        enough = new[best] & (t - starts[best] + 1 >= least) & (hypotheses.log_weight[best] > -jnp.inf)
        log_odds = jnp.where(enough, _mass(hypotheses.log_weight, new) - _mass(hypotheses.log_weight, ~new), -jnp.inf)
        alarm = (log_odds > jnp.asarray(odds, log_odds.dtype)) & ~silent
        start = starts[jnp.where(alarm, best, jnp.argmax(hypotheses.log_weight))]
        kept = (None, None, None)
        if posterior:
            hazard = jnp.log(method.auxiliary.hazard(hypotheses.aux.runlength, None)).astype(
                hypotheses.log_weight.dtype
            )
            kept = (hazard, starts, hypotheses.log_weight)
        seen = Watched(alarm, start, log_odds, jnp.asarray(info.log_evidence), *kept)
        return (inner, jnp.where(alarm, start, since)), seen

    carry = (state.hypotheses, state.t, state.began, state.refused, state.conditioning_ratio)
    (carry, _), seen = jax.lax.scan(body, (carry, jnp.asarray(since)), rows)
    return carry, seen


def _mass(log_weight: Array, chosen: Array) -> Array:
    return logsumexp(jnp.where(chosen, log_weight, -jnp.inf))
