r"""Intervals that are right in the long run: conformal quantiles for each horizon and slot.

The width is a running absolute error times the ratio of the slot, times a multiplier for each side. Log multipliers
move by $\eta_t(\text{missed} - \alpha/2)/h^{1/4}$, where a miss is judged by the interval that was issued. The steps
telescope, so the share of misses of each side tends to α/2 whatever the width does (Gibbs and Candès, 2021).

Axes: H horizons, S slots, L origins that wait for a target.
"""

import math

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from filtax.forecasting._layout import Layout
from filtax.protocols import pytree

STEP = 0.1  # of a log multiplier
LIMIT = 30.0  # of a log multiplier: beyond any that data ask for
ERROR_RATE = 0.05  # of the running error
SLOT_RATE = 0.03  # of the ratio of a slot


@pytree
class Calibration:
    """Log multipliers and scales.

    Attributes:
        lower, upper: (H,) log multipliers of the two sides.
        error: (H,) running absolute error.
        count: (H,) errors so far.
        ratio, visits: (H, S) error of a slot relative to the running error, and how often it was seen.
        low, high: (L, H) intervals at the last origins.
    """

    lower: Float[Array, " H"]
    upper: Float[Array, " H"]
    error: Float[Array, " H"]
    count: Float[Array, " H"]
    ratio: Float[Array, "H S"]
    visits: Float[Array, "H S"]
    low: Float[Array, "L H"]
    high: Float[Array, "L H"]

    @classmethod
    def start(cls, layout: Layout) -> "Calibration":
        """Intervals of twice the running error."""
        H, S, L = len(layout.steps), layout.bins, layout.furthest
        two, none = jnp.zeros(H) + math.log(2.0), jnp.full((L, H), jnp.nan)
        return cls(two, two, jnp.zeros(H), jnp.zeros(H), jnp.ones((H, S)), jnp.zeros((H, S)), none, none)

    def interval(self, issued: Float[Array, " H"], bins: Int[Array, " H"]) -> tuple[Array, Array]:
        """Lower and upper bounds; NaN before the first error."""
        ratio = jnp.maximum(self.ratio[jnp.arange(bins.size), bins], 0.1)
        width = jnp.where(self.count > 0.0, self.error * ratio, jnp.nan)
        return issued - jnp.exp(self.lower) * width, issued + jnp.exp(self.upper) * width

    def issue(self, place: Int[Array, ""], low: Array, high: Array) -> "Calibration":
        """Keep the intervals of an origin."""
        kept = (self.low.at[place].set(low), self.high.at[place].set(high))
        return Calibration(self.lower, self.upper, self.error, self.count, self.ratio, self.visits, *kept)

    def learn(
        self, layout: Layout, places: Int[Array, " H"], here: Int[Array, ""], z: Array, issued: Array, miss: float
    ) -> "Calibration":
        """Judge the intervals that were issued for a row.

        Args:
            layout: Shape of the pipeline.
            places: Where the forecasts for this row are kept.
            here: Slot of the row.
            z: The target.
            issued: (H,) what was forecast.
            miss: Share of rows that may lie outside, half of it on each side.
        """
        head = jnp.arange(places.size)
        low, high = self.low[places, head], self.high[places, head]
        error = jnp.abs(z - issued)
        known = ~jnp.isnan(error)
        count = self.count + known.astype(error.dtype)
        usual = jnp.maximum(count, 1.0)
        delay = np.maximum(1.0, np.asarray(layout.steps) / layout.stride) ** 0.25
        step = jnp.where(known & ~jnp.isnan(low), jnp.maximum(STEP, jnp.minimum(0.3, 5.0 / usual)) / delay, 0.0)
        upper = jnp.clip(self.upper + step * (jnp.where(z > high, 1.0, 0.0) - 0.5 * miss), -LIMIT, LIMIT)
        lower = jnp.clip(self.lower + step * (jnp.where(z < low, 1.0, 0.0) - 0.5 * miss), -LIMIT, LIMIT)
        running = jnp.where(count == 1.0, error, self.error)
        seen = self.visits[:, here] + (known & (running > 0.0)).astype(error.dtype)
        relative = jnp.minimum(error / jnp.where(running > 0.0, running, 1.0), 10.0)
        rate = jnp.maximum(SLOT_RATE, 1.0 / (seen + 5.0))
        ratio = self.ratio[:, here]
        ratio = jnp.where(known & (running > 0.0), ratio + rate * (relative - ratio), ratio)
        bounded = jnp.where(running > 0.0, jnp.minimum(error, 10.0 * running), error)
        running = running + jnp.maximum(ERROR_RATE, 1.0 / usual) * (bounded - running)
        return Calibration(
            lower,
            upper,
            jnp.where(known, running, self.error),
            count,
            self.ratio.at[:, here].set(ratio),
            self.visits.at[:, here].set(seen),
            self.low,
            self.high,
        )
