r"""Does a series repeat itself? A cycle that explains much of what a line leaves, and how to read such a series.

For each frequency f the residuals around a line are regressed on $\cos 2\pi k f t, \sin 2\pi k f t$, k = 1..orders. A
period is told if the best share of variance explained, R², is at least `level`, if the gain pays for its numbers,
$-N \log(1 - R^2) > (2\,\text{orders} + 1) \log N$, and if the series holds at least `cycles` of them. Trends, steps and
random walks have their variance at few cycles a series and do not pass. Of a period and its half the half is told,
unless the other pays for the harmonic of its own. One that turns round is looked for in parts
(`filtax.segmentation.turning`).

Readings within a cycle are not independent tries: a cycle of `orders` harmonics holds 2 (orders + 1) numbers at most,
its level included. So a longer one is read in blocks, so many to a cycle; otherwise each turn of a smooth cycle would
look like a change.

Axes: T data, O outputs. Cost: 3 T / 4 regressions on 2 orders features, once.
"""

from typing import Any

import numpy as np

from filtax.segmentation.turning import explained, turned_period, waves

__all__ = ["ORDERS", "block_means", "block_of", "cycle_features", "find_period"]

ORDERS = 2


def find_period(y: Any, *, cycles: int = 6, level: float = 0.25, orders: int = ORDERS) -> float | None:
    """The length of the cycle of a series, or None if it has none.

    Args:
        y: (T,) or (T, O); NaN where missing. Outputs count alike.
        cycles: How often the cycle must at least come round.
        level: Least share of the variance around a line that it explains.
        orders: Harmonics.

    Returns:
        The period in steps, not necessarily whole, at least 2 (orders + 1).

    >>> t = np.arange(120)
    >>> round(find_period(np.sin(2 * np.pi * t / 12) + 0.05 * t), 2)
    12.0
    >>> find_period(0.05 * t) is None
    True
    """
    y = np.asarray(y, np.float64)
    y = y.reshape(len(y), -1)
    seen = np.isfinite(y).all(axis=1)
    t, y = np.flatnonzero(seen), y[seen]
    count, shortest = len(y), 2 * (orders + 1)
    if len(seen) < cycles * shortest or count < 4 * shortest:
        return None
    frequencies = np.arange(3 * cycles, 3 * len(seen) // shortest + 1) / (3.0 * len(seen))
    spread = y.std(axis=0)
    e = _around_line(t, y / np.where(spread > 0.0, spread, 1.0))
    total = np.sum(e * e)
    if not total > 1e-12 * count:
        return None
    share_of = lambda f: min(_explained(t, e, f, orders) / total, 1.0 - 1e-12)  # noqa: E731
    step = np.linspace(-1.0, 1.0, 21) / (3.0 * len(seen))
    near = lambda f, by: max(np.clip(f + by, cycles / len(seen), 1.0 / shortest), key=share_of)  # noqa: E731
    frequency = near(max(frequencies, key=share_of), step)
    gain = lambda f: -count * np.log1p(-share_of(f))  # noqa: E731
    if 2.0 * frequency * shortest <= 1.0:  # twice a period explains no less: it must pay for its own harmonic
        half = near(2.0 * frequency, step)
        frequency = half if gain(half) > gain(frequency) - 2.0 * np.log(count) else frequency
    for finer in (10.0, 100.0):  # to stay in step far behind the end of the series
        frequency = near(frequency, step / finer)
    pays = share_of(frequency) >= level and gain(frequency) > (2 * orders + 1) * np.log(count)
    turned = turned_period(t, e, frequency, cycles=cycles, level=level, orders=orders)
    return turned or (float(1.0 / frequency) if pays else None)


def block_of(period: float | None, orders: int = ORDERS) -> int:
    """How many readings to take together, so that a cycle holds 2 (orders + 1) blocks or a few more.

    >>> block_of(30.5), block_of(23.99), block_of(7.0), block_of(None)
    (5, 4, 1, 1)
    """
    return (
        1 if period is None else max(1, int(period / (2 * (orders + 1)) + 0.002))
    )  # a day of 23.99 hours is one of 24


def block_means(y: np.ndarray, block: int) -> np.ndarray:
    """Means of blocks of readings, (T // block, O); of those that came, NaN where none did.

    >>> block_means(np.array([[1.0], [3.0], [np.nan], [5.0], [9.0]]), 2).tolist()
    [[2.0], [5.0]]
    """
    count = len(y) // block
    y = y[: count * block].reshape(count, block, -1)
    came = np.isfinite(y)
    number = came.sum(axis=1)
    return np.where(number > 0, np.where(came, y, 0.0).sum(axis=1) / np.maximum(number, 1), np.nan)


def cycle_features(length: int, period: float | None, orders: int = ORDERS) -> np.ndarray:
    """Harmonics of a period, (length, 2 orders); zeros, which count for nothing, where there is none.

    >>> cycle_features(2, None).tolist()
    [[0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]
    """
    if period is None:
        return np.zeros((length, 2 * orders))
    return waves(np.arange(length), 1.0 / period, orders)


def _around_line(t: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Residuals of a regression on (1, t)."""
    values = values - values.mean(axis=0)
    slope = t - t.mean()
    return values - np.outer(slope, slope @ values) / (slope @ slope)


def _explained(t: np.ndarray, e: np.ndarray, frequency: float, orders: int) -> float:
    """Sum of squares of e that the cycle explains beside the line."""
    cycle = _around_line(t, waves(t, frequency, orders))
    return explained(cycle.T @ cycle, cycle.T @ e)
