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
PARTS, LEAST = 4, 4096  # parts in which many parameters are decomposed again, and the fewest parameters of one

# ---- products


def product(A: Float[Array, "N M"], B: Float[Array, "M P"]) -> Float[Array, "N P"]:
    """Matrix product, also over no columns at all."""
    return matmul(A, B) if A.shape[1] else jnp.zeros((A.shape[0], B.shape[1]), A.dtype)


def long_product(A: Float[Array, "N M"], B: Float[Array, "M P"]) -> Float[Array, "N P"]:
    """Matrix product in which D is an axis; on a GPU as three products of TF32 numbers, exact to 2e-7."""
    if A.dtype != jnp.float32 or backend() != "gpu":
        return product(A, B)
    return jax.lax.platform_dependent(A, B, cuda=_three_tf32_products, default=product)


def _three_tf32_products(A: Array, B: Array) -> Array:
    return jnp.matmul(A, B, precision=jax.lax.DotAlgorithmPreset.TF32_TF32_F32_X3)


def live(A: Float[Array, "K M"], used: Int[Array, ""]) -> Float[Array, "K M"]:
    """A with zeros for its rows from `used` on."""
    return jnp.where((jnp.arange(len(A), dtype=used.dtype) < used)[:, None], A, 0.0)


def inverse(value: Array) -> Array:
    """1 / value, and 0 for a value of 0: the factor holds nothing about a parameter that is certain."""
    some = value > 0.0
    return jnp.where(some, 1.0 / jnp.where(some, value, 1.0), 0.0)


def squares(U: Float[Array, "K D"]) -> Float[Array, " D"]:
    """Sum of the squares of the rows; row by row, as XLA's CPU compiler sums over them a hundred times slower."""
    return sum((row * row for row in U), start=jnp.zeros(U.shape[1], U.dtype))


# ---- passes over the basis


@replaceable
def project(
    U: Float[Array, "K D"], J: Float[Array, "O D"], used: Int[Array, ""], weight: Float[Array, " D"] | None
) -> Float[Array, "K O"]:
    r"""$U\,\mathrm{diag}(w)\,J^\top$."""
    return live(long_product(U, (J if weight is None else J * weight[None, :]).T), used)


def project_weighted(U: Array, J: Array, used: Array, weight: Float[Array, "*D"]) -> Float[Array, "K O"]:
    """The same with a weight for each parameter, or one for all."""
    return project(U, J, used, weight) if weight.ndim else weight * project(U, J, used, None)


def residual_projection(
    U: Float[Array, "K D"], J: Float[Array, "O D"], V: Float[Array, "*D"], c: Float[Array, "O K"], used: Int[Array, ""]
) -> Float[Array, "O D"]:
    r"""$J\,\mathrm{diag}(V) - cU$, with a V for each parameter or one for all."""
    return J * V.reshape(1, -1) - long_product(live(c.T, used).T, U)


@replaceable
def residual_gram(
    U: Float[Array, "K D"], J: Float[Array, "O D"], V: Float[Array, "*D"], c: Float[Array, "O K"], used: Int[Array, ""]
) -> tuple[Float[Array, "O D"], Float[Array, "O O"]]:
    r"""$P = J\,\mathrm{diag}(V) - cU$, and $P\,\mathrm{diag}(1/V)\,P^\top$, where 1 / 0 is 0."""
    P = residual_projection(U, J, V, c, used)
    return P, project_weighted(P, P, jnp.asarray(len(P), jnp.int32), inverse(V))


@replaceable
def subtract_rows(
    P: Float[Array, "O D"], U: Float[Array, "K D"], c: Float[Array, "O K"], count: Int[Array, ""]
) -> Float[Array, "O D"]:
    r"""$P - cU$ over the first `count` rows of U."""
    return residual_projection(U, P, jnp.ones((), P.dtype), c, count)


def append_rows(
    U: Float[Array, "K D"],
    P: Float[Array, "O D"],
    mean: Float[Array, " D"],
    move: Float[Array, " O"],
    used: Int[Array, ""],
    taken: Bool[Array, ""],
) -> tuple[Float[Array, "K D"], Float[Array, " D"]]:
    """U with the rows P from `used` on, if they are taken, and mean + move P in any case."""
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
    r"""$U\,\mathrm{diag}(w)\,U^\top$ of the first M rows; a kernel may omit the block of the first `known` rows."""
    U = U[:first] if weight is None else U[:first] * safe_sqrt(weight)[None, :]  # one long array instead of two
    return live(live(long_product(U, U.T), used).T, used)


# ---- algebra of small matrices between the passes; `size` is the number of parameters of the belief


