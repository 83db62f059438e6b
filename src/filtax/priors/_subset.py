r"""(M.3) Sub: the belief that the data which belong to the regime would have led to.

$\pi(\theta; s) \propto p(\theta) \prod_j p(y_j \mid \theta, x_j)^{s_j}$: the initial belief, or what was folded into
it, learns the remembered data again, oldest first, each as far as it belongs. For linear models this is exact; others
are linearised again at each replay.

Cost: M updates for each hypothesis and step.
Thesis: the conditional prior CPL-Sub of chapter 3 (Nguyen 2017, Kurle 2019, Nassar 2022).
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from filtax.priors._dynamics import Continue, static
from filtax.protocols import Hypotheses, Prior, Proposal, over_hypotheses


class Subset(Prior):
    """The data that belong are learned again; then the parameters follow the dynamics.

    >>> subset().name
    'Sub'
    """

    dynamics: Any
    name = "Sub"
    shown = {}  # noqa: RUF012
    needs = ()
    of_members = True

    def __call__(self, proposal: Proposal, initial: PyTree, dt: Array | None) -> PyTree:
        """Beliefs that follow the dynamics, without a replay of the data."""
        return Continue(self.dynamics)(proposal, initial, dt)

    def replay(self, proposal: Proposal, initial: PyTree, dt: Array | None, relearn: Callable) -> PyTree:
        """Beliefs before the datum, (C, ...); `relearn(belief, aux, x, y, mask, power)` is (A.1) for one hypothesis."""
        hypotheses = proposal.hypotheses

        def one(belief: PyTree, aux: PyTree) -> PyTree:
            start = initial if aux.base is None else aux.base
            if aux.memory is None:
                return start
            power = jnp.where(aux.memory.weight > 0.0, aux.member, 0.0)
            rows = (aux.memory.X, aux.memory.Y, aux.memory.mask, power)

            def learn(belief: PyTree, row: tuple) -> tuple[PyTree, None]:
                return relearn(belief, aux, *row), None

            return jax.lax.scan(learn, start, rows, reverse=True)[0]

        beliefs = over_hypotheses(one, hypotheses.belief, hypotheses.aux)
        replayed = Hypotheses(beliefs, hypotheses.aux, hypotheses.log_weight)
        return self(Proposal(replayed, proposal.is_new, proposal.log_reset), initial, dt)


def subset(dynamics: Any = None) -> Subset:
    """Learn from the data that belong to the regime (Sub); for CPL and CPV.

    Args:
        dynamics: How the parameters move between those data and the next; not at all by default.

    >>> import filtax as fx
    >>> fx.method("LG+CPL[inf](memory=3)-Sub", model=fx.models.linear(noise=1.0)).prior.name
    'Sub'
    """
    return Subset(static() if dynamics is None else dynamics)
