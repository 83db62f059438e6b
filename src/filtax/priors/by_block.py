"""(M.3) One drift for each block of parameters: a process noise for the hidden layers, another for the last one.

Thesis: eq:subspace-last-layer-ssm, where the two kinds of parameters walk with covariances of their own.
"""

from typing import Any

from jaxtyping import Array, PyTree

from filtax.module import Module

__all__ = ["ByBlock", "by_block"]


class ByBlock(Module):
    """Drifts of any kinds, in the order of the blocks.

    >>> from filtax.priors import additive_inflation, static
    >>> by_block([static(), additive_inflation(0.1)]).name
    'ACI'
    """

    drifts: tuple[Any, ...]
    shown = {}  # noqa: RUF012
    needs = ("blockwise",)

    @property
    def name(self) -> str:
        """Name of the drift of those that move, LSSM where there are several kinds."""
        names = {drift.name for drift in self.drifts if drift.moves}
        return "Static" if not names else names.pop() if len(names) == 1 else "LSSM"

    @property
    def moves(self) -> bool:
        """Whether any block moves."""
        return any(drift.moves for drift in self.drifts)

    def __call__(self, belief: PyTree, initial: PyTree, aux: PyTree, dt: Array | None) -> PyTree:
        """Move each block by its own drift."""
        moves = [lambda part, start, drift=drift: drift(part, start, aux, dt) for drift in self.drifts]
        return belief.blockwise(moves, initial)


def by_block(drifts: Any) -> ByBlock:
    """Give each block of parameters a drift of its own.

    Args:
        drifts: For each block one of `filtax.priors`: for PULSE the hidden part, then the last layer. A matrix F or Q
            is that of the block.

    >>> import jax.numpy as jnp, filtax as fx
    >>> from filtax.posteriors import blockwise
    >>> split = blockwise(["root", "root"], sizes=(1, 2))
    >>> walk = by_block([fx.priors.static(), fx.priors.additive_inflation(0.5)])
    >>> pair = fx.method("C-ACI", model=fx.models.linear(noise=1.0), posterior=split, prior=walk)
    >>> pair.predict(pair.init(mean=jnp.zeros(3), cov=1.0), jnp.ones(3)).var.item()
    5.0
    """
    drifts = tuple(drifts) if isinstance(drifts, list | tuple) else ()
    if not drifts or not all(hasattr(drift, "moves") for drift in drifts):
        raise ValueError(
            "by_block: give a list with one drift for each block, such as [static(), additive_inflation(0.01)]."
        )
    return ByBlock(drifts)
