"""One belief of the same family from several: equal mean and covariance (errata E13).

For Gaussians this is the nearest one in the sense of Kullback and Leibler; for Beta and Gamma it keeps two moments.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

__all__ = ["moment_match"]


def moment_match(batch: PyTree, log_weight: Float[Array, " C"]) -> PyTree:
    """Match the moments of a mixture; the weights need not be normalised.

    Args:
        batch: Beliefs of one family, every leaf with a leading axis C.
        log_weight: (C,) log weights; if all are -inf, every belief counts the same.

    >>> from filtax.beliefs import Covariance
    >>> two = jax.vmap(Covariance.start)(jnp.array([[0.0], [2.0]]), jnp.ones((2, 1)))
    >>> moment_match(two, jnp.zeros(2)).cov.tolist()
    [[2.0]]
    """
    log_weight = jnp.where(jnp.any(log_weight > -jnp.inf), log_weight, 0.0)
    return type(batch).moment_match(batch, jax.nn.log_softmax(log_weight))
