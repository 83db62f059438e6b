r"""Which directions of a low-rank factor are kept when it is cut: the leading right singular vectors.

For a factor W (D, K) the small matrix $W^\top W$ (K, K) has them as eigenvectors, and W Q needs no division by a
singular value (errata E36). In float32 that matrix forgets singular values below 3e-4 of the largest. Where such ones
are to be kept a second look at W Q, whose columns are nearly orthogonal and each of its own size, finds them again.

Of W = V⁻¹UᵀR the rows of U (K, D) are what is held.

Cost: O(D K²).
Thesis: algo:lofi-update.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from filtax.beliefs.passes import gram as gram_of
from filtax.beliefs.passes import product, squares
from filtax.linalg import matmul

PARTS, LEAST = 4, 4096  # in how many parts many parameters are looked at again, and fewest of one

__all__ = ["again", "cut", "inverse", "leading", "too_wide"]


def leading(gram: Float[Array, "K K"], rank: int) -> Float[Array, "K K"]:
    """Orthogonal Q whose first columns span the leading eigenvectors of a Gram matrix, largest first.

    Derivatives see the two subspaces, kept and dropped, not the vectors in them: equal eigenvalues do no harm.

    >>> leading(jnp.diag(jnp.array([1.0, 9.0])), 1)[:, 0].tolist()
    [0.0, 1.0]
    """
    return _leading(gram, rank)


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def _leading(gram: Array, rank: int) -> Array:
    return _or_identity(jnp.linalg.eigh(gram)[1][:, ::-1])


@_leading.defjvp
def _leading_jvp(rank: int, primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    return _turned(_leading(*primals, rank), rank, *primals, *tangents)


def again(gram: Float[Array, "K K"], rank: int) -> Float[Array, "K K"]:
    """The same for columns that are nearly orthogonal: each is first brought to length one, so that none is lost.

    >>> tiny = jnp.diag(jnp.array([1.0, 1e-12, 1e-10]))
    >>> jnp.abs(again(tiny, 1)).round(3).tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]]
    """
    return _again(gram, rank)


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def _again(gram: Array, rank: int) -> Array:
    size = jnp.sqrt(jnp.diagonal(gram))
    safe = jnp.where(size > 0.0, size, 1.0)
    value, vector = jnp.linalg.eigh(gram / safe[:, None] / safe[None, :])
    half = jnp.sqrt(jnp.maximum(value, 0.0))[:, None] * vector.T * size[None, :]
    return _or_identity(jnp.linalg.svd(half)[2].T)


@_again.defjvp
def _again_jvp(rank: int, primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    return _turned(_again(*primals, rank), rank, *primals, *tangents)


def _or_identity(Q: Array) -> Array:
    """Where the squares overflowed any orthogonal matrix will do: what is kept is then not the most, but is right."""
    return jnp.where(jnp.all(jnp.isfinite(Q)), Q, jnp.eye(len(Q), dtype=Q.dtype))


def _turned(Q: Array, rank: int, gram: Array, change: Array) -> tuple[Array, Array]:
    r"""$\dot Q = Q\Omega$, $\Omega_{ij} = (Q^\top\dot G Q)_{ij}/(\lambda_j - \lambda_i)$ between kept and dropped."""
    value = jnp.sum(Q * matmul(gram, Q), axis=0)
    kept = jnp.arange(value.size) < rank
    gap = value[None, :] - value[:, None]
    some = (kept[:, None] != kept[None, :]) & (jnp.abs(gap) > jnp.finfo(gram.dtype).eps * jnp.max(value))
    turn = matmul(Q.T, matmul(change, Q))
    return Q, matmul(Q, jnp.where(some, turn / jnp.where(some, gap, 1.0), 0.0))


def too_wide(gram: Float[Array, "K K"], Q: Float[Array, "K K"], rank: int) -> Bool[Array, ""]:
    """Whether what is kept spans more than a Gram matrix of this dtype can tell apart.

    >>> bool(too_wide(jnp.diag(jnp.array([1.0, 1e-14])), jnp.eye(2), 2))
    True
    """
    if rank == 0:
        return jnp.zeros((), bool)
    value = jnp.sum(Q[:, :rank] * matmul(gram, Q[:, :rank]), axis=0)
    return value[-1] < 1e3 * jnp.finfo(gram.dtype).eps * value[0]


def cut(
    free: Float[Array, "*D"],
    rows: Float[Array, "K D"],
    core: Float[Array, "K K"],
    root: Float[Array, "K K"],
    rank: int,
) -> tuple[Float[Array, "*D"], Float[Array, "K D"]]:
    r"""Keep the leading directions of $W = V^{-1}U^\top R$, and give the squares of the others to the diagonal.

    Returns the new V, and the new U, whose R is the identity and whose rows beyond `rank` are zero. The dropped
    ones are formed and squared: as a difference of sums they would be lost in rounding. One V for all parameters
    takes their mean.

    >>> V, U = cut(jnp.ones(2), jnp.array([[3.0, 0.0], [0.0, 1.0]]), jnp.eye(2), jnp.eye(2), 1)
    >>> V.tolist(), jnp.abs(U).tolist()
    ([1.0, 0.5], [[3.0, 0.0], [0.0, 0.0]])
    """
    long = product((core if rank == 0 else _rotation(free, rows, core, root, rank)).T, rows)
    kept = jnp.arange(len(long)) < rank
    dropped = squares(long[rank:]) * inverse(free)  # V times the squares of W's columns
    scale = 1.0 / (1.0 + (dropped if free.ndim else jnp.mean(dropped)))
    return free * scale, jnp.where(kept[:, None], long * scale.reshape(1, -1), 0.0)


def _rotation(free: Array, rows: Array, core: Array, root: Array, rank: int) -> Array:
    """R Q (K, K), which puts the rows of U into their order of size."""
    inv = inverse(free)
    if free.ndim:
        gram = product(product(core.T, gram_of(rows, inv * inv)), core)
    else:  # I + WᵀVW is at hand
        gram = inv * (product(root, root.T) - jnp.eye(len(root), dtype=root.dtype))
    gram = 0.5 * (gram + gram.T)
    Q = leading(gram, rank)
    turned = product(core, Q)

    def part(at: int, end: int) -> Array:
        sized = (inv[None, at:end] if free.ndim else inv) * product(turned.T, rows[:, at:end])
        return product(sized, sized.T)

    def look_again() -> Array:  # in parts, so that no further long arrays are held
        D = rows.shape[1]
        step = max(-(-D // PARTS), LEAST)
        parts = [part(at, min(at + step, D)) for at in range(0, D, step)]
        return product(turned, again(jnp.sum(jnp.stack(parts), axis=0), rank))

    # the choice is between small matrices: one between long ones would keep both in memory
    return jax.lax.cond(too_wide(gram, Q, rank), look_again, lambda: turned)


def inverse(value: Array) -> Array:
    """1 / value, and 0 where there is none to take: of a certain parameter the factor holds nothing.

    >>> inverse(jnp.array([4.0, 0.0])).tolist()
    [0.25, 0.0]
    """
    some = value > 0.0
    return jnp.where(some, 1.0 / jnp.where(some, value, 1.0), 0.0)
