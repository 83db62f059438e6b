"""The fast path for events that come one at a time: packed state, one kernel, numpy in and out.

A call from Python costs about as much for each array that crosses the border as for the arithmetic of a small
filter. So the bits of the whole state and of everything that is reported travel as one vector of unsigned numbers, as
wide as a float of the state: it is the kernel's output, and its input at the next event.
"""

import math
from functools import partial
from textwrap import shorten
from typing import Any

import jax
import jax.dlpack
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from filtax import _validation as checks
from filtax._step import cast_and_bind, filter_step
from filtax.bone import Bone
from filtax.models import Direct
from filtax.state import INFO, State, with_memory

FIELDS = tuple(name for name in INFO if name not in ("runlength", "ok"))  # those that hold floats


def _read(event: Any, name: str) -> np.ndarray:
    """A field of an event."""
    where, shape, dtype = event._fields[name]
    return event._values[where].view(dtype).reshape(shape)


class Event:
    """What one event showed: the fields of `Info` as numpy views of the kernel's output.

    Attributes are looked up when asked for, since slicing costs more than the filter.

    >>> import jax.numpy as jnp, filtax as fx
    >>> kf = fx.method("LG+C-Static", model=fx.models.linear(noise=1.0))
    >>> fast = online(kf, kf.init(mean=jnp.zeros(1), cov=1.0))
    >>> float(fast.step(np.ones(1), 2.0).residual)
    2.0
    """

    __slots__ = ("_fields", "_values")

    mean, var, log_evidence, residual, trust, change_probability = (property(partial(_read, name=n)) for n in FIELDS)

    def __init__(self, values: np.ndarray, fields: dict[str, tuple[slice, tuple[int, ...], Any]]):
        self._values = values
        self._fields = fields

    @property
    def runlength(self) -> int:
        """Most probable number of data since the last change."""
        return int(_read(self, "runlength"))

    @property
    def ok(self) -> bool:
        """False when the row was refused."""
        return bool(_read(self, "ok"))

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"an event has {', '.join(INFO)}; there is no {name!r}.")


