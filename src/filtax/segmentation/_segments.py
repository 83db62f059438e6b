r"""Segments of a whole series, found after its end from the run-length posterior.

`segment` brings the series to mean 0 and variance 1, looks for a cycle, and runs the default method over it once. A
series with a long cycle is read in blocks, and the changes found are the first readings of blocks.

A reset forgets what was before it, so the filtered posteriors hold all that is needed. Backwards: if a segment ends
with datum t with probability e(t), it began with datum s with probability $e(t)\,\nu_t(s) H_t(s) / \sum_{s'} \nu_t(s')
H_t(s')$ (no hazard at the end of the series), which then adds to e(s - 1). These are the exact marginals. Forwards:
$\log p(y_{s:t} \mid \text{segment}) = \log \nu_t(s) + L_t - L_{s-1} - \log \sum_{s'} \nu_{s-1}(s') H_{s-1}(s')$, with L
the log evidence so far, is the evidence of each segment, survival included, and a recursion over the last segment gives
the most probable set of changes. Both are exact for RL[inf]; RL[K] leaves out the hypotheses that it dropped.

Axes: T data, O outputs, C slots. Cost: T C updates of a belief over 6 O parameters; then T C for the marginals and at
most T (T + C) for the best segmentation. Thesis: experiment:segmentation; eq:transition-rl-markov.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import jax
import numpy as np

from filtax.segmentation._alarms import Watched, watch
from filtax.segmentation._cycle import block_means, block_of, cycle_features, find_period
from filtax.segmentation._plan import RETROSPECTIVE, Settings, build, finite_readings, rows_of

MUCH = 0.25  # correlation of neighbours from which on a series is cut more often than it should be
SURE = 5.0  # standard errors by which neighbouring segments differ
ROUNDING = 1e-9  # of the largest reading: a smaller residual is rounding


@dataclass(frozen=True, eq=False)
class Segmentation:
    """The segments of a series.

    Attributes:
        changes: First reading of each segment after the first, where a change is more probable than not.
        best: The same of the most probable segmentation as a whole.
        probability: That a segment begins with each reading, (T,); within a block, at its first.
        outliers: Readings that would have been segments of their own, and count as missing.
        period: Length of the cycle in steps, None if there is none.
        block: Readings that were read as one, 1 without a long cycle.
        seen: The run-length posterior over the blocks, for `filtax.report.draw_segments`.

    >>> segment(np.r_[np.zeros(30), np.ones(30)] + 0.01 * np.sin(np.arange(60) ** 2)).changes
    [30]
    """

    changes: list[int]
    best: list[int]
    probability: np.ndarray
    outliers: list[int]
    period: float | None
    block: int
    seen: Watched


def segment(y: Any, *, settings: Settings = RETROSPECTIVE, period: Any = "auto", margin: int = 5) -> Segmentation:
    """Find where a series changed.

    A reading that is a segment of its own is a gross error. It counts as missing, and the others are segmented again,
    as it counted in the mean and the variance of the series too.

    Args:
        y: Readings (T,), or (T, O) of several series that change together; NaN where missing. A reading that is
            infinite, or absurdly far off, counts as missing.
        settings: The prior of a segment.
        period: Length of the cycle in steps; None if there is none; "auto" to look for one.
        margin: Steps on each side over which the probability of one change may be spread.

    Returns:
        The changes, and the posterior they come from.

    >>> rng = np.random.default_rng(0)
    >>> y = np.r_[rng.normal(size=80), rng.normal(4.0, 1.0, size=60)]
    >>> segment(y).changes
    [80]
    """
    y, outliers = finite_readings("segment", y), []
    while True:
        found = _segmented(y, settings, period, margin)
        alone = _alone(y, found)
        if not alone:
            return replace(found, outliers=sorted(outliers))
        outliers += alone
        y[alone] = np.nan


def _alone(y: np.ndarray, found: Segmentation) -> list[int]:
    """Segments of one reading; the last segment is none of them, as more of it may come."""
    bounds = [0, *found.changes] if found.block == 1 else []
    rows = np.flatnonzero(np.any(np.isfinite(y), axis=1))
    inside = [rows[(start <= rows) & (rows < end)] for start, end in pairwise(bounds)]
    return [int(one[0]) for one in inside if len(one) == 1]


def _segmented(y: np.ndarray, settings: Settings, period: Any, margin: int) -> Segmentation:
    """The segments of a series, gross errors among them."""
    period = find_period(y) if isinstance(period, str) else period
    block = block_of(period)
    spread = np.nanstd(y, axis=0)
    z = block_means((y - np.nanmean(y, axis=0)) / np.where(spread > 0.0, spread, 1.0), block)
    method, state = build(settings, y.shape[1], block)
    X, Y = rows_of(z, block, period)
    _, watched = watch(method, state, X, Y if y.shape[1] > 1 else Y[:, 0], posterior=True)
    watched = jax.tree.map(lambda leaf: np.asarray(leaf)[: len(z)], watched)
    marginals = change_marginals(watched)
    probability = np.zeros(len(y))
    probability[: len(z) * block : block] = marginals
    found, best = _changes(z, watched, marginals, None if period is None else period / block, -(-margin // block))
    if block > 1 and period is not None:
        found = [t for t in found if t - 1 not in found or not _holds_change(z, t - 1, round(period / block))]
    return Segmentation([block * t for t in found], [block * t for t in best], probability, [], period, block, watched)


def _changes(
    z: np.ndarray, watched: Watched, marginals: np.ndarray, period: float | None, margin: int
) -> tuple[list[int], list[int]]:
    """Probable changes, and the most probable set of them, in blocks.

    Around a curve neighbours lie on the same side of any line, and every cut makes the lines fit better. Then only
    changes whose place is known are returned.
    """
    found, best = changes_from_marginals(marginals, margin), best_segmentation(watched)
    if set(best) - set(found) and max(neighbour_correlation(column, best, period) for column in z.T) < MUCH:
        found = sorted([*found, *spread_changes(marginals, found, best, margin)])
    return found, best


def _holds_change(z: np.ndarray, block: int, cycle: int) -> bool:
    """Whether a change lies within a block: its mean lies between those one cycle before and one cycle later."""
    if not cycle <= block < len(z) - cycle:
        return False
    ends = z[[block - cycle, block + cycle]]
    return bool(np.all((ends.min(axis=0) <= z[block]) & (z[block] <= ends.max(axis=0))))


def change_marginals(seen: Watched) -> np.ndarray:
    """Compute the probability, given the whole series, that a new segment begins with each datum.

    Args:
        seen: From `watch(..., posterior=True)`.

    Returns:
        (T,) probabilities; their sum is the expected number of changes. That of the first datum is 0: the series
        begins there in any case.

    >>> import jax.numpy as jnp, filtax as fx
    >>> from filtax.segmentation import change_marginals, watch
    >>> rl = fx.method("NIG+RL[inf]-PR(hazard=0.01)", model=fx.models.since_change(1.0))
    >>> y = jnp.concatenate([0.1 * jnp.sin(jnp.arange(30.0)), 3.0 + 0.1 * jnp.cos(jnp.arange(20.0))])
    >>> _, seen = watch(rl, rl.init(mean=jnp.zeros(2), cov=10.0), None, y, posterior=True)
    >>> int(change_marginals(seen).argmax())
    30
    """
    starts, log_weight, log_hazard = _posterior("change_marginals", seen)
    T = len(starts)
    begins, ends = np.zeros(T), np.zeros(T)
    ends[-1:] = 1.0
    for t in range(T - 1, -1, -1):
        if ends[t] <= 0.0:
            continue
        score = log_weight[t] + (log_hazard[t] if t < T - 1 else 0.0)
        share = np.exp(score - score.max())
        share *= ends[t] / share.sum()
        np.add.at(begins, starts[t], share)
        later = starts[t] > 0
        np.add.at(ends, starts[t][later] - 1, share[later])
    begins[:1] = 0.0
    return np.minimum(begins, 1.0)


def best_segmentation(seen: Watched) -> list[int]:
    """Find the most probable set of changes, given the whole series.

    Args:
        seen: From `watch(..., posterior=True)`.

    Returns:
        Indices of the first datum of each segment after the first.

    >>> import jax.numpy as jnp, filtax as fx
    >>> from filtax.segmentation import best_segmentation, watch
    >>> rl = fx.method("NIG+RL[inf]-PR(hazard=0.01)", model=fx.models.since_change(1.0))
    >>> y = jnp.concatenate([0.1 * jnp.sin(jnp.arange(30.0)), 3.0 + 0.1 * jnp.cos(jnp.arange(20.0))])
    >>> _, seen = watch(rl, rl.init(mean=jnp.zeros(2), cov=10.0), None, y, posterior=True)
    >>> best_segmentation(seen)
    [30]
    """
    starts, log_weight, log_hazard = _posterior("best_segmentation", seen)
    T = len(starts)
    total = np.cumsum(np.asarray(seen.log_evidence, np.float64))
    best, back = np.full(T + 1, -np.inf), np.zeros(T + 1, int)  # best[s]: log probability of the data before s and of
    summed = np.full(T + 1, -np.inf)  # a change at s, for the best segmentation; summed[s]: over all of them
    best[0] = summed[0] = 0.0
    for t in range(T):
        score = log_weight[t] + total[t] + (log_hazard[t] if t < T - 1 else 0.0)
        alive = np.flatnonzero(score > -np.inf)
        segment = np.full(T, -np.inf)  # two runs may have one start: the first datum's, and the stream's
        np.logaddexp.at(segment, starts[t][alive], score[alive])
        used = np.unique(starts[t][alive])
        path = best[used] + segment[used] - summed[used]
        if not used.size:  # a hazard of zero: nothing can begin after t
            continue
        best[t + 1], back[t + 1] = path.max(), used[np.argmax(path)]
        summed[t + 1] = np.logaddexp.reduce(score[alive])
    changes, t = [], T
    while t > 0:
        t = int(back[t])
        changes.append(t)
    return [change for change in changes[::-1] if change > 0]


def changes_from_marginals(probability: Any, margin: int = 5, level: float = 0.5) -> list[int]:
    """Find the changes that are more probable than not, each where its probability is highest.

    The probability of a change is often spread over neighbours: what counts is its sum over `margin` steps on both
    sides. Where that is highest, the most probable datum is taken, the probability of one change is used up there (the
    nearest first), and the next is looked for, down to `level`.

    Args:
        probability: (T,), from `change_marginals`.
        margin: Steps on each side over which a change may be spread.
        level: Least sum that makes a change.

    Returns:
        Indices, in order.

    >>> changes_from_marginals([0.0, 0.1, 0.0, 0.3, 0.4, 0.0], margin=1)
    [4]
    """
    left = np.array(probability, np.float64)
    window, changes = np.ones(2 * margin + 1), []
    while left.size:
        near = np.convolve(left, window)[margin : margin + left.size]
        peak = int(near.argmax())
        if near[peak] < level:
            break
        first = max(peak - margin, 0)
        changes.append(first + int(left[first : peak + margin + 1].argmax()))
        _use_up(left, changes[-1], margin)
    return sorted(changes)


def spread_changes(
    probability: Any, told: Sequence[int], best: Sequence[int], margin: int = 5, level: float = 0.5
) -> list[int]:
    """Find the changes that are more probable than not, but whose place is uncertain: a slope that changed shows late.

    Where the most probable segmentation has a change and none was found near it, what counts is the sum of the
    probability up to the changes on both sides, and half the way to other uncertain ones. The change is put at the
    median of it.

    Args:
        probability: (T,), from `change_marginals`.
        told: From `changes_from_marginals`.
        best: From `best_segmentation`.
        margin: As for `told`: their probability within it is used up.
        level: Least sum that makes a change.

    Returns:
        Indices, in order.

    >>> spread = np.full(100, 0.0)
    >>> spread[40:61] = 0.045
    >>> changes_from_marginals(spread), spread_changes(spread, [], [44])
    ([], [50])
    """
    left = np.array(probability, np.float64)
    for change in told:
        _use_up(left, change, margin)
    changes: list[int] = []
    for first, end in pairwise([0, *told, len(left)]):
        inside = [c for c in best if first < c < end and all(abs(c - other) > margin for other in told)]
        halves = [(a + b) // 2 for a, b in pairwise(inside)]
        for start, stop in pairwise([first, *halves, end] if inside else []):
            total = np.cumsum(left[start:stop])
            if total[-1] >= level:
                changes.append(start + int(np.searchsorted(total, 0.5 * total[-1])))
    return changes


def _use_up(left: np.ndarray, change: int, margin: int) -> None:
    """Subtract the probability of one change from its neighbourhood, in place: 1 at most, the nearest first."""
    around = np.arange(max(change - margin, 0), min(change + margin + 1, left.size))
    around = around[np.argsort(np.abs(around - change), kind="stable")]
    left[around] = np.clip(np.cumsum(left[around]) - 1.0, 0.0, left[around])


def _posterior(call: str, seen: Watched) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    if seen.starts is None or seen.log_weight is None or seen.log_hazard is None:
        raise ValueError(f"{call}: the run-length posterior was not kept; give posterior=True to watch.")
    return np.asarray(seen.starts), np.asarray(seen.log_weight, np.float64), np.asarray(seen.log_hazard, np.float64)


def neighbour_correlation(y: np.ndarray, changes: Sequence[int], period: float | None = None) -> float:
    """Compute the correlation of neighbouring readings within segments; 0 if there are too few.

    Each segment's line is subtracted first, and where there is a cycle, the reading one cycle before. Independent noise
    around lines has none; a high correlation says that the model of a segment does not fit.

    Args:
        y: Readings, (T,); NaN where missing.
        changes: First reading of each segment after the first.
        period: Length of the cycle in readings; None if there is none.

    >>> round(neighbour_correlation(np.tile([1.0, -1.0], 50), []), 2)
    -1.0
    """
    y = y / (float(np.nanmax(np.abs(y), initial=0.0)) or 1.0)  # squares then stay finite in any unit
    parts = [_residuals(y[start:end], period) for start, end in pairwise([0, *changes, len(y)])]
    a, b = (np.concatenate([part[side] for part in parts]) for side in (slice(None, -1), slice(1, None)))
    both = np.isfinite(a) & np.isfinite(b)
    a, b = a[both], b[both]
    size = np.sqrt(np.sum(a * a) * np.sum(b * b))
    return float(np.sum(a * b) / size) if size > 0.0 else 0.0


def _residuals(part: np.ndarray, period: float | None) -> np.ndarray:
    """A segment without its line, and without its cycle."""
    if period is not None:
        cycle = max(1, round(period))
        part = part[cycle:] - part[:-cycle]
    finite = np.flatnonzero(np.isfinite(part))
    if finite.size < 3:
        return part[:0]
    line = np.polynomial.Polynomial.fit(finite, part[finite], 1)
    rest = part - line(np.arange(len(part)))
    return np.where(np.abs(rest) <= ROUNDING * np.nanmax(np.abs(part)), 0.0, rest)


def differing(y: np.ndarray, changes: Sequence[int], period: float | None = None) -> list[dict[str, list[float]]]:
    """Compute in what neighbouring segments differ: level, slope, spread and size of the cycle, before and after.

    A line and the harmonics of the cycle are fitted to each segment by least squares. What differs by more than
    `SURE` standard errors is returned: levels at the change, and cycles as a whole.

    Args:
        y: Readings, (T,); NaN where missing.
        changes: First reading of each segment after the first.
        period: Length of the cycle in readings; None if there is none.

    >>> t = np.arange(200)
    >>> differs = differing(np.sin(t * t) + np.where(t < 100, 0.0, t - 100.0), [100])
    >>> [{name: [round(value) for value in values] for name, values in each.items()} for each in differs]
    [{'slope': [0, 1]}]
    """
    unit = float(np.nanmax(np.abs(y), initial=0.0)) or 1.0
    bounds, waves, found = [0, *changes, len(y)], cycle_features(len(y), period), []
    for start, change, end in zip(bounds, bounds[1:], bounds[2:], strict=False):
        steps = np.arange(start, end) - change
        X = np.column_stack([np.ones(len(steps)), steps / len(y), waves[start:end]])
        parts = [_fit(X[side], y[start:end][side] / unit) for side in (steps < 0, steps >= 0)]
        (before, covariance, spread, free), (after, other, spread_after, free_after) = parts
        law, found = covariance + other, [*found, {}]
        if not min(free, free_after):
            continue
        for i, (name, size) in enumerate((("level", unit), ("slope", unit / len(y)))):
            if abs(after[i] - before[i]) > SURE * np.sqrt(law[i, i]):
                found[-1][name] = [size * float(before[i]), size * float(after[i])]
        if abs(np.log(spread_after / spread)) > SURE * np.sqrt(0.5 / free + 0.5 / free_after):
            found[-1]["spread"] = [unit * spread, unit * spread_after]
        turn = after[2:] - before[2:]
        if turn @ np.linalg.pinv(law[2:, 2:]) @ turn > SURE**2:
            found[-1]["cycle"] = [unit * float(np.linalg.norm(weights[2:])) for weights in (before, after)]
    return found


def _fit(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, float, int]:
    """Weights, their covariance, the standard deviation of what is left, and its degrees of freedom."""
    X, y = X[np.isfinite(y)], y[np.isfinite(y)]
    inverse = np.linalg.pinv(X)
    weights, free = inverse @ y, max(len(y) - int(np.linalg.matrix_rank(X)) if y.size else 0, 0)
    spread = max(float(np.linalg.norm(y - X @ weights)) / max(free, 1) ** 0.5, ROUNDING)
    return weights, spread**2 * inverse @ inverse.T, spread, free
