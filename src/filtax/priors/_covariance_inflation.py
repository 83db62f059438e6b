r"""(M.3) Multiplicative inflation MCI: at a change the mean stays and the covariance grows by $1/\beta$.

Thesis: the conditional prior CPL-MCI of chapter 3 (Li 2021).
"""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, PyTree

from filtax import _validation as checks
from filtax.priors._dynamics import Continue, static
from filtax.priors._reset import replace_new
from filtax.protocols import Prior, Proposal, over_hypotheses


class CovarianceInflation(Prior):
    """A new hypothesis has the belief of the one that it came from, with a larger covariance.

    >>> covariance_inflation(0.5).name
    'MCI'
    """

    beta: Any
    dynamics: Any
    name = "MCI"
    shown = {"beta": 0.5}  # noqa: RUF012
    needs = ("inflate",)
    of_parent = True

    def __call__(self, proposal: Proposal, initial: PyTree, dt: Array | None) -> PyTree:
        """Beliefs before the datum, (C, ...)."""
        moved = Continue(self.dynamics)(proposal, initial, dt)
        wider = over_hypotheses(lambda belief: belief.inflate(1.0 / jnp.asarray(self.beta)), moved)
        return replace_new(proposal.is_new, moved, wider)


def covariance_inflation(beta: Any = 0.5, dynamics: Any = None) -> CovarianceInflation:
    """Widen the belief at a change (MCI).

    Args:
        beta: In (0, 1]; the covariance is divided by it.
        dynamics: How the parameters move between changes; not at all by default.

    >>> import filtax as fx
    >>> fx.method("LG+CPL[4]-MCI(hazard=0.1, beta=0.25)", model=fx.models.linear(noise=1.0)).prior.beta
    0.25
    """
    checks.share("covariance_inflation(beta=...)", beta, hint="The covariance is divided by it.")
    checks.positive("covariance_inflation(beta=...)", beta, hint="The covariance is divided by it.")
    return CovarianceInflation(beta, static() if dynamics is None else dynamics)
