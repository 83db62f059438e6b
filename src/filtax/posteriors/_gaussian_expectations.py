r"""(A.1) Expected score and curvature under a Gaussian belief, as a pseudo-datum that any Gaussian form can absorb.

At each natural parameter a likelihood turns y into a whitener B and a residual r, with curvature $B^\top B$ and score
$B^\top r$. Such pairs at many points, each scaled by the root of its weight and stacked, are again such a pair, whose
curvature and score are the weighted averages. So nothing is subtracted, the averaged curvature is positive semidefinite
by construction, and no likelihood needs a derivative of its own. For a network the curvature is that of Gauss and
Newton, $J^\top B^\top B J$: the part with the second derivative of h is omitted.

Axes: D parameters, O outputs, S samples, N stacked rows. Memory: O(S O D), never S D².
Thesis: eq:rvga-mu-sigma-update, eq:sample-expectation (errata E6).
"""

import math
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PyTree

from filtax.distributions._numerics import normal_points
from filtax.linalg import cholesky, matmul, psd_root, solve_lower
from filtax.models import Linearised, Model
from filtax.numerics import safe_sqrt
from filtax.posteriors._extended import Mask, RandomKey
from filtax.protocols import Module

PAIRS = 64  # mirrored points for several outputs
REACH, STEP = 12.0, 0.15  # of the rule for one output, in standard deviations


class PseudoDatum(Module):
    """N rows that stand for a datum: r = B J (theta - mean) + e with e ~ N(0, I)."""

    jacobian: Float[Array, "N D"]
    whitener: Float[Array, "N N"]
    residual: Float[Array, " N"]

    @property
    def rows(self) -> Float[Array, "N D"]:
        """The whitened Jacobian B J."""
        return matmul(self.whitener, self.jacobian)

    def about(self, move: Float[Array, " D"]) -> "PseudoDatum":
        """The same about another mean, from which the present one is `move` away."""
        there = matmul(self.whitener, matmul(self.jacobian, move[:, None]))[:, 0]
        return PseudoDatum(self.jacobian, self.whitener, self.residual + there)

    def unless(self, bad: Bool[Array, ""]) -> "PseudoDatum":
        """The same, or one without any information if `bad`."""
        B, r = jnp.where(bad, 0.0, self.whitener), jnp.where(bad, 0.0, self.residual)
        return PseudoDatum(jnp.where(bad, 0.0, self.jacobian), B, r)


def over_mean(model: Model, at: Linearised, x: Array | None, y: Array, mask: Mask) -> PseudoDatum:
    """Compute score and curvature at the mean alone, as the extended filter does."""
    whitened = model.likelihood.whiten(at.eta, x, y, mask)
    return PseudoDatum(at.jacobian, whitened.whitener, whitened.residual)


def over_outputs(
    model: Model, at: Linearised, spread: Float[Array, "O O"], x: Array | None, y: Array, mask: Mask
) -> PseudoDatum:
    r"""Average over eta ~ N(h, J Σ Jᵀ) by a fixed rule: exact for a linear h, else with h linearised at the mean.

    One output uses a trapezium rule, which for a smooth function under a normal weight converges as fast as
    Gauss-Hermite quadrature, and keeps its nodes close together where the belief is wide. Several outputs use mirrored
    points with exact mean and covariance.
    """
    O = at.eta.size
    points, weights = (jnp.asarray(part, at.eta.dtype) for part in _rule(O))
    eta = at.eta[None, :] + matmul(points, _root(spread).T)
    whitened = jax.vmap(lambda one: model.likelihood.whiten(one, x, y, mask))(eta)
    half = jnp.sqrt(weights)
    rows = (half[:, None, None] * whitened.whitener).reshape(-1, O)
    B, r = compress(rows, (half[:, None] * whitened.residual).reshape(-1))
    return PseudoDatum(at.jacobian, B, r)


def over_samples(
    belief: PyTree,
    width: Float[Array, ""],
    model: Model,
    x: Array | None,
    y: Array,
    mask: Mask,
    aux: PyTree,
    key: RandomKey,
    samples: int,
) -> PseudoDatum:
    """Average over S samples of theta in mirrored pairs, whose mean is that of the belief up to rounding.

    `width` is a factor on the variance of the belief.
    """
    mean = belief.mean[None, :]
    gap = jnp.sqrt(width) * (belief.sample(key, (samples // 2,)) - mean)
    theta = jnp.concatenate([mean + gap, mean - gap])

    def one(theta: Array) -> tuple[Array, Array]:
        at = model.linearise(theta, x, aux)
        whitened = model.likelihood.whiten(at.eta, x, y, mask)
        return matmul(whitened.whitener, at.jacobian), whitened.residual

    rows, residual = jax.vmap(one)(theta)
    scale = samples**-0.5
    return _bounded_rows(scale * rows.reshape(-1, theta.shape[1]), scale * residual.reshape(-1))


def blend(old: PseudoDatum | None, new: PseudoDatum, step: Float[Array, ""]) -> PseudoDatum:
    """Mix pseudo-data: the share 1 - step of the old curvature and score, and the share `step` of the new."""
    taken = jnp.sqrt(step)
    if old is None:
        return PseudoDatum(new.jacobian, taken * new.whitener, taken * new.residual)
    kept = safe_sqrt(1.0 - step)
    rows = jnp.concatenate([kept * old.rows, taken * new.rows])
    return _bounded_rows(rows, jnp.concatenate([kept * old.residual, taken * new.residual]))


def compress(rows: Float[Array, "N K"], r: Float[Array, " N"]) -> tuple[Float[Array, "K K"], Float[Array, " K"]]:
    """Compute K rows with the same curvature and score as N of them.

    Columns are scaled first, and a shift of the size of the rounding error makes a singular curvature factorable; a
    column of zeros stays zero.
    """
    N, K = rows.shape
    size = safe_sqrt(jnp.sum(rows * rows, axis=0))
    unit = rows / jnp.where(size > 0.0, size, 1.0)[None, :]
    shift = (K + 4.0 * math.sqrt(N)) * float(jnp.finfo(rows.dtype).eps)  # the rounding error of a sum of N products
    L = cholesky(matmul(unit.T, unit) + shift * jnp.eye(K, dtype=rows.dtype))
    return L.T * size[None, :], solve_lower(L, matmul(unit.T, r[:, None])[:, 0])


def _bounded_rows(rows: Array, r: Array) -> PseudoDatum:
    """A pseudo-datum of at most D rows; its whitener is zero where it has no information."""
    if rows.shape[0] > rows.shape[1]:
        rows, r = compress(rows, r)
    return PseudoDatum(rows, jnp.where(jnp.any(rows != 0.0), jnp.eye(r.size, dtype=r.dtype), 0.0), r)


@lru_cache
def _rule(outputs: int) -> tuple[np.ndarray, np.ndarray]:
    """Points (K, O) and weights (K,) for an average over N(0, I)."""
    if outputs > 1:
        points = normal_points(outputs, PAIRS)
        return points, np.full(len(points), 1.0 / len(points))
    nodes = np.arange(-REACH, REACH + 0.5 * STEP, STEP)
    weights = np.exp(-0.5 * nodes * nodes)
    return nodes[:, None], weights / weights.sum()


def _root(spread: Array) -> Array:
    return safe_sqrt(spread) if spread.size == 1 else psd_root(spread)
