"""A trend that bends, a level or a week that became another one for good: changes that no single row shows.

A forecast that starts from the last readings follows them within a day, and nothing surprises. So the readings of a
block (of the shorter cycle where there are two, a day of hours) are averaged, and the averages are watched by a belief
that takes months to forget (`filtax.runs.watch`). A reading counts at most as far off as its interval is wide, so
that gross errors are none of the average's business.

A week that grows with the level is another one all the time, but its logarithm is the same: a change is one in
whichever unit one counts. So, where all averages are positive, their logarithms are watched as well, and if these have
less noise, for the level, both must show it.

Axes: S series.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from filtax.runs.large import LARGE
from filtax.runs.surprise import changes
from filtax.runs.watch import MATURE, Watch
from filtax.streams import Season

__all__ = ["Course", "bends", "cells"]

STRIDE = 8  # rows from one look at the sums to the next, or a block where that is longer
ALONE = 24  # rows to a block where no cycle is known
NEAR = 2  # blocks before its start in which another alarm has told of a change


def cells(
    season: Season | None, grids: Sequence[Mapping[str, np.ndarray]], time: np.ndarray | None, slot: np.ndarray
) -> np.ndarray:
    """Steps of the grid that rows belong to, (B,); without a season 0.

    Args:
        season: Step of the series.
        grids: What is known of the grid of each series.
        time: Of each row, (B,).
        slot: Series of each, (B,).

    >>> cells(Season.named("daily"), [{"phase": np.zeros(())}], np.array(["1970-01-04"], "M8[us]"), np.zeros(1, int))
    array([3])
    """
    cell = np.zeros(len(slot), np.int64)
    if season is None or time is None:
        return cell
    for series in np.unique(slot).tolist():
        own = slot == series
        cell[own] = season.cells(time[own], float(grids[series]["phase"]))
    return cell


def bends(
    course: "Course",
    cell: np.ndarray,
    slot: np.ndarray,
    said: Mapping[str, np.ndarray],
    echo: np.ndarray,
    found: Iterable[tuple[int, str, Any]],
) -> list[tuple[int, str, Any]]:
    """Changes of course in the rows of a block.

    Args:
        course: The watch.
        cell: Step of the grid that each row belongs to, (B,).
        slot: Series of each, (B,).
        said: What was forecast of them; "y" is what came.
        echo: Where a forecast repeats the odd step of a cycle ago, (B,): its interval says nothing of the reading.
        found: What was told of them already.
    """
    y, low, high = said["y"], said["lower"], said["upper"]
    near = np.fmax(np.fmin(y, 2.0 * high - low), 2.0 * low - high)
    near = np.where(echo, y, near)
    return course.look(slot, cell, np.where(np.isfinite(y), near, np.nan), changes(found))


class Course:
    """What S series are expected to go on like.

    >>> watch, rng = Course(0.001, (24, 168)), np.random.default_rng(0)
    >>> t = np.arange(24 * 70)
    >>> y = 0.01 * t - 0.03 * np.maximum(t - 24 * 50, 0) + rng.normal(size=t.size)
    >>> [(row, kind, _)] = watch.look(np.zeros(t.size, int), t, y, [])
    >>> row // 24, kind
    (55, 'change')
    """

    def __init__(self, rate: float, cycles: tuple[int, ...], growth: bool = True) -> None:
        limit = 2.0 * math.log(1.0 / rate)
        self.block = ALONE if not cycles else cycles[0] if len(cycles) > 1 else 1
        cycle = cycles[-1] // self.block if cycles else 0
        self.stride = -(-STRIDE // self.block)
        self.filling = np.array([[np.nan, 0.0, 0.0, 0.0]])  # number of the block, sum, readings, first row
        self.rows, self.other = np.zeros(1), np.zeros(1)  # of each series, and the row of the last alarm of others
        self.plain, self.growth = Watch(limit, cycle), Watch(limit, cycle) if growth else None

    @property
    def arrays(self) -> list[np.ndarray]:
        """All of it, for a checkpoint."""
        blocks, unit, known, *belief = self.plain.arrays
        count = np.stack([self.rows, known, self.other], axis=1)
        return [self.filling, blocks, unit, count, *belief, *(self.growth.arrays if self.growth else [])]

    def restore(self, arrays: list[np.ndarray]) -> None:
        """Go on from what `arrays` told."""
        self.filling, blocks, unit, count, *rest = arrays
        self.rows, known, self.other = count.T.copy()
        self.plain.restore([blocks, unit, known, *rest[:3]])
        if self.growth:
            self.growth.restore(rest[3:])

    def make_room(self, series: int) -> None:
        """Let more series come."""
        more = max(0, series - len(self.rows))
        self.rows, self.other = np.pad(self.rows, (0, more)), np.pad(self.other, (0, more))
        self.filling = np.concatenate([self.filling, np.full((more, 4), np.nan)])
        for watch in self._watches:
            watch.make_room(series)

    def look(
        self, slot: np.ndarray, cell: np.ndarray, y: np.ndarray, alarmed: Iterable[tuple[int, Any]]
    ) -> list[tuple[int, str, Any]]:
        """Changes of course: (row, "change", rows since its estimated start).

        Args:
            slot: Series of each row, (B,).
            cell: Step of the grid that each row belongs to, (B,), growing within a series.
            y: Readings, (B,); NaN where missing.
            alarmed: Rows at which a change was told of already, and from how many rows before: one alarm is enough.
        """
        told, found = dict(alarmed), []
        for series in np.unique(slot).tolist():
            rows = np.flatnonzero(slot == series)
            number = cell[rows] // self.block
            edges = [0, *(1 + np.flatnonzero(np.diff(number))).tolist(), len(rows)]
            others = [i for i, row in enumerate(rows.tolist()) if row in told] if told else []
            before = self.rows[series]
            for start, end in pairwise(edges):
                self.rows[series] = before + start
                since = self._begin(series, float(number[start]))
                if since is not None:
                    found.append((int(rows[start]), "change", since))
                part = y[rows[start:end]]
                part = part[np.isfinite(part)]
                self.filling[series, 1] = np.cumsum([self.filling[series, 1], *part])[-1]  # in order, however it is cut
                self.filling[series, 2] += len(part)
                for i in (i for i in others if start <= i < end):
                    self.other[series] = before + i
                    self._forget(series, float(before) + i - float(told[int(rows[i])]))
            self.rows[series] = before + len(rows)
        return found

    @property
    def _watches(self) -> list[Watch]:
        return [self.plain, self.growth] if self.growth else [self.plain]

    def _begin(self, series: int, number: float) -> int | None:
        """A block begins: the one before is complete. The rows since a change, if it shows one."""
        last, total, readings, first = self.filling[series].tolist()
        if number <= last:
            return None
        rows = self.rows[series]
        self.filling[series] = number, 0.0, 0.0, rows
        if last != last or 2.0 * readings < self.block or not abs(total) < LARGE:
            return None
        value = total / readings
        self.plain.add(series, last, first, value)
        if self.growth:
            self.growth.add(series, last, first, math.log(value) if value > 0.0 else None)
        start = self._start(series)
        if start is None:
            return None
        began, other = self.plain.blocks[series, 1, start], self.other[series]
        # The first block that may be named also stands for what came while it was learned from.
        known = other > 0 and other >= self._since(series, start)
        for watch in self._watches:
            watch.renew(series, start)
        return None if known else int(rows - began)

    def _start(self, series: int) -> int | None:
        """The place of the block with which a change began, if one is certain enough, in both units."""
        if self.plain.known[series] % self.stride or not self.plain.changed(series):
            return None
        if self.growth and self.growth.changed(series) is False and self._grows(series):
            return None
        return self.plain.start(series)

    def _grows(self, series: int) -> bool:
        """Whether logarithms are the better unit: their noise, brought to the usual level, is smaller."""
        assert self.growth is not None
        level = math.exp(float(np.nanmean(self.growth.blocks[series, 2])))
        return self.growth.spread(series) * level < self.plain.spread(series)

    def _since(self, series: int, start: int) -> float:
        """The row from which on another alarm may have told of the change that is seen to begin with a block."""
        rows, first = self.plain.blocks[series, 1], self.plain.first(series)
        return rows[start] - NEAR * self.block if start > max(0, first + MATURE) else rows[max(0, first)]

    def _forget(self, series: int, began: float) -> None:
        """What is still learned begins anew with a change that others told of: one line across two levels is none."""
        if self.plain.known[series] >= MATURE:
            return
        if self.filling[series, 3] < began:
            self.filling[series, 2] = -math.inf  # readings of both: it counts for none
        for watch in self._watches:
            watch.forget(series, began)
