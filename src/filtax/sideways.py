"""A program for one stream, turned into one for many whose axis is the last of every array.

An axis behind all others leaves the numbering of the others as it is, so that most operations need no more than a
longer shape. `jax.vmap` moves the axis to the front at every change of shape; what is not known here is left to it.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal
from jaxtyping import Array

from filtax.calls import chosen
from filtax.parting import bind

__all__ = ["ELEMENTWISE", "sideways", "spread_out"]

ELEMENTWISE = frozenset(
    "abs add and atan2 cbrt ceil clamp convert_element_type copy cos cosh digamma div eq erf erf_inv erfc exp exp2 "
    "expm1 floor ge gt integer_pow is_finite le lgamma log log1p logistic lt max min mul ne neg nextafter not or pow "
    "real rem round rsqrt select_n shift_left shift_right_arithmetic shift_right_logical sign sin sinh sqrt square "
    "stop_gradient sub tan tanh xor".split()
)
AS_IT_IS = frozenset(
    "argmax argmin cummax cummin cumsum kept_apart reduce_and reduce_max reduce_min reduce_or reduce_prod "
    "reduce_sum rev squeeze".split()
)


def sideways(jaxpr: ClosedJaxpr, differs: Sequence[bool], size: int) -> tuple[Callable, list[bool]]:
    """A function of arrays of `size` streams, where they differ, and a list that it fills: which results differ.

    >>> program = jax.make_jaxpr(lambda a, b: (a[0] * b, a + 1.0))(jnp.ones(3), jnp.ones(2))
    >>> run, found = sideways(program, [False, True], 5)
    >>> [value.shape for value in run(jnp.ones(3), jnp.ones((2, 5)))], found
    ([(2, 5), (3,)], [True, False])
    """
    found: list[bool] = []

    def run(*values: Any) -> list[Any]:
        made, found[:] = _evaluate(jaxpr.jaxpr, jaxpr.consts, values, differs, size)
        return made

    return run, found


def _evaluate(
    jaxpr: Jaxpr, consts: Sequence, values: Sequence, differs: Sequence[bool], size: int
) -> tuple[list[Any], list[bool]]:
    known: dict[Any, tuple[Any, bool]] = {}
    known.update(zip(jaxpr.constvars, ((value, False) for value in consts), strict=True))
    known.update(zip(jaxpr.invars, zip(values, differs, strict=True), strict=True))
    read = lambda atom: (atom.val, False) if isinstance(atom, Literal) else known[atom]  # noqa: E731
    for eqn in jaxpr.eqns:
        given, there = zip(*map(read, eqn.invars), strict=True) if eqn.invars else ((), ())
        made, differ = _equation(eqn, given, there, size) if any(there) else (bind(eqn, given), None)
        known.update(zip(eqn.outvars, zip(made, differ or [False] * len(made), strict=True), strict=True))
    made, differ = zip(*map(read, jaxpr.outvars), strict=True)
    return list(made), list(differ)


def _equation(eqn: JaxprEqn, given: Sequence, there: Sequence[bool], size: int) -> tuple[Sequence[Any], Sequence[bool]]:
    aval: Any = eqn.outvars[0].aval
    name, shape = eqn.primitive.name, aval.shape
    if name == "jit":
        step, found = sideways(eqn.params["jaxpr"], there, size)
        return jax.jit(step)(*given), found
    if name == "custom_jvp_call":
        return _ruled(eqn, given, there, size)
    if name == "by_streams":
        return _of_one(eqn, given[0], size)
    if name in ELEMENTWISE:
        given = [_spread(value, differs, shape, size) for value, differs in zip(given, there, strict=True)]
        return _bound(eqn, given)
    if name in AS_IT_IS:
        made, _ = _bound(eqn, given)
        return made, list(there) if name == "kept_apart" else [True] * len(made)
    if name == "concatenate":
        given = [_spread(v, differs, v.shape[: len(shape)], size) for v, differs in zip(given, there, strict=True)]
        return _bound(eqn, given)
    return _shaped(eqn, given, there, size) or _mapped(eqn, given, there)


def _spread(value: Any, differs: bool, shape: tuple[int, ...], size: int) -> Any:
    """An operand in the shape of the result."""
    if differs and value.ndim == len(shape) + 1:
        return value
    own = range(jnp.ndim(value))  # as many axes as the result has, or none
    return jax.lax.broadcast_in_dim(value, (*shape, size), (len(shape),) if differs else tuple(own))


def _bound(eqn: JaxprEqn, given: Sequence, **changed: Any) -> tuple[Sequence[Any], Sequence[bool]]:
    made = eqn.primitive.bind(*given, **{**eqn.params, **changed})
    made = made if eqn.primitive.multiple_results else [made]
    return made, [True] * len(made)


def _shaped(eqn: JaxprEqn, given: Sequence, there: Sequence[bool], size: int) -> Any:
    """Operations that say a shape, which gets longer by the streams; None if it is another one."""
    name, p, first = eqn.primitive.name, eqn.params, given[0]
    if name == "broadcast_in_dim" and len(given) == 1:
        axes = (*p["broadcast_dimensions"], len(p["shape"]))
        return _bound(eqn, given, shape=(*p["shape"], size), broadcast_dimensions=axes)
    if name == "reshape" and p.get("dimensions") is None:
        return _bound(eqn, given, new_sizes=(*p["new_sizes"], size))
    if name == "transpose":
        return _bound(eqn, given, permutation=(*p["permutation"], first.ndim - 1))
    if name == "slice":
        strides = None if p["strides"] is None else (*p["strides"], 1)
        ends = (*p["limit_indices"], size)
        return _bound(eqn, given, start_indices=(*p["start_indices"], 0), limit_indices=ends, strides=strides)
    if name == "dynamic_slice" and there[0] and not any(there[1:]):
        zero = jnp.zeros_like(given[1]) if len(given) > 1 else jnp.int32(0)
        return _bound(eqn, [*given, zero], slice_sizes=(*p["slice_sizes"], size))
    return None


def _mapped(eqn: JaxprEqn, given: Sequence, there: Sequence[bool]) -> tuple[Sequence[Any], Sequence[bool]]:
    """As `jax.vmap` has it, with the axis in front for the while: not every rule of JAX bears it at the end."""
    axes = tuple(0 if differs else None for differs in there)
    front = [jnp.moveaxis(value, -1, 0) if differs else value for value, differs in zip(given, there, strict=True)]
    made = jax.vmap(lambda *values: bind(eqn, values), in_axes=axes)(*front)
    return [jnp.moveaxis(value, 0, -1) for value in made], [True] * len(made)


def spread_out(value: Any, size: int) -> Array:
    """What all streams share, with a place for each.

    >>> spread_out(2.0, 3).tolist()
    [2.0, 2.0, 2.0]
    """
    value = jnp.asarray(value)  # it may be a number that stands in the program itself
    return jnp.broadcast_to(value[..., None], (*value.shape, size))


def _ruled(eqn: JaxprEqn, given: Sequence, there: Sequence[bool], size: int) -> tuple[Sequence[Any], Sequence[bool]]:
    """A function that has a slope of its own keeps it."""
    step, found = sideways(eqn.params["call_jaxpr"], there, size)

    def whole(*values: Any) -> list[Any]:
        made = zip(step(*values), found, strict=True)
        return [one if differs else spread_out(one, size) for one, differs in made]

    run = jax.custom_jvp(whole)
    run.defjvp(lambda values, slopes: jax.jvp(lambda *values: _mapped(eqn, values, there)[0], values, slopes))
    made = run(*given)
    return made, [True] * len(made)


def _of_one(eqn: JaxprEqn, A: Any, size: int) -> tuple[Sequence[Any], Sequence[bool]]:
    """The way that suits many streams, seen as a program for one."""
    shape = A.shape[:-1]
    program = jax.make_jaxpr(chosen(shape, size, **eqn.params))(jax.ShapeDtypeStruct(shape, A.dtype))
    step, found = sideways(program, [True], size)
    return step(A), found
