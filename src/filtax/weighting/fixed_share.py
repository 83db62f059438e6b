r"""(A.2) Exact weights of which a share is spread over all hypotheses at each tick, so that none is ever lost.

$\nu_k \leftarrow (1-s)\,\nu_k + s/K$ (Herbster and Warmuth's fixed share): an expert that was bad for long can come
back within about $\log(K/s)$ nats of better evidence.

Thesis: sec:choice-weighting-function, ad-hoc weights of experts.
"""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from filtax import checks
from filtax.log_space import normalised
from filtax.protocols import Weighting

__all__ = ["FixedShare", "fixed_share"]


class FixedShare(Weighting):
    """Bayes' rule, then a share for everyone.

    >>> jnp.exp(fixed_share(0.5)(jnp.log(jnp.array([1.0, 3.0])))).round(3).tolist()
    [0.375, 0.625]
    """

    share: Any
    revives = True

    def __call__(self, log_weight: Float[Array, " C"]) -> Float[Array, " C"]:
        """Normalise and spread."""
        share = jnp.asarray(self.share, log_weight.dtype)
        kept = normalised(log_weight) + jnp.log1p(-share)
        return jnp.logaddexp(kept, jnp.log(share / log_weight.size))


def fixed_share(share: Any = 0.01) -> FixedShare:
    """Spread a share of the weight over all experts at each tick; for ME, whose hypotheses are never replaced.

    Args:
        share: In [0, 1]; 0 is exact weights, 1 equal ones.

    >>> fixed_share(0.1).share
    0.1
    """
    checks.share("fixed_share(share=...)", share, hint="It is spread over all experts at each tick.")
    return FixedShare(share)
