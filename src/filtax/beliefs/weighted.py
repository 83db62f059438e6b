"""What beliefs of weighted points share: their moments, and how many equally weighted points they are worth.

Axes: S points, D parameters.
"""

from abc import abstractmethod

import jax.numpy as jnp
from jax.nn import logsumexp
from jaxtyping import Array, Float

from filtax.linalg import matmul
from filtax.protocols import Belief

__all__ = ["Weighted"]


class Weighted(Belief):
    """Points (S, D) with log weights that sum to one; what else is known of each is the subclass's to say.

    >>> import jax
    >>> from filtax.beliefs import Particles
    >>> cloud = Particles.of(jnp.array([[0.0], [4.0]]), jax.random.key(0))
    >>> isinstance(cloud, Weighted), cloud.mean.tolist(), cloud.effective.item()
    (True, [2.0], 2.0)
    """

    members: Float[Array, "S D"]
    log_weight: Float[Array, " S"]

    @property
    @abstractmethod
    def _rooted(self) -> Float[Array, "N D"]:
        """Rows whose outer products sum to the covariance."""

    @property
    def mean(self) -> Float[Array, " D"]:
        """Weighted mean."""
        return matmul(jnp.exp(self.log_weight)[None, :], self.members)[0]

    @property
    def cov(self) -> Float[Array, "D D"]:
        """Covariance between the points, and that of what was integrated out."""
        V = self._rooted
        return matmul(V.T, V)

    @property
    def var(self) -> Float[Array, " D"]:
        """Variances, of the same two parts."""
        return jnp.sum(self._rooted**2, axis=0)

    def spread(self, J: Float[Array, "O D"]) -> Float[Array, "O O"]:
        """Covariance J Σ Jᵀ of J theta."""
        V = matmul(self._rooted, J.T)
        return matmul(V.T, V)

    @property
    def effective(self) -> Float[Array, ""]:
        """Effective sample size 1 / Σ w²: how many equally weighted particles these are worth."""
        return jnp.exp(-logsumexp(2.0 * self.log_weight))
