r"""The cycle of a series: whether there is one, how long it is, and how to read a series that has one.

For each frequency f the residuals around a line are regressed on $\cos 2\pi k f t, \sin 2\pi k f t$, k = 1..orders. The
best frequency is accepted if three conditions hold: its share of explained variance, R², is at least `level`; the gain
pays for the parameters it needs, $-N \log(1 - R^2) > (2\,\text{orders} + 1) \log N$; and the series holds at least
`cycles` periods. Trends, steps and random walks have their variance at few cycles a series and do not pass. Between a
period and its half the half is chosen, unless the longer one pays for its additional harmonic.

A cycle whose phase jumps cancels itself out over the whole series: at its own frequency the spectrum has a hole, with a
peak on each side. So the frequencies around the best one are tried again with a line and a cycle of their own in each
part, on both sides of a cut or in each of 4 or 8 parts. Every parameter costs $\log N$, and so does the cut.

The readings within a cycle are not independent: a cycle of `orders` harmonics holds 2 (orders + 1) numbers at most, its
level included. A longer cycle is therefore read in blocks, about that many to a cycle; otherwise every turn of a smooth
cycle would look like a change.

Axes: T readings, O outputs, N finite readings, P pieces, D = 2 + 2 orders columns. Cost: 3 T / 4 regressions on
2 orders features, then 81 N D² for the parts.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from filtax import _validation as checks

ORDERS = 2
PIECES = 8  # a series is cut between eight equally long pieces
CUTS = [[0, cut, PIECES] for cut in range(1, PIECES)] + [list(range(0, PIECES + 1, by)) for by in (2, 1)]
TINY = 1e-12  # share of all squares: what rounding leaves of an exact cycle


def find_period(y: Any, *, cycles: int = 6, level: float = 0.25, orders: int = ORDERS) -> float | None:
    """Find the length of the cycle of a series; None if it has none.

    Args:
        y: (T,) or (T, O); NaN where missing. Outputs count alike.
        cycles: Least number of periods in the series.
        level: Least share of the variance around a line that the cycle explains.
        orders: Harmonics.

    Returns:
        The period in steps, not necessarily whole, at least 2 (orders + 1).

    >>> t = np.arange(120)
    >>> round(find_period(np.sin(2 * np.pi * t / 12) + 0.05 * t), 2)
    12.0
    >>> find_period(0.05 * t) is None
    True
    """
    y = np.asarray(checks.numeric("y", y), np.float64)
    y = y.reshape(len(y), -1)
    finite = np.isfinite(y).all(axis=1)
    t, y = np.flatnonzero(finite), y[finite]
    steps, count, shortest = len(finite), len(y), 2 * (orders + 1)
    if steps < cycles * shortest or count < 4 * shortest:
        return None
    spread = y.std(axis=0)
    e = _around_line(t, y / np.where(spread > 0.0, spread, 1.0))
    total = np.sum(e * e)
    if not total > 1e-12 * count:
        return None

    def share(frequency: float) -> float:
        cycle = _around_line(t, _waves(t, frequency, orders))
        return min(_explained(cycle.T @ cycle, cycle.T @ e) / total, 1.0 - 1e-12)

    def gain(frequency: float) -> float:
        return -count * np.log1p(-share(frequency))

    def best_near(frequency: float, step: np.ndarray) -> float:
        return max(np.clip(frequency + step, cycles / steps, 1.0 / shortest), key=share)

    step = np.linspace(-1.0, 1.0, 21) / (3.0 * steps)
    frequencies = np.arange(3 * cycles, 3 * steps // shortest + 1) / (3.0 * steps)
    frequency = best_near(max(frequencies, key=share), step)
    if 2.0 * frequency * shortest <= 1.0:  # twice a period explains no less: it must pay for its own harmonic
        half = best_near(2.0 * frequency, step)
        frequency = half if gain(half) > gain(frequency) - 2.0 * np.log(count) else frequency
    for finer in (10.0, 100.0):  # the phase must stay right far beyond the end of the series
        frequency = best_near(frequency, step / finer)
    accepted = share(frequency) >= level and gain(frequency) > (2 * orders + 1) * np.log(count)
    in_parts = _period_in_parts(t, e, frequency, cycles=cycles, level=level, orders=orders)
    return in_parts or (float(1.0 / frequency) if accepted else None)


def block_of(period: float | None, orders: int = ORDERS) -> int:
    """Compute how many readings make a block, so that a cycle holds 2 (orders + 1) blocks or a few more.

    >>> block_of(30.5), block_of(23.99), block_of(7.0), block_of(None)
    (5, 4, 1, 1)
    """
    if period is None:
        return 1
    return max(1, int(period / (2 * (orders + 1)) + 0.002))  # a period of 23.99 counts as 24


def block_means(y: np.ndarray, block: int) -> np.ndarray:
    """Average blocks of readings, (T // block, O): the mean of the finite ones, NaN where there is none.

    >>> block_means(np.array([[1.0], [3.0], [np.nan], [5.0], [9.0]]), 2).tolist()
    [[2.0], [5.0]]
    """
    count = len(y) // block
    y = y[: count * block].reshape(count, block, -1)
    finite = np.isfinite(y)
    number = finite.sum(axis=1)
    return np.where(number > 0, np.where(finite, y, 0.0).sum(axis=1) / np.maximum(number, 1), np.nan)


def cycle_features(length: int, period: float | None, orders: int = ORDERS) -> np.ndarray:
    """Compute the harmonics of a period, (length, 2 orders); zeros, which have no effect, if there is no cycle.

    >>> cycle_features(2, None).tolist()
    [[0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]
    """
    if period is None:
        return np.zeros((length, 2 * orders))
    return _waves(np.arange(length), 1.0 / period, orders)


def _waves(t: np.ndarray, frequency: float, orders: int) -> np.ndarray:
    """Cosine and sine of each harmonic in turn, (N, 2 orders)."""
    angle = 2.0 * np.pi * frequency * np.outer(t, np.arange(1, orders + 1))
    return np.stack([np.cos(angle), np.sin(angle)], axis=-1).reshape(len(t), 2 * orders)


def _around_line(t: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Residuals of a regression on (1, t)."""
    values = values - values.mean(axis=0)
    slope = t - t.mean()
    return values - np.outer(slope, slope @ values) / (slope @ slope)


def _explained(square: np.ndarray, product: np.ndarray) -> float:
    """Sum of squares that the columns X explain, from XᵀX (D, D) and Xᵀy (D, O).

    The ridge allows columns that are multiples of each other, as where only one phase of the cycle was read.
    """
    ridge = TINY * max(1.0, float(square.max())) * np.eye(len(square))
    return float(np.sum(product * np.linalg.solve(square + ridge, product)))


class _Sums(NamedTuple):
    """Sums over each of P pieces: XᵀX (P, D, D), Xᵀy (P, D, O) and the squares of y (P,)."""

    square: np.ndarray
    product: np.ndarray
    total: np.ndarray


def _period_in_parts(
    t: np.ndarray, e: np.ndarray, frequency: float, *, cycles: int, level: float, orders: int
) -> float | None:
    """Period of a cycle whose phase jumps, if it differs from the best one of the whole series; else None.

    Args:
        t: Steps, (N,), growing.
        e: Readings, (N, O), in units of their spread.
        frequency: The best frequency for the whole series.
        cycles: Least number of periods in each part.
        level: Least share of the variance around the lines that the cycle explains.
        orders: Harmonics.
    """
    length, price = t[-1] - t[0] + 1.0, np.log(len(t))
    possible = [cuts for cuts in CUTS if length * frequency * min(np.diff(cuts)) >= cycles * PIECES]
    if not possible or len(t) < 2 * PIECES * (2 * orders + 2):
        return None
    around = np.clip(frequency + np.linspace(-2.0, 2.0, 81) / length, cycles / length, 0.5 / (orders + 1))
    tried = [_sums(t, e, f, orders) for f in (frequency, *around)]
    columns = 2 + 2 * orders

    def gain(after: float, before: float) -> float:
        return len(t) * np.log(before / after)

    whole, most, found = _unexplained(tried[0], [0, PIECES], columns), 0.0, None
    for cuts in possible:
        left = np.array([_unexplained(sums, cuts, columns) for sums in tried])
        i, parts = int(np.argmin(left)), len(cuts) - 1
        worth = gain(left[i], whole) - (columns * (parts - 1) + (parts == 2)) * price
        if worth > most:
            lines = _unexplained(tried[i], cuts, 2)
            pays = left[i] <= (1.0 - level) * lines and gain(left[i], lines) > 2 * orders * parts * price
            differs = gain(left[i], left[0]) > 2.0 * price  # a new frequency must be worth two parameters
            most, found = worth, float(1.0 / around[i - 1]) if pays and differs else None
    return found


def _sums(t: np.ndarray, e: np.ndarray, frequency: float, orders: int) -> _Sums:
    middle, half = 0.5 * (t[0] + t[-1]), 0.5 * (t[-1] - t[0] + 1)
    line = np.stack([np.ones(len(t)), (t - middle) / half], axis=1)
    X = np.concatenate([line, _waves(t, frequency, orders)], axis=1)
    bounds = np.searchsorted(t, t[0] + 2.0 * half * np.arange(PIECES + 1) / PIECES).tolist()
    pieces = [(X[a:b], e[a:b]) for a, b in pairwise(bounds)]
    return _Sums(
        square=np.stack([x.T @ x for x, _ in pieces]),
        product=np.stack([x.T @ y for x, y in pieces]),
        total=np.array([np.sum(y**2) for _, y in pieces]),
    )


def _unexplained(sums: _Sums, cuts: Sequence[int], columns: int) -> float:
    """Sum of squares that the first columns leave, with weights of their own in each part."""
    left = 0.0
    for start, end in pairwise(cuts):
        square, product = (each[start:end].sum(axis=0)[:columns] for each in sums[:2])
        left += sums.total[start:end].sum() - _explained(square[:, :columns], product)
    return float(max(left, TINY * max(sums.total.sum(), TINY)))
