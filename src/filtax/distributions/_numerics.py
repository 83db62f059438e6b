"""Arrays of forecasts, quantiles of counts, rules for averages over normals, and special functions for large arguments.

In float32 the log of a gamma function near 10⁶ is only known to about one, and so is everything that is a difference of
two: Student-t densities, count probabilities, incomplete gamma and beta functions. Stirling's series lets the large
parts cancel on paper instead.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import betainc, gammaincc, gammaln, ndtr
from jax.typing import ArrayLike
from jaxtyping import Array

from filtax import _validation as checks
from filtax.numerics import safe_sqrt

SERIES = 20.0  # from here on three terms of Stirling's series are exact to 1e-12
NORMAL = 200.0  # degrees of freedom from which the expansion of Student's t is exact to 1e-12


def outward(values: Array, scalar: bool) -> Array:
    """Drop the output axis where the model's output is a scalar."""
    return values[..., 0] if scalar else values


def inward(values: Array, scalar: bool) -> Array:
    """Give the output of a scalar model an axis."""
    return values[..., None] if scalar else values


def at_one(y: ArrayLike, mask: Array | None, like: Array) -> tuple[Array, Array | None]:
    """Give y and its mask the shape of `like`; axes of length one do not matter."""
    asked = _alike("y", checks.numeric("log_prob(y): y", y).astype(like.dtype), like)
    if mask is None:
        return asked, None
    flags = checks.numeric("log_prob(mask=...)", mask)
    if flags.dtype.kind != "b":
        raise ValueError(f"log_prob(mask=...) must hold True and False, got {flags.dtype}; write mask.astype(bool).")
    return asked, _alike("mask", flags, like)


def _alike(name: str, value: Any, like: Array) -> Array:
    given, wanted = ([size for size in array.shape if size != 1] for array in (value, like))
    if given != wanted:
        raise ValueError(
            f"log_prob: {name} has shape {value.shape} but one y of this forecast has shape {tuple(wanted)}; give one "
            "such y, or map over many: jax.vmap(forecast.log_prob)(ys)."
        )
    return jnp.asarray(value).reshape(like.shape)


def at_each(y: ArrayLike, mean: Array) -> Array:
    """Broadcast the points of a distribution function: one number for all outputs, or one for each."""
    points = jnp.asarray(checks.numeric("cdf(y): y", y).astype(mean.dtype))
    pairs = zip(reversed(points.shape), reversed(mean.shape), strict=False)
    if points.ndim > mean.ndim or any(given not in (1, wanted) for given, wanted in pairs):
        raise ValueError(
            f"cdf: y has shape {points.shape} but the forecast has shape {mean.shape}; give one number for each "
            "output, or map over many: jax.vmap(forecast.cdf)(ys)."
        )
    return jnp.broadcast_to(points, mean.shape)


def diagonal(values: Array) -> Array:
    """Diagonal matrices with the given variances, for any leading axes."""
    size = values.shape[-1]
    return values[..., None] * jnp.eye(size, dtype=values.dtype).reshape((1,) * (values.ndim - 1) + (size, size))


def per_datum(function: Callable) -> Callable:
    """Map a function of a vector, and of whatever else one forecast has, over any leading axes of the vector."""

    def mapped(first: Array, *others: Array | None) -> Array:
        call = function
        for _ in range(first.ndim - 1):
            call = jax.vmap(call)
        return call(first, *others)

    return mapped


def central(level: float) -> tuple[float, float]:
    """Tail probabilities of the central interval that holds `level`."""
    if not (isinstance(level, int | float | np.number) and 0.0 < level < 1.0):
        raise ValueError(f"interval(level={level!r}) must lie strictly between 0 and 1; for 90 % give 0.9.")
    return 0.5 * (1.0 - level), 0.5 * (1.0 + level)


