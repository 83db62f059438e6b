r"""Passes over a square matrix A (D, D) of many parameters: a covariance, or a root of one.

A step of a dense belief spends its time reading and writing A: for the forecast, and to change it; once for both where
the change waits for the next forecast (`caught_up`). XLA divides some of these passes by rows and others by columns,
among threads as they come, so that cores wait for what another one has written: on two that do not share a cache that
takes ten times as long as the passes themselves. On a CPU with a C compiler they are kernels of our own (`native`), in
which a core keeps its rows. Elsewhere, for few parameters, for vmapped streams (one product for all of them reads A
once), and as derivatives, they are products.

Axes: D parameters, O outputs. Cost: O(D² O).
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from filtax._xla import no_inline
from filtax.linalg import gram, matmul

__all__ = ["applied", "caught_up", "downdated", "narrowed", "reached"]

MANY = 256  # up to so many parameters a product costs less than to call for one
CACHED = range(
    257, 2049
)  # D for which a sum over rows is a tenth faster than XLA's product; above, it leaves the cache


def applied(A: Float[Array, "D D"], J: Float[Array, "O D"]) -> Float[Array, "D O"]:
    r"""$AJ^\top$.

    >>> applied(2.0 * jnp.eye(2), jnp.array([[3.0, 4.0]])).tolist()
    [[6.0], [8.0]]
    """
    return matmul(A, J.T)


def reached(A: Float[Array, "D D"], J: Float[Array, "O D"]) -> Float[Array, "O D"]:
    r"""$JA$.

    >>> reached(2.0 * jnp.eye(2), jnp.array([[3.0, 4.0]])).tolist()
    [[6.0, 8.0]]
    """
    return _reached(A, J)


def downdated(A: Float[Array, "D D"], U: Float[Array, "D O"], diagonal: Float[Array, " D"]) -> Float[Array, "D D"]:
    r"""$A - UU^\top$, with other numbers on its diagonal.

    >>> downdated(2.0 * jnp.eye(2), jnp.ones((2, 1)), jnp.array([5.0, 6.0])).tolist()
    [[5.0, -1.0], [-1.0, 6.0]]
    """
    U = _once(U)
    return _downdated(A, U, diagonal)


def caught_up(
    A: Float[Array, "D D"], u: Float[Array, " D"], J: Float[Array, "1 D"]
) -> tuple[Float[Array, "D D"], Float[Array, "D 1"]]:
    r"""$A - uu^\top$ with zeros on its diagonal, and that times $J^\top$: a change that was put off, and a forecast.

    >>> [a.tolist() for a in caught_up(jnp.zeros((2, 2)), jnp.array([1.0, 2.0]), jnp.array([[3.0, 4.0]]))]
    [[[0.0, -2.0], [-2.0, 0.0]], [[-8.0], [-6.0]]]
    """
    return _caught_up(A, u, J)


def narrowed(
    A: Float[Array, "D D"], V: Float[Array, "O D"], C: Float[Array, "O D"]
) -> tuple[Float[Array, "D D"], Float[Array, "D O"]]:
    r"""$A - (AV^\top)C$, and $AV^\top$.

    >>> [a.tolist() for a in narrowed(jnp.eye(2), jnp.array([[1.0, 0.0]]), jnp.array([[0.5, 0.0]]))]
    [[[0.5, 0.0], [0.0, 1.0]], [[1.0], [0.0]]]
    """
    return _narrowed(A, V, C)


@no_inline  # XLA would otherwise repeat the computation of U, the trust included, in each of the D² products
def _once(U: Array) -> Array:
    return U


def _reached(A: Array, J: Array) -> Array:
    if len(J) == 1 and len(A) in CACHED:
        return jnp.sum(J[0, :, None] * A, axis=0)[None]
    return matmul(J, A)


def _renewed(A: Array, diagonal: Array) -> Array:
    at = jnp.arange(len(A))
    return A.at[at, at].set(diagonal)


def _downdated(A: Array, U: Array, diagonal: Array) -> Array:
    return _renewed(A - gram(U), diagonal)


def _caught_up(A: Array, u: Array, J: Array) -> tuple[Array, Array]:
    A = _renewed(A - u[:, None] * u[None, :], jnp.zeros_like(u))
    return A, matmul(A, J.T)


def _narrowed(A: Array, V: Array, C: Array) -> tuple[Array, Array]:
    AV = matmul(A, V.T)
    return A - matmul(AV, C), AV
