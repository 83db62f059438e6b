"""Forecasts of counts, averaged over an uncertain rate: log-normal (no closed form) or Gamma."""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.nn import logsumexp, softmax
from jax.scipy.special import betainc, ndtr
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Key

from filtax import _validation as checks
from filtax.distributions._numerics import (
    at_each,
    at_one,
    bisect,
    cap,
    diagonal,
    exceeds,
    gamma_tail,
    log_peak,
    normal_rule,
    outward,
    whole_interval,
)
from filtax.protocols import Module, static

NODES = 64  # of the sinh rule: log probabilities are exact to 1e-5
SMOOTH_NODES = 24  # of the Gauss-Hermite rule, for functions that are smooth over the belief


class _Counts(Module):
    """What distributions of O independent counts share."""

    @property
    def cov(self: Any) -> Array:
        """Covariance, (O, O): outputs are forecast one by one, so it is diagonal."""
        return self.var if self.scalar else diagonal(self.var)

    def interval(self: Any, level: float = 0.9) -> tuple[Array, Array]:
        """Central interval of each count: the smallest whole numbers that reach the tail probabilities."""
        far = jnp.ceil(
            self.mean + 10.0 * jnp.sqrt(self.var / (1.0 - level)) + 10.0
        )  # outside by Chebyshev's inequality
        return whole_interval(self.cdf, level, far)


class Poisson(_Counts):
    """Counts whose log rate is N(log_rate, sd²), for O independent outputs; `sd` is None if the rate is known.

    >>> sure = Poisson(jnp.log(jnp.array([3.0])), jnp.zeros(1), scalar=True)
    >>> round(sure.mean.item(), 4), round(sure.var.item(), 4)
    (3.0, 3.0)
    """

    log_rate: Float[Array, "*H O"]
    sd: Float[Array, "*H O"] | None
    scalar: bool = static(default=False)

    @property
    def mean(self) -> Array:
        """Expected count; at most the largest number whose square is finite."""
        return outward(self._exp(self.log_rate + 0.5 * self._sd * self._sd), self.scalar)

    @property
    def var(self) -> Array:
        """Variance of the count: mean rate plus variance of the rate."""
        v = self._sd * self._sd
        safe = jnp.where(v > 0.0, v, 1.0)
        from_rate = self._exp(2.0 * self.log_rate + 2.0 * safe + jnp.log(-jnp.expm1(-safe)))
        return outward(self._exp(self.log_rate + 0.5 * v) + jnp.where(v > 0.0, from_rate, 0.0), self.scalar)

    @property
    def cov(self) -> Array:
        """Covariance, (O, O): outputs are forecast one by one, so it is diagonal."""
        return self.var if self.scalar else diagonal(self.var)

    def cdf(self, y: ArrayLike) -> Array:
        """Probability that each count is at most y."""
        y = at_each(y, outward(self.log_rate, self.scalar))
        whole = jnp.floor(jnp.maximum(y[..., None] if self.scalar else y, 0.0))
        a = jnp.broadcast_to(whole + 1.0, self.log_rate.shape)
        return jnp.where(y < 0.0, 0.0, outward(gamma_exceeds(a, self.log_rate, self._sd), self.scalar))

    def interval(self, level: float = 0.9) -> tuple[Array, Array]:
        """Central interval of each count: the smallest whole numbers that reach the tail probabilities."""
        far = jnp.ceil(self.mean + 10.0 * jnp.sqrt(self.var / (1.0 - level)) + 10.0)  # beyond by Chebyshev
        return whole_interval(self.cdf, level, far)

    def sample(self, key: Key[Array, ""]) -> Array:
        """Draw one y: first the rate, then the count."""
        checks.key("sample(key=...)", key)
        rate_key, count_key = jax.random.split(key)
        noise = jax.random.normal(rate_key, self.log_rate.shape, self.log_rate.dtype)
        return outward(_draw(count_key, self._exp(self.log_rate + self._sd * noise)), self.scalar)

    def log_prob(self, y: ArrayLike, mask: Array | None = None) -> Array:
        """Log probability of y; masked outputs add nothing, and a y that is no count has probability 0."""
        y, mask = at_one(y, mask, self.log_rate)
        if self.sd is None:
            return _log_prob(y, lambda whole: _log_known(whole, self.log_rate), mask)
        return _log_prob(y, lambda whole: log_average(whole, self.log_rate, self._sd), mask)

    @property
    def _sd(self) -> Array:
        return jnp.zeros_like(self.log_rate) if self.sd is None else self.sd

    def _exp(self, value: Array) -> Array:
        return jnp.exp(jnp.minimum(value, cap(value.dtype)))


