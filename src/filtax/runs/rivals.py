"""The baselines that a run is held against, as rows come: they remember a few seasons, not the whole stream.

The rules are those of `filtax.evaluate`; each sees the end of what came before and the new rows. A gap longer than what
is remembered counts as one without an end.
"""

from collections.abc import Sequence

import numpy as np

from filtax.evaluate import last_value, naive_plus_change, running_mean, seasonal_naive

__all__ = ["LabelRivals", "Rivals"]

SEASONS = 3  # longest cycles that are remembered
FARTHEST = 2.0**960  # 1e289: a larger number counts as this one in a mean, so that no sum overflows


class Rivals:
    """Last value, seasonal and changed-by-season forecasts of numbers; the running mean where there is no season.

    >>> rivals = Rivals(cycles=(2,), late=0)
    >>> _ = rivals.forecast(np.zeros(3, int), np.array([1.0, 9.0, 2.0]))
    >>> rivals.names[1], rivals.forecast(np.zeros(1, int), np.array([8.0]))[0].tolist()
    ('seasonal-naive(2)', [2.0, 9.0, 10.0])
    """

    def __init__(self, cycles: Sequence[int], late: int) -> None:
        self.rules = [last_value()]
        for cycle in cycles:
            self.rules += [seasonal_naive(cycle), naive_plus_change(cycle)]
        self.plain = not cycles
        self.late = late
        self.memory = SEASONS * max(cycles, default=1) + late + 2
        self.past = np.full((1, self.memory), np.nan)
        self.total = np.zeros((1, 2))  # sum and count

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each column of forecasts."""
        return (*(rule.name for rule in self.rules), *([running_mean().name] if self.plain else []))

    def make_room(self, series: int) -> None:
        """Let more series come."""
        more = series - len(self.past)
        if more > 0:
            self.past = np.concatenate([self.past, np.full((more, self.memory), np.nan)])
            self.total = np.concatenate([self.total, np.zeros((more, 2))])

    def forecast(self, slot: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Forecast every row from the rows of its series before it, (B, number of names), and remember them."""
        said = np.full((len(y), len(self.names)), np.nan)
        for series in np.unique(slot):
            rows = np.flatnonzero(slot == series)
            whole = np.concatenate([self.past[series], y[rows]])
            known = np.where(np.isfinite(whole), whole, np.nan)
            with np.errstate(over="ignore", invalid="ignore"):  # a forecast may be too large for a number
                for i, baseline in enumerate(self.rules):  # what they say, without its spread
                    said[rows, i] = baseline.rule(known, self.late)[self.memory :]
            if self.plain:
                came = whole[self.memory - self.late :][: len(rows)]
                seen = np.isfinite(came)
                both = np.stack(
                    [np.where(seen, np.clip(came, -FARTHEST, FARTHEST), 0.0), seen.astype(np.float64)], axis=1
                )
                before = np.cumsum(np.concatenate([self.total[series][None], both]), axis=0)  # one after the other
                said[rows, -1] = np.where(before[:-1, 1] > 0, before[:-1, 0] / np.maximum(before[:-1, 1], 1), np.nan)
                self.total[series] = before[-1]
            self.past[series] = whole[-self.memory :]
        return said


class LabelRivals:
    """The last label and the most frequent one, as numbers of labels; NaN before there is one.

    >>> LabelRivals(3).forecast(np.array([1.0, 2.0, 2.0])).tolist()
    [[nan, nan], [1.0, 1.0], [2.0, 1.0]]
    """

    names = ("last-class", "majority-class")

    def __init__(self, labels: int, late: int = 0) -> None:
        self.last, self.counts, self.past = np.array([np.nan]), np.zeros(labels), np.full(late, np.nan)

    def come(self, y: np.ndarray) -> np.ndarray:
        """How many labels had come before each of some rows, (B,)."""
        come = np.isfinite(np.concatenate([self.past, y])[: len(y)])
        return self.counts.sum() + np.cumsum(come) - come

    def forecast(self, y: np.ndarray) -> np.ndarray:
        """Forecast every row from those before it, (B, 2), and remember them; of equals the first is the majority."""
        whole = np.concatenate([self.past, y])
        y, self.past = whole[: len(y)], whole[len(y) :]
        seen = np.isfinite(y)
        own = (np.where(seen, y, -1.0)[:, None] == np.arange(self.counts.size)).astype(np.float64)
        counts = self.counts + np.concatenate([np.zeros((1, self.counts.size)), np.cumsum(own, axis=0)])
        latest = np.maximum.accumulate(np.where(seen, np.arange(1, len(y) + 1), 0))
        values = np.concatenate([self.last, y])
        last = values[np.concatenate([[0], latest])]
        most = np.where(counts.sum(axis=1) > 0, np.argmax(counts, axis=1), np.nan)
        self.last, self.counts = last[-1:], counts[-1]
        return np.stack([last[:-1], most[:-1]], axis=1)
