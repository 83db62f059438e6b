r"""Gaussian belief held as a square root of its covariance.

$\Sigma = AA^\top$ is positive semidefinite whatever the rounding. Conditioning costs O(D²O). Up to D = `FULL` it is a
reduction of an array, the most accurate form known: with $V = BJA$, an orthogonal matrix Q from the right takes

$$\begin{pmatrix} I & V \\ 0 & A \end{pmatrix} Q = \begin{pmatrix} L & 0 \\ U & A' \end{pmatrix},
\qquad LL^\top = I + VV^\top, \quad U = AV^\top L^{-\top}, \quad A'A'^\top = AA^\top - UU^\top,$$

and no product is formed that would square a condition number. Any root will do, so a reflection for each output is
enough: those that would make A' triangular as well are omitted. Beyond `FULL` it is a downdate by thin products. Noise
costs O(D³).

Axes: D parameters, O outputs. Thesis: prop:kf-equations (errata E3); the array form after Kaminski (1971), the downdate
after Andrews (1968), a single number after Carlson (1973).
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from filtax import _validation as checks
from filtax import linalg
from filtax._xla import no_inline
from filtax.beliefs._gaussian import RESOLVED, Conditioned, Gaussian, if_finite, one_by_one, shares
from filtax.linalg import log_det, matmul, psd_root, solve_lower, solve_upper, triangular_root
from filtax.numerics import safe_sqrt

FEW = 4  # up to this D a single number is taken in by so many rotations
FULL = 32  # up to this D the array is reduced
FEW_OUTPUTS, SMALL = 8, 128  # outputs, and numbers of V, up to which unrolled reflections beat a library's QR


class SquareRoot(Gaussian):
    """N(mean, root rootᵀ); `root` is any D x D square root.

    `mean_residual` is what the last digit of the mean could not hold (compensated summation). The mean of a static
    belief comes to rest, and from then on each datum moves it by less than the rounding of the one before: in float32
    the sum of 10^5 roundings is a third of a standard deviation. Kept and added to the next step, they cancel. None in
    float64, and where the parameters move.

    >>> SquareRoot.start(jnp.zeros(2), jnp.full(2, 4.0)).root.tolist()
    [[2.0, 0.0], [0.0, 2.0]]
    """

    root: Float[Array, "D D"]
    mean_residual: Float[Array, " D"] | None = None

    @classmethod
    def start(cls, mean: Array, cov: Array) -> "SquareRoot":
        """Build from a mean and a covariance given as variances (D,) or in full (D, D)."""
        if cov.ndim == 2 and not checks.is_concrete(cov):  # an eigenvector has no gradient where two values meet
            return cls(mean, psd_root(cov))
        return cls(mean, root_of(cov))

    def compensated(self) -> "SquareRoot":
        """The same belief, which from now on keeps what its mean is rounded by.

        >>> SquareRoot.start(jnp.zeros(2), jnp.ones(2)).compensated().mean_residual.tolist()
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

    def project_cov(self, J: Float[Array, "O D"]) -> Float[Array, "O O"]:
        """Covariance J Σ Jᵀ that the belief gives to J theta."""
        V = self.project_root(J)
        return matmul(V, V.T)

    def project_root(self, J: Float[Array, "O D"]) -> Float[Array, "O D"]:
        """A root of `project_cov`, with the digits that the covariance itself has lost."""
        return matmul(J, self.root)

    def condition(self, J: Float[Array, "O D"], B: Float[Array, "O O"], r: Float[Array, " O"]) -> Conditioned:
        r"""Condition on r = B J (theta - mean) + e with e ~ N(0, I).

        With $V = BJ\Sigma^{1/2}$ and $I + VV^\top = LL^\top$,
        $\mu' = \mu + \Sigma^{1/2} V^\top L^{-\top} L^{-1} r$. B = 0 and r = 0 leave the belief as it is, bit for bit.
        """
        V = matmul(B, self.project_root(J))  # in this order the large product is that of `project_cov`
        if r.size == 1 and self.mean.size <= FEW:
            return self._condition_on_one(V[0], r)
        size = jnp.sum(V * V)
        if r.size == 1 or self.mean.size <= FULL:
            return self._at_once(V, r, size)
        resolved = size < RESOLVED / float(jnp.finfo(r.dtype).eps)
        return jax.lax.cond(resolved, lambda: self._at_once(V, r, size), lambda: one_by_one(self, matmul(B, J), r))

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
        return self._after(move, root, z, log_det(L), sound)

    def _condition_on_one(self, v: Array, r: Array) -> Conditioned:
        r"""The same for a single number: a rotation for each parameter reduces the array, and none waits for another.

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
        root = jnp.where(sound, jnp.stack(columns, axis=1), self.root)
        return self._after(along * (g[-1] * z[0]), root, z, -2.0 * jnp.log(g[-1]), sound)

    def _after(self, move: Array, root: Array, z: Array, log_det: Array, sound: Bool[Array, ""]) -> Conditioned:
        """The belief with another root, whose mean has moved where that is finite."""
        moved, lost = two_sum(self.mean, move if self.mean_residual is None else move + self.mean_residual)
        finite = jnp.isfinite(moved)
        mean_residual = None if self.mean_residual is None else jnp.where(finite, lost, self.mean_residual)
        belief = SquareRoot(jnp.where(finite, moved, self.mean), root, mean_residual)
        return Conditioned(belief, z, log_det, sound & jnp.all(finite))

    def add(self, q: Float[Array, ""] | Float[Array, " D"]) -> "SquareRoot":
        """Add independent noise of variance q to every parameter."""
        return self._moved(self.mean, None, jnp.sqrt(q))

    @staticmethod
    def moment_match(batch: "SquareRoot", log_weight: Float[Array, " C"]) -> "SquareRoot":
        """Mean and covariance of a mixture of C beliefs, without forming a covariance."""
        weight = jnp.exp(log_weight)
        mean = matmul(weight[None, :], batch.mean)[0]
        share = safe_sqrt(weight)
        inside = (share[:, None, None] * batch.root).transpose(1, 0, 2).reshape(mean.size, -1)
        between = (share[:, None] * (batch.mean - mean[None])).T
        root = triangular_root(jnp.concatenate([inside, between], axis=1))
        return SquareRoot(mean, root, None if batch.mean_residual is None else jnp.zeros_like(mean))

    def _moved(self, mean: Array, F: Array | None, noise: Array | None) -> "SquareRoot":
        root = self.root
        if F is not None:
            root = F.reshape(-1, 1) * root if F.ndim < 2 else matmul(F, root)
        if noise is not None:
            more = jnp.diag(noise * jnp.ones_like(mean)) if noise.ndim < 2 else noise
            root = triangular_root(jnp.concatenate([root, more], axis=1))
        return self._keep_if_finite(mean, root)

    def _mixed(self, mean: Array, initial: "SquareRoot", keep: Array) -> "SquareRoot":
        k, rest = shares(keep, self.mean)
        both = jnp.concatenate([k[:, None] * self.root, rest[:, None] * initial.root], axis=1)
        return self._keep_if_finite(mean, triangular_root(both))

    def _coloured(self, noise: Float[Array, "N D"]) -> Float[Array, "N D"]:
        return noise @ self.root.T

    def _keep_if_finite(self, mean: Array, root: Array) -> "SquareRoot":
        """Keep the old belief where dynamics overflow.

        The root does not depend on whether the mean is finite, so that vmapped streams of a linear model share it.
        """
        sound = jnp.all(jnp.isfinite(root))
        mean_residual = None if self.mean_residual is None else jnp.where(mean == self.mean, self.mean_residual, 0.0)
        return SquareRoot(if_finite(mean, self.mean), jnp.where(sound, root, self.root), mean_residual)


def root_of(cov: Array) -> Array:
    """Return a square root of variances (D,) or of a semidefinite covariance (D, D)."""
    if cov.ndim < 2:
        if not checks.is_concrete(cov):
            return jnp.diag(jnp.sqrt(cov))
        return checks.placed(np.diag(np.sqrt(np.asarray(cov))))  # rounded alike, and no program is loaded for it
    # in units of the standard deviations: an eigenvalue is only as precise as the largest one
    sd = jnp.sqrt(jnp.maximum(jnp.diagonal(cov), 0.0))
    unit = jnp.where(sd > 0.0, sd, 1.0)
    value, vector = linalg.eigh(cov / (unit[:, None] * unit[None, :]))
    return sd[:, None] * vector * jnp.sqrt(jnp.maximum(value, 0.0))[None, :]


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """The sum as it is rounded, and what was rounded off, exactly (Knuth, 1969)."""
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
    RV = matmul(root, V)
    return L, root - matmul(RV, solve_upper(L, solve_lower(L + eye, V.T))), RV


def reduced(
    root: Float[Array, "D D"], V: Float[Array, "O D"]
) -> tuple[Float[Array, "O O"], Float[Array, "D O"], Float[Array, "D D"]]:
    r"""L, U and A' of the reduction; the diagonal of L is positive. V = 0 leaves the root as it is.

    The row $(1\;v)$ of an output, with zeros between, has the length $n = (1 + v^\top v)^{1/2}$. The reflection that
    takes it to its first number takes each row $(0\;a)$ below to $((1 + n)d\;\;a - dv)$ with $d = a^\top v/(n(1 + n))$,
    up to the sign of the first column. It does not touch the columns of the other outputs. Rounding moves a row along v
    alone: scaled first, v would be rounded in each of its numbers, and what nearly equal outputs differ by with it.
    """
    O = len(V)
    if O > FEW_OUTPUTS or V.size > SMALL:
        return _reduced_whole(root, V)
    rows, columns = jnp.concatenate([V, root]), []
    for k in range(O):
        norm, dot = _reflected(rows)
        columns.append(jnp.concatenate([jnp.zeros(k, V.dtype), norm[None], (1.0 + norm) * dot]))
        rows = _without(rows, dot)
    lower = jnp.stack(columns, axis=1)
    return lower[:O], lower[O:], rows


@no_inline
def _reflected(rows: Array) -> tuple[Array, Array]:
    """Length n of the first row, and how many times each other one is to lose it."""
    v, below = rows[0], rows[1:]
    norm = jnp.sqrt(1.0 + sum((v[j] * v[j] for j in range(1, v.size)), start=v[0] * v[0]))
    gain = 1.0 / (norm * (1.0 + norm))
    return norm, gain * sum((below[:, j] * v[j] for j in range(1, v.size)), start=below[:, 0] * v[0])


@no_inline
def _without(rows: Array, dot: Array) -> Array:
    return rows[1:] - dot[:, None] * rows[:1]


def _reduced_whole(root: Array, V: Array) -> tuple[Array, Array, Array]:
    """The same with a triangular root, unless it would be that of an unchanged belief: that keeps its bits."""
    O = len(V)
    top = jnp.concatenate([jnp.eye(O, dtype=V.dtype), V], axis=1)
    full = triangular_root(jnp.concatenate([top, jnp.pad(root, ((0, 0), (O, 0)))]))
    some = jnp.any(V != 0.0)
    return full[:O, :O], jnp.where(some, full[O:, :O], 0.0), jnp.where(some, full[O:, O:], root)
