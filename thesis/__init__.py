"""The experiments of the thesis, each with its figures and the verdict on its claims.

An experiment is found by its name and imported when it is asked for.

>>> from thesis import find
>>> find("ridge").title
'Recursive ridge regression equals batch ridge regression'
"""

from thesis.experiment import Claim, Experiment, Result, Table
from thesis.findings import Finding, gather
from thesis.parts import keep
from thesis.registry import find, names
from thesis.runner import reproduce
from thesis.verdicts import Verdict, about, all_of, below, holds_if, holds_only_if

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
