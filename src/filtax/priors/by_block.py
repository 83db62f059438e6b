"""(M.3) One dynamics for each block of parameters: a process noise for the hidden layers, another for the last one.

Thesis: eq:subspace-last-layer-ssm, where the two kinds of parameters walk with covariances of their own.
"""

from functools import partial
from typing import Any

from jaxtyping import Array, PyTree

from filtax.protocols import Dynamics

__all__ = ["ByBlock", "by_block"]


class ByBlock(Dynamics):
    """Drifts of any kinds, in the order of the blocks.

    >>> from filtax.priors import additive_inflation, static
    >>> by_block([static(), additive_inflation(0.1)]).name
    'ACI'
    """

    parts: tuple[Any, ...]
    shown = {}  # noqa: RUF012
    needs = ("blockwise",)

    @property
    def name(self) -> str:
        """Name of the dynamics of those that move, LSSM where there are several kinds."""
        names = {part.name for part in self.parts if part.moves}
        return "Static" if not names else names.pop() if len(names) == 1 else "LSSM"

    @property
    def moves(self) -> bool:
        """Whether any block moves."""
        return any(part.moves for part in self.parts)

    def __call__(self, belief: PyTree, initial: PyTree, aux: PyTree, dt: Array | None) -> PyTree:
        """Move each block by its own dynamics."""
        moves = [partial(_move, dynamics, aux, dt) for dynamics in self.parts]
        return belief.blockwise(moves, initial)


def by_block(dynamics: Any) -> ByBlock:
    """Give each block of parameters a dynamics of its own.

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
    if not dynamics or not all(hasattr(part, "moves") for part in dynamics):
        raise ValueError(
            "by_block: give a list with one dynamics for each block, such as [static(), additive_inflation(0.01)]."
        )
    return ByBlock(dynamics)


def _move(dynamics: Any, aux: PyTree, dt: Array | None, belief: PyTree, initial: PyTree) -> PyTree:
    return dynamics(belief, initial, aux, dt)
