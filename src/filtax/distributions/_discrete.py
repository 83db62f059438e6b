"""Forecasts of labels and of counts: averages over the natural parameter, where it is uncertain.

The log rate of a count is normal, which has no closed form, or that of a Gamma variable.
"""

import math
from abc import ABC, abstractmethod
from functools import lru_cache

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
    central,
    diagonal,
    exceeds,
    gamma_tail,
    inward,
    log_peak,
    normal_rule,
    outward,
    whole_interval,
)
from filtax.protocols import Module, static

NODES = 64  # of the sinh rule: log probabilities are exact to 1e-5
SMOOTH_NODES = 24  # of the Gauss-Hermite rule, for functions that are smooth over the belief


class _PerOutput(ABC):
    """What distributions of O independent outputs share."""

    scalar: bool

    @property
    @abstractmethod
    def mean(self) -> Array:
        """Expected value of each output."""

    @property
    @abstractmethod
    def var(self) -> Array:
        """Variance of each output."""

    @property
    def cov(self) -> Array:
        """Covariance, (O, O): outputs are forecast one by one, so it is diagonal."""
        return self.var if self.scalar else diagonal(self.var)

    def log_prob(self, y: ArrayLike, mask: Array | None = None) -> Array:
        """Log probability of y; masked outputs add nothing, and an impossible y has probability 0."""
        y, mask = at_one(y, mask, inward(self.mean, self.scalar))
        each = self._log_mass(y)
        return jnp.sum(each if mask is None else jnp.where(mask, each, 0.0), axis=-1)

    @abstractmethod
    def _log_mass(self, y: Array) -> Array:
        """Log probability of each output."""


class Bernoulli(_PerOutput, Module):
    """Probabilities of 1 and of 0 for O outputs; both logs are kept, so that neither tail is lost to rounding.

    >>> coin = Bernoulli(jnp.log(jnp.array([0.25])), jnp.log(jnp.array([0.75])), scalar=True)
    >>> round(coin.var.item(), 4)
    0.1875
    """

    log_yes: Float[Array, "*H O"]
    log_no: Float[Array, "*H O"]
    scalar: bool = static(default=False)

    @property
    def mean(self) -> Array:
        """Probability of a one."""
        return outward(jnp.exp(self.log_yes), self.scalar)

    @property
    def var(self) -> Array:
        """Variance p (1 - p) of each output."""
        return outward(jnp.exp(self.log_yes + self.log_no), self.scalar)

    def interval(self, level: float = 0.9) -> tuple[Array, Array]:
        """Central interval of each output: its ends are 0 or 1."""
        low, high = (jnp.log(jnp.asarray(tail, self.log_no.dtype)) for tail in central(level))
        ends = (self.log_no < low, self.log_no < high)
        lower, upper = (outward(end.astype(self.log_no.dtype), self.scalar) for end in ends)
        return lower, upper

    def cdf(self, y: ArrayLike) -> Array:
        """Probability that each output is at most y."""
        no = outward(jnp.exp(self.log_no), self.scalar)
        y = at_each(y, no)
        return jnp.where(y < 0.0, 0.0, jnp.where(y < 1.0, no, 1.0))

    def sample(self, key: Key[Array, ""]) -> Array:
        """Draw one y of zeros and ones."""
        checks.key("sample(key=...)", key)
        draw = jax.random.uniform(key, self.log_yes.shape, self.log_yes.dtype)
        return outward((jnp.log(draw) < self.log_yes).astype(self.log_yes.dtype), self.scalar)

    def _log_mass(self, y: Array) -> Array:
        return jnp.where(y == 1.0, self.log_yes, jnp.where(y == 0.0, self.log_no, -jnp.inf))


class Categorical(Module):
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
        return diagonal(self.mean) - self.mean[..., :, None] * self.mean[..., None, :]

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
        checks.key("sample(key=...)", key)
        return jax.random.categorical(key, self.log_probability)

    def log_prob(self, y: ArrayLike, mask: Array | None = None) -> Array:
        """Log probability of the class y; exactly 0 where it is masked, and -inf if there is no such class."""
        y, mask = at_one(y, mask, self.log_probability[..., 0])
        index = jnp.clip(jnp.nan_to_num(y), 0.0, self.log_probability.shape[-1] - 1.0).astype(int)
        value = jnp.take_along_axis(self.log_probability, index[..., None], axis=-1)[..., 0]
        value = jnp.where(y == index.astype(y.dtype), value, -jnp.inf)
        return value if mask is None else jnp.where(mask, value, 0.0)


