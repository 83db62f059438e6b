"""Gross errors among the first readings of a stream, whose unit is not known yet: by medians, which stay."""

import numpy as np

__all__ = ["OFTEN", "ROWS", "SPARED", "gross", "standing_alone"]

FIRST = 8  # readings before any is judged
GATE = 50.0  # robust deviations from the median; heavy tails stay inside
ROWS = 24  # of a stream that are looked at once more: a day of hours
SPARED = 3  # odd readings in a row that may be errors; more are a level
OFTEN = 0.3  # share of odd readings above which none is an error
ALONE = 0.9  # of its way from the median that an error is away from its neighbours too: a hill is not


def gross(rows: np.ndarray, spared: int, often: float, first: int = FIRST) -> np.ndarray:
    """Which readings are gross errors, (T,).

    Args:
        rows: Readings, (T, O); NaN where missing.
        spared: Odd readings in a row that may be errors; more are a level that moved.
        often: Share of odd readings above which none is an error.
        first: Readings of an output before any is judged.

    >>> y = np.array([1.0, 2.0, 1.5, 0.5, 1.0, 900.0, 2.0, 1.0, 0.0])
    >>> gross(y[:, None], spared=2, often=0.3).nonzero()[0].tolist()
    [5]
    """
    odd = np.zeros(len(rows), bool)
    for column in rows.T:
        known = column[np.isfinite(column)]
        if len(known) > first:
            off = np.abs(column - np.median(known))
            spread = 1.4826 * np.nanmedian(off)  # 0 where most readings are the same: no unit
            odd |= (off > GATE * spread) & (spread > 0.0)
    runs = np.flatnonzero(np.diff(odd, prepend=False, append=False)).reshape(-1, 2)
    for start, stop in runs[runs[:, 1] - runs[:, 0] > spared]:
        odd[start:stop] = False
    return odd if odd.mean() <= often else np.zeros(len(rows), bool)


def standing_alone(y: np.ndarray, odd: np.ndarray) -> np.ndarray:
    """Those of the odd readings that lie as far from their neighbours as from the median, (T,); not the last ones.

    Args:
        y: Readings, (T,).
        odd: Which are odd, (T,), such as from `gross`.

    >>> odd = np.array([True, False, False, False, True])
    >>> standing_alone(np.array([900.0, 1.0, 2.0, 1.0, 900.0]), odd).tolist()
    [True, False, False, False, False]
    """
    odd = odd.copy()
    middle = np.median(y[np.isfinite(y)]) if odd.any() else 0.0
    off = np.abs(y - middle)
    usual = np.flatnonzero(np.isfinite(y) & ~odd)
    for start, stop in np.flatnonzero(np.diff(odd, prepend=False, append=False)).reshape(-1, 2).tolist():
        beside = [*usual[usual < start][-1:], *usual[usual >= stop][:1]]
        near = min(np.min(np.abs(y[start:stop] - y[at]) / off[start:stop]) for at in beside)
        odd[start:stop] &= bool(near >= ALONE) and bool(np.any(usual >= stop))  # of the last ones more may come
    return odd
