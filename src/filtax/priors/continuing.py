"""(M.3) The prior without resets: every hypothesis goes on, and its parameters drift."""

from typing import Any

from jaxtyping import Array, PyTree

from filtax.module import Module
from filtax.protocols import Proposed, each

__all__ = ["Continue"]


class Continue(Module):
    """Apply one drift to each hypothesis.

    >>> from filtax.priors import static
    >>> Continue(static()).drift.name
    'Static'
    """

    drift: Any

    def __call__(self, proposed: Proposed, initial: PyTree, dt: Array | None) -> PyTree:
        """Beliefs before the datum, (C, ...)."""
        bank = proposed.bank
        return each(lambda belief, aux: self.drift(belief, initial, aux, dt), bank.belief, bank.aux)
