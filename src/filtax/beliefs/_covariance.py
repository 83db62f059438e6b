r"""Gaussian beliefs held as their covariance: cheap noise, and D² numbers read and written by a datum.

The update is a symmetric downdate $\Sigma - UU^\top$. Rounding can push it below zero, and what is below zero the next
data push further. Three guards stop it. Two are inactive in exact arithmetic: $J\Sigma J^\top$ has no negative
diagonal, and, since $\Sigma' \succeq \Sigma / m$ with $m = 1 + \mathrm{tr}(BJ\Sigma J^\top B^\top)$, no variance falls
below that share of its old value. The third gives back what the digits cannot hold: each variance grows by
$(2\sqrt{D} + 8)\,\epsilon\,h^{1/3}(1 - 1/m)$ of its old value, where
$h = \epsilon\,\mathrm{tr}(BJ\,\mathrm{diag}(\Sigma)J^\top B^\top)$, at most 1, is the rounding of a forecast in units
of the noise. In that unit a datum takes $\lambda^2$ from an eigenvalue $\lambda < 0$, and rounding lets it wander by h;
the power is the one that keeps the walk from running away. Where the digits suffice h is small. A belief that cannot
resolve a datum is wide instead of wrong, and narrows with the next ones.

`Covariance` reads its matrix for the forecast, and reads and writes it for the update. `Pending`, for many parameters,
defers the downdate by the last datum until the next forecast, so that both are one read and one write.

By default a filter holds a root (`SquareRoot`). It holds `Covariance` with form=covariance and where more than 64
parameters move, and `Pending` instead where there are more than 256.

Axes: D parameters, O outputs. Cost: O(D² O) for a datum, O(D) for noise.
Thesis: prop:kf-equations, eq:kf-update-step (errata E3).
"""

import math
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key

from filtax import _validation as checks
from filtax._xla import no_inline
from filtax.beliefs._conditioned import RESOLVED, Conditioned, one_by_one
from filtax.beliefs._square_root import root_of
from filtax.linalg import factor, gram, matmul, trace
from filtax.numerics import safe_sqrt
from filtax.protocols import Belief

SMALL = 32  # up to this D the diagonal is reached by a mask; XLA does not compile a loop whole that scatters
LARGE = 256  # parameters up to which `Covariance` serves; beyond, `Pending`
# The rounding of a downdate in ε of the variances is (2 √D + 8): with √D near-collinear features went negative, with 4
# for the 8 one stream of few parameters in fifty thousand, with none one in a hundred.
ROUNDING, LEAST = 2.0, 8.0


class Downdate(NamedTuple):
    r"""What a datum does: the new mean, $UU^\top$ to subtract from the covariance, and bounds of the new variances.

    No variance falls below `1 / shrinkage` of its old value; `doubt` of the old value is added to each.
    """

    mean: Float[Array, " D"]
    U: Float[Array, "D O"]
    shrinkage: Float[Array, ""]
    doubt: Float[Array, ""]
    innovation: Float[Array, " O"]
    log_det: Float[Array, ""]
    ok: Bool[Array, ""]

    def var(self, old: Float[Array, " D"]) -> Float[Array, " D"]:
        """The variances after the datum."""
        return self.guard(old - jnp.sum(self.U * self.U, axis=1), old)

    def guard(self, var: Float[Array, " D"], old: Float[Array, " D"]) -> Float[Array, " D"]:
        """Variances from which U Uᵀ was subtracted, with what rounding took given back."""
        return jnp.maximum(var + self.doubt * old, old * (1.0 / self.shrinkage))


def downdate(mean: Array, var: Array, J: Array, B: Array, r: Array, PJ: Array, cov: Array) -> Downdate:
    """Condition a Gaussian with these variances on r = B J (theta - mean) + e; `PJ` is Σ Jᵀ, `cov` is B J Σ Jᵀ Bᵀ.

    A result that is not finite is refused.

    >>> one = jnp.ones((1, 1))
    >>> downdate(jnp.zeros(1), jnp.full(1, 3.0), one, one, jnp.ones(1), 3.0 * one, 3.0 * one).mean.tolist()
    [0.75]
    """
    # What is shared by vmapped streams is guarded here, so that their means need fewer guards of their own.
    finite = jnp.isfinite(trace(cov))
    cov = jnp.where(finite, cov, 0.0)
    L = factor(jnp.asarray(np.eye(r.size), r.dtype) + cov)
    shrinkage = jnp.where(finite, 1.0 + trace(cov), 1.0)
    doubt = _doubt(J, B, shrinkage, var)
    # exactly, no pivot is below 1: a smaller one was lost to rounding
    sound = finite & L.sound(least=0.5) & jnp.isfinite(doubt)
    U, z = jnp.where(sound, L.solve(matmul(B, PJ.T)).T, 0.0), L.solve(r)
    moved = mean + matmul(U, z[:, None])[:, 0]
    mean = jnp.where(jnp.isfinite(moved), moved, mean)
    ok = sound & jnp.all(jnp.isfinite(moved))
    return Downdate(mean, U, jnp.where(sound, shrinkage, 1.0), jnp.where(sound, doubt, 0.0), z, L.log_det, ok)


