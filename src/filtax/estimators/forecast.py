"""A forecast of one number or label, as plain numbers of Python: whatever precision JAX is set to, it is float64."""

import math
from collections.abc import Mapping
from typing import Any

import jax
from jaxtyping import PyTree

from filtax.estimators.intervals import interval, parts_of
from filtax.estimators.stretch import stretched

__all__ = ["Chances", "Forecast"]


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


class Chances:
    """The distribution of the next label.

    Attributes:
        probabilities: Of each class met so far, by label; empty before any was met.

    >>> seen = Chances({"rain": 0.75, "sun": 0.25})
    >>> seen.mode, seen.prob("rain"), seen.prob("snow"), round(seen.entropy, 3)
    ('rain', 0.75, 0.0, 0.562)
    """

    def __init__(self, probabilities: Mapping[Any, float]):
        self.probabilities = dict(probabilities)

    @property
    def mode(self) -> Any:
        """The most probable label; None before any was met."""
        known = self.probabilities
        return max(known, key=lambda label: known[label]) if known else None

    @property
    def entropy(self) -> float:
        """How unsure it is, in nats."""
        return 0.0 - math.fsum(p * math.log(p) for p in self.probabilities.values() if p > 0.0)

    def prob(self, y: Any) -> float:
        """Probability of a label; 0 for one that was never met."""
        return self.probabilities.get(y, 0.0)

    def log_prob(self, y: Any) -> float:
        """Log probability of a label."""
        chance = self.prob(y)
        return math.log(chance) if chance > 0.0 else -math.inf

    def __repr__(self) -> str:
        shown = ", ".join(f"{label!r}: {chance:.3g}" for label, chance in self.probabilities.items())
        return f"Chances({{{shown}}})"
