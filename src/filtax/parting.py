"""A program for many streams in two: what they all share, and what differs between them.

What comes first needs nothing of the second, so that a loop over it can run ahead: once for all streams, with small
arrays only. The second reads what it needs of it from a list. (The gains of a Kalman filter do not depend on the data,
so that its covariances are such a first part.)
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, jaxpr_as_fun

__all__ = ["Parts", "bind", "laid_open", "parted", "program"]

VIEWS = frozenset("broadcast_in_dim convert_element_type reshape slice squeeze transpose".split())


@dataclass(frozen=True)
class Parts:
    """Two programs in place of one.

    Attributes:
        alike: From the arguments that are shared to the results that are, and then to what the other part reads.
        other: From what it reads of the first, and the arguments that differ, to the results that do.
        read: Of each array that it reads, which argument it is; -1 if it is none of them.
        differs: Which results of the whole differ.
    """

    alike: ClosedJaxpr
    other: ClosedJaxpr
    read: list[int]
    differs: list[bool]


def parted(jaxpr: ClosedJaxpr, differs: Sequence[bool], asked: Sequence[bool]) -> Parts:
    """Divide a program by what depends on arguments that differ; results that are `asked` for come from the other part.

    >>> import jax.numpy as jnp
    >>> whole = jax.make_jaxpr(lambda a, b: (a + 1.0, jnp.sin(a) * b))(1.0, 1.0)
    >>> parts = parted(whole, [False, True], [False, False])
    >>> [part.jaxpr.eqns[-1].primitive.name for part in (parts.alike, parts.other)], parts.read, parts.differs
    (['sin', 'mul'], [-1], [False, True])
    """
    pairs = lambda values: list(zip(values, differs, strict=True))  # noqa: E731
    opened = lambda *values: [value for value, _ in _opened(jaxpr.jaxpr, jaxpr.consts, pairs(values))]  # noqa: E731
    flat = jax.make_jaxpr(opened)(*jaxpr.in_avals)
    given, results = flat.jaxpr.invars, flat.jaxpr.outvars
    lane = {var for var, there in zip(given, differs, strict=True) if there}
    first, second = [], []
    for eqn in flat.jaxpr.eqns:
        later = not lane.isdisjoint(_vars(eqn.invars))
        (second if later else first).append(eqn)
        lane.update(eqn.outvars if later else ())
    found = [want or not lane.isdisjoint(_vars([atom])) for atom, want in zip(results, asked, strict=True)]
    ends = [atom for atom, there in zip(results, found, strict=True) if there]
    second = [*_views(first, {*_vars(ends), *(var for eqn in second for var in _vars(eqn.invars))}), *second]
    made = {var for eqn in second for var in eqn.outvars} | lane | set(flat.jaxpr.constvars)
    wanted = [*(var for eqn in second for var in _vars(eqn.invars)), *_vars(ends)]
    read = list(dict.fromkeys(var for var in wanted if var not in made))
    shared = [atom for atom, there in zip(results, found, strict=True) if not there]
    before, after = (
        [var for var, there in zip(given, differs, strict=True) if there == side] for side in (False, True)
    )
    alike = program(flat, before, [*shared, *read], first)
    place = {var: at for at, var in enumerate(given)}
    return Parts(alike, program(flat, [*read, *after], ends, second), [place.get(var, -1) for var in read], found)


def program(whole: ClosedJaxpr, invars: Sequence, outvars: Sequence, eqns: Sequence | None = None) -> ClosedJaxpr:
    """The same with other arguments and results, all of which it must know; and with other operations, if given.

    >>> import jax.numpy as jnp
    >>> whole = jax.make_jaxpr(lambda a, b: (a, b))(1.0, 2)
    >>> jaxpr_as_fun(program(whole, whole.jaxpr.invars[::-1], whole.jaxpr.outvars[:1]))(2, 1.0)
    [1.0]
    """
    inner = whole.jaxpr
    info = inner.debug_info._replace(arg_names=("",) * len(invars), result_paths=("",) * len(outvars))
    eqns = inner.eqns if eqns is None else list(eqns)
    return ClosedJaxpr(
        inner.replace(invars=list(invars), outvars=list(outvars), eqns=eqns, debug_info=info), whole.consts
    )


def laid_open(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The same program with its constants as first arguments.

    >>> import jax.numpy as jnp
    >>> held = jnp.ones(2)
    >>> [one.shape for one in laid_open(jax.make_jaxpr(lambda a: a * held)(1.0)).in_avals]
    [(2,), ()]
    """
    inner = closed.jaxpr
    info = inner.debug_info._replace(arg_names=("",) * (len(inner.constvars) + len(inner.invars)))
    return ClosedJaxpr(inner.replace(constvars=[], invars=[*inner.constvars, *inner.invars], debug_info=info), [])


