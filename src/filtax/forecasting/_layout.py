"""The static shape of a pipeline, and the rows of a table in that shape."""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from filtax.forecasting._clock import Clock
from filtax.protocols import pytree


@pytree
class Row:
    """One row of the stream: arrays of fixed shape, of numpy or JAX; rows of a table have a leading axis T.

    Attributes:
        y: () the target; NaN where it is missing.
        issue: () whether a forecast is issued before this row is learned.
        slot, week: () slots of the row in the first and the second season.
        calendar, known: (C,) and (F,) calendar and known columns of the row.
        slots, weeks, calendars: (H,), (H,), (H, C) the same of the H targets ahead.
        knowns: (N, F) known columns of all rows up to the last target.
    """

    y: Any
    issue: Any
    slot: Any
    week: Any
    calendar: Any
    known: Any
    slots: Any
    weeks: Any
    calendars: Any
    knowns: Any


@dataclass(frozen=True)
class Layout:
    """Sizes that are fixed within a compilation; series with equal sizes share one compiled program.

    Attributes:
        steps: How many rows ahead the targets lie.
        season, week: Rows of the two seasons; 1 and 0 without.
        bins: Slots of the season that have parameters of their own.
        weekdays, years: Numbers of calendar columns.
        known: Number of known columns.
        stride: Rows from one forecast to the next.
        holds: Whether a missing known column repeats its last value; otherwise it counts as its mean.

    >>> Layout.of(Clock.by_index(24), (1, 25)).group.tolist()
    [0, 1]
    """

    steps: tuple[int, ...] = (1,)
    season: int = 1
    week: int = 0
    bins: int = 1
    weekdays: int = 0
    years: int = 0
    known: int = 0
    stride: int = 1
    holds: bool = True

    @classmethod
    def of(cls, clock: Clock, steps: tuple[int, ...], known: int = 0, stride: int = 1) -> "Layout":
        """The shape of a series by its clock."""
        weekdays, holds = 6 if clock.week else 0, clock.kind != "index"
        sizes = (clock.season, clock.week, clock.bins, weekdays, clock.calendar - weekdays)
        return cls(steps, *sizes, known, stride, holds)

    @property
    def furthest(self) -> int:
        """Rows to the last target."""
        return max(self.steps)

    @property
    def groups(self) -> int:
        """Number of groups of targets, by how many seasons back their last known value lies."""
        return (self.furthest - 1) // self.season + 1 if self.profiles else 1

    @property
    def depth(self) -> int:
        """Values that are remembered of each slot."""
        return (self.furthest - 1) // self.season + 2

    @property
    def profiles(self) -> bool:
        """Whether there are filters for the slots of the season: not without a season, nor far beyond it."""
        return self.season > 1 and self.furthest <= max(self.week, 7 * self.season)

    @property
    def group(self) -> np.ndarray:
        """For each target, how many seasons its last known value of the slot lies back, minus one."""
        return (np.asarray(self.steps) - 1) // self.season if self.profiles else np.zeros(len(self.steps), int)

    @property
    def share(self) -> float:
        """Slots with parameters of their own, as a share of the season's."""
        return self.bins / self.season

    @property
    def rates(self) -> np.ndarray:
        """Rates of the running means of the target: over 4 rows, over a season, over everything."""
        return -np.expm1(-1.0 / np.array([4.0, float(max(self.season, 12)), 1e9]))

    @property
    def known_rates(self) -> np.ndarray:
        """Rates of the running means of known columns: over one and over four seasons; none without a season."""
        return -np.expm1(-1.0 / np.array([1.0, 4.0] if self.season > 1 else []) / self.season)

    def warmup(self) -> int:
        """Observed rows from which scales are taken and after which filters are listened to."""
        return min(max(2 * self.season, 48), 2000)

    def empty_row(self) -> Row:
        """A row of zeros, for its shapes and types."""
        H, C, F, number = len(self.steps), self.weekdays + self.years, self.known, jnp.zeros((), jnp.int32)
        slots = jnp.zeros(H, jnp.int32)
        own = (jnp.zeros(()), jnp.zeros((), bool), number, number, jnp.zeros(C), jnp.zeros(F))
        return Row(*own, slots, slots, jnp.zeros((H, C)), jnp.zeros((self.furthest, F)))

    def rows(
        self, clock: Clock, times: np.ndarray, y: Float[np.ndarray, " T"], known: np.ndarray, issue: np.ndarray
    ) -> Row:
        """Rows of a table as arrays (T, ...).

        The targets of row t are t, t + 1, ...: the origin is the row before. Their times follow from the time of row t
        and the clock, not from later rows. Known columns are those of later rows, of which `known` may have more than
        y has; they repeat the last beyond the table.
        """
        T, N, ahead = len(y), self.furthest, np.asarray(self.steps) - 1
        own = clock.moments(times)
        later = clock.moments(clock.ahead(times, ahead).reshape(-1))
        window = np.minimum(np.arange(T)[:, None] + np.arange(N if self.known else 0), len(known) - 1)
        return Row(
            np.asarray(y, float),
            np.asarray(issue, bool),
            own.slot.astype(np.int32),
            own.week.astype(np.int32),
            own.calendar,
            known[:T],
            later.slot.reshape(T, -1).astype(np.int32),
            later.week.reshape(T, -1).astype(np.int32),
            later.calendar.reshape(T, ahead.size, -1),
            known[window].reshape(T, N, self.known),
        )
