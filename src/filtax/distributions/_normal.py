"""Gaussian and Student-t forecasts: Gaussian noise whose variance is known, or is being learned."""

import math

import jax
import jax.numpy as jnp
from jax.scipy.special import ndtr, ndtri
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Key

from filtax import _validation as checks
from filtax.distributions._numerics import (
    at_each,
    at_one,
    bisect,
    central,
    log_rising,
    outward,
    per_datum,
    student_tail,
)
from filtax.linalg import cholesky, diagonals, log_det, log_normal, psd_root, solve_lower, triangular_root
from filtax.protocols import Module, static


class Normal(Module):
    """N(location, covariance) over O outputs; `scalar` says that the one output has no axis of its own.

    `root` is a lower triangular root of the covariance, computed without it: where precise outputs depend on the same
    uncertain parameters, rounding removes the noise from the covariance.

    >>> Normal(jnp.zeros(1), jnp.eye(1), scalar=True).mean.shape
    ()
    """

    location: Float[Array, "*H O"]
    covariance: Float[Array, "*H O O"]
    scalar: bool = static(default=False)
    root: Float[Array, "*H O O"] | None = None

    @property
    def mean(self) -> Array:
        """Forecast mean, of the shape of the model's output."""
        return outward(self.location, self.scalar)

    @property
    def var(self) -> Array:
        """Forecast variance of each output."""
        return outward(diagonals(self.covariance), self.scalar)

    @property
    def cov(self) -> Array:
        """Forecast covariance, (O, O); a variance for a scalar output."""
        return self.covariance[..., 0, 0] if self.scalar else self.covariance

    def interval(self, level: float = 0.9) -> tuple[Array, Array]:
        """Central interval of each output that holds `level` of the probability."""
        half = -jnp.sqrt(self.var) * ndtri(jnp.asarray(central(level)[0], self.location.dtype))
        return self.mean - half, self.mean + half

    def cdf(self, y: ArrayLike) -> Array:
        """Probability that each output is at most y."""
        return ndtr((at_each(y, self.mean) - self.mean) / jnp.sqrt(self.var))

    def sample(self, key: Key[Array, ""]) -> Array:
        """Draw one y, or one path where there is a leading axis."""
        checks.key("sample(key=...)", key)
        noise = jax.random.normal(key, self.location.shape, self.location.dtype)
        move = per_datum(correlated, (1, 2, 2))(noise, self.covariance, self.root)
        return outward(self.location + move, self.scalar)

    def log_prob(self, y: ArrayLike, mask: Array | None = None) -> Array:
        """Log density at y; masked outputs add nothing, and a wholly masked y gives exactly 0."""
        y, mask = at_one(y, mask, self.location)
        return per_datum(_log_normal, (1, 1, 2, 2, 1))(y, self.location, self.covariance, self.root, mask)


def _log_normal(y: Array, m: Array, C: Array, root: Array | None, mask: Array | None) -> Array:
    L = root_of_observed(C, root, mask)
    if mask is None:
        return log_normal(solve_lower(L, y - m), log_det(L), y.size)
    z = solve_lower(L, jnp.where(mask, y - m, 0.0))
    count = jnp.sum(mask).astype(y.dtype)
    return jnp.where(count > 0, log_normal(z, log_det(L), count), 0.0)


