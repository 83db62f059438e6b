"""How a method and a state pass into a compiled function and out again: taken apart once, not at every event.

JAX takes each argument apart into arrays before it can call anything. For a method and its state that costs as much as
a step of a small filter. So a method remembers its arrays, a state that came out of `step` or `scan` remembers those it
was put together from, and the structure of both travels as one object that is known by its identity.

What is remembered lies in slots, which are no fields: it is never stored, copied, compared or differentiated.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import jax
from jaxtyping import Array

from filtax.module import Module
from filtax.state import Info, State, usual

__all__ = ["Parts", "Passage", "remembered", "seen", "take_apart"]

_bare, _put = object.__new__, object.__setattr__
COUNTERS = 4  # t, began, refused and strain follow the arrays of the bank


class Passage:
    """The structure of a method and of its states; equal structures share one, so it is hashed by identity.

    >>> import jax.numpy as jnp, filtax as fx
    >>> build = lambda noise: fx.method("LG+C-Static", model=fx.models.linear(noise=noise))
    >>> one, two = (take_apart(kf, kf.init(mean=jnp.zeros(2))) for kf in (build(1.0), build(2.0)))
    >>> one[0] is two[0]
    True
    """

    __slots__ = ("_bank", "_built", "_fixed", "_grows", "_quiet", "method")

    def __init__(self, method: Any, hypotheses: Any, fixed: Any, grows: bool, dtype: Any):
        self.method, self._bank, self._fixed, self._grows = method, hypotheses, fixed, grows
        self._quiet = {**vars(Info()), **usual(dtype)}
        self._built = _builder(hypotheses.unflatten(map(_Place, range(hypotheses.num_leaves)))) or hypotheses.unflatten

    def enter(self, leaves: list, moving: list, fixed: list) -> tuple[Any, State]:
        """The method and the state, put together."""
        initial, key, layout = self._fixed.unflatten(fixed)
        t, began, refused, conditioning_ratio = moving[-COUNTERS:]
        hypotheses = self._bank.unflatten(moving[:-COUNTERS])
        return self.method.unflatten(leaves), State(
            hypotheses, initial, t, began, refused, conditioning_ratio, key, layout
        )

    def leave(self, moving: list, carry: tuple) -> list:
        """The arrays that a tick left; None for one that it did not touch, which need not travel."""
        hypotheses, *counters = carry
        return [
            None if new is old else new
            for new, old in zip((*self._bank.flatten_up_to(hypotheses), *counters), moving, strict=True)
        ]

    def later(self, state: State, moving: list, fixed: list, moved: list) -> State:
        """The state some ticks later, with what it was put together from; no constructor, as in `State.after`."""
        for place, new in enumerate(moved):
            if new is None:
                moved[place] = moving[place]
        *hypotheses, t, began, refused, conditioning_ratio = moved
        after = _bare(State)
        new = {**state.__dict__, "hypotheses": self._built(hypotheses)}
        new["t"], new["began"], new["refused"], new["conditioning_ratio"] = t, began, refused, conditioning_ratio
        _put(after, "__dict__", new)
        if not self._grows:  # a bank that grows must be looked at: it may have to, now
            _put(after, "_parts", (self, moved, fixed))
        return after

    def told(self, values: dict[str, Array]) -> Info:
        """`Info` of what travelled; the rest is as usual."""
        return seen(values, self._quiet)


class _Place(int):
    """Where an array of a flattened bank stands."""


def _builder(example: Any) -> Callable[[list], Any] | None:
    """A function that puts arrays in their places, as JAX does in twice the time; None if some lie in no module."""
    if not isinstance(example, Module):
        return None
    kind, fields = type(example), vars(example)
    places = [(name, int(value)) for name, value in fields.items() if type(value) is _Place]
    inner = [(name, value) for name, value in fields.items() if type(value) is not _Place and _moves(value)]
    parts: list[tuple[str, Any]] = [(name, _builder(value)) for name, value in inner]
    if any(part is None for _, part in parts):
        return None

    def build(arrays: list) -> Any:
        made, new = _bare(kind), fields.copy()
        for name, place in places:
            new[name] = arrays[place]
        for name, part in parts:
            new[name] = part(arrays)
        _put(made, "__dict__", new)
        return made

    return build


def _moves(value: Any) -> bool:
    return any(type(leaf) is _Place for leaf in jax.tree.leaves(value))


Parts = tuple[Passage, list, list, list]


def remembered(method: Any, state: Any) -> Parts | None:
    """The parts of a state that `step` or `scan` of such a method made; None if it must be looked at and taken apart.

    >>> import jax.numpy as jnp, filtax as fx
    >>> kf = fx.method("LG+C-Static", model=fx.models.linear(noise=1.0))
    >>> state = kf.init(mean=jnp.zeros(2))
    >>> remembered(kf, state) is None, remembered(kf, kf.step(state, jnp.ones(2), 1.0)[0]) is None
    (True, False)
    """
    known = getattr(state, "_parts", None)
    if known is None:
        return None
    passage, moving, fixed = known
    leaves, structure = getattr(method, "_arrays", None) or _arrays(method)
    return (passage, leaves, moving, fixed) if structure is passage.method else None


def take_apart(method: Any, state: State) -> Parts:
    """The structure of a method and a state, and their arrays: of the method, those that move, and the others.

    >>> import jax.numpy as jnp, filtax as fx
    >>> kf = fx.method("LG+C-Static", model=fx.models.linear(noise=1.0))
    >>> [len(part) for part in take_apart(kf, kf.init(mean=jnp.zeros(2)))[1:]]
    [1, 7, 2]
    """
    leaves, structure = _arrays(method)
    hypotheses, shape = jax.tree.flatten(state.hypotheses)
    rest, others = jax.tree.flatten((state.initial, state.key, state.layout))
    grows = method.auxiliary.slots_needed(0) is not None
    passage = _passage(structure, shape, others, grows, state.initial.mean.dtype)
    return passage, leaves, [*hypotheses, state.t, state.began, state.refused, state.conditioning_ratio], rest


def seen(values: dict[str, Array], others: dict[str, Any] = vars(Info())) -> Info:  # noqa: B008
    """`Info` of these fields, and of others told elsewhere; no constructor, whose checks cost more than a tick.

    >>> seen({}).trust is None
    True
    """
    info = _bare(Info)
    _put(info, "__dict__", {**others, **values})
    return info


def _arrays(method: Any) -> tuple[list, Any]:
    """The arrays of a method and its structure; those of equal structure are one object."""
    known = getattr(method, "_arrays", None)
    if known is None:
        leaves, structure = jax.tree.flatten(method)
        known = leaves, _same(structure)
        object.__setattr__(method, "_arrays", known)
    return known


@cache
def _same(structure: Any) -> Any:
    return structure


@cache
def _passage(method: Any, hypotheses: Any, fixed: Any, grows: bool, dtype: Any) -> Passage:
    return Passage(method, hypotheses, fixed, grows, dtype)
