r"""The length of a cycle that turns round, or slips: as a whole it cancels itself out, in parts it does not.

At its own frequency such a cycle has a hole in the spectrum and a hill on each side, and a hill is found in its place.
So the frequencies around it are tried once more, with a line and a cycle of their own on both sides of a cut, or in
each of 4 or 8 parts. As everywhere a number costs $\log N$, and so does the cut; the new frequency must be worth two.

Axes: N readings, O outputs, P pieces, D = 2 + 2 orders columns. Cost: 81 N D^2.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

__all__ = ["explained", "turned_period", "waves"]

PIECES = 8  # between which a series is cut
CUTS = [[0, cut, PIECES] for cut in range(1, PIECES)] + [list(range(0, PIECES + 1, by)) for by in (2, 1)]
TINY = 1e-12  # of all squares: what is left of an exact cycle


class _Sums(NamedTuple):
    """Of each piece the products of columns (P, D, D), those with the readings (P, D, O), and the squares (P,)."""

    square: np.ndarray
    product: np.ndarray
    total: np.ndarray


def waves(t: np.ndarray, frequency: float, orders: int) -> np.ndarray:
    """Cosine and sine of each harmonic in turn, (N, 2 orders).

    >>> waves(np.array([0, 3]), 1 / 12, 1).round(6).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    angle = 2.0 * np.pi * frequency * np.outer(t, np.arange(1, orders + 1))
    return np.stack([np.cos(angle), np.sin(angle)], axis=-1).reshape(len(t), 2 * orders)


def explained(square: np.ndarray, product: np.ndarray) -> float:
    """Sum of squares that columns explain, which may be copies of each other, as where only every cycle was read.

    Args:
        square: Products of the columns, (D, D).
        product: Those with the readings, (D, O).

    >>> round(explained(np.full((2, 2), 1e5), np.full((2, 1), 3e5)))
    900000
    """
    ridge = TINY * max(1.0, float(square.max())) * np.eye(len(square))
    return float(np.sum(product * np.linalg.solve(square + ridge, product)))


def turned_period(
    t: np.ndarray, e: np.ndarray, frequency: float, *, cycles: int, level: float, orders: int
) -> float | None:
    """The period of a cycle that begins anew somewhere, where it is another one than was found; else None.

    Args:
        t: Steps, (N,), growing.
        e: Readings, (N, O), in units.
        frequency: The best one for the whole series.
        cycles: How often the cycle must at least come round in each part.
        level: Least share of the variance around the lines that it explains.
        orders: Harmonics.

    >>> t = np.arange(480)
    >>> y = np.sin(2 * np.pi * t / 24 + np.pi * (t >= 240))[:, None]
    >>> round(turned_period(t, y, 1 / 24.6, cycles=6, level=0.25, orders=2), 2)
    24.0
    """
    length, price = t[-1] - t[0] + 1.0, np.log(len(t))
    ways = [cuts for cuts in CUTS if length * frequency * min(np.diff(cuts)) >= cycles * PIECES]
    if not ways or len(t) < 2 * PIECES * (2 * orders + 2):
        return None
    around = np.clip(frequency + np.linspace(-2.0, 2.0, 81) / length, cycles / length, 0.5 / (orders + 1))
    tried = [_sums(t, e, f, orders) for f in (frequency, *around)]
    columns = 2 + 2 * orders
    worth = lambda now, before: len(t) * np.log(before / now)  # noqa: E731
    whole, most, found = _left(tried[0], [0, PIECES], columns), 0.0, None
    for cuts in ways:
        left = np.array([_left(sums, cuts, columns) for sums in tried])
        i, parts = int(np.argmin(left)), len(cuts) - 1
        gain = worth(left[i], whole) - (columns * (parts - 1) + (parts == 2)) * price
        if gain > most:
            lines = _left(tried[i], cuts, 2)
            pays = left[i] <= (1.0 - level) * lines and worth(left[i], lines) > 2 * orders * parts * price
            other = worth(left[i], left[0]) > 2.0 * price
            most, found = gain, float(1.0 / around[i - 1]) if pays and other else None
    return found


def _sums(t: np.ndarray, e: np.ndarray, frequency: float, orders: int) -> _Sums:
    middle, half = 0.5 * (t[0] + t[-1]), 0.5 * (t[-1] - t[0] + 1)
    line = np.stack([np.ones(len(t)), (t - middle) / half], axis=1)
    X = np.concatenate([line, waves(t, frequency, orders)], axis=1)
    bounds = np.searchsorted(t, t[0] + 2.0 * half * np.arange(PIECES + 1) / PIECES).tolist()
    parts = [slice(a, b) for a, b in pairwise(bounds)]
    of = lambda a, b: np.stack([a[part].T @ b[part] for part in parts])  # noqa: E731
    return _Sums(of(X, X), of(X, e), np.array([np.sum(e[part] ** 2) for part in parts]))


def _left(sums: _Sums, cuts: Sequence[int], columns: int) -> float:
    """Sum of squares that the first columns leave, with weights of their own in each part."""
    left = 0.0
    for start, end in pairwise(cuts):
        square, product = (each[start:end].sum(axis=0)[:columns] for each in sums[:2])
        left += sums.total[start:end].sum() - explained(square[:, :columns], product)
    return float(max(left, TINY * max(sums.total.sum(), TINY)))
