"""What a row may know of the rows before it, when labels come late and some never come."""

from typing import Any

import numpy as np
from jaxtyping import Int, Shaped

from filtax import checks

__all__ = ["known", "last_seen", "stream"]


def stream(name: str, y: Any, delay: Any) -> np.ndarray:
    """Check what a baseline is asked: values with a leading axis T, as floats, that come a whole number of steps late.

    >>> stream("last-value", [1, 2], 0)
    array([1., 2.])
    """
    if isinstance(delay, bool) or not isinstance(delay, int | np.integer) or delay < 0:
        raise ValueError(
            f"{name}(delay={delay!r:.40}) must be a whole number of steps, 0 or more; 0 is one known at the next step."
        )
    y = np.asarray(checks.numeric(f"{name}(y)", y), np.float64)
    if y.ndim == 0 or not len(y):
        raise ValueError(f"{name}(y) must have one or more rows, got shape {y.shape}; give (T,) or (T, O).")
    return y


def known(values: Shaped[np.ndarray, " T"], delay: int, before: float | int) -> Shaped[np.ndarray, " T"]:
    """Shift running values to the rows that may use them: row t gets that of row t - 1 - delay, or `before`.

    >>> known(np.array([1, 2, 3]), 1, 0)
    array([0, 0, 1])
    """
    late = min(delay + 1, len(values))
    return np.concatenate([np.full(late, before, values.dtype), values[: len(values) - late]])


def last_seen(y: Shaped[np.ndarray, " T"], delay: int) -> Int[np.ndarray, " T"]:
    """Row of the last value that each row may use; -1 if there is none.

    >>> last_seen(np.array([3.0, np.nan, 5.0]), 0)
    array([-1,  0,  0])
    """
    return known(np.maximum.accumulate(np.where(np.isfinite(y), np.arange(len(y)), -1)), delay, -1)
