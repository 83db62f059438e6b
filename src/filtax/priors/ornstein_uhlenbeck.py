r"""(M.3) Ornstein-Uhlenbeck drift: the belief relaxes towards the initial one.

$\mu \to \gamma\mu + (1-\gamma)\mu_0$, $\Sigma \to \gamma^2\Sigma + (1-\gamma^2)\Sigma_0$; with one rate for each
parameter, $D\Sigma D + (I-D^2)^{1/2}\Sigma_0(I-D^2)^{1/2}$, which stays positive semidefinite. Without data it
converges to the initial belief, and steps compose: $g_a \circ g_b
= g_{ab}$.
"""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, PyTree

from filtax import checks
from filtax.protocols import Dynamics

__all__ = ["OrnsteinUhlenbeck", "ornstein_uhlenbeck"]


class OrnsteinUhlenbeck(Dynamics):
    """Relax towards the initial belief at a rate.

    >>> ornstein_uhlenbeck(0.99).rate
    0.99
    """

    rate: Any
    name = "OU"
    shown = {"rate": None}  # noqa: RUF012
    needs = ("mix",)
    moves = True

    def __call__(self, belief: PyTree, initial: PyTree, aux: PyTree, dt: Array | None) -> PyTree:
        """Keep the share rate^dt of the belief."""
        rate = jnp.asarray(self.rate)
        return belief.mix(initial, rate if dt is None else rate**dt)


def ornstein_uhlenbeck(rate: Any) -> OrnsteinUhlenbeck:
    """Forget slowly: relax towards the initial belief.

    Args:
        rate: Share kept at each tick, in [0, 1], or (D,) of them. 1 is `static()`, 0 starts anew for every datum.

    >>> import filtax as fx
    >>> ou = fx.method("LG+C-OU", model=fx.models.linear(noise=1.0), prior=ornstein_uhlenbeck(0.0))
    >>> ou.predict(ou.init(mean=jnp.zeros(1), cov=3.0), jnp.ones(1)).var.item()
    4.0
    """
    checks.share("ornstein_uhlenbeck(rate=...)", rate, hint="It is the share of the belief kept per step.")
    checks.one_or_more("ornstein_uhlenbeck(rate=...)", rate)
    return OrnsteinUhlenbeck(rate)