@replaceable
def explained_variance(
    s: Float[Array, "K O"], cov_factor: Float[Array, "K K"], root: Float[Array, "K K"], used: Int[Array, ""]
) -> tuple[Float[Array, "K O"], Float[Array, "O K"], Float[Array, "O O"]]:
    r"""What a factor explains of rows J whose products with U are s.

    $h = S^\top s$; $(Sh)^\top$, which is to be subtracted from the rows; and $f^\top f$ with $f = L^{-\top}h$. From
    `used` on s is zero, and S and L are identity. Cost: O(K² O).
    """
    half = product(cov_factor.T, s)
    fit = solve_upper(root, half)
    return half, product(half.T, cov_factor.T), product(fit.T, fit)


def innovation(
    cov: Float[Array, "O O"], B: Float[Array, "O O"], r: Float[Array, " O"]
) -> tuple[Float[Array, "O O"], Float[Array, " O"], Float[Array, " O"], Bool[Array, ""]]:
    r"""A residual r under $S = I + B\,\mathrm{cov}\,B^\top = LL^\top$: L, $L^{-1}r$, $r^\top S^{-1}B$, and all finite.

    Where cov is not finite, S is taken to be I.
    """
    cov = product(product(B, cov), B.T)
    finite = jnp.isfinite(trace(cov))
    S = jnp.eye(r.size, dtype=r.dtype) + jnp.where(finite, cov, 0.0)
    L = cholesky(0.5 * (S + S.T))
    z = solve_lower(L, r)
    return L, z, product(solve_upper(L, z)[None, :], B)[0], finite & jnp.all(jnp.isfinite(L))


