r"""Residual heads: what the latest errors say about the next ones, $y_{t+h} = f_{t+h} + W_h x_t$.

The regressors $x_t$ do not depend on the horizon, so that all H heads share one covariance and one gain. The gain is
kept with the forecast; head h uses it when its target arrives, h rows later. That is recursive least squares with a
delay, at the price of one filter. A drift relative to the size of each regressor keeps the covariance positive.

Axes: N experts, H horizons, L origins that wait for a target, D regressors.
"""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from filtax.beliefs import Covariance
from filtax.forecasting._experts import clip
from filtax.protocols import pytree

DRIFT = 1e-6  # variance that an origin adds to a weight, relative to the mean square of its regressor
WIDEST = 1e-2  # and the most that it adds


@pytree
class Heads:
    """The weights of all heads of N experts, and the gains that wait for their targets.

    Attributes:
        weights: (N, H, D).
        belief: N beliefs about the weights of a head, of which only the covariance counts.
        square: (N, D) running mean square of the regressors.
        usual: (N, H) usual size of the errors.
        base, regressors, gains: What was issued at the last L origins: (L, N, H), (L, N, D), (L, N, D).
    """

    weights: Float[Array, "N H D"]
    belief: Covariance
    square: Float[Array, "N D"]
    usual: Float[Array, "N H"]
    base: Float[Array, "L N H"]
    regressors: Float[Array, "L N D"]
    gains: Float[Array, "L N D"]

    @classmethod
    def start(cls, N: int, H: int, D: int, waiting: int) -> "Heads":
        """Weights of zero with variance one."""
        one = Covariance.start(jnp.zeros(D), jnp.ones(D))
        belief = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (N, *leaf.shape)), one)
        parts = (jnp.zeros((N, D)), jnp.zeros((N, H)), jnp.full((waiting, N, H), jnp.nan))
        return cls(jnp.zeros((N, H, D)), belief, *parts, jnp.zeros((waiting, N, D)), jnp.zeros((waiting, N, D)))

    def correct(self, base: Float[Array, "N H"], x: Float[Array, "N D"]) -> Float[Array, "N H"]:
        """The forecasts of the experts with what their errors say."""
        return base + jnp.sum(self.weights * x[:, None, :], axis=2)

    def issue(
        self, place: Int[Array, ""], origins: Int[Array, ""], base: Array, x: Array, on: Bool[Array, ""]
    ) -> "Heads":
        """Keep what was issued at an origin, with the gain that it gets; nothing happens unless `on`."""
        rate = jnp.maximum(1e-3, 1.0 / (origins.astype(x.dtype) + 1.0))
        square = self.square + rate * (x * x - self.square)
        drift = jnp.minimum(DRIFT / (square + 1e-9), WIDEST)
        gains, wider = jax.vmap(_absorb)(self.belief, x, drift)
        keep = partial(jnp.where, on)
        return replace(
            self,
            belief=jax.tree.map(keep, wider, self.belief),
            square=keep(square, self.square),
            base=self.base.at[place].set(keep(base, jnp.nan)),
            regressors=self.regressors.at[place].set(x),
            gains=self.gains.at[place].set(gains),
        )

    def learn(self, places: Int[Array, " H"], z: Float[Array, ""]) -> "Heads":
        """Give the target of a row to the forecasts that were issued for it, one for each horizon."""
        H = places.size
        base = self.base[places, :, jnp.arange(H)].T
        x, gains = (jnp.moveaxis(part[places], 0, 1) for part in (self.regressors, self.gains))
        error = z - base - jnp.sum(self.weights * x, axis=2)
        bounded, usual = clip(error, self.usual)
        known = ~jnp.isnan(error)
        weights = self.weights + jnp.where(known, bounded, 0.0)[:, :, None] * gains
        return replace(self, weights=weights, usual=jnp.where(known, usual, self.usual))


def _absorb(belief: Covariance, x: Float[Array, " D"], drift: Float[Array, " D"]) -> tuple[Array, Covariance]:
    """Gain of an origin, and the belief after it.

    Conditioning N(0, P) on a residual of 1 moves the mean by the gain.
    """
    after = belief.condition(x[None], jnp.ones((1, 1)), jnp.ones(1)).belief
    return after.mean, Covariance(belief.mean, after.cov).add(drift)
