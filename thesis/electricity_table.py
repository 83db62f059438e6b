"""The tables of the electricity load: errors beside the published ones, with intervals that know of time.

Errors of an hour resemble those of the same weekday (correlation 0.4 to 0.8 of daily means a week apart) and of the
season (up to 0.4 of 5-day means a month apart, at most 0.1 two months apart). So days are not drawn again one by one,
but in blocks of 35, the shortest that hold whole weeks and whole buckets of five days, and last a month. The networks
are those of the run; the intervals are those of other years, not of other networks.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from thesis.electricity_claims import five_day
from thesis.experiment import Table
from thesis.intervals import Interval, block_draws, ends, of_series

__all__ = ["diverged", "error_tables", "of_hours", "scores"]

DAY, BUCKET, BLOCK = 24, 5, 35  # hours; days; days
FAR = 3.0  # times the median over networks
OURS = "RL[1]-OUPR"
TITLE = "Absolute error: median of all hours, median of 5-day means, and the latter less that of RL[1]-OUPR, in pairs"
Scores = tuple[float, Interval, float, Interval]


def scores(error: np.ndarray) -> Scores:
    """Median of all hours and networks with its interval, and median of 5-day means with its own.

    Args:
        error: Absolute errors, (networks, T).

    >>> scores(np.ones((1, 240)))
    (1.0, None, 1.0, None)
    """
    means = five_day(error)
    days = of_series(means, BLOCK // BUCKET)
    return float(np.median(error)), of_hours(error), float(np.median(means)), days


def of_hours(error: np.ndarray, block: int = BLOCK) -> Interval:
    """Interval of the median of all hours, (networks, T), when whole days of all networks are drawn in blocks.

    Sorted once; a draw only says how often each day counts.

    >>> of_hours(np.tile(np.arange(24.0), 4)[None], block=2)
    (11.5, 11.5)
    """
    days = error.shape[1] // DAY
    if days < 2 * block:
        return None
    cut = error[:, : DAY * days]
    order = np.argsort(cut, axis=None)
    value, day = cut.ravel()[order], order % (DAY * days) // DAY
    drawn = []
    for places in block_draws(days, block):
        count = np.cumsum(np.bincount(places, minlength=days)[day])
        middle = np.searchsorted(count, ((count[-1] + 1) // 2, count[-1] // 2 + 1))
        drawn.append(value[middle].mean())
    return ends(np.array(drawn))


def diverged(errors: Mapping[str, np.ndarray], where: str) -> tuple[str, ...]:
    """A sentence for each method that diverges from some first networks: mean error above 3 times their median.

    Args:
        errors: Of each method, (networks, T).
        where: Which table, in words.

    >>> said = diverged({"a": np.array([[0.5], [0.4], [7.0]]), "b": np.ones((3, 1))}, "here")
    >>> len(said), said[0][:65]
    (1, 'With a, here, the filter diverges from 1 of 3 first networks: net')
    """
    said = []
    for name, error in errors.items():
        means = np.nan_to_num(np.mean(error, axis=1), nan=np.inf)
        middle = float(np.median(means))
        lost = [i for i, mean in enumerate(means) if not np.isfinite(mean) or mean > FAR * middle]
        if lost:
            which = " and ".join(f"network {i + 1} has a mean error of {means[i]:.2f}" for i in lost)
            said.append(
                f"With {name}, {where}, the filter diverges from {len(lost)} of {len(means)} first networks: {which}, "
                f"the median network {middle:.2f}. 5-day errors in the table are means over all {len(means)}, these "
                "included."
            )
    return tuple(said)


def error_tables(
    errors: Mapping[str, np.ndarray],
    theirs: Mapping[str, np.ndarray],
    published: Mapping[str, tuple[Any, float | None, float | None]],
    chosen: Mapping[str, Mapping[str, float]],
) -> tuple[Table, Table]:
    """As the text has it, and as the published runs had it.

    Args:
        errors: Of each method and rule of thumb, (networks, T).
        theirs: Of each method at the published scaling and numbers.
        published: For each method its numbers, the median absolute error, and the median 5-day error.
        chosen: Numbers of each method.

    Returns:
        The two tables.

    >>> ones = {OURS: np.ones((1, 240))}
    >>> error_tables(ones, ones, {OURS: ({}, 0.199, 0.259)}, {OURS: {"hazard": 0.5}})[0].rows[0][-1]
    'hazard 0.5'
    """
    rows: list[Sequence[Any]] = []
    for name, error in errors.items():
        _, old_median, old_days = published.get(name, (None, None, None))
        less = five_day(error) - five_day(errors[OURS]) if OURS in errors and name != OURS else None
        pair = (None, None) if less is None else (float(np.median(less)), of_series(less, BLOCK // BUCKET))
        told = ", ".join(f"{key} {value:.3g}" for key, value in chosen.get(name, {}).items())
        median, hourly, days, bucket = scores(error)
        rows.append((name, old_median, median, hourly, old_days, days, bucket, *pair, told))
    heads = ("", "median, published", "median", "median, 95 %", "5-day, published", "5-day", "5-day, 95 %")
    marked = (heads[1], heads[4])
    columns = (*heads, "less OUPR", "less OUPR, 95 %", "chosen")
    again = [
        (name, published[name][1], *(given := scores(error))[:2], published[name][2], *given[2:])
        for name, error in theirs.items()
    ]
    title = "The same with the published scaling ('sd') and numbers"
    return Table(TITLE, columns, [tuple(row) for row in rows], marked), Table(title, heads, again, marked)
