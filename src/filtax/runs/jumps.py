r"""A level that jumps and stays: a change that one row shows, where a forecast starts from the row before.

Such a forecast is surprised once; one row later it has followed, and nothing keeps surprising. A gross error begins in
the same way, but what it leaves returns. So a row is suspected if its stretched forecast gave it, and anything as
extreme, a probability below $\alpha^2$, or its interval did (`filtax.runs.bands.beyond`); and then what the series
gained on its last season, $y_t - y_{t-S}$, is looked at. If of the next $\log_2(1/\alpha)$ readings all but one lie
nearer to the new level than to the old one, the level has moved. If forecasts are calibrated, the mean time to a false
alarm is at least $\alpha^{-2}$ rows.
"""

import math
from collections.abc import Sequence
from statistics import median
from typing import Any

import numpy as np

from filtax.runs.surprise import WARM

__all__ = ["Jumps"]

BEFORE = 5  # readings whose median is the level that a jump leaves
SPARED = 1  # readings behind a jump that may lie on the old side


class Jumps:
    """What S series are suspected of.

    >>> watch = Jumps(0.001, season=0)
    >>> y = np.repeat([1.0, 5.0], [60, 11])
    >>> tail = np.where(np.arange(71) == 60, 1e-9, 0.5)
    >>> watch.look(np.zeros(71, int), y, np.ones(71), tail, [])
    [(70, 'change', 10)]
    """

    def __init__(self, rate: float, season: int) -> None:
        self.rate, self.rows = rate, math.ceil(math.log2(1.0 / rate))
        self.season = season * math.ceil((self.rows + 1) / max(season, 1))  # longer than what is looked at
        self.past = np.full((1, self.season + BEFORE), np.nan)
        self.seen = np.zeros(1)  # forecasts that could be judged
        self.held = np.zeros((1, 5))  # direction (0: not suspected), middle, readings looked at, on the old side, rows

    @property
    def arrays(self) -> list[np.ndarray]:
        """All of it, for a checkpoint."""
        return [self.past, self.seen, self.held]

    def restore(self, arrays: list[np.ndarray]) -> None:
        """Go on from what `arrays` told."""
        self.past, self.seen, self.held = arrays

    def make_room(self, series: int) -> None:
        """Let more series come."""
        more = ((0, max(0, series - len(self.past))), (0, 0))
        self.seen = np.pad(self.seen, more[0])
        self.past = np.pad(self.past, more, constant_values=np.nan)
        self.held = np.pad(self.held, more)

    def look(
        self,
        slot: np.ndarray,
        y: np.ndarray,
        forecast: np.ndarray,
        tail: np.ndarray,
        alarmed: Sequence[tuple[int, Any]],
    ) -> list[tuple[int, str, Any]]:
        """Jumps that stayed: (row, "change", rows since the jump).

        Args:
            slot: Series of each row, (B,).
            y: Readings, (B,).
            forecast: What was expected, (B,).
            tail: Probability of y, and of anything as extreme, by the stretched forecast, (B,); NaN where unknown.
            alarmed: Rows at which a change was told of already, and from how many rows before: one alarm is enough.
        """
        told = dict(alarmed)
        found: list[tuple[int, str, Any]] = []
        for series in np.unique(slot):
            rows = np.flatnonzero(slot == series)
            whole = np.concatenate([self.past[series], y[rows]])
            gained = (whole[self.season :] - whole[: -self.season] if self.season else whole).tolist()
            seen = self.seen[series] + np.cumsum(np.isfinite(tail[rows]))
            off, odd = y[rows] - forecast[rows], (tail[rows] < self.rate**2) & (seen > WARM)
            held = self.held[series].tolist()
            for i, row in enumerate(rows.tolist()):
                if row in told:
                    held = [0.0] * 5
                elif held[0]:
                    held = _next(held, gained[BEFORE + i])
                    if held[2] - held[3] >= self.rows - SPARED and held[2] >= self.rows:
                        found.append((row, "change", int(held[4])))
                        held = [0.0] * 5
                if odd[i] and not held[0] and row not in told:
                    held = _suspect(gained[i : BEFORE + i], float(off[i]))
            self.past[series], self.seen[series], self.held[series] = whole[-self.past.shape[1] :], seen[-1], held
        return found


def _suspect(before: Sequence[float], off: float) -> list[float]:
    """A jump by `off` from the level of the readings before it; none where they are missing."""
    known = [value for value in before if value == value]
    return [math.copysign(1.0, off), median(known) + 0.5 * off, 0.0, 0.0, 0.0] if known else [0.0] * 5


def _next(held: Sequence[float], value: float) -> list[float]:
    """What is held after one more reading; a missing one only lets time pass."""
    direction, middle, looked, back, rows = held
    if value == value:
        looked, back = looked + 1.0, back + float(direction * (value - middle) <= 0.0)
    return [0.0] * 5 if back > SPARED else [direction, middle, looked, back, rows + 1.0]
