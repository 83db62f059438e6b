"""(M.2) A single hypothesis: the constant C, and the changepoint probability CPP.

The value of CPP, the share upsilon of the belief that is kept, is estimated at each datum (errata E15) by the prior
that uses it, and needs no slot.

Thesis: tab:auxv-time-complexity; cardinality 1, and a continuum of which one point is kept.
"""

import math

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PyTree

from filtax import _validation as checks
from filtax.protocols import Auxiliary, Hypotheses, Proposal, static


class Constant(Auxiliary):
    """No auxiliary variable: nothing but theta is unknown.

    >>> Constant().slots
    1
    """

    name: str = static(default="C")

    @property
    def values(self) -> str:
        """The set that psi lies in."""
        return "[0, 1]" if self.name == "CPP" else "{c}"

    def cardinality(self, t: int) -> int | float:
        """Possible values after t data; of a continuum (CPP) one point is kept."""
        return math.inf if self.name == "CPP" else 1

    def start(self, dtype: jnp.dtype) -> tuple[PyTree, Float[Array, " C"]]:
        """No value, full weight."""
        return None, checks.placed(np.zeros(1, dtype))

    def expand(self, hypotheses: Hypotheses, initial: PyTree, dt: Array | None) -> Proposal:
        """The same hypothesis; none is new."""
        is_new: Bool[Array, " C"] = jnp.zeros(1, bool)
        return Proposal(hypotheses, is_new, jnp.full_like(hypotheses.log_weight, -jnp.inf))

    def report(self, hypotheses: Hypotheses, age: Array) -> tuple[None, Array]:
        """No change probability (None), and the age of the stream or of the last known change."""
        return None, age


def change_probability() -> Constant:
    """The changepoint probability CPP: the share of the belief that is kept is estimated at each datum.

    >>> change_probability().name
    'CPP'
    """
    return Constant("CPP")
