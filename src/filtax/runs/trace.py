"""The weights of a run as they went: a bounded number of looks at the belief, however long the run.

When there is no more room, every second look is dropped and from then on half as many are taken.

Axes: N looks, D weights.
"""

from collections.abc import Callable

import numpy as np

__all__ = ["Trace"]

ROOM, FIRST = 32, 128  # looks that are kept at most, and rows between two of them at first


class Trace:
    """Means of the weights of the first series or label, and after how many rows.

    >>> trace = Trace(1)
    >>> for row in range(1, 1001):
    ...     trace.look(row, lambda: np.array([0.5]))
    >>> len(trace.rows), trace.rows[-1].item()
    (7, 896.0)
    """

    def __init__(self, columns: int) -> None:
        self.table = np.full((ROOM, columns + 1), np.nan)  # rows, then weights
        self.used, self.gap = 0, FIRST

    @property
    def rows(self) -> np.ndarray:
        """Rows before each look, (N,)."""
        return self.table[: self.used, 0]

    @property
    def weights(self) -> np.ndarray:
        """Means, (N, D)."""
        return self.table[: self.used, 1:]

    @property
    def arrays(self) -> list[np.ndarray]:
        """All of it, for a checkpoint."""
        return [self.table, np.array([self.used, self.gap])]

    def restore(self, arrays: list[np.ndarray]) -> None:
        """Go on from what `arrays` told."""
        self.table = arrays[0]
        self.used, self.gap = arrays[1].tolist()

    def left(self, rows: int) -> int:
        """Rows until the next look is due, which is after a multiple of the gap."""
        return self.gap - rows % self.gap

    def look(self, rows: int, mean: Callable[[], np.ndarray]) -> None:
        """Remember what `mean()` says after so many rows, if it is time for it."""
        if rows % self.gap:
            return
        self.table[self.used] = [rows, *mean()]
        self.used += 1
        if self.used == ROOM:
            self.table[: ROOM // 2] = self.table[1::2].copy()
            self.used, self.gap = ROOM // 2, 2 * self.gap