@lru_cache
def normal_rule(nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Hermite nodes and weights for an average over N(0, 1); the weights sum to one."""
    x, w = np.polynomial.hermite_e.hermegauss(nodes)
    return x, w / math.fsum(w)


@lru_cache
def normal_points(dimension: int, pairs: int) -> np.ndarray:
    """Evenly spread points (2 pairs, dimension) of mean exactly 0 and covariance exactly I, for averages over N(0, I).

    A lattice by the generalised golden ratio, mapped to normals, mirrored, then whitened.
    """
    ratio = 2.0
    for _ in range(64):
        ratio = (1.0 + ratio) ** (1.0 / (dimension + 1))
    steps = ratio ** -np.arange(1.0, dimension + 1)
    lattice = (0.5 + np.outer(np.arange(1, max(pairs, 2 * dimension) + 1), steps)) % 1.0
    half = np.vectorize(NormalDist().inv_cdf)(np.clip(lattice, 1e-12, 1.0 - 1e-12))
    points = np.concatenate([half, -half])
    return np.linalg.solve(np.linalg.cholesky(points.T @ points / len(points)), points.T).T


def bisect(
    passed: Callable[[Array], Array], low: Array, high: Array, halvings: int, whole: bool = False
) -> tuple[Array, Array]:
    """Halve each interval [low, high] around the point from which `passed` is True; over whole numbers if `whole`."""

    def halve(_: Array | int, bounds: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bounds
        middle = 0.5 * (low + high)
        middle = jnp.floor(middle) if whole else middle
        beyond = passed(middle)
        return jnp.where(beyond, low, middle), jnp.where(beyond, middle, high)

    return jax.lax.fori_loop(0, halvings, halve, (low, high))


def whole_interval(cdf: Callable[[Array], Array], level: float, far: Array) -> tuple[Array, Array]:
    """Smallest whole numbers, at most `far`, whose cumulative probabilities reach the tails of `level`."""

    def quantile(probability: Array) -> Array:
        return bisect(lambda y: cdf(y) >= probability, jnp.full_like(far, -1.0), far, 64, whole=True)[1]

    lower, upper = jax.vmap(quantile)(jnp.asarray(central(level), far.dtype))  # one loop for both ends
    return lower, upper


def cap(dtype: jnp.dtype) -> float:
    """Largest log whose exponential, half and square are all finite in the type."""
    return 0.9 * math.log(float(jnp.finfo(dtype).max))


def exceeds(size: Array) -> Array:
    """Where library functions of an argument of this size have an error above 1e-5."""
    return size * float(jnp.finfo(size.dtype).eps) > 1e-5


def log_rising(a: Array, k: Array) -> Array:
    """Log of Gamma(a + k) / Gamma(a), for a > 0 and k >= 0."""
    far = jnp.where(a > SERIES, a, SERIES)
    series = (far - 0.5) * jnp.log1p(k / far) + k * jnp.log(far + k) - k + _rest(far + k) - _rest(far)
    near = jnp.where(a > SERIES, SERIES, a)
    return jnp.where(a > SERIES, series, gammaln(near + k) - gammaln(near))


def log_peak(y: Array) -> Array:
    """Log Poisson probability of y at the rate y itself, which is the largest it can be: y log y - y - log y!."""
    far = jnp.where(y > SERIES, y, SERIES)
    near = jnp.where((y > 0.0) & (y <= SERIES), y, 1.0)
    exact = jnp.where(y > 0.0, near * jnp.log(near) - near - gammaln(near + 1.0), 0.0)
    return jnp.where(y > SERIES, -0.5 * jnp.log(2.0 * math.pi * far) - _rest(far), exact)


def gamma_tail(a: Array, x: Array) -> Array:
    r"""Probability that a Gamma(a) variable exceeds x; that of at most a - 1 events at the rate x.

    For large a by the uniform expansion of Temme (1979) in $\eta$, $\tfrac12\eta^2 = \mu - \log(1+\mu)$ with
    $\mu = x/a - 1$.
    """
    large = exceeds(a)
    far = jnp.where(large, a, 1.0)
    mu = jnp.maximum((jnp.where(large, x, 1.0) - far) / far, -0.999)
    small = jnp.where(jnp.abs(mu) < 0.01, mu, 0.0)
    series = small * small * (0.5 - small * (1 / 3 - small * (0.25 - 0.2 * small)))
    half = jnp.where(jnp.abs(mu) < 0.01, series, mu - jnp.log1p(mu))
    eta = jnp.sign(mu) * safe_sqrt(2.0 * half)
    near = jnp.clip(eta, -1.0, 1.0)  # beyond, the correction is below exp(-40)
    first = -1 / 3 + near * (1 / 12 - near * (2 / 135 - near * (1 / 864 + near / 2835)))
    rest = first - (1 / 540 + near / 288) / far
    expanded = ndtr(-eta * jnp.sqrt(far)) + jnp.exp(-far * half) * rest / jnp.sqrt(2.0 * math.pi * far)
    return jnp.where(large, expanded, gammaincc(jnp.where(large, 1.0, a), jnp.where(large, 1.0, x)))


def student_tail(t: Array, n: Array) -> Array:
    """Probability that Student's t with n degrees of freedom exceeds t >= 0; many degrees after Hill (1970)."""
    few = jnp.where(n < NORMAL, n, NORMAL)
    exact = 0.5 * betainc(0.5 * few, 0.5 * jnp.ones_like(few), few / (few + t * t))
    many = jnp.where(n < NORMAL, NORMAL, n)
    a = many - 0.5
    b = 48.0 * a * a
    y = a * jnp.log1p(t * t / many)
    bend = (((-0.4 * y - 3.3) * y - 24.0) * y - 85.5) / (0.8 * y * y + 100.0 + b)
    return jnp.where(n < NORMAL, exact, ndtr(-safe_sqrt(y) * (1.0 + (y + 3.0 + bend) / b)))


def _rest(z: Array) -> Array:
    """Remainder of Stirling's formula for log Gamma(z)."""
    inverse = 1.0 / z
    square = inverse * inverse
    return inverse * (1 / 12 - square * (1 / 360 - square / 1260))
