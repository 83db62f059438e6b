"""Levels that keep coming back, with noise or without: of a target that has few of them, a switch is no change.

A device is on or off: most readings are as the one before, and each switch is far off by what is usual then. So the
latest levels are counted, in a table of `ROOM` with forgetting (Misra and Gries 1982: a reading that finds no room
takes one from all others, so that what is measured leaves nothing in it). What the noise of a level is, most steps from
one reading to the next tell; where these are nothing, levels are single values. A reading is usual if nearly all of the
latest ones lie at levels of the table, and its own has been visited at least twice before. What lies between levels
belongs to none: a series that is measured has many such readings, and no levels. Of a device that keeps to the clock
(`filtax.streams.schedule`) no reading is usual: forecasts know when it switches, and else it is news.

Readings at levels that are new belong together until as many as four times theirs have been at known ones. What came
first among them is not known before that, however often it came: levels that all moved are not known as they return.

A level without noise among noisy ones is a code for a fault, however often it comes; and so is one that is further from
all others than these are apart, by far; of two neither is.
"""

import math
from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from filtax.streams.schedule import Schedule

__all__ = ["LONG", "NEW", "STAYS", "USUAL", "Levels"]

ROOM = 8  # levels
KEPT = 1.0 - 1.0 / 500.0  # of what was counted, at each reading
LATER = 1.0 - 1.0 / 5000.0  # of visits, which are rare
MOST, RARE = 0.9, 0.02  # share of the readings that few levels make up; that of one which may lie beside another
TWICE = 1.5  # visits, some of them half forgotten
APART = 20.0  # spans of all others
STEPS, SHARE = 96, 0.3  # latest steps, and the share of them that is noise for certain
WIDE = 12.0  # of such a step that a level is wide to either side: six deviations and a half of Gaussian noise
THIN, THICK = 0.03, 0.22  # of that width: the mean deviation of a level; that of Gaussian noise is 0.12
DWELL = 1.5  # readings to a visit, in the mean, of a level with noise
DRIFT = 0.01  # of the way that a level follows a reading
USUAL, LONG = 1.0, 0.5  # a reading of a known level; one where the visit has been ten times as long as the others
NEW = -1.0  # and lower: levels are new, and have stayed for `STAYS` readings; between that and 0, one has just come
STAYS, REST = 10, 500  # readings; those for which no further level is said to be new
CALM = 0.25  # of a reading at a new level that one at a known level makes up for


