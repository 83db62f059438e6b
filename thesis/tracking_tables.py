"""The tables of the tracking runs: what was published, what we find, and between what two numbers it lies."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from thesis.experiment import Table
from thesis.intervals import of_median
from thesis.tracking_figures import COMPONENTS, KINDS
from thesis.tracking_settings import PUBLISHED, RAW, ROWS, SHARED

__all__ = ["ratios", "squares_tables", "time_table"]


def ratios(numbers: Mapping[str, Any], kind: str, name: str, over: str = "KF") -> list[float]:
    """Time of a method over that of another in each round that both ran.

    >>> ratios({"times": {"student": {"a": [2.0, 3.0], "KF": [1.0, 2.0, 9.0]}}}, "student", "a")
    [2.0, 1.5]
    """
    times = numbers["times"][kind]
    return [a / b for a, b in zip(times[name], times[over], strict=False)]


def squares_tables(numbers: Mapping[str, Any]) -> list[Table]:
    """Median sums of squares over the trials, of each component, and the RMSE of the first; each with its interval."""
    tables = []
    heads = ["J_0", "RMSE of component 0", *(f"J_{i}" for i in range(1, COMPONENTS))]
    columns = ("method", "published J_0", *(column for head in heads for column in (head, f"{head}, 95 %")))
    for kind in KINDS:
        rows = []
        for name in (*ROWS, RAW):
            J = np.array(numbers["squares"][kind][name])
            first = J[:, 0], np.sqrt(J[:, 0] / numbers["steps"])
            parts = [*first, *J.T[1:], *[None] * (COMPONENTS - J.shape[1])]  # of an observation two components
            cells = [cell for part in parts for cell in _median(part)]
            rows.append((name, PUBLISHED[kind].get(name, (None,))[0], *cells))
        tables.append(Table(f"{kind.capitalize()}: median sums of squares", columns, rows, ("published J_0",)))
    return tables


def time_table(numbers: Mapping[str, Any]) -> Table:
    """How often the time of the Kalman filter each takes; medians of rounds."""
    rows = []
    for name in (*ROWS, SHARED):
        cells = [(PUBLISHED[k].get(name, (None, None))[1], *_median(ratios(numbers, k, name))) for k in KINDS]
        rows.append((name, *cells[0], *cells[1]))
    published = ("published, Student", "published, mixture")
    columns = ("method", published[0], "Student", "Student, 95 %", published[1], "mixture", "mixture, 95 %")
    return Table("Slow-down over the KF", columns, rows, published)


def _median(values: Any) -> tuple[Any, Any]:
    """To three digits, with its interval."""
    if values is None:
        return None, None
    ends = of_median(values)
    round_ = lambda value: float(f"{value:.3g}")  # noqa: E731
    return round_(np.median(values)), None if ends is None else tuple(round_(end) for end in ends)
