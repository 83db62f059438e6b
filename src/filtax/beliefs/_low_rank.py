r"""Gaussian belief whose precision is diagonal plus low rank, $\Sigma^{-1} = \Upsilon + WW^\top$: O(D K) memory.

A datum adds its O whitened rows to W as columns, exactly. W has room for K columns; when the next datum would not fit,
W is truncated to its `rank` leading singular directions, and the squares of what is dropped go to $\Upsilon$, so that
the diagonal of the precision is kept. In between nothing is lost. With room for one datum every datum is followed by a
truncation, which is the thesis' own algorithm.

The form of W makes dynamics cheap. With $V = \Upsilon^{-1}$ and $W = V^{-1}U^\top R$, where U (K, D) is long and
R (K, K) small, $\Sigma = V - U^\top SS^\top U$, $S = RL^{-\top}$, $LL^\top = I + W^\top VW$. Noise, forgetting and
inflation change V, R and L only; U changes by data, by truncation, and by dynamics with a factor for each parameter.
L grows with each datum by the factor $L_S$ of its forecast covariance, and S by the block $B^\top L_S^{-\top}$, beside
which all is zero: computed from R and L it would be a difference of large numbers. A variance of zero is exact.

$W^\top W$ (K, K) decides which directions a truncation keeps. If V is one number, L tells it; else it is computed at
the truncation, except for the block N of the columns that the truncation before has kept, which is stored. Dynamics
change N in a way that only U tells: a negative number then marks N as not known.

The new rows of U are $P = J\Sigma$, by which the mean moves as well, and not JV: as $JV = P + cU$ with the c that P was
computed with, the new columns of R are $[cB^\top; B^\top]$. J is not read again.

Axes: D parameters, K columns of W, O outputs. Cost: O(D K O) for a datum; O(D K²) for a truncation, and for dynamics
unless V is one number (spherical), where it is O(K³).
Thesis: prop:lofi-predict-precision, prop:lofi-update, algo:lofi-update (errata E34 to E38).
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from filtax import _kernels
from filtax import _validation as checks
from filtax.beliefs import _low_rank_algebra as algebra
from filtax.beliefs._gaussian import Conditioned, Gaussian, if_finite, refuse_matrices
from filtax.beliefs._low_rank_algebra import inverse, live, product
from filtax.linalg import log_det, solve_lower
from filtax.protocols import static

LOW = 1e5  # roundings of JVJᵀ below which a variance is low: P is then right to some 1e-5; networks hardly get there


class Projected(NamedTuple):
    """What a belief says of rows J: h = SᵀUJᵀ, c, P = JΣ = JV - cU, JΣJᵀ."""

    half: Float[Array, "K O"]
    c: Float[Array, "O K"]
    P: Float[Array, "O D"]
    cov: Float[Array, "O O"]


def decompressed(method: Callable) -> Callable:
    """Have a method work on a compressed belief too."""

    @functools.wraps(method)
    def run(self: "LowRank", *args: Any, **kwargs: Any) -> Any:
        return method(self.decompress(), *args, **kwargs)

    return run


class LowRank(Gaussian):
    """N(mean, (diag(upsilon) + factor factorᵀ)⁻¹).

    `diag_var` is V, the variances without the factor: (D,), or () when all parameters share one. `rows` is U; empty
    (X = 0) in a compressed belief. `prec_factor` is R, `root` L, `cov_factor` S and `overlap` N, of size 0 if all share
    a V; `used` counts the rows in use.

    >>> LowRank.start(jnp.zeros(3), jnp.full(3, 4.0), rank=2, spare=1).upsilon.tolist()
    [0.25, 0.25, 0.25]
    """

    diag_var: Float[Array, "*D"]
    rows: Float[Array, "X D"]
    prec_factor: Float[Array, "K K"]
    root: Float[Array, "K K"]
    cov_factor: Float[Array, "K K"]
    overlap: Float[Array, "N N"]
    used: Int[Array, ""]
    rank: int = static()

    @classmethod
    def start(
        cls, mean: Array, cov: Array, rank: int = 10, spare: int | None = None, spherical: bool = False
    ) -> "LowRank":
        """Build without a factor, from a mean and variances (D,); of a matrix (D, D) the diagonal is taken.

        `spare` columns beyond `rank` take up data between truncations. A spherical belief needs equal variances.
        """
        var = jnp.diagonal(cov) if cov.ndim == 2 else cov
        eye = jnp.eye(rank + (spare_columns(rank) if spare is None else spare), dtype=mean.dtype)
        diag_var = jnp.max(var) if spherical else jnp.broadcast_to(var, mean.shape)
        rows = jnp.zeros((len(eye), mean.size), mean.dtype)
        overlap = jnp.zeros((0, 0) if spherical else (rank, rank), mean.dtype)
        return cls(mean, diag_var, rows, eye, eye, eye, overlap, jnp.zeros((), jnp.int32), rank)

    def compress(self) -> "LowRank":
        """The same belief before any datum without the rows of U, which are zero: half of a state."""
        return eqx.tree_at(lambda belief: belief.rows, self, self.rows[:0])

    def decompress(self) -> "LowRank":
        """The belief with its rows; itself if it has them.

        >>> LowRank.start(jnp.zeros(3), jnp.ones(3), rank=2, spare=0).compress().decompress().rows.shape
        (2, 3)
        """
        if self.rows.shape[-2] == self.prec_factor.shape[-1]:
            return self
        shape = (*self.prec_factor.shape[:-1], self.mean.shape[-1])  # of a batch, too
        return eqx.tree_at(lambda belief: belief.rows, self, jnp.zeros(shape, self.mean.dtype))

    @property
    def upsilon(self) -> Float[Array, "*D"]:
        """The diagonal of the precision without its factor; infinite where a parameter is certain."""
        return 1.0 / self.diag_var

    @property
    @decompressed
    def factor(self) -> Float[Array, "D K"]:
        """W, the factor of the precision; columns not used are zero."""
        return (_row(inverse(self.diag_var)) * product(live(self.prec_factor, self.used).T, self.rows)).T

    @property
    def cov(self) -> Float[Array, "D D"]:
        """The covariance, formed on request; positive semidefinite by construction."""
        return self.project_cov(jnp.eye(self.mean.size, dtype=self.mean.dtype))

    @property
    @decompressed
    def var(self) -> Float[Array, " D"]:
        """The variances; none falls below that of the parameter if all others were known."""
        alone = algebra.squares(product(live(self.prec_factor, self.used).T, self.rows))
        least = self.diag_var / (1.0 + inverse(self.diag_var) * alone)
        explained = algebra.squares(product(live(self.cov_factor, self.used).T, self.rows))
        return jnp.maximum(self.diag_var - explained, least)

    @decompressed
    def project_cov(self, J: Float[Array, "O D"]) -> Float[Array, "O O"]:
        """Covariance J Σ Jᵀ that the belief gives to J theta."""
        return self._projected(J).cov

    @decompressed
    def condition(self, J: Float[Array, "O D"], B: Float[Array, "O O"], r: Float[Array, " O"]) -> Conditioned:
        r"""Condition on r = B J (theta - mean) + e with e ~ N(0, I): new columns $(BJ)^\top$ of W, truncated when full.

        With $S = I + BJ\Sigma J^\top B^\top = L_SL_S^\top$ the mean moves by $\Sigma J^\top B^\top S^{-1} r$; $L_S$ is
        also what L grows by. B = 0 and r = 0 leave the belief as it is. Where the spare columns cannot hold a datum, it
        is added beyond the end, and W truncated at once. A datum of more outputs than those before may find less room
        than it needs: then it is refused, and W is truncated for the next one.
        """
        found = self._projected(J)
        P = self._refined(found)
        L, z, move, sound = algebra.innovation(found.cov, B, r)
        K, O = len(self.prec_factor), r.size
        old, found = (self, found) if K - self.rank >= O else (self._widened(O), _widened(found, O))
        some, fits = jnp.any(B != 0.0), self.used + O <= len(old.prec_factor)
        rows, moved = algebra.append_rows(old.rows, P, self.mean, move, self.used, sound & some & fits)
        sound = sound & jnp.all(jnp.isfinite(moved)) & (fits | ~some)
        taken = sound & some
        new = old._grown(rows, B, L, found, taken)
        full = (some & ~fits) | (taken & (self.used + 2 * O > K))
        new = jax.lax.cond(full, lambda: new._truncated()._cropped(K), lambda: new._cropped(K))
        new = eqx.tree_at(lambda belief: belief.mean, new, jnp.where(taken, moved, self.mean))
        return Conditioned(new, z, log_det(L), sound)

    def add(self, q: Float[Array, ""] | Float[Array, " D"]) -> "LowRank":
        """Add independent noise of variance q to every parameter."""
        return self._spread(self.mean, None, q)

    @decompressed
    def sample(self, key: Key[Array, ""], shape: tuple[int, ...] = ()) -> Float[Array, "*shape D"]:
        r"""Draw exactly: $\mu + V^{1/2}\epsilon_1 + U^\top RM^{-1}(\epsilon_2 - W^\top V^{1/2}\epsilon_1)$."""
        checks.key("sample(key=...)", key)
        K, D = self.rows.shape
        of_diagonal, of_factor = jax.random.split(key)
        first = self._coloured(jax.random.normal(of_diagonal, (*shape, D), self.mean.dtype).reshape(-1, D))
        if K:
            second = jax.random.normal(of_factor, (*shape, K), self.mean.dtype).reshape(-1, K)
            shown = algebra.project_weighted(self.rows, first, self.used, inverse(self.diag_var))
            gap = solve_lower(self.root, second.T) - product(self.cov_factor.T, shown)
            first = algebra.subtract_rows(first, self.rows, -product(self.cov_factor, gap).T, self.used)
        return (self.mean[None, :] + first).reshape(*shape, D)

    def _projected(self, J: Array) -> Projected:
        """Project J through the belief.

        The covariance is a sum of two squares, of what the factor leaves of J and of what it explains: a difference
        would cancel where the factor knows more than the diagonal.
        """
        if not self.root.size:
            P, none = J * _row(self.diag_var), jnp.zeros((0, len(J)), J.dtype)
            return Projected(none, none.T, P, algebra.project(P, J, jnp.asarray(len(J), jnp.int32), None))
        s = algebra.project(self.rows, J, self.used, None)
        half, c, square = algebra.explained_variance(s, self.cov_factor, self.root, self.used, size=self.mean.size)
        P, rest = algebra.residual_gram(self.rows, J, self.diag_var, c, self.used)
        cov = rest + square
        return Projected(half, c, P, 0.5 * (cov + cov.T))

    def _refined(self, found: Projected) -> Float[Array, "O D"]:
        r"""The gain $P = J\Sigma = JV - cU$, corrected where data know a direction far better than the diagonal does.

        P is off by a rounding of JV. Where data have told $10^7$ times more than the prior (float32), that is more than
        P itself: the mean moves by noise whose sign stays, and an error grows with each datum until it overflows. But
        $S^\top UV^{-1}P^\top = L^{-1}L^{-\top}h$ is known to its last digit without P. So it is computed from P too,
        and the excess is subtracted: the second pass of an orthogonalisation, for data whose variance is low beside
        $JVJ^\top = J\Sigma J^\top + h^\top h$ only. Cost: O(D K O). Thesis: prop:lofi-update, whose gain this is.
        """
        P = found.P
        if not self.root.size:
            return P
        var = jnp.diagonal(found.cov)
        low = jnp.any(var < LOW * jnp.finfo(P.dtype).eps * (var + jnp.sum(found.half * found.half, axis=0)))

        def refine(count: Array) -> Array:
            s = algebra.project_weighted(self.rows, P, count, inverse(self.diag_var))
            c = algebra.gain_correction(s, found.half, self.cov_factor, self.root, count)
            return algebra.subtract_rows(P, self.rows, c, count)

        if _kernels.serving(self.mean.size, P.dtype) == "cuda":  # it waits at a branch; of no rows nothing is read
            return refine(jnp.where(low, self.used, 0).astype(self.used.dtype))
        return jax.lax.cond(low, lambda: refine(self.used), lambda: P)

    def _grown(self, rows: Array, B: Array, L: Array, found: Projected, taken: Array) -> "LowRank":
        """Take O more columns of R and rows of L for the new rows of U, if the datum is taken."""
        R, root = algebra.scatter_block(self.prec_factor, self.root, self.used, taken, B, found.half, found.c, L)
        own = algebra.triangular_solve(L, B, size=self.mean.size).T  # a block of S, beside which all is zero
        S = jax.lax.dynamic_update_slice(self.cov_factor, own, (self.used, self.used))
        S = jnp.where(taken, S, self.cov_factor)
        used = self.used + jnp.where(taken, len(B), 0)
        return LowRank(self.mean, self.diag_var, rows, R, root, S, self.overlap, used, self.rank)

    def _truncated(self) -> "LowRank":
        r"""Keep the leading directions: a scale for R, the root of $I + W^\top VW$ for L, and $RL^{-\top}$ for S."""
        K, rank, size = len(self.prec_factor), self.rank, self.mean.size
        new = algebra.truncated(self.diag_var, self.rows, self.prec_factor, self.root, rank, self.used, self.overlap)
        eye = jnp.eye(K, dtype=new.inner.dtype)
        R = jnp.where(jnp.arange(K) < rank, new.scale, 1.0)[:, None] * eye
        lower = algebra.stable_cholesky(new.inner, size=size) if rank else new.inner
        root = jax.lax.dynamic_update_slice(eye, lower, (0, 0))
        S = algebra.triangular_solve(root, R.T, size=size).T
        used = jnp.full_like(self.used, rank)
        return LowRank(self.mean, new.diag_var, new.rows, R, root, S, new.overlap, used, rank)

    def _widened(self, more: int) -> "LowRank":
        """The same belief with room for a datum beyond the end."""
        rows = jnp.pad(self.rows, ((0, more), (0, 0)))
        R, root, S = (algebra.extended(A, more) for A in (self.prec_factor, self.root, self.cov_factor))
        return LowRank(self.mean, self.diag_var, rows, R, root, S, self.overlap, self.used, self.rank)

    def _cropped(self, K: int) -> "LowRank":
        """The same belief without what is beyond K columns, none of which is in use."""
        R, root, S = (A[:K, :K] for A in (self.prec_factor, self.root, self.cov_factor))
        return LowRank(self.mean, self.diag_var, self.rows[:K], R, root, S, self.overlap, self.used, self.rank)

    def _moved(self, mean: Array, F: Array | None, noise: Array | None) -> "LowRank":
        refuse_matrices(F, noise, "a low-rank precision does not stay one under a matrix", "use LG")
        return self._spread(mean, F, None if noise is None else noise * noise)

    def _mixed(self, mean: Array, initial: "LowRank", keep: Array) -> "LowRank":
        """Exact where the factor of `initial` is zero, as that of `start` is."""
        return self._spread(mean, keep, (1.0 - keep) * (1.0 + keep) * initial.diag_var)

    def _coloured(self, noise: Float[Array, "N D"]) -> Float[Array, "N D"]:
        """Noise of the diagonal alone; `sample` adds that of the factor, with a key of its own."""
        return _row(jnp.sqrt(self.diag_var)) * noise

    @decompressed
    def _spread(self, mean: Array, keep: Array | None, q: Array | None) -> "LowRank":
        r"""Covariance $k\Sigma k + q$: with $V' = k^2V + q$ and $CC^\top = I + W^\top V\,q/V'\,W$, both R and L lose C.

        Nothing is divided by k, which may be zero (errata E35, with a factor).
        """
        if not self.diag_var.ndim and any(value is not None and jnp.size(value) > 1 for value in (keep, q)):
            raise ValueError(
                "a spherical low-rank belief has one variance for all parameters, but F, Q or a rate differs between "
                "them; give a number, or leave spherical out."
            )
        keep = None if keep is None else jnp.reshape(keep, ()) if jnp.size(keep) == 1 else keep
        diag_var = self.diag_var if keep is None else keep * keep * self.diag_var
        rows, R, root, S = self.rows, self.prec_factor, self.root, self.cov_factor
        if q is not None:
            diag_var = diag_var + (q if self.diag_var.ndim else jnp.reshape(q, ()))
            if root.size:
                C = algebra.stable_cholesky(self._lost(q, diag_var), size=mean.size)
                both = algebra.triangular_solve(C, jnp.concatenate([R.T, root], axis=1), size=mean.size)
                R, root = both[:, : len(C)].T, both[:, len(C) :]
        if keep is not None:
            inside = jnp.arange(len(R), dtype=self.used.dtype) < self.used  # columns of data to come are not scaled
            R = R if keep.ndim else jnp.where(inside[None, :], keep * R, R)
            S = S if keep.ndim else jnp.where(inside[None, :], keep * S, S)
            rows = _row(keep) * rows if keep.ndim else rows
        sound = jnp.all(jnp.isfinite(diag_var)) & jnp.all(jnp.isfinite(R)) & jnp.all(jnp.isfinite(root))

        def pick(new: Array, old: Array) -> Array:
            return new if new is old else jnp.where(sound, new, old)

        N = self.overlap if keep is None and q is None else jnp.full_like(self.overlap, -1.0)
        mean = if_finite(mean, self.mean)
        diag_var, rows = pick(diag_var, self.diag_var), pick(rows, self.rows)
        R, root, S = pick(R, self.prec_factor), pick(root, self.root), pick(S, self.cov_factor)
        return LowRank(mean, diag_var, rows, R, root, S, N, self.used, self.rank)

    def _lost(self, q: Array, diag_var: Array) -> Array:
        """What noise takes from the factor, RᵀU q/(V V') UᵀR (K, K); for a spherical belief L tells it."""
        share = q * inverse(diag_var)
        if not self.diag_var.ndim:
            gained = product(self.root, self.root.T) - jnp.eye(len(self.root), dtype=diag_var.dtype)
            return jnp.reshape(share, ()) * gained
        squared = algebra.gram(self.rows, share * inverse(self.diag_var), self.used, jnp.zeros_like(self.used))
        return product(product(self.prec_factor.T, squared), self.prec_factor)


def spare_columns(rank: int) -> int:
    """Spare columns that make a step cheap on average.

    A truncation costs as the square of all columns and is shared by the data between: its share is least for as many
    spare columns as the rank. A few cost little, so that data of several outputs find room; a diagonal belief needs
    none.
    """
    return max(rank, 20) if rank else 0


def _widened(found: Projected, more: int) -> Projected:
    """The products with U with rows for a datum beyond the end."""
    below, beside = ((0, more), (0, 0)), ((0, 0), (0, more))
    return found._replace(half=jnp.pad(found.half, below), c=jnp.pad(found.c, beside))


def _row(value: Array) -> Array:
    """Numbers of the parameters, to multiply (O, D)."""
    return value.reshape(1, -1)
