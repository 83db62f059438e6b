"""(A.1) One datum as an ensemble sees it: whitened, under a robust model by the trust of each member.

A robust likelihood reports a `trust` from `whiten` and holds the plain one as `inner`.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from filtax.beliefs import Ensemble
from filtax.factor import factor
from filtax.linalg import matmul
from filtax.models import Model, Predicted, Whitened
from filtax.module import Module

__all__ = ["Look", "look_at", "member_trust", "plain_likelihood"]


class Look(Module):
    """One datum as the members see it: deviations of their predictions, and whiteners and residuals.

    `seen` is the datum at the mean prediction, `of_mean` the same with a trust for each component, `plain` without any.
    """

    Y: Float[Array, "S O"]
    B: Array
    r: Float[Array, "S O"]
    seen: Whitened
    of_mean: Whitened
    plain: Whitened
    count: Float[Array, ""]

    def judge(self, belief: Ensemble, sound: Bool[Array, ""]) -> tuple[Ensemble, Float[Array, ""]]:
        """Let the belief take note of its forecast; return too the variance of the members in units of the noise."""
        conditioning_ratio = jnp.sum(jnp.square(matmul(self.Y, self.plain.whitener.T))) / (len(self.Y) - 1)
        miss = jnp.sum(jnp.square(self.plain.residual))
        some = jnp.maximum(self.count, 1.0)
        return belief.observe(
            miss / some, conditioning_ratio / some, sound & (self.count > 0) & ~jnp.isnan(miss + conditioning_ratio)
        ), conditioning_ratio


def look_at(model: Model, x: Array | None, y: Array, mask: Array | None, at: Predicted) -> Look:
    """Whiten y for the mean prediction, and for each member where it has a trust of its own."""
    likelihood, mean = model.likelihood, jnp.mean(at.eta, axis=0)
    Y = at.eta - mean[None, :]
    seen = plain = likelihood.whiten(mean, x, y, mask)
    count = jnp.asarray(y.size if mask is None else jnp.sum(mask), y.dtype)
    if seen.trust is None:
        r = seen.residual[None, :] - matmul(Y, seen.whitener.T)
        return Look(Y, seen.whitener, r, seen, seen, seen, count)
    plain = plain_likelihood(likelihood).whiten(mean, x, y, mask)
    B, r = member_trust(likelihood, x, y, mask, at.eta, Y)
    one, r_mean = member_trust(likelihood, x, y, mask, mean[None, :], jnp.zeros_like(Y[:1]))
    return Look(Y, B, r, seen, Whitened(one[0], r_mean[0]), plain, count)


def plain_likelihood(likelihood: Any) -> Any:
    """Return the likelihood behind a robust one, or itself.

    >>> from filtax.models import gaussian
    >>> type(plain_likelihood(gaussian(1.0))).__name__
    'GaussianLikelihood'
    """
    return getattr(likelihood, "inner", likelihood)


def member_trust(
    likelihood: Any,
    x: Array | None,
    y: Float[Array, " W"],
    mask: Array | None,
    eta: Float[Array, "S O"],
    Y: Float[Array, "S O"],
) -> tuple[Float[Array, "S O O"], Float[Array, "S O"]]:
    r"""Whitener and whitened residual of each member, with its trust in each component of y.

    A component is judged alone, as if the others were missing: one bad sensor does not cost the good ones. Trust w
    gives it an independent noise more, $R + \mathrm{diag}(R)(1/w^2 - 1)$, so that trust 0 is the same as missing. A
    class label has one component.

    >>> from filtax.models import Whitened
    >>> from filtax.module import Module
    >>> class Half(Module):
    ...     inner: Any
    ...     def whiten(self, *datum):
    ...         return Whitened(jnp.eye(1), jnp.ones(1), None, jnp.asarray(0.5))
    ...     def covariance(self, x, eta):
    ...         return jnp.eye(1)
    >>> member_trust(Half(None), jnp.ones(1), jnp.ones(1), None, jnp.zeros((1, 1)), jnp.zeros((1, 1)))[0].tolist()
    [[[0.5]]]
    """
    O = eta.shape[1]
    observed = jnp.ones(y.shape, bool) if mask is None else mask
    alone = jnp.eye(y.size, dtype=bool) & observed[None, :]

    def trusts(point: Array) -> Array:
        w = jax.vmap(lambda only: likelihood.whiten(point, x, y, only).trust)(alone)
        return jnp.broadcast_to(jnp.where(observed, w, 0.0), (O,))

    W = jax.vmap(trusts)(eta)
    if hasattr(likelihood, "covariance"):
        return jax.vmap(lambda w, point: _noisier(likelihood.covariance(x, point), w, y - point))(W, eta)
    plain = plain_likelihood(likelihood).whiten(jnp.mean(eta, axis=0), x, y, mask)
    return plain.whitener[None] * W[:, None, :], jnp.where(
        W > 0.0, W * (plain.residual[None, :] - Y @ plain.whitener.T), 0.0
    )


def _noisier(R: Array, w: Array, gap: Array) -> tuple[Array, Array]:
    """Root of the noise with less trust, without a division by it: W⁻¹ N W⁻¹ with N = W R W + diag(R)(I - W²)."""
    v = jnp.minimum(w, 1.0)
    N = v[:, None] * R * v[None, :] + jnp.diag(jnp.diagonal(R) * (1.0 - v) * (1.0 + v))
    L = factor(N)
    scaled = jnp.where(w > 0.0, w * jnp.where(w > 0.0, gap, 0.0), 0.0)
    return L.solve(jnp.diag(w)), L.solve(scaled)
