r"""Features of a timed target, made as it comes: what changed before, at this hour yesterday and last week; the calendar.

Everything is relative and nothing looks ahead. At horizon H the row of time t knows the target up to t - H. It starts
from what anybody would say, the last reading plus the change that was seen one season S ago,
$$b_t = y_{t-H} + y_{t-S} - y_{t-S-H},$$
and hands a model the rest, $u_t = (y_t - b_t) / s_t$, in units of a scale s that follows the size of the latest
$|y - b|$. The features are earlier changes in the same unit, so neither the level nor the unit of the target matters,
coefficients of order one are plausible for all of them, and a model that has learned nothing yet forecasts b.

Readings are kept on a grid of steps: an hour that never came is filled, and so is one that is missing or absurd, by
the forecast b made for it; two absurd readings in a row are believed, as a level that moved. Plain numpy, float64.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from filtax.streams.features import harmonics
from filtax.streams.season import Season

__all__ = ["Made", "TimedFeatures"]

RECENT = 4  # latest changes among the features
READY = 12  # readings that the scale is learned from before a model should believe it
GATE = 20.0  # a reading further off than this many scales is absurd
FORGET = 0.995  # of the scale, per reading


class Made(NamedTuple):
    """Rows for a model: forecast `base + scale * u`, where u is what it says for X; learn u from `target`.

    >>> Made(np.ones((1, 2)), np.array([5.0]), np.array([2.0]), np.array([0.5])).restore(0.5).item()
    6.0
    """

    X: np.ndarray
    base: np.ndarray
    scale: np.ndarray
    target: np.ndarray

    def restore(self, u: np.ndarray | float) -> np.ndarray:
        """Turn what a model says into the unit of the target."""
        return self.base + self.scale * u


@dataclass(frozen=True)
class TimedFeatures:
    """Make features of a target whose rows carry a time.

    Attributes:
        season: The step of the series and the cycles it may have, from `Season.of` or `Season.named`.
        horizon: How many steps ahead the target is forecast; nothing younger is used.
        daily: Harmonics of the day, where the step is shorter.
        weekly: Harmonics of the week, where the step is shorter.

    Example:
        >>> import numpy as np
        >>> from filtax.streams import Season, TimedFeatures
        >>> hours = np.datetime64("2024-01-01T00") + np.arange(400)
        >>> load = 10.0 + np.cos(2 * np.pi * np.arange(400) / 24)
        >>> maker = TimedFeatures(Season.named("hourly"), daily=0, weekly=0)
        >>> state, made = maker.make(maker.init(), hours, load)
        >>> made.X.shape, len(maker.names), bool(abs(made.base[200:] - load[200:]).max() < 1e-12)
        ((400, 23), 23, True)
    """

    season: Season
    horizon: int = 1
    daily: int = 2
    weekly: int = 2

    def __post_init__(self) -> None:
        if isinstance(self.horizon, bool) or not isinstance(self.horizon, int) or self.horizon < 1:
            raise ValueError(f"TimedFeatures(horizon=...) must be a whole number of at least 1, got {self.horizon!r}.")

    @property
    def changes(self) -> tuple[int, ...]:
        """How long ago the changes ended that serve as features, in steps before the row, youngest first."""
        H = self.horizon
        spots = {H + k for k in range(RECENT)}
        for cycle in self.season.cycles:
            first = cycle * -(-H // cycle)  # the first repetition that is known H steps before
            spots |= {first + near for near in (-1, 0, 1, 2) if first + near >= H}
            spots |= {first + cycle + near for near in (0, 1)}
        return tuple(sorted(spots))

    @property
    def gaps(self) -> tuple[int, ...]:
        """Cycles over which the latest reading is compared with its like."""
        return self.season.cycles

    @property
    def memory(self) -> int:
        """Readings that the state holds."""
        return self.horizon + max((*self.changes, *(self.horizon + gap for gap in self.gaps)))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns of X."""
        H, unit = self.horizon, self.season.unit
        names = ["constant", *(f"change {spot} {unit}s ago" for spot in self.changes)]
        names += [f"change since {gap} {unit}s before" for gap in self.gaps]
        if H > 1:
            names += [f"last {unit}ly change"] if False else [f"change over one {unit}"]
        for cycle, orders in self._calendar():
            names += [f"{cycle} {wave} {k}" for k in range(1, orders + 1) for wave in ("cos", "sin")]
        return tuple(names)
