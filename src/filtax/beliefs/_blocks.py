r"""Product of Gaussian beliefs over parts of theta: correlations within a block, none between blocks (PULSE).

A datum moves all blocks at once, by one joint O x O solve. With $G_k = BJ_k$, $V_k = G_k\Sigma_k G_k^\top$ and
$S = I + \sum_k V_k$, the mean of block k moves by $\Sigma_k G_k^\top S^{-1}r$: the gain of the full filter from this
prior. Its covariance is the mean-field one, $\Sigma_k'^{-1} = \Sigma_k^{-1} + G_k^\top G_k$, which is never above the
true one. Both are what block k itself makes of the residual $(I + V_k)S^{-1}r$, which the others leave unexplained. So
a block may be a belief of any family that has `project_cov` and `condition`.

With `marginal` the covariance is the true one of block k, $\Sigma_k - \Sigma_k G_k^\top S^{-1}G_k\Sigma_k$: of all
products the nearest in $\mathrm{KL}(p \,\|\, q)$, where the mean-field one is the nearest in $\mathrm{KL}(q \,\|\, p)$.
Mean and covariance are what block k makes of the datum when the others are noise to it, of covariance
$\sum_{j \ne k} V_j = L_kL_k^\top - I$: whitened once more, by $L_k^{-1}$.

Uncoupled, as PULSE was first published, each block takes the whole residual for its own.

Cost: that of the blocks, and a factor of S; with `marginal` one for each block. Thesis: theorem:pulse,
algo:pulse-update (errata E32, E33).
"""

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.linalg import block_diag
from jaxtyping import Array, Float, Key

from filtax import _validation as checks
from filtax.beliefs._gaussian import Conditioned, refuse_matrices
from filtax.linalg import cholesky, log_det, matmul, solve_lower, solve_upper, trace
from filtax.protocols import Belief, static


