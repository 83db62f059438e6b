"""(M.3) The prior without resets: every hypothesis goes on, and its parameters drift."""

from typing import Any

from jaxtyping import Array, PyTree

from filtax.protocols import Prior, Proposal, over_hypotheses

__all__ = ["Continue"]


class Continue(Prior):
    """Apply one drift to each hypothesis.

    >>> from filtax.priors import static
    >>> Continue(static()).dynamics.name
    'Static'
    """

    dynamics: Any

    def __call__(self, proposal: Proposal, initial: PyTree, dt: Array | None) -> PyTree:
        """Beliefs before the datum, (C, ...)."""
        hypotheses = proposal.hypotheses
        return over_hypotheses(
            lambda belief, aux: self.dynamics(belief, initial, aux, dt), hypotheses.belief, hypotheses.aux
        )
