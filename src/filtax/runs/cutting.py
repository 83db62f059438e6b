r"""A series cut into segments, looking back, and the alarms that could have been given as it came.

A reading that stands alone is a gross error and no change: one that lies further than `FAR` usual steps above, or
below, all of its two neighbours on each side. A usual step is the median one of the readings before it, so
that nothing but the next two readings is looked ahead at; alarms wait for these. Such readings count as missing.

Axes: T readings. Cost: that of `filtax.segmentation`.
"""

import warnings
from bisect import bisect_right
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from filtax.segmentation import detect, segment

__all__ = ["Cut", "alone", "cut_up"]

WAIT = 100  # readings before the first alarm: a cycle of up to fifty shows in them
ASIDE, FAR = 2, 12.0  # neighbours on each side, and the distance, in usual steps, of a reading that stands alone
LEAST, MOST = 30, 500  # readings before it that say what is usual
MARGIN = 5  # readings by which the start that an alarm names may miss a change that is sharp
SLOW = 100  # and one that is not, as of a slope, where the alarm is the first one behind it


@dataclass(frozen=True, eq=False)
class Cut:
    """What was found, by index.

    Attributes:
        changes: First reading of each segment after the first.
        period: Length of the cycle in readings; None if there is none.
        block: Readings that were taken together.
        alone: Readings that were taken for gross errors.
        times: Readings at which alarms were given.
        starts: First reading of the new regime that each of them named.
        probability: That a segment begins with each reading, (T,).

    >>> Cut([80], None, 1, [], [99], [81], np.zeros(140)).meant
    [0]
    """

    changes: list[int]
    period: float | None
    block: int
    alone: list[int]
    times: list[int]
    starts: list[int]
    probability: np.ndarray

    @property
    def meant(self) -> list[int | None]:
        """For each alarm the number of the change it told of, once; None where, looking back, there was none.

        Where a slope changes, neither the cut nor the start that an alarm names is known to a few readings: an alarm
        that names no change closely is of the latest one before it, if no other alarm is.
        """
        left = dict(enumerate(self.changes))
        found: list[int | None] = []
        for start in self.starts:
            near = min(left, key=lambda i: abs(left[i] - start), default=None)
            hit = near is not None and abs(left[near] - start) <= max(MARGIN, self.block)
            found.append(near if hit else None)
            if hit and near is not None:
                del left[near]
        for i, (time, start) in enumerate(zip(self.times, self.starts, strict=True)):
            last = bisect_right(self.changes, time) - 1
            if found[i] is None and last in left and abs(left[last] - start) <= SLOW:
                found[i] = last
                del left[last]
        return found

    def to_json(self) -> dict[str, Any]:
        """Return all but the probabilities as plain values."""
        return {name: value for name, value in asdict(self).items() if name != "probability"}


def cut_up(y: np.ndarray) -> Cut:
    """Cut a series.

    Args:
        y: Readings, (T,); NaN where missing.

    >>> rng = np.random.default_rng(0)
    >>> y = np.r_[rng.normal(size=80), rng.normal(9.0, 1.0, size=60)]
    >>> y[50] = 400.0
    >>> found = cut_up(y)
    >>> found.changes, found.alone
    ([80], [50])
    """
    apart = alone(y)
    y = np.where(apart, np.nan, y)
    found, alarms = segment(y), detect(y, warmup=WAIT)
    times = [min(time + ASIDE, len(y) - 1) for time in alarms.times]
    period = None if found.period is None else float(found.period)
    told = (found.changes, period, found.block, np.flatnonzero(apart).tolist(), times, alarms.starts)
    return Cut(*told, np.asarray(found.probability))


def alone(y: np.ndarray) -> np.ndarray:
    """Which readings lie far from all that are near, (T,).

    >>> y = np.sin(np.arange(60.0) ** 2)
    >>> y[40], y[50:] = 99.0, 99.0 + y[50:]
    >>> np.flatnonzero(alone(y)).tolist()
    [40]
    """
    padded = np.pad(y, ASIDE, constant_values=np.nan)
    beside = [padded[ASIDE + by : ASIDE + by + len(y)] for by in range(-ASIDE, ASIDE + 1) if by]
    near = np.stack(beside)
    with warnings.catch_warnings(), np.errstate(over="ignore", invalid="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)  # nothing is known where all neighbours are missing
        gap = np.fmax(y - np.nanmax(near, axis=0), np.nanmin(near, axis=0) - y)
        gap[~(np.isfinite(near[:ASIDE]).any(axis=0) & np.isfinite(near[ASIDE:]).any(axis=0))] = 0.0  # the last one
        step = np.abs(np.diff(y, prepend=np.nan))
        before = np.pad(step, (MOST, 0), constant_values=np.nan)
        usual = np.nanmedian(np.lib.stride_tricks.sliding_window_view(before, MOST)[: len(y)], axis=1)
        known = np.cumsum(np.isfinite(step)) > LEAST
        return known & (usual > 0.0) & (gap > FAR * usual)
