"""Hours of the day at which forecasts are off by more than they think: the sun rises on a clear day, or on a dull one.

A forecast has one noise for all hours. Where nights are still and days are not, its interval is too wide by night and
too narrow by day, and each morning surprises. So errors, in halves of their intervals, are averaged by the hour over
the last two weeks. At hours at which they are larger than an interval that holds allows, a row is judged by an interval
that is wider by as much, and a change that the race of beliefs shows (`filtax.runs.racing`) must have a row that is odd
by this.

Axes: S series, B rows, P hours.
"""

import numpy as np

from filtax.estimators.stretch import deviation

__all__ = ["Hours"]

HOURS = 24  # parts of the shorter cycle at most
CYCLES = 14.0  # that are remembered
AT_FIRST = 9.0  # readings that an expected error counts for, before any
MOST = 3.0  # halves of an interval that an error counts for at most
LEAST = 1.25  # times the expected error from which on an hour is one of these
BEGIN = 3  # hours with which a change begins
NEAR = 2  # rows before its start in which a change may have an odd one


class Hours:
    """How far off S series are, hour by hour; with two cycles only, as a day of a week comes too seldom.

    >>> hours, cell = Hours(0.9, (24, 168)), np.arange(24 * 9)
    >>> factor = hours.look(np.zeros(len(cell), int), cell, np.where(cell % 24 < 12, 0.1, 1.2))
    >>> factor[-24:].round(1).tolist()[::6]
    [1.0, 1.0, 1.3, 1.7]
    """

    def __init__(self, level: float, cycles: tuple[int, ...]) -> None:
        self.cycle = cycles[0] if len(cycles) > 1 else 0
        self.parts, self.usual = min(HOURS, self.cycle), np.sqrt(2.0 / np.pi) / deviation(level)  # of a normal law
        self.means, self.counts = np.full((1, self.parts), self.usual), np.zeros((1, self.parts))
        self.since = np.full(1, np.inf)  # rows since one was odd

    @property
    def arrays(self) -> list[np.ndarray]:
        """All of it, for a checkpoint."""
        return [self.means, self.counts, self.since]

    def restore(self, arrays: list[np.ndarray]) -> None:
        """Go on from what `arrays` told."""
        self.means, self.counts, self.since = arrays

    def make_room(self, series: int) -> None:
        """Let more series come."""
        more = max(0, series - len(self.since))
        self.means = np.pad(self.means, ((0, more), (0, 0)), constant_values=self.usual)
        self.counts = np.pad(self.counts, ((0, more), (0, 0)))
        self.since = np.pad(self.since, (0, more), constant_values=np.inf)

    def look(self, slot: np.ndarray, cell: np.ndarray, off: np.ndarray) -> np.ndarray:
        """By what to widen the interval of each row, (B,), at least 1; what it was off by counts for the rows behind.

        Args:
            slot: Series of each row, (B,).
            cell: Step of the grid that each row belongs to, (B,).
            off: Its error, in halves of its interval, (B,); NaN where there was none.
        """
        factor = np.ones(len(off))
        if not self.cycle:
            return factor
        hour = cell % self.cycle * self.parts // self.cycle
        means, counts, last = self.means.tolist(), self.counts.tolist(), CYCLES * self.cycle / self.parts
        sizes = np.minimum(np.abs(off), MOST).tolist()
        for row, (series, at, size) in enumerate(zip(slot.tolist(), hour.tolist(), sizes, strict=True)):
            factor[row] = self._factor(means[series], at)
            if size == size:
                counts[series][at] += 1.0
                means[series][at] += (size - means[series][at]) / min(AT_FIRST + counts[series][at], last)
        self.means, self.counts = np.array(means).reshape(self.means.shape), np.array(counts).reshape(self.counts.shape)
        return factor

    def _factor(self, means: list[float], at: int) -> float:
        """By what an hour is off more than it should, as a mean with its neighbours; 1 where that may be chance."""
        found = (means[at - 1] + means[at] + means[(at + 1) % self.parts]) / (3.0 * self.usual)
        return float(found) if found > LEAST else 1.0

    def kept(self, slot: np.ndarray, cell: np.ndarray, odd: np.ndarray, alarms: np.ndarray) -> np.ndarray:
        """Alarms, (B,), without those that began at such an hour and without an odd row; 0 where there is none.

        Args:
            slot: Series of each row, (B,).
            cell: Step of the grid that each row belongs to, (B,).
            odd: Rows that are odd by their widened intervals, (B,).
            alarms: Rows since a change, 0 where none was, (B,).
        """
        if not self.cycle:
            return alarms
        kept, since = alarms.copy(), self.since.tolist()
        for row, series in enumerate(slot.tolist()):
            since[series] = 0.0 if odd[row] else since[series] + 1.0
            if alarms[row] and since[series] > alarms[row] + NEAR:
                hour = int(cell[row] - alarms[row]) % self.cycle * self.parts // self.cycle
                own = [self._factor(self.means[series].tolist(), (hour + k) % self.parts) for k in range(BEGIN)]
                kept[row] = alarms[row] if max(own) == 1.0 else 0
        self.since = np.array(since)
        return kept
