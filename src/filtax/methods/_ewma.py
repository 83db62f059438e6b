r"""The robust moving average: WoLF-IMQ of a level that walks at random, in four lines of scalar arithmetic.

An exponentially weighted average whose smoothing factor is found from two variances, and falls where a datum does not
fit. It is the method `WoLF-IMQ(c)+C-ACI(q)` with the model `gaussian(r)`, one number at a time, and the tests hold them
equal.

Thesis: prop:kf-unidimensional-is-ewma, eq:wolf-1d (errata E28: q, r and s are variances, and s' is (1 - k)(s + q),
since k r/w² would be 0 times infinity).
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from filtax import _validation as checks
from filtax.protocols import Module


class Smoothed(Module):
    """A moving average: its level, how uncertain that is, and how much each datum counted, all (T,).

    >>> ewma([1.0, 1.0], q=0.01, r=1.0).mean.shape
    (2,)
    """

    mean: Float[Array, " T"]
    var: Float[Array, " T"]
    gain: Float[Array, " T"]


def ewma(y: Any, *, q: Any, r: Any, c: Any = math.inf, mean: Any = 0.0, var: Any = 1.0) -> Smoothed:
    r"""Moving average that outliers do not move.

    $w^2 = 1/(1 + (y - m)^2/c^2)$, $k = (s+q)/(s+q+r/w^2)$, $m' = m + k(y-m)$, $s' = (1-k)(s+q)$. Without c (c = inf)
    it is the Kalman filter of a level: an EWMA whose smoothing factor settles at
    $\tfrac12(\sqrt{\rho^2+4\rho} - \rho)$ with $\rho = q/r$.

    Args:
        y: Data (T,); NaN where missing.
        q: Variance that the level gains a step.
        r: Variance of the noise.
        c: Soft threshold, in the unit of y: a datum much further off than c counts for nothing.
        mean: Level before the first datum.
        var: Its variance.

    Returns:
        The level after each datum, its variance, and the smoothing factor k used.

    >>> calm = ewma([1.0, 1.0, 1e30, 1.0], q=0.01, r=1.0, c=3.0, mean=1.0)
    >>> calm.mean.tolist(), calm.gain[2].item()
    ([1.0, 1.0, 1.0, 1.0], 0.0)
    """
    (y,) = checks.arrays(y=y)
    if y.ndim != 1:
        raise ValueError(f"ewma: y has shape {y.shape}; give one series (T,), and use jax.vmap for several.")
    checks.positive("ewma(q=...)", q, zero=True, hint="It is the variance that the level gains a step.")
    checks.positive("ewma(r=...)", r, hint="It is the variance of the noise.")
    checks.positive("ewma(var=...)", var, zero=True)
    if checks.is_concrete(c) and not c > 0.0:
        raise ValueError(f"ewma(c=...) must be above 0, got {c}; leave it out for a plain average.")
    y = jnp.asarray(y)
    y = y.astype(y.dtype if jnp.issubdtype(y.dtype, jnp.floating) else jnp.result_type(float))

    def step(carry: tuple[Array, Array], y: Array) -> tuple[tuple[Array, Array], tuple[Array, Array, Array]]:
        m, s = carry
        e = jnp.where(jnp.isfinite(y), y - m, 0.0)
        w2 = jnp.where(jnp.isfinite(y), 1.0 / (1.0 + jnp.square(e / c)), 0.0)
        k = w2 * (s + q) / (w2 * (s + q) + r)
        m, s = jnp.where(k > 0.0, m + k * e, m), (1.0 - k) * (s + q)
        return (m, s), (m, s, k)

    start = jnp.asarray(mean, y.dtype), jnp.asarray(var, y.dtype)
    return Smoothed(*jax.lax.scan(step, start, y)[1])