class NegativeBinomial(_Counts):
    """Poisson averaged over Gamma(count, exposure), for O independent outputs.

    >>> NegativeBinomial(jnp.array([2.0]), jnp.array([1.0]), scalar=True).mean.item()
    2.0
    """

    count: Float[Array, "*H O"]
    exposure: Float[Array, "*H O"]
    scalar: bool = static(default=False)

    @property
    def mean(self) -> Array:
        """Expected count."""
        return outward(self.count / self.exposure, self.scalar)

    @property
    def var(self) -> Array:
        """Variance of the count."""
        return outward(self.count / self.exposure * (1.0 + 1.0 / self.exposure), self.scalar)

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
        rate_key, count_key = jax.random.split(key)
        rate = jax.random.gamma(rate_key, self.count, dtype=self.count.dtype) / self.exposure
        return outward(_draw(count_key, rate), self.scalar)

    def log_prob(self, y: ArrayLike, mask: Array | None = None) -> Array:
        """Log probability of y; masked outputs add nothing, and a y that is no count has probability 0."""
        y, mask = at_one(y, mask, self.count)
        return _log_prob(y, lambda whole: log_mass(whole, self.count, self.exposure), mask)


def _log_prob(y: Array, law: Callable[[Array], Array], mask: Array | None) -> Array:
    """Sum of log probabilities over outputs; -inf where y is not a whole number from 0."""
    possible = (y >= 0.0) & (y == jnp.round(y)) & jnp.isfinite(y)
    each = jnp.where(possible, law(jnp.where(possible, y, 0.0)), -jnp.inf)
    return jnp.sum(each if mask is None else jnp.where(mask, each, 0.0), axis=-1)


def _log_known(y: Array, log_rate: Array) -> Array:
    """Log Poisson probability at a known rate, relative to its value at y itself, so that large terms do not cancel."""
    over = log_rate - jnp.log(jnp.where(y > 0.0, y, 1.0))
    return jnp.where(y > 0.0, log_peak(y) - y * (jnp.expm1(over) - over), -jnp.exp(log_rate))


def _draw(key: Array, rate: Array) -> Array:
    """Draw counts; above 1e9 the rate itself, which a count hardly differs from and an integer may not hold."""
    most = 1e9
    drawn = jax.random.poisson(key, jnp.minimum(rate, most)).astype(rate.dtype)
    return jnp.where(rate < most, drawn, jnp.round(rate))


def log_average(y: Float[Array, "*S"], m: Float[Array, "*S"], sd: Float[Array, "*S"]) -> Float[Array, "*S"]:
    r"""Log of $\int \mathrm{Poisson}(y \mid e^\eta) N(\eta; m, sd^2) d\eta$.

    The likelihood of a large count is narrower than the belief, and a fixed rule over the belief would miss it. So the
    points lie around the peak of the product of both, in units of the narrower one.

    >>> log_average(jnp.asarray(0.0), jnp.asarray(0.0), jnp.asarray(0.0)).round(5).item()
    -1.0
    """
    sd = jnp.maximum(sd, 1e-10)
    shift, width = (jax.lax.stop_gradient(part) for part in _peak(y, m, sd))
    points, log_weight = _along(_sinh_rule(), m)
    move = shift[..., None] + width[..., None] * points
    log_likelihood = _log_known(y[..., None], jnp.minimum(m[..., None] + move, cap(m.dtype)))
    log_prior = -0.5 * (move / sd[..., None]) ** 2 - 0.5 * math.log(2.0 * math.pi)
    return logsumexp(log_likelihood + log_prior + log_weight, axis=-1) + jnp.log(width / sd)


def _peak(y: Array, m: Array, sd: Array) -> tuple[Array, Array]:
    """Distance from m to the peak of likelihood times belief, by bisection, and an upper bound of its width."""
    count, gap = jnp.maximum(y, 0.5), jnp.log(jnp.maximum(y, 0.5)) - m
    low = jnp.minimum(jnp.maximum(gap, -sd * sd * jnp.exp(m)), 0.0)
    high = jnp.maximum(jnp.minimum(gap, sd * sd * count), 0.0)

    def falling(move: Array) -> Array:
        return ~(count - jnp.exp(m + move) > move / (sd * sd))

    low, high = bisect(falling, low, high, 24)  # a loop: unrolled, XLA would repeat it for each point of the rule
    return 0.5 * (low + high), 1.0 / jnp.sqrt(jnp.maximum(y, 1.0) + 1.0 / (sd * sd))


