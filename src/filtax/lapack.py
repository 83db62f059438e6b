"""Factorisations and triangular solves by LAPACK, for matrices that are too large to unroll.

Under `vmap` the members of a batch are factored one after another on a CPU. XLA would share a batch out to the threads
that also run the rest of the program; on two cores two batches at once then wait for each other for ever (jaxlib
0.10). The derivatives are written down here, in terms of the same functions, so that they are safe too.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.custom_batching import sequential_vmap
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float

__all__ = ["cholesky", "eigh", "solve_lower", "svd", "upper_of_qr"]


Decomposition = tuple[Float[Array, "N K"], Float[Array, " K"], Float[Array, "K M"]]


def _one_by_one(function: Callable[..., Any]) -> Callable[..., Any]:
    """Under `vmap`, call a function once for each member of the batch, on a CPU."""
    mapped = sequential_vmap(function)
    return lambda *args: (mapped if jax.default_backend() == "cpu" else function)(*args)


def _product(A: Array, B: Array) -> Array:
    return jnp.matmul(A, B, precision="highest")


_cholesky = _one_by_one(lambda A: jnp.linalg.cholesky(A, symmetrize_input=False))
_eigh = _one_by_one(lambda A: tuple(jnp.linalg.eigh(A)))
_svd = _one_by_one(lambda A: tuple(jnp.linalg.svd(A, full_matrices=False)))
_forwards = _one_by_one(lambda L, b: solve_triangular(L, b, lower=True))
_backwards = _one_by_one(lambda L, b: solve_triangular(L, b, lower=True, trans="T"))
upper_of_qr = _one_by_one(lambda A: jnp.linalg.qr(A, mode="r"))  # without a derivative


def solve_lower(L: Float[Array, "N N"], b: Float[Array, "N *P"], transposed: bool = False) -> Float[Array, "N *P"]:
    """Solve L x = b for lower triangular L, or Lᵀ x = b.

    >>> solve_lower(jnp.array([[2.0, 0.0], [1.0, 2.0]]), jnp.array([2.0, 5.0])).tolist()
    [1.0, 2.0]
    """
    forwards, backwards = (lambda _, b: _forwards(L, b)), (lambda _, b: _backwards(L, b))
    if transposed:
        return jax.lax.custom_linear_solve(lambda x: _product(jnp.tril(L).T, x), b, backwards, forwards)
    return jax.lax.custom_linear_solve(lambda x: _product(jnp.tril(L), x), b, forwards, backwards)


@jax.custom_jvp
def cholesky(A: Float[Array, "N N"]) -> Float[Array, "N N"]:
    """Return the lower Cholesky factor of a positive definite matrix, of which the lower half is read.

    >>> cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]])).tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """
    return _cholesky(A)


@cholesky.defjvp
def _cholesky_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    r"""$\dot L = L\,\Phi(L^{-1}\dot A L^{-\top})$, with Φ the lower half."""
    (A,), (dA,) = primals, tangents
    L = cholesky(A)
    lower = jnp.tril(dA)
    symmetric = lower + lower.T - jnp.diag(jnp.diagonal(dA))
    inner = solve_lower(L, solve_lower(L, symmetric).T)
    return L, _product(L, jnp.tril(inner) - 0.5 * jnp.diag(jnp.diagonal(inner)))


@jax.custom_jvp
def eigh(A: Float[Array, "N N"]) -> tuple[Float[Array, " N"], Float[Array, "N N"]]:
    """Eigenvalues, in ascending order, and eigenvectors of a symmetric matrix.

    >>> eigh(jnp.diag(jnp.array([9.0, 4.0])))[0].tolist()
    [4.0, 9.0]
    """
    return _eigh(A)


@eigh.defjvp
def _eigh_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    r"""With $P = V^\top\dot A V$: $\dot\lambda_i = P_{ii}$ and $\dot V = V\Omega$.

    Here $\Omega_{ij} = P_{ij}/(\lambda_j - \lambda_i)$ for i ≠ j.
    """
    (A,), (dA,) = primals, tangents
    value, V = eigh(A)
    turned = _product(V.T, _product(0.5 * (dA + dA.T), V))
    gap = value[None, :] - value[:, None] + jnp.eye(value.size, dtype=A.dtype)
    turn = turned / gap * (1.0 - jnp.eye(value.size, dtype=A.dtype))
    return (value, V), (jnp.diagonal(turned), _product(V, turn))


@jax.custom_jvp
def svd(A: Float[Array, "N M"]) -> Decomposition:
    """Thin singular value decomposition A = U diag(s) Vᵀ, with K = min(N, M).

    >>> svd(jnp.diag(jnp.array([4.0, 9.0])))[1].tolist()
    [9.0, 4.0]
    """
    return _svd(A)


@svd.defjvp
def _svd_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Decomposition, Decomposition]:
    r"""With $P = U^\top\dot A V$ and S = diag(s): $\dot s_i = P_{ii}$, and U and V turn within their columns.

    U by $(PS + SP^\top)_{ij}/(s_j^2 - s_i^2)$, V by $(SP + P^\top S)_{ij}/(s_j^2 - s_i^2)$. What A moves out of their
    span is added, divided by s.
    """
    (A,), (dA,) = primals, tangents
    U, s, Vt = svd(A)
    P = _product(U.T, _product(dA, Vt.T))
    eye = jnp.eye(s.size, dtype=A.dtype)
    F = (1.0 - eye) / (s[None, :] ** 2 - s[:, None] ** 2 + eye)
    left, right = P * s[None, :], s[:, None] * P
    safe = jnp.where(s > 0.0, s, 1.0)
    dU = _product(U, F * (left + left.T)) + _rest(U, _product(dA, Vt.T) / safe[None, :])
    dV = _product(Vt.T, F * (right + right.T)) + _rest(Vt.T, _product(dA.T, U) / safe[None, :])
    return (U, s, Vt), (dU, jnp.diagonal(P), dV.T)


def _rest(Q: Array, X: Array) -> Array:
    """What of the columns of X the columns of Q do not span."""
    return X - _product(Q, _product(Q.T, X)) if Q.shape[0] > Q.shape[1] else jnp.zeros_like(X)
