r"""Averages over an uncertain rate: log-normal (no closed form) and Gamma (one that loses its digits when naive)."""

import math
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
from jax.nn import logsumexp, softmax
from jax.scipy.special import ndtr
from jaxtyping import Array, Float

from filtax.distributions.shape import normal_rule
from filtax.distributions.special import cap, gamma_tail, log_peak

__all__ = ["gamma_odds", "log_average", "log_gamma_exceeds", "log_mass"]

NODES = 64  # of the rule for the log rate: log probabilities are exact to 1e-5
RULE = 24  # of the Gauss-Hermite rule, where what is averaged is smooth over the belief


def log_average(y: Float[Array, "*S"], m: Float[Array, "*S"], sd: Float[Array, "*S"]) -> Float[Array, "*S"]:
    r"""Log of $\int \mathrm{Poisson}(y \mid e^\eta) N(\eta; m, sd^2) d\eta$.

    A fixed rule over the belief would miss a likelihood that is narrower than it, as that of a large count is. So the
    points are laid around the peak of the product, in units of the narrower of the two.

    >>> log_average(jnp.asarray(0.0), jnp.asarray(0.0), jnp.asarray(0.0)).round(5).item()
    -1.0
    """
    sd = jnp.maximum(sd, 1e-10)
    shift, width = (jax.lax.stop_gradient(part) for part in _peak(y, m, sd))
    points, log_weight = _along(_sinh_rule(), m)
    move = shift[..., None] + width[..., None] * points
    eta, y = jnp.minimum(m[..., None] + move, cap(m.dtype)), y[..., None]
    over = eta - jnp.log(jnp.where(y > 0.0, y, 1.0))
    log_likelihood = jnp.where(y > 0.0, log_peak(y) - y * (jnp.expm1(over) - over), -jnp.exp(over))
    log_prior = -0.5 * (move / sd[..., None]) ** 2 - 0.5 * math.log(2.0 * math.pi)
    return logsumexp(log_likelihood + log_prior + log_weight, axis=-1) + jnp.log(width / sd)


def _peak(y: Array, m: Array, sd: Array) -> tuple[Array, Array]:
    """Where, from m, the product of likelihood and belief is largest, by bisection, and its width at most."""
    count, gap = jnp.maximum(y, 0.5), jnp.log(jnp.maximum(y, 0.5)) - m
    low = jnp.minimum(jnp.maximum(gap, -sd * sd * jnp.exp(m)), 0.0)
    high = jnp.maximum(jnp.minimum(gap, sd * sd * count), 0.0)

    def halve(_: Array | int, bounds: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bounds
        middle = 0.5 * (low + high)
        rising = count - jnp.exp(m + middle) > middle / (sd * sd)
        return jnp.where(rising, middle, low), jnp.where(rising, high, middle)

    low, high = jax.lax.fori_loop(0, 24, halve, (low, high))  # unrolled, it would be done again for each point
    return 0.5 * (low + high), 1.0 / jnp.sqrt(jnp.maximum(y, 1.0) + 1.0 / (sd * sd))


def log_gamma_exceeds(a: Float[Array, "*S"], m: Float[Array, "*S"], sd: Float[Array, "*S"]) -> Float[Array, "*S"]:
    """Probability that log Gamma(a) exceeds N(m, sd²): that of fewer than a events at this log rate.

    The average is taken over whichever of the two varies less.

    >>> log_gamma_exceeds(jnp.asarray(1.0), jnp.asarray(0.0), jnp.asarray(0.0)).round(5).item()  # exp(-1)
    0.36788
    """
    points, log_weight = _along(_sinh_rule(), m)
    over = jnp.minimum(points / jnp.sqrt(a)[..., None], cap(m.dtype))
    weight = softmax(a[..., None] * (over - jnp.expm1(over)) + log_weight, axis=-1)
    wide = sd * jnp.sqrt(a) > 1.0
    gap = (jnp.log(a) - m)[..., None] + over
    smooth = jnp.sum(weight * ndtr(gap / jnp.where(wide, sd, 1.0)[..., None]), axis=-1)
    nodes, weights = _along(normal_rule(RULE), m)
    rate = jnp.exp(jnp.minimum(m[..., None] + sd[..., None] * nodes, cap(m.dtype)))
    narrow = jnp.sum(gamma_tail(jnp.broadcast_to(a[..., None], rate.shape), rate) * weights, axis=-1)
    return jnp.where(wide, smooth, narrow)


def log_mass(k: Float[Array, "*S"], a: Float[Array, "*S"], b: Float[Array, "*S"]) -> Float[Array, "*S"]:
    """Log probability of k events at a rate Gamma(a, b), in saddle-point form: no large terms that cancel.

    >>> log_mass(jnp.asarray(0.0), jnp.asarray(2.0), jnp.asarray(1.0)).round(5).item()  # log 1/4
    -1.38629
    """
    off = (a - k * b) / (a + k)
    misfit = (a + k) / (1.0 + b) * (b * _deviance(off / b) + _deviance(-off))
    return jnp.log(a / (a + k)) + log_peak(a) + log_peak(k) - log_peak(a + k) - misfit


def _deviance(d: Array) -> Array:
    """(1 + d) log(1 + d) - d, which is 1 at d = -1."""
    some = d > -1.0
    return jnp.where(some, (1.0 + d) * jnp.log1p(jnp.where(some, d, 0.0)) - d, 1.0)


def gamma_odds(a: Float[Array, "*S"], b: Float[Array, "*S"], c: Float[Array, "*S"]) -> Float[Array, "*S"]:
    """Probability that Gamma(a) is at most b times Gamma(c); of use when a or c is large.

    The larger of the two is nearly certain: it is averaged over by the rule of Wilson and Hilferty (1931).

    >>> gamma_odds(jnp.asarray(500.0), jnp.asarray(1.0), jnp.asarray(500.0)).round(4).item()
    0.5
    """
    nodes, weights = _along(normal_rule(RULE), a)
    large = jnp.maximum(a, c)[..., None]
    spread = large * (1.0 - 1.0 / (9.0 * large) + nodes / (3.0 * jnp.sqrt(large))) ** 3
    small = jnp.broadcast_to(jnp.minimum(a, c)[..., None], spread.shape)
    at = jnp.where((a > c)[..., None], spread / b[..., None], spread * b[..., None])
    tail = jnp.sum(gamma_tail(small, at) * weights, axis=-1)
    return jnp.where(a > c, tail, 1.0 - tail)


@lru_cache
def _sinh_rule() -> tuple[np.ndarray, np.ndarray]:
    """Points that lie densely near 0 and reach to ±1500, and the logs of their weights for a plain integral."""
    t = np.linspace(-8.0, 8.0, NODES)
    return np.sinh(t), np.log(np.cosh(t) * (t[1] - t[0]))


def _along(rule: tuple[np.ndarray, np.ndarray], like: Array) -> tuple[Array, Array]:
    """Lay points and weights along a new last axis."""
    points, weights = (jnp.asarray(part, like.dtype).reshape((1,) * like.ndim + (-1,)) for part in rule)
    return points, weights
