r"""Gaussian belief without correlations: a mean and a variance for each parameter, O(D) memory.

Conditioning finds the mean as the full filter would from this prior, by one O x O solve, and keeps the diagonal of
the posterior precision: of all independent Gaussians the nearest to the posterior in $\mathrm{KL}(q \,\|\, p)$. Its
variances are never above the true ones, so it grows overconfident where features are correlated. `decoupled` keeps the
diagonal of the posterior covariance instead, the nearest in $\mathrm{KL}(p \,\|\, q)$: each parameter is then a scalar
filter that sees the others as noise. In the literature these are the VD-EKF and the FD-EKF.

Axes: D parameters, O outputs. Cost: O(D O²) for a datum, O(D) for dynamics.
Thesis: prop:kf-update-step-precision, its diagonal; sec:variational-bayes.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from filtax.beliefs._gaussian import Conditioned, Gaussian, if_finite, refuse_matrices
from filtax.linalg import factor, matmul, trace
from filtax.protocols import static


class Diagonal(Gaussian):
    """N(mean, diag(var)).

    >>> Diagonal.start(jnp.zeros(2), jnp.array([[4.0, 0.0], [0.0, 1.0]])).var.tolist()
    [4.0, 1.0]
    """

    var: Float[Array, " D"]
    decoupled: bool = static(default=False)

    @classmethod
    def start(cls, mean: Array, cov: Array, decoupled: bool = False) -> "Diagonal":
        """Build from a mean and variances (D,); of a matrix (D, D) the diagonal is taken."""
        return cls(mean, jnp.diagonal(cov) if cov.ndim == 2 else cov, decoupled)

    @property
    def cov(self) -> Float[Array, "D D"]:
        """The covariance, formed on request."""
        return jnp.diag(self.var)

    def project_cov(self, J: Float[Array, "O D"]) -> Float[Array, "O O"]:
        """Covariance J Σ Jᵀ that the belief gives to J theta."""
        return matmul(J * self.var[None, :], J.T)

    def condition(self, J: Float[Array, "O D"], B: Float[Array, "O O"], r: Float[Array, " O"]) -> Conditioned:
        r"""Condition on r = B J (theta - mean) + e with e ~ N(0, I), then drop the correlations.

        With $G = BJ$ and $I + G\Sigma G^\top = LL^\top$: $\mu' = \mu + \Sigma G^\top L^{-\top}L^{-1}r$ and
        $1/\sigma'^2_d = 1/\sigma_d^2 + \sum_o G_{od}^2$; decoupled, $\sigma'^2_d = \sigma_d^2 - \sum_o U_{do}^2$ with
        $U = \Sigma G^\top L^{-\top}$, and never below the former. B = 0 and r = 0 leave the belief as it is.
        """
        G = matmul(B, J)
        whitened = matmul(G * self.var[None, :], G.T)
        finite = jnp.isfinite(trace(whitened))
        whitened, G = jnp.where(finite, whitened, 0.0), jnp.where(finite, G, 0.0)
        L = factor(jnp.eye(r.size, dtype=r.dtype) + whitened)
        sound = finite & L.sound(least=0.5)  # exactly, no pivot is below 1
        G = jnp.where(sound, G, 0.0)
        z = L.solve(r)
        U = L.solve(G * self.var[None, :]).T
        moved = self.mean + matmul(U, z[:, None])[:, 0]
        var = self.var / (1.0 + self.var * jnp.sum(G * G, axis=0))  # finite also where the belief is certain
        if self.decoupled:  # never below the other, but for rounding
            var = jnp.maximum(self.var - jnp.sum(U * U, axis=1), var)
        new = Diagonal(if_finite(moved, self.mean), var, self.decoupled)
        return Conditioned(new, z, L.log_det, sound & jnp.all(jnp.isfinite(moved)))

    def add(self, q: Float[Array, ""] | Float[Array, " D"]) -> "Diagonal":
        """Add independent noise of variance q to every parameter."""
        return self._keep_if_finite(self.mean, self.var + q)

    @staticmethod
    def moment_match(batch: "Diagonal", log_weight: Float[Array, " C"]) -> "Diagonal":
        """Means and variances of a mixture of C beliefs."""
        weight = jnp.exp(log_weight)[:, None]
        mean = jnp.sum(weight * batch.mean, axis=0)
        var = jnp.sum(weight * (batch.var + (batch.mean - mean[None]) ** 2), axis=0)
        return Diagonal(mean, var, batch.decoupled)

    def _moved(self, mean: Array, F: Array | None, noise: Array | None) -> "Diagonal":
        refuse_matrices(F, noise, "a diagonal belief holds no correlations", "use form=root or form=covariance")
        var = self.var if F is None else F * F * self.var
        return self._keep_if_finite(mean, var if noise is None else var + noise * noise)

    def _mixed(self, mean: Array, initial: "Diagonal", keep: Array) -> "Diagonal":
        return self._keep_if_finite(mean, keep * keep * self.var + (1.0 - keep) * (1.0 + keep) * initial.var)

    def _coloured(self, noise: Float[Array, "N D"]) -> Float[Array, "N D"]:
        return jnp.sqrt(self.var)[None, :] * noise

    def _keep_if_finite(self, mean: Array, var: Array) -> "Diagonal":
        """Keep the old belief where dynamics overflow."""
        return Diagonal(if_finite(mean, self.mean), if_finite(var, self.var), self.decoupled)
