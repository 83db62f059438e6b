"""Beliefs too large for one device: their long axis is laid over several, and nothing else changes.

Everything that has a number for each parameter (the mean, the variances, the columns of a low-rank factor) is split
along that axis; what is small stays whole on every device. XLA then computes each device's part of a step where it
lies, and adds up the small products: the numbers are those of one device, up to the order of sums.
"""

from typing import Any

import jax

from filtax.state import State

__all__ = ["shard"]


def shard(state: State, mesh: Any, axis: str | None = None) -> State:
    """Lay a state over the devices of a mesh, along the axis of its parameters.

    Args:
        state: From `init`; its number of parameters D must be a multiple of the number of devices.
        mesh: A `jax.sharding.Mesh`, such as `jax.make_mesh((8,), ("parameters",))`.
        axis: Name of the mesh's axis to use; its first by default.

    Returns:
        The same state, for `step` and `scan`.

    >>> import jax.numpy as jnp, filtax as fx
    >>> lofi = fx.method("LoFi(rank=2)+C-Static", model=fx.models.linear(noise=1.0))
    >>> mesh = jax.make_mesh((1,), ("parameters",))
    >>> state = shard(lofi.init(mean=jnp.zeros(8), cov=1.0), mesh)
    >>> state, info = lofi.step(state, jnp.ones(8), 1.0)
    >>> round(lofi.belief(state).mean[0].item(), 4)
    0.1111
    """
    from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

    axis = mesh.axis_names[0] if axis is None else axis
    if axis not in mesh.shape:
        raise ValueError(f"shard(axis={axis!r}) is no axis of the mesh; it has {', '.join(mesh.axis_names)}.")
    D, devices = state.initial.mean.size, mesh.shape[axis]
    if D % devices:
        raise ValueError(
            f"shard: {D} parameters cannot be split evenly over {devices} devices; use a number of devices that "
            f"divides {D}, or add {-D % devices} parameters that nothing depends on."
        )

    # XLA finds out by itself how what is computed from these is laid out; an explicit mesh would ask for it everywhere
    mesh = Mesh(mesh.devices, mesh.axis_names, axis_types=(AxisType.Auto,) * len(mesh.axis_names))

    def place(leaf: Any) -> Any:
        where: list[str | None] = [None] * leaf.ndim
        if D in leaf.shape:  # the last, where as many rows as there are parameters lie one after the other
            where[leaf.ndim - 1 - leaf.shape[::-1].index(D)] = axis
        return jax.device_put(leaf, NamedSharding(mesh, PartitionSpec(*where)))

    return jax.tree.map(place, state)
