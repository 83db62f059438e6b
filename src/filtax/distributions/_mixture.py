"""The forecast of several hypotheses: their average, weighted by their probabilities."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.nn import logsumexp
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Key, PyTree

from filtax import _validation as checks
from filtax.distributions._numerics import at_each, bisect, central
from filtax.protocols import Module


class Mixture(Module):
    """Weighted average of C forecasts: `parts` is a distribution with a leading axis C, the weights sum to one.

    Probabilities are averaged, not logits or means: eq:bone-prediction with the spread between hypotheses.

    >>> from filtax.distributions import Normal
    >>> both = Normal(jnp.array([[0.0], [2.0]]), jnp.ones((2, 1, 1)), scalar=True)
    >>> Mixture(both, jnp.log(jnp.array([0.5, 0.5]))).var.item()
    2.0
    """

    parts: PyTree
    log_weight: Float[Array, "*H C"]

    @property
    def mean(self) -> Array:
        """Weighted mean of the parts."""
        return self._each(lambda one: one._average(one.parts.mean))

    @property
    def var(self) -> Array:
        """Mean of the variances plus variance of the means."""
        return self._each(lambda one: one._average(one.parts.var + one._gap**2))

    @property
    def cov(self) -> Array:
        """Mean of the covariances plus covariance of the means."""

        def total(one: "Mixture") -> Array:
            gap = one._gap
            return one._average(one.parts.cov + (gap[:, :, None] * gap[:, None, :] if gap.ndim > 1 else gap**2))

        return self._each(total)

    def cdf(self, y: ArrayLike) -> Array:
        """Probability that each output is at most y."""
        y = at_each(y, self.mean)
        return self._each(lambda one, y: one._average(jax.vmap(lambda part: part.cdf(y))(one.parts)), y)

    def interval(self, level: float = 0.9) -> tuple[Array, Array]:
        """Central interval of each output, by bisection between the extremes of the parts' own intervals."""
        low, high = self.parts.interval(level)
        at = self.log_weight.ndim - 1
        low, high = jnp.min(low, axis=at), jnp.max(high, axis=at)
        lower, upper = jax.vmap(lambda tail: self._quantile(tail, low, high))(jnp.asarray(central(level), low.dtype))
        return lower, upper

    def sample(self, key: Key[Array, ""]) -> Array:
        """Draw one y: first a hypothesis, then from its forecast."""
        checks.key("sample(key=...)", key)

        def draw(one: "Mixture", key: Array) -> Array:
            part_key, value_key = jax.random.split(key)
            chosen = jax.random.categorical(part_key, one.log_weight)
            return jax.tree.map(lambda leaf: leaf[chosen], one.parts).sample(value_key)

        lead = self.log_weight.shape[:-1]
        return self._each(draw, jax.random.split(key, lead) if lead else key)

    def log_prob(self, y: ArrayLike, mask: Array | None = None) -> Array:
        """Log density of the average; a wholly masked y gives exactly 0."""
        y = self._rows("y", y)
        if mask is None:
            return self._each(lambda one, y: one._log_density(y, None), y)
        return self._each(lambda one, y, mask: one._log_density(y, mask), y, self._rows("mask", mask))

    def _rows(self, name: str, value: ArrayLike) -> Array:
        """One y, or one mask, for each mixture along the leading axis; the parts check its shape."""
        array, lead = checks.numeric(f"log_prob: {name}", value), self.log_weight.shape[:-1]
        if array.shape[: len(lead)] != lead:
            raise ValueError(
                f"log_prob: {name} has shape {array.shape} but there are {lead[0]} rows of forecasts; give one each."
            )
        return jnp.asarray(array)

    def _each(self, function: Callable, *arguments: Array) -> Array:
        """Apply a function to the mixture, or to each of those along leading axes."""
        if self.log_weight.ndim == 1:
            return function(self, *arguments)
        return jax.vmap(lambda one, *rest: one._each(function, *rest))(self, *arguments)

    def _average(self, values: Array) -> Array:
        weight = jnp.exp(self.log_weight).reshape((-1,) + (1,) * (values.ndim - 1))
        return jnp.sum(weight * jnp.where(weight > 0.0, values, 0.0), axis=0)  # 0 times an infinite variance is 0

    @property
    def _gap(self) -> Array:
        return self.parts.mean - self.mean[None]

    def _log_density(self, y: Array, mask: Array | None) -> Array:
        value = logsumexp(self.log_weight + jax.vmap(lambda part: part.log_prob(y, mask))(self.parts))
        # weights sum to one only up to rounding, and a missing datum must add exactly 0
        return value if mask is None else jnp.where(jnp.any(mask), value, 0.0)

    def _quantile(self, probability: Array, low: Array, high: Array) -> Array:
        found = bisect(lambda y: self.cdf(y) >= probability, low, high, 80)[1]
        return jnp.where(self.cdf(low) >= probability, low, found)  # a mixture of counts may start there
