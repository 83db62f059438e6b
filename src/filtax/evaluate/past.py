"""What a row may know of the rows before it, when labels come late and some never come."""

import numpy as np
from jaxtyping import Int, Shaped

__all__ = ["known", "last_seen"]


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