class Levels:
    """What is counted of one series; a level that stays has come once.

    >>> levels, y = Levels(Levels.none()), np.tile(np.repeat([0.0, 5.0], 9), 4)
    >>> y = y + 0.02 * np.random.default_rng(0).normal(size=72)
    >>> told = [levels.look(value) for value in (*y.tolist(), 2.5)]
    >>> told[71], -1.0 < told[72] < 0.0
    (1.0, True)
    """

    def __init__(self, state: Mapping[str, np.ndarray], cycles: Sequence[int] = ()) -> None:
        *rest, at, self.count, self.since = state["leveled"].tolist()
        self.readings, self.total, self.novel, self.last, self.spell, self.strange, self.chance, self.rest = rest
        self.clock = Schedule(state, cycles) if cycles else None
        self.steps = [step for step in state["stepped"].tolist() if step == step]
        self.ranked = sorted(self.steps)
        # Of each level: where it is, readings of late, visits, readings, how far they are off, since when.
        self.table = [level for level in state["levels"].T.tolist() if level[0] == level[0]]
        self.now = self.table[int(at)] if at >= 0.0 else None

    @staticmethod
    def none(cycles: Sequence[int] = ()) -> dict[str, np.ndarray]:
        """Nothing counted."""
        rest = np.array([0.0, 0.0, 0.0, np.nan, 0.0, 0.0, 1.0, 0.0, -1.0, 0.0, 0.0])
        clock = Schedule.none(cycles) if cycles else {}
        return {"levels": np.full((6, ROOM), np.nan), "stepped": np.full(STEPS, np.nan), "leveled": rest, **clock}

    def arrays(self) -> dict[str, np.ndarray]:
        """All of it, for a checkpoint."""
        state = self.none()
        for at, level in enumerate(self.table):
            state["levels"][:, at] = level
        state["stepped"][: len(self.steps)] = self.steps
        at = next((i for i, level in enumerate(self.table) if level is self.now), -1)
        rest = (self.readings, self.total, self.novel, self.last, self.spell, self.strange, self.chance, self.rest)
        clock = self.clock.arrays() if self.clock else {}
        return {**state, "leveled": np.array([*rest, at, self.count, self.since]), **clock}

    def look(self, reading: float, cell: int = 0) -> float:
        """What a reading is by those before it; then it is counted.

        Args:
            reading: What was measured.
            cell: Step of the grid that it belongs to; it matters where there are cycles.

        Returns:
            `USUAL` or `LONG` at a known level; 0.0 where there are no levels, or it is near one, or switching is
            foreseen; at a level that is new minus the probability that one comes, and `NEW` less than that when it has
            stayed.
        """
        if not math.isfinite(reading):
            return 0.0
        wide = self._width()
        if self.clock:
            self.clock.look(cell, reading, wide)
        if self.last == self.last:
            self._step(abs(reading - self.last))
        self.last = reading
        if wide is None:
            return 0.0
        few = self._are_few(wide)
        self._forget()
        level, off = self._nearest(reading)
        if level is None or off > 2.0 * wide:
            level = [reading, 0.0, 0.0, 0.0, 0.0, self.count]
            self._add(level)
        elif off > wide:
            return 0.0
        known = level[2] >= TWICE and (not self.strange or level[5] < self.since)
        self._visit(level, reading, off if level[3] else 0.0, few and not known)
        if not few:
            return 0.0
        return self._known(level, wide) if known else self._new()

    def _known(self, level: list[float], wide: float) -> float:
        self.strange = max(self.strange - CALM, 0.0)
        if self.strange > 1.0 or (self.clock and self.clock.is_kept):
            return 0.0
        if not (self._has_noise(level, wide) and self._is_among_others(level)):
            return 0.0
        before = (level[3] - self.spell) / max(level[2] - 1.0, 1.0)
        return LONG if self.spell > 10.0 * max(before, 1.0) else USUAL

    def _new(self) -> float:
        self.strange += 1.0
        if self.strange >= STAYS:
            for level in self.table:  # told of, they are known
                level[2] = max(level[2], 2.0) if level is self.now or level[5] >= self.since else level[2]
            tells, self.strange, self.rest = not self.rest, 0.0, self.rest or REST
            return NEW - self.chance if tells else 0.0
        return -self.chance if self.spell <= STAYS else 0.0

    def _width(self) -> float | None:
        """How far a reading of a level may be off; None before enough steps are known."""
        if len(self.steps) < STEPS // 8:
            return None
        return WIDE * self.ranked[int(SHARE * len(self.ranked))]

    def _step(self, step: float) -> None:
        if len(self.steps) == STEPS:
            del self.ranked[bisect_left(self.ranked, self.steps.pop(0))]
        self.steps.append(step)
        insort(self.ranked, step)

    def _forget(self) -> None:
        self.readings, self.total, self.novel = KEPT * self.readings + 1.0, LATER * self.total + 1.0, LATER * self.novel
        self.rest, self.count = max(self.rest - 1.0, 0.0), self.count + 1.0
        for level in self.table:
            level[1] *= KEPT
            level[2] *= LATER
            level[3] *= LATER

    def _nearest(self, reading: float) -> tuple[list[float] | None, float]:
        nearest, least = None, math.inf
        for level in self.table:
            off = abs(level[0] - reading)
            if off < least:
                nearest, least = level, off
        return nearest, least

    def _add(self, level: list[float]) -> None:
        """Give a new level a place; where there is none, all others lose a reading."""
        if len(self.table) == ROOM:
            for other in self.table:
                other[1] -= 1.0
            self.table = [other for other in self.table if other[1] > 0.0]
        if len(self.table) < ROOM:
            self.table.append(level)

    def _visit(self, level: list[float], reading: float, off: float, new: bool) -> None:
        arrives = level is not self.now
        if arrives and new and not self.strange:
            self.since = self.count
            self.chance = min((self.novel + 0.5) / self.total, 0.999)
            self.novel += 1.0
        self.now, self.spell = level, 1.0 if arrives else self.spell + 1.0
        level[1:4] = level[1] + 1.0, level[2] + float(arrives), level[3] + 1.0
        rate = max(1.0 / level[3], DRIFT)
        level[0] += rate * (reading - level[0])
        level[4] += rate * (off - level[4])

    def _are_few(self, wide: float) -> bool:
        if sum(level[2] >= TWICE and self._has_noise(level, wide) for level in self.table) < 2:
            return False
        places = sorted(level[0] for level in self.table if level[1] >= RARE * self.readings)
        apart = all(high - low >= 2.0 * wide for low, high in pairwise(places))
        return apart and sum(level[1] for level in self.table) >= MOST * self.readings

    @staticmethod
    def _has_noise(level: list[float], wide: float) -> bool:
        """Whether its readings are off by what its steps are, and stay: not where a level wanders, nor in far tails."""
        stays = level[3] >= max(STAYS, DWELL * level[2])
        return wide == 0.0 or (stays and THIN * wide <= level[4] <= THICK * wide)

    def _is_among_others(self, level: list[float]) -> bool:
        others = [other[0] for other in self.table if other is not level and other[2] >= TWICE]
        low, high = min(others, default=level[0]), max(others, default=level[0])
        far = APART * (high - low) if len(others) > 1 else math.inf
        return low - far <= level[0] <= high + far
