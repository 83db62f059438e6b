"""The forecast of several hypotheses at once: their average, weighted by how probable each is."""

import jax
import jax.numpy as jnp
from jax.nn import logsumexp
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Key, PyTree

from filtax.distributions.shape import central
from filtax.module import Module

__all__ = ["Mixture"]


class Mixture(Module):
    """Average of C forecasts (a distribution with a leading axis C), under weights that sum to one.

    Probabilities are averaged, never logits or means alone: eq:bone-prediction with the spread between hypotheses.

    >>> from filtax.distributions import Normal
    >>> both = Normal(jnp.array([[0.0], [2.0]]), jnp.ones((2, 1, 1)), scalar=True)
    >>> Mixture(both, jnp.log(jnp.array([0.5, 0.5]))).var.item()
    2.0
    """

    parts: PyTree
    log_weight: Float[Array, " C"]

    def _average(self, values: Array) -> Array:
        return jnp.tensordot(jnp.exp(self.log_weight), values, axes=1)

    @property
    def mean(self) -> Array:
        """Weighted mean of the parts."""
        return self._average(self.parts.mean)

    @property
    def var(self) -> Array:
        """Mean of the variances plus variance of the means."""
        return self._average(self.parts.var + (self.parts.mean - self.mean[None]) ** 2)

    @property
    def cov(self) -> Array:
        """Mean of the covariances plus covariance of the means."""
        gap = self.parts.mean - self.mean[None]
        between = gap[:, :, None] * gap[:, None, :] if gap.ndim > 1 else gap**2
        return self._average(self.parts.cov + between)

    def cdf(self, y: ArrayLike) -> Array:
        """Probability that each output is at most y."""
        return self._average(jax.vmap(lambda part: part.cdf(y))(self.parts))

    def interval(self, level: float = 0.9) -> tuple[Array, Array]:
        """Central interval of each output, by bisection between the extremes of the parts' own intervals."""
        low, high = jax.vmap(lambda part: part.interval(level))(self.parts)
        ends = (jnp.min(low, axis=0), jnp.max(high, axis=0))
        lower, upper = (self._quantile(tail, *ends) for tail in central(level))
        return lower, upper

    def _quantile(self, probability: float, low: Array, high: Array) -> Array:
        def halve(_: Array, bounds: tuple[Array, Array]) -> tuple[Array, Array]:
            low, high = bounds
            middle = 0.5 * (low + high)
            above = self.cdf(middle) > probability
            return jnp.where(above, low, middle), jnp.where(above, middle, high)

        low, high = jax.lax.fori_loop(0, 80, halve, (low, high))
        return 0.5 * (low + high)

    def sample(self, key: Key[Array, ""]) -> Array:
        """Draw one y: first a hypothesis, then from its forecast."""
        of_part, of_value = jax.random.split(key)
        chosen = jax.random.categorical(of_part, self.log_weight)
        return jax.tree.map(lambda leaf: leaf[chosen], self.parts).sample(of_value)

    def log_prob(self, y: ArrayLike, mask: Array | None = None) -> Array:
        """Log density of the average; a wholly masked y gives exactly 0."""
        value = logsumexp(self.log_weight + jax.vmap(lambda part: part.log_prob(y, mask))(self.parts))
        # normalised weights sum to one only up to rounding, and a missing datum must add exactly nothing
        return value if mask is None else jnp.where(jnp.any(mask), value, 0.0)
