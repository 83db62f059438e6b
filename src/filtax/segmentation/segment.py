"""Cut a whole series into segments, looking back from its end.

The series is brought to mean 0 and variance 1, a cycle is looked for, and the default method runs over it once. A
series with a cycle is read in blocks, and the changes found are the first readings of blocks.

Axes: T data, O outputs. Cost: T K updates of a belief over 6 O parameters.
Thesis: experiment:segmentation.
"""

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from filtax import boundary
from filtax.segmentation.alike import MUCH, correlation
from filtax.segmentation.period import block_means, block_of, find_period
from filtax.segmentation.plan import RETROSPECTIVE, Settings, build, readings
from filtax.segmentation.segments import best_segmentation, change_marginals, changes_from_marginals, spread_changes
from filtax.segmentation.watch import Watched, watch

__all__ = ["Segmentation", "segment", "series_of"]

FARTHEST = 1e18  # median distances from the median: the square of what is farther off overflows in float32


@dataclass(frozen=True, eq=False)
class Segmentation:
    """The segments of a series.

    Attributes:
        changes: First reading of each segment after the first, where a change is more probable than not.
        best: The same of the most probable segmentation as a whole.
        probability: That a segment begins with each reading, (T,); within a block, at its first.
        period: Length of the cycle in steps, None if there is none.
        block: Readings that were taken together, 1 without a long cycle.
        seen: The run-length posterior over the blocks, for `filtax.report.draw_segments`.

    >>> segment(np.r_[np.zeros(30), np.ones(30)] + 0.01 * np.sin(np.arange(60) ** 2)).changes
    [30]
    """

    changes: list[int]
    best: list[int]
    probability: np.ndarray
    period: float | None
    block: int
    seen: Watched


def segment(y: Any, *, settings: Settings = RETROSPECTIVE, period: Any = "auto", margin: int = 5) -> Segmentation:
    """Find where a series changed.

    Args:
        y: Readings (T,), or (T, O) of several series that change together; NaN where missing. What is
            not finite, or absurdly far off, counts as missing.
        settings: What a segment looks like before any of it was seen.
        period: Length of the cycle in steps; None if there is none; "auto" to look for one.
        margin: Steps on each side over which the probability of one change may be spread.

    Returns:
        The changes, and the posterior they come from.

    >>> rng = np.random.default_rng(0)
    >>> y = np.r_[rng.normal(size=80), rng.normal(4.0, 1.0, size=60)]
    >>> segment(y).changes
    [80]
    """
    y = series_of("segment", y)
    period = find_period(y) if isinstance(period, str) else period
    block = block_of(period)
    spread = np.nanstd(y, axis=0)
    z = block_means((y - np.nanmean(y, axis=0)) / np.where(spread > 0.0, spread, 1.0), block)
    method, state = build(settings, y.shape[1], block)
    X, Y = readings(z, block, period)
    _, seen = watch(method, state, X, Y if y.shape[1] > 1 else Y[:, 0], posterior=True)
    seen = jax.tree.map(lambda leaf: np.asarray(leaf)[: len(z)], seen)
    marginals = change_marginals(seen)
    probability = np.zeros(len(y))
    probability[: len(z) * block : block] = marginals
    found, best = _changes(z, seen, marginals, None if period is None else period / block, -(-margin // block))
    if block > 1 and period is not None:
        found = [t for t in found if t - 1 not in found or not _mixed(z, t - 1, round(period / block))]
    return Segmentation([block * t for t in found], [block * t for t in best], probability, period, block, seen)


def _changes(
    z: np.ndarray, seen: Watched, marginals: np.ndarray, period: float | None, margin: int
) -> tuple[list[int], list[int]]:
    """Changes that are probable, and the most probable set of them, in blocks.

    Around a curve neighbours lie on the same side of a line, and wherever it is cut the lines fit better: then only
    changes whose place is known are told.
    """
    found, best = changes_from_marginals(marginals, margin), best_segmentation(seen)
    if set(best) - set(found) and max(correlation(column, best, period) for column in z.T) < MUCH:
        found = sorted([*found, *spread_changes(marginals, found, best, margin)])
    return found, best


def _mixed(z: np.ndarray, block: int, cycle: int) -> bool:
    """Whether a change lies within a block: it is between what it was one cycle before and what it is one later."""
    if not cycle <= block < len(z) - cycle:
        return False
    ends = z[[block - cycle, block + cycle]]
    return bool(np.all((ends.min(axis=0) <= z[block]) & (z[block] <= ends.max(axis=0))))


def series_of(call: str, y: Any, known: int | None = None) -> np.ndarray:
    """The readings as (T, O), NaN where what came is no reading; refused if there is nothing to look at.

    Args:
        call: Who asks.
        y: (T,) or (T, O).
        known: How many readings, from the first on, say what is absurd; all if left out.

    >>> series_of("segment", [1.0, np.inf, 2.0, 4.0, 1e30])[:, 0].tolist()
    [1.0, nan, 2.0, 4.0, nan]
    """
    (y,) = boundary.arrays(y=y)
    y = np.asarray(y, np.float64)
    y = y.reshape(len(y), -1) if y.ndim in (1, 2) and y.size else y
    if y.ndim != 2 or len(y) < 2 or not y.size or not np.isfinite(y).any(axis=0).all():
        raise ValueError(
            f"{call}: y has shape {np.shape(y)}; give at least two readings, (T,) or (T, O), with a finite one in each "
            "column."
        )
    return np.column_stack([_believable(column, known) for column in y.T])


def _believable(y: np.ndarray, known: int | None) -> np.ndarray:
    """One column, NaN where a number is infinite or so far off that it would overflow."""
    first = y[:known][np.isfinite(y[:known])]
    with np.errstate(over="ignore"):
        middle = np.median(first) if first.size else 0.0
        spread = np.median(np.abs(first - middle)) if first.size else 0.0
        unit = spread if spread > 0.0 else max(1.0, abs(middle))
        return np.where(np.isfinite(y) & (np.abs(y - middle) <= FARTHEST * unit), y, np.nan)
