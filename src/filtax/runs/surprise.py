r"""Which rows are not to be trusted, and when the world changed: from where each y fell in its forecast.

A row whose forecast gave it, and anything as extreme, a probability below $\alpha$ is distrusted. A change is what
keeps surprising: the score W of `filtax.estimators.alarms` grows with rows outside of two standard deviations, falls
with all others, and gives an alarm above $2\log(1/\alpha)$, from where it starts anew. If forecasts are calibrated and
errors independent, the mean time to a false alarm is at least $\alpha^{-2}$ rows.
"""

import math
from typing import Any

import numpy as np

from filtax.estimators.alarms import MOST, SURPRISE

__all__ = ["Surprise"]

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

    def numbers(self, slot: np.ndarray, pit: np.ndarray, changes: bool = True) -> list[tuple[int, str, Any]]:
        """What rows showed: (row, "distrusted", probability) and (row, "change", rows since its estimated start).

        Args:
            slot: Series of each row, (B,).
            pit: Where y fell in its forecast, in [0, 1], (B,); NaN where there was none.
            changes: Whether to look for changes; where labels come late, errors come in groups, and it makes no sense.
        """
        tail = 2.0 * np.minimum(pit, 1.0 - pit)
        return self._look(slot, tail, tail < SURPRISE, np.full(len(tail), SURPRISE), changes)

    def labels(self, chance: np.ndarray, most: np.ndarray, changes: bool = True) -> list[tuple[int, str, Any]]:
        """The same for labels: the probability of the one that came, and of the most probable one.

        >>> Surprise(0.001).labels(np.array([0.9]), np.array([0.9]))
        []
        """
        return self._look(np.zeros(len(chance), np.int64), chance, chance < most, 1.0 - most, changes)

    def _look(
        self, slot: np.ndarray, tail: np.ndarray, event: np.ndarray, chance: np.ndarray, changes: bool
    ) -> list[tuple[int, str, Any]]:
        chance = np.clip(chance, 1e-12, 1.0 - 1e-12)
        after = np.minimum(MOST * chance, 0.5 * (1.0 + chance))
        gain = np.where(event, np.log(after / chance), np.log1p(-after) - np.log1p(-chance))
        limit, scores = 2.0 * math.log(1.0 / self.rate), self.scores.tolist()
        found: list[tuple[int, str, Any]] = []
        for row, (series, value, more) in enumerate(zip(slot.tolist(), tail.tolist(), gain.tolist(), strict=True)):
            if value != value:
                continue
            score, spell, count = scores[series]
            if count >= WARM:
                if value < self.rate:
                    found.append((row, "distrusted", value))
                score = max(0.0, score + more)
                spell = spell + 1.0 if score > 0.0 else 0.0
                if changes and score > limit:
                    found.append((row, "change", int(spell) - 1))
                    score, spell = 0.0, 0.0
            scores[series] = [score, spell, count + 1.0]
        self.scores = np.array(scores)
        return found
