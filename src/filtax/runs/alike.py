r"""Whether neighbouring readings resemble each other within their segments: what is taken for changes then are none.

A segment is a level, or a line, and independent readings around it. Where each reading starts from the one before, the
level wanders, and a stretch that stays above for a while is cut off. The correlation of neighbours shows it: of what
is left of the readings once each segment's line is taken off, and where there is a cycle, of what they gained on it.
"""

from itertools import pairwise

import numpy as np

from filtax.runs.cutting import Cut

__all__ = ["correlation", "warning"]

MUCH = 0.25  # correlation from which on more is cut than should be
ROUNDING = 1e-9  # of the largest reading: what is smaller is none of its own
SURE = 4.0  # standard errors that it must be away from 0


def correlation(y: np.ndarray, cut: Cut) -> float:
    """Correlation of neighbouring readings within segments; 0 where nothing is known of it.

    Args:
        y: Readings, (T,); NaN where missing.
        cut: How they were cut.

    >>> up_and_down = np.tile([1.0, -1.0], 50)
    >>> round(correlation(up_and_down, Cut([], None, 1, [], [], [], np.zeros(100))), 2)
    -1.0
    """
    known = y.copy()
    known[cut.alone] = np.nan
    parts = [_rest(known[start:end], cut.period) for start, end in pairwise([0, *cut.changes, len(y)])]
    a, b = (np.concatenate([part[side] for part in parts]) for side in (slice(None, -1), slice(1, None)))
    both = np.isfinite(a) & np.isfinite(b)
    a, b = a[both], b[both]
    size = np.sqrt(np.sum(a * a) * np.sum(b * b))
    return float(np.sum(a * b) / size) if size > 0.0 else 0.0


def warning(told: dict) -> str:
    """A sentence on changes that may be none; empty where all is well.

    >>> warning({"correlation": 0.6, "rows": 1000, "segments": [{}], "alarms": [{}]})[:37]
    'Neighbouring rows resemble each other'
    >>> warning({"correlation": 0.1, "rows": 1000, "segments": [{}], "alarms": [{}]})
    ''
    """
    found = told["correlation"]
    if found < max(MUCH, SURE / np.sqrt(told["rows"])) or not (told["segments"][1:] or told["alarms"]):
        return ""
    return (
        f"Neighbouring rows resemble each other within segments too (correlation {found:.2f}), and then too much is "
        "taken for a change: average rows over longer steps, or use `filtax run`, which learns how a row follows from "
        "those before it."
    )


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
