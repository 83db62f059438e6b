"""A good first choice of a method for the arms of a bandit."""

from typing import Any

import numpy as np

from filtax import checks
from filtax.methods._parse import method as method_named
from filtax.models import bernoulli, linear

__all__ = ["usual"]

RATE = 0.999  # share of what was learned that one tick keeps


def usual(rewards: str = "binary", features: int = 0, *, noise: float = 1.0, rate: float = RATE) -> tuple[Any, dict]:
    """A method for separate arms, and how its beliefs start: all of them relax towards their prior (OU).

    Args:
        rewards: "binary" (0 or 1) or "number".
        features: Width of the context; 0 for none. A constant feature is yours to add.
        noise: Variance of rewards that are numbers.
        rate: Share of what was learned that one tick keeps.

    Returns:
        The method, and the arguments of its `init`.

    >>> usual("binary")[0].name
    'Cj+C-OU(rate=0.999)'
    """
    if rewards not in ("binary", "number"):
        raise ValueError(f'usual(rewards={rewards!r}) must be "binary" or "number".')
    checks.whole("usual(features=...)", features)
    if rewards == "binary" and not features:
        return method_named(f"Cj+C-OU(rate={rate})", model=bernoulli()), {"mean": 0.5, "cov": 1.0 / 12.0}
    model = linear(likelihood=bernoulli()) if rewards == "binary" else linear(noise=noise)
    return method_named(f"LG+C-OU(rate={rate})", model=model), {"mean": np.zeros(max(features, 1)), "cov": 1.0}
