r"""A level that moves by less than forecasts call impossible: suspected at one row, certain with a day behind it.

A forecast that is young, or reckons with changes, gives a level that moves by ten noises a probability of $10^{-4}$. So
a row is suspected if its probability is below $\alpha$; and with `AFTER` readings behind it two models compete for
them and the `BACK` readings before, as among the first rows (`filtax.runs.early`): one with a step and one without, on
a line, the reading before, those of a cycle before and two harmonics. A level has moved if the odds exceed
$\alpha^{-2}$, and if nine of ten readings behind lie nearer to the new level than to the old one, compared with the
last cycle before it: with the day, or the week once that is known, and with the week at last.

As long as it is not, a weekend looks like a level that moved. So what begins on a Saturday or a Monday of the first
week is looked at when that week is over, and compared with it.

Axes: S series, B rows, N readings.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from filtax.runs.early import CUT, step_odds, units

__all__ = ["Moves"]

BACK, AFTER = 168, 24  # readings before a row and behind it, when it is looked at
LEAST = 20  # readings before it
BEFORE = 5  # of them whose median is the level that is left
EDGES = (0, 5)  # days with which a weekend ends and begins
MONDAY = 3  # days from one to the first of 1970
NONE = [math.nan] * 3
NEAR = 10  # rows by which other alarms may say too late when a change began
SPARED = 2  # readings behind a level, or one of ten, that may lie on the old side


class Moves:
    """What S series are suspected of.

    Attributes:
        since: Rows since the suspected one, for each row that was looked at last, (B,); NaN where there is none.

    >>> watch, rng = Moves(0.001, ()), np.random.default_rng(0)
    >>> y, at = np.repeat([10.0, 20.0], [100, 30]) + rng.normal(size=130), np.arange(130)
    >>> watch.look(np.zeros(130, int), at, y, np.full(130, 10.0), np.where(at == 100, 1e-4, 0.5), [])
    [(124, 'change', 24)]
    """

    def __init__(self, rate: float, cycles: Sequence[int]) -> None:
        self.rate, self.cycles = rate, tuple(cycles)
        self.week = cycles[-1] if len(cycles) > 1 else 0
        # Step by step: readings, and whether they were odd.
        self.past = np.full((1, 2, max(cycles, default=0) + BACK + 2 * AFTER), np.nan)
        # Steps: the last, the first, that of the last change, the suspected one; how far that was off, and rows since.
        self.held = np.full((1, 6), np.nan)
        self.since = np.zeros(0)

    @property
    def arrays(self) -> list[np.ndarray]:
        """All of it, for a checkpoint."""
        return [self.past, self.held]

    def restore(self, arrays: list[np.ndarray]) -> None:
        """Go on from what `arrays` told."""
        self.past, self.held = arrays

    def make_room(self, series: int) -> None:
        """Let more series come."""
        more = ((0, max(0, series - len(self.past))), (0, 0))
        self.past = np.pad(self.past, (*more, (0, 0)), constant_values=np.nan)
        self.held = np.pad(self.held, more, constant_values=np.nan)

    def echoes(self, slot: np.ndarray, cell: np.ndarray, y: np.ndarray, tail: np.ndarray) -> np.ndarray:
        """Rows whose forecast may repeat the odd step of a cycle ago, where y has none such, (B,).

        Args:
            slot: Series of each row, (B,).
            cell: Step of the grid that each row belongs to, (B,), growing within a series.
            y: Readings, (B,).
            tail: Probability of y, and of anything as extreme, by its forecast, (B,).

        >>> y, tail = np.array([1.0, 9.0, 9.0, 9.0]), np.array([0.5, 1e-9, 0.5, 1e-9])
        >>> Moves(0.001, (2,)).echoes(np.zeros(4, int), np.arange(4), y, tail).tolist()
        [False, False, False, True]
        """
        echo = np.zeros(len(y), bool)
        for series in np.unique(slot).tolist():
            rows = np.flatnonzero(slot == series)
            place, (values, odd) = self._placed(series, cell[rows], y[rows], tail[rows])
            with np.errstate(over="ignore", invalid="ignore"):
                step = np.abs(np.diff(values, prepend=np.nan))
            for cycle in self.cycles:
                echo[rows] |= (odd[place - cycle] == 1.0) & (step[place] < step[place - cycle])
        return echo

    def look(
        self,
        slot: np.ndarray,
        cell: np.ndarray,
        y: np.ndarray,
        forecast: np.ndarray,
        tail: np.ndarray,
        alarmed: Sequence[tuple[int, Any]],
        jumped: Sequence[tuple[int, str, Any]] = (),
    ) -> list[tuple[int, str, Any]]:
        """Levels that moved: (row, "change", rows since); and of those that jumped the ones that no week explains.

        Args:
            slot: Series of each row, (B,).
            cell: Step of the grid that each row belongs to, (B,), growing within a series.
            y: Readings, (B,).
            forecast: What was expected, (B,).
            tail: Probability of y, and of anything as extreme, by its forecast, (B,); NaN where unknown.
            alarmed: Rows at which a change was told of already, and from how many rows before: one alarm is enough, and
                is told of here again if it began with a suspected row before.
            jumped: What is known of levels that jumped (`filtax.runs.jumps`).
        """
        told, found, others = dict(alarmed), [], {row: value for row, _, value in jumped}
        off, odd, self.since = y - forecast, tail < self.rate, np.full(len(y), np.nan)
        for series in np.unique(slot).tolist():
            rows = np.flatnonzero(slot == series)
            last, first, changed, *held = self.held[series].tolist()
            first = float(cell[rows[0]]) if first != first else first
            place, track = self._placed(series, cell[rows], y[rows], tail[rows])
            for i, row in enumerate(rows.tolist()):
                held[2] += 1.0
                self.since[row] = held[2]
                if row in told:
                    since = self.began(row, told[row])
                    if since != told[row]:
                        found.append((row, "change", since))
                    held, changed = NONE.copy(), float(cell[row] - since)
                    continue
                given = (track[0, : place[i] + 1], held[0], held[1], float(cell[row]), first, changed)
                if row in others and not (held[2] == others[row] and self._weekly(*given) is not False):
                    moved = True
                    held[2] = others[row]
                else:
                    moved = self._moved(*given) if held[0] == held[0] else None
                if moved:
                    found.append((row, "change", int(held[2])))
                    changed = float(cell[row] - held[2])
                held = held if moved is None else NONE.copy()
                if odd[row] and not moved and held[0] != held[0]:
                    held = [float(cell[row]), float(off[row]), 0.0]
            self.past[series] = track[:, -self.past.shape[2] :]
            self.held[series] = np.fmax(last, float(cell[rows[-1]])), first, changed, *held
        return found

    def began(self, row: int, since: int) -> int:
        """How many rows before one a change began that others tell of: with the suspected one, if they name a later.

        >>> watch = Moves(0.001, ())
        >>> watch.since = np.array([8.0])
        >>> watch.began(0, 3), watch.began(0, 9)
        (8, 9)
        """
        return int(self.since[row]) if since < self.since[row] <= since + NEAR else since

    def weekend(self, start: float, before: np.ndarray, size: float) -> bool:
        """Whether a level that moved with a step may be the weekend, or its end, of a week that is not known yet.

        Args:
            start: The step.
            before: Readings before it, (N,).
            size: By how much the level moved.

        >>> quiet, friday = np.tile([0.0, 1.0], 12), 24.0  # the second day of 1970
        >>> [Moves(0.001, (24, 168)).weekend(friday + day * 24, quiet, 9.0) for day in range(4)]
        [False, True, False, True]
        """
        if not self.week or (start // self.cycles[0] + MONDAY) % 7 not in EDGES:
            return False
        return abs(size) <= _largest(before)

    def _placed(self, series: int, cell: np.ndarray, y: np.ndarray, tail: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Places of rows behind those of the past, (B,), and all step by step; of one step the first row counts."""
        past, last = self.past[series], self.held[series, 0]
        steps = np.clip(np.diff(cell, prepend=cell[0] - 1 if np.isnan(last) else int(last)), 0, past.shape[1])
        place = past.shape[1] - 1 + np.cumsum(steps)
        track = np.concatenate([past, np.full((2, int(place[-1]) + 1 - past.shape[1]), np.nan)], axis=1)
        new = steps > 0
        track[:, place[new]] = np.where(np.isfinite(y), y, np.nan)[new], (tail < self.rate)[new]
        return place, track

    def _moved(self, y: np.ndarray, start: float, size: float, now: float, first: float, changed: float) -> bool | None:
        """Whether a level moved; None as long as that is not to be said.

        Args:
            y: Readings step by step up to now, (N,).
            start: Step of the suspected one.
            size: By how much it was off.
            now: The last step.
            first: That with which the series began.
            changed: That of the last change, whose level is not to be explained again; NaN where there was none.
        """
        at = len(y) - 1 - int(now - start)
        if at <= 0:
            return False
        behind = _behind(y, at)
        day = self.cycles[0] if self.cycles else 0
        if day > BACK and start - first < day + BEFORE:  # too many rows to wait for the first of them to be over
            day = 0
        told = len(y) - 1 - now + changed
        back = _back(y, at, behind, day, size, told)
        if back is not None and self.week and start - first >= self.week + BEFORE:  # what a weekend explains stays
            ago = _back(y, at, behind, self.week, size, told)
            back = back if ago is None else back & ago
        if back is None or back.sum() > max(SPARED, len(behind) // 10):
            return False
        if len(behind) < AFTER:
            return None
        weekly = self._weekly(y, start, size, now, first, changed)
        if weekly is not False:
            return None if weekly is None else False
        begin = max(0, at - BACK, 0 if changed != changed else at - int(start - changed))
        if np.isfinite(y[begin:at]).sum() < LEAST:
            return False
        return _log_odds(y, begin, at, self.cycles) > 2.0 * math.log(1.0 / self.rate)

    def _weekly(
        self, y: np.ndarray, start: float, size: float, now: float, first: float, changed: float
    ) -> bool | None:
        """Whether the week explains a level that moved; None as long as that may be. Arguments as those of `_moved`."""
        if not self.week:
            return False
        at = len(y) - 1 - int(now - start)
        if start - first < self.week:
            if at <= 0 or not self.weekend(start, y[:at], size):
                return False
            if now - first < self.week + AFTER:
                return None
        told = len(y) - 1 - now + changed
        back = _back(y, at, _behind(y, at)[-AFTER:], self.week, size, told, 0.0) if at > 0 else None
        return back is None or int(back.sum()) > SPARED


def _largest(y: np.ndarray) -> float:
    """The most that a weekend moves a level by: twice the spread of the middle half, or twenty usual steps."""
    y = y[np.isfinite(y)]
    if len(y) < 2:
        return 0.0
    with np.errstate(over="ignore"):
        half = float(np.subtract(*np.quantile(y, [0.75, 0.25])))
        return max(2.0 * half, 20.0 * float(np.median(np.abs(np.diff(y)))))


def _behind(y: np.ndarray, at: int) -> np.ndarray:
    """Places of the readings behind one."""
    return at + 1 + np.flatnonzero(np.isfinite(y[at + 1 :]))


def _back(
    y: np.ndarray, at: int, rows: np.ndarray, cycle: int, size: float, told: float, usual: float | None = None
) -> np.ndarray | None:
    """Which readings lie nearer to the level before a row, by what they gained on the last cycle before it.

    What was gained by a change that was told of, readings that are compared with those behind it do not gain again.

    Args:
        y: Readings step by step, (N,).
        at: Place of the row.
        rows: Places of the readings, (B,).
        cycle: Steps of it; 0 where there is none.
        size: By how much the level may have moved.
        told: Place of the last change; NaN where there was none.
        usual: What readings before the row gained where that is not known; without it nothing is said.
    """
    near = np.arange(max(cycle, at - BEFORE), at)
    with np.errstate(over="ignore", invalid="ignore"):
        gained = y[near] - y[near - cycle] if cycle else y[near]
        later, gained = (near - cycle >= told)[np.isfinite(gained)], gained[np.isfinite(gained)]
        if not len(gained) and usual is None:
            return None
        level = float(np.median(gained)) if len(gained) else usual or 0.0
        ago = rows - cycle * -(-(rows - at + 1) // cycle) if cycle else rows
        if cycle:
            level = np.where(ago >= told, np.median(gained[later]) if later.any() else 0.0, level)
        now = y[rows] - np.where(ago >= 0, y[np.maximum(ago, 0)], np.nan) if cycle else y[rows]
        return math.copysign(1.0, size) * (now - level - 0.5 * size) <= 0.0


def _log_odds(y: np.ndarray, first: int, start: int, cycles: Sequence[int]) -> float:
    """Log odds that a level moved with a row, by all readings from another one on; those before are looked back at."""
    at = first + np.flatnonzero(np.isfinite(y[first:]))
    own, later = y[at], at >= start
    middle, spread = units(own, int(later.argmax()))
    if not 0.0 < spread < math.inf:
        return -math.inf
    whole = np.full(len(y), middle[0])
    whole[at] = middle
    base = np.median(own)
    z = (whole - base) / spread + np.clip((y - whole) / spread, -CUT, CUT)
    columns = [np.ones(len(at)), (at - first) / len(y), np.concatenate([[0.0], z[at[:-1]]])]
    for cycle in cycles:
        if 2 * np.sum(at >= cycle) >= len(at):
            columns.append(np.nan_to_num(np.where(at >= cycle, z[np.maximum(at - cycle, 0)], 0.0)))
    if cycles:
        turn = 2.0 * np.pi * at / cycles[0]
        columns += [wave(k * turn) for k in (1, 2) for wave in (np.cos, np.sin)]
    return step_odds(z[at], later, columns)
