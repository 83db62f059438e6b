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
from jaxtyping import Array, Bool, Float

from filtax._xla import no_inline
from filtax.beliefs._gaussian import RESOLVED, Conditioned, Gaussian, if_finite, one_by_one, shares
from filtax.beliefs._square_root import root_of
from filtax.linalg import diagonals, factor, gram, matmul, trace
from filtax.numerics import safe_sqrt

SMALL = 32  # up to this D several outputs are taken at once, and the rounding of a forecast is that of the worst case
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
        """The variances after the datum, with what rounding took given back."""
        var = old - jnp.sum(self.U * self.U, axis=1)
        return jnp.maximum(var + self.doubt * old, old * (1.0 / self.shrinkage))


def downdate(mean: Array, var: Array, J: Array, B: Array, r: Array, PJ: Array, cov: Array) -> Downdate:
    """Condition a Gaussian with these variances on r = B J (theta - mean) + e; `PJ` is Σ Jᵀ, `cov` is B J Σ Jᵀ Bᵀ.

    A result that is not finite is refused.
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
    ok = sound & jnp.all(jnp.isfinite(moved))
    return Downdate(
        if_finite(moved, mean), U, jnp.where(sound, shrinkage, 1.0), jnp.where(sound, doubt, 0.0), z, L.log_det, ok
    )


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


class Covariance(Gaussian):
    """N(mean, cov).

    >>> Covariance.start(jnp.zeros(2), jnp.full(2, 4.0)).var.tolist()
    [4.0, 4.0]
    """

    squared: ClassVar[bool] = True

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
        return _guarded(matmul(J, matmul(self.cov, J.T)))

    def condition(self, J: Float[Array, "O D"], B: Float[Array, "O O"], r: Float[Array, " O"]) -> Conditioned:
        r"""Condition on r = B J (theta - mean) + e with e ~ N(0, I).

        With $I + BJ\Sigma J^\top B^\top = LL^\top$ and $U = \Sigma J^\top B^\top L^{-\top}$: $\mu' = \mu + U L^{-1} r$,
        $\Sigma' = \Sigma - UU^\top$. B = 0 and r = 0 leave the belief as it is. Where the digits cannot hold L, the
        outputs are taken one after the other, each by a number instead of a matrix.
        """
        return _by_resolution(self, J, B, r, matmul(self.cov, J.T), at_once=self.mean.size <= SMALL)

    def _at_once(self, J: Array, B: Array, r: Array, PJ: Array, whitened: Array) -> Conditioned:
        var = _computed_once(jnp.maximum(diagonals(self.cov), 0.0))
        done = downdate(self.mean, var, J, B, r, PJ, whitened)
        after = Covariance(done.mean, _downdated(self.cov, done.U, done.var(var)))
        return Conditioned(after, done.innovation, done.log_det, done.ok)

    def add(self, q: Float[Array, ""] | Float[Array, " D"]) -> "Covariance":
        """Add independent noise of variance q to every parameter; only the diagonal is touched."""
        var = diagonals(self.cov)
        return Covariance(self.mean, _with_diagonal(self.cov, if_finite(var + q, var)))

    @staticmethod
    def moment_match(batch: "Covariance", log_weight: Float[Array, " C"]) -> "Covariance":
        """Mean and covariance of a mixture of C beliefs, in centred form."""
        weight = jnp.exp(log_weight)
        mean = matmul(weight[None, :], batch.mean)[0]
        gap = safe_sqrt(weight)[:, None] * (batch.mean - mean[None])
        return Covariance(mean, jnp.sum(weight[:, None, None] * batch.cov, axis=0) + matmul(gap.T, gap))

    def _moved(self, mean: Array, F: Array | None, noise: Array | None) -> "Covariance":
        cov = self.cov
        if F is not None:
            cov = _scaled(cov, F) if F.ndim < 2 else _symmetric(matmul(matmul(F, cov), F.T))
        if noise is not None and noise.ndim == 2:
            cov = cov + gram(noise)
        moved = self._keep_if_finite(mean, cov)
        return moved if noise is None or noise.ndim == 2 else moved.add(noise * noise)

    def _mixed(self, mean: Array, initial: "Covariance", keep: Array) -> "Covariance":
        k, rest = shares(keep, self.mean)
        return self._keep_if_finite(mean, _scaled(self.cov, k) + _scaled(initial.cov, rest))

    def _coloured(self, noise: Float[Array, "N D"]) -> Float[Array, "N D"]:
        return noise @ root_of(self.cov).T  # directions that rounding made negative count as certain

    def _keep_if_finite(self, mean: Array, cov: Array) -> "Covariance":
        """Keep the old belief where dynamics overflow; a finite diagonal bounds the rest of a covariance.

        The covariance does not depend on whether the mean is finite, so that vmapped streams of a linear model share
        it.
        """
        return Covariance(if_finite(mean, self.mean), jnp.where(jnp.isfinite(trace(cov)), cov, self.cov))


class Pending(Gaussian):
    r"""N(mean, Σ) with $\Sigma = \text{base} - uu^\top$ off its diagonal, and `diagonal` on it; that of `base` is zero.

    `column` is u, the downdate by the last datum that is still to be applied; zero after a datum of several outputs.
    `prepared` holds the Jacobian J of the datum to come and Σ Jᵀ, between the forecast and the update.

    >>> Pending.start(jnp.zeros(2), jnp.full(2, 4.0)).cov.tolist()
    [[4.0, 0.0], [0.0, 4.0]]
    """

    squared: ClassVar[bool] = True

    base: Float[Array, "D D"]
    diagonal: Float[Array, " D"]
    column: Float[Array, " D"]
    prepared: tuple[Float[Array, "1 D"], Float[Array, "D 1"]] | None = None

    @classmethod
    def start(cls, mean: Array, cov: Array) -> "Pending":
        """Build from a mean and a covariance given as variances (D,) or in full (D, D)."""
        if cov.ndim == 2:
            return cls.of(Covariance(mean, cov))
        return cls(mean, jnp.zeros((mean.size, mean.size), mean.dtype), cov, jnp.zeros_like(mean))

    @classmethod
    def of(cls, belief: Covariance) -> "Pending":
        """The same belief, with no downdate deferred."""
        base = jnp.where(_eye(belief.cov), 0.0, belief.cov)
        return cls(belief.mean, base, belief.var, jnp.zeros_like(belief.mean))

    @property
    def cov(self) -> Float[Array, "D D"]:
        """The covariance, formed on request."""
        return _downdated(self.base, self.column[:, None], self.diagonal)

    @property
    def var(self) -> Float[Array, " D"]:
        """The variances."""
        return self.diagonal

    def project_cov(self, J: Float[Array, "O D"]) -> Float[Array, "O O"]:
        """Covariance J Σ Jᵀ that the belief gives to J theta, with no negative variance."""
        return _guarded(matmul(J, self._times(J)))

    def prepare(self, J: Float[Array, "O D"]) -> "Pending":
        """Apply the deferred downdate and compute Σ Jᵀ in one pass; the forecast and the update through J share it.

        >>> Pending.start(jnp.zeros(2), jnp.full(2, 4.0)).prepare(jnp.ones((1, 2))).prepared[1].tolist()
        [[4.0], [4.0]]
        """
        if len(J) > 1:
            return self
        none = jnp.zeros_like(self.column)
        base = _with_diagonal(self.base - self.column[:, None] * self.column[None, :], none)
        PJ = matmul(base, J.T) + self.diagonal[:, None] * J.T
        return Pending(self.mean, base, self.diagonal, none, (J, PJ))

    def condition(self, J: Float[Array, "O D"], B: Float[Array, "O O"], r: Float[Array, " O"]) -> Conditioned:
        """Condition as `Covariance` does.

        Several outputs are subtracted at once, with the deferred downdate; where the digits cannot hold the factor,
        one after the other.
        """
        if r.size == 1 and (self.prepared is None or J is not self.prepared[0]):
            return self.prepare(J).condition(J, B, r)
        return _by_resolution(self, J, B, r, self._times(J), at_once=False)

    def _times(self, J: Array) -> Array:
        """Σ Jᵀ, without writing the matrix; for the very J that was prepared, nothing large is read."""
        if self.prepared is not None and J is self.prepared[0]:
            return self.prepared[1]
        u = self.column[:, None]
        return matmul(self.base, J.T) - u * matmul(J, u).T + (self.diagonal[:, None] + u * u) * J.T

    def _at_once(self, J: Array, B: Array, r: Array, PJ: Array, whitened: Array) -> Conditioned:
        var = jnp.maximum(self.diagonal, 0.0)
        done, none = downdate(self.mean, var, J, B, r, PJ, whitened), jnp.zeros_like(self.column)
        if r.size == 1:  # no downdate is deferred
            after = Pending(done.mean, self.base, done.var(var), done.U[:, 0])
        else:
            base = _downdated(self.base, jnp.concatenate([done.U, self.column[:, None]], axis=1), none)
            after = Pending(done.mean, base, done.var(var), none)
        return Conditioned(after, done.innovation, done.log_det, done.ok)

    def add(self, q: Float[Array, ""] | Float[Array, " D"]) -> "Pending":
        """Add independent noise of variance q to every parameter; the matrix is not touched."""
        return Pending(self.mean, self.base, if_finite(self.diagonal + q, self.diagonal), self.column)

    @staticmethod
    def moment_match(batch: "Pending", log_weight: Float[Array, " C"]) -> "Pending":
        """Mean and covariance of a mixture of C beliefs, in centred form."""
        whole = jax.vmap(lambda belief: Covariance(belief.mean, belief.cov))(batch)
        return Pending.of(Covariance.moment_match(whole, log_weight))

    def _moved(self, mean: Array, F: Array | None, noise: Array | None) -> "Pending":
        if any(part is not None and part.ndim == 2 for part in (F, noise)):
            return Pending.of(Covariance(self.mean, self.cov)._moved(mean, F, noise))
        moved = Pending(mean, self.base, self.diagonal, self.column)
        if F is not None:
            moved = Pending(mean, _scaled(self.base, F), F * self.diagonal * F, F * self.column)
        moved = self._keep_if_finite(moved)
        return moved if noise is None else moved.add(noise * noise)

    def _mixed(self, mean: Array, initial: "Pending", keep: Array) -> "Pending":
        k, rest = shares(keep, self.mean)
        var = k * self.diagonal * k + rest * initial.diagonal * rest
        off = _scaled(self._off_diagonal, k) + _scaled(initial._off_diagonal, rest)
        return self._keep_if_finite(Pending(mean, jnp.where(_eye(off), 0.0, off), var, jnp.zeros_like(self.column)))

    def _coloured(self, noise: Float[Array, "N D"]) -> Float[Array, "N D"]:
        return Covariance(self.mean, self.cov)._coloured(noise)

    @property
    def _off_diagonal(self) -> Float[Array, "D D"]:
        """The covariance, with any numbers on its diagonal."""
        return self.base - self.column[:, None] * self.column[None, :]

    def _keep_if_finite(self, moved: "Pending") -> "Pending":
        """Keep the old covariance where dynamics overflow, as `Covariance` does; finite variances bound the rest."""
        sound = jnp.isfinite(jnp.sum(moved.diagonal))
        kept = jax.tree.map(lambda new, old: new if new is old else jnp.where(sound, new, old), moved, self)
        return Pending(if_finite(moved.mean, self.mean), kept.base, kept.diagonal, kept.column)


def _by_resolution(belief: Covariance | Pending, J: Array, B: Array, r: Array, PJ: Array, at_once: bool) -> Conditioned:
    """Condition on all outputs at once, unless the digits cannot hold their forecast; `PJ` is Σ Jᵀ."""
    whitened = matmul(matmul(B, _guarded(matmul(J, PJ))), B.T)
    if r.size == 1 or at_once:
        return belief._at_once(J, B, r, PJ, whitened)
    resolved = trace(whitened) < RESOLVED / float(jnp.finfo(r.dtype).eps)
    return jax.lax.cond(
        resolved, lambda: belief._at_once(J, B, r, PJ, whitened), lambda: one_by_one(belief, matmul(B, J), r)
    )


def _guarded(cov: Array) -> Array:
    """Symmetric, with a diagonal that is at least zero."""
    if cov.shape[0] == 1:
        return jnp.maximum(cov, 0.0)
    cov = _symmetric(cov)
    return jnp.where(_eye(cov), jnp.maximum(cov, 0.0), cov)


def _symmetric(A: Float[Array, "N N"]) -> Float[Array, "N N"]:
    return 0.5 * (A + A.T)


def _scaled(cov: Float[Array, "D D"], k: Array) -> Float[Array, "D D"]:
    """The covariance of k times the parameters, k (D,) or ()."""
    return k.reshape(-1, 1) * cov * k.reshape(1, -1)


def _eye(A: Float[Array, "D D"]) -> Bool[Array, "D D"]:
    at = jnp.arange(len(A))
    return at[:, None] == at[None, :]


def _downdated(A: Float[Array, "D D"], U: Float[Array, "D O"], diagonal: Float[Array, " D"]) -> Float[Array, "D D"]:
    """A - U Uᵀ, with other numbers on its diagonal."""
    return _with_diagonal(A - gram(_computed_once(U)), diagonal)


def _computed_once(A: Array) -> Array:
    """Many variances, or U: XLA would otherwise repeat what they are made of, the trust included, in all D² numbers."""
    return A if len(A) <= SMALL else _kept(A)


@no_inline
def _kept(A: Array) -> Array:
    return A


def _with_diagonal(A: Array, diagonal: Array) -> Array:
    if len(A) <= SMALL:  # by a mask: XLA does not compile a loop whole that scatters
        return jnp.where(_eye(A), diagonal[:, None], A)
    at = jnp.arange(len(A))
    return A.at[at, at].set(diagonal)
