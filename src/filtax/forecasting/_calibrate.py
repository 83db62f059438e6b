r"""Intervals that are right in the long run: conformal quantiles for each horizon and slot.

The width is a running error times the ratio of the slot, times a multiplier for each side. The running error is the
geometric mean of one over 20 and one over 200 rows: far ahead the size of an error returns to its usual value. Log
multipliers move by $\eta(\text{missed} - \alpha/2)/\sqrt{h}$, where a miss is judged by the interval that was issued.
The steps telescope, so the share of misses of each side tends to α/2 whatever the width does (Gibbs and Candès, 2021).

Axes: H horizons, S slots, L origins that wait for a target.
"""

import math
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from filtax.forecasting._layout import Layout
from filtax.protocols import pytree

STEP = 0.25  # of a log multiplier, one row ahead
LIMIT = 30.0  # of a log multiplier: beyond any that data ask for
RATE, SLOW = 0.05, 0.005  # of the running errors
BOUND, SLOW_BOUND = 10.0, 1000.0  # running errors that one error counts for at most
SLOT_RATE, SLOT_PRIOR = 0.01, 15.0  # of the ratio of a slot, and the errors that its first value counts for


@pytree
class Calibration:
    """Log multipliers and scales.

    Attributes:
        lower, upper: (H,) log multipliers of the two sides.
        error, slow: (H,) running absolute errors over few rows and over many.
        count: (H,) errors so far.
        ratio, visits: (H, S) error of a slot relative to the running error, and how often it was seen.
        low, high: (L, H) intervals at the last origins.
    """

    lower: Float[Array, " H"]
    upper: Float[Array, " H"]
    error: Float[Array, " H"]
    slow: Float[Array, " H"]
    count: Float[Array, " H"]
    ratio: Float[Array, "H S"]
    visits: Float[Array, "H S"]
    low: Float[Array, "L H"]
    high: Float[Array, "L H"]

    @classmethod
    def start(cls, layout: Layout) -> "Calibration":
        """Intervals of twice the running error."""
        H, S, L = len(layout.steps), layout.bins, layout.furthest
        zero, two, none = jnp.zeros(H), jnp.zeros(H) + math.log(2.0), jnp.full((L, H), jnp.nan)
        return cls(two, two, zero, zero, zero, jnp.ones((H, S)), jnp.zeros((H, S)), none, none)

    def interval(self, issued: Float[Array, " H"], bins: Int[Array, " H"]) -> tuple[Array, Array]:
        """Lower and upper bounds; NaN before the first error."""
        ratio = jnp.maximum(self.ratio[jnp.arange(bins.size), bins], 0.1)
        width = jnp.where(self.count > 0.0, jnp.sqrt(self.error) * jnp.sqrt(self.slow) * ratio, jnp.nan)
        return issued - jnp.exp(self.lower) * width, issued + jnp.exp(self.upper) * width

    def issue(self, place: Int[Array, ""], low: Array, high: Array) -> "Calibration":
        """Keep the intervals of an origin."""
        return replace(self, low=self.low.at[place].set(low), high=self.high.at[place].set(high))

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
        step = STEP / np.sqrt(np.maximum(1.0, np.asarray(layout.steps) / layout.stride))
        step = jnp.where(known & ~jnp.isnan(low), step, 0.0)
        upper = jnp.clip(self.upper + step * (jnp.where(z > high, 1.0, 0.0) - 0.5 * miss), -LIMIT, LIMIT)
        lower = jnp.clip(self.lower + step * (jnp.where(z < low, 1.0, 0.0) - 0.5 * miss), -LIMIT, LIMIT)
        count = self.count + known.astype(error.dtype)
        running = jnp.where(count == 1.0, error, self.error)
        seen = known & (running > 0.0)
        visits = self.visits[:, here] + seen.astype(error.dtype)
        relative = jnp.minimum(error / jnp.where(running > 0.0, running, 1.0), 10.0)
        ratio = self.ratio[:, here]
        rate = jnp.maximum(SLOT_RATE, 1.0 / (visits + SLOT_PRIOR))
        return replace(
            self,
            lower=lower,
            upper=upper,
            error=_run(self.error, error, count, RATE, BOUND),
            slow=_run(self.slow, error, count, SLOW, SLOW_BOUND),
            count=count,
            ratio=self.ratio.at[:, here].set(jnp.where(seen, ratio + rate * (relative - ratio), ratio)),
            visits=self.visits.at[:, here].set(visits),
        )


def _run(before: Array, error: Array, count: Array, rate: float, bound: float) -> Float[Array, " H"]:
    """A running mean after the count-th error, which is bounded; nothing happens where it is missing."""
    running = jnp.where(count == 1.0, error, before)
    bounded = jnp.where(running > 0.0, jnp.minimum(error, bound * running), error)
    moved = running + jnp.maximum(rate, 1.0 / jnp.maximum(count, 1.0)) * (bounded - running)
    return jnp.where(jnp.isnan(error), before, moved)
