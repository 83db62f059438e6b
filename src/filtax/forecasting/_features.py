"""(M.1) What a forecast may know: lags, seasonal lags, running means, calendar and known columns.

`History` is what the pipeline remembers of the series; it is updated once a row. `View` is what the experts see at an
origin: everything known there about the origin and about the H targets ahead. All values are in the units of `Scale`.

Axes: H horizons, S slots of the season, F known columns, C calendar columns.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from filtax.forecasting._layout import Layout, Row
from filtax.protocols import pytree, static

RECENT = 25  # values kept as they came: 24 differences, and the window of the running median
FAST = 4.0  # rows over which the faster running mean forgets
QUANTILES = (0.1, 0.35, 0.65, 0.9)  # of a known column, where its piecewise linear effect may bend
FARTHEST = 10.0  # spreads beyond which a known column counts as being there


@pytree
class Scale:
    """Units of the series and of its F known columns, found in the first rows and then fixed; of numpy or JAX.

    Attributes:
        center, spread: () mean and standard deviation of the target.
        known_center, known_spread: (F,) the same of the known columns.
        knots: (F, 4) where the effect of a known column may bend, in its own units of spread.
    """

    center: Any
    spread: Any
    known_center: Any
    known_spread: Any
    knots: Any

    @classmethod
    def start(cls, known: int) -> "Scale":
        """The units 0 and 1."""
        return cls(np.zeros(()), np.ones(()), np.zeros(known), np.ones(known), np.zeros((known, len(QUANTILES))))


@pytree
class History:
    """What is remembered of the series. A missing value is replaced by the last one.

    Attributes:
        count: Rows so far.
        seen: Rows so far with a target.
        recent: The last values, the latest first.
        means: Sums and weights of three running means: over `FAST` rows, over a season, over everything.
        low, high: The range so far.
        lags: The last G values of each slot of the season, NaN where there is none.
        weeks: The last value of each slot of the second season.
        deviation: The last value minus the one before in its slot.
        known: The last known columns, and sums and weights of their two running means.
    """

    count: Int[Array, ""]
    seen: Int[Array, ""]
    recent: Float[Array, " 25"]
    means: Float[Array, "2 3"]
    low: Float[Array, ""]
    high: Float[Array, ""]
    lags: Float[Array, "S G"]
    weeks: Float[Array, " W"]
    deviation: Float[Array, ""]
    known: Float[Array, " F"]
    known_means: Float[Array, "R F"]
    known_weights: Float[Array, " R"]

    @classmethod
    def start(cls, layout: Layout) -> "History":
        """Nothing is remembered."""
        zero, number = jnp.zeros(()), jnp.zeros((), jnp.int32)
        none = jnp.full((layout.season, layout.depth), jnp.nan)
        weeks, F, R = jnp.full(max(layout.week, 1), jnp.nan), layout.known, layout.known_rates.size
        parts = (zero, zero, none, weeks, zero, jnp.zeros(F), jnp.zeros((R, F)), jnp.zeros(R))
        return cls(number, number, jnp.zeros(RECENT), jnp.zeros((2, 3)), *parts)

    def learn(self, layout: Layout, row: Row, z: Float[Array, ""], known: Float[Array, " F"]) -> "History":
        """One row later; z is the scaled target, NaN where it is missing."""
        first = self.count == 0
        value = jnp.where(jnp.isnan(z), self.recent[0], z)
        recent = jnp.where(first, value, jnp.concatenate([value[None], self.recent[:-1]]))
        rates = jnp.asarray(layout.rates)
        means = jnp.stack([(1.0 - rates) * self.means[0] + rates * value, (1.0 - rates) * self.means[1] + rates])
        before = self.lags[row.slot]
        latest = jnp.where(jnp.isnan(z), before[0], z)
        week = jnp.where(jnp.isnan(z), self.weeks[row.week], z)
        rates = jnp.asarray(layout.known_rates)
        return History(
            self.count + 1,
            self.seen + (~jnp.isnan(z)).astype(self.seen.dtype),
            recent,
            means,
            jnp.where(first, value, jnp.minimum(self.low, value)),
            jnp.where(first, value, jnp.maximum(self.high, value)),
            self.lags.at[row.slot].set(jnp.concatenate([latest[None], before[:-1]])),
            self.weeks.at[row.week].set(week),
            jnp.where(jnp.isnan(before[0]), 0.0, value - before[0]),
            known,
            (1.0 - rates)[:, None] * self.known_means + rates[:, None] * known[None],
            (1.0 - rates) * self.known_weights + rates,
        )

    @property
    def running(self) -> Float[Array, " 3"]:
        """The running means over a few rows, over a season and over everything; 0 before the first row."""
        return self.means[0] / jnp.where(self.means[1] > 0.0, self.means[1], 1.0)


@pytree
class View:
    """What is known at an origin.

    Attributes:
        history: What is remembered of the series.
        steps: (H,) how many rows ahead the targets lie.
        bins: (H,) slots of the targets that have parameters of their own.
        lag, week_lag: (H,) last known value in the slot of each target, NaN where there is none.
        designs: (H, D) regressors of the targets by the names of `_designs`.
        layout: The shape of the pipeline.
    """

    history: History
    steps: Float[Array, " H"]
    bins: Int[Array, " H"]
    lag: Float[Array, " H"]
    week_lag: Float[Array, " H"]
    designs: dict[str, Float[Array, "H _"]]
    layout: Layout = static()

    @property
    def last(self) -> Float[Array, ""]:
        """The last value."""
        return self.history.recent[0]

    def everywhere(self, value: Array) -> Float[Array, " H"]:
        """The same forecast for all targets."""
        return jnp.broadcast_to(value, self.steps.shape)


def look(layout: Layout, history: History, row: Row, scale: Scale) -> View:
    """What is known before a row."""
    lag, week_lag = history.lags[row.slots, 0], history.weeks[row.weeks]
    z = scaled_known(layout, scale, row.knowns, history.known)
    smooth = _smooth_ahead(layout, history, z)
    designs = _designs(layout, lag, week_lag, row.calendars, z[np.asarray(layout.steps) - 1], smooth, scale)
    bins = row.slots * layout.bins // layout.season
    return View(history, jnp.asarray(layout.steps, lag.dtype), bins, lag, week_lag, designs, layout)


def own_designs(layout: Layout, history: History, row: Row, scale: Scale, known: Float[Array, " F"]) -> dict:
    """This row's regressors by name, once for each of G groups, (G, D); farther targets see older lags."""
    G, rates = layout.groups, jnp.asarray(layout.known_rates)
    lag = history.lags[row.slot, :G]
    week_lag = jnp.broadcast_to(history.weeks[row.week], lag.shape)
    sums = (1.0 - rates)[:, None] * history.known_means + rates[:, None] * known[None]
    smooth = (sums / ((1.0 - rates) * history.known_weights + rates)[:, None]).T
    calendar, z, smooth = (jnp.broadcast_to(part, (G, *part.shape)) for part in (row.calendar, known, smooth))
    return _designs(layout, lag, week_lag, calendar, z, smooth, scale)