def _doubt(J: Array, B: Array, shrinkage: Array, var: Array) -> Array:
    """Share of each old variance that the rounding of a downdate is worth; 0 if nothing is subtracted.

    A small belief takes the share of the worst case, as a better one would cost more than it is worth.
    """
    eps = float(jnp.finfo(var.dtype).eps)
    share = (ROUNDING * math.sqrt(var.size) + LEAST) * eps * (1.0 - 1.0 / shrinkage)
    if var.size <= SMALL:
        return share
    G = matmul(B, J)
    blur = eps * jnp.sum(var[None, :] * G * G)
    return share * jax.lax.stop_gradient(jnp.cbrt(jnp.minimum(blur, 1.0)))  # its slope is infinite at 0


def guarded(cov: Array) -> Array:
    """Symmetric, with a diagonal that is at least zero.

    >>> guarded(jnp.array([[-1.0, 1.0], [3.0, 4.0]])).tolist()
    [[0.0, 2.0], [2.0, 4.0]]
    """
    if cov.shape[0] == 1:
        return jnp.maximum(cov, 0.0)
    cov = symmetric(cov)
    return jnp.where(np.eye(cov.shape[0], dtype=bool), jnp.maximum(cov, 0.0), cov)


def symmetric(A: Float[Array, "N N"]) -> Float[Array, "N N"]:
    """Half of A and its transpose.

    >>> symmetric(jnp.array([[1.0, 1.0], [3.0, 4.0]])).tolist()
    [[1.0, 2.0], [2.0, 4.0]]
    """
    return 0.5 * (A + A.T)


# ---- passes over a matrix of many parameters


def downdated(A: Float[Array, "D D"], U: Float[Array, "D O"], diagonal: Float[Array, " D"]) -> Float[Array, "D D"]:
    r"""$A - UU^\top$, with other numbers on its diagonal.

    >>> downdated(2.0 * jnp.eye(2), jnp.ones((2, 1)), jnp.array([5.0, 6.0])).tolist()
    [[5.0, -1.0], [-1.0, 6.0]]
    """
    return _with_diagonal(A - gram(_computed_once(U)), diagonal)


def downdated_and_applied(
    A: Float[Array, "D D"], u: Float[Array, " D"], J: Float[Array, "1 D"]
) -> tuple[Float[Array, "D D"], Float[Array, "D 1"]]:
    r"""$A - uu^\top$ with zeros on its diagonal, and that times $J^\top$: a deferred downdate, and a forecast.

    >>> found = downdated_and_applied(jnp.zeros((2, 2)), jnp.array([1.0, 2.0]), jnp.array([[3.0, 4.0]]))
    >>> [a.tolist() for a in found]
    [[[0.0, -2.0], [-2.0, 0.0]], [[-8.0], [-6.0]]]
    """
    A = _with_diagonal(A - u[:, None] * u[None, :], jnp.zeros_like(u))
    return A, matmul(A, J.T)


@no_inline  # XLA would otherwise repeat the computation of U, the trust included, in each of the D² products
def _computed_once(U: Array) -> Array:
    return U


def _with_diagonal(A: Array, diagonal: Array) -> Array:
    at = jnp.arange(len(A))
    return A.at[at, at].set(diagonal)


