"""(M.2) The constant auxiliary variable C: one hypothesis, for ever.

Thesis: tab:auxv-time-complexity, first row; cardinality 1.
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

from filtax.module import Module
from filtax.protocols import Bank, Proposed

__all__ = ["Constant"]


class Constant(Module):
    """No auxiliary variable: everything is explained by theta.

    >>> Constant().slots
    1
    """

    slots = 1
    name = "C"
    shown = {}  # noqa: RUF012

    def start(self, dtype: jnp.dtype) -> tuple[PyTree, Float[Array, " C"]]:
        """No value, full weight."""
        return None, jnp.zeros(1, dtype)

    def expand(self, bank: Bank, initial: PyTree, dt: Array | None) -> Proposed:
        """The same hypothesis, never newborn."""
        fresh: Bool[Array, " C"] = jnp.zeros(1, bool)
        return Proposed(bank, fresh, jnp.full_like(bank.log_weight, -jnp.inf))

    def report(self, bank: Bank, t: Array) -> tuple[Array, Array]:
        """No change is ever suspected; the run is as old as the stream."""
        return jnp.zeros((), bank.log_weight.dtype), t
