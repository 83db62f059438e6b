"""What XLA's CPU compiler is told, which changes no result: what to compute once, and how for many streams.

XLA merges what is cheap into everything that reads it. A product of small matrices that a wider one reads is then made
anew for each number of the wider one, and a filter of many streams spends most of its time so. The merging ends at the
borders of a call, if it stays one.

Whether it does is an attribute of the call: other devices do not see it, and a compiler that does not know it loses
time only. In a loop a single stream is compiled as if there were no call, and so is a shared matrix that multiplies
many vectors that lie one after the other: there is little to make anew, and each call is one kernel more. Not so at the
top of a program, such as that of one event: XLA counts its operations, those made anew with them, and from a thousand
on hands it to another thread, which costs as much as all the rest. (After `filtax.tune_xla` none is.)

A small loop can be one kernel (`in_one`). A call is then a jump inside of it, and nothing is made anew.
"""

import functools
import math
import os
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jaxtyping import Array, PyTree

__all__ = ["alone", "apart", "by_streams", "chosen", "in_one", "made_once", "tuned"]

MANY = 8  # streams from which on a call of its own is worth its price
TUNED = "xla_cpu_small_while_loop"  # a flag of processes in which no program goes to another thread


def apart(function: Callable[..., Any], *, single: bool = False) -> Callable[..., Any]:
    """Have the arrays that a function returns computed once, however many read them; with `single`, of one stream only.

    >>> import jax.numpy as jnp
    >>> apart(lambda a: 2.0 * a)(jnp.ones(3)).tolist()
    [2.0, 2.0, 2.0]
    """
    called = jax.jit(function)

    @functools.wraps(function)
    def run(*args: PyTree) -> PyTree:
        leaves, tree = jax.tree.flatten(called(*args))
        given, made = (tuple(map(jnp.size, jax.tree.leaves(arrays))) for arrays in (args, leaves))
        return jax.tree.unflatten(tree, _kept.bind(*leaves, given=given, made=made, single=single))

    return run


def made_once(array: Array) -> Array:
    """The same array, made before anything reads it: XLA would make it again for each number of what it is read by.

    A barrier does not stop it on a CPU; a call does.

    >>> made_once(jnp.ones(2)).tolist()
    [1.0, 1.0]
    """
    return _once.bind(_same(array))


@jax.jit
def _same(array: Array) -> Array:
    return array


def by_streams(
    few: Callable[[Array], Array],
    many: Callable[[Array], Array],
    made: tuple[int, ...],
    slope: Callable[[tuple, tuple], tuple] | None = None,
) -> Callable[[Array], Array]:
    """One of two ways to compute the same of one array: `few` for a single stream on a CPU, `many` for a batch.

    Which it is shows when the program is complete, and only that one is traced: so the shape that both have `made` of
    one array is told, and the dtype is that of the array. A `slope` takes arrays and tangents to values and tangents,
    as for `jax.custom_jvp`; without one it is that of `many`.

    >>> import jax.numpy as jnp
    >>> either = by_streams(lambda a: a + a, lambda a: 2.0 * a, (2,))
    >>> either(jnp.ones(2)).tolist(), jax.vmap(either)(jnp.ones((100, 2))).sum().item()
    ([2.0, 2.0], 400.0)
    """
    return lambda A: _either.bind(A, few=few, many=many, made=made, rank=A.ndim, slope=slope)


_either = Primitive("by_streams")


def _mapped(way: Callable, extra: int) -> Callable:
    return functools.reduce(lambda function, _: jax.vmap(function), range(extra), way)


@_either.def_impl
def _now(A: Array, **ways: Any) -> Array:
    return jax.jit(chosen(A.shape, **ways))(A)


@_either.def_abstract_eval
def _shape(A: Any, *, made: tuple[int, ...], rank: int, **_: Any) -> Any:
    return A.update(shape=(*A.shape[: A.ndim - rank], *made))


def _stacked(values: Sequence[Array], axes: Sequence[Any], **ways: Any) -> tuple[Array, int]:
    return _either.bind(jnp.moveaxis(values[0], axes[0], 0), **ways), 0


def _sloped(given: Sequence[Array], slopes: Sequence[Any], **ways: Any) -> tuple[Array, Array]:
    (A,), (dA,), slope = given, map(ad.instantiate_zeros, slopes), ways["slope"]
    one = lambda A, dA: slope((A,), (dA,)) if slope else jax.jvp(ways["many"], (A,), (dA,))  # noqa: E731
    return _mapped(one, A.ndim - ways["rank"])(A, dA)


def chosen(
    shape: tuple[int, ...], streams: int = 1, *, few: Callable, many: Callable, rank: int, **_: Any
) -> Callable[[Array], Array]:
    """The function that `by_streams` takes for an array of this shape, which `streams` have each, on a CPU.

    >>> ways = {"few": jnp.sin, "many": jnp.cos, "rank": 1}
    >>> [chosen((2,), streams, **ways).__name__ for streams in (1, 100)]
    ['sin', 'cos']
    """
    extra = len(shape) - rank
    return _mapped(many if streams * math.prod(shape[:extra]) >= MANY else few, extra)


def _chosen(context: Any, A: Any, **ways: Any) -> Any:
    """The way for as many streams as there are."""
    return mlir.lower_fun(chosen(context.avals_in[0].shape, **ways), multiple_results=False)(context, A)


def _batch(context: Any, A: Any, *, many: Callable, rank: int, **_: Any) -> Any:
    return mlir.lower_fun(_mapped(many, context.avals_in[0].ndim - rank), multiple_results=False)(context, A)


batching.primitive_batchers[_either] = _stacked
ad.primitive_jvps[_either] = _sloped
mlir.register_lowering(_either, _batch)
mlir.register_lowering(_either, _chosen, platform="cpu")


