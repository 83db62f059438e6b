r"""Which rows are not to be trusted, and when the world changed: from where each y fell in its forecast.

A row whose forecast gave it, and anything as extreme, a probability below $\alpha$ is distrusted; of the first rows
only one that lies so far off that it does not matter how little is known yet. A change is what
keeps surprising: the score W of `filtax.estimators.alarms` grows with rows outside of two standard deviations, falls
with all others, and gives an alarm above $2\log(1/\alpha)$. The next one waits until W has been back at 0: a method
that goes on being surprised tells of one change. If forecasts are calibrated and errors independent, the mean time to
a false alarm is at least $\alpha^{-2}$ rows.
"""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from filtax.estimators.alarms import MOST, SURPRISE

__all__ = ["Once", "Surprise", "changes"]

TOLD = -1.0  # instead of a length: an alarm was given, and the next one waits until all is calm again
WARM = 50  # rows of a series before it can give an alarm


class Surprise:
    """The scores of S series.

    >>> watch = Surprise(0.001)
    >>> quiet, wild = np.full(60, 0.4), np.full(9, 0.999)
    >>> watch.numbers(np.zeros(60, int), quiet), watch.numbers(np.zeros(9, int), wild)
    ([], [(5, 'change', 5)])
    """

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self.scores = np.zeros((1, 3))  # W, rows since it left 0, rows in all

    def make_room(self, series: int) -> None:
        """Let more series come."""
        more = series - len(self.scores)
        if more > 0:
            self.scores = np.concatenate([self.scores, np.zeros((more, 3))])

    def numbers(
        self,
        slot: np.ndarray,
        pit: np.ndarray,
        changes: bool = True,
        alarms: np.ndarray | None = None,
        early: np.ndarray | None = None,
        again: np.ndarray | None = None,
        usual: np.ndarray | None = None,
    ) -> list[tuple[int, str, Any]]:
        """What rows showed: (row, "distrusted", probability) and (row, "change", rows since its estimated start).

        Args:
            slot: Series of each row, (B,).
            pit: Where y fell in its forecast, in [0, 1], (B,); NaN where there was none.
            changes: Whether to look for changes; where labels come late, errors come in groups, and it makes no sense.
            alarms: Rows since a change that was found otherwise, 0 where none was, (B,); it is told of too.
            early: Probability of rows that are not trusted even before their series can give an alarm, (B,); NaN of all
                others.
            again: Rows that say nothing new of a change, as the row before was as absurd, (B,).
            usual: Rows that are trusted, however little their forecast gave them, (B,).
        """
        tail = 2.0 * np.minimum(pit, 1.0 - pit)
        return self._look(
            slot, tail, tail < SURPRISE, np.full(len(tail), SURPRISE), changes, alarms, early, again, usual
        )

    def labels(
        self, chance: np.ndarray, most: np.ndarray, changes: bool = True, alarms: np.ndarray | None = None
    ) -> list[tuple[int, str, Any]]:
        """The same for labels: the probability of the one that came, and of the most probable one.

        >>> Surprise(0.001).labels(np.array([0.9]), np.array([0.9]))
        []
        """
        return self._look(np.zeros(len(chance), np.int64), chance, chance < most, 1.0 - most, changes, alarms)

    def _look(
        self,
        slot: np.ndarray,
        tail: np.ndarray,
        event: np.ndarray,
        chance: np.ndarray,
        changes: bool,
        alarms: np.ndarray | None,
        early: np.ndarray | None = None,
        again: np.ndarray | None = None,
        usual: np.ndarray | None = None,
    ) -> list[tuple[int, str, Any]]:
        chance = np.clip(chance, 1e-12, 1.0 - 1e-12)
        after = np.minimum(MOST * chance, 0.5 * (1.0 + chance))
        gain = np.where(event, np.log(after / chance), np.log1p(-after) - np.log1p(-chance))
        gain = gain if again is None else np.where(again, 0.0, gain)
        limit, scores = 2.0 * math.log(1.0 / self.rate), self.scores.tolist()
        found: list[tuple[int, str, Any]] = []
        known = {} if alarms is None else {int(row): int(alarms[row]) for row in np.flatnonzero(alarms)}
        first = np.full(len(tail), np.nan) if early is None else early
        odd = {int(row): float(first[row]) for row in np.flatnonzero(~np.isnan(first))}
        trusted = set() if usual is None else set(np.flatnonzero(usual).tolist())
        for row, (series, value, more) in enumerate(zip(slot.tolist(), tail.tolist(), gain.tolist(), strict=True)):
            score, spell, count = scores[series]
            if row in odd and count < WARM:
                found.append((row, "distrusted", odd[row] if value != value else min(odd[row], value)))
            if value != value:
                continue
            if count >= WARM:
                if value < self.rate and row not in trusted:
                    found.append((row, "distrusted", value))
                score = max(0.0, score + more)
                if row in known:
                    found.append((row, "change", known[row]))
                    score, spell = min(score, limit), TOLD
                elif changes and score > limit and spell != TOLD:
                    found.append((row, "change", int(spell)))
                    score, spell = limit, TOLD
                else:
                    score = min(score, limit) if spell == TOLD else score
                    spell = 0.0 if score == 0.0 else spell if spell == TOLD else spell + 1.0
            scores[series] = [score, spell, count + 1.0]
        self.scores = np.array(scores)
        return found


class Once:
    """Let each change of S series be told of once, whoever finds it: by when it is said to have begun.

    >>> once = Once()
    >>> once.tell(np.zeros(9, int), [(5, "change", 5), (7, "change", 6), (8, "change", 1)])
    [(5, 'change', 5), (8, 'change', 1)]
    """

    def __init__(self) -> None:
        self.rows, self.last = np.zeros(1), np.full(1, -1.0)  # rows of each series, and that of its last alarm

    @property
    def arrays(self) -> list[np.ndarray]:
        """All of it, for a checkpoint."""
        return [self.rows, self.last]

    def restore(self, arrays: list[np.ndarray]) -> None:
        """Go on from what `arrays` told."""
        self.rows, self.last = arrays

    def make_room(self, series: int) -> None:
        """Let more series come."""
        more = max(0, series - len(self.rows))
        self.rows = np.pad(self.rows, (0, more))
        self.last = np.pad(self.last, (0, more), constant_values=-1.0)

    def tell(self, slot: np.ndarray, found: list[tuple[int, str, Any]]) -> list[tuple[int, str, Any]]:
        """The events of some rows, in their order, without what was told of before."""
        kept, own = [], {series: np.flatnonzero(slot == series) for series in {int(slot[e[0]]) for e in found}}
        for event in sorted(found, key=lambda event: event[0]):
            row, kind, value = event
            if kind == "change":
                series = int(slot[row])
                at = self.rows[series] + np.searchsorted(own[series], row)
                if at - value <= self.last[series]:
                    continue
                self.last[series] = at
            kept.append(event)
        self.rows += np.bincount(slot, minlength=len(self.rows))
        return kept


def changes(found: Iterable[tuple[int, str, Any]]) -> list[tuple[int, Any]]:
    """Rows at which a change was told of, and from how many rows before.

    >>> changes([(3, "distrusted", 1e-4), (5, "change", 5)])
    [(5, 5)]
    """
    return [(row, value) for row, kind, value in found if kind == "change"]
