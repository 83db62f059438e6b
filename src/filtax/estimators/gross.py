"""Gross errors among the first readings of a stream, whose unit is not known yet: by medians, which stay."""

import numpy as np

__all__ = ["gross"]

FIRST = 8  # readings before any is judged
GATE = 50.0  # robust deviations from the median; heavy tails stay inside


def gross(rows: np.ndarray, spared: int, often: float) -> np.ndarray:
    """Which readings are gross errors, (T,).

    Args:
        rows: Readings, (T, O); NaN where missing.
        spared: Odd readings in a row that may be errors; more are a level that moved.
        often: Share of odd readings above which none is an error.

    >>> y = np.array([1.0, 2.0, 1.5, 0.5, 1.0, 900.0, 2.0, 1.0, 0.0])
    >>> gross(y[:, None], spared=2, often=0.3).nonzero()[0].tolist()
    [5]
    """
    odd = np.zeros(len(rows), bool)
    for column in rows.T:
        known = column[np.isfinite(column)]
        if len(known) > FIRST:
            off = np.abs(column - np.median(known))
            spread = 1.4826 * np.nanmedian(off)  # 0 where most readings are the same: no unit
            odd |= (off > GATE * spread) & (spread > 0.0)
    runs = np.flatnonzero(np.diff(odd, prepend=False, append=False)).reshape(-1, 2)
    for start, stop in runs[runs[:, 1] - runs[:, 0] > spared]:
        odd[start:stop] = False
    return odd if odd.mean() <= often else np.zeros(len(rows), bool)
