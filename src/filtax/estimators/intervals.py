r"""What is kept of a block of forecasts: mean, interval, and where y fell in it.

A forecast is Gaussian, a Student-t, or a mixture of such over hypotheses. The distribution function of a mixture is
$F(y) = \sum_c w_c F_c((y - \mu_c)/s_c)$; its quantiles lie between those of its
parts, and are found by Newton's steps and halving.

Axes: B rows, C hypotheses.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from filtax.distributions import Mixture, Normal, StudentT

__all__ = ["Parts", "interval", "parts_of", "place"]

CLOSE = 1e-9  # probability by which a quantile may be off
FAR = 1e150  # scales from which on 1 + t² is t²
MOST = 1e7  # degrees of freedom from which a Student-t is a Gaussian to all digits that matter


class Parts(NamedTuple):
    """Weights, locations, scales and degrees of freedom, (B, C); infinite freedom is Gaussian.

    >>> Parts(*np.ones((3, 1, 1)), np.full((1, 1), np.inf)).mean.tolist()
    [1.0]
    """

    weight: np.ndarray
    location: np.ndarray
    scale: np.ndarray
    freedom: np.ndarray

    @property
    def mean(self) -> np.ndarray:
        """Mean of each row."""
        return np.sum(self.weight * self.location, axis=1)


def parts_of(made: Any, rows: int) -> Parts:
    """The parts of the first rows of a block of forecasts.

    >>> import jax.numpy as jnp
    >>> parts_of(Normal(jnp.zeros((2, 1)), jnp.full((2, 1, 1), 4.0), scalar=True), 1).scale.tolist()
    [[2.0]]
    """
    inner = made.parts if isinstance(made, Mixture) else made
    if not isinstance(inner, Normal | StudentT):
        raise ValueError(f"forecasts of the kind {type(inner).__name__} have no interval here; use another --method.")
    width = (rows, -1)
    scale = inner.scale if isinstance(inner, StudentT) else inner.cov
    location = np.asarray(inner.mean)[:rows].reshape(width)
    scale = np.sqrt(np.asarray(scale)[:rows].reshape(width))
    freedom = (
        np.asarray(inner.freedom)[:rows].reshape(width) if isinstance(inner, StudentT) else np.full_like(scale, np.inf)
    )
    weight = np.exp(np.asarray(made.log_weight)[:rows]) if isinstance(made, Mixture) else np.ones_like(scale)
    return Parts(weight, location, scale, np.minimum(freedom, MOST))


def place(parts: Parts, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where y fell, F(y), and the log density there; NaN where y is.

    >>> normal = Parts(*np.array([[[1.0]], [[0.0]], [[1.0]], [[np.inf]]]))
    >>> [values.round(4).tolist() for values in place(normal, np.array([0.0]))]
    [[0.5], [-0.9189]]
    """
    t = (y[:, None] - parts.location) / parts.scale
    pit = np.sum(parts.weight * _cdf(t, parts.freedom), axis=1)
    log = _log_density(t, parts.freedom, _log_peak(parts.freedom)) - np.log(parts.scale)
    top = np.max(log, axis=1, keepdims=True)
    with np.errstate(divide="ignore"):
        density = top[:, 0] + np.log(np.sum(parts.weight * np.exp(log - top), axis=1))
    return pit, density


def interval(parts: Parts, level: float | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ends of the central interval of each row, of one level for all or of one for each, (B,).

    >>> normal = Parts(*np.array([[[1.0]], [[0.0]], [[1.0]], [[np.inf]]]))
    >>> [end.round(3).tolist() for end in interval(normal, 0.9)]
    [[-1.645], [1.645]]
    """
    from scipy.special import ndtri, stdtrit

    tail = np.broadcast_to(0.5 * (1.0 - np.asarray(level)), parts.scale.shape[:1])
    half = np.where(parts.freedom < MOST, stdtrit(np.minimum(parts.freedom, MOST), tail[:, None]), ndtri(tail)[:, None])
    half = -half * parts.scale
    lower, upper = parts.location - half, parts.location + half
    if parts.weight.shape[1] == 1:
        return lower[:, 0], upper[:, 0]
    return _quantile(parts, tail, lower), _quantile(parts, 1.0 - tail, upper)


def _quantile(parts: Parts, chance: np.ndarray, own: np.ndarray) -> np.ndarray:
    """The quantile of a mixture lies between those of its parts; its own is mostly near that of the heaviest."""
    used = parts.weight > 0.0
    low = np.min(np.where(used, own, np.inf), axis=1)
    high = np.max(np.where(used, own, -np.inf), axis=1)
    at = np.take_along_axis(own, np.argmax(parts.weight, axis=1)[:, None], axis=1)[:, 0]
    peak = _log_peak(parts.freedom) - np.log(parts.scale)
    for turn in range(60):
        t = (at[:, None] - parts.location) / parts.scale
        off = np.sum(parts.weight * _cdf(t, parts.freedom), axis=1) - chance
        low, high = np.where(off < 0.0, at, low), np.where(off > 0.0, at, high)
        if np.all((np.abs(off) < CLOSE) | (high <= low)):
            break
        slope = np.sum(parts.weight * np.exp(_log_density(t, parts.freedom, peak)), axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            newton = at - off / slope
        inside = (newton > low) & (newton < high) & (turn % 8 != 7)
        at = np.where(np.abs(off) < CLOSE, at, np.where(inside, newton, 0.5 * (low + high)))
    return at


def _cdf(t: np.ndarray, freedom: np.ndarray) -> np.ndarray:
    from scipy.special import ndtr, stdtr

    near = freedom < MOST
    return np.where(near, stdtr(np.where(near, freedom, 1.0), t), ndtr(t)) if near.any() else ndtr(t)


def _log_peak(freedom: np.ndarray) -> np.ndarray:
    """Log density at the centre of a Student-t of scale 1."""
    from scipy.special import gammaln

    n = np.where(freedom < MOST, freedom, 1.0)
    heavy = gammaln(0.5 * (n + 1.0)) - gammaln(0.5 * n) - 0.5 * np.log(n * math.pi)
    return np.where(freedom < MOST, heavy, -0.5 * math.log(2.0 * math.pi))


def _log_density(t: np.ndarray, freedom: np.ndarray, peak: np.ndarray) -> np.ndarray:
    n = np.where(freedom < MOST, freedom, 1.0)
    far = np.abs(t) > FAR
    with np.errstate(over="ignore", divide="ignore"):  # without the square where that would overflow
        rise = np.where(far, 2.0 * np.log(np.abs(t)) - np.log(n), np.log1p(t * t / n))
        return peak - np.where(freedom < MOST, 0.5 * (n + 1.0) * rise, 0.5 * t * t)
