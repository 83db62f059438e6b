"""(A.2) Exact weights DA[inf]: every hypothesis is kept, and the weights are normalised in log space at every step.

Thesis: eq:bone-extra-iii, eq:weighting-marginal-posterior (errata E10).
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from filtax.log_space import normalised
from filtax.protocols import Weighting

__all__ = ["Exact"]


class Exact(Weighting):
    """Bayes' rule over hypotheses, nothing dropped.

    >>> jnp.exp(Exact()(jnp.log(jnp.array([1.0, 3.0])))).round(2).tolist()
    [0.25, 0.75]
    """

    def __call__(self, log_weight: Float[Array, " C"]) -> Float[Array, " C"]:
        """Normalise."""
        if log_weight.size == 1:
            return jnp.zeros_like(log_weight)
        return normalised(log_weight)
