"""A triangular factor that is cheap to use: a small one keeps scalars, so that XLA fuses what is solved with it.

XLA's CPU compiler ends a fused kernel at each root or division that several others read, and a small filter spends its
time on the number of its kernels. So the small factor is L D Lᵀ: one kernel for each entry below the diagonal, one for
each pivot, and none for a solve.
"""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from filtax import lapack
from filtax._xla import no_inline
from filtax.linalg import SMALL, matmul
from filtax.protocols import Module

__all__ = ["Factor", "factor"]

MIDDLE, WIDE = 32, 1024  # sides of a factor, and numbers solved for, from which on the library solves with threads


class Factor(Module):
    """A root of a positive definite matrix A, in whose units A is the identity.

    `rows` is its lower Cholesky factor (N, N), or for small N a row of scalars for each line of the unit triangle,
    which ends in the reciprocal root of the pivot.

    >>> factor(jnp.array([[4.0, 2.0], [2.0, 5.0]])).solve(jnp.array([2.0, 5.0])).tolist()
    [1.0, 2.0]
    """

    rows: Array | tuple[tuple[Array, ...], ...]

    def solve(self, b: Float[Array, "N *P"]) -> Float[Array, "N *P"]:
        """L⁻¹ b for the lower Cholesky factor L."""
        if not isinstance(self.rows, tuple):
            if b.size >= WIDE and self.rows.shape[0] < MIDDLE:
                return matmul(_inverse(self.rows), b)
            return lapack.solve_lower(self.rows, b)
        x: list[Array] = []
        for i, row in enumerate(self.rows):
            x.append(b[i] - sum(row[k] * x[k] for k in range(i)) if i else b[i])
        return jnp.stack([value * row[-1] for value, row in zip(x, self.rows, strict=True)])

    @property
    def log_det(self) -> Float[Array, ""]:
        """Log determinant of A."""
        if not isinstance(self.rows, tuple):
            return 2.0 * jnp.sum(jnp.log(jnp.diagonal(self.rows)))
        logs = [jnp.log(row[-1]) for row in self.rows]
        return -2.0 * sum(logs[1:], start=logs[0])

    def sound(self, least: float = 0.0) -> Bool[Array, ""]:
        """Whether A was positive definite, with every pivot finite and above `least`."""
        if not isinstance(self.rows, tuple):
            pivot = jnp.diagonal(self.rows)
            return jnp.all((pivot > math.sqrt(least)) & (pivot < jnp.inf))
        most = 1.0 / math.sqrt(least) if least else math.inf
        flags = [(row[-1] > 0.0) & (row[-1] < most) for row in self.rows]
        return flags[0] if len(flags) == 1 else jnp.all(jnp.stack(flags))


def _inverse(L: Float[Array, "N N"]) -> Float[Array, "N N"]:
    """L⁻¹, for many right-hand sides at once.

    LAPACK shares a solve of 1024 numbers out to threads that wait for each other by spinning: on a busy machine it
    takes a hundred times as long as the solve. That of the identity is below this, and a product shares nothing out.
    """
    return lapack.solve_lower(L, jnp.eye(L.shape[0], dtype=L.dtype))


def factor(A: Float[Array, "N N"]) -> Factor:
    """Factor a symmetric positive definite matrix, of which the lower half is read; NaN where it is not one.

    >>> round(factor(4.0 * jnp.eye(3)).log_det.item(), 4)
    4.1589
    """
    N = A.shape[0]
    if N > SMALL:
        return Factor(lapack.cholesky(A))
    return Factor(_eliminated(A))


@no_inline
def _eliminated(A: Array) -> tuple[tuple[Array, ...], ...]:
    """The rows of a small factor."""
    rows: list[tuple[Array, ...]] = []
    pivots: list[Array] = []
    for i in range(A.shape[0]):
        # w = l * pivot is what elimination leaves of the line; l itself is kept
        low, rest = [], []
        for j in range(i):
            rest.append(A[i, j] - sum(rest[k] * rows[j][k] for k in range(j)) if j else A[i, j])
            low.append(rest[j] / pivots[j])
        pivot = A[i, i] - sum(w * unit for w, unit in zip(rest, low, strict=True)) if i else A[i, i]
        pivots.append(pivot)
        rows.append((*low, jax.lax.rsqrt(pivots[i])))
    return tuple(rows)
