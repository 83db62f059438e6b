r"""(M.3) OUPR: relax towards the initial belief, or reset to it, as the datum decides.

One hypothesis goes on and one begins; given the datum the first has probability $\nu$. Above the threshold the belief
keeps the share $\nu$ and takes the rest from the initial one, as in an Ornstein-Uhlenbeck step; below it the belief is
reset (errata E14). The forecast and the evidence are those of the two hypotheses before the datum.

Thesis: eq:SPR-equation-gt, eq:SPR-equation-Gt, eq:rl-oupr-weight, algo:rl-spr-step.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from filtax import _validation as checks
from filtax.priors._dynamics import Continue, static
from filtax.priors._reset import replace_new
from filtax.protocols import Hypotheses, Prior, Proposal, over_hypotheses


class OrnsteinReset(Prior):
    """Mix above the threshold, reset below; for one surviving hypothesis (RL[1]).

    >>> ou_reset(0.5).name
    'OUPR'
    """

    threshold: Any
    dynamics: Any
    name = "OUPR"
    shown = {"threshold": 0.5}  # noqa: RUF012
    needs = ("mix",)
    greedy = True

    def __call__(self, proposal: Proposal, initial: PyTree, dt: Array | None) -> PyTree:
        """Beliefs before the datum, (C, ...)."""
        return replace_new(proposal.is_new, Continue(self.dynamics)(proposal, initial, dt), initial)

    def revise(
        self, proposal: Proposal, beliefs: PyTree, log_score: Array, initial: PyTree, ask: Callable
    ) -> tuple[Proposal, PyTree]:
        """Mix or reset, by the probability that the regime goes on given the datum."""
        scored = proposal.hypotheses.log_weight + log_score
        scored = jnp.where(jnp.any(scored > -jnp.inf), scored, proposal.hypotheses.log_weight)
        responsibility = jax.nn.softmax(scored)
        nu = jnp.sum(jnp.where(proposal.is_new, 0.0, responsibility))
        goes_on = nu > jnp.asarray(self.threshold)
        mixed = over_hypotheses(lambda belief: belief.mix(initial, nu), beliefs)
        beliefs = jax.tree.map(lambda new, old: jnp.where(goes_on, new, old), mixed, beliefs)
        alive = jnp.where(goes_on, ~proposal.is_new & (responsibility > 0.0), proposal.is_new)
        weight = jnp.where(alive, 0.0, -jnp.inf).astype(nu.dtype)
        hypotheses = Hypotheses(proposal.hypotheses.belief, proposal.hypotheses.aux, weight)
        return Proposal(hypotheses, proposal.is_new, proposal.log_reset), replace_new(proposal.is_new, beliefs, initial)


def ou_reset(threshold: Any = 0.5, dynamics: Any = None) -> OrnsteinReset:
    """Forget gradually or reset, as the datum decides (OUPR).

    Args:
        threshold: In [0, 1], on the probability that the regime goes on; 0 always mixes, 1 always resets.
        dynamics: How the parameters move besides; not at all by default.

    >>> import filtax as fx
    >>> fx.method("LG+RL[1]-OUPR(hazard=0.1)", model=fx.models.linear(noise=1.0)).name
    'LG+RL[1]-OUPR(hazard=0.1)'
    """
    checks.share("ou_reset(threshold=...)", threshold, hint="Below this probability of going on the belief is reset.")
    return OrnsteinReset(threshold, static() if dynamics is None else dynamics)
