"""The averages of blocks, watched in one unit: as they are, or their logarithms (`filtax.runs.course`).

A regression on a line, the pattern of the longer cycle and the last averages learns them, and what it is wrong by says
whether a series still takes its course (`filtax.runs.lasting`).

Axes: S series, K blocks kept, D columns.
"""

import math

import numpy as np

from filtax.runs.lasting import LAGS, Elder, begun, evidence, faded, learned, newborn, pattern, width, within

__all__ = ["MATURE", "Watch"]

KEPT = 60  # blocks behind which a change may lie
FIRST = 14  # blocks that give the unit
MATURE = 28  # blocks that a belief has learned before a change of them can be told
LEAST = 3  # blocks that a change takes at least
MONTH = 28.0  # blocks over which the slope is counted


class Watch:
    """What the blocks of S series are expected to be.

    >>> watch, rng = Watch(14.0, 7), np.random.default_rng(0)
    >>> for number, value in enumerate(np.repeat([10.0, 20.0], [50, 5]) + rng.normal(size=55)):
    ...     watch.add(0, float(number), 24.0 * number, value)
    >>> watch.changed(0), watch.blocks[0, 0, watch.start(0)]
    (True, np.float64(50.0))
    """

    def __init__(self, limit: float, cycle: int) -> None:
        self.limit, self.waves = limit, pattern(np.arange(max(cycle, 1)), cycle)
        columns = 2 + width(cycle) + LAGS
        self.blocks = np.full((1, 5, KEPT), np.nan)  # number, first row, value, the one learned, its error; latest last
        self.unit = np.full((1, 3), np.nan)  # base, scale, number of the block at which the line begins
        self.known = np.zeros(1)  # blocks learned
        self.mean, self.precision = np.zeros((1, columns)), np.zeros((1, columns, columns))
        self.noise = np.zeros((1, 2))

    @property
    def arrays(self) -> list[np.ndarray]:
        """All of it, for a checkpoint."""
        return [self.blocks, self.unit, self.known, self.mean, self.precision, self.noise]

    def restore(self, arrays: list[np.ndarray]) -> None:
        """Go on from what `arrays` told."""
        self.blocks, self.unit, self.known, self.mean, self.precision, self.noise = arrays

    def make_room(self, series: int) -> None:
        """Let more series come."""
        more = max(0, series - len(self.known))
        if more:
            empty = [np.nan, np.nan, 0.0, 0.0, 0.0, 0.0]
            grown = [
                np.concatenate([each, np.full((more, *each.shape[1:]), value)])
                for each, value in zip(self.arrays, empty, strict=True)
            ]
            self.restore(grown)

    def add(self, series: int, number: float, row: float, value: float | None) -> None:
        """One more block: its number, its first row, its average; None where that has no logarithm, nor a series."""
        self.blocks[series, :, :-1] = self.blocks[series, :, 1:].copy()
        if value is None:
            self.blocks[series], self.unit[series], self.known[series] = np.nan, np.nan, 0.0
            return
        self.blocks[series, :, -1] = number, row, value, np.nan, np.nan
        if np.isnan(self.unit[series, 0]):
            self._first(series)
        else:
            self._learn(series, KEPT - 1)

    def first(self, series: int) -> int:
        """The place of the first block that was learned; negative where that is not kept any more."""
        return KEPT - int(self.known[series])

    def changed(self, series: int) -> bool | None:
        """Whether a change is certain enough; None where too little was learned to tell."""
        starts = np.arange(max(0, self.first(series) + MATURE), KEPT - LEAST + 1)
        if not len(starts):
            return None
        number, off = self.blocks[series, 0, starts[0] :], self.blocks[series, 4, starts[0] :]
        odds = evidence(number, off, starts - starts[0], self.waves[number.astype(int) % len(self.waves)])
        return bool(np.logaddexp.reduce(odds) > self.limit)

    def spread(self, series: int) -> float:
        """Standard deviation of the noise."""
        shape, rate = self.noise[series].tolist()
        return float(self.unit[series, 1]) * math.sqrt(rate / shape)

    def start(self, series: int) -> int:
        """The place of the block with which a change began that is certain."""
        first = max(0, self.first(series))
        starts = np.arange(max(0, self.first(series) + MATURE), KEPT - LEAST + 1)
        number, _, value, _, _ = self.blocks[series, :, first:]
        return first + begun(number, value, starts - first, self.waves[number.astype(int) % len(self.waves)])

    def renew(self, series: int, start: int) -> None:
        """Begin anew with the blocks since a change, in a unit of theirs; of what was before the noise is kept.

        A line that bent upwards is steep in the old unit, and a belief in that unit would not take it for possible.
        """
        self.blocks[series, :, :start] = np.nan
        self.unit[series, 0] = np.nan
        self.known[series] = 0.0
        self._first(series)

    def forget(self, series: int, began: float) -> None:
        """Begin anew with the blocks from a row on, and of what was before keep nothing."""
        self.blocks[series, :, ~(self.blocks[series, 1] >= began)] = np.nan
        self.unit[series], self.known[series] = np.nan, 0.0
        self._first(series)

    def _first(self, series: int) -> None:
        """With enough blocks the unit is known, and they are learned."""
        own = np.flatnonzero(np.isfinite(self.blocks[series, 0]))
        odd = _unsettled(self.blocks[series, 2, own]) if len(own) >= FIRST else 0
        self.blocks[series, :, own[:odd]] = np.nan
        own = own[odd:]
        if len(own) < FIRST:
            return
        values = self.blocks[series, 2, own]
        middle, before = np.median(values), self.unit[series, 1]
        scale = 1.4826 * np.median(np.abs(values - middle))
        scale = scale if scale > 0.0 else max(1.0, abs(middle))
        self.unit[series] = middle, scale, self.blocks[series, 0, own[0]]
        elder = newborn(self.mean.shape[1])
        if np.isfinite(before):
            shape, rate = self.noise[series].tolist()
            elder = newborn(self.mean.shape[1], 2.0, rate / shape * (before / scale) ** 2)
        self._put(series, elder, 0.0)
        for at in own.tolist():
            self._learn(series, at)

    def _learn(self, series: int, at: int) -> None:
        """Learn a kept block, and note by how much it was off."""
        base, scale, origin = self.unit[series]
        number, _, value, _, _ = self.blocks[series, :, at].tolist()
        past = np.nan_to_num((self.blocks[series, 3, max(0, at - LAGS) : at][::-1] - base) / scale)
        waves = self.waves[int(number) % len(self.waves)]
        x = np.concatenate([[1.0, (number - origin) / MONTH], waves, past, np.zeros(LAGS - len(past))])
        elder = faded(Elder(self.mean[series], self.precision[series], *self.noise[series].tolist()))
        low, high = within(self.blocks[series, 2, np.isfinite(self.blocks[series, 2])])
        elder, value, off = learned(elder, x, float((value - base) / scale), math.sqrt(0.5 * self.limit))
        self.blocks[series, 3:, at] = min(max(base + scale * value, low), high), off
        self._put(series, elder, self.known[series] + 1.0)

    def _put(self, series: int, elder: Elder, known: float) -> None:
        self.mean[series], self.precision[series] = elder.mean, elder.precision
        self.noise[series], self.known[series] = (elder.shape, elder.rate), known


def _unsettled(values: np.ndarray) -> int:
    """How many of the first blocks are none like those behind them: a unit that warms up, an average over errors."""
    for count in range(len(values) // 2, 0, -1):
        low, high = within(values[count:])
        if np.all((values[:count] < low) | (values[:count] > high)):
            return count
    return 0