class Covariance(Belief):
    """N(mean, cov).

    >>> Covariance.start(jnp.zeros(2), jnp.full(2, 4.0)).var.tolist()
    [4.0, 4.0]
    """

    squared: ClassVar[bool] = True

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

    def project_cov(self, J: Float[Array, "O D"]) -> Float[Array, "O O"]:
        """Covariance J Σ Jᵀ that the belief gives to J theta, with no negative variance."""
        return guarded(matmul(J, matmul(self.cov, J.T)))

    def condition(self, J: Float[Array, "O D"], B: Float[Array, "O O"], r: Float[Array, " O"]) -> Conditioned:
        r"""Condition on r = B J (theta - mean) + e with e ~ N(0, I).

        With $I + BJ\Sigma J^\top B^\top = LL^\top$ and $U = \Sigma J^\top B^\top L^{-\top}$: $\mu' = \mu + U L^{-1} r$,
        $\Sigma' = \Sigma - UU^\top$. B = 0 and r = 0 leave the belief as it is. Where the digits cannot hold L, the
        outputs are taken one after the other, each by a number instead of a matrix.
        """
        PJ = matmul(self.cov, J.T)
        whitened = matmul(matmul(B, guarded(matmul(J, PJ))), B.T)
        if r.size == 1 or self.mean.size <= SMALL:
            return self._at_once(J, B, r, PJ, whitened)
        resolved = trace(whitened) < RESOLVED / float(jnp.finfo(r.dtype).eps)
        return jax.lax.cond(
            resolved, lambda: self._at_once(J, B, r, PJ, whitened), lambda: one_by_one(self, matmul(B, J), r)
        )

    def _at_once(self, J: Array, B: Array, r: Array, PJ: Array, whitened: Array) -> Conditioned:
        small = self.mean.size <= SMALL
        # the diagonal of many parameters is slow to read: once is enough
        var = _diagonal(self.cov) if small else _non_negative(self.var)
        done = downdate(self.mean, var, J, B, r, PJ, whitened)
        if not small:
            cov = downdated(self.cov, done.U, done.var(var))
        else:
            # On the diagonal alone: each operation counts, as XLA sends a program of 1000 of them to another thread.
            eye, cov = np.eye(self.mean.size, dtype=bool), self.cov - gram(done.U)
            cov = jnp.where(eye, done.guard(_diagonal(cov), var)[:, None], cov)
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
        moved = self._keep_if_finite(mean, cov)
        return moved if noise is None or noise.ndim == 2 else moved.add(noise * noise)

    def mix(self, initial: "Covariance", keep: Float[Array, ""] | Float[Array, " D"]) -> "Covariance":
        r"""Move towards `initial`, keeping the share k of each parameter.

        Mean $k\mu + (1-k)\mu_0$, covariance $k\Sigma k + (1-k^2)^{1/2}\Sigma_0(1-k^2)^{1/2}$.
        """
        k = keep * jnp.ones_like(self.mean)
        rest = jnp.sqrt((1.0 - k) * (1.0 + k))
        cov = k[:, None] * self.cov * k[None, :] + rest[:, None] * initial.cov * rest[None, :]
        return self._keep_if_finite(k * self.mean + (1.0 - k) * initial.mean, cov)

    def inflate(self, factor: Float[Array, ""]) -> "Covariance":
        """Multiply the covariance by a factor; the mean stays."""
        return self._keep_if_finite(self.mean, factor * self.cov)

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

    def _keep_if_finite(self, mean: Array, cov: Array) -> "Covariance":
        """Keep the old belief where dynamics overflow; a finite diagonal bounds the rest of a covariance.

        The covariance does not depend on whether the mean is finite, so that vmapped streams of a linear model share
        it.
        """
        sound = jnp.isfinite(trace(cov))
        return Covariance(jnp.where(jnp.isfinite(mean), mean, self.mean), jnp.where(sound, cov, self.cov))


@no_inline  # every use of the variances would otherwise read the diagonal again
def _non_negative(var: Array) -> Array:
    return jnp.maximum(var, 0.0)


def _diagonal(A: Array) -> Array:
    """The diagonal of a small matrix, number by number: JAX's own has a branch for each platform."""
    return jnp.stack([A[i, i] for i in range(A.shape[0])])


