r"""(M.3) OUPR: relax towards the initial belief, or return to it, as far as the datum asks for it.

One hypothesis goes on and one begins; the datum gives the first the probability $\nu$. Above the threshold the belief
keeps the share $\nu$ and takes the rest from the initial one, as an Ornstein-Uhlenbeck step would; below it the
belief starts anew (errata E14). The forecast, and the evidence, are those of the two hypotheses before the datum.

Thesis: eq:SPR-equation-gt, eq:SPR-equation-Gt, eq:rl-oupr-weight, algo:rl-spr-step.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from filtax import checks
from filtax.priors.continuing import Continue
from filtax.priors.inflation import static
from filtax.priors.reset import replace_new
from filtax.protocols import Hypotheses, Prior, Proposal, over_hypotheses

__all__ = ["OrnsteinReset", "ou_reset"]


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
        return replace_new(proposal, Continue(self.dynamics)(proposal, initial, dt), initial)

    def revise(
        self, proposal: Proposal, beliefs: PyTree, log_score: Array, initial: PyTree, ask: Callable
    ) -> tuple[Proposal, PyTree]:
        """Decide by the probability that the regime goes on, once the datum is known."""
        scored = proposal.hypotheses.log_weight + log_score
        scored = jnp.where(jnp.any(scored > -jnp.inf), scored, proposal.hypotheses.log_weight)
        share = jax.nn.softmax(scored)
        on = jnp.sum(jnp.where(proposal.is_new, 0.0, share))
        goes_on = on > jnp.asarray(self.threshold)
        mixed = over_hypotheses(lambda belief: belief.mix(initial, on), beliefs)
        beliefs = jax.tree.map(lambda new, old: jnp.where(goes_on, new, old), mixed, beliefs)
        alive = jnp.where(goes_on, ~proposal.is_new & (share > 0.0), proposal.is_new)
        weight = jnp.where(alive, 0.0, -jnp.inf).astype(share.dtype)
        hypotheses = Hypotheses(proposal.hypotheses.belief, proposal.hypotheses.aux, weight)
        return Proposal(hypotheses, proposal.is_new, proposal.log_reset), replace_new(proposal, beliefs, initial)


def ou_reset(threshold: Any = 0.5, dynamics: Any = None) -> OrnsteinReset:
    """Forget as much as the datum asks for (OUPR): gradually above the threshold, all at once below.

    Args:
        threshold: In [0, 1]; 0 always mixes, 1 always starts anew.
        dynamics: How the parameters move besides; not at all if left out.

    >>> import filtax as fx
    >>> fx.method("LG+RL[1]-OUPR(hazard=0.1)", model=fx.models.linear(noise=1.0)).name
    'LG+RL[1]-OUPR(hazard=0.1)'
    """
    checks.share("ou_reset(threshold=...)", threshold, hint="Below this probability of going on, all is forgotten.")
    return OrnsteinReset(threshold, static() if dynamics is None else dynamics)
