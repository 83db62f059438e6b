"""From many losses to one number: mean, median, and distance from uniform; each takes weights, and skips NaN."""

import math

import numpy as np

from filtax.evaluate.arrays import QUIET, Numbers, Values, namespaced

__all__ = ["mean", "median", "unevenness"]


@QUIET
def mean(values: Numbers, weights: Numbers | None = None) -> Values:
    """Mean over the first axis of what is not NaN; NaN when nothing is left.

    >>> mean([1.0, float("nan"), 3.0]).item(), mean([1.0, 3.0], weights=[3.0, 1.0]).item()
    (2.0, 1.5)
    """
    xp, values, weights = namespaced(values, 1.0 if weights is None else weights)
    seen = ~xp.isnan(values)
    share = xp.where(seen, weights, 0.0)
    total = xp.sum(share, axis=0)
    # shares of zero keep out of the product: an infinite loss of no weight is no loss
    summed = xp.sum(xp.where(share > 0, values, 0.0) * share, axis=0)
    return xp.where(total > 0, summed / xp.where(total > 0, total, 1.0), math.nan)


def median(values: Numbers, weights: Numbers | None = None) -> Values:
    """Median of what is not NaN: half of the weight lies on each side. The middle of the two when they are even.

    >>> median([1.0, float("nan"), 5.0, 2.0]).item(), median([1.0, 2.0, 5.0], weights=[1.0, 1.0, 3.0]).item()
    (2.0, 5.0)
    """
    if weights is None:
        xp, values = namespaced(values)
        return xp.nanmedian(values) if xp is not np else _median(values[~np.isnan(values)])
    values, weights = _sorted(values, weights)
    if not values.size:
        return np.asarray(math.nan)
    upto = np.cumsum(weights)
    first = int(np.searchsorted(upto, 0.5 * upto[-1]))
    even = upto[first] == 0.5 * upto[-1] and first + 1 < values.size
    return np.asarray(0.5 * (values[first] + values[first + 1]) if even else values[first])


def unevenness(values: Numbers, weights: Numbers | None = None) -> Values:
    """Greatest distance between the distribution of the values and the uniform one on [0, 1] (Kolmogorov-Smirnov).

    >>> unevenness([0.125, 0.375, 0.625, 0.875]).item(), unevenness([0.5, 0.5]).item()
    (0.125, 0.5)
    """
    values, weights = _sorted(values, weights)
    if not values.size:
        return np.asarray(math.nan)
    upto = np.cumsum(weights) / np.sum(weights)
    return np.asarray(max(np.max(upto - values), np.max(values - upto + weights / np.sum(weights))))


def _median(values: Values) -> Values:
    return np.asarray(np.median(values) if values.size else math.nan)


def _sorted(values: Numbers, weights: Numbers | None) -> tuple[np.ndarray, np.ndarray]:
    given = np.asarray(values, np.float64)
    shares = np.ones_like(given) if weights is None else np.asarray(weights, np.float64)
    kept = ~np.isnan(given) & (shares > 0)
    order = np.argsort(given[kept])
    return given[kept][order], shares[kept][order]
