r"""Passes over a tall basis U (K, D) as matrix products: what they mean, and what is run where there is no kernel.

Rows from `used` on count as zero, whatever finite numbers they hold: masks are laid on the small matrices.

Axes: D parameters, K rows of U, O outputs. Cost: O(D K O).
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from filtax.linalg import matmul
from filtax.safe import safe_sqrt

__all__ = [
    "compared",
    "completed_in_chunks",
    "eased",
    "gram",
    "gram_if",
    "gram_in_chunks",
    "inverse",
    "left_over",
    "live",
    "product",
    "shown",
    "squares",
    "swept",
    "taken_up",
]


def shown(U: Array, J: Array, used: Array, weight: Array | None) -> Array:
    """U diag(w) Jᵀ (K, O).

    >>> shown(jnp.eye(2), jnp.array([[3.0, 4.0]]), jnp.asarray(1), None).tolist()
    [[3.0], [0.0]]
    """
    return live(product(U, (J if weight is None else J * weight[None, :]).T), used)


def compared(U: Array, J: Array, V: Array, used: Array, wanted: Array) -> tuple[Array, Array, Array]:
    """U Jᵀ (K, O) and, where wanted (else 0), U diag(1 / V) Jᵀ (K, O) and J Jᵀ (O, O) over parameters with V > 0.

    >>> yes, two = jnp.asarray(True), jnp.asarray(2)
    >>> [a.tolist() for a in compared(jnp.eye(2), jnp.array([[3.0, 4.0]]), jnp.array([2.0, 0.0]), two, yes)]
    [[[3.0], [4.0]], [[1.5], [0.0]], [[9.0]]]
    """
    O = len(J)

    def both() -> tuple[Array, Array, Array]:
        found = shown(U, jnp.concatenate([J, J * inverse(V)[None, :]]), used, None)
        return found[:, :O], found[:, O:], product(jnp.where(V > 0.0, J, 0.0), J.T)

    def one() -> tuple[Array, Array, Array]:
        found = shown(U, J, used, None)
        return found, jnp.zeros_like(found), jnp.zeros((O, O), J.dtype)

    return jax.lax.cond(wanted, both, one)


def swept(U: Array, J: Array, V: Array, c: Array, used: Array) -> Array:
    """J diag(V) - c U (O, D).

    >>> swept(jnp.eye(2), jnp.ones((1, 2)), jnp.asarray(2.0), jnp.ones((1, 2)), jnp.asarray(1)).tolist()
    [[1.0, 2.0]]
    """
    return J * V.reshape(1, -1) - product(live(c.T, used).T, U)


def left_over(U: Array, J: Array, V: Array, c: Array, used: Array) -> tuple[Array, Array]:
    """P = J diag(V) - c U (O, D), and P diag(1 / V) Pᵀ (O, O).

    >>> left_over(jnp.eye(2), jnp.ones((1, 2)), jnp.ones(2), jnp.zeros((1, 2)), jnp.asarray(2))[1].tolist()
    [[2.0]]
    """
    P = swept(U, J, V, c, used)
    return P, product(P * inverse(V).reshape(1, -1), P.T)


def eased(P: Array, U: Array, c: Array, count: Array) -> Array:
    """P - c U (O, D) over the first `count` rows of U.

    >>> eased(jnp.ones((1, 2)), jnp.eye(2), jnp.full((1, 2), 3.0), jnp.asarray(1)).tolist()
    [[-2.0, 1.0]]
    """
    return P - product(live(c.T, count).T, U)


def taken_up(U: Array, P: Array, mean: Array, move: Array, used: Array, taken: Array) -> tuple[Array, Array]:
    """U with P from `used` on, if taken, and mean + move P.

    >>> zero, one = jnp.zeros((), int), jnp.ones(1)
    >>> [a.tolist() for a in taken_up(jnp.zeros((1, 1)), jnp.ones((1, 1)), one, one, zero, jnp.asarray(False))]
    [[[0.0]], [2.0]]
    """
    place = used, jnp.zeros_like(used)
    rows = jnp.where(taken, P, jax.lax.dynamic_slice(U, place, P.shape))
    return jax.lax.dynamic_update_slice(U, rows, place), mean + product(move[None, :], P)[0]


def gram(U: Array, weight: Array | None = None, first: int | None = None) -> Array:
    """U diag(w) Uᵀ of the first rows.

    >>> gram(jnp.ones((1, 3)), jnp.arange(3.0)).tolist()
    [[3.0]]
    """
    U = (
        U[:first] if weight is None else U[:first] * safe_sqrt(weight)[None, :]
    )  # one long array, where two would be held
    return product(U, U.T)


def gram_if(U: Array, weight: Array | None, wanted: Array | None, first: int | None = None) -> Array:
    """The same where it is wanted, else zero.

    >>> gram_if(jnp.ones((1, 3)), None, jnp.asarray(False)).tolist()
    [[0.0]]
    """
    found = gram(U, weight, first)
    return found if wanted is None else jnp.where(wanted, found, 0.0)


def gram_in_chunks(U: Array, weight: Array | None, first: int | None, size: int) -> Array:
    """The same, so many parameters at a time, which stay close by while they are read.

    >>> gram_in_chunks(jnp.ones((1, 3)), None, None, 2).tolist()
    [[3.0]]
    """
    whole = U.shape[1] // size

    def add(total: Array, at: Array) -> tuple[Array, None]:
        part = lambda A: jax.lax.dynamic_slice_in_dim(A, at * size, size, axis=A.ndim - 1)  # noqa: E731
        return total + gram(*jax.tree.map(part, (U, weight)), first=first), None

    rest = jax.tree.map(lambda A: A[..., whole * size :], (U, weight))
    return jax.lax.scan(add, gram(*rest, first=first), jnp.arange(whole))[0]


def completed_in_chunks(U: Array, weight: Array, block: Array, size: int) -> Array:
    """The same of all rows, where the block of the first ones is known: only what the others add is made.

    >>> completed_in_chunks(jnp.ones((2, 3)), jnp.ones(3), jnp.full((1, 1), 3.0), 2).tolist()
    [[3.0, 3.0], [3.0, 3.0]]
    """
    M, K = len(block), len(U)
    whole = U.shape[1] // size

    def below(at: Array | int, width: int) -> Array:
        scale = safe_sqrt(jax.lax.dynamic_slice_in_dim(weight, at, width))[None, :]
        first, rest = (
            jax.lax.dynamic_slice(U, (start, at), (count, width)) * scale for start, count in ((0, M), (M, K - M))
        )
        return jnp.concatenate([product(rest, first.T), product(rest, rest.T)], axis=1)

    start = below(whole * size, U.shape[1] - whole * size)
    found = jax.lax.scan(lambda total, at: (total + below(at * size, size), None), start, jnp.arange(whole))[0]
    return jnp.concatenate([jnp.concatenate([block, found[:, :M].T], axis=1), found])


def live(A: Float[Array, "K M"], used: Int[Array, ""]) -> Float[Array, "K M"]:
    """A with zeros for its rows from `used` on.

    >>> live(jnp.ones((2, 1)), jnp.asarray(1)).tolist()
    [[1.0], [0.0]]
    """
    return jnp.where((jnp.arange(len(A), dtype=used.dtype) < used)[:, None], A, 0.0)


def squares(U: Float[Array, "K D"]) -> Float[Array, " D"]:
    """Sum of the squares of the rows; row by row, as XLA's CPU compiler sums over them a hundred times slower.

    >>> squares(jnp.array([[1.0, 2.0], [3.0, 0.0]])).tolist()
    [10.0, 4.0]
    """
    return sum((row * row for row in U), start=jnp.zeros(U.shape[1], U.dtype))


def product(A: Float[Array, "N M"], B: Float[Array, "M P"]) -> Float[Array, "N P"]:
    """Matrix product, also over no columns at all.

    >>> product(jnp.ones((2, 0)), jnp.ones((0, 1))).tolist()
    [[0.0], [0.0]]
    """
    return matmul(A, B) if A.shape[1] else jnp.zeros((A.shape[0], B.shape[1]), A.dtype)


def inverse(value: Array) -> Array:
    """1 / value, and 0 where there is none to take: of a certain parameter the factor holds nothing.

    >>> inverse(jnp.array([4.0, 0.0])).tolist()
    [0.25, 0.0]
    """
    some = value > 0.0
    return jnp.where(some, 1.0 / jnp.where(some, value, 1.0), 0.0)
