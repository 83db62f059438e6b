"""A trend that bends, a level or a week that became another one for good: changes that no single row shows.

A forecast that starts from the last readings follows them within a day, and nothing surprises. So the readings of a
block (of the shorter cycle where there are two, a day of hours) are averaged, and the averages are watched by a belief
that takes months to forget (`filtax.runs.lasting`). A reading counts at most as far off as its interval is wide, so
that gross errors are none of the average's business.

Axes: S series, K blocks kept, D columns.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from filtax.runs.large import LARGE
from filtax.runs.lasting import LAGS, Elder, begun, evidence, faded, learned, newborn, pattern, width, within
from filtax.runs.surprise import changes
from filtax.streams import Season

__all__ = ["Course", "bends", "cells"]

KEPT = 60  # blocks behind which a change may lie
FIRST = 14  # blocks that give the unit
MATURE = 28  # blocks that a belief has learned before a change of them can be told
LEAST = 3  # blocks that a change takes at least
STRIDE = 8  # rows from one look at the sums to the next, or a block where that is longer
ALONE = 24  # rows to a block where no cycle is known
NEAR = 2  # blocks before its start in which another alarm has told of a change
MONTH = 28.0  # blocks over which the slope is counted


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

    def __init__(self, rate: float, cycles: tuple[int, ...]) -> None:
        self.limit = 2.0 * math.log(1.0 / rate)
        self.block = ALONE if not cycles else cycles[0] if len(cycles) > 1 else 1
        self.cycle = cycles[-1] // self.block if cycles else 0
        self.stride, self.waves = -(-STRIDE // self.block), pattern(np.arange(max(self.cycle, 1)), self.cycle)
        columns = 2 + width(self.cycle) + LAGS
        self.filling = np.array([[np.nan, 0.0, 0.0, 0.0]])  # number of the block, sum, readings, first row
        self.blocks = np.full((1, 5, KEPT), np.nan)  # number, first row, value, the one learned, its error; latest last
        self.unit = np.full((1, 3), np.nan)  # base, scale, number of the block at which the line begins
        self.count = np.zeros((1, 3))  # rows, blocks learned, row of the last alarm of others
        self.mean, self.precision = np.zeros((1, columns)), np.zeros((1, columns, columns))
        self.noise = np.zeros((1, 2))

    @property
    def arrays(self) -> list[np.ndarray]:
        """All of it, for a checkpoint."""
        return [self.filling, self.blocks, self.unit, self.count, self.mean, self.precision, self.noise]

    def restore(self, arrays: list[np.ndarray]) -> None:
        """Go on from what `arrays` told."""
        self.filling, self.blocks, self.unit, self.count, self.mean, self.precision, self.noise = arrays

    def make_room(self, series: int) -> None:
        """Let more series come."""
        more = max(0, series - len(self.count))
        if more:
            empty = [np.nan, np.nan, np.nan, 0.0, 0.0, 0.0, 0.0]
            grown = [
                np.concatenate([each, np.full((more, *each.shape[1:]), value)])
                for each, value in zip(self.arrays, empty, strict=True)
            ]
            self.restore(grown)

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
            before = self.count[series, 0]
            for start, end in pairwise(edges):
                self.count[series, 0] = before + start
                since = self._begin(series, float(number[start]))
                if since is not None:
                    found.append((int(rows[start]), "change", since))
                part = y[rows[start:end]]
                part = part[np.isfinite(part)]
                self.filling[series, 1] = np.cumsum([self.filling[series, 1], *part])[-1]  # in order, however it is cut
                self.filling[series, 2] += len(part)
                for i in (i for i in others if start <= i < end):
                    self.count[series, 2] = before + i
                    self._forget(series, before + i - float(told[int(rows[i])]))
            self.count[series, 0] = before + len(rows)
        return found

    def _begin(self, series: int, number: float) -> int | None:
        """A block begins: the one before is complete. The rows since a change, if it shows one."""
        last, total, readings, first = self.filling[series].tolist()
        if number <= last:
            return None
        rows = self.count[series, 0]
        self.filling[series] = number, 0.0, 0.0, rows
        if last != last or 2.0 * readings < self.block or not abs(total) < LARGE:
            return None
        self.blocks[series, :, :-1] = self.blocks[series, :, 1:].copy()
        self.blocks[series, :, -1] = last, first, total / readings, np.nan, np.nan
        if np.isnan(self.unit[series, 0]):
            self._first(series)
            return None
        self._learn(series, KEPT - 1)
        start = self._start(series)
        if start is None:
            return None
        began, other = self.blocks[series, 1, start], self.count[series, 2]
        # The first block that may be named also stands for what came while it was learned from.
        known = other > 0 and other >= self._since(series, start)
        self._renew(series, start)
        return None if known else int(rows - began)

    def _since(self, series: int, start: int) -> float:
        """The row from which on another alarm may have told of the change that is seen to begin with a block."""
        count = int(self.count[series, 1])
        if start > max(0, KEPT - count + MATURE):
            return self.blocks[series, 1, start] - NEAR * self.block
        return self.blocks[series, 1, max(0, KEPT - count)]

    def _forget(self, series: int, began: float) -> None:
        """What is still learned begins anew with a change that others told of: one line across two levels is none."""
        if self.count[series, 1] >= MATURE:
            return
        self.blocks[series, :, ~(self.blocks[series, 1] >= began)] = np.nan
        if self.filling[series, 3] < began:
            self.filling[series, 2] = -math.inf  # readings of both: it counts for none
        self.unit[series], self.count[series, 1] = np.nan, 0.0
        self._first(series)

    def _first(self, series: int) -> None:
        """With enough blocks the unit is known, and they are learned."""
        own = np.flatnonzero(np.isfinite(self.blocks[series, 0]))
        odd = _unsettled(self.blocks[series, 2, own]) if len(own) >= FIRST else 0
        self.blocks[series, :, own[:odd]] = np.nan
        own = own[odd:]
        if len(own) < FIRST:
            return
        values = self.blocks[series, 2, own]
        middle, before = np.median(values), self.unit[series, 1]
        scale = 1.4826 * np.median(np.abs(values - middle))
        scale = scale if scale > 0.0 else max(1.0, abs(middle))
        self.unit[series] = middle, scale, self.blocks[series, 0, own[0]]
        elder = newborn(self.mean.shape[1])
        if np.isfinite(before):
            shape, rate = self.noise[series].tolist()
            elder = newborn(self.mean.shape[1], 2.0, rate / shape * (before / scale) ** 2)
        self._put(series, elder, 0.0)
        for at in own.tolist():
            self._learn(series, at)

    def _learn(self, series: int, at: int) -> None:
        """Learn a kept block, and note by how much it was off."""
        base, scale, origin = self.unit[series]
        number, _, value, _, _ = self.blocks[series, :, at].tolist()
        past = np.nan_to_num((self.blocks[series, 3, max(0, at - LAGS) : at][::-1] - base) / scale)
        waves = self.waves[int(number) % len(self.waves)]
        x = np.concatenate([[1.0, (number - origin) / MONTH], waves, past, np.zeros(LAGS - len(past))])
        elder = faded(Elder(self.mean[series], self.precision[series], *self.noise[series].tolist()))
        low, high = within(self.blocks[series, 2, np.isfinite(self.blocks[series, 2])])
        elder, value, off = learned(elder, x, float((value - base) / scale), math.sqrt(0.5 * self.limit))
        self.blocks[series, 3:, at] = min(max(base + scale * value, low), high), off
        self._put(series, elder, self.count[series, 1] + 1.0)

    def _put(self, series: int, elder: Elder, count: float) -> None:
        self.mean[series], self.precision[series] = elder.mean, elder.precision
        self.noise[series], self.count[series, 1] = (elder.shape, elder.rate), count

    def _start(self, series: int) -> int | None:
        """The place of the block with which a change began, if one is certain enough."""
        count = int(self.count[series, 1])
        starts = np.arange(max(0, KEPT - count + MATURE), KEPT - LEAST + 1)
        if not len(starts) or count % self.stride:
            return None
        number, off = self.blocks[series, 0, starts[0] :], self.blocks[series, 4, starts[0] :]
        odds = evidence(number, off, starts - starts[0], self.waves[number.astype(int) % len(self.waves)])
        if not np.logaddexp.reduce(odds) > self.limit:
            return None
        first = max(0, KEPT - count)
        number, _, value, _, _ = self.blocks[series, :, first:]
        return first + begun(number, value, starts - first, self.waves[number.astype(int) % len(self.waves)])

    def _renew(self, series: int, start: int) -> None:
        """Begin anew with the blocks since a change, in a unit of theirs; of what was before the noise is kept.

        A line that bent upwards is steep in the old unit, and a belief in that unit would not take it for possible.
        """
        self.blocks[series, :, :start] = np.nan
        self.unit[series, 0] = np.nan
        self.count[series, 1] = 0.0
        self._first(series)


def _unsettled(values: np.ndarray) -> int:
    """How many of the first blocks are none like those behind them: a unit that warms up, an average over errors."""
    for count in range(len(values) // 2, 0, -1):
        low, high = within(values[count:])
        if np.all((values[:count] < low) | (values[:count] > high)):
            return count
    return 0
