"""(A.1) What posteriors with members ask of a robust model: the plain likelihood, and the trust of each member.

A robust likelihood reports a `trust` from `whiten` and holds the plain one as `inner`.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from filtax.factor import factor

__all__ = ["member_trust", "plain_likelihood"]


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

    >>> from filtax.models.model import Whitened
    >>> from filtax.module import Module
    >>> class Half(Module):
    ...     inner: Any
    ...     def whiten(self, *datum):
    ...         return Whitened(*datum[:2], None, jnp.asarray(0.5))
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
