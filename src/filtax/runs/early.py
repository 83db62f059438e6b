r"""A level that moves among the first rows of a series, before its forecasts can be trusted to say what is odd.

A row is looked at when as many readings as `AFTER` says have come behind it, if its step from the row before is more
than `SCREEN` usual ones, and as odd beside the step of a cycle ago. Two models compete for all readings so far,
$y_t = x_t^\top\theta + \delta\,[t \ge s] + \sigma e_t$ with $x_t$ a constant, a line, the reading before, and where
there is a cycle the reading of a cycle before and two harmonics of it: one with a step,
$\delta \sim N(0, \tau^2\sigma^2)$, and one without. With r the residuals of y and d those of the step, both by least
squares on x alone, and $\nu$ degrees of freedom, the odds are
$$B_s = (1 + \tau^2 d^\top d)^{-1/2}\,
\Bigl(1 - \frac{\tau^2 (d^\top r)^2}{(1 + \tau^2 d^\top d)\, r^\top r}\Bigr)^{-\nu/2}$$
under a flat belief in $\theta$ and $\log\sigma$. If nothing moves they exceed $\alpha^{-2}$ with a probability of at
most $\alpha^2$. Readings count at most as far from the median of their side as `CUT` robust deviations, so that a few
gross errors move nothing. Of a series with a cycle the first one is needed to know it: nothing is told of its rows.

Axes: S series, N readings.
"""

import math
from collections.abc import Callable
from itertools import pairwise
from statistics import median

import numpy as np

__all__ = ["CUT", "Early", "log_odds", "step_odds", "units"]

LAST = 62  # rows of a series; a later one is judged by its forecast
BEFORE, AFTER = 10, (10, 16, 24)  # readings before a step, and behind its first when it is looked at
ROWS = LAST + 24 + 10  # that are kept: a few may be missing
SCREEN = 4.0  # usual steps, medians of their sizes
CUT = 5.0
SIZE = 5.0  # tau: deviations by which a level moves


class Early:
    """The first rows of S series.

    >>> watch, rng = Early(0.001, cycle=0), np.random.default_rng(0)
    >>> y = np.repeat([10.0, 20.0], [25, 20]) + rng.normal(size=45)
    >>> watch.look(np.zeros(45, int), y)
    [(35, 'change', 10)]
    """

    def __init__(self, rate: float, cycle: int) -> None:
        self.limit, self.cycle = 2.0 * math.log(1.0 / rate), cycle
        self.rows, self.count = np.full((1, ROWS), np.nan), np.zeros(1, np.int64)

    @property
    def arrays(self) -> list[np.ndarray]:
        """All of it, for a checkpoint."""
        return [self.rows, self.count]

    def restore(self, arrays: list[np.ndarray]) -> None:
        """Go on from what `arrays` told."""
        self.rows, self.count = arrays

    def make_room(self, series: int) -> None:
        """Let more series come."""
        more = (0, max(0, series - len(self.count)))
        self.rows = np.pad(self.rows, (more, (0, 0)), constant_values=np.nan)
        self.count = np.pad(self.count, more)

    def look(
        self, slot: np.ndarray, y: np.ndarray, doubted: Callable[[int, int, np.ndarray, float], bool] | None = None
    ) -> list[tuple[int, str, int]]:
        """Levels that moved: (row, "change", rows since).

        Args:
            slot: Series of each row, (B,).
            y: Readings, (B,).
            doubted: Whether something else may explain a level that moved, from the row, the rows since, the readings
                before it, and by how much it moved.
        """
        found = []
        for row in np.flatnonzero(self.count[slot] < ROWS).tolist():
            series = slot[row]
            at = self.count[series]
            if at < ROWS:
                self.rows[series, at], self.count[series] = y[row], at + 1
                start = self._start(self.rows[series, : at + 1]) if math.isfinite(y[row]) else None
                if start is None:
                    continue
                before, behind = self.rows[series, :start], self.rows[series, start : at + 1]
                size = float(np.nanmedian(behind) - np.nanmedian(before))
                if doubted is None or not doubted(row, int(at - start), before, size):
                    found.append((row, "change", int(at - start)))
                    self.rows[series, :start] = np.nan  # they belong to the level before
        return found

    def _start(self, y: np.ndarray) -> int | None:
        """The row with which a level moved, if the last one of these shows it."""
        values = y.tolist()  # lists: this is done for each row
        known = [at for at, value in enumerate(values) if math.isfinite(value)]
        moved = [len(known) - 1 - after for after in AFTER]
        moved = [s for s in moved if s >= BEFORE and self.cycle < known[s] < LAST]
        if not moved:
            return None
        steps = [values[to] - values[at] for at, to in pairwise(known)]
        least = SCREEN * median(map(abs, steps))
        for s in moved:
            at, step = known[s], steps[s - 1]
            ago = values[at - self.cycle] - values[at - self.cycle - 1] if self.cycle else 0.0
            odd = abs(step) > least and not abs(step - ago) <= least
            if odd and log_odds(y[known], np.array(known), s, self.cycle) > self.limit:
                return at
        return None


