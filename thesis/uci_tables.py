"""The tables of the corrupted sets: errors and times beside the published ones, with intervals over trials and rounds.

An error is the root of the median square of a trial, as published, and the number is its mean over the trials: the
interval is that of this mean, over other orders and corruptions of the rows. Hyper-parameters and the first network are
those of the run.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from thesis.experiment import Table
from thesis.intervals import of_mean, of_median
from thesis.uci_settings import DIVERGED, LAST, LAWS, METHODS, PUBLISHED, PUBLISHED_TIMES, SETS, WOLF

__all__ = ["beyond", "error_table", "published_error", "time_table"]

HOPELESS = 1e100  # the error of a trial whose forecasts are no numbers any more


def published_error(name: str, method: str) -> float | str | None:
    """What was printed of a set and a method: a mean, or how many runs diverged; None of what was not run.

    >>> published_error("naval", "WoLF-TMD"), published_error("power", "EKF-IW")
    (0.1028, '7 of 99 runs diverge')
    """
    found = PUBLISHED[method][SETS.index(name)] if method in PUBLISHED else None
    return DIVERGED.get((name, method)) if found is None else found


def error_table(numbers: Mapping[str, Any]) -> Table:
    """Mean errors of each set and method: published, ours as the text has it, ours with the published outliers."""
    rows = []
    for name in SETS:
        for method in (*METHODS, LAST):
            trials = [numbers["rmedse"][law][name][method] for law in LAWS]
            cells = [cell for values in trials for cell in _mean(values)]
            rows.append((name, method, numbers["size"][name], published_error(name, method), *cells))
    ours = ("ours, U[-50, 50]", "95 %, U[-50, 50]", "ours, -50 or 50", "95 %, -50 or 50")
    columns = ("set", "method", "D", "published", *ours)
    return Table("Mean RMedSE; the published outliers are -50 or 50", columns, rows, ("published",))


def time_table(times: Mapping[str, Mapping[str, list[float]]]) -> Table:
    """Time of a step over that of OGD, medians of rounds, and in microseconds."""
    rows = []
    for name, of in times.items():
        for method in METHODS:
            ratio = np.divide(of[method], of["OGD"])
            old = PUBLISHED_TIMES[method][SETS.index(name)] if method in PUBLISHED_TIMES else None
            ends = of_median(ratio)
            spread = None if ends is None else tuple(round(end, 2) for end in ends)
            micro = round(1e6 * float(np.median(of[method])), 1)
            rows.append((name, method, old, round(float(np.median(ratio)), 2), spread, micro))
    columns = ("set", "method", "published", "ours", "95 %", "microseconds")
    return Table("Time of a step over that of OGD", columns, rows, ("published",))


def _mean(values: list[float]) -> tuple[Any, Any]:
    """A mean and its interval, cut off at 0; or how many trials diverged."""
    lost = sum(not value < HOPELESS for value in values)
    if lost:
        return f"{lost} of {len(values)} trials diverge", None
    ends = of_mean(values)
    return round(float(np.mean(values)), 4), None if ends is None else (round(max(ends[0], 0.0), 4), round(ends[1], 4))


def beyond(chosen: Mapping[str, Mapping[str, Mapping[str, float]]]) -> tuple[str]:
    """A sentence that says where the published range of p does not do, and which p was chosen instead.

    >>> at = {name: {m: {"p": 50.0 if name == "naval" else 1.0} for m in WOLF} for name in SETS}
    >>> beyond(at)[0].endswith("beyond 1 on: naval (WoLF-IMQ 50, WoLF-TMD 50).")
    True
    """
    wide = []
    for name in SETS:
        far = [f"{method} {chosen[name][method]['p']:.3g}" for method in WOLF if chosen[name][method]["p"] > 1]
        wide += [f"{name} ({', '.join(far)})"] if far else []
    return (
        "On naval WoLF comes within 10 % of the published rows only with p beyond the published range: searched up to "
        "p = 1 it had 0.162 (IMQ) and 0.156 (TMD) against 0.107 and 0.103 published, 51 % more. p was chosen "
        f"beyond 1 on: {'; '.join(wide) or 'no set'}.",
    )
