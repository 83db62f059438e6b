r"""(A.2) Weights by Bayes' rule, DA[inf]: every hypothesis is kept, and the weights are normalised in log space.

With a fixed share, a part of the weight is spread over all hypotheses at each step, so that none is ever lost:
$\nu_k \leftarrow (1-s)\,\nu_k + s/K$ (Herbster and Warmuth). An expert that was bad for long comes back after about
$\log(K/s)$ nats of better evidence.

Thesis: eq:bone-extra-iii, eq:weighting-marginal-posterior (errata E10); sec:choice-weighting-function, ad-hoc weights
of experts.
"""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from filtax import _validation as checks
from filtax.numerics import normalised
from filtax.protocols import Weighting


class Exact(Weighting):
    """Bayes' rule over hypotheses; none is dropped.

    >>> jnp.exp(Exact()(jnp.log(jnp.array([1.0, 3.0])))).round(2).tolist()
    [0.25, 0.75]
    """

    def __call__(self, log_weight: Float[Array, " C"]) -> Float[Array, " C"]:
        """Normalised log weights."""
        if log_weight.size == 1:
            return jnp.zeros_like(log_weight)
        return normalised(log_weight)


class FixedShare(Weighting):
    """Bayes' rule, after which a share of the weight is spread over all hypotheses.

    >>> jnp.exp(fixed_share(0.5)(jnp.log(jnp.array([1.0, 3.0])))).round(3).tolist()
    [0.375, 0.625]
    """

    share: Any
    revives = True

    def __call__(self, log_weight: Float[Array, " C"]) -> Float[Array, " C"]:
        """Normalised log weights with the share spread."""
        share = jnp.asarray(self.share, log_weight.dtype)
        kept = normalised(log_weight) + jnp.log1p(-share)
        return jnp.logaddexp(kept, jnp.log(share / log_weight.size))


def fixed_share(share: Any = 0.01) -> FixedShare:
    """Spread a share of the weight over all experts at each step; for ME, whose hypotheses are never replaced.

    Args:
        share: In [0, 1]; 0 is exact weights, 1 equal ones.

    >>> fixed_share(0.1).share
    0.1
    """
    checks.share("fixed_share(share=...)", share, hint="It is spread over all experts at each step.")
    return FixedShare(share)
