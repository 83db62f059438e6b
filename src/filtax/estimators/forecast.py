"""A forecast of one number, as plain numbers of Python: whatever precision JAX is set to, this one is float64."""

from typing import Any

import jax
from jaxtyping import PyTree

from filtax.estimators.intervals import interval, parts_of
from filtax.estimators.stretch import stretched

__all__ = ["Forecast"]


class Forecast:
    """The distribution of the next y.

    >>> from filtax.estimators import Regressor
    >>> seen = Regressor().predict_one({}, with_dist=True)
    >>> seen.mean, seen.cdf(0.0)
    (0.0, 0.5)
    """

    def __init__(self, law: PyTree):
        self._law = law

    @property
    def mean(self) -> float:
        """Expected y."""
        return self._of("mean")

    @property
    def var(self) -> float:
        """Variance of y."""
        return self._of("var")

    @property
    def sigma(self) -> float:
        """Standard deviation of y."""
        return self.var**0.5

    def interval(self, level: float = 0.9, stretch: float = 0.0) -> tuple[float, float]:
        """Central interval that holds y with probability `level`; or one that is stretched: see `stretched`."""
        asked = stretched(level, stretch)
        with jax.enable_x64(True):
            parts = parts_of(jax.tree.map(lambda leaf: leaf[None], self._law), 1)
        low, high = interval(parts, asked)
        return float(low[0]), float(high[0])

    def cdf(self, y: float) -> float:
        """Probability that y is at most this."""
        return self._of("cdf", float(y))

    def log_prob(self, y: float) -> float:
        """Log density at y."""
        return self._of("log_prob", float(y))

    def __repr__(self) -> str:
        return f"Forecast(mean={self.mean:.6g}, sigma={self.sigma:.6g})"

    def _of(self, name: str, *arguments: float) -> float:
        with jax.enable_x64(True):
            value: Any = getattr(self._law, name)
            return float(value(*arguments) if arguments else value)
