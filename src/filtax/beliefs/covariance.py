r"""Gaussian belief held as its covariance: one read and one write of D² numbers a step, and cheap drift.

The update is a symmetric downdate $\Sigma - UU^\top$. Rounding can push it below zero, and what is below zero the next
data push further. Three guards stop it. Two are inactive in exact arithmetic: $J\Sigma J^\top$ has no negative
diagonal, and, since $\Sigma' \succeq \Sigma / m$ with $m = 1 + \mathrm{tr}(BJ\Sigma J^\top B^\top)$, no variance falls
below that share of its old value. The third gives back what the digits cannot hold: each variance grows by
$(2\sqrt{D} + 8)\,\epsilon\,h^{1/3}(1 - 1/m)$ of its old value, where
$h = \epsilon\,\mathrm{tr}(BJ\,\mathrm{diag}(\Sigma)J^\top B^\top)$, at most 1, is the rounding of a forecast in units
of the noise. In that unit a datum takes $\lambda^2$ from an eigenvalue $\lambda < 0$, and rounding lets it wander by h;
the power is the one that keeps the walk from running away. Where the digits suffice h is small. A belief that cannot
resolve a datum is wide instead of wrong, and narrows with the next ones.

Thesis: prop:kf-equations, eq:kf-update-step (errata E3).
"""

import math
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from filtax import checks
from filtax.beliefs.conditioned import RESOLVED, Conditioned, one_by_one
from filtax.beliefs.dense import applied, downdated, renewed
from filtax.beliefs.square_root import root_of
from filtax.calls import made_once
from filtax.factor import factor
from filtax.linalg import gram, matmul, safe_sqrt, trace
from filtax.module import Module

__all__ = ["Covariance"]

SMALL = 16  # up to this D the diagonal is reached by a mask; XLA does not compile a loop whole that scatters
LARGE = 256  # from here on the diagonal is kept beside the matrix: to walk along it takes a tenth of a step
# The rounding of a cut in ε of the variances is (2 √D + 8): with √D near-collinear features went negative, with 4 for
# the 8 one stream of few parameters in fifty thousand, with none one in a hundred.
ROUNDING, LEAST = 2.0, 8.0


