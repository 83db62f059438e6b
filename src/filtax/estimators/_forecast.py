"""Forecasts of one number or one label, as plain numbers of Python."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

STANDARD = NormalDist()


@dataclass(frozen=True)
class Forecast:
    """The distribution of the next y: its interval, with the tails of a Gaussian beyond it.

    Each side of the forecast holds half of the probability; its Gaussian has the width that the interval says.

    Attributes:
        mean: The forecast.
        lower, upper: The interval that holds y with probability `level`.
        level: Probability of the interval.

    >>> seen = Forecast(3.0, 1.0, 5.0, 0.9)
    >>> seen.interval(0.9), seen.cdf(3.0), round(seen.sigma, 3)
    ((1.0, 5.0), 0.5, 1.216)
    """

    mean: float
    lower: float
    upper: float
    level: float

    @property
    def sigma(self) -> float:
        """Standard deviation of y, the mean of the two sides."""
        return 0.5 * (self.upper - self.lower) / deviation(self.level)

    @property
    def var(self) -> float:
        """Variance of y."""
        return self.sigma**2

    def interval(self, level: float = 0.9) -> tuple[float, float]:
        """The central interval that holds y with probability `level`."""
        ratio = deviation(level) / deviation(self.level)
        return self.mean - ratio * (self.mean - self.lower), self.mean + ratio * (self.upper - self.mean)

    def cdf(self, y: float) -> float:
        """Probability that y is at most this."""
        return STANDARD.cdf((y - self.mean) / self._side(y))

    def log_prob(self, y: float) -> float:
        """Log density at y."""
        sigma = self._side(y)
        return -0.5 * ((y - self.mean) / sigma) ** 2 - math.log(sigma) - 0.5 * math.log(2.0 * math.pi)

    def _side(self, y: float) -> float:
        width = self.mean - self.lower if y < self.mean else self.upper - self.mean
        return max(width / deviation(self.level), 1e-300)


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


def deviation(level: float) -> float:
    """Standard deviations to either side within which a Gaussian holds `level`."""
    if not 0.0 < level < 1.0:
        raise ValueError(f"level={level!r} must lie strictly between 0 and 1; for 90 % give 0.9.")
    return STANDARD.inv_cdf(0.5 * (1.0 + level))
