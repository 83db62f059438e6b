"""What is known of one stream of readings, and what a further one does to it.

The first readings give the unit. From then on the filter says how odd a reading is before it is learned: an odd one is
an outlier, and not learned from; too many in a row, or of late, were none, and the stream goes back to where it was
before them, and believes them.

A reading runs as a course: it stops where the filter is asked, and goes on with the answer. So one stream asks for
itself, thousands ask together, and what they do with the answers is written once.
"""

import copy
import math
from typing import Any

import numpy as np

from filtax.estimators.alarms import acted_on
from filtax.estimators.gross import gross
from filtax.estimators.reading import Answer, Course, Question, reader
from filtax.estimators.stretch import deviation
from filtax.segmentation import Settings

__all__ = ["Vigil"]

SPARED = 2  # odd readings in a row that may be errors; one more, and all of them are believed
FAR = 1e100  # units that a reading is taken to be away at most: its square is a number too
OFTEN, PACE = 0.3, 0.1  # share of odd readings among the last 1/PACE or so from which on they are no errors


class Vigil:
    """One stream of O readings that change together, as far as it is known.

    Args:
        settings: What a segment looks like.
        outputs: Numbers of a reading, O.
        threshold: Probability of a new regime at which to give an alarm.
        least: Readings that a new regime must hold before it is told of.
        warmup: Readings that give the unit.
        false_alarms: Probability that a good reading is called an outlier.

    Attributes:
        t: Readings so far.
        changes: Where each segment but the first began.
        last: What the last reading showed; `new` is whether its odds are those of a change that it told of.
        early: Readings as they came, as long as there is no unit.
        unit: Middle and spread of the first readings, each (O,); None before they are there.
        sums: Number, sum and sum of squares of the readings that were learned, in units, each (O,).
        state: Of the filter, (N,).
        doubted: Odd readings in a row, in units.
        before: State and sums before the first of them.
        calm: Readings to come that are believed whatever they are.
        share: How many were odd of late.

    >>> from filtax.estimators.reading import together
    >>> vigil = Vigil(Settings(keep=5), 1, threshold=0.99, least=5, warmup=10, false_alarms=0.001)
    >>> for t in range(40):
    ...     together([vigil.read(np.array([math.sin(37.0 * t) + (9.0 if t >= 20 else 0.0)]))])
    >>> vigil.changes
    [20]
    """

    def __init__(
        self, settings: Settings, outputs: int, *, threshold: float, least: int, warmup: int, false_alarms: float
    ):
        self.settings, self.outputs = settings, outputs
        self.threshold, self.least, self.warmup, self.false_alarms = threshold, least, warmup, false_alarms
        self.t, self.changes = 0, list[int]()
        self.last: dict[str, Any] = {"alarm": None, "trust": 1.0, "odds": -math.inf, "start": 0, "new": False}
        self.early: list[np.ndarray] = []
        self.unit: tuple[np.ndarray, np.ndarray] | None = None
        self.sums = [np.zeros(outputs) for _ in range(3)]
        self.state = reader(settings, outputs).fresh
        self.doubted: list[np.ndarray] = []
        self.before = (self.state, self.sums)
        self.calm, self.share = 0, 0.0

    def __deepcopy__(self, memo: dict) -> "Vigil":
        """A stream that goes its own way: arrays are made anew and never changed, so both may hold the same."""
        twin = copy.copy(self)
        twin.changes, twin.early, twin.doubted = list(self.changes), list(self.early), list(self.doubted)
        twin.last = dict(self.last)
        return twin

    def read(self, row: np.ndarray) -> Course:
        """One reading (O,): kept until there are enough to know their unit, then watched."""
        infinite, row = bool(np.isinf(row).any()), np.where(np.isfinite(row), row, np.nan)
        self.t += 1
        self.last = {**self.last, "alarm": None, "trust": 1.0}
        if self.unit is None:
            self.early.append(row)
            if self._gross(np.stack(self.early))[-1]:
                self.last |= {"alarm": "outlier", "trust": 0.0}
            if len(self.early) == self.warmup:
                rows, self.early = np.stack(self.early), []
                yield from self._set_out(rows)
        else:
            yield from self._judge(self._in_units(row))
        if np.isnan(row).all() and self.last["alarm"] is None:
            self.last |= {"alarm": "outlier" if infinite else "missing", "trust": 0.0}

    def _set_out(self, rows: np.ndarray) -> Course:
        """The first readings give the unit, and what a segment born among them expects; not gross errors among them."""
        wrong, given = self._gross(rows), rows
        unsettled = int(np.argmin(wrong[::-1]))  # odd readings at the end, of which the next ones tell what they are
        rows = np.where(wrong[:, None], np.nan, rows)
        came = np.isfinite(rows)
        number = np.maximum(came.sum(axis=0), 1)
        filled = np.where(came, rows, 0.0)
        middle = filled.sum(axis=0) / number
        spread = np.sqrt(np.where(came, (filled - middle) ** 2, 0.0).sum(axis=0) / number)
        self.unit = (middle, np.where(spread > 0.0, spread, 1.0))
        z = (rows - middle) / self.unit[1]
        self._count(z)
        for one in z[: len(z) - unsettled]:
            self._take((yield self._about(one)))
        for one in given[len(z) - unsettled :]:
            yield from self._judge(self._in_units(one))

    def _judge(self, z: np.ndarray) -> Course:
        """Learn a reading, unless it is odd; too many odd ones in a row were none."""
        answer = yield self._about(z)
        odd = self._beyond(z, answer.deviation, acted_on(self.false_alarms))
        self.share += PACE * (float(odd) - self.share)
        believed, self.calm = bool(self.calm) or self.share > OFTEN, max(self.calm - 1, 0)
        if not odd or believed:
            self.doubted = [] if np.isfinite(z).any() else self.doubted
            self._learn(z, answer)
            if not believed and self._beyond(z, answer.deviation, self.false_alarms):
                self.last["alarm"] = self.last["alarm"] or "outlier"
            return
        if not self.doubted:
            self.before = (self.state, self.sums)
        self.doubted.append(z)
        if len(self.doubted) <= SPARED:
            self._take((yield self._about(np.full_like(z, np.nan))))
            self.last |= {"alarm": self.last["alarm"] or "outlier", "trust": 0.0}
            return
        (self.state, self.sums), rows, self.doubted = self.before, self.doubted, []
        self.calm = max(self.least, 1)
        for one in rows:
            self._learn(one, (yield self._about(one)))

    def _about(self, z: np.ndarray) -> Question:
        """What a reading would make of the state, what it would tell, and how odd it is; nothing changes."""
        number = np.maximum(self.sums[0], 1.0)
        centre = self.sums[1] / number
        variance = max(float((self.sums[2] / number - centre**2).mean()), 1e-6)
        sure = not 0.0 < self.threshold < 1.0
        odds = math.inf if sure else math.log(self.threshold) - math.log1p(-self.threshold)
        since = self.changes[-1] if self.changes else 0
        row = np.array([*centre, *z, variance, odds, since, self.least])
        return Question(reader(self.settings, self.outputs), self.state, row)

    def _learn(self, z: np.ndarray, answer: Answer) -> None:
        self._take(answer)
        self._count(z)

    def _take(self, answer: Answer) -> None:
        """Let what would come of a reading come."""
        self.state, start = answer.state, int(answer.start)
        self.last = {**self.last, "odds": answer.log_odds, "start": start, "new": bool(answer.alarm)}
        if answer.alarm:
            self.changes.append(start)
            self.last["alarm"] = "change"

    def _count(self, z: np.ndarray) -> None:
        came = np.isfinite(z)
        filled = np.where(came, z, 0.0)
        more = (one.sum(axis=0) if z.ndim > 1 else one for one in (came, filled, filled**2))
        self.sums = [total + one for total, one in zip(self.sums, more, strict=True)]

    def _beyond(self, z: np.ndarray, deviations: float, rate: float) -> bool:
        """Whether the oddest of the readings that came is odder than that of good ones is at a rate."""
        each = 1.0 - (1.0 - rate) ** (1.0 / max(np.isfinite(z).sum(), 1))
        return 0.0 < self.false_alarms < 1.0 and deviations > deviation(1.0 - each)

    def _gross(self, rows: np.ndarray) -> np.ndarray:
        doubts = 0.0 < self.false_alarms < 1.0
        return gross(rows, SPARED, OFTEN) if doubts else np.zeros(len(rows), bool)

    def _in_units(self, row: np.ndarray) -> np.ndarray:
        assert self.unit is not None
        with np.errstate(over="ignore"):
            return np.clip((row - self.unit[0]) / self.unit[1], -FAR, FAR)
