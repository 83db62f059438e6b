"""RL[1]-OUPR as the published electricity run had it: it starts from N(., I) and mixes in another variance.

What is mixed in has the mean of the belief itself and the variance `shock`, so that a belief widens and stays where it
is; a reset goes to the initial belief. In the thesis both are the initial belief.

Thesis: eq:SPR-equation-gt, eq:SPR-equation-Gt, experiment:hour-ahead-forecasting.
"""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, PyTree

from filtax.module import Module
from filtax.priors.reset import replace_new
from filtax.protocols import Proposal

__all__ = ["Shocked"]


class Shocked(Module):
    """OUPR whose mixture widens by a variance of its own, about the mean there is; dense covariances.

    >>> import filtax as fx
    >>> Shocked(fx.priors.ou_reset(0.5), 7.07).name
    'OUPR'
    """

    prior: Any
    shock: Any
    name = "OUPR"
    shown = {}  # noqa: RUF012
    needs = ("mix",)
    greedy = True

    @property
    def dynamics(self) -> Any:
        """How the parameters move besides."""
        return self.prior.dynamics

    def __call__(self, proposed: Proposal, initial: PyTree, dt: Array | None) -> PyTree:
        """Beliefs before the datum, (C, ...)."""
        return self.prior(proposed, initial, dt)

    def revise(
        self, proposed: Proposal, beliefs: PyTree, log_score: Array, initial: PyTree, ask: Callable
    ) -> tuple[Proposal, PyTree]:
        """As OUPR, with what is mixed in replaced; newborns have the initial belief."""
        mean = jnp.sum(jnp.where(proposed.is_new[:, None], 0.0, beliefs.mean), axis=0)  # of the one that goes on
        target = type(initial).start(mean, self.shock * jnp.ones_like(mean))
        chosen, settled = self.prior.revise(proposed, beliefs, log_score, target, ask)
        return chosen, replace_new(chosen, settled, initial)