class Covariance(Module):
    """N(mean, cov); `diagonal` is that of cov if there are more than `LARGE` parameters, and else None.

    >>> Covariance.start(jnp.zeros(2), jnp.full(2, 4.0)).var.tolist()
    [4.0, 4.0]
    """

    squared: ClassVar[bool] = True  # the square of a root: it resolves half as many digits

    mean: Float[Array, " D"]
    cov: Float[Array, "D D"]
    diagonal: Float[Array, " D"] | None = None

    @classmethod
    def start(cls, mean: Array, cov: Array) -> "Covariance":
        """Build from a mean and a covariance given as variances (D,) or in full (D, D)."""
        return cls.of(mean, jnp.diag(cov) if cov.ndim < 2 else cov)

    @classmethod
    def of(cls, mean: Array, cov: Array, var: Array | None = None) -> "Covariance":
        """Build from a mean and a covariance, whose diagonal may be known.

        >>> Covariance.of(jnp.zeros(300), jnp.eye(300)).diagonal.shape
        (300,)
        """
        if mean.size <= LARGE:
            return cls(mean, cov)
        return cls(mean, cov, jnp.diagonal(cov) if var is None else var)

    @property
    def var(self) -> Float[Array, " D"]:
        """The variances."""
        return jnp.diagonal(self.cov) if self.diagonal is None else self.diagonal

    def spread(self, J: Float[Array, "O D"]) -> Float[Array, "O O"]:
        """Covariance J Σ Jᵀ that the belief gives to J theta, with no negative variance."""
        return _guarded(matmul(J, applied(self.cov, J)))

    def condition(self, J: Float[Array, "O D"], B: Float[Array, "O O"], r: Float[Array, " O"]) -> Conditioned:
        r"""Condition on r = B J (theta - mean) + e with e ~ N(0, I).

        With $I + BJ\Sigma J^\top B^\top = LL^\top$ and $U = \Sigma J^\top B^\top L^{-\top}$: $\mu' = \mu + U L^{-1} r$,
        $\Sigma' = \Sigma - UU^\top$. B = 0 and r = 0 leave the belief as it is. Where the digits cannot hold L, the
        outputs are taken one after the other, each by a number instead of a matrix.
        """
        PJ = applied(self.cov, J)
        spread = matmul(matmul(B, _guarded(matmul(J, PJ))), B.T)
        if r.size == 1 or self.mean.size <= SMALL:
            return self._at_once(J, B, r, PJ, spread)
        held = trace(spread) < RESOLVED / float(jnp.finfo(r.dtype).eps)
        return jax.lax.cond(held, lambda: self._at_once(J, B, r, PJ, spread), lambda: one_by_one(self, matmul(B, J), r))

    def _at_once(self, J: Array, B: Array, r: Array, PJ: Array, spread: Array) -> Conditioned:
        # What is shared by vmapped streams is guarded here, so that their means need fewer guards of their own.
        finite = jnp.isfinite(trace(spread))
        spread = jnp.where(finite, spread, 0.0)
        L = factor(jnp.asarray(np.eye(r.size), r.dtype) + spread)
        most = jnp.where(finite, 1.0 + trace(spread), 1.0)
        var = self._known()
        doubt = self._doubt(J, B, most, var)
        # exactly, no pivot is below 1: a smaller one was lost to rounding
        sound = finite & L.sound(least=0.5) & jnp.isfinite(doubt)
        U, z = jnp.where(sound, L.solve(matmul(B, PJ.T)).T, 0.0), L.solve(r)
        moved = self.mean + matmul(U, z[:, None])[:, 0]
        mean = jnp.where(jnp.isfinite(moved), moved, self.mean)
        after = self._cut(mean, U, jnp.where(sound, most, 1.0), jnp.where(sound, doubt, 0.0), var)
        return Conditioned(after, z, L.log_det, sound & jnp.all(jnp.isfinite(moved)))

    def _known(self) -> Array:
        """The variances, none below zero; of many parameters once for all, as the diagonal is slow to walk."""
        if self.mean.size <= SMALL:
            return _diagonal(self.cov)
        return made_once(jnp.maximum(self.var, 0.0))

    def _cut(self, mean: Array, U: Array, most: Array, doubt: Array, var: Array) -> "Covariance":
        """Σ - U Uᵀ; each variance keeps `doubt` of its old value, and does not fall below that divided by `most`."""
        if self.mean.size <= SMALL:
            # On the diagonal alone: each operation counts, as XLA sends a program of 1000 of them to another thread.
            eye, cut = np.eye(self.mean.size, dtype=bool), self.cov - gram(U)
            left = jnp.maximum(_diagonal(cut) + doubt * var, var * (1.0 / most))
            return Covariance(mean, jnp.where(eye, left[:, None], cut))
        left = jnp.maximum(var - jnp.sum(U * U, axis=1) + doubt * var, var / most)
        return Covariance.of(mean, downdated(self.cov, U, left), left)

    def _doubt(self, J: Array, B: Array, most: Array, var: Array) -> Array:
        """Share of each old variance that the rounding of a cut is worth; none where nothing is cut.

        A small belief has the share of the worst case: what a better one would cost is more than it is worth.
        """
        eps = float(jnp.finfo(self.cov.dtype).eps)
        share = (ROUNDING * math.sqrt(self.mean.size) + LEAST) * eps * (1.0 - 1.0 / most)
        if self.mean.size <= SMALL:
            return share
        G = matmul(B, J)
        blur = eps * jnp.sum(var[None, :] * G * G)
        return share * jax.lax.stop_gradient(jnp.cbrt(jnp.minimum(blur, 1.0)))  # its slope is infinite at 0

    def add(self, q: Float[Array, ""] | Float[Array, " D"]) -> "Covariance":
        """Add independent noise of variance q to every parameter; only the diagonal is touched."""
        D = self.mean.size
        if D <= SMALL:
            wider = self.cov + jnp.broadcast_to(q, (D,))[:, None]
            return Covariance(self.mean, jnp.where(np.eye(D, dtype=bool) & jnp.isfinite(wider), wider, self.cov))
        wider = self.var + q
        var = jnp.where(jnp.isfinite(wider), wider, self.var)
        return Covariance.of(self.mean, renewed(self.cov, var), var)

    def drift(self, F: Array | None, b: Array | None, noise: Array | None) -> "Covariance":
        """Push through theta -> F theta + b + e, e ~ N(0, noise noiseᵀ); F (D, D) or (D,), noise (D, D) or (D,)."""
        mean, cov = self.mean, self.cov
        if F is not None and F.ndim < 2:
            mean, cov = F * mean, F.reshape(-1, 1) * cov * F.reshape(1, -1)
        elif F is not None:
            mean, cov = matmul(F, mean[:, None])[:, 0], _symmetric(matmul(matmul(F, cov), F.T))
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
        return Covariance.of(mean, jnp.sum(weight[:, None, None] * batch.cov, axis=0) + matmul(gap.T, gap))

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
        return Covariance.of(jnp.where(jnp.isfinite(mean), mean, self.mean), jnp.where(sound, cov, self.cov))


def _guarded(spread: Array) -> Array:
    """Symmetric, with a diagonal that is at least zero."""
    if spread.shape[0] == 1:
        return jnp.maximum(spread, 0.0)
    spread = _symmetric(spread)
    return jnp.where(np.eye(spread.shape[0], dtype=bool), jnp.maximum(spread, 0.0), spread)


def _diagonal(A: Array) -> Array:
    """The diagonal of a small matrix, number by number: JAX's own has a branch for each platform."""
    return jnp.stack([A[i, i] for i in range(A.shape[0])])


def _symmetric(A: Array) -> Array:
    return 0.5 * (A + A.T)