class Online:
    """A method and its state, ready for single events; made by `online`.

    >>> import jax.numpy as jnp, filtax as fx
    >>> kf = fx.method("LG+C-Static", model=fx.models.linear(noise=1.0))
    >>> fast = online(kf, kf.init(mean=jnp.zeros(1), cov=1.0))
    >>> _ = fast.step(np.ones(1), 2.0)
    >>> kf.belief(fast.state).mean.item()
    1.0
    """

    def __init__(self, method: Bone, state: State, x: Any, y: Any):
        self._state = state
        x, y = (None if part is None else np.asarray(part) for part in (x, y))
        self._x_size, self._x_shape = (0, None) if x is None else (x.size, x.shape)
        self._whole = _whole_dtype(method, state, x, y)
        self._dtype, datum = state.initial.mean.dtype, self._x_size + y.size
        leaves, self._structure = jax.tree.flatten((state.hypotheses, state.t, state.refused, state.conditioning_ratio))
        self._leaves = [(leaf.shape, leaf.dtype) for leaf in leaves]
        _, info = jax.eval_shape(method.step, state, x, y)
        parts = [jnp.zeros(vars(info)[name].shape, self._dtype) for name in FIELDS]
        parts += [jnp.zeros((), info.runlength.dtype), jnp.zeros((), bool)]
        start = sum(_words(*leaf, self._dtype) for leaf in self._leaves)
        self._fields = {}
        for name, part in zip((*FIELDS, "runlength", "ok"), parts, strict=True):
            end = start + _words(part.shape, part.dtype, self._dtype)
            self._fields[name] = slice(start, end), part.shape, _wide(part.dtype, self._dtype)
            start = end
        self._packed: Any = self._pack([*leaves, *parts])
        # the method is no argument of the kernel: handing it over would cost more than the filter
        self._kernel = jax.jit(lambda packed, row: self._run(method, state, packed, row, y.shape))
        self._row, self._given = _shared(datum, self._dtype)
        self._x_part = None if x is None else self._row[: x.size].reshape(x.shape)  # views: writing here fills the row
        self._y_part = self._row[self._x_size : datum].reshape(y.shape)

    def step(self, x: Any, y: Any) -> Event:
        """Let one step pass and learn from (x, y), as `Bone.step` does; NaN in y is missing.

        Args:
            x: Of the shape it was made for.
            y: Of the shape it was made for.

        Returns:
            The fields of `Info`, as numpy.
        """
        if self._x_part is not None:
            _fill(self._x_part, x, "x")
            if self._whole is not None and np.any(self._x_part.astype(self._whole) != x):
                raise ValueError(
                    f"step: x = {x!r:.40} is no whole number that {self._dtype} holds, and the model takes no "
                    "other; give such a number, or use method.step."
                )
        _fill(self._y_part, y, "y")
        self._packed = self._kernel(self._packed, self._given)
        return Event(np.asarray(self._packed), self._fields)  # this waits, so the row may be written again

    @property
    def state(self) -> State:
        """The state now, as `Bone.step` would have it."""
        hypotheses, t, refused, conditioning_ratio = self._unpack(self._packed)
        return self._state.after(hypotheses, t, self._state.began, refused, conditioning_ratio)

    def _run(self, method: Bone, state: State, packed: Array, row: Array, y_shape: tuple[int, ...]) -> Array:
        method = cast_and_bind(method, state)
        hypotheses, t, refused, conditioning_ratio = self._unpack(packed)
        x = None if self._x_shape is None else row[: self._x_size].reshape(self._x_shape)
        x = x if self._whole is None or x is None else x.astype(self._whole)
        y = row[self._x_size :].reshape(y_shape)
        before = state.after(hypotheses, t, state.began, refused, conditioning_ratio)
        after, info, _ = filter_step(method, before, x, y)
        hypotheses, t, _, refused, conditioning_ratio = after.carry
        parts = [vars(info)[name].astype(self._dtype) for name in FIELDS]
        last = jnp.asarray(info.runlength), jnp.asarray(info.ok)
        return self._pack([*jax.tree.leaves((hypotheses, t, refused, conditioning_ratio)), *parts, *last])

    def _pack(self, leaves: list[Array]) -> Array:
        """The bits of all arrays in one vector."""
        word, wide = _word(self._dtype), [leaf.astype(_wide(leaf.dtype, self._dtype)) for leaf in leaves]
        return jnp.concatenate([jax.lax.bitcast_convert_type(leaf, word).reshape(-1) for leaf in wide])

    def _unpack(self, packed: Array) -> PyTree:
        leaves, start = [], 0
        for shape, dtype in self._leaves:
            words, wide = _words(shape, dtype, self._dtype), _wide(dtype, self._dtype)
            several = wide.itemsize // packed.itemsize  # words of one number
            part = packed[start : start + words].reshape(*shape, *([several] if several > 1 else []))
            leaves.append(jax.lax.bitcast_convert_type(part, wide).astype(dtype))
            start += words
        return jax.tree.unflatten(self._structure, leaves)


def _whole_dtype(method: Bone, state: State, x: np.ndarray | None, y: np.ndarray) -> Any:
    """Dtype of x if it is whole numbers and the model takes no others: features may be whole by chance."""
    if x is None or x.dtype.kind not in "iu":
        return None
    try:
        jax.eval_shape(method.step, state, x.astype(state.initial.mean.dtype), y)
    except Exception:  # whatever a model of the user's own says to it
        return jax.dtypes.canonicalize_dtype(x.dtype)
    return None