def scaled_known(
    layout: Layout, scale: Scale, known: Float[Array, "*N F"], last: Float[Array, " F"]
) -> Float[Array, "*N F"]:
    """Known columns in units of their spread; a missing one repeats the last, or counts as its mean."""
    lead = (1,) * (known.ndim - 1)
    last, center, spread = (part.reshape((*lead, -1)) for part in (last, scale.known_center, scale.known_spread))
    z = jnp.clip((known - center) / spread, -FARTHEST, FARTHEST)
    return jnp.where(jnp.isfinite(known), z, last if layout.holds else 0.0)


def effects(layout: Layout, design: str) -> Int[np.ndarray, " D"]:
    """Which effect each regressor belongs to: constant, lag, week lag, weekday, year, then those of known columns."""
    seasonal = layout.season > 1
    groups = [0, *([1] if seasonal else []), *([2] if layout.week else [])]
    groups += [*([3] * layout.weekdays), *([4] * layout.years)]
    if design == "linear":
        groups += [5 + column for column in range(layout.known)]
    if design == "bends":
        for column in range(layout.known):
            groups += [5 + 2 * column] * (1 + len(QUANTILES)) + [6 + 2 * column] * layout.known_rates.size
    return np.unique(groups, return_inverse=True)[1] if design != "constant" else np.zeros(1, int)


def _designs(
    layout: Layout, lag: Array, week_lag: Array, calendar: Array, z: Array, smooth: Array, scale: Scale
) -> dict[str, Array]:
    """Regressors by name: a constant alone; the design of the clock; that and known columns, as lines or with bends."""
    columns = [jnp.ones_like(lag)]
    if layout.season > 1:
        columns.append(jnp.where(jnp.isnan(lag), 0.0, lag))
    if layout.week:
        columns.append(jnp.where(jnp.isnan(week_lag), 0.0, week_lag))
    design = jnp.concatenate([jnp.stack(columns, axis=1), calendar], axis=1)
    bends = jnp.maximum(z[:, :, None] - scale.knots[None], 0.0)
    columns = jnp.concatenate([z[:, :, None], bends, smooth], axis=2)
    return {
        "constant": design[:, :1],
        "clock": design,
        "linear": jnp.concatenate([design, z], axis=1),
        "bends": jnp.concatenate([design, columns.reshape(len(z), -1)], axis=1),
    }


def _smooth_ahead(layout: Layout, history: History, z: Float[Array, "N F"]) -> Float[Array, "H F R"]:
    """The running means of known columns at the targets, which go on through all rows up to there."""
    at, smooth = np.asarray(layout.steps) - 1, []
    if not layout.known:
        return jnp.zeros((at.size, 0, layout.known_rates.size))
    power = at[:, None] - np.arange(layout.furthest)
    for rate, sums, weight in zip(layout.known_rates, history.known_means, history.known_weights, strict=True):
        decay = jnp.asarray(np.where(power >= 0, rate * (1.0 - rate) ** np.maximum(power, 0), 0.0))
        left = jnp.asarray((1.0 - rate) ** (at + 1.0))[:, None]
        total = left * weight + jnp.sum(decay, axis=1, keepdims=True)
        smooth.append((left * sums[None] + jnp.sum(decay[:, :, None] * z[None], axis=1)) / total)
    return jnp.stack(smooth, axis=-1) if smooth else jnp.zeros((at.size, layout.known, 0))
