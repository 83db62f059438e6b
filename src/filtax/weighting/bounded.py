"""(A.2) Bounded weights DA[K]: of all hypotheses the K most probable survive; DA[1] is the greedy choice.

Thesis: sec:choice-weighting-function, low-memory variants.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from filtax import checks
from filtax.linalg import argleast
from filtax.log_space import normalised
from filtax.protocols import Weighting

__all__ = ["Bounded", "bounded"]


class Bounded(Weighting):
    """Keep the best K, forget the rest, normalise.

    >>> jnp.exp(bounded(2)(jnp.log(jnp.array([0.2, 0.5, 0.3])))).round(3).tolist()
    [0.0, 0.625, 0.375]
    """

    keep: int = eqx.field(static=True)

    def __call__(self, log_weight: Float[Array, " C"]) -> Float[Array, " C"]:
        """Kill all but the best, the earlier of two equals first."""
        C = log_weight.size
        if self.keep == 1:
            return jnp.where(jnp.arange(C, dtype=jnp.int32) == argleast(-log_weight), 0.0, -jnp.inf).astype(
                log_weight.dtype
            )
        if self.keep == C - 1:  # one newborn a tick: only the worst goes, and no sort is needed
            log_weight = jnp.where(jnp.arange(C, dtype=jnp.int32) == argleast(log_weight), -jnp.inf, log_weight)
        elif self.keep < C:
            best = jax.lax.top_k(log_weight, self.keep)[1]
            log_weight = jnp.full_like(log_weight, -jnp.inf).at[best].set(log_weight[best])
        return normalised(log_weight)


def bounded(keep: Any) -> Bounded:
    """Keep the `keep` most probable hypotheses at each tick.

    >>> bounded(1).keep
    1
    """
    checks.whole("DA[K]", keep, least=1, hint="It is the number of hypotheses kept.")
    return Bounded(keep)
