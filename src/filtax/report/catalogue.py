"""The parts a method's name can be made of, and the published methods they make, read off the code itself."""

import inspect
import re
from collections.abc import Callable
from typing import Any

from filtax import _validation as checks
from filtax.methods import PUBLISHED, REFERENCES, Published, source
from filtax.methods._parse import AUXILIARIES, POSTERIORS, PRIORS, TRUSTS, method, written
from filtax.models import linear

__all__ = ["catalogue", "describe", "published"]


def catalogue() -> list[tuple[str, str, str]]:
    """List every part of the grammar: its choice, how it is written with its settings, and what it does.

    >>> [how for choice, how, what in catalogue() if choice == "prior"][:2]
    ['Static', 'ACI(q=...)']
    """
    rooms = {"trust": TRUSTS, "posterior": POSTERIORS, "auxiliary": AUXILIARIES, "prior": PRIORS}
    return [
        (choice, _written(name, build), _meaning(build))
        for choice, room in rooms.items()
        for name, build in room.items()
    ]


def published() -> list[tuple[str, ...]]:
    """List the published methods: name, task, changes, and the choices M.2, M.3, A.1, A.2.

    Where another posterior is built unless `posterior=` is given, it stands in parentheses behind the published one.

    >>> published()[5]
    ('adams_mackay_2007', 'segmentation', 'abrupt', 'RL', 'PR', 'Cj (LG)', 'DA[inf]')
    """
    return [(name, *row[1:5], _built(row), row.weighting) for name, row in PUBLISHED.items()]


def _built(row: Published) -> str:
    """The published posterior, and the one that is built by default if it is another."""
    parameter = inspect.signature(row.build).parameters.get("posterior")
    default = row.posterior if parameter is None else parameter.default
    return row.posterior if default == row.posterior else f"{row.posterior} ({default})"


def describe(name: str) -> str:
    """Say of one published method who proposed it, its parts, its parameters and whence their defaults, its reference.

    Of a name that is made of parts, what they are; defaults are filled in.

    >>> print(describe("titsias_2023").splitlines()[0])
    Titsias et al. (2023): keep the share of the belief under which the datum is most probable.
    >>> print(describe("LG+RL[1]-OUPR").splitlines()[0])
    LG+RL[1]-OUPR(hazard=0.01)
    """
    if name not in PUBLISHED:
        return _composed(name)
    row = PUBLISHED[name]
    about = (inspect.getdoc(row.build) or "").splitlines()[0]
    parts = [f"  {role:<10} {value}" for role, value in zip(row._fields[3:], row[3:], strict=True)]
    parameters = inspect.signature(row.build).parameters.values()
    shown = [f"  {parameter.name}{_default(name, parameter)}" for parameter in parameters]
    use = f"filtax.methods.{name}(model, ...) takes"
    task = f"  {'task':<10} {row.task}; changes: {row.changes}"
    return "\n".join([about, task, *parts, use, *shown, REFERENCES[name]])


def _composed(name: str) -> str:
    """The parts of a name in the grammar, each with a sentence."""
    if not re.search(r"[-+\[]", name):
        raise ValueError(f"no published method {name!r}. {checks.nearest(name, PUBLISHED)}")
    made = method(name, model=linear(noise=1.0))
    rooms = {"A.1": made.posterior, "M.2": made.auxiliary, "M.3": made.prior}
    told = [f"  {role:<10} {part.name}: {_meaning(type(part))}" for role, part in rooms.items()]
    return "\n".join([made.name, *told, f'use: filtax.method("{name}", model=...)'])


def _default(name: str, parameter: inspect.Parameter) -> str:
    if parameter.default is parameter.empty:
        return "  (must be given)"
    return f" = {parameter.default!r}  ({source(name, parameter.name)})"


def _written(name: str, build: Callable[..., Any]) -> str:
    parameters = inspect.signature(build).parameters
    shown = [
        f"{key}={'...' if (default := parameters[key].default) is inspect.Parameter.empty else default}"
        for key in written(parameters)
    ]
    name = f"{name}[K]" if "keep" in parameters else name
    return f"{name}({', '.join(shown)})" if shown else name


def _meaning(build: Callable[..., Any]) -> str:
    """First line of the docstring."""
    return (inspect.getdoc(build) or "").partition("\n")[0]
