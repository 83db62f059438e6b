"""Gross errors among the first readings of a series, known in hindsight; what was learned of them is undone.

The first readings give level and unit before there is anything to judge them by. With `ROWS` of them there is: those
far from the median that stand alone are told of, and the series is learned once more without them, so that neither
scale nor lags, belief or averages keep them. Where labels come late, that is when the last of the `ROWS` has come.

Axes: S series, N = ROWS + late rows.
"""

from typing import Any

import jax
import numpy as np

from filtax.estimators.gross import OFTEN, ROWS, SPARED, gross, standing_alone
from filtax.runs.bands import TAILS
from filtax.runs.blocks import Block, picked

__all__ = ["Beginning", "errors", "in_hindsight"]


class Beginning:
    """The first rows of S series.

    >>> first = Beginning(late=0)
    >>> first.ends(np.zeros(30, int)).tolist()
    [23]
    """

    def __init__(self, late: int) -> None:
        self.size, self.count = ROWS + late, np.zeros(1)
        self.rows = np.full((1, 3, self.size), np.nan)  # time, reading, whether it was told of

    @property
    def arrays(self) -> list[np.ndarray]:
        """All of it, for a checkpoint."""
        return [self.count, self.rows]

    def restore(self, arrays: list[np.ndarray]) -> None:
        """Go on from what `arrays` told."""
        self.count, self.rows = arrays

    def make_room(self, series: int) -> None:
        """Let more series come."""
        more = (0, max(0, series - len(self.count)))
        self.count = np.pad(self.count, more[:2])
        self.rows = np.pad(self.rows, (more, (0, 0), (0, 0)), constant_values=np.nan)

    def ends(self, slot: np.ndarray) -> np.ndarray:
        """Rows with which the beginning of their series ends, growing."""
        new = np.flatnonzero(self.count[slot] < self.size)
        rank = np.empty(len(new), np.int64)
        for series in np.unique(slot[new]).tolist():
            own = slot[new] == series
            rank[own] = self.count[series] + np.arange(own.sum())
        return new[rank == self.size - 1]

    def with_more(self, slot: np.ndarray, y: np.ndarray, end: int) -> np.ndarray:
        """The first readings of the series whose beginning ends with a row, (ROWS,)."""
        series = slot[end]
        known = self.rows[series, 1, : int(self.count[series])]
        return np.concatenate([known, y[: end + 1][slot[: end + 1] == series]])[:ROWS]

    def keep(self, slot: np.ndarray, time: np.ndarray, y: np.ndarray, told: set[int]) -> None:
        """Remember the rows that belong to the beginning of their series."""
        moment = time.astype("M8[us]").astype(np.int64) if time.dtype.kind == "M" else time
        for row in np.flatnonzero(self.count[slot] < self.size).tolist():
            series = slot[row]
            at = int(self.count[series])
            if at < self.size:
                self.rows[series, :, at] = moment[row], y[row], row in told
                self.count[series] += 1


def errors(y: np.ndarray) -> np.ndarray:
    """Probability of the first readings that are gross errors, (ROWS,); NaN of all others.

    >>> y = 20.0 + np.sin(np.arange(24.0))
    >>> y[[0, 7]] = -999.0, 1e6
    >>> np.flatnonzero(errors(y) < 1e-9).tolist()
    [0, 7]
    """
    from scipy.special import stdtr

    with np.errstate(over="ignore"):
        odd = standing_alone(y, gross(y[:, None], SPARED, OFTEN))
        off = np.abs(y - (np.median(y[np.isfinite(y)]) if odd.any() else 0.0))
        scale = 1.4826 * np.nanmedian(off) if odd.any() else 1.0
        return np.where(odd, 2.0 * stdtr(TAILS, -off / scale), np.nan)


def in_hindsight(stream: Any, block: Block) -> tuple[dict[str, np.ndarray], list[tuple[int, str, Any]]]:
    """Learn a block; behind the first rows of a series with errors among them, learn those rows once more.

    Args:
        stream: Of numbers (`filtax.runs.numbers`).
        block: The rows.

    Returns:
        As `NumberStream.learn`; (row, "hindsight", (rows back, probability)) is told of each error that was not.
    """
    y, slot, first = block.numbers[stream.plan.config.target], stream.slots_of(block), stream.beginning
    assert block.time is not None
    wrong = {end + 1 for end in first.ends(slot).tolist() if np.isfinite(errors(first.with_more(slot, y, end))).any()}
    said, found, start = [], [], 0
    for end in sorted({*wrong, block.rows}):
        rows = slice(start, end)
        more, events = stream.take(picked(block, rows))
        told = {row for row, kind, _ in events if kind == "distrusted"}
        first.keep(slot[rows], block.time[rows], y[rows], told)
        said.append(more)
        found += [(start + row, kind, value) for row, kind, value in events]
        if end in wrong:
            found += [(end - 1, "hindsight", each) for each in _relive(stream, int(slot[end - 1]), block.time.dtype)]
        start = end
    return {name: np.concatenate([part[name] for part in said]) for name in said[0]}, found


def _relive(stream: Any, series: int, clock: np.dtype) -> list[tuple[int, float]]:
    """Learn the first rows of a series once more, without the errors; how far back those are that were not told of."""
    (moment, y, told), size = stream.beginning.rows[series], stream.beginning.size
    chance, young = np.full(size, np.nan), stream.young()
    chance[:ROWS] = errors(y[:ROWS])
    time = moment.astype(np.int64).astype("M8[us]") if clock.kind == "M" else moment
    clean = {stream.plan.config.target: np.where(np.isfinite(chance), np.nan, y)}
    young.take(Block(clean, {}, time, None, np.arange(size), np.zeros(size), [], None))
    stream.grids[series], stream.surprise.scores[series] = young.grids[0], young.surprise.scores[0]
    for name in ("late", "bands", "jumps", "course", "early", "moves"):
        for own, new in zip(getattr(stream, name).arrays, getattr(young, name).arrays, strict=True):
            own[series] = new[0]
    stream.carry = jax.tree.map(lambda own, new: own.at[series].set(new[0]), stream.carry, young.carry)
    return [(size - 1 - at, float(chance[at])) for at in np.flatnonzero(np.isfinite(chance) & (told == 0.0)).tolist()]
