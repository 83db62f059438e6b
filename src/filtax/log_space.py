"""Weights of hypotheses as logarithms."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

__all__ = ["normalised"]


def normalised(log_weight: Float[Array, " C"]) -> Float[Array, " C"]:
    """Log weights that sum to one, of any that are not all -inf.

    The largest is taken away first: beside a large score the log of how many share it would be rounded off.

    >>> jnp.exp(normalised(jnp.full(4, -1e20))).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    from_best = log_weight - jax.lax.stop_gradient(jnp.max(log_weight))
    return from_best - jnp.log(jnp.sum(jnp.exp(from_best)))