def _shared(size: int, dtype: Any) -> tuple[np.ndarray, Any]:
    """A row to write to, and what the kernel is given of it: on a CPU an array in the same memory, else the row itself.

    A numpy array would be copied at each call, for a third of what the call costs. Nothing is read while it is written,
    since a step waits for its result. Memory that begins at a multiple of 64 bytes is used by JAX where it is.
    """
    spare = np.zeros(size * np.dtype(dtype).itemsize + 64, np.uint8)
    start = -spare.ctypes.data % 64
    row = spare[start : start + size * np.dtype(dtype).itemsize].view(dtype)
    if jax.default_backend() != "cpu" or not size:
        return row, row
    try:
        given = jax.dlpack.from_dlpack(row, copy=False)
    except (BufferError, RuntimeError, TypeError, ValueError):  # a dtype that does not pass this way
        return row, row
    return row, given if given.unsafe_buffer_pointer() == row.ctypes.data else row


def _word(held: Any) -> np.dtype:
    """Unsigned numbers as wide as a float of this dtype."""
    return np.dtype(f"u{held.itemsize}")


def _wide(dtype: Any, held: Any) -> np.dtype:
    """The dtype itself if it is at least as wide as a word, else one of its kind that is."""
    if dtype.itemsize >= held.itemsize:
        return dtype
    if jnp.issubdtype(dtype, jnp.floating):
        return held
    return np.dtype(f"i{held.itemsize}") if jnp.issubdtype(dtype, jnp.signedinteger) else _word(held)


def _words(shape: tuple[int, ...], dtype: Any, held: Any) -> int:
    """Words that an array takes."""
    return math.prod(shape) * _wide(dtype, held).itemsize // held.itemsize


def _fill(part: np.ndarray, given: Any, name: str) -> None:
    """Write into a part of the row. Other shapes are refused here: numpy would spread a number over all outputs."""
    if type(given) is not np.ndarray:
        given = np.asarray(given)
    if given.shape != part.shape:
        if given.size != 1 or part.size != 1:
            raise ValueError(f"step: {name} has shape {given.shape} but was made for {part.shape}; give that shape.")
        given = given.reshape(part.shape)
    part[...] = given


def online(method: Bone, state: State, x: Any = None, y: Any = 0.0) -> Online:
    """Prepare a method for events that come one at a time.

    The numbers are those of `method.step`; only the cost of a call is lower. Use `scan` for data that come in
    chunks: it is faster still.

    Args:
        method: From `filtax.method`.
        state: Where to start.
        x: An example of x, for its shape; features (D,) by default. Whole numbers stay such if the model needs them.
        y: An example of y, for its shape; a scalar by default.

    Returns:
        An object with `step(x, y)` and `state`.

    >>> import jax.numpy as jnp, filtax as fx
    >>> kf = fx.method("LG+C-Static", model=fx.models.linear(noise=1.0))
    >>> fast = online(kf, kf.init(mean=jnp.zeros(2), cov=1.0))
    >>> event = fast.step([1.0, 0.0], 2.0)
    >>> float(event.mean), float(event.var)
    (0.0, 2.0)
    """
    if not isinstance(method, Bone):
        raise ValueError(f"online(method=...) must come from filtax.method, got {type(method).__name__}.")
    checks.check_state("online", state, method)
    if method.auxiliary.grows:
        raise ValueError(
            f"online({method.name}): a bank that grows has no fixed shape; give {method.auxiliary.name}[K] with a "
            "number K of hypotheses to keep."
        )
    no_x = x is None and not isinstance(method.model.predictor, Direct)
    x, y = checks.arrays(x=np.zeros(state.initial.mean.size) if no_x else x, y=y)
    try:
        return Online(method, with_memory(method, state, x, y), x, y)
    except Exception as error:  # whatever a model of the user's own says to features it was not made for
        if not no_x:
            raise
        raise ValueError(
            f"online: x was omitted, and the model does not take features ({x.size},) ({shorten(str(error), 120)}); "
            "give an example of x, such as online(method, state, x=X[0])."
        ) from error
