r"""Features of a timed target, made as it comes: what changed before, at this hour yesterday, last week; the calendar.

Everything is relative and nothing looks ahead. At horizon H the row of time t knows the target up to t - H. It starts
from what anybody would say, the last reading plus the change that was seen one season S ago,
$$b_t = y_{t-H} + y_{t-S} - y_{t-S-H},$$
and leaves the rest to a model, $u_t = (y_t - b_t) / s_t$, in units of a scale s that follows the size of the latest
$|y - b|$. The features are earlier changes in the same unit, so neither the level nor the unit of the target matters,
coefficients of order one are plausible for all of them, and a model that has learned nothing yet forecasts b.

Readings are kept on a grid of steps. A step that never came, or whose reading is missing or absurd, is filled by what
its neighbours and the last season suggest. Absurd readings in a row are believed, as a level that moved, when they are
more than may be errors (`filtax.streams.episode`); further ahead the second is.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from filtax.streams.features import harmonics
from filtax.streams.grid import Cells, Grid
from filtax.streams.levels import USUAL, Levels
from filtax.streams.recurring import Recurring
from filtax.streams.season import DAY, Season

__all__ = ["SPARED", "Made", "TimedFeatures"]

RECENT = 4  # latest changes among the features
NEAR = (-1, 0, 1, 2)  # around the first repetition of a cycle
AGAIN = (0, 1)  # and around the second and third
READY = 12  # readings behind the scale before a model should learn from it
SPARED = 4  # absurd readings in a row: more are a level
FARTHEST = 100.0  # scales: a feature is not larger


class Made(NamedTuple):
    """Rows for a model: learn u from X and `target`, forecast `base + scale * u`.

    `absurd` says which readings were too far off to learn from: the how manyth of them in a row, 0 for all others;
    `usual` which have one of few values that keep coming back, above 0, or a level that is new, below it
    (`filtax.streams.levels`).

    >>> Made(np.ones((1, 2)), np.array([5.0]), np.array([2.0]), np.array([0.5])).restore(0.5).item()
    6.0
    """

    X: np.ndarray
    base: np.ndarray
    scale: np.ndarray
    target: np.ndarray
    absurd: np.ndarray = np.zeros(0)
    usual: np.ndarray = np.zeros(0)

    def restore(self, u: np.ndarray | float) -> np.ndarray:
        """Turn what a model says into the unit of the target; NaN while that is not known."""
        return self.base + self.scale * u


@dataclass(frozen=True)
class TimedFeatures:
    """Make features of a target whose rows carry a time.

    Attributes:
        season: The step of the series and its cycles, from `Season.of` or `Season.named`.
        horizon: How many steps ahead the target is forecast; nothing younger is used.
        daily: Harmonics of the day, where the step is shorter.
        weekly: Harmonics of the week, where the step is shorter.
        spared: Absurd readings in a row that may be errors, one step ahead; further ahead it is one.
        recurring: Whether of a target that takes few values one that keeps coming back is never absurd.
        levels: Whether that holds for levels with noise, too, and for those that seldom come.

    Example:
        >>> import numpy as np
        >>> from filtax.streams import Season, TimedFeatures
        >>> hours = np.datetime64("2024-01-01T00") + np.arange(400)
        >>> load = 10.0 + np.cos(2 * np.pi * np.arange(400) / 24)
        >>> maker = TimedFeatures(Season.named("hourly"))
        >>> state, made = maker.make(maker.init(), hours, load)
        >>> made.X.shape == (400, len(maker.names)), bool(abs(made.base[200:] - load[200:]).max() < 1e-12)
        (True, True)
    """

    season: Season
    horizon: int = 1
    daily: int = 1
    weekly: int = 1
    spared: int = SPARED
    recurring: bool = True
    levels: bool = True

    def __post_init__(self) -> None:
        if isinstance(self.horizon, bool) or not isinstance(self.horizon, int) or self.horizon < 1:
            raise ValueError(f"TimedFeatures(horizon=...) must be a whole number of at least 1, got {self.horizon!r}.")

    @property
    def changes(self) -> tuple[tuple[int, int], ...]:
        """Changes that serve as features, as (end, length) in steps before the row."""
        H = self.horizon
        spots = {H + k for k in range(RECENT)}
        for cycle in self.season.cycles:
            first = cycle * -(-H // cycle)  # the first repetition that is known H steps before
            spots |= {first + near for near in NEAR if first + near >= H}
            spots |= {first + again * cycle + near for again in (1, 2) for near in AGAIN}
        short = [] if H == 1 else [(H + k, 1) for k in range(3)]
        return (*((spot, H) for spot in sorted(spots)), *short, *((H, cycle) for cycle in self.season.cycles))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns of X."""
        changes = [f"change over {length} until {end} ago" for end, length in self.changes]
        waves = [f"{cycle} {wave} {k}" for cycle, _, n in self._calendar for k in range(1, n + 1) for wave in _WAVES]
        return ("constant", *changes, *waves)

    def init(self) -> dict[str, np.ndarray]:
        """Return the state before the first row: plain arrays."""
        counted = {
            **(Recurring.none() if self.recurring else {}),
            **(Levels.none(self.season.cycles) if self.levels else {}),
        }
        return {**self._grid.init(), "phase": np.array(np.nan), **counted}

    def make(
        self, state: Mapping[str, np.ndarray], time: np.ndarray, y: np.ndarray
    ) -> tuple[dict[str, np.ndarray], Made]:
        """Make the rows of the next times; NaN in y where a reading is missing or still to come.

        Args:
            state: From `init`, or from the rows before.
            time: Times that grow, shape (T,), `datetime64` or numbers.
            y: Readings, shape (T,).

        Returns:
            The state behind these rows, and the rows. `target` is NaN where y is, and until the scale is known well;
            `base` is NaN before a first reading, and `scale` before a first error of it.
        """
        time, y = np.asarray(time), np.asarray(y, np.float64)
        if time.shape != y.shape or y.ndim != 1:
            raise ValueError(
                f"TimedFeatures.make: times of shape {time.shape}, y of shape {y.shape}; both must be (T,)."
            )
        grid, phase = self._grid, state["phase"]
        if len(time) and np.isnan(phase):
            phase = np.array(self.season.phase(time[:1])[0])
        numbers, rows, after = self.season.cells(time, float(phase)), [], dict(state)
        usual, kept = self._usual(state, numbers, y)
        while not rows or len(y):  # in pieces, as the past may be rewritten
            after, cells = grid.extend(after, numbers, y, usual > 0.0)
            done = len(cells.place)
            rows.append(self._rows(cells, time[:done], y[:done])._replace(usual=usual[:done]))
            numbers, time, y, usual = numbers[done:], time[done:], y[done:], usual[done:]
        return {**after, "phase": phase, **kept}, Made(*(np.concatenate(each) for each in zip(*rows, strict=True)))

    def _usual(
        self, state: Mapping[str, np.ndarray], numbers: np.ndarray, y: np.ndarray
    ) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Which readings have values or levels that come again, (T,), and what is kept to know."""
        usual, kept = np.zeros(len(y)), {}
        if self.recurring:
            values = Recurring(state)
            usual = np.array([USUAL * values.look(reading) for reading in y.tolist()])
            kept |= values.arrays()
        if self.levels:
            levels = Levels(state, self.season.cycles)
            told = np.array([levels.look(*row) for row in zip(y.tolist(), numbers.tolist(), strict=True)])
            usual = np.where(told == 0.0, usual, told)
            kept |= levels.arrays()
        return usual, kept

    def _rows(self, cells: Cells, time: np.ndarray, y: np.ndarray) -> Made:
        base, scale, count = self._grid.outlook(cells)
        ends, lengths = np.array(self.changes).T
        change = (cells.value(ends) - cells.value(ends + lengths)) / scale[:, None]
        columns = [np.ones((len(y), 1)), np.clip(np.nan_to_num(change, nan=0.0), -FARTHEST, FARTHEST)]
        if time.dtype.kind == "M":
            seconds = time.astype("datetime64[s]").astype(np.int64)
            columns += [harmonics(seconds - since, int(length), n) for (_, length, n), since in self._phases()]
        target = np.where((count >= READY) & np.isfinite(y), (y - base) / scale, np.nan)
        return Made(np.concatenate(columns, axis=1), base, scale, target, cells.absurd)

    @property
    def _grid(self) -> Grid:
        longest = max(end + length for end, length in self.changes)
        return Grid(self.horizon, self.season.cycles, longest + 1, self.spared if self.horizon == 1 else 1)

    @property
    def _calendar(self) -> list[tuple[str, float, int]]:
        if self.season.name in ("numbered", "single"):
            return []
        cycles = [("day", DAY, self.daily), ("week", 7 * DAY, self.weekly)]
        return [(name, length, n) for name, length, n in cycles if n and self.season.step <= length / 2]

    def _phases(self) -> list[tuple[tuple[str, float, int], int]]:
        monday = 4 * int(DAY)  # 1970-01-05
        return [(entry, monday if entry[0] == "week" else 0) for entry in self._calendar]


_WAVES = ("cos", "sin")
