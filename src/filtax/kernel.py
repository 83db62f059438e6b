"""The program of one event, such that a call of it costs little: one kernel on a CPU, and hardly a constant.

At each call XLA wraps every array that is a constant of the program anew, and starts every kernel of it. A small filter
has some thirty of both, which take as long as its arithmetic. So its constants are handed over behind the datum, in an
array that travels anyway, and the rest is written as one kernel.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Primitive, jaxpr_as_fun
from jax.interpreters import mlir
from jaxtyping import Array

from filtax.calls import alone, in_one
from filtax.lanes import SMALL, plain
from filtax.parting import laid_open

__all__ = ["one_kernel"]

Run = Callable[[Array, Array], Array]


def one_kernel(run: Run, packed: Array, row: Array) -> tuple[np.ndarray, Run]:
    """What to put behind the row of an event, and the function of such a row that is one kernel.

    The function must use both of what it is given: XLA's compiler breaks down on a kernel that does not read all of its
    arguments. A program that is not small, or that needs a library (a dense product, say), stays as it is.

    >>> import jax.numpy as jnp
    >>> held = jnp.asarray([2.0, 3.0])
    >>> tail, kernel = one_kernel(lambda packed, row: packed + held * row, jnp.ones(2), jnp.ones(2))
    >>> tail.tolist(), kernel(jnp.ones(2), jnp.asarray([1.0, 1.0, *tail])).tolist()
    ([2.0, 3.0], [3.0, 4.0])
    """
    closed, size = jax.make_jaxpr(run)(packed, row), row.size
    small = packed.size <= SMALL and all(_fits(value, row.dtype) for value in closed.consts)
    if not (small and plain(closed)):
        return np.zeros(0, row.dtype), run
    held = [np.asarray(value) for value in closed.consts]
    stowed = [np.ravel(value).astype(row.dtype) for value in held if value.ndim]
    inner = jaxpr_as_fun(laid_open(closed))

    def whole(packed: Array, row: Array) -> list[Array]:
        return inner(*_taken(held, row[size:]), packed, row[:size])

    def kernel(packed: Array, row: Array) -> Array:
        return _event.bind(packed, row, jaxpr=jax.make_jaxpr(whole)(packed, row))[0]

    return np.concatenate([np.zeros(0, row.dtype), *stowed]), kernel


def _fits(value: Any, dtype: Any) -> bool:
    """Whether a constant can lie in a vector of the dtype, or is a single number."""
    number = value.ndim == 0 and isinstance(value.dtype, np.dtype)  # not a random key
    return number or (value.dtype in (dtype, bool) and value.size <= SMALL)


def _taken(held: Sequence[np.ndarray], tail: Array) -> list[Any]:
    """Arrays from the vector in which they lie one after the other; single numbers are part of the program."""
    found: list[Any] = []
    for value in held:
        if value.ndim:
            found.append(tail[: value.size].reshape(value.shape).astype(value.dtype))
            tail = tail[value.size :]
        else:
            found.append(value)
    return found


_event = Primitive("event")
_event.multiple_results = True


@_event.def_impl
def _now(*given: Array, jaxpr: ClosedJaxpr) -> list[Array]:
    return jax.jit(jaxpr_as_fun(jaxpr))(*given)


@_event.def_abstract_eval
def _shapes(*_: Any, jaxpr: ClosedJaxpr) -> Any:
    return jaxpr.out_avals


def _written(context: Any, *given: Any, jaxpr: ClosedJaxpr) -> Any:
    return mlir.lower_fun(jaxpr_as_fun(jaxpr), multiple_results=True)(context, *given)


def _in_one(context: Any, *given: Any, jaxpr: ClosedJaxpr) -> Any:
    return (in_one(jaxpr_as_fun(jaxpr)) if alone(context) else partial(_written, jaxpr=jaxpr))(context, *given)


mlir.register_lowering(_event, _written)
mlir.register_lowering(_event, _in_one, platform="cpu", cacheable=False)