class Blocks(Belief):
    """Independent beliefs about consecutive parts of theta; None stands for a block without parameters.

    >>> from filtax.beliefs import Diagonal, SquareRoot
    >>> pair = Blocks((SquareRoot.start(jnp.zeros(2), jnp.ones(2)), Diagonal.start(jnp.zeros(1), jnp.full(1, 4.0))))
    >>> pair.var.tolist(), pair.project_cov(jnp.ones((1, 3))).item()
    ([1.0, 1.0, 4.0], 6.0)
    """

    parts: tuple[Any, ...]
    coupled: bool = static(default=True)
    marginal: bool = static(default=False)

    @property
    def mean(self) -> Float[Array, " D"]:
        """Means of the blocks, one after another."""
        return jnp.concatenate([part.mean for part in self._some])

    @property
    def var(self) -> Float[Array, " D"]:
        """The variances."""
        return jnp.concatenate([part.var for part in self._some])

    @property
    def cov(self) -> Float[Array, "D D"]:
        """The covariance, formed on request: zero between blocks."""
        return block_diag(*(part.cov for part in self._some))

    def project_cov(self, J: Float[Array, "O D"]) -> Float[Array, "O O"]:
        """Covariance J Σ Jᵀ that the belief gives to J theta: the sum over blocks."""
        return _total([part.project_cov(Jk) for part, Jk in zip(self._some, self._cut(J), strict=True)])

    def condition(self, J: Float[Array, "O D"], B: Float[Array, "O O"], r: Float[Array, " O"]) -> Conditioned:
        """Condition on r = B J (theta - mean) + e with e ~ N(0, I), then drop correlations between blocks.

        B = 0 and r = 0 leave the belief as it is.
        """
        columns = self._cut(J)
        V = [matmul(matmul(B, part.project_cov(Jk)), B.T) for part, Jk in zip(self._some, columns, strict=True)]
        whitened = _total(V)
        finite = jnp.isfinite(trace(whitened))
        L = cholesky(jnp.eye(r.size, dtype=r.dtype) + jnp.where(finite, whitened, 0.0))
        sound = finite & jnp.all(jnp.diagonal(L) > 0.7)  # exactly, none is below 1
        innovation = solve_lower(L, r)
        left = solve_upper(L, innovation)
        B, r, left = jnp.where(sound, B, 0.0), jnp.where(sound, r, 0.0), jnp.where(sound, left, 0.0)
        shares = self._shares(B, r, left, [jnp.where(sound, Vk, 0.0) for Vk in V])
        done = [part.condition(Jk, *share) for part, Jk, share in zip(self._some, columns, shares, strict=True)]
        ok = jnp.all(jnp.stack([sound, *(one.ok for one in done)]))
        return Conditioned(self._of([one.belief for one in done]), innovation, log_det(L), ok)

    def add(self, q: Float[Array, ""] | Float[Array, " D"]) -> "Blocks":
        """Add independent noise of variance q to every parameter."""
        return self._of([part.add(qk) for part, qk in zip(self._some, self._share(q), strict=True)])

    def affine(self, F: Array | None, b: Array | None, noise: Array | None) -> "Blocks":
        """Push through theta -> F theta + b + e, e ~ N(0, noise²), all element by element."""
        reason = "a belief in blocks holds no correlations between them"
        refuse_matrices(F, noise, reason, "dynamics for each block: filtax.priors.by_block([...])")
        shares = zip(self._some, self._share(F), self._share(b), self._share(noise), strict=True)
        return self._of([part.affine(*share) for part, *share in shares])

    def mix(self, initial: "Blocks", keep: Float[Array, ""] | Float[Array, " D"]) -> "Blocks":
        """Move towards `initial`, keeping the share k of each parameter."""
        shares = zip(self._some, initial._some, self._share(keep), strict=True)
        return self._of([part.mix(start, k) for part, start, k in shares])

    def inflate(self, factor: Float[Array, ""]) -> "Blocks":
        """Multiply the covariance by a factor; the mean stays."""
        return self._of([part.inflate(factor) for part in self._some])

    def at(self, mean: Float[Array, " D"]) -> "Blocks":
        """Return the same belief about another mean."""
        moved = zip(self._some, self._cut(mean), strict=True)
        return self._of([eqx.tree_at(lambda part: part.mean, part, m) for part, m in moved])

    def blockwise(self, moves: Sequence[Callable[[Any, Any], Any]], initial: "Blocks") -> "Blocks":
        """Move each block, those without parameters too, by a function of its own: from (part, initial part) to a part.

        >>> from filtax.beliefs import Diagonal
        >>> one = Blocks((None, Diagonal.start(jnp.zeros(1), jnp.ones(1))))
        >>> one.blockwise(2 * [lambda part, start: part.add(jnp.asarray(2.0))], one).var.tolist()
        [3.0]
        """
        both = zip(moves, self.parts, initial.parts, strict=True)
        return self._of([move(part, at) for move, part, at in both if part is not None])

    @staticmethod
    def moment_match(batch: "Blocks", log_weight: Float[Array, " C"]) -> "Blocks":
        """Mean of a mixture of C beliefs, and its covariance within each block."""
        return batch._of([type(part).moment_match(part, log_weight) for part in batch._some])

    def sample(self, key: Key[Array, ""], shape: tuple[int, ...] = ()) -> Float[Array, "*shape D"]:
        """Draw parameters, each block from a key of its own."""
        checks.key("sample(key=...)", key)
        keys = jax.random.split(key, len(self._some))
        return jnp.concatenate([part.sample(k, shape) for part, k in zip(self._some, keys, strict=True)], axis=-1)

    @property
    def _some(self) -> list[Any]:
        return [part for part in self.parts if part is not None]

    def _of(self, new: list[Any]) -> "Blocks":
        rest = iter(new)
        parts = tuple(None if part is None else next(rest) for part in self.parts)
        return Blocks(parts, self.coupled, self.marginal)

    def _shares(self, B: Array, r: Array, left: Array, V: list[Array]) -> list[tuple[Array, Array]]:
        """Whitener and residual that each block conditions itself on; S⁻¹r is what is `left`."""
        if self.marginal:
            noises = [_total([jnp.eye(r.size, dtype=r.dtype), *V[:k], *V[k + 1 :]]) for k in range(len(V))]
            return [(solve_lower(L, B), solve_lower(L, r)) for L in map(cholesky, noises)]
        if self.coupled:
            return [(B, left + matmul(Vk, left[:, None])[:, 0]) for Vk in V]
        return [(B, r) for _ in V]

    def _cut(self, rows: Float[Array, "... D"]) -> list[Array]:
        """Columns that belong to each block."""
        cuts, start = [], 0
        for part in self._some:
            cuts.append(rows[..., start : start + part.mean.size])
            start += part.mean.size
        return cuts

    def _share(self, value: Array | None) -> list[Array | None]:
        """What of a number, or of (D,) numbers, belongs to each block."""
        if value is None or value.size == 1:
            return [value for _ in self._some]
        return list(self._cut(value))


def _total(terms: list[Array]) -> Array:
    return functools.reduce(operator.add, terms)
