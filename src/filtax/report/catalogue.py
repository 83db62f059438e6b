"""The parts a method's name can be made of, read off the catalogue in `filtax.methods`."""

import inspect
from collections.abc import Callable
from typing import Any

from filtax.methods import AUXILIARIES, POSTERIORS, PRIORS, TRUSTS

__all__ = ["catalogue"]

_GIVEN = {
    "Cj": "Conjugate to the likelihood, which chooses it.",
    "LSSM": "A linear or nonlinear system, given as `prior=`.",
}


def catalogue() -> list[tuple[str, str, str]]:
    """List every part of the grammar: its choice, how it is written with its settings, and what it does.

    Example:
        >>> from filtax.report import catalogue
        >>> [how for choice, how, what in catalogue() if choice == "prior"][:2]
        ['Static', 'ACI(q=...)']
    """
    rooms = {"trust": TRUSTS, "posterior": POSTERIORS, "auxiliary": AUXILIARIES, "prior": PRIORS}
    return [
        (choice, _written(name, build), _GIVEN.get(name) or _meaning(build))
        for choice, room in rooms.items()
        for name, build in room.items()
    ]


def _written(name: str, build: Callable[..., Any]) -> str:
    parameters = inspect.signature(build).parameters.values()
    shown = [f"{p.name}={'...' if p.default is p.empty else p.default}" for p in parameters]
    return f"{name}({', '.join(shown)})" if shown else name


def _meaning(build: Callable[..., Any]) -> str:
    """First line of the docstring: of the builder, or of what it builds."""
    text = inspect.getdoc(build) or inspect.getdoc(type(build())) or ""
    return text.splitlines()[0] if text else ""
