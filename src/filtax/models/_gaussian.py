"""(M.1) Gaussian noise around the prediction: constant, per output, full, or a function of x.

A singular covariance is refused.
Thesis: prop:kf-equations, eq:weighted-gaussian-loglikelihood with trust 1.
"""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from filtax import _validation as checks
from filtax.distributions import Normal
from filtax.linalg import factor, log_normal, matmul
from filtax.models import Likelihood, Whitened
from filtax.protocols import static


class GaussianLikelihood(Likelihood):
    """y = eta + e, e ~ N(0, R); R as a variance (), variances (O,) or a matrix (O, O), or a function of x."""

    noise: Any
    function: Callable | None = static(default=None)

    has_covariance = True

    def _noise(self, x: Array | None, eta: Array) -> Array:
        R = self.noise if self.function is None else checks.returned("noise=...: the function", self.function(x))
        R = jnp.asarray(R).astype(eta.dtype)
        if R.ndim and R.shape[0] not in (1, eta.size):
            raise ValueError(
                f"noise of shape {R.shape} does not fit {eta.size} outputs; give a variance, ({eta.size},) or "
                f"({eta.size}, {eta.size})."
            )
        return R if R.ndim == 2 and R.shape[0] == eta.size else jnp.broadcast_to(R.reshape(-1), eta.shape)

    def covariance(self, x: Array | None, eta: Array) -> Float[Array, "O O"]:
        """The noise covariance R at x."""
        R = self._noise(x, eta)
        return R if R.ndim == 2 else jnp.diag(R)

    def whiten(self, eta: Array, x: Array | None, y: Array, mask: Array | None) -> Whitened:
        """B = R^{-1/2}; rows and columns of missing outputs leave R before the root is taken."""
        R = self._noise(x, eta)
        gap = y - eta if mask is None else jnp.where(mask, y - eta, 0.0)
        if R.ndim == 1:
            scale = 1.0 / jnp.sqrt(R)
            log_scale = jnp.sum(jnp.log(scale) if mask is None else jnp.where(mask, jnp.log(scale), 0.0))
            scale = scale if mask is None else jnp.where(mask, scale, 0.0)
            return Whitened(jnp.diag(scale), scale * gap, log_scale)
        eye = jnp.asarray(np.eye(eta.size), eta.dtype)
        L = factor(R if mask is None else jnp.where(mask[:, None] & mask[None, :], R, eye))
        B = L.solve(eye if mask is None else jnp.where(mask[:, None], eye, 0.0))
        return Whitened(B, matmul(B, gap[:, None])[:, 0], -0.5 * L.log_det)

    def predictive(self, eta: Array, spread: Array, x: Array | None, scalar: bool) -> Normal:
        """N(eta, spread + R)."""
        return Normal(eta, spread + self.covariance(x, eta), scalar)

    def log_likelihood(self, eta: Array, x: Array | None, y: Array, mask: Array | None) -> Array:
        """Log density of y under N(eta, R)."""
        whitened = self.whiten(eta, x, y, mask)
        count = jnp.asarray(y.size if mask is None else jnp.sum(mask), eta.dtype)
        return log_normal(whitened.residual, -2.0 * jnp.asarray(whitened.log_scale), count)


def gaussian(noise: Any) -> GaussianLikelihood:
    """Gaussian noise of a given covariance around the prediction.

    Args:
        noise: Variance, (O,) variances, (O, O) covariance, or a function of x that returns one of these.

    >>> gaussian(0.25).predictive(jnp.zeros(1), jnp.eye(1), None, scalar=True).var.item()
    1.25
    """
    if callable(noise):
        return GaussianLikelihood(None, noise)
    hint = "A noiseless or perfectly correlated observation has no density: give each output some noise of its own."
    checks.covariance_like("noise=...", noise, singular=False, hint=hint)
    return GaussianLikelihood(noise if isinstance(noise, float) else checks.floats(noise))


def resolve(call: str, noise: Any, likelihood: Any) -> Any:
    """The likelihood that `noise` or `likelihood` stands for."""
    if (noise is None) == (likelihood is None):
        given = "neither" if noise is None else "both"
        raise ValueError(
            f"{call}: give noise=... or likelihood=..., got {given}; noise=0.1 is short for gaussian(0.1)."
        )
    if likelihood is None:
        return gaussian(noise)
    if isinstance(likelihood, type):
        given = likelihood.__name__
        raise ValueError(f"{call}(likelihood=...) must be an instance, got the class {given}; give {given}().")
    if not isinstance(likelihood, Likelihood):
        raise ValueError(
            f"{call}(likelihood=...) must be a likelihood, such as filtax.models.bernoulli(), got {likelihood!r:.40}; "
            "a family of your own inherits from filtax.models.Likelihood."
        )
    return likelihood
