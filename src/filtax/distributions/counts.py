"""Forecasts of counts, averaged over what is not known of the rate: a log-normal or a Gamma belief."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.special import betainc
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Key

from filtax import checks
from filtax.distributions.rates import gamma_odds, log_average, log_gamma_exceeds, log_mass
from filtax.distributions.shape import at_each, at_one, diagonal, outward, whole_interval
from filtax.distributions.special import cap, exceeds, log_peak
from filtax.module import Module

__all__ = ["NegativeBinomial", "Poisson"]


class Poisson(Module):
    """Counts whose log rate is N(log_rate, sd²), for O independent outputs; `sd` None says that the rate is known.

    >>> sure = Poisson(jnp.log(jnp.array([3.0])), jnp.zeros(1), scalar=True)
    >>> round(sure.mean.item(), 4), round(sure.var.item(), 4)
    (3.0, 3.0)
    """

    log_rate: Float[Array, "*H O"]
    sd: Float[Array, "*H O"] | None
    scalar: bool = eqx.field(static=True, default=False)

    @property
    def mean(self) -> Array:
        """Expected count; held at the largest number that can still be squared."""
        return outward(self._exp(self.log_rate + 0.5 * self._sd * self._sd), self.scalar)

    @property
    def var(self) -> Array:
        """Variance of the count: mean rate plus variance of the rate."""
        v = self._sd * self._sd
        safe = jnp.where(v > 0.0, v, 1.0)
        of_rate = self._exp(2.0 * self.log_rate + 2.0 * safe + jnp.log(-jnp.expm1(-safe)))
        return outward(self._exp(self.log_rate + 0.5 * v) + jnp.where(v > 0.0, of_rate, 0.0), self.scalar)

    @property
    def cov(self) -> Array:
        """Covariance, (O, O): outputs are forecast one by one, so it is diagonal."""
        return self.var if self.scalar else diagonal(self.var)

    def cdf(self, y: ArrayLike) -> Array:
        """Probability that each count is at most y."""
        y = at_each(y, outward(self.log_rate, self.scalar))
        whole = jnp.floor(jnp.maximum(y[..., None] if self.scalar else y, 0.0))
        a = jnp.broadcast_to(whole + 1.0, self.log_rate.shape)
        return jnp.where(y < 0.0, 0.0, outward(log_gamma_exceeds(a, self.log_rate, self._sd), self.scalar))

    def interval(self, level: float = 0.9) -> tuple[Array, Array]:
        """Central interval of each count: the smallest whole numbers that reach the tail probabilities."""
        far = jnp.ceil(self.mean + 10.0 * jnp.sqrt(self.var / (1.0 - level)) + 10.0)  # beyond by Chebyshev
        return whole_interval(self.cdf, level, far)

    def sample(self, key: Key[Array, ""]) -> Array:
        """Draw one y: first the rate, then the count."""
        checks.key("sample(key=...)", key)
        of_rate, of_count = jax.random.split(key)
        noise = jax.random.normal(of_rate, self.log_rate.shape, self.log_rate.dtype)
        return outward(_draw(of_count, self._exp(self.log_rate + self._sd * noise)), self.scalar)

    def log_prob(self, y: ArrayLike, mask: Array | None = None) -> Array:
        """Log probability of y; masked outputs are left out, and what is no count has probability 0."""
        y, mask = at_one(y, mask, self.log_rate)
        if self.sd is None:
            return _total(y, lambda whole: _log_known(whole, self.log_rate), mask)
        return _total(y, lambda whole: log_average(whole, self.log_rate, self._sd), mask)

    @property
    def _sd(self) -> Array:
        return jnp.zeros_like(self.log_rate) if self.sd is None else self.sd

    def _exp(self, value: Array) -> Array:
        return jnp.exp(jnp.minimum(value, cap(value.dtype)))


class NegativeBinomial(Module):
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
        return self.var if self.scalar else diagonal(self.var)

    def cdf(self, y: ArrayLike) -> Array:
        """Probability that each count is at most y."""
        y = at_each(y, outward(self.count, self.scalar))
        whole = jnp.floor(jnp.maximum(y[..., None] if self.scalar else y, 0.0))
        shape = jnp.broadcast_shapes(whole.shape, self.count.shape)
        a, b, c = (jnp.broadcast_to(part, shape) for part in (self.count, self.exposure, whole + 1.0))
        large = exceeds(jnp.maximum(a, c))
        plain = betainc(jnp.where(large, 1.0, a), jnp.where(large, 1.0, c), b / (1.0 + b))
        return jnp.where(y < 0.0, 0.0, outward(jnp.where(large, gamma_odds(a, b, c), plain), self.scalar))

    def interval(self, level: float = 0.9) -> tuple[Array, Array]:
        """Central interval of each count: the smallest whole numbers that reach the tail probabilities."""
        far = jnp.ceil(self.mean + 10.0 * jnp.sqrt(self.var / (1.0 - level)) + 10.0)  # beyond by Chebyshev
        return whole_interval(self.cdf, level, far)

    def sample(self, key: Key[Array, ""]) -> Array:
        """Draw one y: first the rate, then the count."""
        checks.key("sample(key=...)", key)
        of_rate, of_count = jax.random.split(key)
        rate = jax.random.gamma(of_rate, self.count, dtype=self.count.dtype) / self.exposure
        return outward(_draw(of_count, rate), self.scalar)

    def log_prob(self, y: ArrayLike, mask: Array | None = None) -> Array:
        """Log probability of y; masked outputs are left out, and what is no count has probability 0."""
        y, mask = at_one(y, mask, self.count)
        return _total(y, lambda whole: log_mass(whole, self.count, self.exposure), mask)


def _total(y: Array, law: Callable[[Array], Array], mask: Array | None) -> Array:
    """Sum over outputs; what is not a whole number from 0 is impossible."""
    possible = (y >= 0.0) & (y == jnp.round(y)) & jnp.isfinite(y)
    each = jnp.where(possible, law(jnp.where(possible, y, 0.0)), -jnp.inf)
    return jnp.sum(each if mask is None else jnp.where(mask, each, 0.0), axis=-1)


def _log_known(y: Array, log_rate: Array) -> Array:
    """Log Poisson probability at a known rate, from its largest value: large counts do not cancel."""
    over = log_rate - jnp.log(jnp.where(y > 0.0, y, 1.0))
    return jnp.where(y > 0.0, log_peak(y) - y * (jnp.expm1(over) - over), -jnp.exp(log_rate))


def _draw(key: Array, rate: Array) -> Array:
    """Draw counts; beyond what an integer holds, the rate itself, which is then known to ten digits."""
    most = 1e9
    drawn = jax.random.poisson(key, jnp.minimum(rate, most)).astype(rate.dtype)
    return jnp.where(rate < most, drawn, jnp.round(rate))
