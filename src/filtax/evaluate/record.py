"""What is kept of one predictive distribution once its y is known: enough for every metric, and no more.

A Gaussian or a class forecast is its mean and variance, a Student-t has a scale and degrees of freedom besides. Any
other (counts, a mixture of hypotheses) is asked, at the time, for its distribution function and its ranked score at y.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from filtax.distributions import Bernoulli, Categorical, Mixture, NegativeBinomial, Normal, Poisson, StudentT

__all__ = ["counts_whole", "is_labelled", "is_plain", "keep", "ranked_score"]

_NODES = 64  # on each side of y: the score of a Gaussian is then right to 1e-9
_CELLS = 128  # whole numbers on each side of y that are added up one by one; if there are more, in strides
_TAIL = 1e-6  # probability left outside of the range that is integrated


def is_labelled(dist: PyTree) -> bool:
    """Say whether y is a label, not a number.

    >>> is_labelled(Categorical(jnp.zeros(2)))
    True
    """
    return isinstance(_part(dist), Bernoulli | Categorical)


def counts_whole(dist: PyTree) -> bool:
    """Say whether y can only be a whole number.

    >>> counts_whole(NegativeBinomial(jnp.ones(1), jnp.ones(1)))
    True
    """
    return isinstance(_part(dist), Poisson | NegativeBinomial)


def is_plain(dist: PyTree) -> bool:
    """Say whether mean and variance (or, of classes, the probabilities) are all there is to know.

    >>> is_plain(Normal(jnp.zeros(1), jnp.eye(1)))
    True
    """
    return isinstance(dist, Normal | Bernoulli | Categorical)


def keep(dist: PyTree, y: Array, level: float, ranked: bool) -> dict[str, Array]:
    """Ask a distribution all that the metrics need to know of it at y.

    Args:
        dist: The forecast of one y.
        y: What came, NaN where nothing did.
        level: Of the interval that is kept.
        ranked: Whether the ranked score is wanted; it costs more than all the rest.

    Returns:
        Fields of `Forecast` for one row.

    >>> kept = keep(Normal(jnp.zeros(1), jnp.eye(1), scalar=True), jnp.zeros(()), 0.9, ranked=True)
    >>> {name: round(value.item(), 3) for name, value in kept.items()}
    {'mean': 0.0, 'var': 1.0, 'log_prob': -0.919}
    """
    seen = jnp.isfinite(y)
    y = jnp.where(seen, y, 0.0)
    kept = {"mean": dist.mean, "var": dist.var, "log_prob": dist.log_prob(y, seen.reshape(-1))}
    if is_plain(dist) or is_labelled(dist):
        return kept
    y = y.reshape(dist.mean.shape).astype(dist.mean.dtype)
    kept["lower"], kept["upper"] = dist.interval(level)
    if isinstance(dist, StudentT):
        scale = jnp.sqrt(jnp.diagonal(dist.scale)).reshape(dist.mean.shape)
        return kept | {"scale": scale, "df": jnp.broadcast_to(dist.freedom, scale.shape)}
    below, upto = jax.vmap(dist.cdf)(jnp.stack([y - 0.5 if counts_whole(dist) else y, y]))
    kept |= {"below": below, "upto": upto}
    return kept | {"ranked": ranked_score(dist, y)} if ranked else kept


def ranked_score(dist: PyTree, y: Array) -> Array:
    r"""Integrate $\int (F(z) - 1[z \ge y])^2 dz$ for each output: the continuous ranked probability score.

    By Gauss-Legendre on either side of y; for whole numbers by the sum that the integral then is. Beyond the range of
    the forecast F is 0 or 1, and the distance of y from it counts in full.

    >>> fair = Bernoulli(jnp.log(jnp.array([0.5])), jnp.log(jnp.array([0.5])), scalar=True)
    >>> ranked_score(fair, jnp.ones(())).round(6).item()
    0.25
    """
    lower, upper = dist.interval(1.0 - _TAIL)
    y = jnp.asarray(y, lower.dtype)
    inside = jnp.clip(y, lower, upper)
    cut = _cells if counts_whole(dist) or is_labelled(dist) else _nodes
    (left, below), (right, above) = cut(lower, inside), cut(inside, upper)
    F = jax.vmap(dist.cdf)(jnp.concatenate([left, right]))  # in one call: it is dear to compile
    score = jnp.sum(below * F[: len(left)] ** 2, axis=0) + jnp.sum(above * (1.0 - F[len(left) :]) ** 2, axis=0)
    return jnp.abs(y - inside) + score


def _nodes(start: Array, end: Array) -> tuple[Array, Array]:
    """Where to look at a smooth function between start and end, and how much each look weighs."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    nodes, weights = _along(0.5 * (nodes + 1.0), start), _along(0.5 * weights, start)
    return start[None] + (end - start)[None] * nodes, (end - start)[None] * weights


def _cells(start: Array, end: Array) -> tuple[Array, Array]:
    """Likewise for a function that is constant from one whole number to the next."""
    stride = jnp.maximum(jnp.ceil((end - start) / _CELLS), 1.0)[None]
    edges = start[None] + stride * _along(np.arange(_CELLS), start)
    widths = jnp.clip(end[None] - edges, 0.0, stride)
    return edges + 0.5 * widths, widths


def _part(dist: PyTree) -> Any:
    return dist.parts if isinstance(dist, Mixture) else dist


def _along(values: np.ndarray, like: Array) -> Array:
    """Put values on a new first axis, before those of `like`."""
    return jnp.asarray(values, like.dtype).reshape((-1,) + (1,) * like.ndim)