def tuned() -> bool:
    """Whether `filtax.tune_xla` has set up this process.

    >>> tuned()
    False
    """
    return TUNED in os.environ.get("XLA_FLAGS", "")


def alone(context: Any) -> bool:
    """Whether a program is written for one device: what several exchange cannot be part of a kernel."""
    axes = context.module_context.axis_context
    return (axes.mesh.size if hasattr(axes, "mesh") else getattr(axes, "num_devices", 1)) == 1


def in_one(function: Callable[..., list[Array]], *, unread: bool = False) -> Callable[..., Any]:
    """How to write a function of a program down such that XLA's CPU compiler makes one kernel of it.

    What it calls `apart` stays a call. It must be small, and hold nothing that needs a library: no dense product, no
    sort, no scatter, no random numbers. XLA's compiler breaks down on a kernel that does not read all of its arguments:
    if some may be `unread`, a number of each is looked at.

    >>> callable(in_one(lambda a: [a + 1.0]))
    True
    """
    called = jax.jit(lambda *args: [*function(*args), _looked_at(args)] if unread else function(*args))

    def write(context: Any, *given: Any) -> Any:
        before, made = _writing.set(True), len(context.avals_out)
        try:
            run = lambda *args: _one.bind(*called(*args))[:made]  # noqa: E731
            return mlir.lower_fun(run, multiple_results=True)(context, *given)
        finally:
            _writing.reset(before)

    return write


def _looked_at(given: Sequence[Array]) -> Array:
    """A number that takes one from each array."""
    return functools.reduce(jnp.add, [jnp.ravel(array)[0].astype(jnp.float32) for array in given])


_writing = ContextVar("in one kernel", default=False)
_one = Primitive("in_one")  # the identity, on all that one call has returned, as below
_one.multiple_results = True
_kept = Primitive("kept_apart")  # the same
_kept.multiple_results = True
_once = Primitive("made_once")  # the same, of one array


@_once.def_impl
@_once.def_abstract_eval
def _itself(value: Any) -> Any:
    return value


@_kept.def_impl
def _values(*values: Array, **_: Any) -> list[Array]:
    return list(values)


@_one.def_abstract_eval
@_kept.def_abstract_eval
def _shapes(*values: Any, **_: Any) -> list[Any]:
    return list(values)


def _batched(values: Sequence[Array], axes: Sequence[Any], **sizes: Any) -> tuple[list[Array], list[Any]]:
    return _kept.bind(*values, **sizes), list(axes)


def _differentiated(values: Sequence[Array], slopes: Sequence[Any], **sizes: Any) -> tuple[list[Array], list[Any]]:
    return _kept.bind(*values, **sizes), list(slopes)


def _transposed(slopes: Sequence[Any], *_: Any, **__: Any) -> list[Any]:
    return list(slopes)


def _lowered(_: Any, *values: Any, given: tuple[int, ...], made: tuple[int, ...], single: bool) -> list[Any]:
    """Mark the call that made the values, where most of what it was given differs between streams, or one has to be."""
    call = getattr(values[0].owner, "operation", None)
    if call is not None and call.name == "func.call":
        # a slope, or a constant that is handed over, adds arguments: then what was made has to tell
        asked = (call.operands, given) if len(call.operands) == len(given) else (values, made)
        few = _streams(values, made) < MANY and (_writing.get() or (_at_the_top() and not tuned()))
        if few or (not single and (_streams(*asked) >= MANY or _side_by_side(values, made))):
            _mark(call, inlineable="false")
    return list(values)


def _whole(_: Any, *values: Any, **attributes: str) -> list[Any]:
    """Mark the call that made the values as one that stays a call."""
    call = getattr(values[0].owner, "operation", None)
    if call is not None and call.name == "func.call":
        _mark(call, inlineable="false", **attributes)
    return list(values)


def _mark(call: Any, **attributes: str) -> None:
    texts: dict[str, Any] = {name: mlir.ir.StringAttr.get(text) for name, text in attributes.items()}
    call.attributes["mhlo.frontend_attributes"] = mlir.ir.DictAttr.get(texts)


def _at_the_top() -> bool:
    """Whether what is written now is done once in a program: outside of its loops and functions."""
    point: Any = mlir.ir.InsertionPoint.current
    within = point.block.owner.operation
    return within.name == "func.func" and mlir.ir.StringAttr(within.attributes["sym_name"]).value == "main"


def _streams(held: Sequence[Any], sizes: tuple[int, ...]) -> float:
    """How many streams the largest array is for; of equals, the one for most."""
    largest = max(sizes, default=0)
    return (
        max(math.prod(a.type.shape) / n for a, n in zip(held, sizes, strict=True) if n == largest) if largest else 0.0
    )


def _side_by_side(held: Sequence[Any], sizes: tuple[int, ...]) -> bool:
    """Whether the largest array has many streams as its last axis: then to make it anew is as dear as to make it."""
    streams = _streams(held, sizes)
    return streams >= MANY and any(a.type.shape[-1] == streams for a in held if a.type.shape)


batching.primitive_batchers[_kept] = _batched
batching.primitive_batchers[_once] = lambda values, axes: (_once.bind(*values), axes[0])
ad.deflinear2(_once, lambda slope, _: [slope])
ad.primitive_jvps[_kept] = _differentiated
ad.primitive_transposes[_kept] = _transposed
mlir.register_lowering(_one, functools.partial(_whole, xla_cpu_small_call="true"), cacheable=False)
mlir.register_lowering(_kept, lambda _, *values, **__: list(values))
mlir.register_lowering(_once, lambda _, value: [value])
mlir.register_lowering(_once, _whole, platform="cpu", cacheable=False)
mlir.register_lowering(_kept, _lowered, platform="cpu", cacheable=False)