def gain_correction(
    s: Float[Array, "K O"],
    half: Float[Array, "K O"],
    cov_factor: Float[Array, "K K"],
    root: Float[Array, "K K"],
    used: Int[Array, ""],
) -> Float[Array, "O K"]:
    r"""$(S(S^\top s - g))^\top$ with $g = L^{-1}L^{-\top}h$: what a gain with products s has too much of."""
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
    """
    place, start = jax.lax.dynamic_update_slice, jnp.zeros_like(used)
    columns = place(place(prec_factor, product(c.T, B.T), (start, used)), B.T, (used, used))
    lower = place(place(root, product(B, half.T), (used, start)), L, (used, used))
    return jnp.where(taken, columns, prec_factor), jnp.where(taken, lower, root)


def extended(A: Float[Array, "K K"], more: int) -> Float[Array, "M M"]:
    """A in the corner of a larger identity."""
    return jax.lax.dynamic_update_slice(jnp.eye(len(A) + more, dtype=A.dtype), A, (0, 0))


@replaceable
def stable_cholesky(lost: Float[Array, "K K"]) -> Float[Array, "K K"]:
    """Cholesky factor of I + lost; where rounding made that indefinite, of a neighbour that is not. Cost: O(K³)."""
    whole = jnp.eye(len(lost), dtype=lost.dtype) + 0.5 * (lost + lost.T)
    plain = cholesky(whole)
    return jax.lax.cond(jnp.all(jnp.isfinite(plain)), lambda: plain, lambda: psd_root(whole))


@replaceable
def triangular_solve(C: Float[Array, "K K"], Y: Float[Array, "K M"]) -> Float[Array, "K M"]:
    """C⁻¹ Y for lower triangular C and many columns."""
    return solve_lower(C, Y)


# ---- truncation


@replaceable
def eigenvectors(gram: Float[Array, "K K"]) -> Float[Array, "K K"]:
    """Eigenvectors of a symmetric matrix as columns, the largest eigenvalue first; identity if it is not finite."""
    return _or_identity(linalg.eigh(gram)[1][:, ::-1])


@partial(jax.custom_jvp, nondiff_argnums=(1, 2, 3))
def leading(gram: Float[Array, "K K"], rank: int, size: int, scaled: bool = False) -> Float[Array, "K K"]:
    """Orthogonal Q whose first `rank` columns span the leading eigenvectors of a Gram matrix, largest first.

    With `scaled`, for columns that are nearly orthogonal: each is first given the length one, so that none is lost.
    Derivatives see the two subspaces, kept and dropped, not the vectors in them: equal eigenvalues do no harm.
    """
    if not scaled:
        return eigenvectors(gram, size=size if len(gram) <= SPINNING else max(size, MANY))
    length = jnp.sqrt(jnp.diagonal(gram))
    safe = jnp.where(length > 0.0, length, 1.0)
    value, vector = linalg.eigh(gram / safe[:, None] / safe[None, :])
    half = jnp.sqrt(jnp.maximum(value, 0.0))[:, None] * vector.T * length[None, :]
    return _or_identity(linalg.svd(half)[2].T)


@leading.defjvp
def _leading_jvp(
    rank: int, size: int, scaled: bool, primals: tuple[Array], tangents: tuple[Array]
) -> tuple[Array, Array]:
    r"""$\dot Q = Q\Omega$, $\Omega_{ij} = (Q^\top\dot G Q)_{ij}/(\lambda_j - \lambda_i)$ between kept and dropped."""
    (gram,), (change,) = primals, tangents
    Q = leading(gram, rank, size, scaled)
    value = jnp.sum(Q * matmul(gram, Q), axis=0)
    kept = jnp.arange(value.size) < rank
    gap = value[None, :] - value[:, None]
    some = (kept[:, None] != kept[None, :]) & (jnp.abs(gap) > jnp.finfo(gram.dtype).eps * jnp.max(value))
    turn = matmul(Q.T, matmul(change, Q))
    return Q, matmul(Q, jnp.where(some, turn / jnp.where(some, gap, 1.0), 0.0))


def _or_identity(Q: Array) -> Array:
    """Where squares overflowed, any orthogonal matrix will do: what is kept is then not the most, but correct."""
    return jnp.where(jnp.all(jnp.isfinite(Q)), Q, jnp.eye(len(Q), dtype=Q.dtype))


def _too_wide(gram: Float[Array, "K K"], Q: Float[Array, "K K"], rank: int) -> Bool[Array, ""]:
    """Whether the kept directions span more orders of magnitude than a Gram matrix of this dtype can tell apart."""
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
    used: Int[Array, ""],
    overlap: Float[Array, "N N"],
) -> Truncated:
    r"""Keep the leading directions of $W = V^{-1}U^\top R$, and add the squares of the others to the diagonal.

    With a V for each parameter the dropped directions are formed and squared, as a difference of sums would be lost in
    rounding. One V for all takes the mean of those squares, which is known without forming them; the scale that U then
    needs stays in R. `overlap` is $W^\top W$ of the columns that the last truncation kept, or negative; where it is
    known, U is read only for the entries outside of that block.
    """
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
    """V and U after a truncation (`truncate`), and the Gram matrix of the new rows, weighted by 1 / V if V is (D,)."""
    diag_var, rows = truncate(diag_var, rows, turn, rank=rank)
    weight = inverse(diag_var) if diag_var.ndim else None
    return diag_var, rows, gram(rows, weight, jnp.full_like(used, rank), jnp.zeros_like(used), first=rank)


def truncate(
    diag_var: Float[Array, "*D"], rows: Float[Array, "K D"], turn: Float[Array, "K M"], rank: int
) -> tuple[Float[Array, "*D"], Float[Array, "K D"]]:
    r"""V and the first rows of $T^\top U$; with a V for each parameter the squares of the others go to V."""
    long = long_product(turn.T, rows)
    if diag_var.ndim:
        scale = 1.0 / (1.0 + squares(long[rank:]) * inverse(diag_var))  # V times the squares of W's columns
        diag_var, long = diag_var * scale, long[:rank] * scale[None, :]
    return diag_var, jnp.pad(long, ((0, len(rows) - rank), (0, 0)))


def _overlap_of_kept(squared: Array, rank: int) -> Array:
    """WᵀW of the columns that are kept (rank, rank); -1 where squares overflowed."""
    return jnp.where(jnp.all(jnp.isfinite(squared)), squared[:rank, :rank], -1.0)


def _factor_gram(diag_var: Array, rows: Array, prec_factor: Array, used: Array, rank: int, overlap: Array) -> Array:
    """WᵀW (K, K): the block of the columns that were kept as it is known, the rest from U."""
    weight = inverse(diag_var) * inverse(diag_var)
    known = overlap[0, 0] > 0.0  # for the columns that were kept R is I, and W is V⁻¹Uᵀ
    squared = gram(rows, weight, used, jnp.where(known, rank, 0).astype(used.dtype))
    squared = squared.at[:rank, :rank].set(jnp.where(known, overlap, squared[:rank, :rank]))
    return product(product(prec_factor.T, squared), prec_factor)


def _rotation(
    diag_var: Array, rows: Array, prec_factor: Array, root: Array, rank: int, used: Array, overlap: Array
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
        better = leading(finer, rank, D, scaled=True)
        return product(turned, better), product(product(better.T, finer), better)

    # the choice is between small matrices: one between long ones would keep both in memory
    again = _too_wide(squared, Q, rank)
    return jax.lax.cond(again, decompose_again, lambda: (turned, product(product(Q.T, squared), Q)))
