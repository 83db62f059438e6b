"""What conditioning returns: the new belief, and how the old one had foreseen the datum."""

from jaxtyping import Array, Bool, Float, PyTree

from filtax.module import Module

__all__ = ["Conditioned"]


class Conditioned(Module):
    r"""A belief conditioned on r = B J (theta - mean) + e, e ~ N(0, I).

    With $S = I + BJ\Sigma J^\top B^\top = LL^\top$: `innovation` is $L^{-1}r$ and `log_det` is $\log|S|$, from the
    factor that the update itself used. They give the evidence where the covariance of the forecast, formed as a sum,
    would be singular to rounding.

    >>> import jax.numpy as jnp
    >>> from filtax.beliefs import SquareRoot
    >>> prior = SquareRoot.start(jnp.zeros(1), jnp.full(1, 3.0))
    >>> round(prior.condition(jnp.eye(1), jnp.eye(1), jnp.ones(1)).innovation.item(), 3)
    0.5
    """

    belief: PyTree
    innovation: Float[Array, " O"]
    log_det: Float[Array, ""]
    ok: Bool[Array, ""]