class StudentT(Module):
    """Multivariate t with `freedom` degrees of freedom, a location and a scale matrix; `root` as for `Normal`.

    >>> StudentT(jnp.zeros(1), jnp.eye(1), jnp.asarray(4.0), scalar=True).var.item()
    2.0
    """

    location: Float[Array, "*H O"]
    scale: Float[Array, "*H O O"]
    freedom: Float[Array, "*H"]
    scalar: bool = static(default=False)
    root: Float[Array, "*H O O"] | None = None

    @property
    def mean(self) -> Array:
        """Forecast location; the mean when there is more than one degree of freedom."""
        return outward(self.location, self.scalar)

    @property
    def var(self) -> Array:
        """Forecast variance of each output; infinite up to two degrees of freedom."""
        return outward(diagonals(self._covariance), self.scalar)

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
        return outward(jnp.sqrt(diagonals(self.scale)), self.scalar)

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
        """Draw one y: first the variance, then a Gaussian."""
        checks.key("sample(key=...)", key)
        noise_key, variance_key = jax.random.split(key)
        noise = jax.random.normal(noise_key, self.location.shape, self.location.dtype)
        gamma = jax.random.gamma(variance_key, 0.5 * self.freedom, dtype=self.location.dtype)
        move = per_datum(correlated, (1, 2, 2))(noise, self.scale, self.root)
        return outward(self.location + move * jnp.sqrt(0.5 * self.freedom / gamma)[..., None], self.scalar)

    def log_prob(self, y: ArrayLike, mask: Array | None = None) -> Array:
        """Log density at y; masked outputs add nothing, and a wholly masked y gives exactly 0."""
        y, mask = at_one(y, mask, self.location)
        return per_datum(_log_student_t, (1, 1, 2, 2, 0, 1))(
            y, self.location, self.scale, self.root, self.freedom, mask
        )


def log_student(shape: Array, rate: Array, z: Array, log_det: Array, count: Array) -> Array:
    r"""Log density of `count` coordinates z, whitened by S, whose variance is inverse-gamma(shape, rate).

    >>> t4 = StudentT(jnp.zeros(1), jnp.eye(1), jnp.asarray(4.0))
    >>> two = jnp.asarray(2.0)
    >>> got = log_student(two, two, jnp.ones(1), jnp.zeros(()), jnp.ones(()))
    >>> bool(jnp.isclose(got, t4.log_prob(jnp.ones(1))))
    True
    """
    half = 0.5 * count
    constant = log_rising(shape, half) - half * (jnp.log(rate) + math.log(2.0 * math.pi))
    return constant - 0.5 * log_det - (shape + half) * jnp.log1p(jnp.sum(z * z) / (2.0 * rate))


def _log_student_t(y: Array, m: Array, C: Array, root: Array | None, n: Array, mask: Array | None) -> Array:
    L = root_of_observed(C, root, mask)
    z = solve_lower(L, y - m if mask is None else jnp.where(mask, y - m, 0.0))
    o = jnp.asarray(y.size if mask is None else jnp.sum(mask), y.dtype)
    return jnp.where(o > 0, log_student(0.5 * n, 0.5 * n, z, log_det(L), o), 0.0)


def _quantile(tail: float, n: Array) -> Array:
    """Value that Student's t exceeds with probability `tail` < 1/2, by bisection of its arctangent."""

    def beyond(angle: Array) -> Array:
        return student_tail(jnp.tan(angle), n) < tail

    low, high = bisect(beyond, jnp.zeros_like(n), jnp.full_like(n, 0.5 * math.pi), 80)  # to the last bit of a float64
    return jnp.tan(0.5 * (low + high))


def root_of_observed(
    C: Float[Array, "O O"], root: Float[Array, "O O"] | None, mask: Bool[Array, " O"] | None
) -> Float[Array, "O O"]:
    """Lower triangular root of the observed part of C; rows and columns of missing outputs become those of I.

    >>> root_of_observed(jnp.array([[4.0, 1.0], [1.0, 9.0]]), None, jnp.array([False, True])).tolist()
    [[1.0, 0.0], [0.0, 3.0]]
    """
    eye = jnp.eye(C.shape[0], dtype=C.dtype)
    if root is None:
        return cholesky(C if mask is None else jnp.where(mask[:, None] & mask[None, :], C, eye))
    if mask is None:
        return root
    return triangular_root(
        jnp.where(mask[:, None], jnp.concatenate([root, 0.0 * eye], 1), jnp.concatenate([0.0 * eye, eye], 1))
    )


def correlated(
    noise: Float[Array, " O"], C: Float[Array, "O O"], root: Float[Array, "O O"] | None
) -> Float[Array, " O"]:
    """Turn independent noise of variance one into noise of covariance C.

    >>> correlated(jnp.ones(1), jnp.full((1, 1), 9.0), None).tolist()
    [3.0]
    """
    return (psd_root(C) if root is None else root) @ noise
