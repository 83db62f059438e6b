r"""Gaussian belief held as a square root of its covariance.

$\Sigma = \text{root}\,\text{root}^\top$ is positive semidefinite whatever the rounding. Conditioning costs O(D²O), up
to D = `FULL` by a reduction of the array (`reduction`), the most accurate form known, and beyond by a downdate. Any
drift that adds noise costs O(D³).

Thesis: prop:kf-equations (errata E3); the array form after Kaminski (1971), the downdate after Andrews (1968).
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from filtax import checks, lapack
from filtax.beliefs.conditioned import RESOLVED, Conditioned, one_by_one
from filtax.beliefs.dense import narrowed, reached
from filtax.beliefs.reduction import reduced
from filtax.linalg import log_det, matmul, psd_root, solve_lower, solve_upper, triangular_root
from filtax.protocols import Belief
from filtax.safe import safe_sqrt

__all__ = ["SquareRoot", "root_of", "two_sum"]

FEW = 4  # up to this D a single number is taken in by so many rotations
FULL = 32  # up to this D the array is reduced


class SquareRoot(Belief):
    """N(mean, root rootᵀ); `root` is any D x D square root.

    `tail` is what the last digit of the mean could not hold. A static belief settles, and from then on each datum moves
    its mean by less than the rounding of the one before: in float32 the sum of 10^5 roundings is a third of a standard
    deviation. Kept and added to the next step, they cancel. None where the mean is long enough or moves on its own.

    >>> SquareRoot.start(jnp.zeros(2), jnp.full(2, 4.0)).root.tolist()
    [[2.0, 0.0], [0.0, 2.0]]
    """

    mean: Float[Array, " D"]
    root: Float[Array, "D D"]
    tail: Float[Array, " D"] | None = None

    @classmethod
    def start(cls, mean: Array, cov: Array) -> "SquareRoot":
        """Build from a mean and a covariance given as variances (D,) or in full (D, D)."""
        if cov.ndim == 2 and not checks.is_concrete(cov):  # an eigenvector has no gradient where two values meet
            return cls(mean, psd_root(cov))
        return cls(mean, root_of(cov))

    def settling(self) -> "SquareRoot":
        """The same belief, which from now on keeps what its mean is rounded by.

        >>> SquareRoot.start(jnp.zeros(2), jnp.ones(2)).settling().tail.tolist()
        [0.0, 0.0]
        """
        return SquareRoot(self.mean, self.root, jnp.zeros_like(self.mean))

    @property
    def cov(self) -> Float[Array, "D D"]:
        """The covariance, formed on request."""
        return matmul(self.root, self.root.T)

    @property
    def var(self) -> Float[Array, " D"]:
        """The variances."""
        return jnp.sum(self.root * self.root, axis=1)

    def spread(self, J: Float[Array, "O D"]) -> Float[Array, "O O"]:
        """Covariance J Σ Jᵀ that the belief gives to J theta."""
        V = self.reach(J)
        return matmul(V, V.T)

    def reach(self, J: Float[Array, "O D"]) -> Float[Array, "O D"]:
        """A root of the spread, with the digits that the spread itself has lost."""
        return reached(self.root, J)

    def condition(self, J: Float[Array, "O D"], B: Float[Array, "O O"], r: Float[Array, " O"]) -> Conditioned:
        r"""Condition on r = B J (theta - mean) + e with e ~ N(0, I).

        With $V = BJ\Sigma^{1/2}$ and $I + VV^\top = LL^\top$,
        $\mu' = \mu + \Sigma^{1/2} V^\top L^{-\top} L^{-1} r$. B = 0 and r = 0 leave the belief as it is, bit for bit.
        """
        V = matmul(B, self.reach(J))  # in this order the large product is the one that `spread` makes too
        if r.size == 1 and self.mean.size <= FEW:
            return self._condition_on_one(V[0], r)
        size = jnp.sum(V * V)
        if r.size == 1 or self.mean.size <= FULL:
            return self._at_once(V, r, size)
        held = size < RESOLVED / float(jnp.finfo(r.dtype).eps)
        return jax.lax.cond(held, lambda: self._at_once(V, r, size), lambda: one_by_one(self, matmul(B, J), r))

    def _at_once(self, V: Array, r: Array, size: Array) -> Conditioned:
        sound = size < float(jnp.finfo(V.dtype).max) / 4.0  # finite is then every number of the reduction
        V = jnp.where(sound, V, 0.0)
        if self.mean.size <= FULL:
            # U = Σ^½ Vᵀ L⁻ᵀ comes out of the reduction: made of its parts it would be the small rest of large sums.
            L, U, root = reduced(self.root, V)
            z = solve_lower(L, r)
            move = matmul(U, z[:, None])[:, 0]
        else:
            L, root, RV = _downdate(self.root, V.T, jnp.where(sound, size, 0.0))
            z = solve_lower(L, r)
            move = matmul(RV, solve_upper(L, z)[:, None])[:, 0]
        moved, lost = two_sum(self.mean, move if self.tail is None else move + self.tail)
        finite = jnp.isfinite(moved)
        mean = jnp.where(finite, moved, self.mean)
        tail = None if self.tail is None else jnp.where(finite, lost, self.tail)
        return Conditioned(SquareRoot(mean, root, tail), z, log_det(L), sound & jnp.all(finite))

    def _condition_on_one(self, v: Array, r: Array) -> Conditioned:
        r"""The same for a single number: the array is reduced by a rotation for each parameter, and none is waited for.

        With $s_j = 1 + v_1^2 + \dots + v_j^2$, and $b_j = \rho_1v_1 + \dots + \rho_jv_j$ of the root's columns $\rho$,
        $\rho_j' = (s_{j-1}/s_j)^{1/2}\rho_j - (s_{j-1}s_j)^{-1/2}v_j\,b_{j-1}$ (Carlson, 1973).
        """
        D = self.mean.size
        sums = [jnp.ones((), v.dtype)]
        for j in range(D):
            sums.append(sums[-1] + v[j] * v[j])
        g = jax.lax.rsqrt(jnp.stack(sums[1:]))
        sound = g[-1] > 0.0
        v = jnp.where(sound, v, 0.0)
        along, columns = jnp.zeros_like(self.mean), []
        for j in range(D):
            column = self.root[:, j]
            before = g[j - 1] if j else 1.0
            columns.append(g[j] * (before * sums[j] * column - before * v[j] * along))
            along = along + column * v[j]
        z = g[-1] * r
        moved, lost = two_sum(self.mean, along * (g[-1] * z[0]) + (0.0 if self.tail is None else self.tail))
        finite = jnp.isfinite(moved)
        mean = jnp.where(finite, moved, self.mean)
        tail = None if self.tail is None else jnp.where(finite, lost, self.tail)
        root = jnp.where(sound, jnp.stack(columns, axis=1), self.root)
        return Conditioned(SquareRoot(mean, root, tail), z, -2.0 * jnp.log(g[-1]), sound & jnp.all(finite))

    def add(self, q: Float[Array, ""] | Float[Array, " D"]) -> "SquareRoot":
        """Add independent noise of variance q to every parameter."""
        return self._widen(self.mean, self.root, jnp.diag(jnp.sqrt(q) * jnp.ones_like(self.mean)))

    def affine(self, F: Array | None, b: Array | None, noise: Array | None) -> "SquareRoot":
        """Push through theta -> F theta + b + e, e ~ N(0, noise noiseᵀ); F (D, D) or (D,), noise (D, D) or (D,)."""
        mean, root = self.mean, self.root
        if F is not None:
            mean = F * mean if F.ndim < 2 else matmul(F, mean[:, None])[:, 0]
            root = F.reshape(-1, 1) * root if F.ndim < 2 else matmul(F, root)
        if b is not None:
            mean = mean + b
        if noise is None:
            return self._keep_if_sound(mean, root)
        return self._widen(mean, root, jnp.diag(noise * jnp.ones_like(mean)) if noise.ndim < 2 else noise)

    def mix(self, initial: "SquareRoot", keep: Float[Array, ""] | Float[Array, " D"]) -> "SquareRoot":
        r"""Move towards `initial`, keeping the share k of each parameter.

        Mean $k\mu + (1-k)\mu_0$, covariance $k\Sigma k + (1-k^2)^{1/2}\Sigma_0(1-k^2)^{1/2}$.
        """
        k = keep * jnp.ones_like(self.mean)
        mean = k * self.mean + (1.0 - k) * initial.mean
        rest = jnp.sqrt((1.0 - k) * (1.0 + k))
        return self._widen(mean, k[:, None] * self.root, rest[:, None] * initial.root)

    def inflate(self, factor: Float[Array, ""]) -> "SquareRoot":
        """Multiply the covariance by a factor; the mean stays."""
        return self._keep_if_sound(self.mean, jnp.sqrt(factor) * self.root)

    @staticmethod
    def moment_match(batch: "SquareRoot", log_weight: Float[Array, " C"]) -> "SquareRoot":
        """Mean and covariance of a mixture of C beliefs, without forming a covariance."""
        weight = jnp.exp(log_weight)
        mean = matmul(weight[None, :], batch.mean)[0]
        share = safe_sqrt(weight)
        inside = (share[:, None, None] * batch.root).transpose(1, 0, 2).reshape(mean.size, -1)
        between = (share[:, None] * (batch.mean - mean[None])).T
        root = triangular_root(jnp.concatenate([inside, between], axis=1))
        return SquareRoot(mean, root, None if batch.tail is None else jnp.zeros_like(mean))

    def sample(self, key: Key[Array, ""], shape: tuple[int, ...] = ()) -> Float[Array, "*shape D"]:
        """Draw parameters."""
        checks.key("sample(key=...)", key)
        noise = jax.random.normal(key, (*shape, self.mean.size), self.mean.dtype)
        return self.mean.reshape((1,) * len(shape) + (-1,)) + noise @ self.root.T

    def _widen(self, mean: Array, root: Array, noise: Array) -> "SquareRoot":
        return self._keep_if_sound(mean, triangular_root(jnp.concatenate([root, noise], axis=1)))

    def _keep_if_sound(self, mean: Array, root: Array) -> "SquareRoot":
        """A drift that overflows is not taken.

        The root is not asked about the mean: vmapped streams of a linear model then go on sharing it.
        """
        sound = jnp.all(jnp.isfinite(root))
        tail = None if self.tail is None else jnp.where(mean == self.mean, self.tail, 0.0)
        return SquareRoot(jnp.where(jnp.isfinite(mean), mean, self.mean), jnp.where(sound, root, self.root), tail)


def root_of(cov: Array) -> Array:
    """Return a square root of variances (D,) or of a semidefinite covariance (D, D).

    >>> root_of(jnp.array([4.0, 9.0])).tolist()
    [[2.0, 0.0], [0.0, 3.0]]
    """
    if cov.ndim < 2:
        if not checks.is_concrete(cov):
            return jnp.diag(jnp.sqrt(cov))
        return checks.placed(np.diag(np.sqrt(np.asarray(cov))))  # rounded alike, and no program is loaded for it
    # in units of the standard deviations: an eigenvalue is only as precise as the largest one
    sd = jnp.sqrt(jnp.maximum(jnp.diagonal(cov), 0.0))
    unit = jnp.where(sd > 0.0, sd, 1.0)
    value, vector = lapack.eigh(cov / (unit[:, None] * unit[None, :]))
    return sd[:, None] * vector * jnp.sqrt(jnp.maximum(value, 0.0))[None, :]


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """The sum as it is rounded, and what was rounded off, exactly (Knuth, 1969).

    >>> [part.item() for part in two_sum(jnp.float32(1.0), jnp.float32(2**-30))]
    [1.0, 9.313225746154785e-10]
    """
    total = a + b
    taken = total - a
    return total, (a - (total - taken)) + (b - taken)


def _downdate(root: Array, V: Array, size: Array) -> tuple[Array, Array, Array]:
    r"""L, root (I - V L^{-T} (L + I)^{-1} Vᵀ), and root V: thin products instead of a D³ reduction.

    `size` is the sum of the squares of V, which for a single output is all that L needs.
    """
    eye = jnp.eye(V.shape[1], dtype=V.dtype)
    if V.shape[1] == 1:
        L = jnp.sqrt(1.0 + size).reshape(1, 1)
    else:
        L = triangular_root(jnp.concatenate([eye, V.T], axis=1))
    return L, *narrowed(root, V.T, solve_upper(L, solve_lower(L + eye, V.T)))
