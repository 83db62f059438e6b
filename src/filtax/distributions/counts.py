"""The forecast of a count whose rate has a Gamma belief: negative binomial."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.special import betainc, gammaln
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Key

from filtax.distributions.shape import central, outward, whole_quantile

__all__ = ["NegativeBinomial"]


class NegativeBinomial(eqx.Module):
    """Poisson averaged over Gamma(count, exposure), for O independent outputs.

    >>> NegativeBinomial(jnp.array([2.0]), jnp.array([1.0]), scalar=True).mean.item()
    2.0
    """

    count: Float[Array, "*H O"]
    exposure: Float[Array, "*H O"]
    scalar: bool = eqx.field(static=True, default=False)

    @property
    def mean(self) -> Array:
        """Expected count."""
        return outward(self.count / self.exposure, self.scalar)

    @property
    def var(self) -> Array:
        """Variance of the count."""
        return outward(self.count / self.exposure * (1.0 + 1.0 / self.exposure), self.scalar)

    @property
    def cov(self) -> Array:
        """Covariance, diagonal."""
        return self.var if self.scalar else self.var[..., None] * jnp.eye(self.count.shape[-1], dtype=self.count.dtype)

    def cdf(self, y: ArrayLike) -> Array:
        """Probability that each count is at most y."""
        y = jnp.asarray(y, self.count.dtype)
        whole = jnp.floor(jnp.maximum(y[..., None] if self.scalar else y, 0.0))
        stay = self.exposure / (1.0 + self.exposure)
        shape = jnp.broadcast_shapes(whole.shape, self.count.shape)
        count, tail, stay = (jnp.broadcast_to(a, shape) for a in (self.count, whole + 1.0, stay))
        return jnp.where(y < 0.0, 0.0, outward(betainc(count, tail, stay), self.scalar))

    def interval(self, level: float = 0.9) -> tuple[Array, Array]:
        """Central interval of each count: the smallest whole numbers that reach the tail probabilities."""
        far = jnp.ceil(self.mean + 10.0 * jnp.sqrt(self.var / (1.0 - level)) + 10.0)  # beyond by Chebyshev
        lower, upper = (whole_quantile(self.cdf, tail, far) for tail in central(level))
        return lower, upper

    def sample(self, key: Key[Array, ""]) -> Array:
        """Draw one y: first the rate, then the count."""
        of_rate, of_count = jax.random.split(key)
        rate = jax.random.gamma(of_rate, self.count, dtype=self.count.dtype) / self.exposure
        return outward(jax.random.poisson(of_count, rate).astype(rate.dtype), self.scalar)

    def log_prob(self, y: ArrayLike, mask: Array | None = None) -> Array:
        """Log probability of y; masked outputs are left out."""
        y = jnp.asarray(y, self.count.dtype).reshape(self.count.shape)
        a, b = self.count, self.exposure
        each = gammaln(a + y) - gammaln(a) - gammaln(y + 1.0) - a * jnp.log1p(1.0 / b) - y * jnp.log1p(b)
        return jnp.sum(each if mask is None else jnp.where(mask, each, 0.0), axis=-1)