def bind(eqn: JaxprEqn, given: Sequence) -> Sequence[Any]:
    """An operation of a program, on other values.

    >>> import jax.numpy as jnp
    >>> bind(jax.make_jaxpr(jnp.sin)(1.0).eqns[0], [jnp.zeros(2)])[0].tolist()
    [0.0, 0.0]
    """
    bound = eqn.primitive.get_bind_params(eqn.params)
    functions, params = bound if isinstance(bound, tuple) else ((), bound)  # older versions of JAX tell two things
    made = eqn.primitive.bind(*functions, *given, **params)
    return made if eqn.primitive.multiple_results else [made]


def _opened(jaxpr: Jaxpr, consts: Sequence, given: Sequence[tuple[Any, bool]]) -> list[tuple[Any, bool]]:
    """Values, and whether they differ, without operations that read both: an inner program is divided itself."""
    known: dict[Any, tuple[Any, bool]] = dict(zip(jaxpr.constvars, ((value, False) for value in consts), strict=True))
    known.update(zip(jaxpr.invars, given, strict=True))
    read = lambda atom: (atom.val, False) if isinstance(atom, Literal) else known[atom]  # noqa: E731
    for eqn in jaxpr.eqns:
        values = [read(atom) for atom in eqn.invars]
        there = [differs for _, differs in values]
        way = _MIXED.get(eqn.primitive.name) if any(there) and not all(there) else None
        made = way(eqn, values) if way else [(value, any(there)) for value in bind(eqn, [v for v, _ in values])]
        known.update(zip(eqn.outvars, made, strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def _divided(eqn: JaxprEqn, values: Sequence[tuple[Any, bool]]) -> list[tuple[Any, bool]]:
    """A call becomes two: what is kept apart by it stays so."""
    there = [differs for _, differs in values]
    parts = parted(eqn.params["jaxpr"], there, [False] * len(eqn.outvars))
    first, own = parts.alike.jaxpr, len(parts.alike.jaxpr.outvars) - len(parts.read)
    new = [*first.outvars[:own], *(var for var, at in zip(first.outvars[own:], parts.read, strict=True) if at < 0)]
    alike = jaxpr_as_fun(program(parts.alike, first.invars, new))
    made = jax.jit(alike)(*(value for value, differs in values if not differs))
    later = iter(made[own:])
    read = [next(later) if at < 0 else values[at][0] for at in parts.read]
    rest = jax.jit(jaxpr_as_fun(parts.other))(*read, *(value for value, differs in values if differs))
    both = {False: iter(made), True: iter(rest)}
    return [(next(both[differs]), differs) for differs in parts.differs]


def _passed(eqn: JaxprEqn, values: Sequence[tuple[Any, bool]]) -> list[tuple[Any, bool]]:
    """What is kept apart is what differs."""
    sizes = [size for size, (_, differs) in zip(eqn.params["made"], values, strict=True) if differs]
    kept = eqn.primitive.bind(*(value for value, differs in values if differs), **eqn.params | {"made": tuple(sizes)})
    return [(kept.pop(0) if differs else value, differs) for value, differs in values]


_MIXED = {"jit": _divided, "kept_apart": _passed}  # a function that has a slope of its own stays whole


def _views(eqns: Sequence[JaxprEqn], wanted: set) -> list[JaxprEqn]:
    """Those that only show parts of an array, where such a part is wanted: to take it again is cheaper than a list."""
    found = []
    for eqn in reversed(eqns):
        if eqn.primitive.name in VIEWS and not wanted.isdisjoint(eqn.outvars):
            wanted.update(_vars(eqn.invars))
            found.append(eqn)
    return found[::-1]


def _vars(atoms: Iterable[Any]) -> list[Any]:
    return [atom for atom in atoms if not isinstance(atom, Literal)]
