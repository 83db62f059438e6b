r"""In what two neighbouring segments differ: in their level, their slope, or their cycle.

Each is fitted by least squares, $y_t = a + b\,(t - s) + c^\top w_t + e_t$ with s the first row of the later one and
$w_t$ two harmonics of the cycle. They differ in what is more than `SURE` standard errors apart.

Axes: T readings, D columns.
"""

import math
from typing import Any

import numpy as np

__all__ = ["differing"]

SURE = 5.0  # standard errors
ROUNDING = 1e-9  # of the largest reading: noise that is smaller is none
ALONG = 0.9  # cosine from which on two cycles have the same shape


def differing(y: np.ndarray, start: int, change: int, end: int, period: float | None) -> dict[str, Any]:
    """What changed with a reading: "level" and "slope" with the number before and after, "cycle" with a word.

    Args:
        y: Readings, (T,); NaN where missing.
        start: First reading of the segment before.
        change: First reading of the segment behind it.
        end: One past its last.
        period: Length of the cycle in readings; None if there is none.

    >>> t = np.arange(200)
    >>> y = np.sin(t * t) + np.where(t < 100, 0.0, t - 100.0)
    >>> differs = differing(y, 0, 100, 200, None)
    >>> list(differs), [round(value) for value in differs["slope"]]
    (['slope'], [0, 1])
    """
    unit = float(np.nanmax(np.abs(y[start:end]), initial=0.0))
    if unit == 0.0:
        return {}
    y = y / unit  # squares of any unit stay numbers
    one, two = (_fitted(y, rows, change, period) for rows in (range(start, change), range(change, end)))
    if one is None or two is None:
        return {}
    (before, spread), (after, other) = one, two
    apart, law = after - before, spread + other
    found: dict[str, Any] = {}
    for name, i in (("level", 0), ("slope", 1)):
        if abs(apart[i]) > SURE * math.sqrt(law[i, i]):
            found[name] = [unit * float(before[i]), unit * float(after[i])]
    if apart[2:] @ np.linalg.solve(law[2:, 2:], apart[2:]) > SURE**2:
        found["cycle"] = _turn(before[2:], after[2:])
    return found


def _fitted(y: np.ndarray, rows: range, origin: int, period: float | None) -> tuple[np.ndarray, np.ndarray] | None:
    """Weights and their covariance; None where too little is known of them."""
    at = np.array(rows)[np.isfinite(y[rows.start : rows.stop])]
    angle = np.zeros((len(at), 0)) if period is None else np.multiply.outer(2.0 * np.pi * at / period, [1.0, 2.0])
    line = np.stack([np.ones(len(at)), at - origin], axis=1)
    columns = np.concatenate([line, np.cos(angle), np.sin(angle)], axis=1)
    free = len(at) - columns.shape[1]
    if free < columns.shape[1] or np.linalg.matrix_rank(columns) < columns.shape[1]:
        return None
    root, value = np.linalg.qr(columns), y[at]
    weights = np.linalg.solve(root.R, root.Q.T @ value)
    rest = value - columns @ weights
    noise = max(float(rest @ rest) / free, (ROUNDING * float(np.abs(value).max())) ** 2, np.finfo(float).tiny)
    back = np.linalg.inv(root.R)
    return weights, noise * back @ back.T


def _turn(before: np.ndarray, after: np.ndarray) -> str:
    """A word for what became of a cycle."""
    sizes = np.linalg.norm(before), np.linalg.norm(after)
    cosine = before @ after / max(float(sizes[0] * sizes[1]), np.finfo(float).tiny)
    if cosine < -ALONG:
        return "turned round"
    if cosine > ALONG:
        return "grew" if sizes[1] > sizes[0] else "shrank"
    return "became another one"
