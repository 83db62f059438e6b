"""The parts a method's name can be made of, and the published methods they make, read off the code itself."""

import inspect
import re
from collections.abc import Callable
from typing import Any

from filtax import checks
from filtax.grammar import AUXILIARIES, POSTERIORS, PRIORS, TRUSTS, method
from filtax.methods import PUBLISHED, REFERENCES, source
from filtax.models import linear

__all__ = ["catalogue", "describe", "published"]

_GIVEN = {
    "WoLF-IMQ": "Robust model: trust falls smoothly with the residual; c has the unit of y.",
    "WoLF-MD": "Robust model: trust falls smoothly with the residual; c counts standard deviations of the noise.",
    "Cj": "Conjugate to the likelihood, which chooses it.",
    "LSSM": "A linear or nonlinear system, given as `prior=`.",
    "RL": "Run length: when the regime began; K hypotheses are kept, inf for all.",
    "CPT": "Change times: paths of changes under a law of segment lengths.",
    "LoFi": "The extended filter with a precision that is diagonal plus low rank, for networks.",
    "PULSE": "A subspace of a network's hidden layers, or with a rank all of them, and its full last layer; one gain.",
    "IEKF": "The extended filter that linearises again at its new mean.",
    "RVGA": "The Gaussian nearest to the posterior, by an implicit scheme (recursive variational).",
    "BONG": "One natural-gradient step from the prior for each datum.",
    "BLR": "Natural-gradient steps of a given size, the Bayesian learning rule.",
    "BBB": "Plain gradient steps on the same objective, Bayes by backprop.",
    "EnKF": "Ensemble Kalman filter: each member meets its own perturbed datum.",
    "ETKF": "Ensemble Kalman filter that transforms its members, without perturbed data.",
    "PF": "Bootstrap particle filter.",
    "APF": "Auxiliary particle filter of Liu and West, for parameters that do not move.",
    "RBPF": "Particles for the first `drawn` parameters; the others are integrated out.",
    "CPL": "Change locations: at each datum, whether it was a change; before Sub, which data belong: (belong, memory).",
    "CPV": "Change probability vector: how much of each remembered datum belongs; with a rate, by its age.",
    "ME": "Experts: one of K models, or settings of one, holds; more with `auxiliary=`.",
}


def catalogue() -> list[tuple[str, str, str]]:
    """List every part of the grammar: its choice, how it is written with its settings, and what it does.

    >>> [how for choice, how, what in catalogue() if choice == "prior"][:2]
    ['Static', 'ACI(q=...)']
    """
    rooms = {"trust": TRUSTS, "posterior": POSTERIORS, "auxiliary": AUXILIARIES, "prior": PRIORS}
    return [
        (choice, _written(name, build), _GIVEN.get(name) or _meaning(build))
        for choice, room in rooms.items()
        for name, build in room.items()
    ]


def published() -> list[tuple[str, ...]]:
    """List the published methods: name, task, changes, and the choices M.2, M.3, A.1, A.2.

    >>> published()[0]
    ('kalman_1960', 'filtering', 'gradual', 'C', 'LSSM', 'LG', 'DA[1]')
    """
    return [(name, *row[1:]) for name, row in PUBLISHED.items()]


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
    # written in brackets, given as prior=, or of no use in a name
    hidden = ("keep", "drift", "frame", "name", "experts")
    shown = [
        f"{p.name}={'...' if p.default is p.empty else p.default}" for p in parameters.values() if p.name not in hidden
    ]
    name = f"{name}[K]" if "keep" in parameters else name
    return f"{name}({', '.join(shown)})" if shown else name


def _meaning(build: Callable[..., Any]) -> str:
    """First line of the docstring: of the builder, or of what it builds."""
    parameters = inspect.signature(build).parameters.values()
    needed = {p.name: 1 for p in parameters if p.default is p.empty and p.kind is not p.VAR_KEYWORD}
    text = inspect.getdoc(build) or inspect.getdoc(type(build(**needed))) or ""
    return text.splitlines()[0] if text else ""
