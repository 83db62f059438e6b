r"""Segments from a kept run-length posterior: the probability of a change at each datum, and the best segmentation.

A reset forgets what was before it, so the filtered posteriors hold all that is needed. Backwards, if a segment ends
with datum t with probability e(t), it began with datum s with probability $e(t)\,\nu_t(s) H_t(s) / \sum_{s'} \nu_t(s')
H_t(s')$ (no hazard at the end of the series), which then adds to e(s - 1): the exact marginals. Forwards,
$\log p(y_{s:t} \mid \text{segment}) = \log \nu_t(s) + L_t - L_{s-1} - \log \sum_{s'} \nu_{s-1}(s') H_{s-1}(s')$ with L
the log evidence so far gives each segment its evidence, survival included, and the recursion over the last segment the
most probable set of changes. Both are exact for RL[inf]; RL[K] leaves out what it dropped.

Axes: T data, C slots. Cost: T C for the marginals, T (T + C) at most for the best segmentation.
Thesis: experiment:segmentation; eq:transition-rl-markov.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from filtax.segmentation.watch import Watched

__all__ = ["best_segmentation", "change_marginals", "changes_from_marginals", "spread_changes"]


def change_marginals(seen: Watched) -> np.ndarray:
    """Probability, given the whole series, that a new segment begins with each datum.

    Args:
        seen: From `watch(..., posterior=True)`.

    Returns:
        (T,) probabilities; their sum is the expected number of changes. That of the first datum is 0: the series
        begins there anyway.

    >>> import jax.numpy as jnp, filtax as fx
    >>> from filtax.segmentation import change_marginals, watch
    >>> rl = fx.method("NIG+RL[inf]-PR(hazard=0.01)", model=fx.models.since_change(1.0))
    >>> y = jnp.concatenate([0.1 * jnp.sin(jnp.arange(30.0)), 3.0 + 0.1 * jnp.cos(jnp.arange(20.0))])
    >>> _, seen = watch(rl, rl.init(mean=jnp.zeros(2), cov=10.0), None, y, posterior=True)
    >>> int(change_marginals(seen).argmax())
    30
    """
    starts, log_weight, log_hazard = _kept("change_marginals", seen)
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
    """The most probable set of changes, given the whole series.

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
    starts, log_weight, log_hazard = _kept("best_segmentation", seen)
    T = len(starts)
    total = np.cumsum(np.asarray(seen.log_evidence, np.float64))
    best, back = np.full(T + 1, -np.inf), np.zeros(T + 1, int)  # best[s]: of the data before s, a change at s included
    summed = np.full(T + 1, -np.inf)  # the same, all segmentations summed
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
    """Changes that are more probable than not, each where its probability is highest.

    The probability of a change is often spread over neighbours: what counts is its sum over `margin` steps on both
    sides. Where that is highest, the most probable datum is taken, what its change is worth (1 at most, the nearest
    first) is spent, and the next is looked for, down to `level`.

    Args:
        probability: (T,), from `change_marginals`.
        margin: Steps on each side over which a change may be spread.
        level: Least sum that is told as a change.

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
        _spend(left, changes[-1], margin)
    return sorted(changes)


def spread_changes(
    probability: Any, told: Sequence[int], best: Sequence[int], margin: int = 5, level: float = 0.5
) -> list[int]:
    """Changes that are more probable than not, though nobody can say where: a slope that changed shows late.

    Where the most probable segmentation has a change and none was told near it, what counts is the sum of the
    probability up to the changes on both sides, and from others of its kind up to half the way. The change is told at
    the median of it.

    Args:
        probability: (T,), from `change_marginals`.
        told: From `changes_from_marginals`.
        best: From `best_segmentation`.
        margin: As for `told`: what they are worth within it is spent.
        level: Least sum that is told as a change.

    Returns:
        Indices, in order.

    >>> spread = np.full(100, 0.0)
    >>> spread[40:61] = 0.045
    >>> changes_from_marginals(spread), spread_changes(spread, [], [44])
    ([], [50])
    """
    left = np.array(probability, np.float64)
    for change in told:
        _spend(left, change, margin)
    changes: list[int] = []
    for first, end in pairwise([0, *told, len(left)]):
        inside = [c for c in best if first < c < end and all(abs(c - other) > margin for other in told)]
        halves = [(a + b) // 2 for a, b in pairwise(inside)]
        for start, stop in pairwise([first, *halves, end] if inside else []):
            total = np.cumsum(left[start:stop])
            if total[-1] >= level:
                changes.append(start + int(np.searchsorted(total, 0.5 * total[-1])))
    return changes


def _spend(left: np.ndarray, change: int, margin: int) -> None:
    """Take from the probabilities, in place, what one change is worth: 1 at most, the nearest first."""
    around = np.arange(max(change - margin, 0), min(change + margin + 1, left.size))
    around = around[np.argsort(np.abs(around - change), kind="stable")]
    left[around] = np.clip(np.cumsum(left[around]) - 1.0, 0.0, left[around])


def _kept(call: str, seen: Watched) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    if seen.starts is None or seen.log_weight is None or seen.log_hazard is None:
        raise ValueError(f"{call}: the run-length posterior was not kept; give posterior=True to watch.")
    wide = lambda values: np.asarray(values, np.float64)  # noqa: E731
    return np.asarray(seen.starts), wide(seen.log_weight), wide(seen.log_hazard)
