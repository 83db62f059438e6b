r"""(A.2) Bounded weights by sampling: who survives is drawn, so that no hypothesis is lost for certain.

K draws in proportion to the weights, systematically (one uniform number for all of them); a hypothesis drawn n times
survives with the weight n/K, which on average is the weight it had. Equal copies need one slot only. DA[K] by the best
K is a biased choice that varies less.

Thesis: sec:choice-weighting-function, low-memory variants (Doucet 2000).
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from filtax import checks
from filtax.protocols import Weighting

__all__ = ["Sampled", "sampled"]


class Sampled(Weighting):
    """Draw the survivors; needs `init(key=...)`.

    >>> jnp.exp(sampled(4)(jnp.log(jnp.array([0.25, 0.75, 0.0])), key=jax.random.key(0))).tolist()
    [0.25, 0.75, 0.0]
    """

    keep: int = eqx.field(static=True)
    needs_key = True
    name = "DA[K] by sampling"

    def __call__(self, log_weight: Float[Array, " C"], key: Key[Array, ""]) -> Float[Array, " C"]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Weights n/K of those that were drawn."""
        total = jnp.cumsum(jax.nn.softmax(log_weight))
        total = total / total[-1]
        marks = (
            jax.random.uniform(key, (), log_weight.dtype) + jnp.arange(self.keep, dtype=log_weight.dtype)
        ) / self.keep
        drawn = jnp.searchsorted(total, marks, side="right").clip(0, log_weight.size - 1)
        count = jnp.zeros_like(log_weight).at[drawn].add(1.0)
        return jnp.log(count / self.keep)


def sampled(keep: Any) -> Sampled:
    """Let `keep` draws decide which hypotheses survive a tick.

    >>> sampled(10).keep
    10
    """
    checks.whole("sampled(keep=...)", keep, least=1, hint="It is the number of draws, and the most that survive.")
    return Sampled(keep)
