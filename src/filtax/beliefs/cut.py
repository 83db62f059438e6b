r"""What a datum does to a Gaussian whose covariance is held as such: a downdate, and what guards it.

The update is a symmetric downdate $\Sigma - UU^\top$. Rounding can push it below zero, and what is below zero the next
data push further. Three guards stop it. Two are inactive in exact arithmetic: $J\Sigma J^\top$ has no negative
diagonal, and, since $\Sigma' \succeq \Sigma / m$ with $m = 1 + \mathrm{tr}(BJ\Sigma J^\top B^\top)$, no variance falls
below that share of its old value. The third gives back what the digits cannot hold: each variance grows by
$(2\sqrt{D} + 8)\,\epsilon\,h^{1/3}(1 - 1/m)$ of its old value, where
$h = \epsilon\,\mathrm{tr}(BJ\,\mathrm{diag}(\Sigma)J^\top B^\top)$, at most 1, is the rounding of a forecast in units
of the noise. In that unit a datum takes $\lambda^2$ from an eigenvalue $\lambda < 0$, and rounding lets it wander by h;
the power is the one that keeps the walk from running away. Where the digits suffice h is small. A belief that cannot
resolve a datum is wide instead of wrong, and narrows with the next ones.

Axes: D parameters, O outputs. Cost: O(D O²).
Thesis: prop:kf-equations, eq:kf-update-step (errata E3).
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from filtax.factor import factor
from filtax.linalg import matmul, trace

__all__ = ["SMALL", "Cut", "cut", "guarded", "symmetric"]

SMALL = 32  # up to this D the diagonal is reached by a mask; XLA does not compile a loop whole that scatters
# The rounding of a cut in ε of the variances is (2 √D + 8): with √D near-collinear features went negative, with 4 for
# the 8 one stream of few parameters in fifty thousand, with none one in a hundred.
ROUNDING, LEAST = 2.0, 8.0


class Cut(NamedTuple):
    r"""What a datum does: the new mean, $UU^\top$ to take off the covariance, and the shares of variances that stay."""

    mean: Float[Array, " D"]
    U: Float[Array, "D O"]
    most: Float[Array, ""]
    doubt: Float[Array, ""]
    innovation: Float[Array, " O"]
    log_det: Float[Array, ""]
    ok: Bool[Array, ""]

    def left(self, var: Float[Array, " D"]) -> Float[Array, " D"]:
        """The variances after it."""
        return self.least(var - jnp.sum(self.U * self.U, axis=1), var)

    def least(self, taken: Float[Array, " D"], var: Float[Array, " D"]) -> Float[Array, " D"]:
        """Variances from which U Uᵀ was taken: each keeps `doubt` of its old value, and that divided by `most`."""
        return jnp.maximum(taken + self.doubt * var, var * (1.0 / self.most))


def cut(mean: Array, var: Array, J: Array, B: Array, r: Array, PJ: Array, spread: Array) -> Cut:
    """What a datum r = B J (theta - mean) + e does to a Gaussian with these variances; `PJ` is Σ Jᵀ.

    `spread` is B J Σ Jᵀ Bᵀ. What would not be finite is not taken.

    >>> one = jnp.ones((1, 1))
    >>> cut(jnp.zeros(1), jnp.full(1, 3.0), one, one, jnp.ones(1), 3.0 * one, 3.0 * one).mean.tolist()
    [0.75]
    """
    # What is shared by vmapped streams is guarded here, so that their means need fewer guards of their own.
    finite = jnp.isfinite(trace(spread))
    spread = jnp.where(finite, spread, 0.0)
    L = factor(jnp.asarray(np.eye(r.size), r.dtype) + spread)
    most = jnp.where(finite, 1.0 + trace(spread), 1.0)
    doubt = _doubt(J, B, most, var)
    # exactly, no pivot is below 1: a smaller one was lost to rounding
    sound = finite & L.sound(least=0.5) & jnp.isfinite(doubt)
    U, z = jnp.where(sound, L.solve(matmul(B, PJ.T)).T, 0.0), L.solve(r)
    moved = mean + matmul(U, z[:, None])[:, 0]
    mean = jnp.where(jnp.isfinite(moved), moved, mean)
    ok = sound & jnp.all(jnp.isfinite(moved))
    return Cut(mean, U, jnp.where(sound, most, 1.0), jnp.where(sound, doubt, 0.0), z, L.log_det, ok)


def _doubt(J: Array, B: Array, most: Array, var: Array) -> Array:
    """Share of each old variance that the rounding of a cut is worth; none where nothing is cut.

    A small belief has the share of the worst case: what a better one would cost is more than it is worth.
    """
    eps = float(jnp.finfo(var.dtype).eps)
    share = (ROUNDING * math.sqrt(var.size) + LEAST) * eps * (1.0 - 1.0 / most)
    if var.size <= SMALL:
        return share
    G = matmul(B, J)
    blur = eps * jnp.sum(var[None, :] * G * G)
    return share * jax.lax.stop_gradient(jnp.cbrt(jnp.minimum(blur, 1.0)))  # its slope is infinite at 0


def guarded(spread: Array) -> Array:
    """Symmetric, with a diagonal that is at least zero.

    >>> guarded(jnp.array([[-1.0, 1.0], [3.0, 4.0]])).tolist()
    [[0.0, 2.0], [2.0, 4.0]]
    """
    if spread.shape[0] == 1:
        return jnp.maximum(spread, 0.0)
    spread = symmetric(spread)
    return jnp.where(np.eye(spread.shape[0], dtype=bool), jnp.maximum(spread, 0.0), spread)


def symmetric(A: Float[Array, "N N"]) -> Float[Array, "N N"]:
    """Half of A and its transpose.

    >>> symmetric(jnp.array([[1.0, 1.0], [3.0, 4.0]])).tolist()
    [[1.0, 2.0], [2.0, 4.0]]
    """
    return 0.5 * (A + A.T)
