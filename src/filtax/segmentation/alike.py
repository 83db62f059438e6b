"""Whether neighbouring readings resemble each other within their segments: a line with independent noise they are not.

The correlation of neighbours shows it: of what is left of the readings once each segment's line is taken off, and where
there is a cycle, of what they gained on it.

Axes: T data.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

__all__ = ["MUCH", "correlation"]

MUCH = 0.25  # correlation from which on more is cut than should be
ROUNDING = 1e-9  # of the largest reading: what is smaller is none of its own


def correlation(y: np.ndarray, changes: Sequence[int], period: float | None = None) -> float:
    """Correlation of neighbouring readings within segments; 0 where nothing is known of it.

    Args:
        y: Readings, (T,); NaN where missing.
        changes: First reading of each segment after the first.
        period: Length of the cycle in readings; None if there is none.

    >>> up_and_down = np.tile([1.0, -1.0], 50)
    >>> round(correlation(up_and_down, []), 2)
    -1.0
    """
    y = y / (float(np.nanmax(np.abs(y), initial=0.0)) or 1.0)  # squares of any unit stay numbers
    parts = [_rest(y[start:end], period) for start, end in pairwise([0, *changes, len(y)])]
    a, b = (np.concatenate([part[side] for part in parts]) for side in (slice(None, -1), slice(1, None)))
    both = np.isfinite(a) & np.isfinite(b)
    a, b = a[both], b[both]
    size = np.sqrt(np.sum(a * a) * np.sum(b * b))
    return float(np.sum(a * b) / size) if size > 0.0 else 0.0


def _rest(part: np.ndarray, period: float | None) -> np.ndarray:
    """A segment without its line, and without its cycle."""
    if period is not None:
        cycle = max(1, round(period))
        part = part[cycle:] - part[:-cycle]
    seen = np.flatnonzero(np.isfinite(part))
    if seen.size < 3:
        return part[:0]
    line = np.polynomial.Polynomial.fit(seen, part[seen], 1)
    rest = part - line(np.arange(len(part)))
    return np.where(np.abs(rest) <= ROUNDING * np.nanmax(np.abs(part)), 0.0, rest)
