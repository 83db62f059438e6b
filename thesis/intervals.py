"""How far a number of a table can be trusted: intervals of 95 % for medians, means, and what was measured in time.

Trials are drawn apart from each other, so that their order tells nothing; hours are not, and are drawn again in blocks.
An interval is a pair of numbers, or None where there are too few to say.
"""

from collections.abc import Callable
from math import comb
from typing import Any

import numpy as np

from thesis.verdicts import DRAWS, LEVEL

__all__ = ["Interval", "block_draws", "ends", "of_mean", "of_median", "of_series"]

Interval = tuple[float, float] | None


def of_median(values: Any) -> Interval:
    r"""Interval of the median of independent trials, between two of them: no law is assumed, and none is drawn.

    With k the largest number for which $P(B < k) \le 2.5\,\%$, B binomial with N and a half, the k-th from below and
    the k-th from above hold the median between them. Fewer than six trials cannot say it with 95 %.

    Args:
        values: One number for each trial, (N,); what is no number counts as the largest.

    Returns:
        The two ends.

    >>> of_median([5.0, 1.0, 4.0, 2.0, 6.0, 3.0])
    (1.0, 6.0)
    >>> of_median([1.0, 2.0, 3.0]) is None
    True
    """
    given = np.asarray(values, float)
    ordered, n = np.sort(np.where(np.isnan(given), np.inf, given)), given.size
    k, mass = 0, 1
    while k < n and mass / 2**n <= (1 - LEVEL) / 2:
        k += 1
        mass += comb(n, k)
    return (float(ordered[k - 1]), float(ordered[n - k])) if k else None


def of_mean(values: Any) -> Interval:
    r"""Interval of the mean of independent trials, $\bar x \pm t_{N-1} s / \sqrt N$.

    Student's, as trials may be as few as three: to draw three of three again never leaves their range.

    Args:
        values: One number for each trial, (N,).

    Returns:
        The two ends; None for one trial, or if one is no number.

    >>> [round(end, 3) for end in of_mean([1.0, 2.0, 3.0])]
    [-0.484, 4.484]
    """
    from scipy.special import stdtrit

    given = np.asarray(values, float)
    if given.size < 2 or not np.isfinite(given).all():
        return None
    half = float(stdtrit(given.size - 1, (1 + LEVEL) / 2) * given.std(ddof=1) / np.sqrt(given.size))
    return float(given.mean()) - half, float(given.mean()) + half


def block_draws(count: int, block: int, draws: int = DRAWS) -> np.ndarray:
    """Places of a series drawn again in blocks that follow each other round in a circle (Politis and Romano 1992).

    Args:
        count: Length of the series.
        block: Length of a block.
        draws: How many series to draw.

    Returns:
        Places, (draws, count); those of a fixed seed, so that methods are drawn alike and can be compared in pairs.

    >>> block_draws(7, 3, draws=1)
    array([[5, 6, 0, 4, 5, 6, 3]])
    """
    starts = np.random.default_rng(0).integers(count, size=(draws, -(-count // block)))
    return ((starts[..., None] + np.arange(block)) % count).reshape(draws, -1)[:, :count]


def of_series(values: np.ndarray, block: int, statistic: Callable[..., np.ndarray] = np.median) -> Interval:
    """Interval of a statistic of a series whose neighbours resemble each other: of the middle 95 % of drawn series.

    Args:
        values: In the order of time, (T,).
        block: How many neighbours are drawn together.
        statistic: Takes an array and an axis.

    Returns:
        The two ends; None for a series of fewer than two blocks.

    >>> of_series(np.arange(10.0) % 2, 2, np.mean)
    (0.5, 0.5)
    """
    if values.size < 2 * block:
        return None
    return ends(statistic(values[block_draws(values.size, block)], axis=1))


def ends(drawn: np.ndarray) -> tuple[float, float]:
    """What holds the middle 95 % of what was drawn.

    >>> ends(np.arange(41.0))
    (1.0, 39.0)
    """
    low, high = np.quantile(drawn, ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
    return float(low), float(high)
