r"""Intervals that keep their promise: how wide they are made follows how often they were left.

The interval of a forecast is as honest as its model. So it is stretched: asked for $\ell$, one asks the forecast for
$$\ell_t = 2\Phi(z e^{\theta_t}) - 1, \qquad z = \Phi^{-1}((1 + \ell)/2),$$
which for a Gaussian is an interval $e^{\theta_t}$ times as wide, and learns from whether y fell outside of it, $e_t$:
$$\theta_{t+1} = \theta_t + \eta\,(e_t - (1 - \ell)).$$
The sum telescopes: over T rows the share outside is $1 - \ell + (\theta_T - \theta_0)/(\eta T)$, whatever the data, as
long as $\theta$ stays within its limits. The forecast itself, its density and its evidence are left as they are.

Verdicts ask the same of good data alone: of 90 % intervals, without the data that were called outliers, whose number
must not make the next one seem ordinary. A forecast that turns out too narrow by $e^\theta$ gives y the probability of
one $e^\theta$ times as wide; none that is too wide is made narrower. Before an outlier is told of, the forecasts of the
first n data, whose unit is itself a guess, are taken to be $1 + (8/n)^2$ times too narrow; learned from it is not.

After Gibbs and Candès (2021), who move the level itself; on the scale of $\theta$ no interval is empty or endless.
"""

import math
from statistics import NormalDist

import jax.numpy as jnp
from jax.scipy.special import ndtr, ndtri
from jaxtyping import Array, Bool, Float

__all__ = ["FARTHEST", "RATE", "deviation", "next_narrow", "next_stretch", "stretched", "widened"]

RATE = 0.02  # a factor that is wrong is forgotten within some 150 rows
FEW = 8.0  # data of which nobody knows how far the next may lie
JUDGED = 0.9  # the interval by which it is told whether forecasts are too narrow
NARROWEST = math.log(1.2)  # what outliers that are missed may make of it
FARTHEST = math.log(4.0)  # a model that is off by more is wrong, not unlucky


def next_stretch(
    stretch: Float[Array, ""], outside: Bool[Array, ""], level: Float[Array, ""], seen: Bool[Array, ""]
) -> Float[Array, ""]:
    """The logarithm of the factor after one datum.

    Args:
        stretch: Before.
        outside: Whether y fell outside of the stretched interval.
        level: Probability that the interval is to hold.
        seen: Whether there was a y that could be judged; if not, nothing changes.

    >>> yes, level = jnp.array(True), jnp.array(0.9)
    >>> [round(next_stretch(jnp.zeros(()), outside, level, yes).item(), 3) for outside in (yes, ~yes)]
    [0.018, -0.002]
    """
    move = RATE * jnp.where(outside, level, level - 1.0)
    return jnp.where(seen, jnp.clip(stretch + move, -FARTHEST, FARTHEST), stretch)


def next_narrow(narrow: Float[Array, ""], tail: Float[Array, ""], good: Bool[Array, ""]) -> Float[Array, ""]:
    """The logarithm of the factor by which forecasts are too narrow, after one datum.

    Args:
        narrow: Before.
        tail: Probability that the forecast gave to y and anything as extreme.
        good: Whether there was a y, and no outlier.

    >>> [round(next_narrow(jnp.zeros(()), jnp.array(p), jnp.array(True)).item(), 3) for p in (0.09, 0.11)]
    [0.018, -0.002]
    """
    outside = tail < 2.0 * ndtr(-deviation(JUDGED) * jnp.exp(narrow))
    return jnp.minimum(next_stretch(narrow, outside, jnp.asarray(JUDGED, narrow.dtype), good), NARROWEST)


def widened(tail: Float[Array, ""], narrow: Float[Array, ""], count: Float[Array, ""] | float) -> Float[Array, ""]:
    """Probability of y and anything as extreme, by a forecast that is as wide as good data have shown it to be.

    Args:
        tail: The same by the forecast itself.
        narrow: Logarithm of the factor by which forecasts are too narrow; below 0 it is taken for 0.
        count: Data that were learned from; infinite if their number shall not matter.

    >>> round(widened(jnp.array(0.0027), jnp.array(math.log(1.5)), jnp.array(500.0)).item(), 3)  # three become two
    0.046
    """
    factor = jnp.exp(jnp.maximum(narrow, 0.0)) * (1.0 + jnp.square(FEW / jnp.maximum(count, 1.0)))
    return 2.0 * ndtr(ndtri(0.5 * tail) / factor)


def deviation(level: float) -> float:
    """Standard deviations to either side within which a Gaussian holds `level`.

    >>> round(deviation(0.9), 3)
    1.645
    """
    if not 0.0 < level < 1.0:
        raise ValueError(f"level={level!r} must lie strictly between 0 and 1; for 90 % give 0.9.")
    return NormalDist().inv_cdf(0.5 * (1.0 + level))


def stretched(level: float, stretch: float) -> float:
    """The level to ask a forecast for, so that its interval holds `level`.

    >>> stretched(0.9, 0.0), round(stretched(0.9, math.log(2.0)), 4)
    (0.9, 0.999)
    """
    z = deviation(level)
    return level if stretch == 0.0 else math.erf(z * math.exp(stretch) / math.sqrt(2.0))