class Pending(Belief):
    r"""N(mean, Σ) with $\Sigma = \text{base} - uu^\top$ off its diagonal, and `diagonal` on it; that of `base` is zero.

    `column` is u, the downdate by the last datum that is still to be applied; zero after a datum of several outputs.

    >>> Pending.start(jnp.zeros(2), jnp.full(2, 4.0)).cov.tolist()
    [[4.0, 0.0], [0.0, 4.0]]
    """

    squared: ClassVar[bool] = True

    mean: Float[Array, " D"]
    base: Float[Array, "D D"]
    diagonal: Float[Array, " D"]
    column: Float[Array, " D"]

    @classmethod
    def start(cls, mean: Array, cov: Array) -> "Pending":
        """Build from a mean and a covariance given as variances (D,) or in full (D, D)."""
        if cov.ndim == 2:
            return cls.of(Covariance(mean, cov))
        return cls(mean, jnp.zeros((mean.size, mean.size), mean.dtype), cov, jnp.zeros_like(mean))

    @classmethod
    def of(cls, belief: Covariance) -> "Pending":
        """The same belief, with no downdate deferred.

        >>> Pending.of(Covariance(jnp.zeros(2), jnp.full((2, 2), 3.0))).base.tolist()
        [[0.0, 3.0], [3.0, 0.0]]
        """
        return cls(belief.mean, _off_diagonal(belief.cov), belief.var, jnp.zeros_like(belief.mean))

    @property
    def cov(self) -> Float[Array, "D D"]:
        """The covariance, formed on request."""
        return downdated(self.base, self.column[:, None], self.diagonal)

    @property
    def var(self) -> Float[Array, " D"]:
        """The variances."""
        return self.diagonal

    def project_cov(self, J: Float[Array, "O D"]) -> Float[Array, "O O"]:
        """Covariance J Σ Jᵀ that the belief gives to J theta, with no negative variance."""
        return guarded(matmul(J, self._times(J)))

    def _times(self, J: Array) -> Array:
        """Σ Jᵀ, without writing the matrix."""
        u = self.column[:, None]
        return matmul(self.base, J.T) - u * matmul(J, u).T + (self.diagonal[:, None] + u * u) * J.T

    def prepare(self, J: Float[Array, "O D"]) -> "Pending | PreparedUpdate":
        """Apply the deferred downdate and compute Σ Jᵀ in one pass; the forecast and the update through J share it.

        >>> Pending.start(jnp.zeros(2), jnp.full(2, 4.0)).prepare(jnp.ones((1, 2))).PJ.tolist()
        [[4.0], [4.0]]
        """
        if len(J) > 1:
            return self
        base, PJ = downdated_and_applied(self.base, self.column, J)
        now = Pending(self.mean, base, self.diagonal, jnp.zeros_like(self.column))
        return PreparedUpdate(now, J, PJ + self.diagonal[:, None] * J.T)

    def condition(self, J: Float[Array, "O D"], B: Float[Array, "O O"], r: Float[Array, " O"]) -> Conditioned:
        r"""Condition on r = B J (theta - mean) + e with e ~ N(0, I).

        With $I + BJ\Sigma J^\top B^\top = LL^\top$ and $U = \Sigma J^\top B^\top L^{-\top}$: $\mu' = \mu + U L^{-1} r$,
        $\Sigma' = \Sigma - UU^\top$. B = 0 and r = 0 leave the belief as it is. Several outputs are subtracted at
        once, with the deferred downdate; where the digits cannot hold L, one after the other.
        """
        if r.size == 1:
            return self.prepare(J).condition(J, B, r)
        PJ = self._times(J)
        whitened = matmul(matmul(B, guarded(matmul(J, PJ))), B.T)
        resolved = trace(whitened) < RESOLVED / float(jnp.finfo(r.dtype).eps)
        return jax.lax.cond(
            resolved, lambda: self._at_once(J, B, r, PJ, whitened), lambda: one_by_one(self, matmul(B, J), r)
        )

    def _at_once(self, J: Array, B: Array, r: Array, PJ: Array, whitened: Array) -> Conditioned:
        var = jnp.maximum(self.diagonal, 0.0)
        done, none = downdate(self.mean, var, J, B, r, PJ, whitened), jnp.zeros_like(self.column)
        if r.size == 1:  # no downdate is deferred
            after = Pending(done.mean, self.base, done.var(var), done.U[:, 0])
        else:
            base = downdated(self.base, jnp.concatenate([done.U, self.column[:, None]], axis=1), none)
            after = Pending(done.mean, base, done.var(var), none)
        return Conditioned(after, done.innovation, done.log_det, done.ok)

    def add(self, q: Float[Array, ""] | Float[Array, " D"]) -> "Pending":
        """Add independent noise of variance q to every parameter; the matrix is not touched."""
        wider = self.diagonal + q
        var = jnp.where(jnp.isfinite(wider), wider, self.diagonal)
        return Pending(self.mean, self.base, var, self.column)

    def affine(self, F: Array | None, b: Array | None, noise: Array | None) -> "Pending":
        """Push through theta -> F theta + b + e, e ~ N(0, noise noiseᵀ); F (D, D) or (D,), noise (D, D) or (D,)."""
        if any(part is not None and part.ndim == 2 for part in (F, noise)):
            return Pending.of(Covariance(self.mean, self.cov).affine(F, b, noise))
        mean = (self.mean if F is None else F * self.mean) + (0.0 if b is None else b)
        moved = self._scaled(mean, F)
        return moved if noise is None else moved.add(noise * noise)

    def mix(self, initial: "Pending", keep: Float[Array, ""] | Float[Array, " D"]) -> "Pending":
        r"""Move towards `initial`, keeping the share k of each parameter.

        Mean $k\mu + (1-k)\mu_0$, covariance $k\Sigma k + (1-k^2)^{1/2}\Sigma_0(1-k^2)^{1/2}$.
        """
        k = keep * jnp.ones_like(self.mean)
        mean = k * self.mean + (1.0 - k) * initial.mean
        rest = jnp.sqrt((1.0 - k) * (1.0 + k))
        off = _around(k, self) + _around(rest, initial)
        var = k * self.diagonal * k + rest * initial.diagonal * rest
        return self._keep_if_finite(Pending(mean, _off_diagonal(off), var, jnp.zeros_like(self.column)))

    def inflate(self, factor: Float[Array, ""]) -> "Pending":
        """Multiply the covariance by a factor; the mean stays."""
        return self._scaled(self.mean, jnp.sqrt(factor))

    @staticmethod
    def moment_match(batch: "Pending", log_weight: Float[Array, " C"]) -> "Pending":
        """Mean and covariance of a mixture of C beliefs, in centred form."""
        whole = jax.vmap(lambda belief: Covariance(belief.mean, belief.cov))(batch)
        return Pending.of(Covariance.moment_match(whole, log_weight))

    def sample(self, key: Key[Array, ""], shape: tuple[int, ...] = ()) -> Float[Array, "*shape D"]:
        """Draw parameters; directions that rounding made negative count as certain."""
        return Covariance(self.mean, self.cov).sample(key, shape)

    def _scaled(self, mean: Array, k: Array | None) -> "Pending":
        """Another mean, and every deviation k times as large."""
        if k is None:
            return self._keep_if_finite(Pending(mean, self.base, self.diagonal, self.column))
        k = k * jnp.ones_like(self.mean)
        base = k[:, None] * self.base * k[None, :]
        return self._keep_if_finite(Pending(mean, base, k * self.diagonal * k, k * self.column))

    def _keep_if_finite(self, moved: "Pending") -> "Pending":
        """Keep the old belief where dynamics overflow; finite variances bound the rest.

        The covariance does not depend on whether the mean is finite, so that vmapped streams of a linear model share
        it.
        """
        sound = jnp.isfinite(jnp.sum(moved.diagonal))
        kept = jax.tree.map(lambda new, old: new if new is old else jnp.where(sound, new, old), moved, self)
        mean = jnp.where(jnp.isfinite(moved.mean), moved.mean, self.mean)
        return Pending(mean, kept.base, kept.diagonal, kept.column)