def gamma_exceeds(a: Float[Array, "*S"], m: Float[Array, "*S"], sd: Float[Array, "*S"]) -> Float[Array, "*S"]:
    """Probability that the log of a Gamma(a) variable exceeds N(m, sd²), that is, of fewer than a events.

    The average is taken over the variable that varies less.

    >>> gamma_exceeds(jnp.asarray(1.0), jnp.asarray(0.0), jnp.asarray(0.0)).round(5).item()  # exp(-1)
    0.36788
    """
    points, log_weight = _along(_sinh_rule(), m)
    over = jnp.minimum(points / jnp.sqrt(a)[..., None], cap(m.dtype))
    weight = softmax(a[..., None] * (over - jnp.expm1(over)) + log_weight, axis=-1)
    wide = sd * jnp.sqrt(a) > 1.0
    gap = (jnp.log(a) - m)[..., None] + over
    smooth = jnp.sum(weight * ndtr(gap / jnp.where(wide, sd, 1.0)[..., None]), axis=-1)
    nodes, weights = _along(normal_rule(SMOOTH_NODES), m)
    rate = jnp.exp(jnp.minimum(m[..., None] + sd[..., None] * nodes, cap(m.dtype)))
    narrow = jnp.sum(gamma_tail(jnp.broadcast_to(a[..., None], rate.shape), rate) * weights, axis=-1)
    return jnp.where(wide, smooth, narrow)


def log_mass(k: Float[Array, "*S"], a: Float[Array, "*S"], b: Float[Array, "*S"]) -> Float[Array, "*S"]:
    """Log probability of k events at a rate Gamma(a, b), in saddle-point form, where no large terms cancel.

    >>> log_mass(jnp.asarray(0.0), jnp.asarray(2.0), jnp.asarray(1.0)).round(5).item()  # log 1/4
    -1.38629
    """
    off = (a - k * b) / (a + k)
    misfit = (a + k) / (1.0 + b) * (b * _deviance(off / b) + _deviance(-off))
    return jnp.log(a / (a + k)) + log_peak(a) + log_peak(k) - log_peak(a + k) - misfit


def _deviance(d: Array) -> Array:
    """(1 + d) log(1 + d) - d, which is 1 at d = -1."""
    some = d > -1.0
    return jnp.where(some, (1.0 + d) * jnp.log1p(jnp.where(some, d, 0.0)) - d, 1.0)


def gamma_odds(a: Float[Array, "*S"], b: Float[Array, "*S"], c: Float[Array, "*S"]) -> Float[Array, "*S"]:
    """Probability that a Gamma(a) variable is at most b times a Gamma(c) variable, for large a or c.

    The variable of larger shape hardly varies: the average over it uses the rule of Wilson and Hilferty (1931).

    >>> gamma_odds(jnp.asarray(500.0), jnp.asarray(1.0), jnp.asarray(500.0)).round(4).item()
    0.5
    """
    nodes, weights = _along(normal_rule(SMOOTH_NODES), a)
    large = jnp.maximum(a, c)[..., None]
    spread = large * (1.0 - 1.0 / (9.0 * large) + nodes / (3.0 * jnp.sqrt(large))) ** 3
    small = jnp.broadcast_to(jnp.minimum(a, c)[..., None], spread.shape)
    at = jnp.where((a > c)[..., None], spread / b[..., None], spread * b[..., None])
    tail = jnp.sum(gamma_tail(small, at) * weights, axis=-1)
    return jnp.where(a > c, tail, 1.0 - tail)


@lru_cache
def _sinh_rule() -> tuple[np.ndarray, np.ndarray]:
    """Points from -1500 to 1500, dense near 0, and the logs of their weights in a plain integral."""
    t = np.linspace(-8.0, 8.0, NODES)
    return np.sinh(t), np.log(np.cosh(t) * (t[1] - t[0]))


def _along(rule: tuple[np.ndarray, np.ndarray], like: Array) -> tuple[Array, Array]:
    """Points and weights of a rule along a new last axis."""
    points, weights = (jnp.asarray(part, like.dtype).reshape((1,) * like.ndim + (-1,)) for part in rule)
    return points, weights
