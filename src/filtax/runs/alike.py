"""Whether neighbouring readings resemble each other within their segments: what is taken for changes then are none.

A segment is a level, or a line, and independent readings around it. Where each reading starts from the one before, the
level wanders, and a stretch that stays above for a while is cut off. Their correlation shows it
(`filtax.segmentation._segments`).
"""

import numpy as np

from filtax.runs.cutting import Cut
from filtax.segmentation._segments import MUCH, neighbour_correlation

__all__ = ["correlation", "warning"]

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
    return neighbour_correlation(known, cut.changes, cut.period)


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
