"""Gaussian and Student-t forecasts: Gaussian noise whose variance is known, or is being learned."""

import math
from abc import ABC, abstractmethod

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


class Located(ABC):
    """The moments of a forecast with a location (O,) and a covariance (O, O), in the shape of the model's output."""

    location: Float[Array, "*H O"]
    scalar: bool

    @property
    @abstractmethod
    def _covariance(self) -> Array:
        """The covariance as a matrix, whether the output is a scalar or not."""

    @property
    def mean(self) -> Array:
        """Forecast mean, or the location where there is none."""
        return outward(self.location, self.scalar)

    @property
    def var(self) -> Array:
        """Forecast variance of each output."""
        return outward(diagonals(self._covariance), self.scalar)

    @property
    def cov(self) -> Array:
        """Forecast covariance, (O, O); a variance for a scalar output."""
        return self._covariance[..., 0, 0] if self.scalar else self._covariance


class Normal(Located, Module):
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
    def _covariance(self) -> Array:
        return self.covariance

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
        move = per_datum(_correlated)(noise, self.covariance, self.root)
        return outward(self.location + move, self.scalar)

    def log_prob(self, y: ArrayLike, mask: Array | None = None) -> Array:
        """Log density at y; masked outputs add nothing, and a wholly masked y gives exactly 0."""
        y, mask = at_one(y, mask, self.location)
        return per_datum(_log_normal)(y, self.location, self.covariance, self.root, mask)


def _log_normal(y: Array, m: Array, C: Array, root: Array | None, mask: Array | None) -> Array:
    value = log_normal(*_whitened(y, m, C, root, mask))
    return value if mask is None else jnp.where(jnp.any(mask), value, 0.0)


def _whitened(y: Array, m: Array, C: Array, root: Array | None, mask: Array | None) -> tuple[Array, Array, Array | int]:
    """The observed part of y - m in units of C, the log determinant of that part of C, and its size."""
    L = _root_of_observed(C, root, mask)
    z = solve_lower(L, y - m if mask is None else jnp.where(mask, y - m, 0.0))
    return z, log_det(L), y.size if mask is None else jnp.sum(mask).astype(y.dtype)


class StudentT(Located, Module):
    """Multivariate t with `freedom` degrees of freedom, a location and a scale matrix; `root` as for `Normal`.

    Its variance is infinite up to two degrees of freedom.

    >>> StudentT(jnp.zeros(1), jnp.eye(1), jnp.asarray(4.0), scalar=True).var.item()
    2.0
    """

    location: Float[Array, "*H O"]
    scale: Float[Array, "*H O O"]
    freedom: Float[Array, "*H"]
    scalar: bool = static(default=False)
    root: Float[Array, "*H O O"] | None = None

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
        move = per_datum(_correlated)(noise, self.scale, self.root)
        return outward(self.location + move * jnp.sqrt(0.5 * self.freedom / gamma)[..., None], self.scalar)

    def log_prob(self, y: ArrayLike, mask: Array | None = None) -> Array:
        """Log density at y; masked outputs add nothing, and a wholly masked y gives exactly 0."""
        y, mask = at_one(y, mask, self.location)
        return per_datum(_log_student_t)(y, self.location, self.scale, self.root, self.freedom, mask)


def log_student(shape: Array, rate: Array, z: Array, log_det: Array, count: Array) -> Array:
    """Log density of `count` coordinates z, whitened by S, whose variance is inverse-gamma(shape, rate)."""
    half = 0.5 * count
    constant = log_rising(shape, half) - half * (jnp.log(rate) + math.log(2.0 * math.pi))
    return constant - 0.5 * log_det - (shape + half) * jnp.log1p(jnp.sum(z * z) / (2.0 * rate))


def _log_student_t(y: Array, m: Array, C: Array, root: Array | None, n: Array, mask: Array | None) -> Array:
    z, log_volume, count = _whitened(y, m, C, root, mask)
    value = log_student(0.5 * n, 0.5 * n, z, log_volume, jnp.asarray(count, y.dtype))
    return value if mask is None else jnp.where(jnp.any(mask), value, 0.0)


def _quantile(tail: float, n: Array) -> Array:
    """Value that Student's t exceeds with probability `tail` < 1/2, by bisection of its arctangent."""

    def beyond(angle: Array) -> Array:
        return student_tail(jnp.tan(angle), n) < tail

    low, high = bisect(beyond, jnp.zeros_like(n), jnp.full_like(n, 0.5 * math.pi), 80)  # to the last bit of a float64
    return jnp.tan(0.5 * (low + high))


def _root_of_observed(
    C: Float[Array, "O O"], root: Float[Array, "O O"] | None, mask: Bool[Array, " O"] | None
) -> Float[Array, "O O"]:
    """Lower triangular root of the observed part of C; rows and columns of missing outputs become those of I."""
    eye = jnp.eye(C.shape[0], dtype=C.dtype)
    if root is None:
        return cholesky(C if mask is None else jnp.where(mask[:, None] & mask[None, :], C, eye))
    if mask is None:
        return root
    return triangular_root(
        jnp.where(mask[:, None], jnp.concatenate([root, 0.0 * eye], 1), jnp.concatenate([0.0 * eye, eye], 1))
    )


def _correlated(
    noise: Float[Array, " O"], C: Float[Array, "O O"], root: Float[Array, "O O"] | None
) -> Float[Array, " O"]:
    """Turn independent noise of variance one into noise of covariance C."""
    return (psd_root(C) if root is None else root) @ noise
