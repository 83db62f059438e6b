"""What a method remembers between data (`State`), and what it reports about one datum (`Info`).

The number of hypotheses C and the shapes of remembered data are shapes, fixed within a compilation. So room for more
hypotheses, or for data whose shape is known at last, is made here, between two compiled calls.
"""

import math
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from filtax.protocols import Hypotheses, Module, with_fields
from filtax.ravel import Layout

__all__ = [
    "INFO",
    "CollapseWarning",
    "ConditioningWarning",
    "Info",
    "State",
    "shard",
    "start_hypotheses",
    "stores_data",
    "with_memory",
    "with_slots",
]

MOST_SLOTS = 2**17  # beyond it a step takes seconds, and C usually grows as 2^t


class CollapseWarning(UserWarning):
    """The members of an ensemble are far closer to each other than to the truth: the belief is too certain."""


class ConditioningWarning(UserWarning):
    """The numbers of a stream span more than its dtype can hold: the belief is finite, but its mean may be far off."""


class State(Module):
    """Everything `step` needs; a pytree of arrays that can be stored, vmapped and compared.

    Attributes:
        hypotheses: The weighted beliefs, C slots.
        initial: The belief before any datum, to which resets and relaxing priors return.
        t: Steps so far.
        began: Step at which the stream began, or was reset at the last known change.
        refused: Data so far that were refused (`Info.ok` False).
        conditioning_ratio: Largest ratio so far of the variance of the forecast's mean to that of the noise.
        key: Random key of methods that draw at each datum; None where the belief has its own.
        layout: How theta lies in a pytree of parameters; None for a flat vector.

    >>> import jax.numpy as jnp, filtax as fx
    >>> kf = fx.method("LG+C-Static", model=fx.models.linear(noise=1.0))
    >>> int(kf.init(mean=jnp.zeros(2), cov=1.0).t)
    0
    """

    hypotheses: Hypotheses
    initial: PyTree
    t: Int[Array, ""]
    began: Int[Array, ""]
    refused: Int[Array, ""]
    conditioning_ratio: Float[Array, ""]
    key: Key[Array, ""] | None = None
    layout: Layout | None = None

    @property
    def carry(self) -> tuple[Hypotheses, Array, Array, Array, Array]:
        """The carry of the loop; constants stay outside, or they would be copied."""
        return self.hypotheses, self.t, self.began, self.refused, self.conditioning_ratio

    def after(
        self, hypotheses: Hypotheses, t: Array, began: Array, refused: Array, conditioning_ratio: Array
    ) -> "State":
        """The state with a new `carry`; the rest stays as it is."""
        return with_fields(
            self, hypotheses=hypotheses, t=t, began=began, refused=refused, conditioning_ratio=conditioning_ratio
        )


class Info(Module):
    """What one datum showed; under `scan` with a leading axis T, and None for what was not kept.

    Attributes:
        mean, var: The forecast made before y, in the shape of the model's output.
        log_evidence: Log density of y under that forecast; 0 if y is missing, -inf if it was too far off to be used.
        residual: y minus the forecast; NaN if y is missing.
        trust: Weight in [0, 1] that a robust method gave to y; 1 otherwise.
        change_probability: Probability that the process changed at this datum.
        runlength: Most probable number of data since the last change.
        ok: False if the datum was refused; the belief is then that before it.
        belief_mean, belief_var, belief_cov: The belief after y, when `scan(keep=...)` names them.
        log_weight: Log weights of the hypotheses after y, likewise.

    >>> Info().mean is None
    True
    """

    mean: Float[Array, "*O"] | None = None
    var: Float[Array, "*O"] | None = None
    log_evidence: Float[Array, "*T"] | None = None
    residual: Float[Array, "*O"] | None = None
    trust: Float[Array, "*T"] | None = None
    change_probability: Float[Array, "*T"] | None = None
    runlength: Int[Array, "*T"] | None = None
    ok: Bool[Array, "*T"] | None = None
    belief_mean: Float[Array, "*T D"] | None = None
    belief_var: Float[Array, "*T D"] | None = None
    belief_cov: Float[Array, "*T D D"] | None = None
    log_weight: Float[Array, "*T C"] | None = None


@cache
def certain(dtype: Any) -> Info:
    """What a method reports at every step that weighs no datum and suspects no change; computed once."""
    with jax.ensure_compile_time_eval():
        one, zero = jax.device_put((np.ones((), dtype), np.zeros((), dtype)))
        return Info(trust=one, change_probability=zero)