class _Counts(_PerOutput):
    """What distributions of counts share."""

    def cdf(self, y: ArrayLike) -> Array:
        """Probability that each count is at most y."""
        y = at_each(y, self.mean)
        whole = inward(jnp.floor(jnp.maximum(y, 0.0)), self.scalar)
        return jnp.where(y < 0.0, 0.0, outward(self._fewer(whole + 1.0), self.scalar))

    def interval(self, level: float = 0.9) -> tuple[Array, Array]:
        """Central interval of each count: the smallest whole numbers that reach the tail probabilities."""
        far = jnp.ceil(self.mean + 10.0 * jnp.sqrt(self.var / (1.0 - level)) + 10.0)  # beyond by Chebyshev
        return whole_interval(self.cdf, level, far)

    def sample(self, key: Key[Array, ""]) -> Array:
        """Draw one y: first the rate, then the count; above 1e9 the rate, since an integer may not hold the count."""
        checks.key("sample(key=...)", key)
        rate_key, count_key = jax.random.split(key)
        rate, most = self._drawn_rate(rate_key), 1e9
        drawn = jax.random.poisson(count_key, jnp.minimum(rate, most)).astype(rate.dtype)
        return outward(jnp.where(rate < most, drawn, jnp.round(rate)), self.scalar)

    def _log_mass(self, y: Array) -> Array:
        possible = (y >= 0.0) & (y == jnp.round(y)) & jnp.isfinite(y)
        return jnp.where(possible, self._log_mass_of_whole(jnp.where(possible, y, 0.0)), -jnp.inf)

    @abstractmethod
    def _fewer(self, count: Array) -> Array:
        """Probability of fewer events than a whole number above 0."""

    @abstractmethod
    def _drawn_rate(self, key: Array) -> Array:
        """A draw of the rate."""

    @abstractmethod
    def _log_mass_of_whole(self, y: Array) -> Array:
        """Log probability of whole numbers."""


class Poisson(_Counts, Module):
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
        return outward(_exp(self.log_rate + 0.5 * self._sd * self._sd), self.scalar)

    @property
    def var(self) -> Array:
        """Variance of the count: mean rate plus variance of the rate."""
        v = self._sd * self._sd
        safe = jnp.where(v > 0.0, v, 1.0)
        from_rate = _exp(2.0 * self.log_rate + 2.0 * safe + jnp.log(-jnp.expm1(-safe)))
        return outward(_exp(self.log_rate + 0.5 * v) + jnp.where(v > 0.0, from_rate, 0.0), self.scalar)

    @property
    def _sd(self) -> Array:
        return jnp.zeros_like(self.log_rate) if self.sd is None else self.sd

    def _fewer(self, count: Array) -> Array:
        return _gamma_exceeds(jnp.broadcast_to(count, self.log_rate.shape), self.log_rate, self._sd)

    def _drawn_rate(self, key: Array) -> Array:
        noise = jax.random.normal(key, self.log_rate.shape, self.log_rate.dtype)
        return _exp(self.log_rate + self._sd * noise)

    def _log_mass_of_whole(self, y: Array) -> Array:
        return _log_known(y, self.log_rate) if self.sd is None else _log_average(y, self.log_rate, self.sd)


class NegativeBinomial(_Counts, Module):
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

    def _fewer(self, count: Array) -> Array:
        shape = jnp.broadcast_shapes(count.shape, self.count.shape)
        a, b, c = (jnp.broadcast_to(part, shape) for part in (self.count, self.exposure, count))
        large = exceeds(jnp.maximum(a, c))
        plain = betainc(jnp.where(large, 1.0, a), jnp.where(large, 1.0, c), b / (1.0 + b))
        return jnp.where(large, _gamma_odds(a, b, c), plain)

    def _drawn_rate(self, key: Array) -> Array:
        return jax.random.gamma(key, self.count, dtype=self.count.dtype) / self.exposure

    def _log_mass_of_whole(self, y: Array) -> Array:
        return _log_negative_binomial(y, self.count, self.exposure)


def _exp(value: Array) -> Array:
    return jnp.exp(jnp.minimum(value, cap(value.dtype)))


def _log_known(y: Array, log_rate: Array) -> Array:
    """Log Poisson probability at a known rate, relative to its value at y itself, so that large terms do not cancel."""
    over = log_rate - jnp.log(jnp.where(y > 0.0, y, 1.0))
    return jnp.where(y > 0.0, log_peak(y) - y * (jnp.expm1(over) - over), -jnp.exp(log_rate))


def _log_average(y: Float[Array, "*S"], m: Float[Array, "*S"], sd: Float[Array, "*S"]) -> Float[Array, "*S"]:
    r"""Log of $\int \mathrm{Poisson}(y \mid e^\eta) N(\eta; m, sd^2) d\eta$.

    The likelihood of a large count is narrower than the belief, and a fixed rule over the belief would miss it. So the
    points lie around the peak of the product of both, in units of the narrower one.
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


def _gamma_exceeds(a: Float[Array, "*S"], m: Float[Array, "*S"], sd: Float[Array, "*S"]) -> Float[Array, "*S"]:
    """Probability that the log of a Gamma(a) variable exceeds N(m, sd²), that is, of fewer than a events.

    The average is taken over the variable that varies less.
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


def _log_negative_binomial(k: Float[Array, "*S"], a: Float[Array, "*S"], b: Float[Array, "*S"]) -> Float[Array, "*S"]:
    """Log probability of k events at a rate Gamma(a, b), in saddle-point form, where no large terms cancel."""
    off = (a - k * b) / (a + k)
    misfit = (a + k) / (1.0 + b) * (b * _deviance(off / b) + _deviance(-off))
    return jnp.log(a / (a + k)) + log_peak(a) + log_peak(k) - log_peak(a + k) - misfit


def _deviance(d: Array) -> Array:
    """(1 + d) log(1 + d) - d, which is 1 at d = -1."""
    some = d > -1.0
    return jnp.where(some, (1.0 + d) * jnp.log1p(jnp.where(some, d, 0.0)) - d, 1.0)


def _gamma_odds(a: Float[Array, "*S"], b: Float[Array, "*S"], c: Float[Array, "*S"]) -> Float[Array, "*S"]:
    """Probability that a Gamma(a) variable is at most b times a Gamma(c) variable, for large a or c.

    The variable of larger shape hardly varies: the average over it uses the rule of Wilson and Hilferty (1931).
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
