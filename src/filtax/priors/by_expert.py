"""(M.3) Dynamics for each expert, by the expert that a hypothesis belongs to.

Thesis: eqn:MELSSM; the experts are counted by `filtax.auxiliary.experts`.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from filtax import checks
from filtax.protocols import Dynamics

__all__ = ["ByExpert", "by_expert"]


class ByExpert(Dynamics):
    """Drifts of one kind, stacked.

    >>> from filtax.priors import additive_inflation
    >>> by_expert([additive_inflation(0.0), additive_inflation(0.1)]).name
    'ACI'
    """

    stacked: Any
    shown = {}  # noqa: RUF012

    @property
    def name(self) -> str:
        """Name of the dynamics they all are."""
        return self.stacked.name

    @property
    def needs(self) -> tuple[str, ...]:
        """What they ask of a belief."""
        return self.stacked.needs

    @property
    def experts(self) -> int | None:
        """How many dynamics there are; None for dynamics without any setting, which are all alike."""
        leaves = jax.tree.leaves(self.stacked)
        return leaves[0].shape[0] if leaves else None

    @property
    def moves(self) -> bool:
        """Whether the parameters move."""
        return self.stacked.moves

    def __call__(self, belief: PyTree, initial: PyTree, aux: PyTree, dt: Array | None) -> PyTree:
        """Use the dynamics of the hypothesis' expert."""
        mine = jax.tree.map(lambda leaf: leaf[aux.expert], self.stacked)
        return mine(belief, initial, aux, dt)


def by_expert(dynamics: list) -> ByExpert:
    """Give each expert a dynamics of its own; all of one kind and of equal shapes.

    >>> from filtax.priors import ornstein_uhlenbeck
    >>> by_expert([ornstein_uhlenbeck(0.9), ornstein_uhlenbeck(0.99)]).stacked.rate.tolist()
    [0.9..., 0.99...]
    """
    if not isinstance(dynamics, list | tuple) or not all(hasattr(one, "needs") for one in dynamics):
        raise ValueError(
            f"by_expert: the dynamics must be a list of those of filtax.priors, such as [static(), static()], got "
            f"{dynamics!r:.40}."
        )
    if not dynamics:
        raise ValueError("by_expert: the list of dynamics is empty; give one dynamics for each expert.")
    kinds = {jax.tree.structure(one) for one in dynamics}
    shapes = {tuple(jnp.shape(leaf) for leaf in jax.tree.leaves(one)) for one in dynamics}
    if len(kinds) != 1 or len(shapes) != 1:
        raise ValueError(
            f"by_expert: the {len(dynamics)} dynamics must be of one kind and of equal shapes, such as "
            "[additive_inflation(0.0), additive_inflation(0.1)]."
        )
    return ByExpert(jax.tree.map(lambda *leaves: jnp.stack([checks.floats(leaf) for leaf in leaves]), *dynamics))
