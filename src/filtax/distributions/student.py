"""The Student-t forecast: Gaussian noise whose variance is being learned."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Key

from filtax import checks
from filtax.distributions.rooted import drawn, root_of_seen
from filtax.distributions.shape import at_each, at_one, central, outward, per_datum, variances
from filtax.distributions.special import log_rising, student_tail
from filtax.linalg import log_det, solve_lower
from filtax.module import Module

__all__ = ["StudentT", "log_student"]


class StudentT(Module):
    """Multivariate t with `freedom` degrees of freedom, a location and a scale matrix; `root` as for `Normal`.

    >>> StudentT(jnp.zeros(1), jnp.eye(1), jnp.asarray(4.0), scalar=True).var.item()
    2.0
    """

    location: Float[Array, "*H O"]
    scale: Float[Array, "*H O O"]
    freedom: Float[Array, "*H"]
    scalar: bool = eqx.field(static=True, default=False)
    root: Float[Array, "*H O O"] | None = None

    @property
    def mean(self) -> Array:
        """Forecast location; the mean when there is more than one degree of freedom."""
        return outward(self.location, self.scalar)

    @property
    def var(self) -> Array:
        """Forecast variance of each output; infinite up to two degrees of freedom."""
        return outward(variances(self._covariance), self.scalar)

    @property
    def cov(self) -> Array:
        """Forecast covariance, (O, O); a variance for a scalar output."""
        return self._covariance[..., 0, 0] if self.scalar else self._covariance

    @property
    def _covariance(self) -> Array:
        n = self.freedom
        ratio = jnp.where(n > 2.0, n / jnp.where(n > 2.0, n - 2.0, 1.0), jnp.inf)[..., None, None]
        return jnp.where(self.scale == 0.0, 0.0, self.scale * ratio)

    @property
    def _spread(self) -> Array:
        return outward(jnp.sqrt(variances(self.scale)), self.scalar)

    @property
    def _freedom(self) -> Array:
        return self.freedom if self.scalar else self.freedom[..., None]

    def interval(self, level: float = 0.9) -> tuple[Array, Array]:
        """Central interval of each output that holds `level` of the probability."""
        half = self._spread * _quantile(central(level)[0], self._freedom)
        return self.mean - half, self.mean + half

    def cdf(self, y: ArrayLike) -> Array:
        """Probability that each output is at most y."""
        t = (at_each(y, self.mean) - self.mean) / self._spread
        tail = student_tail(jnp.abs(t), self._freedom)
        return jnp.where(t > 0.0, 1.0 - tail, tail)

    def sample(self, key: Key[Array, ""]) -> Array:
        """Draw one y: a Gaussian whose variance is drawn first."""
        checks.key("sample(key=...)", key)
        of_noise, of_variance = jax.random.split(key)
        noise = jax.random.normal(of_noise, self.location.shape, self.location.dtype)
        gamma = jax.random.gamma(of_variance, 0.5 * self.freedom, dtype=self.location.dtype)
        move = per_datum(drawn, (1, 2, 2))(noise, self.scale, self.root)
        return outward(self.location + move * jnp.sqrt(0.5 * self.freedom / gamma)[..., None], self.scalar)

    def log_prob(self, y: ArrayLike, mask: Array | None = None) -> Array:
        """Log density at y; masked outputs are left out, and a wholly masked y gives exactly 0."""
        y, mask = at_one(y, mask, self.location)
        return per_datum(_log_density, (1, 1, 2, 2, 0, 1))(y, self.location, self.scale, self.root, self.freedom, mask)


def log_student(shape: Array, rate: Array, z: Array, log_det: Array, count: Array) -> Array:
    r"""Log density of `count` coordinates whitened by S, when their variance is inverse-gamma(shape, rate).

    >>> t4 = StudentT(jnp.zeros(1), jnp.eye(1), jnp.asarray(4.0))
    >>> two = jnp.asarray(2.0)
    >>> got = log_student(two, two, jnp.ones(1), jnp.zeros(()), jnp.ones(()))
    >>> bool(jnp.isclose(got, t4.log_prob(jnp.ones(1))))
    True
    """
    half = 0.5 * count
    constant = log_rising(shape, half) - half * (jnp.log(rate) + math.log(2.0 * math.pi))
    return constant - 0.5 * log_det - (shape + half) * jnp.log1p(jnp.sum(z * z) / (2.0 * rate))


def _log_density(y: Array, m: Array, C: Array, root: Array | None, n: Array, mask: Array | None) -> Array:
    L = root_of_seen(C, root, mask)
    z = solve_lower(L, y - m if mask is None else jnp.where(mask, y - m, 0.0))
    o = jnp.asarray(y.size if mask is None else jnp.sum(mask), y.dtype)
    return jnp.where(o > 0, log_student(0.5 * n, 0.5 * n, z, log_det(L), o), 0.0)


def _quantile(tail: float, n: Array) -> Array:
    """What is exceeded with a probability below one half, by bisection on a scale of tangents."""
    low, high = jnp.zeros_like(n), jnp.full_like(n, 0.5 * math.pi)

    def halve(_: Array, bounds: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bounds
        middle = 0.5 * (low + high)
        beyond = student_tail(jnp.tan(middle), n) < tail
        return jnp.where(beyond, low, middle), jnp.where(beyond, middle, high)

    low, high = jax.lax.fori_loop(0, 80, halve, (low, high))  # reaches the last bit of a float64
    return jnp.tan(0.5 * (low + high))
