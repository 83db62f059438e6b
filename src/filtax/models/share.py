r"""(M.1) A datum that counts as a share of one: the likelihood to a power, $p(y \mid \theta, x)^v$.

In the whitened form B and r are multiplied by $\sqrt v$, as by a trust of WoLF: a remembered datum that belongs to the
regime with probability v, or one that several experts share. The power may be traced, which `tempered` is not made for.

Thesis: eq:weighted-loglikelihood; used by the prior CPL-Sub and by the responsibilities of switching models.
"""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from filtax.linalg import matmul, trace
from filtax.models.model import Model
from filtax.models.robust import RobustLikelihood
from filtax.models.trust import Tempered
from filtax.module import Module

__all__ = ["Scaled", "expected_log_likelihood", "temper"]


class Scaled(Module):
    """A trust times a constant.

    >>> from filtax.models import mahalanobis
    >>> Scaled(mahalanobis(2.0), jnp.asarray(0.5))(jnp.zeros(1)).item()
    0.5
    """

    inner: Any
    w: Any

    @property
    def raw(self) -> bool:
        """Whether it looks at the plain residual, as its inner trust does."""
        return getattr(self.inner, "raw", False)

    def __call__(self, r: Float[Array, " O"]) -> Float[Array, ""]:
        """Trust of a residual."""
        return jnp.asarray(self.w, r.dtype) * self.inner(r)


def temper(model: Model, power: Float[Array, ""]) -> Model:
    """Let a datum count as `power` of one, at least 0; of a robust model its trust is kept besides.

    >>> from filtax.models import linear
    >>> half = temper(linear(noise=1.0), jnp.asarray(0.25))
    >>> half.likelihood.whiten(jnp.zeros(1), None, jnp.ones(1), None).residual.item()
    0.5
    """
    w, likelihood = jnp.sqrt(power), model.likelihood
    if not isinstance(likelihood, RobustLikelihood):
        return Model(model.predictor, RobustLikelihood(likelihood, Tempered(w)))
    scaled = RobustLikelihood(likelihood.inner, Scaled(likelihood.trust, w), likelihood.unit, likelihood.learns)
    return Model(model.predictor, scaled)


def expected_log_likelihood(
    model: Model, belief: PyTree, x: Array | None, y: Array, mask: Array | None, aux: PyTree
) -> Float[Array, ""]:
    r"""Mean of $\log p(y \mid \theta, x)$ under a belief: exact for a linear model with Gaussian noise.

    $\log p(y \mid \mu, x) - \tfrac12 \mathrm{tr}(B J P J^\top B^\top)$: the curvature is that of the whitened datum.

    >>> from filtax.beliefs import Covariance
    >>> from filtax.models import linear
    >>> at = Covariance.start(jnp.zeros(1), jnp.ones(1))
    >>> round(expected_log_likelihood(linear(noise=1.0), at, jnp.ones(1), jnp.zeros(1), None, None).item(), 4)
    -1.4189
    """
    likelihood = getattr(model.likelihood, "inner", model.likelihood)
    at = model.linearise(belief.mean, x, aux)
    seen = jnp.ones(y.shape, bool) if mask is None else mask
    B = likelihood.whiten(at.eta, x, y, seen).whitener
    value = likelihood.log_likelihood(at.eta, x, y, seen) - 0.5 * trace(
        matmul(matmul(B, belief.spread(at.jacobian)), B.T)
    )
    return jnp.where(jnp.any(seen), value, 0.0)
