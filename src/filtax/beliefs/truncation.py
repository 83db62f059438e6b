r"""Which directions of a low-rank factor are kept when it is cut: the leading right singular vectors.

For a factor W (D, K) the small matrix $W^\top W$ (K, K) has them as eigenvectors, and W Q needs no division by a
singular value (errata E36). In float32 that matrix forgets singular values below 3e-4 of the largest. Where such ones
are to be kept a second look at W Q, whose columns are nearly orthogonal and each of its own size, finds them again.

Of W = V⁻¹UᵀR the rows of U (K, D) are what is held.

Cost: O(D K²).
Thesis: algo:lofi-update.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from filtax import lapack
from filtax.beliefs import native
from filtax.beliefs.algebra import bounded, known
from filtax.beliefs.instead import instead
from filtax.beliefs.passes import (
    CHUNK,
    completed,
    cut_by_kernel,
    natively,
    one_gpu,
    small_by_kernel,
    squared_by_kernel,
)
from filtax.beliefs.passes import gram as gram_of
from filtax.beliefs.products import inverse, live, product, squares
from filtax.linalg import matmul

SPINNING = 64  # columns beyond which LAPACK's threads share a matrix and wait by spinning; with 16 cores 30 do
PARTS, LEAST = 4, 4096  # in how many parts many parameters are looked at again, and fewest of one

__all__ = ["Shortened", "again", "cut", "leading", "roomy", "too_wide"]


def leading(gram: Float[Array, "K K"], rank: int, large: bool = False) -> Float[Array, "K K"]:
    """Orthogonal Q whose first columns span the leading eigenvectors of a Gram matrix, largest first.

    Derivatives see the two subspaces, kept and dropped, not the vectors in them: equal eigenvalues do no harm. It may
    be that of a `large` basis, whose passes are shared by threads that must not wait for those of a library.

    >>> leading(jnp.diag(jnp.array([1.0, 9.0])), 1)[:, 0].tolist()
    [0.0, 1.0]
    """
    return _leading(gram, rank, large)


@partial(jax.custom_jvp, nondiff_argnums=(1, 2))
def _leading(gram: Array, rank: int, large: bool) -> Array:
    if (large or len(gram) > SPINNING) and not one_gpu() and native.serves(gram):
        return instead(_by_library, native.turned, "cpu")(gram)
    if not small_by_kernel(gram):
        return _by_library(gram)
    from filtax.beliefs import small

    return instead(_by_library, small.turned)(gram)


def _by_library(gram: Array) -> Array:
    return _or_identity(lapack.eigh(gram)[1][:, ::-1])


@_leading.defjvp
def _leading_jvp(rank: int, large: bool, primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    return _turned(_leading(*primals, rank, large), rank, *primals, *tangents)


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
    value, vector = lapack.eigh(gram / safe[:, None] / safe[None, :])
    half = jnp.sqrt(jnp.maximum(value, 0.0))[:, None] * vector.T * size[None, :]
    return _or_identity(lapack.svd(half)[2].T)


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


class Shortened(NamedTuple):
    r"""A factor that was cut: V, U, of what is left $W^\top VW$ (rank, rank), R, which is a scale, and $W^\top W$.

    Of the rows of U `rank` count. The last is None where it was not given.
    """

    free: Float[Array, "*D"]
    rows: Float[Array, "K D"]
    inner: Float[Array, "rank rank"]
    scale: Float[Array, ""]
    overlap: Float[Array, "N N"] | None


def cut(
    free: Float[Array, "*D"],
    rows: Float[Array, "K D"],
    core: Float[Array, "K K"],
    root: Float[Array, "K K"],
    rank: int,
    used: Int[Array, ""] | None = None,
    overlap: Float[Array, "N N"] | None = None,
    whole: bool = True,
) -> Shortened:
    r"""Keep the leading directions of $W = V^{-1}U^\top R$, and give the squares of the others to the diagonal.

    Rows from `used` on count as zero; the new U holds `rank`, and beyond them something finite. With a V for each
    parameter the dropped directions are formed and squared, as a difference of sums would be lost in rounding. One V
    for all takes the mean of those squares, which is known without forming them; the scale that U then has to be given
    stays in R. Where $W^\top W$ is given as `overlap`, and `known`, U is not read for it. Where nobody adds to it with
    each datum it is not `whole`: what is held then is the block of the columns that the last cut kept, with a minus
    before it and zeros beside, and U is read for what lies outside of that block.

    >>> new = cut(jnp.ones(2), jnp.array([[3.0, 0.0], [0.0, 1.0]]), jnp.eye(2), jnp.eye(2), 1)
    >>> new.free.tolist(), jnp.abs(new.rows[:1]).tolist(), new.inner.tolist()
    ([1.0, 0.5], [[3.0, 0.0]], [[9.0]])
    """
    used = jnp.asarray(len(core), jnp.int32) if used is None else used
    turn, gram = _rotation(free, rows, live(core, used), root, rank, used, overlap, whole)
    turn = turn if free.ndim else turn[:, :rank]
    free, rows, inner = _shortened(free, rows, turn, used, rank)
    if free.ndim:
        if overlap is not None:
            overlap = (_known_whole if whole else _known_of_kept)(gram, rank, overlap)
        return Shortened(free, rows, inner, jnp.ones((), core.dtype), overlap)
    lost = jnp.sum(jnp.maximum(jnp.diagonal(gram)[rank:], 0.0))
    scale = 1.0 / (1.0 + free * lost / rows.shape[1])
    return Shortened(free * scale, rows, scale * inverse(free) * inner, scale, overlap)


def _shortened(free: Array, rows: Array, turn: Array, used: Array, rank: int) -> tuple[Array, Array, Array]:
    """V, the new rows and their Gram matrix, in the way that suits the machine."""
    if rank and natively(rows):
        plain = lambda free, rows, turn, used: _at_once(free, rows, turn, rank)  # noqa: E731
        kernel = instead(plain, partial(native.cut, rank=rank), "cpu")
        return kernel(free, rows, turn, used.astype(jnp.int32))
    ways = {"cpu": partial(_in_chunks, rank=rank), "default": partial(_at_once, rank=rank)}
    if rows.shape[1] < 2 * CHUNK or jax.device_count() > 1:
        return ways["default"](free, rows, turn)
    return jax.lax.platform_dependent(free, rows, turn, **ways)


def _known_whole(gram: Array, rank: int, overlap: Array) -> Array:
    """WᵀW of what is kept, if all of it was known before."""
    return jnp.where(known(overlap), jnp.pad(bounded(gram[:rank, :rank]), (0, len(gram) - rank)), -1.0)


def _known_of_kept(gram: Array, rank: int, _: Array) -> Array:
    """The same with a minus before it, which tells that nobody adds to it; where squares overflowed it is not known."""
    kept = jnp.pad(gram[:rank, :rank], (0, len(gram) - rank))
    told = jnp.all(jnp.isfinite(gram)) & (kept[0, 0] > 0.0) & (kept[-1, -1] == 0.0)
    return jnp.where(told, -kept, -1.0)


def _at_once(free: Array, rows: Array, turn: Array, rank: int) -> tuple[Array, Array, Array]:
    """V, the new rows, and their Gram matrix, weighted by 1 / V where that is one for each parameter."""
    free, rows = (_turned_rows if cut_by_kernel(rows, turn, rank) else _turned_plainly)(free, rows, turn, rank)
    if squared_by_kernel(rows, rank):
        return free, rows, gram_of(rows, inverse(free) if free.ndim else None, rank)
    if not free.ndim:
        return free, rows, gram_of(rows[:rank])
    # one long array, where two would be held
    return free, rows, gram_of(rows[:rank] * jnp.sqrt(inverse(free))[None, :])


def _turned_plainly(free: Array, rows: Array, turn: Array, rank: int) -> tuple[Array, Array]:
    long = product(turn.T, rows)
    if free.ndim:
        scale = 1.0 / (1.0 + squares(long[rank:]) * inverse(free))  # V times the squares of W's columns
        free, long = free * scale, long[:rank] * scale[None, :]
    return free, jnp.pad(long, ((0, len(rows) - rank), (0, 0)))


def _turned_rows(free: Array, rows: Array, turn: Array, rank: int) -> tuple[Array, Array]:
    from filtax.beliefs import kernels

    return instead(partial(_turned_plainly, rank=rank), partial(kernels.cut, rank=rank))(free, rows, turn)


def _in_chunks(free: Array, rows: Array, turn: Array, rank: int) -> tuple[Array, Array, Array]:
    """The same, a few parameters at a time, which stay close by while all of it is done to them; the rows in place.

    V is told anew and not written over: what is read and written in one loop, XLA copies at each turn of it.
    """
    D = rows.shape[1]

    def settle(held: tuple, start: Any, size: int) -> tuple:
        rows, total = held
        near = lambda A: jax.lax.dynamic_slice_in_dim(A, start, size, axis=A.ndim - 1)  # noqa: E731
        V, kept, inner = _at_once(near(free) if free.ndim else free, near(rows), turn, rank)
        return (jax.lax.dynamic_update_slice_in_dim(rows, kept[:rank], start, 1), total + inner), V

    whole = D // CHUNK
    held, last = settle((rows, jnp.zeros((rank, rank), rows.dtype)), whole * CHUNK, D - whole * CHUNK)
    (rows, inner), many = jax.lax.scan(lambda held, at: settle(held, at * CHUNK, CHUNK), held, jnp.arange(whole))
    return jnp.concatenate([many.reshape(-1), last]) if free.ndim else free, rows, inner


def _formed(free: Array, rows: Array, core: Array, used: Array, rank: int, overlap: Array | None, whole: bool) -> Array:
    """WᵀW (K, K) as it is known, or from U."""
    weight = inverse(free) * inverse(free)
    if overlap is None or whole:
        wanted = None if overlap is None else ~known(overlap)
        found = product(product(core.T, gram_of(rows, weight, used=used, wanted=wanted)), core)
        return found if overlap is None else jnp.where(known(overlap), overlap, found)
    held = ~known(overlap) & (overlap[-1, -1] == 0.0)
    squared = completed(rows, weight, -overlap[:rank, :rank], held, used)  # of columns just kept R is I, and W is U / V
    return product(product(core.T, squared), core)


def _rotation(
    free: Array, rows: Array, core: Array, root: Array, rank: int, used: Array, overlap: Array | None, whole: bool
) -> tuple[Array, Array]:
    """R Q (K, K), which puts the rows of U into their order of size, and (WQ)ᵀWQ."""
    inv = inverse(free)
    if free.ndim:
        gram = _formed(free, rows, core, used, rank, overlap, whole) if rank else jnp.zeros_like(core)
    else:  # I + WᵀVW is at hand
        gram = inv * (product(root, root.T) - jnp.eye(len(root), dtype=root.dtype))
    gram = 0.5 * (gram + gram.T)
    if rank == 0:
        return core, gram
    Q = leading(gram, rank, natively(rows))
    turned = product(core, Q)

    def part(at: int, end: int) -> Array:
        sized = (inv[None, at:end] if free.ndim else inv) * product(turned.T, rows[:, at:end])
        return product(sized, sized.T)

    def look_again() -> tuple[Array, Array]:  # in parts, so that no further long arrays are held
        D = rows.shape[1]
        step = max(-(-D // PARTS), LEAST)
        parts = [part(at, min(at + step, D)) for at in range(0, D, step)]
        finer = jnp.sum(jnp.stack(parts), axis=0)
        better = again(finer, rank)
        return product(turned, better), product(product(better.T, finer), better)

    # the choice is between small matrices: one between long ones would keep both in memory
    return jax.lax.cond(too_wide(gram, Q, rank), look_again, lambda: (turned, product(product(Q.T, gram), Q)))


def roomy(rank: int) -> int:
    """Spare columns that make a step cheap on average.

    A cut costs as the square of all columns and is shared by the data between: least for as many as the rank. Few of
    them cost little, so that data of several outputs find room; a diagonal belief needs none.

    >>> roomy(50), roomy(10), roomy(0)
    (50, 20, 0)
    """
    return max(rank, 20) if rank else 0
