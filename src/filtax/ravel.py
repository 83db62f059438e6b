"""How a pytree of parameters lies in the flat vector theta that every belief is about."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

__all__ = ["Layout", "flatten"]


@jax.tree_util.register_static
@dataclass(frozen=True)
class Layout:
    """Structure and shapes of a parameter pytree; no array itself, and equal layouts share a compilation."""

    structure: Any
    shapes: tuple[tuple[int, ...], ...]

    def restore(self, theta: Float[Array, " D"]) -> PyTree:
        """Turn a flat vector back into the pytree."""
        leaves, start = [], 0
        for shape in self.shapes:
            size = int(np.prod(shape))
            leaves.append(theta[start : start + size].reshape(shape))
            start += size
        return jax.tree.unflatten(self.structure, leaves)


def flatten(params: PyTree) -> tuple[Float[Array, " D"], Layout]:
    """Ravel a pytree of float arrays into one vector, and say how to undo it."""
    leaves, structure = jax.tree.flatten(params)
    if not leaves:
        raise ValueError("init(params=...) holds no arrays; give the parameters as a pytree of arrays.")
    odd = [leaf for leaf in leaves if not _is_float(leaf)]
    if odd:
        kind = odd[0].dtype if isinstance(odd[0], np.ndarray | np.generic | jax.Array) else type(odd[0]).__name__
        raise ValueError(
            f"init(params=...) must hold float arrays only, got a leaf of type {kind}; keep integers and functions "
            "outside of the parameters."
        )
    dtype = jnp.result_type(*leaves)
    vector = jnp.concatenate([jnp.ravel(jnp.asarray(leaf)).astype(dtype) for leaf in leaves])
    return vector, Layout(structure, tuple(jnp.shape(leaf) for leaf in leaves))


def _is_float(leaf: Any) -> bool:
    try:
        return jnp.issubdtype(jnp.result_type(leaf), jnp.floating)
    except TypeError:
        return False
