r"""Gaussian belief held as its covariance: cheap drift, and two reads and one write of D² numbers a step.

The update is a symmetric downdate, with the guards of `cut`. Of many parameters the belief is `Pending`, which has one
read less.

Thesis: prop:kf-equations, eq:kf-update-step (errata E3).
"""

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from filtax import checks
from filtax._xla import no_inline
from filtax.beliefs.conditioned import RESOLVED, Conditioned, one_by_one
from filtax.beliefs.cut import SMALL, cut, guarded, symmetric
from filtax.beliefs.dense import applied, downdated
from filtax.beliefs.square_root import root_of
from filtax.linalg import gram, matmul, trace
from filtax.protocols import Belief
from filtax.safe import safe_sqrt

__all__ = ["Covariance"]


class Covariance(Belief):
    """N(mean, cov).

    >>> Covariance.start(jnp.zeros(2), jnp.full(2, 4.0)).var.tolist()
    [4.0, 4.0]
    """

    squared: ClassVar[bool] = True  # the square of a root: it resolves half as many digits

    mean: Float[Array, " D"]
    cov: Float[Array, "D D"]

    @classmethod
    def start(cls, mean: Array, cov: Array) -> "Covariance":
        """Build from a mean and a covariance given as variances (D,) or in full (D, D)."""
        return cls(mean, jnp.diag(cov) if cov.ndim < 2 else cov)

    @property
    def var(self) -> Float[Array, " D"]:
        """The variances."""
        return jnp.diagonal(self.cov)

    def spread(self, J: Float[Array, "O D"]) -> Float[Array, "O O"]:
        """Covariance J Σ Jᵀ that the belief gives to J theta, with no negative variance."""
        return guarded(matmul(J, applied(self.cov, J)))

    def condition(self, J: Float[Array, "O D"], B: Float[Array, "O O"], r: Float[Array, " O"]) -> Conditioned:
        r"""Condition on r = B J (theta - mean) + e with e ~ N(0, I).

        With $I + BJ\Sigma J^\top B^\top = LL^\top$ and $U = \Sigma J^\top B^\top L^{-\top}$: $\mu' = \mu + U L^{-1} r$,
        $\Sigma' = \Sigma - UU^\top$. B = 0 and r = 0 leave the belief as it is. Where the digits cannot hold L, the
        outputs are taken one after the other, each by a number instead of a matrix.
        """
        PJ = applied(self.cov, J)
        spread = matmul(matmul(B, guarded(matmul(J, PJ))), B.T)
        if r.size == 1 or self.mean.size <= SMALL:
            return self._at_once(J, B, r, PJ, spread)
        held = trace(spread) < RESOLVED / float(jnp.finfo(r.dtype).eps)
        return jax.lax.cond(held, lambda: self._at_once(J, B, r, PJ, spread), lambda: one_by_one(self, matmul(B, J), r))

    def _at_once(self, J: Array, B: Array, r: Array, PJ: Array, spread: Array) -> Conditioned:
        small = self.mean.size <= SMALL
        # Of many parameters once for all, as the diagonal is slow to walk.
        var = _diagonal(self.cov) if small else _non_negative(self.var)
        done = cut(self.mean, var, J, B, r, PJ, spread)
        if not small:
            cov = downdated(self.cov, done.U, done.left(var))
        else:
            # On the diagonal alone: each operation counts, as XLA sends a program of 1000 of them to another thread.
            eye, cov = np.eye(self.mean.size, dtype=bool), self.cov - gram(done.U)
            cov = jnp.where(eye, done.least(_diagonal(cov), var)[:, None], cov)
        return Conditioned(Covariance(done.mean, cov), done.innovation, done.log_det, done.ok)

    def add(self, q: Float[Array, ""] | Float[Array, " D"]) -> "Covariance":
        """Add independent noise of variance q to every parameter; only the diagonal is touched."""
        D = self.mean.size
        if D <= SMALL:
            wider = self.cov + jnp.broadcast_to(q, (D,))[:, None]
            return Covariance(self.mean, jnp.where(np.eye(D, dtype=bool) & jnp.isfinite(wider), wider, self.cov))
        at, wider = jnp.arange(D), self.var + q
        return Covariance(self.mean, self.cov.at[at, at].set(jnp.where(jnp.isfinite(wider), wider, self.var)))

    def affine(self, F: Array | None, b: Array | None, noise: Array | None) -> "Covariance":
        """Push through theta -> F theta + b + e, e ~ N(0, noise noiseᵀ); F (D, D) or (D,), noise (D, D) or (D,)."""
        mean, cov = self.mean, self.cov
        if F is not None and F.ndim < 2:
            mean, cov = F * mean, F.reshape(-1, 1) * cov * F.reshape(1, -1)
        elif F is not None:
            mean, cov = matmul(F, mean[:, None])[:, 0], symmetric(matmul(matmul(F, cov), F.T))
        if b is not None:
            mean = mean + b
        if noise is not None and noise.ndim == 2:
            cov = cov + gram(noise)
        moved = self._keep_if_sound(mean, cov)
        return moved if noise is None or noise.ndim == 2 else moved.add(noise * noise)

    def mix(self, initial: "Covariance", keep: Float[Array, ""] | Float[Array, " D"]) -> "Covariance":
        r"""Move towards `initial`, keeping the share k of each parameter.

        Mean $k\mu + (1-k)\mu_0$, covariance $k\Sigma k + (1-k^2)^{1/2}\Sigma_0(1-k^2)^{1/2}$.
        """
        k = keep * jnp.ones_like(self.mean)
        rest = jnp.sqrt((1.0 - k) * (1.0 + k))
        cov = k[:, None] * self.cov * k[None, :] + rest[:, None] * initial.cov * rest[None, :]
        return self._keep_if_sound(k * self.mean + (1.0 - k) * initial.mean, cov)

    def inflate(self, factor: Float[Array, ""]) -> "Covariance":
        """Multiply the covariance by a factor; the mean stays."""
        return self._keep_if_sound(self.mean, factor * self.cov)

    @staticmethod
    def moment_match(batch: "Covariance", log_weight: Float[Array, " C"]) -> "Covariance":
        """Mean and covariance of a mixture of C beliefs, in centred form."""
        weight = jnp.exp(log_weight)
        mean = matmul(weight[None, :], batch.mean)[0]
        gap = safe_sqrt(weight)[:, None] * (batch.mean - mean[None])
        return Covariance(mean, jnp.sum(weight[:, None, None] * batch.cov, axis=0) + matmul(gap.T, gap))

    def sample(self, key: Key[Array, ""], shape: tuple[int, ...] = ()) -> Float[Array, "*shape D"]:
        """Draw parameters; directions that rounding made negative count as certain."""
        checks.key("sample(key=...)", key)
        noise = jax.random.normal(key, (*shape, self.mean.size), self.mean.dtype)
        return self.mean.reshape((1,) * len(shape) + (-1,)) + noise @ root_of(self.cov).T

    def _keep_if_sound(self, mean: Array, cov: Array) -> "Covariance":
        """A drift that overflows is not taken; a finite diagonal bounds the rest of a covariance.

        The covariance is not asked about the mean: vmapped streams of a linear model then go on sharing it.
        """
        sound = jnp.isfinite(trace(cov))
        return Covariance(jnp.where(jnp.isfinite(mean), mean, self.mean), jnp.where(sound, cov, self.cov))


@no_inline  # every use of the variances would otherwise walk the diagonal again
def _non_negative(var: Array) -> Array:
    return jnp.maximum(var, 0.0)


def _diagonal(A: Array) -> Array:
    """The diagonal of a small matrix, number by number: JAX's own has a branch for each platform."""
    return jnp.stack([A[i, i] for i in range(A.shape[0])])
