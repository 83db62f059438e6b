"""Rows that wait for their labels: a row is forecast when it comes, and learned when its label has come.

A label is late by a fixed number of rows of its series. So a series holds that many rows, oldest first; a new row takes
the place of one whose label has now come. Rows wait as they were read, and are put into units when they are learned.

Axes: B rows, S series, D rows that wait, W numbers of a row.
"""

from typing import NamedTuple

import numpy as np

__all__ = ["Arrived", "Late"]


class Arrived(NamedTuple):
    """What may be learned once each row of a block is forecast.

    Attributes:
        rows: (B, W).
        labels: (B,).
        come: Whether there is such a row, (B,); at the start there is none.
        ahead: Rows between the last label that was known and the forecast row, (B,): 1 where labels are not late.
    """

    rows: np.ndarray
    labels: np.ndarray
    come: np.ndarray
    ahead: np.ndarray


class Late:
    """The rows of S series whose labels have not come.

    >>> late = Late(delay=2, width=1)
    >>> rows = np.arange(3.0)[:, None]
    >>> arrived = late.exchange(np.zeros(3, int), rows, np.array([5.0, 6.0, 7.0]))
    >>> arrived.come.tolist(), arrived.ahead.tolist(), arrived.labels[2].item()
    ([False, False, True], [1.0, 2.0, 3.0], 5.0)
    """

    def __init__(self, delay: int, width: int) -> None:
        self.delay = delay
        self.rows, self.labels = np.zeros((1, delay, width)), np.full((1, delay), np.nan)
        self.waiting = np.zeros(1, np.int64)

    @property
    def arrays(self) -> list[np.ndarray]:
        """All of it, for a checkpoint."""
        return [self.rows, self.labels, self.waiting]

    def restore(self, arrays: list[np.ndarray]) -> None:
        """Go on from what `arrays` told."""
        self.rows, self.labels, self.waiting = arrays

    def make_room(self, series: int) -> None:
        """Let more series come."""
        width = ((0, max(0, series - len(self.rows))), (0, 0))
        self.rows = np.pad(self.rows, (*width, (0, 0)))
        self.labels = np.pad(self.labels, width, constant_values=np.nan)
        self.waiting = np.pad(self.waiting, width[:1])

    def come(self, slot: np.ndarray) -> np.ndarray:
        """Whether an older label comes with each of these rows, (B,)."""
        return self._before(slot) >= self.delay

    def exchange(self, slot: np.ndarray, rows: np.ndarray, labels: np.ndarray) -> Arrived:
        """Let rows wait, and take those whose labels come meanwhile."""
        if not self.delay:
            return Arrived(rows, labels, np.ones(len(slot), bool), np.ones(len(slot)))
        before = self._before(slot)
        old, told = np.empty_like(rows), np.empty_like(labels)
        for series in np.unique(slot):
            own = np.flatnonzero(slot == series)
            queue = np.concatenate([self.rows[series], rows[own]])
            known = np.concatenate([self.labels[series], labels[own]])
            old[own], told[own] = queue[: len(own)], known[: len(own)]
            self.rows[series], self.labels[series] = queue[len(own) :], known[len(own) :]
            self.waiting[series] = min(self.delay, self.waiting[series] + len(own))
        return Arrived(old, told, before >= self.delay, np.minimum(before, self.delay) + 1.0)

    def _before(self, slot: np.ndarray) -> np.ndarray:
        """Rows that wait when each of these comes, were none of them taken; (B,)."""
        before = np.empty(len(slot), np.int64)
        for series in np.unique(slot):
            own = np.flatnonzero(slot == series)
            before[own] = self.waiting[series] + np.arange(len(own))
        return before
