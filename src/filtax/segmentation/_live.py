"""One stream of readings that comes one by one: alarms at changes, and outliers that are not learned from.

The alarms are those of `detect` without a cycle. A reading that is further from its forecast than a good one is an
outlier at first, and the filter goes on without it. If more than two of six readings are, they are none: the filter
goes back to where it was before them, and learns them all. So a change is found as if nobody had doubted.
"""

import math
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from filtax._step import cast_and_bind, propose
from filtax._xla import tune_if_possible
from filtax.bone import Bone
from filtax.distributions import Mixture
from filtax.numerics import normalised
from filtax.protocols import over_hypotheses
from filtax.segmentation._alarms import watch_scan
from filtax.segmentation._plan import Settings, build
from filtax.state import State

SPARED, WINDOW = 2, 6  # how many of so many readings may be outliers
LEARNED = 0.001  # probability from which on a reading is learned from, outlier or not
FEW, GROSS = 9, 50.0  # readings before the unit is known that are not judged; robust deviations of a gross error
FARTHEST = 1e100  # units
ARRAYS = ("early", "unit", "sums", "waiting", "sums_before", "state", "state_before")  # of a memory


@dataclass
class Memory:
    """What is known of a stream of readings (O,).

    Attributes:
        t: Readings so far.
        changes: First reading of each segment but the first.
        alarm: What the last reading was: None, "outlier", "change" or "missing".
        learned: Whether the last reading was learned from.
        log_odds: Of a segment that began after the last change.
        declared: Whether these are the odds of a change that was declared with the last reading.
        start: Most probable start of the present segment.
        early: (n, O) readings before their unit is known.
        unit: (2, O) centre and spread of the first readings.
        sums: (3, O) number, sum and sum of squares of what was learned, in this unit.
        state: Of the filter.
        waiting: (n, O) readings from an outlier on, which may have to be learned once more.
        odd: How many of these were outliers.
        sums_before, state_before: `sums` and `state` before the first of these.
    """

    t: int = 0
    changes: list[int] = field(default_factory=list)
    alarm: str | None = None
    learned: bool = True
    log_odds: float = -math.inf
    declared: bool = False
    start: int = 0
    early: Any = None
    unit: Any = None
    sums: Any = None
    state: Any = None
    waiting: Any = None
    odd: int = 0
    sums_before: Any = None
    state_before: Any = None