def log_odds(y: np.ndarray, at: np.ndarray, start: int, cycle: int) -> float:
    """Log odds that a level moved with a reading, against none that did.

    Args:
        y: Readings, (N,).
        at: Their rows, (N,), growing.
        start: Which of them is the first on the new level.
        cycle: Rows of a cycle; 0 where none is known.

    >>> y = 10.0 + np.random.default_rng(0).normal(size=40)
    >>> [log_odds(y + size * (np.arange(40) >= 25), np.arange(40), 25, 0) > 0.0 for size in (0.0, 9.0)]
    [False, True]
    """
    later = np.arange(len(y)) >= start
    middle, spread = units(y, start)
    if not 0.0 < spread < math.inf:  # no unit
        return -math.inf
    z = (middle - np.median(y)) / spread + np.clip((y - middle) / spread, -CUT, CUT)
    columns = [np.ones(len(y)), at / at[-1], np.concatenate([[0.0], z[:-1]])]
    if cycle:
        turn = 2.0 * np.pi * at / cycle
        ago = np.full(at[-1] + 1, np.nan)
        ago[at] = z
        columns += [np.nan_to_num(np.where(at >= cycle, ago[at - cycle], 0.0))]
        columns += [wave(k * turn) for k in (1, 2) for wave in (np.cos, np.sin)]
    return step_odds(z, later, columns)


def units(y: np.ndarray, start: int) -> tuple[np.ndarray, float]:
    """The median of the side of each reading, (N,), and the robust deviation from them.

    >>> middle, spread = units(np.array([1.0, 2.0, 4.0, 9.0, 7.0]), 3)
    >>> middle.tolist(), spread
    ([2.0, 2.0, 2.0, 8.0, 8.0], 1.4826)
    """
    middle = np.where(np.arange(len(y)) >= start, np.median(y[start:]), np.median(y[:start]))
    return middle, float(1.4826 * np.median(np.abs(y - middle)))


def step_odds(z: np.ndarray, later: np.ndarray, columns: list[np.ndarray]) -> float:
    """Log odds of a step, against none, beside other columns; the first reading is only looked back at.

    Args:
        z: Readings, (N,).
        later: Which of them lie behind the step, (N,).
        columns: What explains them else, (N,) each.

    >>> z, later = np.sin(np.arange(30.0)), np.arange(30) >= 20
    >>> step_odds(z + 5.0 * later, later, [np.ones(30)]) > 20.0 > 0.0 > step_odds(z, later, [np.ones(30)])
    True
    """
    base = np.linalg.qr(np.stack(columns, axis=1)[1:])[0]
    both = np.stack([z, later], axis=1)[1:]
    rest, shared, _, own = np.ravel(_squares(both - base @ (base.T @ both))).tolist()
    freedom = len(z) - 1 - len(columns)
    share = SIZE**2 * shared * shared / ((1.0 + SIZE**2 * own) * max(rest, np.finfo(float).tiny))
    return -0.5 * math.log1p(SIZE**2 * own) - 0.5 * freedom * math.log1p(-min(share, 1.0 - 1e-15))


def _squares(columns: np.ndarray) -> np.ndarray:
    return columns.T @ columns
