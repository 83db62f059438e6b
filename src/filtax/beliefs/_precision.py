r"""Gaussian belief held as its precision (the information form).

Conditioning adds $J^\top B^\top B J$, so certainty never decreases by rounding; every question about variances costs
a Cholesky factor, O(D³). Of use when data are many. A prior that is lost beside a datum (1/ε times vaguer) has no
factor with it, and the datum is refused. Drift passes through the covariance.

Thesis: prop:kf-update-step-precision (errata E4).
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from filtax.beliefs._covariance import Covariance
from filtax.beliefs._gaussian import Conditioned, Gaussian
from filtax.linalg import cholesky, log_det, matmul, solve_lower, solve_upper, triangular_root


class Precision(Gaussian):
    """N(mean, precision⁻¹); the precision must be positive definite.

    >>> Precision.start(jnp.zeros(2), jnp.full(2, 4.0)).precision.tolist()
    [[0.25, 0.0], [0.0, 0.25]]
    """

    precision: Float[Array, "D D"]

    @classmethod
    def start(cls, mean: Array, cov: Array) -> "Precision":
        """Build from a mean and a covariance given as variances (D,) or in full (D, D)."""
        return cls(mean, jnp.diag(1.0 / cov) if cov.ndim < 2 else _inverse(cov))

    @property
    def cov(self) -> Float[Array, "D D"]:
        """The covariance, formed on request."""
        return _inverse(self.precision)

    @property
    def var(self) -> Float[Array, " D"]:
        """The variances."""
        return jnp.diagonal(self.cov)

    def project_cov(self, J: Float[Array, "O D"]) -> Float[Array, "O O"]:
        """Covariance J Σ Jᵀ that the belief gives to J theta."""
        V = solve_lower(_factor(self.precision), J.T)
        return matmul(V.T, V)

    def condition(self, J: Float[Array, "O D"], B: Float[Array, "O O"], r: Float[Array, " O"]) -> Conditioned:
        """Condition on r = B J (theta - mean) + e with e ~ N(0, I): add GᵀG, solve for the mean, G = B J."""
        G = matmul(B, J)
        wanted = self.precision + matmul(G.T, G)
        root = cholesky(wanted)
        moved = self.mean + solve_upper(root, solve_lower(root, matmul(G.T, r[:, None])[:, 0]))
        V = solve_lower(_factor(self.precision), G.T)
        L = triangular_root(jnp.concatenate([jnp.eye(r.size, dtype=r.dtype), V.T], axis=1))
        # a pivot of zero is a variance that no number holds
        sound = jnp.all(jnp.isfinite(moved)) & jnp.all(jnp.isfinite(1.0 / jnp.diagonal(root) ** 2))
        sound &= jnp.all(jnp.isfinite(wanted)) & jnp.all(jnp.isfinite(L))
        taken = sound & jnp.any(G != 0.0)
        new = Precision(jnp.where(taken, moved, self.mean), jnp.where(taken, wanted, self.precision))
        return Conditioned(new, solve_lower(L, r), log_det(L), sound)

    def add(self, q: Float[Array, ""] | Float[Array, " D"]) -> "Precision":
        """Add independent noise of variance q to every parameter."""
        return self._through(self._covariance.add(q))

    @staticmethod
    def moment_match(batch: "Precision", log_weight: Float[Array, " C"]) -> "Precision":
        """Mean and covariance of a mixture of C beliefs."""
        matched = Covariance.moment_match(jax.vmap(lambda belief: belief._covariance)(batch), log_weight)
        return Precision(matched.mean, _inverse(matched.cov))

    def _moved(self, mean: Array, F: Array | None, noise: Array | None) -> "Precision":
        return self._through(self._covariance._moved(mean, F, noise))

    def _mixed(self, mean: Array, initial: "Precision", keep: Array) -> "Precision":
        return self._through(self._covariance._mixed(mean, initial._covariance, keep))

    def _coloured(self, noise: Float[Array, "N D"]) -> Float[Array, "N D"]:
        return solve_upper(_factor(self.precision), noise.T).T

    @property
    def _covariance(self) -> Covariance:
        return Covariance(self.mean, self.cov)

    def _through(self, moved: Covariance) -> "Precision":
        """Return to the precision; where that cannot be done in finite numbers the old belief stays."""
        precision = _inverse(moved.cov)
        sound = jnp.all(jnp.isfinite(precision))
        return Precision(jnp.where(sound, moved.mean, self.mean), jnp.where(sound, precision, self.precision))


def _factor(A: Array) -> Array:
    """Cholesky factor; where rounding made A indefinite, of one with diagonals larger by a few roundings."""
    root, few = cholesky(A), 4.0 * len(A) * jnp.finfo(A.dtype).eps
    sound = jnp.all(jnp.isfinite(root)) & jnp.all(jnp.isfinite(1.0 / jnp.diagonal(root) ** 2))
    return jnp.where(sound, root, cholesky(A + few * jnp.diag(jnp.diagonal(A))))


def _inverse(A: Array) -> Array:
    half = solve_lower(_factor(A), jnp.eye(A.shape[0], dtype=A.dtype))
    return matmul(half.T, half)
