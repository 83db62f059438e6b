r"""(A.2) A beam whose places are not all taken by twins: DA[K] for hypotheses that split in two.

The two futures of one history differ in a single datum. Of the K places two thirds go to the best; the others go to
those that are better than their twin, and so to as many histories as possible. The thesis mentions that Li et al. prune
in a way of their own without printing it: this is our statement of a beam that keeps its histories apart.

Thesis: sec:choice-weighting-function, low-memory variants (Li 2021).
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from filtax import checks
from filtax.log_space import normalised
from filtax.protocols import Weighting

__all__ = ["Diverse", "diverse"]


class Diverse(Weighting):
    """The best two thirds, then the better of each pair of twins, slot i and slot i + C/2.

    >>> jnp.exp(diverse(3)(jnp.log(jnp.array([0.4, 0.1, 0.05, 0.3, 0.08, 0.07])))).round(3).tolist()
    [0.5, 0.125, 0.0, 0.375, 0.0, 0.0]
    """

    keep: int = eqx.field(static=True)
    pairs = True

    def __call__(self, log_weight: Float[Array, " C"]) -> Float[Array, " C"]:
        """Kill all but K, normalise."""
        C, K = log_weight.size, self.keep
        twin = jnp.roll(log_weight, C // 2)
        first = jnp.arange(C) < C // 2
        better = (log_weight > twin) | ((log_weight == twin) & first)
        rank = jnp.zeros(C, jnp.int32).at[jnp.argsort(-log_weight, stable=True)].set(jnp.arange(C, dtype=jnp.int32))
        sure = rank < K - K // 3
        place = jnp.where(sure, 0, jnp.where(better, C, 2 * C)) + rank
        chosen = jax.lax.top_k(-place, min(K, C))[1]
        kept = jnp.full_like(log_weight, -jnp.inf).at[chosen].set(log_weight[chosen])
        return normalised(kept)


def diverse(keep: Any) -> Diverse:
    """Keep `keep` hypotheses, a third of them chosen so that histories stay apart; for CPL and CPT.

    >>> diverse(6).keep
    6
    """
    checks.whole("diverse(keep=...)", keep, least=1, hint="It is the number of hypotheses kept.")
    return Diverse(keep)
