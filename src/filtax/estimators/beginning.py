"""The first data of one stream, which are looked at once more: gross errors among them are known only in hindsight.

The first y give level and unit before there is anything to judge them by. From the sixth on there is: what lies far
from the median of all, stands alone, and is not explained by features as odd, was an error. The stream is then learned
once more, with an outlier in its place, so that neither units, belief nor the stretch of intervals keep it.

Axes: T data so far, of which `ROWS` are kept at most; M slots of features, W numbers of a row as the kernels take it.
"""

import math
from statistics import median
from typing import Any

import numpy as np

from filtax.estimators import alarms
from filtax.estimators.engine import EXTRA
from filtax.estimators.gross import GATE, OFTEN, ROWS, SPARED, gross, standing_alone
from filtax.estimators.memory import TOLD

__all__ = ["Beginning", "errors"]

FIRST = 5  # readings before any is judged: of 5, two lie close together by chance too often
COMMON = 0.5  # share of good data with features unlike all others from which on that explains nothing


class Beginning:
    """The first rows of a stream, when each was told of as an outlier, and which of them teach nothing.

    Args:
        rows: Those of a stream that goes on, as `rows` had them, (T, W + 2): behind the numbers of a row the number of
            the row with which it was told of, NaN if it was not, and whether it was learned as an outlier.

    >>> first = Beginning()
    >>> rows = np.pad([[1.0], [900.0], [2.0], [1.5], [0.5], [1.0]], ((0, 0), (0, EXTRA)))
    >>> first.take(rows[:5], np.zeros(5)), first.take(rows[5:], np.zeros(1))
    (False, True)
    >>> first.learned()[:, 0].tolist(), first.back
    ([1.0, inf, 2.0, 1.5, 0.5, 1.0], (4,))
    """

    def __init__(self, rows: np.ndarray | None = None):
        self.rows = np.zeros((0, 3 + EXTRA)) if rows is None else rows

    @property
    def back(self) -> tuple[int, ...]:
        """How many data before the last the errors lie that it showed."""
        last = len(self.rows) - 1
        return tuple((last - np.flatnonzero(self.rows[:last, -2] == last)).tolist()) if last > 0 else ()

    @property
    def odd(self) -> bool:
        """Whether the last datum was told of as an outlier itself."""
        return bool(len(self.rows)) and not math.isnan(self.rows[-1, -2])

    def at_once(self, given: np.ndarray) -> int:
        """How many of the next rows, (B, W), to learn before the next look back: one where they may show an error."""
        start = len(self.rows)
        if start and given.shape[1] + 2 != self.rows.shape[1]:
            return 0  # slots were added, as they were for estimators of before
        count = min(ROWS - start, len(given))
        if count <= 1:
            return count
        y = [*self.rows[:, -3 - EXTRA].tolist(), *given[:count, -1 - EXTRA].tolist()]
        odd = self.rows[:, -1].any() or any(_any_far(y[:end]) for end in range(start + 1, len(y) + 1))
        return 1 if odd else count

    def take(self, given: np.ndarray, alarm: np.ndarray) -> bool:
        """Take rows in that were learned; whether all are to be learned anew, as `learned` has them.

        Args:
            given: Rows, (B, W): one, or several as many as `at_once` told.
            alarm: What was told of each, (B,).
        """
        start, last = len(self.rows), len(self.rows) + len(given) - 1
        told = np.where(alarm == alarms.OUTLIER, np.arange(start, last + 1.0), np.nan)
        rows = np.column_stack([given, told, np.zeros(len(given))])
        self.rows = np.concatenate([self.rows, rows]) if start else rows
        wrong = errors(self.rows[:, : -3 - EXTRA], self.rows[:, -3 - EXTRA])
        anew = bool(np.any(wrong != self.rows[:, -1]))
        self.rows[wrong & np.isnan(self.rows[:, -2]), -2] = last
        self.rows[:, -1] = wrong
        return anew

    def learned(self) -> np.ndarray:
        """The rows as a memory that knows nothing is to learn them, (T, W): errors are outliers, and teach nothing."""
        rows = self.rows[:, :-2].copy()
        rows[self.rows[:, -1] > 0.0, -1 - EXTRA] = np.inf
        return rows

    def alarmed(self, vector: Any) -> np.ndarray:
        """A memory behind the last of these rows, which says "outlier" where that row showed one."""
        vector, at = np.array(vector), TOLD.index("alarm") - len(TOLD)
        vector[at] = float(alarms.OUTLIER) if self.back and not vector[at] else vector[at]
        return vector


def errors(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Which of the first y are gross errors, (T,).

    Args:
        X: Features, (T, M), infinite for a category that is there and NaN where nothing is.
        y: As many numbers, NaN where missing, infinite for outliers that are known.

    >>> x, y = np.array([0.0, 0.1, 0.2, 0.1, 0.3, 0.0]), np.array([1.0, 900.0, 2.0, 1.0, 3.0, 2.0])
    >>> errors(x[:, None], y).nonzero()[0].tolist()
    [1]
    >>> x[1] = 90.0  # what a feature as odd explains is none
    >>> errors(x[:, None], y).any().item()
    False
    """
    if not _any_far(y.tolist()):
        return np.zeros(len(y), bool)
    y = np.where(np.isfinite(y), y, np.nan)
    with np.errstate(over="ignore"):
        odd = standing_alone(y, gross(y[:, None], SPARED, OFTEN, FIRST))
    return odd & ~_explained(X, odd) if odd.any() else odd


def _any_far(y: list[float]) -> bool:
    """Whether any y may be one, in a hundredth of the time: thousands of streams may begin at once."""
    known = [value for value in y if math.isfinite(value)]
    if len(known) <= FIRST:
        return False
    middle = median(known)
    off = [abs(value - middle) for value in known]
    return max(off) > GATE * median(off)


def _explained(X: np.ndarray, odd: np.ndarray) -> np.ndarray:
    """Rows with a feature unlike those of all good rows, (T,); none if good rows have such features too."""
    good = np.flatnonzero(~odd)
    if np.mean([_apart(X[at], X[good[good != at]]) for at in good]) >= COMMON:
        return np.zeros(len(X), bool)
    return np.array([bool(at) and _apart(x, X[good]) for at, x in zip(odd, X, strict=True)])


def _apart(x: np.ndarray, others: np.ndarray) -> bool:
    """Whether a row has a feature that no other has, or a number far from theirs."""
    for value, column in zip(x, others.T, strict=True):
        held = column[~np.isnan(column)]
        if not np.isnan(value) and not held.size:
            return True
        held = held[np.isfinite(held)]
        if np.isfinite(value) and held.size:
            middle = np.median(held)
            if abs(value - middle) > GATE * 1.4826 * np.median(np.abs(held - middle)):
                return True
    return False