class Live:
    """Alarms of one stream, reading by reading, in bounded memory.

    Args:
        settings: The prior of a segment.
        outputs: Numbers in a reading, O.
        threshold: Probability of a new segment at which to give an alarm.
        least: Readings that a new segment must hold before an alarm.
        warmup: Readings that give the unit.
        false_alarms: Probability that a good reading is an outlier.

    >>> live = Live(Settings(keep=20))
    >>> for t in range(60):
    ...     live.read(np.array([math.sin(37.0 * t) + (9.0 if t >= 40 else 0.0)]))
    >>> live.memory.changes
    [40]
    """

    def __init__(
        self,
        settings: Settings,
        outputs: int = 1,
        *,
        threshold: float = 0.99,
        least: int = 5,
        warmup: int = 30,
        false_alarms: float = 0.001,
    ):
        self.prior, self.least, self.warmup, self.false_alarms = settings, least, warmup, false_alarms
        self.odds = math.log(threshold / (1.0 - threshold)) if 0.0 < threshold < 1.0 else math.inf
        tune_if_possible()
        none = np.zeros((0, outputs))
        with jax.enable_x64(True):
            self.method, state = build(settings, outputs, cyclic=False)
        self.memory = Memory(early=none, waiting=none)
        self.memory.sums = self.memory.sums_before = np.zeros((3, outputs))
        self.memory.state = self.memory.state_before = jax.tree.map(np.asarray, state)

    def read(self, row: np.ndarray) -> None:
        """Take one reading (O,), NaN where missing; an infinite one is an outlier."""
        memory, infinite = self.memory, bool(np.isinf(row).any())
        row = np.where(np.isfinite(row), row, np.nan)
        memory.t, memory.alarm, memory.learned = memory.t + 1, None, True
        if memory.unit is not None:
            self._judge(self._in_units(row))
        else:
            memory.early = np.concatenate([memory.early, row[None]])
            if self._gross(memory.early)[-1]:
                memory.alarm, memory.learned = "outlier", False
            if len(memory.early) == self.warmup:
                self._begin(memory.early)
        if memory.alarm is None and np.isnan(row).all():
            memory.alarm, memory.learned = "outlier" if infinite else "missing", False

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays of the memory by name."""
        found = {}
        for name in ARRAYS:
            leaves = jax.tree.leaves(getattr(self.memory, name))
            found |= {f"{name} {at}": np.asarray(leaf) for at, leaf in enumerate(leaves)}
        return found

    def settings(self) -> dict[str, Any]:
        """The plain values of the memory."""
        return {name: value for name, value in vars(self.memory).items() if name not in ARRAYS}

    def resume(self, settings: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Go on from `settings` and `arrays` of another."""
        for name, value in settings.items():
            setattr(self.memory, name, value)
        tree = jax.tree.structure(self.memory.state)
        for name in ARRAYS:
            leaves = [arrays[key] for key in sorted(arrays, key=len) if key.rsplit(" ", 1)[0] == name]
            one = leaves[0] if leaves and not name.startswith("state") else None
            setattr(self.memory, name, jax.tree.unflatten(tree, leaves) if name.startswith("state") else one)

    def _begin(self, rows: np.ndarray) -> None:
        """The first readings without gross errors give the unit, and what a segment among them expects."""
        memory, gross = self.memory, self._gross(rows)
        good = np.where(gross[:, None], np.nan, rows)
        good[0, np.isnan(good).all(axis=0)] = 0.0  # of an output that did not come
        spread = np.nanstd(good, axis=0)
        memory.unit = np.stack([np.nanmean(good, axis=0), np.where(spread > 0.0, spread, 1.0)])
        memory.early, open_end = rows[:0], int(np.argmin(gross[::-1]))
        z = self._in_units(np.where(gross[:, None], np.nan, rows))
        memory.sums = _sums(z).sum(axis=1)
        for one in z[: len(z) - open_end]:
            self._take(self._ask(one))
        for one in rows[len(z) - open_end :]:  # the next readings say what they were
            self._judge(self._in_units(one))

    def _judge(self, z: np.ndarray) -> None:
        memory, answer = self.memory, self._ask(z)
        odd = self._beyond(z, answer, min(self.false_alarms, LEARNED))
        if len(memory.waiting) == WINDOW:
            memory.waiting, memory.odd = memory.waiting[:0], 0
        if odd and not memory.odd:
            memory.sums_before, memory.state_before = memory.sums, memory.state
        if odd or memory.odd:
            memory.waiting, memory.odd = np.concatenate([memory.waiting, z[None]]), memory.odd + odd
        if not odd:
            self._learn(z, answer)
            if memory.alarm is None and self._beyond(z, answer, self.false_alarms):
                memory.alarm = "outlier"
        elif memory.odd <= SPARED:
            self._take(self._ask(np.full_like(z, np.nan)))
            memory.alarm, memory.learned = memory.alarm or "outlier", False
        else:
            memory.sums, memory.state = memory.sums_before, memory.state_before
            rows, memory.waiting, memory.odd = memory.waiting, memory.waiting[:0], 0
            for one in rows:
                self._learn(one, self._ask(one))

    def _ask(self, z: np.ndarray) -> tuple[State, Any]:
        """What would come of a reading: the state, and (alarm, start, log odds, deviation)."""
        memory = self.memory
        number = np.maximum(memory.sums[0], 1.0)
        centre = memory.sums[1] / number
        variance = max(float((memory.sums[2] / number - centre**2).mean()), 1e-6)
        since = memory.changes[-1] if memory.changes else 0
        prior = centre, self.prior.shape * self.prior.noise * variance
        with jax.enable_x64(True):
            return jax.tree.map(np.asarray, _step(self.method, memory.state, prior, z, (self.odds, since, self.least)))

    def _learn(self, z: np.ndarray, answer: tuple[State, Any]) -> None:
        self._take(answer)
        self.memory.sums = self.memory.sums + _sums(z)

    def _take(self, answer: tuple[State, Any]) -> None:
        memory = self.memory
        memory.state = answer[0]
        alarm, start, memory.log_odds, _ = answer[1].tolist()
        memory.start, memory.declared = int(start), bool(alarm)
        if alarm:
            memory.changes.append(memory.start)
            memory.alarm = "change"

    def _beyond(self, z: np.ndarray, answer: tuple[State, Any], rate: float) -> bool:
        """Whether the largest deviation of the outputs that came is rarer than a rate among good readings."""
        if not 0.0 < self.false_alarms < 1.0 or not np.isfinite(z).any():
            return False
        each = 1.0 - (1.0 - rate) ** (1.0 / np.isfinite(z).sum())
        return float(answer[1][3]) > NormalDist().inv_cdf(1.0 - 0.5 * each)

    def _gross(self, rows: np.ndarray) -> np.ndarray:
        """Which of the first readings (n, O) are far from their median, but for runs that may be another level."""
        if not 0.0 < self.false_alarms < 1.0 or len(rows) < FEW:
            return np.zeros(len(rows), bool)
        off = np.abs(rows - np.nanmedian(np.where(np.isnan(rows).all(axis=0), 0.0, rows), axis=0))
        spread = 1.4826 * np.nanmedian(np.where(np.isnan(rows).all(axis=0), 0.0, off), axis=0)
        odd = np.any((off > GROSS * spread) & (spread > 0.0), axis=1)
        ends = np.flatnonzero(np.diff(odd, prepend=False, append=False)).reshape(-1, 2)
        for begin, end in ends[ends[:, 1] - ends[:, 0] > SPARED]:
            odd[begin:end] = False
        return odd

    def _in_units(self, rows: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            return np.clip((rows - self.memory.unit[0]) / self.memory.unit[1], -FARTHEST, FARTHEST)


def _sums(z: np.ndarray) -> np.ndarray:
    """Number, sum and sum of squares of what came, (3, ...)."""
    filled = np.where(np.isfinite(z), z, 0.0)
    return np.stack([np.isfinite(z), filled, filled**2])


@jax.jit
def _step(method: Bone, state: State, prior: tuple, z: Array, alarm: tuple) -> tuple[State, Array]:
    """One reading, where a segment that begins with it expects a centre (O,) and has a rate of its variance."""
    (centre, rate), (odds, since, least) = prior, alarm
    y = z[None] if z.size > 1 else z
    mean = jnp.zeros_like(state.initial.mean).at[: z.size].set(centre)
    first = eqx.tree_at(lambda belief: (belief.unit.mean, belief.rate), state.initial, (mean, jnp.asarray(rate)))
    here = jax.tree.map(lambda new, old: jnp.where(state.t == 0, new, old), first, state.hypotheses.belief)
    state = eqx.tree_at(lambda s: (s.initial, s.hypotheses.belief), state, (first, here))
    rows = None, y, jax.tree.map(lambda leaf: leaf[None], first), jnp.zeros(1, bool)
    carry, seen = watch_scan(method, state, rows, odds, since, least, posterior=False)
    told = [seen.alarm, seen.start, seen.log_odds, _deviation(method, state, y)]
    return state.after(*carry), jnp.concatenate([jnp.ravel(leaf).astype(float) for leaf in told])


def _deviation(method: Bone, state: State, y: Array) -> Array:
    """Standard deviations from what the segments that go on expect, the largest of all outputs; 0 if it is missing."""
    method = cast_and_bind(method, state)
    proposed, beliefs = propose(method, state.hypotheses, state.initial, None)

    def forecast(belief: Any, aux: Any) -> Any:
        return method.posterior.forecast(belief, method.model, None, aux, False)

    log_weight = jnp.where(proposed.is_new, -jnp.inf, proposed.hypotheses.log_weight)
    law = Mixture(over_hypotheses(forecast, beliefs, proposed.hypotheses.aux), normalised(log_weight))
    off = jnp.ravel(y) - jnp.ravel(law.mean)
    return jnp.max(jnp.nan_to_num(jnp.abs(off) / jnp.sqrt(jnp.ravel(law.var)), nan=0.0))
