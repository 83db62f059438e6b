"""Everything an estimator knows about one stream, as one pytree, and that pytree as one vector of float64.

A vector crosses from Python to a compiled kernel and back for the price of one array; it pickles, copies, stacks into a
fleet and goes into a checkpoint as it is. Counters travel as floats, which are exact up to 2^53.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from filtax.estimators.rivalry import Rivalry
from filtax.estimators.units import Units
from filtax.protocols import Module

__all__ = ["TOLD", "Layout", "Memory", "embedded"]

TOLD = ("mean", "var", "tail", "trust", "change_probability", "runlength", "alarm", "start")


class Memory(Module):
    """The units, the filter that is believed, the one that challenges it, and what the last datum showed.

    Attributes:
        inputs: Units of the M features.
        target: Units of y.
        champion: Carry of the filter that forecasts.
        challenger: Carry of one that began with the first of the surprises that may turn out to be a change.
        score: Evidence for a change, W.
        spell: Data since that beginning.
        regime: Data since the last change that was told of; infinite before the first.
        rival: The filter that never forgets, and how far it is behind; None where the champion does not forget either.
        narrow: Logarithm of the factor by which forecasts are too narrow, by data that are no outliers.
        stretch: Logarithm of the factor by which intervals are stretched.
        told: What the last datum showed, in the order of `TOLD`.
    """

    inputs: Units
    target: Units
    champion: PyTree
    challenger: PyTree
    score: Float[Array, "*H"]
    spell: Float[Array, "*H"]
    regime: Float[Array, "*H"]
    rival: Rivalry | None
    narrow: Float[Array, ""]
    stretch: Float[Array, ""]
    told: Float[Array, "*H R"]


class Layout:
    """Where each leaf of a pytree lies in a vector.

    >>> layout = Layout({"a": jnp.ones(2), "n": jnp.asarray(3, jnp.int32)})
    >>> vector = layout.pack({"a": jnp.ones(2), "n": jnp.asarray(3, jnp.int32)})
    >>> vector.tolist(), layout.unpack(vector)["n"].dtype.name
    ([1.0, 1.0, 3.0], 'int32')
    """

    def __init__(self, example: PyTree):
        leaves, self.structure = jax.tree.flatten(example)
        self.shapes = [leaf.shape for leaf in leaves]
        self.dtypes = [leaf.dtype for leaf in leaves]
        self.sizes = [int(np.prod(shape)) for shape in self.shapes]
        self.width = sum(self.sizes)

    def pack(self, tree: PyTree) -> Any:
        """The vector of a tree."""
        dtype = jnp.result_type(float)
        return jnp.concatenate([jnp.ravel(leaf).astype(dtype) for leaf in jax.tree.leaves(tree)])

    def flat(self, tree: PyTree) -> np.ndarray:
        """The same by numpy, in float64: outside of a kernel each operation of JAX is compiled for each size."""
        return np.concatenate([np.ravel(leaf).astype(np.float64) for leaf in jax.tree.leaves(tree)])

    def unpack(self, vector: Any) -> PyTree:
        """The tree of a vector."""
        leaves, start = [], 0
        for shape, dtype, size in zip(self.shapes, self.dtypes, self.sizes, strict=True):
            leaves.append(vector[start : start + size].reshape(shape).astype(dtype))
            start += size
        return jax.tree.unflatten(self.structure, leaves)


def embedded(small: PyTree, large: PyTree) -> PyTree:
    """A fresh tree with what a smaller one has learned in the corner of each leaf.

    New slots have held nothing: what a belief says about them is what it said at the start, and nothing that was
    learned depends on it.

    >>> embedded({"root": np.full((1, 1), 2.0)}, {"root": np.eye(2)})["root"].tolist()
    [[2.0, 0.0], [0.0, 1.0]]
    """

    def corner(old: Any, fresh: Any) -> np.ndarray:
        grown = np.array(fresh)
        grown[tuple(slice(0, length) for length in np.shape(old))] = np.asarray(old)
        return grown

    return jax.tree.map(corner, small, large)
