"""Numbers so large that their squares, sums or differences would overflow: held in smaller units, by powers of two.

A power of two changes the exponent of a number and no digit of it, so nothing is lost and nothing needs to be undone
but the exponent. Up to `LARGE` numbers stay as they are.
"""

import math
from collections.abc import Mapping

import numpy as np

__all__ = ["FAR", "Errors", "held", "power_of", "released"]

LARGE = 2.0**400  # 2.6e120: squares of sums of such numbers are far from the end of the range
FAR = 1e100  # scales beyond which a reading teaches nothing: the square of what is nearer is a number
MOST = float(np.finfo(np.float64).max)
OWN_UNIT = ("pit", "log_score", "trust", "change_probability", "runlength")


def power_of(values: np.ndarray, share: float = 0.5) -> int:
    """The power of two that brings a share of these numbers below 1 or 2; 0 unless the rest are large.

    Half of them is a good unit of a column: one that is made for the few largest would make nothing of all others.

    >>> power_of(np.array([3.0, 1e300, np.nan])), power_of(np.array([0.0, -1e300]))
    (0, 997)
    """
    sizes = np.abs(values[np.isfinite(values) & (values != 0.0)])
    return _power(float(np.sort(sizes)[int(share * (sizes.size - 1))])) if sizes.size else 0


def held(numbers: Mapping[str, np.ndarray], powers: Mapping[str, int]) -> dict[str, np.ndarray]:
    """Columns, those that have a power in smaller units.

    >>> held({"x": np.array([2.0**500]), "z": np.array([7.0])}, {"x": 499})
    {'x': array([2.]), 'z': array([7.])}
    """
    smaller = {name: np.ldexp(numbers[name], -power) for name, power in powers.items() if name in numbers}
    return {**numbers, **smaller}


def released(told: Mapping[str, np.ndarray], power: int) -> dict[str, np.ndarray]:
    """What is told of a target that was held so, in its own unit; what would lie beyond the largest number is that.

    >>> released({"upper": np.array([2.0**1000]), "pit": np.array([0.5])}, 100)["upper"] == MOST
    array([ True])
    """
    with np.errstate(over="ignore"):
        own = {name: np.clip(np.ldexp(each, power), -MOST, MOST) for name, each in told.items()}
    own |= {name: told[name] for name in OWN_UNIT if name in told}
    if power and "log_score" in told:
        own["log_score"] = told["log_score"] - power * math.log(2.0)
    return own


class Errors:
    """Sums of the errors of N forecasters and of their squares, whatever their size.

    >>> errors = Errors(1)
    >>> errors.add(np.array([[3e307, 0.0]]), np.array([0.0, 4e307]))[0]
    array([3.e+307, 4.e+307])
    >>> (errors.mean / 1e307).round(6).tolist(), (errors.root / 1e307).round(6).tolist()
    ([3.5], [3.535534])
    """

    def __init__(self, forecasters: int) -> None:
        self.total, self.count = np.zeros((forecasters, 2)), 0
        self.power = np.zeros(forecasters, np.int64)  # each has a unit of its own

    def add(self, said: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Take forecasts (N, B) and what came (B,) in; the errors, (N, B)."""
        largest = np.maximum(np.abs(said).max(axis=1, initial=0.0), np.abs(y).max(initial=0.0))
        power = np.maximum(self.power, [_power(size) for size in largest.tolist()])
        unit = -power[:, None]
        off = np.abs(np.ldexp(said, unit) - np.ldexp(y, unit))
        older = (self.power - power)[:, None] * np.array([1, 2])
        self.total = np.ldexp(self.total, older) + np.stack([off.sum(axis=1), (off * off).sum(axis=1)], axis=1)
        self.power, self.count = power, self.count + len(y)
        return self._own(off.T).T

    @property
    def mean(self) -> np.ndarray:
        """Mean absolute errors, (N,); NaN where there is none."""
        return self._own(self.total[:, 0] / self.count) if self.count else np.full(len(self.total), np.nan)

    @property
    def root(self) -> np.ndarray:
        """Roots of the mean squared errors, (N,)."""
        return self._own(np.sqrt(self.total[:, 1] / self.count)) if self.count else np.full(len(self.total), np.nan)

    def _own(self, values: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            return np.ldexp(values, self.power)


def _power(size: float) -> int:
    return min(math.frexp(size)[1], 1023) if size > LARGE else 0
