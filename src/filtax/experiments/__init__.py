"""The experiments of the thesis, each with its figures and the verdict on its claims.

An experiment is found by its name and imported when it is asked for.

>>> from filtax.experiments import find
>>> find("ridge").title
'Recursive ridge regression equals batch ridge regression'
"""

from filtax.experiments.experiment import Claim, Experiment, Result, Table
from filtax.experiments.findings import Finding, gather
from filtax.experiments.parts import keep
from filtax.experiments.registry import find, names
from filtax.experiments.runner import reproduce
from filtax.experiments.verdicts import Verdict, about, all_of, below, holds_if, holds_only_if

__all__ = [
    "Claim",
    "Experiment",
    "Finding",
    "Result",
    "Table",
    "Verdict",
    "about",
    "all_of",
    "below",
    "find",
    "gather",
    "holds_if",
    "holds_only_if",
    "keep",
    "names",
    "reproduce",
]
