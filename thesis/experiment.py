"""What an experiment is: a typed setting in two sizes, a run that returns numbers, figures of them, and claims.

An experiment is a value. Its module defines one, called `EXPERIMENT`; nothing else is asked of it.
"""

import dataclasses
import json
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from thesis.figures import Figure
from thesis.statistics import Verdict

SIZES = ("quick", "full")
Advance = Callable[[float], None]


@dataclass(frozen=True)
class Table:
    """Rows of words and numbers under a heading; `published` names the columns that are not ours.

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

    >>> Result({"rmse": 1.0}).numbers["rmse"]
    1.0
    """

    numbers: Mapping[str, Any]
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Claim:
    """A sentence of the thesis that a result decides; its words are in `claims.toml`.

    Attributes:
        number: Its number in our list.
        decide: From a result to a verdict.
        text: The claim, in a sentence.
        source: Label in the thesis.
        tolerance: The margin that it allows, in words; "none: ..." where there is none.
        printed: The words of the thesis, where what was tested is not what they say.
        tested: The form that was tested, where it is not the printed one.
        reason: Why the claim does not hold.

    >>> Claim(1, lambda result: Verdict("holds"), "the error is 1", "fig:dji-returns", "0.1").decide(Result({})).text
    'holds'
    """

    number: int
    decide: Callable[[Result], Verdict]
    text: str
    source: str
    tolerance: str
    printed: str | None = None
    tested: str | None = None
    reason: str = "No reason was looked for: at the full size with seed 0 it does not fail."

    def __post_init__(self) -> None:
        if not self.tolerance:
            raise ValueError(f"claim {self.number} has no tolerance; say its margin in words, or why it needs none.")


def claims(rules: Mapping[int, Callable[[Result], Verdict]]) -> tuple[Claim, ...]:
    """The claims that rules decide, by their numbers."""
    words = tomllib.loads(Path(__file__).with_name("claims.toml").read_text(encoding="utf-8"))
    return tuple(Claim(number, decide, **words[str(number)]) for number, decide in rules.items())


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


# All experiments, in the order of the thesis: seconds of the quick and the full size, measured once on two busy cores;
# by them the time left is told. Fashion-MNIST at the full size was run on an accelerator only: its 7200 are a guess.
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
    return tuple(SECONDS)


def find(name: str) -> Experiment:
    """The experiment of a name.

    >>> find("rigde")
    Traceback (most recent call last):
    ValueError: there is no experiment 'rigde'; did you mean ridge?
    """
    if name not in SECONDS:
        near = get_close_matches(name, SECONDS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(SECONDS)}."
        raise ValueError(f"there is no experiment {name!r}; {hint}")
    return import_module(f"thesis.{name.replace('-', '_')}").EXPERIMENT


def expected_seconds(name: str, size: str) -> float:
    """What an experiment may take on two cores; another machine differs.

    >>> expected_seconds("ridge", "quick")
    1.0
    """
    return float(SECONDS[name][size == "full"])
