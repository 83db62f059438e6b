"""What forecasts share: how they show their arrays, quantiles of counts, and fixed rules for normal averages."""

import math
from collections.abc import Callable
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array

from filtax import checks

__all__ = [
    "at_each",
    "at_one",
    "central",
    "diagonal",
    "normal_points",
    "normal_rule",
    "outward",
    "per_datum",
    "variances",
    "whole_interval",
]


def outward(values: Array, scalar: bool) -> Array:
    """Drop the output axis when the model's output is a plain scalar.

    >>> outward(jnp.ones(1), scalar=True).shape
    ()
    """
    return values[..., 0] if scalar else values


def at_one(y: ArrayLike, mask: Array | None, like: Array) -> tuple[Array, Array | None]:
    """A y whose probability is asked, and its mask, of the shape of `like`; axes of length one do not matter.

    >>> at_one(3, None, jnp.zeros(1))[0].tolist()
    [3.0]
    """
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
    """Where a distribution function is asked: a number for all outputs, or one for each.

    >>> at_each(3, jnp.zeros(2)).tolist()
    [3.0, 3.0]
    """
    points = jnp.asarray(checks.numeric("cdf(y): y", y).astype(mean.dtype))
    pairs = zip(reversed(points.shape), reversed(mean.shape), strict=False)
    if points.ndim > mean.ndim or any(given not in (1, wanted) for given, wanted in pairs):
        raise ValueError(
            f"cdf: y has shape {points.shape} but the forecast has shape {mean.shape}; give one number for each "
            "output, or map over many: jax.vmap(forecast.cdf)(ys)."
        )
    return jnp.broadcast_to(points, mean.shape)


def diagonal(values: Array) -> Array:
    """Diagonal matrices with the given variances, for any leading axes.

    >>> diagonal(jnp.array([[1.0, 2.0]])).tolist()
    [[[1.0, 0.0], [0.0, 2.0]]]
    """
    size = values.shape[-1]
    return values[..., None] * jnp.eye(size, dtype=values.dtype).reshape((1,) * (values.ndim - 1) + (size, size))


def variances(matrices: Array) -> Array:
    """Diagonals of square matrices, for any leading axes: a slice, where `jnp.diagonal` is a gather.

    >>> variances(jnp.array([[[1.0, 2.0], [3.0, 4.0]]])).tolist()
    [[1.0, 4.0]]
    """
    size = matrices.shape[-1]
    return matrices.reshape(*matrices.shape[:-2], size * size)[..., :: size + 1]


def per_datum(function: Callable, ranks: tuple[int, ...]) -> Callable:
    """Map a function of single forecasts over any leading axes; `ranks` are the ranks of its plain arguments.

    Any but the first may be None, and stays None.

    >>> per_datum(jnp.dot, (1, 1))(jnp.ones((5, 2)), jnp.ones((5, 2))).shape
    (5,)
    """

    def mapped(first: Array, *others: Array | None) -> Array:
        call = function
        for _ in range(first.ndim - ranks[0]):
            call = jax.vmap(call)
        return call(first, *others)

    return mapped


def central(level: float) -> tuple[float, float]:
    """Tail probabilities of the central interval that holds `level`.

    >>> central(0.5)
    (0.25, 0.75)
    """
    if not (isinstance(level, int | float | np.number) and 0.0 < level < 1.0):
        raise ValueError(f"interval(level={level!r}) must lie strictly between 0 and 1; for 90 % give 0.9.")
    return 0.5 * (1.0 - level), 0.5 * (1.0 + level)


@lru_cache
def normal_rule(nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Hermite nodes and weights for an average over N(0, 1); the weights sum to one.

    >>> nodes, weights = normal_rule(8)
    >>> round(float(weights @ nodes**4), 12)
    3.0
    """
    x, w = np.polynomial.hermite_e.hermegauss(nodes)
    return x, w / math.fsum(w)


@lru_cache
def normal_points(dimension: int, pairs: int) -> np.ndarray:
    """Evenly spread points (2 pairs, dimension) of mean exactly 0 and covariance exactly I, for averages over N(0, I).

    A lattice by the generalised golden ratio, mapped to normals, mirrored, then whitened.

    >>> points = normal_points(3, 64)
    >>> bool(np.allclose(points.T @ points / 128, np.eye(3)))
    True
    """
    ratio = 2.0
    for _ in range(64):
        ratio = (1.0 + ratio) ** (1.0 / (dimension + 1))
    steps = ratio ** -np.arange(1.0, dimension + 1)
    lattice = (0.5 + np.outer(np.arange(1, max(pairs, 2 * dimension) + 1), steps)) % 1.0
    half = np.vectorize(NormalDist().inv_cdf)(np.clip(lattice, 1e-12, 1.0 - 1e-12))
    points = np.concatenate([half, -half])
    return np.linalg.solve(np.linalg.cholesky(points.T @ points / len(points)), points.T).T


def whole_interval(cdf: Callable[[Array], Array], level: float, far: Array) -> tuple[Array, Array]:
    """Return the smallest whole numbers, at most `far`, whose cumulative probabilities reach the tails of `level`.

    >>> [end.item() for end in whole_interval(lambda y: y / 10.0, 0.3, jnp.asarray(10.0))]
    [4.0, 7.0]
    """

    def quantile(probability: Array) -> Array:
        def halve(_: Array, bounds: tuple[Array, Array]) -> tuple[Array, Array]:
            low, high = bounds
            middle = jnp.floor(0.5 * (low + high))
            reached = cdf(middle) >= probability
            return jnp.where(reached, low, middle), jnp.where(reached, middle, high)

        return jax.lax.fori_loop(0, 64, halve, (jnp.full_like(far, -1.0), far))[1]

    lower, upper = jax.vmap(quantile)(jnp.asarray(central(level), far.dtype))  # one loop for both ends
    return lower, upper
