"""What an experiment is: a typed setting in two sizes, a run that returns numbers, figures of them, and claims.

An experiment is a value. Its module defines one, called `EXPERIMENT`; nothing else is asked of it.
"""

import dataclasses
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import numpy as np

from thesis.figures import Figure
from thesis.statistics import Verdict

SIZES = ("quick", "full")
Advance = Callable[[float], None]


@dataclass(frozen=True)
class Table:
    """Rows of words and numbers under a heading; `published` names the columns that are not ours.

    Example:
        >>> from thesis import Table
        >>> Table("RMSE", ("method", "published", "ours"), [("KF", 1.7, 1.6)], published=("published",)).rows[0][0]
        'KF'
    """

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    published: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Result:
    """What a run found.

    Attributes:
        numbers: Words and numbers by name, as JSON holds them: what the claims and the tables are made of.
        arrays: Arrays by name: what the figures are drawn from.
        tables: What the report shows.
        notes: Sentences: choices that were left open, what was corrected, what to beware of.

    Example:
        >>> from thesis import Result
        >>> Result({"rmse": 1.0}).numbers["rmse"]
        1.0
    """

    numbers: Mapping[str, Any]
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Claim:
    """A sentence of the thesis that a result decides.

    Attributes:
        number: Its number in our list.
        text: The claim, in a sentence.
        source: Label in the thesis.
        decide: From a result to a verdict.
        tolerance: The margin that it allows, in words; "none: ..." where there is none.

    Example:
        >>> from thesis import Claim, Result, holds_if
        >>> decide = lambda result: holds_if(abs(result.numbers["rmse"] - 1) <= 0.1, "near 1")
        >>> claim = Claim(1, "the error is 1", "fig:dji-returns", decide, "0.1")
        >>> claim.decide(Result({"rmse": 1.0})).text
        'holds'
    """

    number: int
    text: str
    source: str
    decide: Callable[[Result], Verdict]
    tolerance: str

    def __post_init__(self) -> None:
        if not self.tolerance:
            raise ValueError(f"claim {self.number} has no tolerance; say its margin in words, or why it needs none.")


@dataclass(frozen=True)
class Experiment:
    """One experiment of the thesis.

    Attributes:
        name: What the command line calls it.
        title: What it is, in a line.
        sizes: A setting (a frozen dataclass) for each of "quick" and "full".
        run: From a setting, a seed and a function that is told the share done, to a result.
        figures: Labels of the thesis's figures, and what draws each.
        claims: What it decides.
        data: Names of the data sets it reads.
        fixed: What a result depends on beside its setting, the same in both sizes: ranges that are searched, candidates
            and hyper-parameters, by name. With another of them an earlier result is not used again.

    Example:
        >>> from thesis import find
        >>> find("ridge").setting("quick")
        {'train': 250, 'test': 1000, 'precision': 10.0}
    """

    name: str
    title: str
    sizes: Mapping[str, Any]
    run: Callable[[Any, int, Advance], Result]
    figures: Mapping[str, Callable[[Result], Figure]]
    claims: tuple[Claim, ...] = ()
    data: tuple[str, ...] = ()
    fixed: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if set(self.sizes) != set(SIZES):
            raise ValueError(
                f"{self.name}: sizes are {', '.join(self.sizes)}; an experiment has {' and '.join(SIZES)}."
            )

    def setting(self, size: str) -> dict[str, Any]:
        """The setting of a size, as JSON holds it."""
        return json.loads(json.dumps(dataclasses.asdict(self.sizes[size]), default=str))

    def shared(self) -> dict[str, Any]:
        """What is fixed, as JSON holds it; a range in the words that make it."""
        return json.loads(json.dumps(dict(self.fixed), default=_spelled))


def _spelled(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if dataclasses.is_dataclass(value):
        return repr(value)
    raise TypeError(f"Experiment(fixed=...) holds {type(value).__name__}; give numbers, words, ranges or arrays.")


MODULES = {
    "ridge": "ridge",
    "rvga-logistic": "rvga_logistic",
    "rvga-moons": "rvga_moons",
    "q-inflation": "q_inflation",
    "expfam-moons": "expfam_moons",
    "catalogue": "catalogue",
    "electricity": "electricity",
    "periodic-drift": "periodic_drift",
    "drift-jumps": "drift_jumps",
    "bernoulli-bandit": "bernoulli_bandit",
    "segments": "segments",
    "wolf-intro": "wolf_intro",
    "tracking": "tracking",
    "uci-corrupted": "uci_corrupted",
    "mlp-1d": "mlp_1d",
    "heavy-tail": "heavy_tail",
    "ewma": "ewma",
    "fashion-mnist": "fashion_mnist",
    "continual": "continual",
}
# Seconds of the quick and the full size, measured once on two busy cores; by them the time left is told. Fashion-MNIST
# at the full size was run on an accelerator only: its 7200 are a guess.
SECONDS = {
    "ridge": (1, 1),
    "rvga-logistic": (16, 28),
    "rvga-moons": (21, 483),
    "q-inflation": (16, 52),
    "expfam-moons": (39, 142),
    "catalogue": (29, 38),
    "electricity": (34, 83),
    "periodic-drift": (50, 252),
    "drift-jumps": (55, 210),
    "bernoulli-bandit": (47, 248),
    "segments": (17, 22),
    "wolf-intro": (20, 16),
    "tracking": (43, 70),
    "uci-corrupted": (27, 1552),
    "mlp-1d": (38, 70),
    "heavy-tail": (22, 64),
    "ewma": (0.2, 0.2),
    "fashion-mnist": (34, 7200),
    "continual": (33, 1683),
}


def names() -> tuple[str, ...]:
    """Names of all experiments, in the order of the thesis.

    >>> names()[0]
    'ridge'
    """
    return tuple(MODULES)


def find(name: str) -> Experiment:
    """The experiment of a name.

    >>> find("rigde")
    Traceback (most recent call last):
    ValueError: there is no experiment 'rigde'; did you mean ridge?
    """
    if name not in MODULES:
        near = get_close_matches(name, MODULES, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(MODULES)}."
        raise ValueError(f"there is no experiment {name!r}; {hint}")
    return import_module(f"thesis.{MODULES[name]}").EXPERIMENT


def expected_seconds(name: str, size: str) -> float:
    """What an experiment may take on two cores; another machine differs.

    >>> expected_seconds("ridge", "quick")
    1.0
    """
    return float(SECONDS[name][size == "full"])
