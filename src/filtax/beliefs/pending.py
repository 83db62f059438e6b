r"""Gaussian belief about many parameters, held as a covariance whose last change is still to be made.

A step must read the covariance for the forecast, and read and write it to take $uu^\top$ off. Here the latter waits for
the next forecast, and both are one pass (`dense.caught_up`): one read and one write of D² numbers a step, which is the
least there is. The diagonal is held beside the matrix, so that to add noise costs D numbers and not D rows.

Axes: D parameters, O outputs. Thesis: prop:kf-equations, eq:kf-update-step (errata E3).
"""

from typing import ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from filtax.beliefs.conditioned import RESOLVED, Conditioned, one_by_one
from filtax.beliefs.covariance import Covariance
from filtax.beliefs.cut import cut, guarded
from filtax.beliefs.dense import MANY, applied, caught_up, downdated
from filtax.linalg import matmul, trace
from filtax.protocols import Belief

__all__ = ["LARGE", "Facing", "Pending"]

LARGE = MANY  # parameters up to which `Covariance` serves: there a pass costs less than to call for one


class Pending(Belief):
    r"""N(mean, Σ) with $\Sigma = \text{base} - uu^\top$ off its diagonal, and `diagonal` on it; that of `base` is zero.

    `column` is u: what the last datum, if it had one output, is still to take off.

    >>> Pending.start(jnp.zeros(2), jnp.full(2, 4.0)).cov.tolist()
    [[4.0, 0.0], [0.0, 4.0]]
    """

    squared: ClassVar[bool] = True  # the square of a root: it resolves half as many digits

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
        """The same belief, with nothing to be made up for.

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

    def spread(self, J: Float[Array, "O D"]) -> Float[Array, "O O"]:
        """Covariance J Σ Jᵀ that the belief gives to J theta, with no negative variance."""
        return guarded(matmul(J, self._applied(J)))

    def _applied(self, J: Array) -> Array:
        """Σ Jᵀ, by reading alone."""
        u = self.column[:, None]
        return applied(self.base, J) - u * matmul(J, u).T + (self.diagonal[:, None] + u * u) * J.T

    def prepare(self, J: Float[Array, "O D"]) -> "Pending | Facing":
        """The same belief, on its way to a datum with this Jacobian: what the forecast and the update share is made.

        >>> Pending.start(jnp.zeros(2), jnp.full(2, 4.0)).prepare(jnp.ones((1, 2))).shown.tolist()
        [[4.0], [4.0]]
        """
        if len(J) > 1:
            return self
        base, PJ = caught_up(self.base, self.column, J)
        now = Pending(self.mean, base, self.diagonal, jnp.zeros_like(self.column))
        return Facing(now, J, PJ + self.diagonal[:, None] * J.T)

    def condition(self, J: Float[Array, "O D"], B: Float[Array, "O O"], r: Float[Array, " O"]) -> Conditioned:
        r"""Condition on r = B J (theta - mean) + e with e ~ N(0, I).

        With $I + BJ\Sigma J^\top B^\top = LL^\top$ and $U = \Sigma J^\top B^\top L^{-\top}$: $\mu' = \mu + U L^{-1} r$,
        $\Sigma' = \Sigma - UU^\top$. B = 0 and r = 0 leave the belief as it is. Several outputs are taken off at once,
        with what was pending; where the digits cannot hold L, one after the other.
        """
        if r.size == 1:
            return self.prepare(J).condition(J, B, r)
        PJ = self._applied(J)
        spread = matmul(matmul(B, guarded(matmul(J, PJ))), B.T)
        held = trace(spread) < RESOLVED / float(jnp.finfo(r.dtype).eps)
        return jax.lax.cond(held, lambda: self._at_once(J, B, r, PJ, spread), lambda: one_by_one(self, matmul(B, J), r))

    def _at_once(self, J: Array, B: Array, r: Array, PJ: Array, spread: Array) -> Conditioned:
        var = jnp.maximum(self.diagonal, 0.0)
        done, none = cut(self.mean, var, J, B, r, PJ, spread), jnp.zeros_like(self.column)
        if r.size == 1:  # of a belief on which nothing is pending
            after = Pending(done.mean, self.base, done.left(var), done.U[:, 0])
        else:
            base = downdated(self.base, jnp.concatenate([done.U, self.column[:, None]], axis=1), none)
            after = Pending(done.mean, base, done.left(var), none)
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
        return self._keep_if_sound(Pending(mean, _off_diagonal(off), var, jnp.zeros_like(self.column)))

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
            return self._keep_if_sound(Pending(mean, self.base, self.diagonal, self.column))
        k = k * jnp.ones_like(self.mean)
        base = k[:, None] * self.base * k[None, :]
        return self._keep_if_sound(Pending(mean, base, k * self.diagonal * k, k * self.column))

    def _keep_if_sound(self, moved: "Pending") -> "Pending":
        """A drift that overflows is not taken; finite variances bound the rest.

        The covariance is not asked about the mean: vmapped streams of a linear model then go on sharing it.
        """
        sound = jnp.isfinite(jnp.sum(moved.diagonal))
        kept = jax.tree.map(lambda new, old: new if new is old else jnp.where(sound, new, old), moved, self)
        mean = jnp.where(jnp.isfinite(moved.mean), moved.mean, self.mean)
        return Pending(mean, kept.base, kept.diagonal, kept.column)


class Facing(Belief):
    """A belief on which nothing is pending, and `shown`, its Σ Jᵀ (D, 1), for a datum with the Jacobian J.

    >>> J = jnp.ones((1, 2))
    >>> Pending.start(jnp.zeros(2), jnp.full(2, 4.0)).prepare(J).spread(J).item()
    8.0
    """

    belief: Pending
    J: Float[Array, "1 D"]
    shown: Float[Array, "D 1"]

    @property
    def mean(self) -> Float[Array, " D"]:
        """That of the belief."""
        return self.belief.mean

    def spread(self, J: Float[Array, "O D"]) -> Float[Array, "O O"]:
        """Covariance J Σ Jᵀ; of the very J that it faces, nothing large is read for it."""
        return guarded(matmul(J, self.shown)) if J is self.J else self.belief.spread(J)

    def condition(self, J: Float[Array, "O D"], B: Float[Array, "O O"], r: Float[Array, " O"]) -> Conditioned:
        """As for the belief; for the very J that it faces, from what was shown."""
        if J is not self.J:
            return self.belief.condition(J, B, r)
        spread = matmul(matmul(B, self.spread(J)), B.T)
        return self.belief._at_once(J, B, r, self.shown, spread)


def _off_diagonal(A: Array) -> Array:
    at = jnp.arange(len(A))
    return jnp.where(at[:, None] == at[None, :], 0.0, A)


def _around(k: Array, belief: Pending) -> Array:
    """The covariance of k times the parameters, off its diagonal."""
    u = k * belief.column
    return k[:, None] * belief.base * k[None, :] - u[:, None] * u[None, :]
