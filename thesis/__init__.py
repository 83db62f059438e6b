"""The experiments of the thesis, each with its figures and the verdict on its claims.

An experiment is found by its name and imported when it is asked for. The package stands on public names of filtax.

>>> from thesis import find
>>> find("ridge").title
'Recursive ridge regression equals batch ridge regression'
"""

from thesis.experiment import Claim, Experiment, Result, Table, claims, expected_seconds, find, names
from thesis.findings import Finding, folder_of, gather, keep, stored
from thesis.page import write_report
from thesis.runner import reproduce
from thesis.statistics import Verdict, about, all_of, below, holds_if, holds_only_if

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
    "claims",
    "expected_seconds",
    "find",
    "folder_of",
    "gather",
    "holds_if",
    "holds_only_if",
    "keep",
    "names",
    "reproduce",
    "stored",
    "write_report",
]