INFO = ("mean", "var", "log_evidence", "residual", "trust", "change_probability", "runlength", "ok")


def start_hypotheses(
    method: Any, initial: PyTree, slots: int | None = None, like: Hypotheses | None = None
) -> Hypotheses:
    """Hypotheses before any datum: every slot holds the initial belief.

    Args:
        method: A `Bone`.
        initial: The initial belief, compressed or not.
        slots: C; that of the auxiliary variable by default.
        like: Hypotheses; memory of the shape that these have is allocated.
    """
    initial = initial.decompress()
    grown = slots is not None and slots != method.auxiliary.slots
    dtype = initial.mean.dtype
    aux, log_weight = method.auxiliary.start_of(slots, dtype) if grown else method.auxiliary.start(dtype)
    if like is not None:
        for part in (method.auxiliary, method.weighting):
            aux = part.allocate_memory(aux, initial, *part.memory_shape(like.aux))
    belief = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (log_weight.size, *leaf.shape)), initial)
    return Hypotheses(belief, aux, log_weight)


def stores_data(method: Any) -> bool:
    """Whether a part stores data, so that their shape is needed before the first of them."""
    return method.posterior.stores_data or method.auxiliary.stores_data or method.weighting.stores_data


def with_memory(method: Any, state: State, x: Any, y: Any) -> State:
    """The state with a memory for data like x and y, if its method stores data and it has none yet."""
    if not stores_data(method):
        return state
    hypotheses, initial = state.hypotheses, state.initial
    aux, belief, whole = hypotheses.aux, hypotheses.belief, initial.decompress()
    for part in (method.auxiliary, method.weighting):
        aux = part.allocate_memory(aux, whole, x, y.size)
    if method.posterior.stores_data:
        x = x if x is None or not jnp.issubdtype(x.dtype, jnp.floating) else jnp.zeros(x.shape, initial.mean.dtype)
        initial = method.posterior.allocate_memory(initial, x, y.size)
        belief = jax.vmap(lambda one: method.posterior.allocate_memory(one, x, y.size))(belief)
    return with_fields(state, hypotheses=Hypotheses(belief, aux, hypotheses.log_weight), initial=initial)


def with_slots(method: Any, state: State, wanted: int) -> State:
    """The state with at least `wanted` slots: C doubles as often as it must, and new slots hold no hypothesis."""
    slots = state.hypotheses.log_weight.shape[-1]
    if wanted <= slots:
        return state
    check_slots(method, wanted)
    while slots < wanted:
        slots *= 2
    new = start_hypotheses(method, state.initial, slots)
    empty = Hypotheses(new.belief, new.aux, jnp.full_like(new.log_weight, -jnp.inf))
    hypotheses = jax.tree.map(lambda old, new: new.at[: old.shape[0]].set(old), state.hypotheses, empty)
    return with_fields(state, hypotheses=hypotheses)


def check_slots(method: Any, wanted: int) -> None:
    """Refuse a stream that needs more hypotheses than can be computed."""
    if wanted > MOST_SLOTS:
        name = method.auxiliary.name
        shown = wanted if wanted < 10**9 else f"about 10^{math.log10(wanted):.0f}"
        raise ValueError(
            f"{name}[inf] would need {shown} hypotheses for this stream, more than {MOST_SLOTS}; give {name}[K] to "
            "keep the K most probable ones."
        )


def shard(state: State, mesh: Any, axis: str | None = None) -> State:
    """Lay a state over the devices of a mesh, along the axis of its parameters, where one device is too small.

    What has a number for each parameter (the mean, the variances, the columns of a low-rank factor) is split; what is
    small stays whole on every device. XLA computes each device's part of a step where it lies, and adds up the small
    products: the numbers are those of one device, up to the order of sums.

    Args:
        state: From `init`; its number of parameters D must be a multiple of the number of devices.
        mesh: A `jax.sharding.Mesh`, such as `jax.make_mesh((8,), ("parameters",))`.
        axis: Name of the mesh's axis to use; its first by default.

    Returns:
        The same state, for `step` and `scan`.

    >>> import filtax as fx
    >>> lofi = fx.method("LoFi(rank=2)+C-Static", model=fx.models.linear(noise=1.0))
    >>> mesh = jax.make_mesh((1,), ("parameters",))
    >>> state = shard(lofi.init(mean=jnp.zeros(8), cov=1.0), mesh)
    >>> state, info = lofi.step(state, jnp.ones(8), 1.0)
    >>> round(lofi.belief(state).mean[0].item(), 4)
    0.1111
    """
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
