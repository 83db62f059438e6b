r"""(A.1) How the members of an ensemble move to one whitened datum: perturbed observations, or a transform.

Deviations of the members $A$ (S, D) and of their predictions $Y$ (S, O); a whitener B and residual r, so that with
$U = YB^\top$ the datum says r = U + e, e ~ N(0, I). The gain comes from $I + U^\top U/(S-1) = LL^\top$; nothing is
inverted. Axes: S members, D parameters, O outputs.

Thesis: eq:ensemble-kf-update (errata E7: 1/(S-1), and a gain of shape D x O).
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from filtax import lapack
from filtax.linalg import matmul, solve_lower, solve_upper, triangular_root

__all__ = ["perturbed", "root", "transformed", "transformed_nearby"]


def root(U: Float[Array, "S O"]) -> Float[Array, "O O"]:
    """L with L Lᵀ = I + Uᵀ U / (S - 1), without forming the product.

    >>> root(jnp.array([[1.0], [-1.0]]) * jnp.sqrt(1.5)).round(4).tolist()
    [[2.0]]
    """
    eye = jnp.eye(U.shape[1], dtype=U.dtype)
    return triangular_root(jnp.concatenate([eye, U.T / _degrees(U)], axis=1))


def perturbed(
    key: Key[Array, ""],
    A: Float[Array, "S D"],
    Y: Float[Array, "S O"],
    B: Array,
    r: Float[Array, "S O"],
    rho: Float[Array, "O D"] | None = None,
) -> Float[Array, "S D"]:
    r"""What each member moves by: gain times $r_s - e_s$, $e_s \sim N(0, I)$; B (O, O), or (S, O, O) for each member.

    The noise has its mean taken out, so that the mean moves as it would without it. `rho` multiplies the gain, element
    by element; a covariance localised alone would leave the gain unbounded.

    >>> still = perturbed(jax.random.key(0), jnp.eye(3), jnp.ones((3, 1)), jnp.zeros((1, 1)), jnp.ones((3, 1)))
    >>> bool(jnp.all(still == 0.0))
    True
    """
    e = jax.random.normal(key, r.shape, r.dtype)
    gap = r - (e - jnp.mean(e, axis=0, keepdims=True))
    C = matmul(Y.T, A) / (Y.shape[0] - 1)
    if B.ndim == 2:
        return _pulled(root(matmul(Y, B.T)), B, gap, C, rho)
    K = triangular_root(Y.T / _degrees(Y))
    eye = jnp.eye(Y.shape[1], dtype=Y.dtype)

    def one(B: Array, gap: Array) -> Array:
        return _pulled(triangular_root(jnp.concatenate([eye, matmul(B, K)], axis=1)), B, gap[None, :], C, rho)[0]

    return jax.vmap(one)(B, gap)


def _pulled(L: Array, B: Array, gap: Float[Array, "N O"], C: Float[Array, "O D"], rho: Array | None) -> Array:
    """Gain times gap, (N, D); the gain itself is formed only to be localised."""
    if rho is None:
        return matmul(_solve(L, gap.T).T, matmul(B, C))
    return matmul(gap, rho * _solve(L, matmul(B, C)))


def transformed(A: Float[Array, "S D"], U: Float[Array, "S O"], r: Float[Array, " O"]) -> Float[Array, "S D"]:
    r"""Deviations after the datum, around the old mean: the Kalman update of the sample moments, exactly.

    With $Z = U/\sqrt{S-1}$ the mean moves by $A^\top Z L^{-\top}L^{-1}r/\sqrt{S-1}$, and the deviations become
    $A - Z(L + I)^{-\top}L^{-1}Z^\top A$. They still sum to zero, since those of the predictions do.

    >>> transformed(jnp.array([[1.0], [-1.0]]), jnp.zeros((2, 1)), jnp.ones(1)).tolist()
    [[1.0], [-1.0]]
    """
    Z, L = U / _degrees(U), root(U)
    ZA = matmul(Z.T, A)
    shift = matmul(_solve(L, r[:, None]).T, ZA) / _degrees(U)
    eye = jnp.eye(L.shape[0], dtype=L.dtype)
    return shift + A - matmul(Z, solve_upper(L + eye, solve_lower(L, ZA)))


def transformed_nearby(
    A: Float[Array, "S D"], U: Float[Array, "S O"], r: Float[Array, " O"], rho: Float[Array, "O D"]
) -> Float[Array, "S D"]:
    r"""The same with a transform for each parameter, in which output o has the noise $R_o/\rho_{oi}$.

    The analysis of Hunt, Kostelich and Szunyogh (2007): an output of which $\rho$ is 0 is not there. Neighbours must
    move alike, so that each transform is the symmetric root, the nearest to none: with $Z = P\sigma V^\top$ and
    $h^2 = 1 + \sigma^2$ it is $I - P\,\sigma^2/(h(h + 1))\,P^\top$. Where $\rho$ is 1 its moments are those of
    `transformed`. Cost: D singular value decompositions, which have no slope where two values are equal.

    >>> near = transformed_nearby(jnp.eye(3) - 1 / 3, jnp.eye(3) - 1 / 3, jnp.ones(3), jnp.zeros((3, 3)))
    >>> bool(jnp.all(near == jnp.eye(3) - 1 / 3))
    True
    """
    unit = _degrees(U)

    def one(a: Float[Array, " S"], s: Float[Array, " O"]) -> Float[Array, " S"]:
        Z = U * s[None, :] / unit
        V, size, Pt = lapack.svd(Z.T)
        h = jnp.sqrt(1.0 + size * size)
        along = matmul(Pt, a[:, None])[:, 0]
        shift = jnp.sum(size * along * matmul(V.T, (s * r)[:, None])[:, 0] / (h * h)) / unit
        return shift + a - matmul(Pt.T, (size * size / (h * (h + 1.0)) * along)[:, None])[:, 0]

    return jax.vmap(one, in_axes=1, out_axes=1)(A, jnp.sqrt(rho))


def _solve(L: Array, right: Array) -> Array:
    return solve_upper(L, solve_lower(L, right))


def _degrees(U: Array) -> Array:
    return jnp.sqrt(jnp.asarray(U.shape[0] - 1, U.dtype))
