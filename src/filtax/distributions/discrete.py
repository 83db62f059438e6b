"""Forecasts of labels and counts, averaged over what is not known of the natural parameter."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.nn import logsumexp
from jax.scipy.special import gammaincc, gammaln
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Key

from filtax.distributions.shape import central, normal_rule, outward, whole_quantile

__all__ = ["Bernoulli", "Categorical", "Poisson"]


class Bernoulli(eqx.Module):
    """Probabilities of yes and of no for O outputs; both logs are kept, so neither tail is lost.

    >>> coin = Bernoulli(jnp.log(jnp.array([0.25])), jnp.log(jnp.array([0.75])), scalar=True)
    >>> round(coin.var.item(), 4)
    0.1875
    """

    log_yes: Float[Array, "*H O"]
    log_no: Float[Array, "*H O"]
    scalar: bool = eqx.field(static=True, default=False)

    @property
    def mean(self) -> Array:
        """Probability of a one."""
        return outward(jnp.exp(self.log_yes), self.scalar)

    @property
    def var(self) -> Array:
        """Variance p (1 - p) of each output."""
        return outward(jnp.exp(self.log_yes + self.log_no), self.scalar)

    @property
    def cov(self) -> Array:
        """Covariance, (O, O): outputs are forecast one by one, so it is diagonal."""
        return self.var if self.scalar else _diagonal(self.var)

    def interval(self, level: float = 0.9) -> tuple[Array, Array]:
        """Central interval of each output: its ends are 0 or 1."""
        low, high = (jnp.log(jnp.asarray(tail, self.log_no.dtype)) for tail in central(level))
        ends = (self.log_no < low, self.log_no < high)
        lower, upper = (outward(end.astype(self.log_no.dtype), self.scalar) for end in ends)
        return lower, upper

    def cdf(self, y: ArrayLike) -> Array:
        """Probability that each output is at most y."""
        y = jnp.asarray(y, self.log_no.dtype)
        no = outward(jnp.exp(self.log_no), self.scalar)
        return jnp.where(y < 0.0, 0.0, jnp.where(y < 1.0, no, 1.0))

    def sample(self, key: Key[Array, ""]) -> Array:
        """Draw one y of zeros and ones."""
        draw = jax.random.uniform(key, self.log_yes.shape, self.log_yes.dtype)
        return outward((jnp.log(draw) < self.log_yes).astype(self.log_yes.dtype), self.scalar)

    def log_prob(self, y: ArrayLike, mask: Array | None = None) -> Array:
        """Log probability of y; masked outputs are left out."""
        y = jnp.asarray(y, self.log_yes.dtype).reshape(self.log_yes.shape)
        each = jnp.where(y > 0.5, self.log_yes, self.log_no)
        return jnp.sum(each if mask is None else jnp.where(mask, each, 0.0), axis=-1)


class Categorical(eqx.Module):
    """Probabilities of O classes; y is the index of a class.

    >>> Categorical(jnp.log(jnp.array([0.2, 0.8]))).log_prob(1).round(4).item()
    -0.2231...
    """

    log_probability: Float[Array, "*H O"]

    @property
    def mean(self) -> Array:
        """Probability of each class, (O,); sums to one."""
        return jnp.exp(self.log_probability)

    @property
    def var(self) -> Array:
        """Variance of each class indicator."""
        return self.mean * (1.0 - self.mean)

    @property
    def cov(self) -> Array:
        """Covariance of the class indicators, diag(p) - p pᵀ."""
        return _diagonal(self.mean) - self.mean[..., :, None] * self.mean[..., None, :]

    def interval(self, level: float = 0.9) -> tuple[Array, Array]:
        """Refuse: labels have no order."""
        raise ValueError(
            f"interval({level}) of a class label: labels have no order; use .mean, the class probabilities."
        )

    def cdf(self, y: ArrayLike) -> Array:
        """Refuse: labels have no order."""
        raise ValueError("cdf of a class label: labels have no order; use .mean, the class probabilities.")

    def sample(self, key: Key[Array, ""]) -> Array:
        """Draw one class index."""
        return jax.random.categorical(key, self.log_probability)

    def log_prob(self, y: ArrayLike, mask: Array | None = None) -> Array:
        """Log probability of the class y; exactly 0 where it is masked."""
        y = jnp.asarray(y).reshape(self.log_probability.shape[:-1])
        index = jnp.clip(jnp.nan_to_num(y), 0, self.log_probability.shape[-1] - 1).astype(int)
        value = jnp.take_along_axis(self.log_probability, index[..., None], axis=-1)[..., 0]
        return value if mask is None else jnp.where(mask[..., 0], value, 0.0)


class Poisson(eqx.Module):
    """Counts whose log rate is only known up to a normal error: a mixture of S Poissons for each output.

    >>> sure = Poisson(jnp.full((1, 20), jnp.log(3.0)), scalar=True)
    >>> round(sure.mean.item(), 4), round(sure.var.item(), 4)
    (3.0, 3.0)
    """

    log_rate: Float[Array, "*H O S"]
    scalar: bool = eqx.field(static=True, default=False)

    @property
    def _weight(self) -> Array:
        return jnp.asarray(normal_rule(self.log_rate.shape[-1])[1], self.log_rate.dtype)

    @property
    def mean(self) -> Array:
        """Expected count."""
        return outward(jnp.exp(self.log_rate) @ self._weight, self.scalar)

    @property
    def var(self) -> Array:
        """Variance of the count: mean rate plus variance of the rate."""
        rate = jnp.exp(self.log_rate)
        mean = rate @ self._weight
        return outward(mean + ((rate - mean[..., None]) ** 2) @ self._weight, self.scalar)

    @property
    def cov(self) -> Array:
        """Covariance, (O, O): outputs are forecast one by one, so it is diagonal."""
        return self.var if self.scalar else _diagonal(self.var)

    def cdf(self, y: ArrayLike) -> Array:
        """Probability that each count is at most y."""
        y = jnp.asarray(y, self.log_rate.dtype)
        count = jnp.floor(jnp.maximum(y[..., None] if self.scalar else y, 0.0))[..., None]
        tail = gammaincc(jnp.broadcast_to(count + 1.0, self.log_rate.shape), jnp.exp(self.log_rate))
        return jnp.where(y < 0.0, 0.0, outward(tail @ self._weight, self.scalar))

    def interval(self, level: float = 0.9) -> tuple[Array, Array]:
        """Central interval of each count: the smallest whole numbers that reach the tail probabilities."""
        far = jnp.ceil(self.mean + 10.0 * jnp.sqrt(self.var / (1.0 - level)) + 10.0)  # beyond by Chebyshev
        lower, upper = (whole_quantile(self.cdf, tail, far) for tail in central(level))
        return lower, upper

    def sample(self, key: Key[Array, ""]) -> Array:
        """Draw one y: first the rate, then the count."""
        of_rate, of_count = jax.random.split(key)
        shape = self.log_rate.shape[:-1]
        node = jax.random.choice(of_rate, self._weight.size, shape, p=self._weight)
        rate = jnp.exp(jnp.take_along_axis(self.log_rate, node[..., None], axis=-1)[..., 0])
        return outward(jax.random.poisson(of_count, rate).astype(rate.dtype), self.scalar)

    def log_prob(self, y: ArrayLike, mask: Array | None = None) -> Array:
        """Log probability of y; masked outputs are left out."""
        y = jnp.asarray(y, self.log_rate.dtype).reshape(self.log_rate.shape[:-1])[..., None]
        each = y * self.log_rate - jnp.exp(self.log_rate) - gammaln(y + 1.0)
        each = logsumexp(each + jnp.log(self._weight), axis=-1)
        return jnp.sum(each if mask is None else jnp.where(mask, each, 0.0), axis=-1)


def _diagonal(values: Array) -> Array:
    return values[..., :, None] * jnp.eye(values.shape[-1], dtype=values.dtype)