class PreparedUpdate(Belief):
    """A belief without a deferred downdate, and its `PJ` = Σ Jᵀ (D, 1) for a datum with the Jacobian J.

    >>> J = jnp.ones((1, 2))
    >>> Pending.start(jnp.zeros(2), jnp.full(2, 4.0)).prepare(J).project_cov(J).item()
    8.0
    """

    belief: Pending
    J: Float[Array, "1 D"]
    PJ: Float[Array, "D 1"]

    @property
    def mean(self) -> Float[Array, " D"]:
        """Mean of the belief."""
        return self.belief.mean

    def project_cov(self, J: Float[Array, "O D"]) -> Float[Array, "O O"]:
        """Covariance J Σ Jᵀ; for the very J that was prepared, nothing large is read."""
        return guarded(matmul(J, self.PJ)) if J is self.J else self.belief.project_cov(J)

    def condition(self, J: Float[Array, "O D"], B: Float[Array, "O O"], r: Float[Array, " O"]) -> Conditioned:
        """Condition the belief; for the very J that was prepared, from PJ."""
        if J is not self.J:
            return self.belief.condition(J, B, r)
        whitened = matmul(matmul(B, self.project_cov(J)), B.T)
        return self.belief._at_once(J, B, r, self.PJ, whitened)


def _off_diagonal(A: Array) -> Array:
    at = jnp.arange(len(A))
    return jnp.where(at[:, None] == at[None, :], 0.0, A)


def _around(k: Array, belief: Pending) -> Array:
    """The covariance of k times the parameters, off its diagonal."""
    u = k * belief.column
    return k[:, None] * belief.base * k[None, :] - u[:, None] * u[None, :]
