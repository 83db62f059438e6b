"""A forecast of one number, as plain numbers of Python: whatever precision JAX is set to, this one is float64."""

from typing import Any

import jax
from jaxtyping import PyTree

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

    def interval(self, level: float = 0.9) -> tuple[float, float]:
        """Central interval that holds y with probability `level`."""
        with jax.enable_x64(True):
            low, high = _interval(self._law, level)
            return float(low), float(high)

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


_interval = jax.jit(lambda law, level: law.interval(level), static_argnums=1)
