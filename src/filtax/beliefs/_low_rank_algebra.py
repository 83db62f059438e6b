r"""The operations on a factor of low rank: passes over its basis U (K, D), algebra of small matrices, and truncation.

A step of a low-rank belief spends its time reading U, so that U is read in these few ways only. Its rows lie one after
the other: a new one is written in one piece. Rows from `used` on count as zero, whatever finite numbers they hold.
Each operation is written in plain JAX; kernels replace those marked `replaceable` for many parameters (`_kernels`).

A truncation keeps the leading right singular vectors of $W = V^{-1}U^\top R$ (D, K). They are the eigenvectors of
$W^\top W$ (K, K), and W Q needs no division by a singular value (errata E36). In float32 that matrix forgets singular
values below 3e-4 of the largest. Where such ones are to be kept, a second decomposition, of W Q, whose columns are
nearly orthogonal and each of its own size, finds them again.

Axes: D parameters, K rows of U, O outputs. Cost: O(D K O) for a pass, O(D K²) for a Gram matrix or a truncation.
Thesis: algo:lofi-update.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from filtax import linalg
from filtax._kernels import MANY, backend, replaceable
from filtax.linalg import cholesky, matmul, psd_root, solve_lower, solve_upper, trace
from filtax.numerics import safe_sqrt

SPINNING = 64  # columns beyond which LAPACK's threads share a matrix and wait by spinning; with 16 cores 30 do
CHUNK = 4096  # parameters of U that stay in a core's cache while they are multiplied with each other
PARTS, LEAST = 4, 4096  # parts in which many parameters are decomposed again, and the fewest parameters of one

# ---- products


def product(A: Float[Array, "N M"], B: Float[Array, "M P"]) -> Float[Array, "N P"]:
    """Matrix product, also over no columns at all.

    >>> product(jnp.ones((2, 0)), jnp.ones((0, 1))).tolist()
    [[0.0], [0.0]]
    """
    return matmul(A, B) if A.shape[1] else jnp.zeros((A.shape[0], B.shape[1]), A.dtype)


def long_product(A: Float[Array, "N M"], B: Float[Array, "M P"]) -> Float[Array, "N P"]:
    """Matrix product in which D is an axis; on a GPU as three products of TF32 numbers, exact to 2e-7.

    >>> long_product(jnp.ones((1, 3)), jnp.ones((3, 1))).tolist()
    [[3.0]]
    """
    if A.dtype != jnp.float32 or backend() != "gpu":
        return product(A, B)
    return jax.lax.platform_dependent(A, B, cuda=_three_tf32_products, default=product)


def _three_tf32_products(A: Array, B: Array) -> Array:
    return jnp.matmul(A, B, precision=jax.lax.DotAlgorithmPreset.TF32_TF32_F32_X3)


def live(A: Float[Array, "K M"], used: Int[Array, ""]) -> Float[Array, "K M"]:
    """A with zeros for its rows from `used` on.

    >>> live(jnp.ones((2, 1)), jnp.asarray(1)).tolist()
    [[1.0], [0.0]]
    """
    return jnp.where((jnp.arange(len(A), dtype=used.dtype) < used)[:, None], A, 0.0)


def inverse(value: Array) -> Array:
    """1 / value, and 0 for a value of 0: the factor holds nothing about a parameter that is certain.

    >>> inverse(jnp.array([4.0, 0.0])).tolist()
    [0.25, 0.0]
    """
    some = value > 0.0
    return jnp.where(some, 1.0 / jnp.where(some, value, 1.0), 0.0)


def squares(U: Float[Array, "K D"]) -> Float[Array, " D"]:
    """Sum of the squares of the rows; row by row, as XLA's CPU compiler sums over them a hundred times slower.

    >>> squares(jnp.array([[1.0, 2.0], [3.0, 0.0]])).tolist()
    [10.0, 4.0]
    """
    return sum((row * row for row in U), start=jnp.zeros(U.shape[1], U.dtype))


# ---- passes over the basis


@replaceable
def project(
    U: Float[Array, "K D"], J: Float[Array, "O D"], used: Int[Array, ""], weight: Float[Array, " D"] | None
) -> Float[Array, "K O"]:
    r"""$U\,\mathrm{diag}(w)\,J^\top$.

    >>> project(jnp.eye(2), jnp.array([[3.0, 4.0]]), jnp.asarray(1), None).tolist()
    [[3.0], [0.0]]
    """
    return live(long_product(U, (J if weight is None else J * weight[None, :]).T), used)


def project_weighted(U: Array, J: Array, used: Array, weight: Float[Array, "*D"]) -> Float[Array, "K O"]:
    """The same with a weight for each parameter, or one for all.

    >>> project_weighted(jnp.eye(2), jnp.array([[3.0, 4.0]]), jnp.asarray(2), jnp.asarray(2.0)).tolist()
    [[6.0], [8.0]]
    """
    return project(U, J, used, weight) if weight.ndim else weight * project(U, J, used, None)


def residual_projection(
    U: Float[Array, "K D"], J: Float[Array, "O D"], V: Float[Array, "*D"], c: Float[Array, "O K"], used: Int[Array, ""]
) -> Float[Array, "O D"]:
    r"""$J\,\mathrm{diag}(V) - cU$, with a V for each parameter or one for all.

    >>> residual_projection(jnp.eye(2), jnp.ones((1, 2)), jnp.asarray(2.0), jnp.ones((1, 2)), jnp.asarray(1)).tolist()
    [[1.0, 2.0]]
    """
    return J * V.reshape(1, -1) - long_product(live(c.T, used).T, U)


@replaceable
def residual_gram(
    U: Float[Array, "K D"], J: Float[Array, "O D"], V: Float[Array, "*D"], c: Float[Array, "O K"], used: Int[Array, ""]
) -> tuple[Float[Array, "O D"], Float[Array, "O O"]]:
    r"""$P = J\,\mathrm{diag}(V) - cU$, and $P\,\mathrm{diag}(1/V)\,P^\top$, where 1 / 0 is 0.

    >>> P, square = residual_gram(jnp.eye(2), jnp.ones((1, 2)), jnp.ones(2), jnp.zeros((1, 2)), jnp.asarray(2))
    >>> P.tolist(), square.tolist()
    ([[1.0, 1.0]], [[2.0]])
    """
    P = residual_projection(U, J, V, c, used)
    return P, project_weighted(P, P, jnp.asarray(len(P), jnp.int32), inverse(V))


@replaceable
def subtract_rows(
    P: Float[Array, "O D"], U: Float[Array, "K D"], c: Float[Array, "O K"], count: Int[Array, ""]
) -> Float[Array, "O D"]:
    r"""$P - cU$ over the first `count` rows of U.

    >>> subtract_rows(jnp.ones((1, 2)), jnp.eye(2), jnp.full((1, 2), 3.0), jnp.asarray(1)).tolist()
    [[-2.0, 1.0]]
    """
    return P - long_product(live(c.T, count).T, U)


def append_rows(
    U: Float[Array, "K D"],
    P: Float[Array, "O D"],
    mean: Float[Array, " D"],
    move: Float[Array, " O"],
    used: Int[Array, ""],
    taken: Bool[Array, ""],
) -> tuple[Float[Array, "K D"], Float[Array, " D"]]:
    """U with the rows P from `used` on, if they are taken, and mean + move P in any case.

    >>> no, one = jnp.asarray(False), jnp.ones(1)
    >>> [a.tolist() for a in append_rows(jnp.zeros((1, 1)), jnp.ones((1, 1)), one, one, jnp.asarray(0), no)]
    [[[0.0]], [2.0]]
    """
    place = used, jnp.zeros_like(used)
    rows = jnp.where(taken, P, jax.lax.dynamic_slice(U, place, P.shape))
    return jax.lax.dynamic_update_slice(U, rows, place), mean + long_product(move[None, :], P)[0]


@replaceable
def gram(
    U: Float[Array, "K D"],
    weight: Float[Array, " D"] | None,
    used: Int[Array, ""],
    known: Int[Array, ""],
    first: int | None = None,
) -> Float[Array, "M M"]:
    r"""$U\,\mathrm{diag}(w)\,U^\top$ of the first M rows; a kernel may leave out the block of the first `known` rows.

    >>> gram(jnp.ones((1, 3)), jnp.arange(3.0), jnp.asarray(1), jnp.asarray(0)).tolist()
    [[3.0]]
    """

    def squared(U: Array, weight: Array | None) -> Array:
        U = U[:first] if weight is None else U[:first] * safe_sqrt(weight)[None, :]  # one long array instead of two
        return long_product(U, U.T)

    found = _sum_over_chunks(squared, U.shape[1], U, weight) if _chunked(U) else squared(U, weight)
    return live(live(found, used).T, used)


def _chunked(U: Array) -> bool:
    """Whether a pass over U takes a few parameters at a time: on one CPU, where they are many."""
    return U.shape[1] >= 2 * CHUNK and backend() == "cpu" and jax.device_count() == 1


def _near(A: Array, at: Array | int, width: int) -> Array:
    return jax.lax.dynamic_slice_in_dim(A, at, width, axis=A.ndim - 1)


def _sum_over_chunks(function: Callable[..., Array], D: int, *arrays: Array | None) -> Array:
    """Sum of what a function returns for each chunk of D parameters; the last one may be shorter."""

    def part(at: Array | int, width: int) -> Array:
        return function(*jax.tree.map(lambda A: _near(A, at, width), arrays))

    def add(total: Array, at: Array) -> tuple[Array, None]:
        return total + part(at * CHUNK, CHUNK), None

    rest = part(D // CHUNK * CHUNK, D % CHUNK)
    return jax.lax.scan(add, rest, jnp.arange(D // CHUNK))[0]


# ---- algebra of small matrices between the passes; `size` is the number of parameters of the belief


@replaceable
def explained_variance(
    s: Float[Array, "K O"], cov_factor: Float[Array, "K K"], root: Float[Array, "K K"], used: Int[Array, ""]
) -> tuple[Float[Array, "K O"], Float[Array, "O K"], Float[Array, "O O"]]:
    r"""What a factor explains of rows J whose products with U are s.

    $h = S^\top s$; $(Sh)^\top$, which is to be subtracted from the rows; and $f^\top f$ with $f = L^{-\top}h$. From
    `used` on s is zero, and S and L are identity. Cost: O(K² O).

    >>> parts = explained_variance(jnp.ones((1, 1)), 0.5 * jnp.eye(1), 4 * jnp.eye(1), jnp.asarray(1))
    >>> [part.tolist() for part in parts]
    [[[0.5]], [[0.25]], [[0.015625]]]
    """
    half = product(cov_factor.T, s)
    fit = solve_upper(root, half)
    return half, product(half.T, cov_factor.T), product(fit.T, fit)


def innovation(
    cov: Float[Array, "O O"], B: Float[Array, "O O"], r: Float[Array, " O"]
) -> tuple[Float[Array, "O O"], Float[Array, " O"], Float[Array, " O"], Bool[Array, ""]]:
    r"""A residual r under $S = I + B\,\mathrm{cov}\,B^\top = LL^\top$: L, $L^{-1}r$, $r^\top S^{-1}B$, and all finite.

    Where cov is not finite, S is taken to be I.

    >>> L, z, move, finite = innovation(jnp.full((1, 1), 3.0), jnp.ones((1, 1)), jnp.ones(1))
    >>> L.item(), z.item(), move.item(), bool(finite)
    (2.0, 0.5, 0.25, True)
    """
    cov = product(product(B, cov), B.T)
    finite = jnp.isfinite(trace(cov))
    S = jnp.eye(r.size, dtype=r.dtype) + jnp.where(finite, cov, 0.0)
    L = cholesky(0.5 * (S + S.T))
    z = solve_lower(L, r)
    return L, z, product(solve_upper(L, z)[None, :], B)[0], finite & jnp.all(jnp.isfinite(L))


@replaceable
def gain_correction(
    s: Float[Array, "K O"],
    half: Float[Array, "K O"],
    cov_factor: Float[Array, "K K"],
    root: Float[Array, "K K"],
    used: Int[Array, ""],
) -> Float[Array, "O K"]:
    r"""$(S(S^\top s - g))^\top$ with $g = L^{-1}L^{-\top}h$: what a gain with products s has too much of.

    >>> one = jnp.ones((1, 1))
    >>> gain_correction(5.0 * one, 4.0 * one, one, 2.0 * one, jnp.asarray(1)).tolist()
    [[4.0]]
    """
    off = product(cov_factor.T, s) - solve_lower(root, solve_upper(root, half))
    return product(live(off, used).T, cov_factor.T)


def scatter_block(
    prec_factor: Float[Array, "K K"],
    root: Float[Array, "K K"],
    used: Int[Array, ""],
    taken: Bool[Array, ""],
    B: Float[Array, "O O"],
    half: Float[Array, "K O"],
    c: Float[Array, "O K"],
    L: Float[Array, "O O"],
) -> tuple[Float[Array, "K K"], Float[Array, "K K"]]:
    r"""R and L with a datum from `used` on, if it is taken: columns $[cB^\top; B^\top]$ and rows $[Bh^\top, L_S]$.

    From `used` on h and c are zero.

    >>> one, none, c = jnp.ones((1, 1)), jnp.zeros((2, 1)), jnp.array([[5.0, 0.0]])
    >>> R, L = scatter_block(jnp.eye(2), jnp.eye(2), jnp.asarray(1), jnp.asarray(True), 3 * one, none, c, 2 * one)
    >>> R.tolist(), L.tolist()
    ([[1.0, 15.0], [0.0, 3.0]], [[1.0, 0.0], [0.0, 2.0]])
    """
    place, start = jax.lax.dynamic_update_slice, jnp.zeros_like(used)
    columns = place(place(prec_factor, product(c.T, B.T), (start, used)), B.T, (used, used))
    lower = place(place(root, product(B, half.T), (used, start)), L, (used, used))
    return jnp.where(taken, columns, prec_factor), jnp.where(taken, lower, root)


def extended(A: Float[Array, "K K"], more: int) -> Float[Array, "M M"]:
    """A in the corner of a larger identity.

    >>> extended(jnp.full((1, 1), 3.0), 1).tolist()
    [[3.0, 0.0], [0.0, 1.0]]
    """
    return jax.lax.dynamic_update_slice(jnp.eye(len(A) + more, dtype=A.dtype), A, (0, 0))


@replaceable
def stable_cholesky(lost: Float[Array, "K K"]) -> Float[Array, "K K"]:
    """Cholesky factor of I + lost; where rounding made that indefinite, of a neighbour that is not. Cost: O(K³).

    >>> stable_cholesky(jnp.full((1, 1), 3.0)).tolist()
    [[2.0]]
    """
    whole = jnp.eye(len(lost), dtype=lost.dtype) + 0.5 * (lost + lost.T)
    plain = cholesky(whole)
    return jax.lax.cond(jnp.all(jnp.isfinite(plain)), lambda: plain, lambda: psd_root(whole))


@replaceable
def triangular_solve(C: Float[Array, "K K"], Y: Float[Array, "K M"]) -> Float[Array, "K M"]:
    """C⁻¹ Y for lower triangular C and many columns.

    >>> triangular_solve(2 * jnp.eye(1), jnp.ones((1, 2))).tolist()
    [[0.5, 0.5]]
    """
    return solve_lower(C, Y)


# ---- truncation


@replaceable
def eigenvectors(gram: Float[Array, "K K"]) -> Float[Array, "K K"]:
    """Eigenvectors of a symmetric matrix as columns, the largest eigenvalue first; identity if it is not finite.

    >>> eigenvectors(jnp.diag(jnp.array([1.0, 9.0])))[:, 0].tolist()
    [0.0, 1.0]
    """
    return _or_identity(linalg.eigh(gram)[1][:, ::-1])


@partial(jax.custom_jvp, nondiff_argnums=(1, 2))
def leading(gram: Float[Array, "K K"], rank: int, size: int = 0) -> Float[Array, "K K"]:
    """Orthogonal Q whose first `rank` columns span the leading eigenvectors of a Gram matrix, largest first.

    Derivatives see the two subspaces, kept and dropped, not the vectors in them: equal eigenvalues do no harm.

    >>> leading(jnp.diag(jnp.array([1.0, 9.0])), 1)[:, 0].tolist()
    [0.0, 1.0]
    """
    return eigenvectors(gram, size=size if len(gram) <= SPINNING else max(size, MANY))


@leading.defjvp
def _leading_jvp(rank: int, size: int, primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    return _turn_of_subspaces(leading(*primals, rank, size), rank, *primals, *tangents)


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def leading_again(gram: Float[Array, "K K"], rank: int) -> Float[Array, "K K"]:
    """The same for columns that are nearly orthogonal: each is first scaled to length one, so that none is lost.

    >>> tiny = jnp.diag(jnp.array([1.0, 1e-12, 1e-10]))
    >>> jnp.abs(leading_again(tiny, 1)).round(3).tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]]
    """
    size = jnp.sqrt(jnp.diagonal(gram))
    safe = jnp.where(size > 0.0, size, 1.0)
    value, vector = linalg.eigh(gram / safe[:, None] / safe[None, :])
    half = jnp.sqrt(jnp.maximum(value, 0.0))[:, None] * vector.T * size[None, :]
    return _or_identity(linalg.svd(half)[2].T)


@leading_again.defjvp
def _leading_again_jvp(rank: int, primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    return _turn_of_subspaces(leading_again(*primals, rank), rank, *primals, *tangents)


def _or_identity(Q: Array) -> Array:
    """Where squares overflowed, any orthogonal matrix will do: what is kept is then not the most, but correct."""
    return jnp.where(jnp.all(jnp.isfinite(Q)), Q, jnp.eye(len(Q), dtype=Q.dtype))


def _turn_of_subspaces(Q: Array, rank: int, gram: Array, change: Array) -> tuple[Array, Array]:
    r"""$\dot Q = Q\Omega$, $\Omega_{ij} = (Q^\top\dot G Q)_{ij}/(\lambda_j - \lambda_i)$ between kept and dropped."""
    value = jnp.sum(Q * matmul(gram, Q), axis=0)
    kept = jnp.arange(value.size) < rank
    gap = value[None, :] - value[:, None]
    some = (kept[:, None] != kept[None, :]) & (jnp.abs(gap) > jnp.finfo(gram.dtype).eps * jnp.max(value))
    turn = matmul(Q.T, matmul(change, Q))
    return Q, matmul(Q, jnp.where(some, turn / jnp.where(some, gap, 1.0), 0.0))


def too_wide(gram: Float[Array, "K K"], Q: Float[Array, "K K"], rank: int) -> Bool[Array, ""]:
    """Whether the kept directions span more orders of magnitude than a Gram matrix of this dtype can tell apart.

    >>> bool(too_wide(jnp.diag(jnp.array([1.0, 1e-14])), jnp.eye(2), 2))
    True
    """
    if rank == 0:
        return jnp.zeros((), bool)
    value = jnp.sum(Q[:, :rank] * matmul(gram, Q[:, :rank]), axis=0)
    return value[-1] < 1e3 * jnp.finfo(gram.dtype).eps * value[0]


class Truncated(NamedTuple):
    r"""A truncated factor: V, U, the $W^\top VW$ (rank, rank) that is left, R, which is a scale, and $W^\top W$.

    Only the first `rank` rows of U count. The last is -1 where squares overflowed or it was not computed.
    """

    diag_var: Float[Array, "*D"]
    rows: Float[Array, "K D"]
    inner: Float[Array, "rank rank"]
    scale: Float[Array, ""]
    overlap: Float[Array, "rank rank"]


def truncated(
    diag_var: Float[Array, "*D"],
    rows: Float[Array, "K D"],
    prec_factor: Float[Array, "K K"],
    root: Float[Array, "K K"],
    rank: int,
    used: Int[Array, ""] | None = None,
    overlap: Float[Array, "N N"] | None = None,
) -> Truncated:
    r"""Keep the leading directions of $W = V^{-1}U^\top R$, and add the squares of the others to the diagonal.

    With a V for each parameter the dropped directions are formed and squared, as a difference of sums would be lost in
    rounding. One V for all takes the mean of those squares, which is known without forming them; the scale that U then
    needs stays in R. `overlap` is $W^\top W$ of the columns that the last truncation kept, if that is known, and then
    positive; U is then read only for the entries outside of that block.

    >>> new = truncated(jnp.ones(2), jnp.array([[3.0, 0.0], [0.0, 1.0]]), jnp.eye(2), jnp.eye(2), 1)
    >>> new.diag_var.tolist(), jnp.abs(new.rows[:1]).tolist(), new.inner.tolist()
    ([1.0, 0.5], [[3.0, 0.0]], [[9.0]])
    """
    used = jnp.asarray(len(prec_factor), jnp.int32) if used is None else used
    turn, squared = _rotation(diag_var, rows, live(prec_factor, used), root, rank, used, overlap)
    turn = turn if diag_var.ndim else turn[:, :rank]
    diag_var, rows, inner = truncate_with_gram(diag_var, rows, turn, used, rank=rank)
    if diag_var.ndim:
        return Truncated(diag_var, rows, inner, jnp.ones((), prec_factor.dtype), _overlap_of_kept(squared, rank))
    lost = jnp.sum(jnp.maximum(jnp.diagonal(squared)[rank:], 0.0))
    scale = 1.0 / (1.0 + diag_var * lost / rows.shape[1])
    return Truncated(diag_var * scale, rows, scale * inverse(diag_var) * inner, scale, jnp.zeros((0, 0), rows.dtype))


@replaceable
def truncate_with_gram(
    diag_var: Float[Array, "*D"], rows: Float[Array, "K D"], turn: Float[Array, "K M"], used: Int[Array, ""], rank: int
) -> tuple[Float[Array, "*D"], Float[Array, "K D"], Float[Array, "rank rank"]]:
    """V and U after a truncation (`truncate`), and the Gram matrix of the new rows, weighted by 1 / V if V is (D,).

    >>> two = jnp.asarray(2)
    >>> truncate_with_gram(jnp.ones(2), jnp.eye(2), jnp.eye(2), two, rank=1)[2].tolist()
    [[1.0]]
    """

    def at_once(diag_var: Array, rows: Array) -> tuple[Array, Array, Array]:
        diag_var, rows = truncate(diag_var, rows, turn, rank=rank)
        weight = inverse(diag_var) if diag_var.ndim else None
        return diag_var, rows, gram(rows, weight, jnp.full_like(used, rank), jnp.zeros_like(used), first=rank)

    def take(carry: tuple[Array, Array], at: Array | int, width: int) -> tuple[tuple[Array, Array], Array]:
        rows, total = carry
        V, kept, inner = at_once(_near(diag_var, at, width) if diag_var.ndim else diag_var, _near(rows, at, width))
        return (jax.lax.dynamic_update_slice_in_dim(rows, kept[:rank], at, 1), total + inner), V

    if not _chunked(rows):
        return at_once(diag_var, rows)
    # V is collected and not written over: what a loop reads and writes, XLA copies at each turn
    whole, rest = rows.shape[1] // CHUNK, rows.shape[1] % CHUNK
    carry, last = take((rows, jnp.zeros((rank, rank), rows.dtype)), whole * CHUNK, rest)
    (rows, inner), V = jax.lax.scan(lambda carry, at: take(carry, at * CHUNK, CHUNK), carry, jnp.arange(whole))
    return jnp.concatenate([V.reshape(-1), last]) if diag_var.ndim else diag_var, rows, inner


@replaceable
def truncate(
    diag_var: Float[Array, "*D"], rows: Float[Array, "K D"], turn: Float[Array, "K M"], rank: int
) -> tuple[Float[Array, "*D"], Float[Array, "K D"]]:
    r"""V and the first rows of $T^\top U$; with a V for each parameter the squares of the others go to V.

    >>> [a.tolist() for a in truncate(jnp.ones(2), jnp.eye(2), jnp.eye(2), rank=1)]
    [[1.0, 0.5], [[1.0, 0.0], [0.0, 0.0]]]
    """
    long = long_product(turn.T, rows)
    if diag_var.ndim:
        scale = 1.0 / (1.0 + squares(long[rank:]) * inverse(diag_var))  # V times the squares of W's columns
        diag_var, long = diag_var * scale, long[:rank] * scale[None, :]
    return diag_var, jnp.pad(long, ((0, len(rows) - rank), (0, 0)))


def _overlap_of_kept(squared: Array, rank: int) -> Array:
    """WᵀW of the columns that are kept (rank, rank); -1 where squares overflowed."""
    return jnp.where(jnp.all(jnp.isfinite(squared)), squared[:rank, :rank], -1.0)


def _factor_gram(
    diag_var: Array, rows: Array, prec_factor: Array, used: Array, rank: int, overlap: Array | None
) -> Array:
    """WᵀW (K, K): the block of the columns that were kept as it is known, the rest from U."""
    weight, none = inverse(diag_var) * inverse(diag_var), jnp.zeros_like(used)
    if overlap is None:
        squared = gram(rows, weight, used, none)
    else:  # for the columns that were kept R is I, and W is V⁻¹Uᵀ
        known = overlap[0, 0] > 0.0
        squared = gram(rows, weight, used, jnp.where(known, rank, 0).astype(used.dtype))
        squared = squared.at[:rank, :rank].set(jnp.where(known, overlap, squared[:rank, :rank]))
    return product(product(prec_factor.T, squared), prec_factor)


def _rotation(
    diag_var: Array,
    rows: Array,
    prec_factor: Array,
    root: Array,
    rank: int,
    used: Array,
    overlap: Array | None,
) -> tuple[Array, Array]:
    """R Q (K, K), which puts the rows of U into their order of size, and (WQ)ᵀWQ."""
    inv, D = inverse(diag_var), rows.shape[1]
    if not rank and diag_var.ndim:
        squared = jnp.zeros_like(prec_factor)
    elif diag_var.ndim:
        squared = _factor_gram(diag_var, rows, prec_factor, used, rank, overlap)
    else:  # L Lᵀ = I + WᵀVW is at hand
        squared = inv * (product(root, root.T) - jnp.eye(len(root), dtype=root.dtype))
    squared = 0.5 * (squared + squared.T)
    if rank == 0:
        return prec_factor, squared
    Q = leading(squared, rank, D)
    turned = product(prec_factor, Q)

    def part(at: int, end: int) -> Array:
        sized = (inv[None, at:end] if diag_var.ndim else inv) * long_product(turned.T, rows[:, at:end])
        return long_product(sized, sized.T)

    def decompose_again() -> tuple[Array, Array]:  # in parts, so that no further long arrays are held
        step = max(-(-D // PARTS), LEAST)
        finer = jnp.sum(jnp.stack([part(at, min(at + step, D)) for at in range(0, D, step)]), axis=0)
        better = leading_again(finer, rank)
        return product(turned, better), product(product(better.T, finer), better)

    # the choice is between small matrices: one between long ones would keep both in memory
    again = too_wide(squared, Q, rank)
    return jax.lax.cond(again, decompose_again, lambda: (turned, product(product(Q.T, squared), Q)))
