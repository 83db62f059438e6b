"""(M.3) Dynamics for each part: for each block of parameters, or for the expert that a hypothesis belongs to.

Thesis: eq:subspace-last-layer-ssm, where hidden parameters and the last layer walk with covariances of their own;
eqn:MELSSM, whose experts are counted by `filtax.auxiliary.experts`.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from filtax import _validation as checks
from filtax.protocols import Dynamics


class ByBlock(Dynamics):
    """Dynamics of any kinds, in the order of the blocks.

    >>> from filtax.priors import additive_inflation, static
    >>> by_block([static(), additive_inflation(0.1)]).name
    'ACI'
    """

    parts: tuple[Any, ...]
    shown = {}  # noqa: RUF012
    needs = ("blockwise",)

    @property
    def name(self) -> str:
        """Name of the dynamics of the blocks that move; LSSM if they are of several kinds."""
        names = {part.name for part in self.parts if part.moves}
        return "Static" if not names else names.pop() if len(names) == 1 else "LSSM"

    @property
    def moves(self) -> bool:
        """Whether any block moves."""
        return any(part.moves for part in self.parts)

    def __call__(self, belief: PyTree, initial: PyTree, aux: PyTree, dt: Array | None) -> PyTree:
        """The belief in which each block has followed its own dynamics."""
        return belief.blockwise([partial(_move, dynamics, aux, dt) for dynamics in self.parts], initial)

    def by_part(self, belief: PyTree) -> list[tuple[Dynamics, PyTree, int]]:
        """The dynamics of each block that has parameters."""
        if len(self.parts) != len(belief.parts):
            raise ValueError(
                f"by_block holds {len(self.parts)} dynamics but the belief has {len(belief.parts)} blocks; give one "
                "for each."
            )
        pairs = zip(self.parts, belief.parts, strict=True)
        return [found for each, part in pairs if part is not None for found in each.by_part(part)]


def by_block(dynamics: Any) -> ByBlock:
    """Give each block of parameters dynamics of its own.

    Args:
        dynamics: For each block one of `filtax.priors`: for PULSE the hidden part, then the last layer. A matrix F or Q
            is that of the block.

    >>> import jax.numpy as jnp, filtax as fx
    >>> from filtax.posteriors import blockwise
    >>> split = blockwise(["root", "root"], sizes=(1, 2))
    >>> walk = by_block([fx.priors.static(), fx.priors.additive_inflation(0.5)])
    >>> pair = fx.method("C-ACI", model=fx.models.linear(noise=1.0), posterior=split, prior=walk)
    >>> pair.predict(pair.init(mean=jnp.zeros(3), cov=1.0), jnp.ones(3)).var.item()
    5.0
    """
    dynamics = tuple(dynamics) if isinstance(dynamics, list | tuple) else ()
    if not dynamics or not all(isinstance(part, Dynamics) for part in dynamics):
        raise ValueError(
            "by_block: give a list with one dynamics for each block, such as [static(), additive_inflation(0.01)]."
        )
    return ByBlock(dynamics)


def _move(dynamics: Any, aux: PyTree, dt: Array | None, belief: PyTree, initial: PyTree) -> PyTree:
    return dynamics(belief, initial, aux, dt)


class ByExpert(Dynamics):
    """Dynamics of one kind, stacked along an axis of experts.

    >>> from filtax.priors import additive_inflation
    >>> by_expert([additive_inflation(0.0), additive_inflation(0.1)]).name
    'ACI'
    """

    stacked: Any
    shown = {}  # noqa: RUF012

    @property
    def name(self) -> str:
        """Name of the kind."""
        return self.stacked.name

    @property
    def needs(self) -> tuple[str, ...]:
        """Methods of a belief that the dynamics call."""
        return self.stacked.needs

    @property
    def experts(self) -> int | None:
        """Number of experts; None for dynamics without settings, which are all alike."""
        leaves = jax.tree.leaves(self.stacked)
        return leaves[0].shape[0] if leaves else None

    @property
    def moves(self) -> bool:
        """Whether the parameters move."""
        return self.stacked.moves

    def __call__(self, belief: PyTree, initial: PyTree, aux: PyTree, dt: Array | None) -> PyTree:
        """The belief after the dynamics of the expert of the hypothesis."""
        mine = jax.tree.map(lambda leaf: leaf[aux.expert], self.stacked)
        return mine(belief, initial, aux, dt)

    def by_part(self, belief: PyTree) -> list[tuple[Dynamics, PyTree, int]]:
        """The stacked dynamics, whose numbers have an axis of experts."""
        return [(dynamics, part, 1) for dynamics, part, _ in self.stacked.by_part(belief)]


def by_expert(dynamics: list) -> ByExpert:
    """Give each expert dynamics of its own; all are of one kind and of equal shapes.

    >>> from filtax.priors import ornstein_uhlenbeck
    >>> by_expert([ornstein_uhlenbeck(0.9), ornstein_uhlenbeck(0.99)]).stacked.rate.tolist()
    [0.9..., 0.99...]
    """
    if not isinstance(dynamics, list | tuple) or not all(isinstance(one, Dynamics) for one in dynamics):
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
