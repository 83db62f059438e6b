r"""Gaussian belief whose precision is diagonal plus low rank, $\Sigma^{-1} = \Upsilon + WW^\top$: O(D K) memory.

A datum adds its O whitened rows to W as columns, exactly. W has room for K columns; when the next datum would not fit
it is cut to its `rank` leading singular directions, and the squares of what is dropped go to $\Upsilon$, so that the
diagonal of the precision is kept. In between nothing is lost. With room for one datum every datum is followed by a
cut, which is the thesis' own algorithm.

What is held makes drift cheap. With $V = \Upsilon^{-1}$ and $W = V^{-1}U^\top R$, where U (K, D) is long and R (K, K)
small, $\Sigma = V - U^\top SS^\top U$, $S = RL^{-\top}$, $LL^\top = I + W^\top VW$. Noise, forgetting and inflation
change V, R and L only; U is touched by data, cuts, and dynamics with a factor for each parameter. L grows with each
datum by the factor $L_S$ of its forecast covariance, and S by the block $B^\top L_S^{-\top}$, beside which all is zero:
made of R and L it would be a difference of large numbers. A variance of zero is held exactly.

Which directions a cut keeps is decided by $N = W^\top W$ (K, K). Where V is one number, L tells it; else it is formed
at the cut, but for the block of the rows that the cut before has kept, which is held. On a CUDA device all of N is held
instead, and a datum adds columns $[R^\top UV^{-1}J^\top; BJJ^\top]B^\top$, found while U is read for J. Drift changes
it in a way that only U tells: it is not held any more then (it is negative).

The new rows of U are $P = J\Sigma$, by which the mean moves as well, and not JV: as $JV = P + cU$ with the c that P was
made with, the new columns of R are $[cB^\top; B^\top]$. J is not read again.

U is held by its rows, so that a new one is written in one piece; `passes` are the ways in which it is read. From `used`
on they hold what was there before, and nothing reads them.

Axes: D parameters, K columns of W, O outputs. Cost: O(D K O) for a datum; O(D K²) for a cut, and for drift unless V is
one number (spherical), where it is O(K³).
Thesis: prop:lofi-predict-precision, prop:lofi-update, algo:lofi-update (errata E34 to E38).
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from filtax import checks
from filtax.beliefs.algebra import (
    by_kernel,
    explained,
    extended,
    judged,
    known,
    lowered,
    placed,
    settled,
    stable_root,
    widened,
)
from filtax.beliefs.conditioned import Conditioned
from filtax.beliefs.packing import compress, decompress, with_rows
from filtax.beliefs.passes import compared, compares, gram, left_over, shown, swept, taken_up
from filtax.beliefs.products import inverse, live, product, squares
from filtax.beliefs.resolved import resolved
from filtax.beliefs.truncation import cut, roomy
from filtax.linalg import log_det, solve_lower
from filtax.protocols import Belief

__all__ = ["LowRank"]


class LowRank(Belief):
    """N(mean, (diag(upsilon) + factor factorᵀ)⁻¹).

    `free` is V, the variances as they would be without the factor: (D,), or () when all parameters share one. `rows`
    is U, of none where the belief is laid by (X = 0), `core` R, `root` L, `shed` S and `overlap` N, of size 0 where all
    share a V; `used` counts the rows in use.

    >>> LowRank.start(jnp.zeros(3), jnp.full(3, 4.0), rank=2, spare=1).upsilon.tolist()
    [0.25, 0.25, 0.25]
    """

    mean: Float[Array, " D"]
    free: Float[Array, "*D"]
    rows: Float[Array, "X D"]
    core: Float[Array, "K K"]
    root: Float[Array, "K K"]
    shed: Float[Array, "K K"]
    overlap: Float[Array, "N N"]
    used: Int[Array, ""]
    rank: int = eqx.field(static=True)

    @classmethod
    def start(
        cls, mean: Array, cov: Array, rank: int = 10, spare: int | None = None, spherical: bool = False
    ) -> "LowRank":
        """Build without a factor, from a mean and variances (D,); of a matrix (D, D) the diagonal is taken.

        `spare` columns beyond `rank` take up data between cuts. A spherical belief needs equal variances.
        """
        var = jnp.diagonal(cov) if cov.ndim == 2 else cov
        eye = jnp.eye(rank + (roomy(rank) if spare is None else spare), dtype=mean.dtype)
        free = jnp.max(var) if spherical else jnp.broadcast_to(var, mean.shape)
        rows = jnp.zeros((len(eye), mean.size), mean.dtype)
        overlap = jnp.zeros((0, 0), mean.dtype) if spherical else jnp.zeros_like(eye)
        return cls(mean, free, rows, eye, eye, eye, overlap, jnp.zeros((), jnp.int32), rank)

    compress, decompress = compress, decompress

    @property
    def upsilon(self) -> Float[Array, "*D"]:
        """The diagonal of the precision without its factor; infinite where a parameter is certain."""
        return 1.0 / self.free

    @property
    @with_rows
    def factor(self) -> Float[Array, "D K"]:
        """W, the factor of the precision; columns not used are zero."""
        return (_row(inverse(self.free)) * product(live(self.core, self.used).T, self.rows)).T

    @property
    def cov(self) -> Float[Array, "D D"]:
        """The covariance, formed on request; positive semidefinite by construction."""
        return self.spread(jnp.eye(self.mean.size, dtype=self.mean.dtype))

    @property
    @with_rows
    def var(self) -> Float[Array, " D"]:
        """The variances; none falls below that of the parameter were all others known."""
        least = self.free / (1.0 + inverse(self.free) * squares(product(live(self.core, self.used).T, self.rows)))
        known = product(live(self.shed, self.used).T, self.rows)
        return jnp.maximum(self.free - squares(known), least)

    @with_rows
    def spread(self, J: Float[Array, "O D"]) -> Float[Array, "O O"]:
        """Covariance J Σ Jᵀ that the belief gives to J theta."""
        return self._seen(J)[3]

    @with_rows
    def condition(self, J: Float[Array, "O D"], B: Float[Array, "O O"], r: Float[Array, " O"]) -> Conditioned:
        r"""Condition on r = B J (theta - mean) + e with e ~ N(0, I): new columns $(BJ)^\top$ of W, and a cut when full.

        With $S = I + BJ\Sigma J^\top B^\top = L_SL_S^\top$ the mean moves by $\Sigma J^\top B^\top S^{-1} r$; $L_S$ is
        also what L grows by. B = 0 and r = 0 leave the belief as it is. A datum of more outputs than those before may
        find less room than it needs: then it is refused, and W is cut for the next one.
        """
        half, c, PJ, spread, *of_overlap = self._seen(J)
        PJ = self._resolved(PJ, spread, half)
        L, z, move, sound = judged(spread, B, r, self._kernels(r.size))
        some, fits = jnp.any(B != 0.0), self._fits(r.size)
        rows = self.rows if self._lazy(r.size) else jnp.concatenate([self.rows, jnp.zeros_like(J)])
        rows, moved = taken_up(rows, PJ, self.mean, move, self.used, sound & some & fits)
        sound = sound & jnp.all(jnp.isfinite(moved)) & (fits | ~some)
        taken = sound & some
        new = self._grown(rows, (B, half, c, L, *of_overlap), taken, some & ~fits)
        new = eqx.tree_at(lambda belief: belief.mean, new, jnp.where(taken, moved, self.mean))
        return Conditioned(new, z, log_det(L), sound)

    @with_rows
    def add(self, q: Float[Array, ""] | Float[Array, " D"]) -> "LowRank":
        """Add independent noise of variance q to every parameter."""
        return self._moved(self.mean, None, q)

    @with_rows
    def affine(self, F: Array | None, b: Array | None, noise: Array | None) -> "LowRank":
        """Push through theta -> F theta + b + e, e ~ N(0, noise²), all element by element."""
        for name, matrix in (("F", F), ("Q", noise)):
            if matrix is not None and matrix.ndim == 2:
                raise ValueError(
                    f"a low-rank precision does not stay one under a matrix, but {name} is a matrix; give (D,) "
                    "numbers, or use LG."
                )
        mean = self.mean if F is None else F * self.mean
        return self._moved(mean if b is None else mean + b, F, None if noise is None else noise * noise)

    @with_rows
    def mix(self, initial: "LowRank", keep: Float[Array, ""] | Float[Array, " D"]) -> "LowRank":
        r"""Move towards `initial`, whose factor is taken to be zero, as that of `start` is.

        Mean $k\mu + (1-k)\mu_0$, covariance $k\Sigma k + (1-k^2)\Upsilon_0^{-1}$, exactly.
        """
        mean = keep * self.mean + (1.0 - keep) * initial.mean
        return self._moved(mean, keep, (1.0 - keep) * (1.0 + keep) * initial.free)

    @with_rows
    def inflate(self, factor: Float[Array, ""]) -> "LowRank":
        """Multiply the covariance by a factor; the mean stays."""
        return self._moved(self.mean, jnp.sqrt(factor), None)

    @with_rows
    def sample(self, key: Key[Array, ""], shape: tuple[int, ...] = ()) -> Float[Array, "*shape D"]:
        r"""Draw exactly: $\mu + V^{1/2}\epsilon_1 + U^\top RM^{-1}(\epsilon_2 - W^\top V^{1/2}\epsilon_1)$."""
        checks.key("sample(key=...)", key)
        K, D = self.rows.shape
        of_free, of_factor = jax.random.split(key)
        first = _row(jnp.sqrt(self.free)) * jax.random.normal(of_free, (*shape, D), self.mean.dtype).reshape(-1, D)
        if K:
            second = jax.random.normal(of_factor, (*shape, K), self.mean.dtype).reshape(-1, K)
            seen = product(self.shed.T, shown(self.rows, first, self.used, inverse(self.free)))
            gap = product(self.shed, solve_lower(self.root, second.T) - seen)
            first = swept(self.rows, first, jnp.ones((), first.dtype), -gap.T, self.used)
        return (self.mean[None, :] + first).reshape(*shape, D)

    def _seen(self, J: Array) -> tuple[Array, ...]:
        """SᵀUJᵀ (K, O), c (O, K), JΣ = JV - cU (O, D), JΣJᵀ; and UV⁻¹Jᵀ and JJᵀ where N is held.

        The fourth is a sum of two squares, of what the factor leaves of J and of what it explains: a difference would
        cancel where the factor knows more than the diagonal.
        """
        if not self.root.size:
            PJ, none = J * _row(self.free), jnp.zeros((0, len(J)), J.dtype)
            return none, none.T, PJ, shown(PJ, J, jnp.asarray(len(J), jnp.int32), jnp.ones((), J.dtype))
        if self.free.ndim and compares(self.rows, J):
            seen, *of_overlap = compared(self.rows, J, self.free, self.used, known(self.overlap))
        else:
            seen, of_overlap = shown(self.rows, J, self.used, jnp.ones((), J.dtype)), []
        half, c, square = explained(seen, self.shed, self.root, self.used, self._kernels(len(J)))
        PJ, rest = left_over(self.rows, J, self.free, c, self.used)
        spread = rest + square
        return half, c, PJ, 0.5 * (spread + spread.T), *of_overlap

    def _resolved(self, PJ: Array, spread: Array, half: Array) -> Array:
        held = self.free, self.rows, self.shed, self.root, self.used
        return resolved(PJ, spread, half, *held) if self.root.size else PJ

    def _kernels(self, outputs: int) -> str:
        return by_kernel(self.rows, outputs)

    def _lazy(self, outputs: int) -> bool:
        """Whether a datum finds room; if not it is added beyond the end, and cut off at once."""
        return len(self.core) - self.rank >= outputs

    def _fits(self, outputs: int) -> Array:
        """Whether there is room now."""
        return self.used + outputs <= len(self.core) if self._lazy(outputs) else jnp.ones((), bool)

    def _unknown(self, now: Array | bool = True) -> Array:
        return jnp.where(now, -1.0, self.overlap)

    def _grown(self, rows: Array, datum: tuple[Array, ...], taken: Array, tight: Array) -> "LowRank":
        """Take O more columns of R, rows of L, and both of N, beside the rows of U; cut where room is or gets short."""
        K, O, lazy = len(self.core), len(datum[0]), self._lazy(len(datum[0]))
        kernel = by_kernel(rows, O)
        own = lowered(datum[3], datum[0], kernel).T  # what a datum takes is a block of S beside the others
        held = (self.core, self.root, *((self.overlap,) if len(datum) > 4 else ()))
        if not lazy:
            held, datum = widened(held, datum, O)
        core, root, *found = placed(held[0], held[1], self.used, taken, *datum, *held[2:], kernel=kernel)
        N = found[0] if found else self._unknown(taken & known(self.overlap))
        wide, place = self.shed if lazy else extended(self.shed, O), (self.used, self.used)
        shed = jnp.where(taken, jax.lax.dynamic_update_slice(wide, own, place), wide)

        def shorten() -> tuple:
            new = cut(self.free, rows, core, root, self.rank, self.used + jnp.where(taken, O, 0), N, len(datum) > 4)
            R, L = settled(core, root, new.inner, new.scale, kernel)
            small = R, L, lowered(L, R.T, kernel).T, N if new.overlap is None else new.overlap
            return new.free, new.rows[:K], *(A[:K, :K] for A in small)

        full = tight | (taken & (self.used + 2 * O > K)) if lazy else taken
        leave = lambda: (self.free, rows[:K], *(A[:K, :K] for A in (core, root, shed, N)))  # noqa: E731
        free, rows, core, root, shed, overlap = jax.lax.cond(full, shorten, leave)
        used = jnp.where(full, self.rank, self.used + jnp.where(taken, O, 0) if lazy else self.used)
        return LowRank(self.mean, free, rows, core, root, shed, overlap, used, self.rank)

    def _moved(self, mean: Array, keep: Array | None, q: Array | None) -> "LowRank":
        r"""Covariance $k\Sigma k + q$: with $V' = k^2V + q$ and $CC^\top = I + W^\top V\,q/V'\,W$, both R and L lose C.

        Nothing is divided by k, which may be zero (errata E35, with a factor).
        """
        if not self.free.ndim and any(value is not None and jnp.size(value) > 1 for value in (keep, q)):
            raise ValueError(
                "a spherical low-rank belief has one variance for all parameters, but F, Q or a rate differs between "
                "them; give a number, or leave spherical out."
            )
        keep = None if keep is None else jnp.reshape(keep, ()) if jnp.size(keep) == 1 else keep
        free = self.free if keep is None else keep * keep * self.free
        rows, core, root, shed = self.rows, self.core, self.root, self.shed
        if q is not None:
            free = free + (q if self.free.ndim else jnp.reshape(q, ()))
            if root.size:
                C = stable_root(self._lost(q, free), self._kernels(1))
                both = lowered(C, jnp.concatenate([core.T, root], axis=1), self._kernels(1))
                core, root = both[:, : len(C)].T, both[:, len(C) :]
        if keep is not None:
            inside = jnp.arange(len(core), dtype=self.used.dtype) < self.used  # what is to come is not scaled
            core = core if keep.ndim else jnp.where(inside[None, :], keep * core, core)
            shed = shed if keep.ndim else jnp.where(inside[None, :], keep * shed, shed)
            rows = _row(keep) * rows if keep.ndim else rows
        sound = jnp.all(jnp.isfinite(free)) & jnp.all(jnp.isfinite(core)) & jnp.all(jnp.isfinite(root))
        pick = lambda new, old: new if new is old else jnp.where(sound, new, old)  # noqa: E731
        mean = jnp.where(jnp.isfinite(mean), mean, self.mean)
        held = pick(free, self.free), pick(rows, self.rows), pick(core, self.core), pick(root, self.root)
        N = self.overlap if keep is None and q is None else self._unknown()
        return LowRank(mean, *held, pick(shed, self.shed), N, self.used, self.rank)

    def _lost(self, q: Array, free: Array) -> Array:
        """What noise takes from the factor, RᵀU q/(V V') UᵀR (K, K); of a spherical belief it is known from L."""
        share = q * inverse(free)
        if not self.free.ndim:
            return jnp.reshape(share, ()) * (
                product(self.root, self.root.T) - jnp.eye(len(self.root), dtype=free.dtype)
            )
        squared = gram(self.rows, share * inverse(self.free), used=self.used)
        return product(product(self.core.T, squared), self.core)


def _row(value: Array) -> Array:
    """Numbers of the parameters, to multiply (O, D)."""
    return value.reshape(1, -1)
