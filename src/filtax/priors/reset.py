r"""(M.3) Prior reset: a newborn hypothesis starts from the initial belief (PR) or from what was known before it (MMPR).

MMPR matches the moments of the beliefs that the reset could have come from, each weighted by $\nu(r)H(r)$ before the
datum, and normalised (errata E13): parameters before and after a change are then alike. The hypotheses that go on
drift.

A model that counts time from the beginning of a regime, such as `since_change`, means something else by its parameters
in each: its frame moves with the change. With `frame`, what was believed is expressed in the new frame before its
moments are matched: $\theta \to F(r)\theta$ when r ticks lie between the two origins.

Thesis: eq:cprior-rl-pr, eq:cprior-cpt-mmpr, algo:rl-mmpr-step (errata E12, E13, E19).
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from filtax.beliefs import moment_match
from filtax.priors.continuing import Continue
from filtax.priors.inflation import static
from filtax.protocols import Prior, Proposal, over_hypotheses

__all__ = ["Reset", "moment_matched_reset", "replace_new", "reset"]


class Reset(Prior):
    """Newborns start anew, the others drift.

    >>> reset().name
    'PR'
    """

    dynamics: Any
    matched: bool = eqx.field(static=True, default=False)
    frame: Any = None
    shown = {}  # noqa: RUF012

    @property
    def name(self) -> str:
        """PR, or MMPR with matched moments."""
        return "MMPR" if self.matched else "PR"

    @property
    def needs(self) -> tuple[str, ...]:
        """What it asks of a belief."""
        return () if not self.matched else ("moment_match",) if self.frame is None else ("moment_match", "affine")

    def __call__(self, proposal: Proposal, initial: PyTree, dt: Array | None) -> PyTree:
        """Beliefs before the datum, (C, ...)."""
        start = moment_match(self._moved(proposal), proposal.log_reset) if self.matched else initial
        return replace_new(proposal, Continue(self.dynamics)(proposal, initial, dt), start)

    def _moved(self, proposal: Proposal) -> PyTree:
        """What was believed before the tick, seen from the origin of a regime that begins with it."""
        if self.frame is None:
            return proposal.hypotheses.belief
        if not hasattr(proposal.hypotheses.aux, "runlength"):
            raise ValueError("MMPR(frame=...): the frame moves by the run length; use RL, RLCC, CPT or CPL.")
        move = lambda belief, run: belief.affine(self.frame(run, belief.mean), None, None)  # noqa: E731
        return over_hypotheses(move, proposal.hypotheses.belief, proposal.hypotheses.aux.runlength)


def replace_new(proposal: Proposal, beliefs: PyTree, start: PyTree) -> PyTree:
    """Put one belief into every newborn slot.

    >>> from filtax.protocols import Hypotheses
    >>> proposal = Proposal(Hypotheses(None, None, jnp.zeros(2)), jnp.array([False, True]), jnp.zeros(2))
    >>> replace_new(proposal, jnp.ones((2, 1)), jnp.zeros(1)).tolist()
    [[1.0], [0.0]]
    """
    pick = lambda old, new: jnp.where(proposal.is_new.reshape((-1,) + (1,) * (old.ndim - 1)), new[None], old)  # noqa: E731
    return jax.tree.map(pick, beliefs, start)


def reset(dynamics: Any = None) -> Reset:
    """Start anew from the initial belief at a change (PR).

    Args:
        dynamics: How the parameters move between changes, such as `additive_inflation(0.01)`; not at all if left out.

    >>> import filtax as fx
    >>> fx.method("LG+RL[4]-PR(hazard=0.1)", model=fx.models.linear(noise=1.0)).prior.name
    'PR'
    """
    return Reset(static() if dynamics is None else dynamics)


def moment_matched_reset(dynamics: Any = None, frame: Any = None) -> Reset:
    """Start at a change from one Gaussian with the moments of what was believed before it (MMPR).

    Args:
        dynamics: How the parameters move between changes; not at all if left out.
        frame: For models whose parameters are counted from the beginning of a regime, `polynomial_shift(...)`, or a
            function (r, theta) -> F, (D, D), of the ticks between the old origin and the new one.

    >>> moment_matched_reset().name
    'MMPR'
    """
    if frame is not None and not callable(frame):
        raise ValueError(f"MMPR(frame=...) must be a function of r and theta, got {frame!r:.40}; see polynomial_shift.")
    return Reset(static() if dynamics is None else dynamics, matched=True, frame=frame)
