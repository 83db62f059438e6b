"""A loop over rows in which vmapped streams lie side by side, as the lanes of vector instructions.

`jax.vmap` of `jax.lax.scan` puts the axis of the streams first. The arrays of a small filter then end in axes of two or
four numbers, which a CPU works through one by one. Here it is put last: every operation of the loop runs along the
streams, whose numbers are neighbours in memory. Which axis it is changes no result, and what the streams share (the
covariance of a linear model, say) is still computed once.

Where they share most of what is carried on, that runs ahead in a loop of its own, and the streams follow.

A loop that is not vmapped, that is differentiated, that carries large arrays, or whose types tell what differs between
devices (those of a `jax.shard_map` with `check_vma`), is that of `jax.lax.scan`. On a CPU it
is one kernel, with all that is done before it, if its arrays are small: as many kernels a row as it has operations cost
ten times what a filter of four parameters has to compute.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, Primitive, jaxpr_as_fun
from jax.interpreters import ad, batching, mlir, partial_eval
from jaxtyping import Array, PyTree

from filtax.calls import alone, chosen, in_one
from filtax.parting import laid_open, parted, program
from filtax.sideways import ELEMENTWISE, sideways, spread_out
from filtax.slopes import along

__all__ = ["SMALL", "plain", "scan"]

WIDE = 16  # streams from which on they fill the lanes
ONE = 8192  # numbers in an array up to which a loop is faster as one kernel than as many on all cores
SMALL = 128  # numbers in an array of one stream up to which its own axes are too short to run along
SUMS, SUMMED = ("reduce_max", "reduce_min", "reduce_sum"), 2048  # of 4096 numbers and more XLA leaves to a library
PLAIN = ELEMENTWISE | frozenset(
    "broadcast_in_dim by_streams concatenate custom_jvp_call dynamic_slice iota jit kept_apart pad reduce_and "
    "reduce_max reduce_min reduce_or reduce_prod reduce_sum reshape slice squeeze stack transpose".split()
)  # what XLA's CPU compiler writes out itself


def scan(body: Callable, carry: PyTree, rows: PyTree) -> tuple[PyTree, PyTree]:
    """As `jax.lax.scan(body, carry, rows)`.

    >>> total = lambda at, row: (at + row, at)
    >>> last, seen = jax.vmap(lambda rows: scan(total, jnp.zeros(()), rows))(jnp.ones((2, 3)))
    >>> last.tolist(), seen.tolist()
    ([3.0, 3.0], [[0.0, 1.0, 2.0], [0.0, 1.0, 2.0]])
    """
    leaves, given = jax.tree.flatten((carry, rows))
    carried = len(jax.tree.leaves(carry))
    if axes := frozenset().union(*map(_varying, leaves)):
        return jax.lax.scan(body, jax.tree.map(partial(_differing, axes=axes), carry), rows)
    first = [*leaves[:carried], *map(_row, leaves[carried:])]
    made: list[Any] = []

    def flat(*leaves: Array) -> list[Array]:
        found, structure = jax.tree.flatten(body(*given.unflatten(leaves)))
        made.append(structure)
        return found

    closed = jax.make_jaxpr(flat)(*first)
    how = {"jaxpr": laid_open(closed), "shared": len(closed.consts), "carried": carried}
    found = list(_rows.bind(*closed.consts, *leaves, **how, length=leaves[carried].shape[0]))
    for i, (new, old) in enumerate(zip(closed.jaxpr.outvars[:carried], closed.jaxpr.invars, strict=False)):
        found[i] = leaves[i] if new is old else found[i]  # what no row touches need not come out of the loop
    return made[-1].unflatten(found)


def _varying(value: Any) -> frozenset[str]:
    """Axes of a `jax.shard_map` along which a value may differ; JAX has moved the name they go by."""
    told = jax.typeof(value)
    return frozenset(getattr(getattr(told, "mat", told), "varying", getattr(told, "vma", ())))


def _differing(value: Array, axes: frozenset[str]) -> Array:
    """The same on each device of a `jax.shard_map` as one that may differ: what is carried on comes to differ."""
    alike = tuple(sorted(axes - _varying(value)))
    return jax.lax.pcast(value, alike, to="varying") if alike else value


def _row(rows: Any) -> Any:
    return jax.ShapeDtypeStruct(rows.shape[1:], rows.dtype)


_rows = Primitive("rows")
_rows.multiple_results = True


def _loop(*given: Any, jaxpr: ClosedJaxpr, shared: int, carried: int, length: int) -> list[Array]:
    """The loop, of arrays: those that all rows share, those carried on, and the rows."""
    step = jaxpr_as_fun(jaxpr)

    def body(carry: list, row: list) -> tuple[list, list]:
        found = step(*given[:shared], *carry, *row)
        return found[:carried], found[carried:]

    last, kept = jax.lax.scan(body, list(given[shared : shared + carried]), list(given[shared + carried :]), length)
    return [*last, *kept]


@_rows.def_abstract_eval
def _shapes(*_: Any, jaxpr: ClosedJaxpr, shared: int, carried: int, length: int) -> list[Any]:
    made = jaxpr.out_avals
    return [*made[:carried], *(one.update(shape=(length, *one.shape)) for one in made[carried:])]


def _vmapped(given: Sequence[Any], axes: Sequence[Any], **how: Any) -> tuple[Sequence[Any], Any]:
    """The loop for all streams."""
    jaxpr, shared, carried = how["jaxpr"], how["shared"], how["carried"]
    size = next(value.shape[axis] for value, axis in zip(given, axes, strict=True) if axis is not None)
    usual = lambda: (jax.vmap(partial(_loop, **how), in_axes=list(axes))(*given), [0] * len(jaxpr.out_avals))  # noqa: E731
    numbers = [_numbers(one) for one in jaxpr.out_avals]
    if size < WIDE or max(numbers, default=0) > SMALL:
        return usual()
    # rows stay in the order of the streams outside, and are turned one by one: all at once they would leave the cache
    fixed = shared + carried
    place = [-1] * fixed + [1] * (len(given) - fixed)
    values = [v if axis is None else jnp.moveaxis(v, axis, at) for v, axis, at in zip(given, axes, place, strict=True)]
    differs = [axis is not None for axis in axes]
    while True:
        first = [*values[:fixed], *map(_row, values[fixed:])]
        step, found = _turning(jaxpr, differs, size, fixed, carried)
        wider = jax.make_jaxpr(step)(*first)
        grown = [i for i in range(carried) if found[i] and not differs[shared + i]]
        if not grown:
            break
        for i in grown:  # what begins alike and then differs
            at = shared + i
            differs[at], values[at] = True, spread_out(values[at], size)
    most = max(numbers[:carried], default=0)
    if not any(there for there, n in zip(found, numbers[:carried], strict=False) if n == most):
        held = [new if axis is None else old for old, new, axis in zip(given, values, axes, strict=True)]
        at = [v.ndim - 1 if axis is None and d else axis for v, axis, d in zip(held, axes, differs, strict=True)]
        return _in_turn(held, at, differs, **how) or usual()
    made = _rows.bind(*values, **{**how, "jaxpr": wider})
    at = lambda i: made[i].ndim - 1 if i < carried else 1  # noqa: E731
    return made, [at(i) if there else None for i, there in enumerate(found)]


def _in_turn(given: Sequence[Any], axes: Sequence[Any], differs: list[bool], **how: Any) -> Any:
    """First a loop over what all streams share, then one over the rest; None if the second would have much to read."""
    given, axes, differs, how = _stilled(given, axes, differs, how)
    shared, fixed, length = how["shared"], how["shared"] + how["carried"], how["length"]
    kept = [False] * (len(how["jaxpr"].out_avals) - how["carried"])
    parts = parted(how["jaxpr"], differs, [*differs[shared:fixed], *kept])
    first, second = parts.alike.jaxpr, parts.other.jaxpr
    of = lambda values, side: [value for value, there in zip(values, differs, strict=True) if there == side]  # noqa: E731
    asked = second.invars[: len(parts.read)]
    own = len(first.outvars) - len(asked)
    listed = [i for i, at in enumerate(parts.read) if at < 0 or shared <= at < fixed]  # anew in each turn
    new = [
        rows for rows, there in zip(given[fixed:], differs[fixed:], strict=True) if there
    ]  # what streams bring along
    if sum(_numbers(asked[i].aval) for i in listed) > sum(_numbers(rows) // max(length, 1) for rows in new):
        return None
    a, b = (part.count(False) for part in (differs[:shared], differs[shared:fixed]))
    ahead = program(parts.alike, first.invars, [*first.outvars[:own], *(first.outvars[own + i] for i in listed)])
    made = _rows.bind(*of(given, False), jaxpr=ahead, shared=a, carried=b, length=length)
    found = dict(zip(listed, made[own:], strict=True))
    read = [(var, found.get(i, given[at]), None) for i, (var, at) in enumerate(zip(asked, parts.read, strict=True))]
    still = [i for i, at in enumerate(parts.read) if 0 <= at < shared]
    theirs = list(zip(second.invars[len(asked) :], of(given, True), of(axes, True), strict=True))
    a, b = shared - a, fixed - a - b
    order = [*(read[i] for i in still), *theirs[:b], *(r for i, r in enumerate(read) if i not in still), *theirs[b:]]
    inputs, values, places = zip(*order, strict=True)
    rest = {"jaxpr": program(parts.other, inputs, second.outvars), "shared": a + len(still), "carried": b - a}
    both = {True: zip(*_vmapped(values, places, **rest, length=length), strict=True), False: ((v, None) for v in made)}
    return tuple(zip(*(next(both[there]) for there in parts.differs), strict=True))


def _stilled(given: Sequence, axes: Sequence, differs: Sequence[bool], how: dict) -> tuple[list, list, list, dict]:
    """The loop without what is the same in each turn and for each stream, which is done before it."""
    shared = how["shared"]
    moves = [there or i >= shared for i, there in enumerate(differs)]
    parts = parted(how["jaxpr"], moves, [True] * len(how["jaxpr"].out_avals))
    of = lambda values, side: [value for value, moving in zip(values, moves, strict=True) if moving == side]  # noqa: E731
    done = jaxpr_as_fun(parts.alike)(*of(given, False))
    how = {**how, "jaxpr": parts.other, "shared": len(done) + sum(moves[:shared])}
    return (
        [*done, *of(given, True)],
        [*[None] * len(done), *of(axes, True)],
        [*[False] * len(done), *of(differs, True)],
        how,
    )


def _numbers(value: Any) -> int:
    return math.prod(value.shape)


def _turning(
    jaxpr: ClosedJaxpr, differs: list[bool], size: int, fixed: int, carried: int
) -> tuple[Callable, list[bool]]:
    """The body for all streams: what is carried has their axis last, a row and what is kept of it have it first."""
    step, found = sideways(jaxpr, differs, size)
    turned = lambda value, there, old, new: jnp.moveaxis(value, old, new) if there else value  # noqa: E731

    def run(*values: Any) -> list[Any]:
        rows = [turned(value, there, 0, -1) for value, there in zip(values[fixed:], differs[fixed:], strict=True)]
        made = step(*values[:fixed], *rows)
        kept = [turned(value, there, -1, 0) for value, there in zip(made[carried:], found[carried:], strict=True)]
        for i, differed in enumerate(differs[fixed - carried : fixed]):
            if differed and not found[i]:  # what differed and now is alike still has a place for each
                found[i], made[i] = True, spread_out(made[i], size)
        return [*made[:carried], *kept]

    return run, found


def _slopes(given: Sequence[Any], slopes: Sequence[Any], **how: Any) -> tuple[Sequence[Any], Sequence[Any]]:
    """The loop and its derivative along some of its arguments."""
    return along(partial(_loop, **how), given, slopes)


def _needed(used: list[bool], eqn: Any) -> tuple[list[bool], Any]:
    """The loop without what nobody reads of it."""
    shared, carried = eqn.params["shared"], eqn.params["carried"]
    if not any(used):
        return [False] * len(eqn.invars), None
    while True:  # what is carried is needed if it is read at the end, or in the next turn
        jaxpr, asked = partial_eval.dce_jaxpr(eqn.params["jaxpr"].jaxpr, used, [False] * len(eqn.invars))
        held = [a or b for a, b in zip(used[:carried], asked[shared : shared + carried], strict=True)]
        if held == used[:carried]:
            break
        used = [*held, *used[carried:]]
    instantiate = [False] * shared + held + [False] * (len(eqn.invars) - shared - carried)
    jaxpr, asked = partial_eval.dce_jaxpr(eqn.params["jaxpr"].jaxpr, used, instantiate)
    how = {"jaxpr": ClosedJaxpr(jaxpr, eqn.params["jaxpr"].consts), "shared": sum(asked[:shared]), "carried": sum(held)}
    pick = lambda atoms, there: [atom for atom, one in zip(atoms, there, strict=True) if one]  # noqa: E731
    new = eqn.replace(invars=pick(eqn.invars, asked), outvars=pick(eqn.outvars, used), params={**eqn.params, **how})
    return asked, new


def _written(context: Any, *given: Any, **how: Any) -> Any:
    """The loop for a CPU."""
    jaxpr, loop = how["jaxpr"], partial(_loop, **how)
    sized = all(map(_numbers, context.avals_in)) and all(_numbers(one) <= ONE for one in jaxpr.out_avals)
    write = (
        in_one(loop, unread=True)
        if sized and alone(context) and plain(jaxpr)
        else mlir.lower_fun(loop, multiple_results=True)
    )
    return write(context, *given)


def plain(closed: ClosedJaxpr) -> bool:
    """Whether a program, with those inside of it, is made of operations only that XLA's CPU compiler writes out itself.

    >>> plain(jax.make_jaxpr(jnp.sin)(1.0)), plain(jax.make_jaxpr(jnp.sort)(jnp.ones(2)))
    (True, False)
    """
    return all(_written_out(eqn) and all(map(plain, _within(eqn))) for eqn in closed.jaxpr.eqns)


def _written_out(eqn: Any) -> bool:
    name = eqn.primitive.name
    return name in PLAIN and (name not in SUMS or _numbers(eqn.invars[0].aval) <= SUMMED)


def _within(eqn: Any) -> list[ClosedJaxpr]:
    """Programs that an operation holds, and the one of two that it will choose."""
    held = [value for value in eqn.params.values() if isinstance(value, ClosedJaxpr)]
    if eqn.primitive.name != "by_streams":
        return held
    return [jax.make_jaxpr(chosen(eqn.invars[0].aval.shape, **eqn.params))(eqn.invars[0].aval)]


_rows.def_impl(lambda *given, **how: jax.jit(partial(_loop, **how))(*given))
batching.primitive_batchers[_rows] = _vmapped
partial_eval.dce_rules[_rows] = _needed
ad.primitive_jvps[_rows] = _slopes
mlir.register_lowering(_rows, mlir.lower_fun(_loop, multiple_results=True))
mlir.register_lowering(_rows, _written, platform="cpu")
