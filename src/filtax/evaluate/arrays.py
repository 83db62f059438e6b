"""What the scores share: numpy and JAX alike, values that never came, and the standard Student-t.

A score works in the namespace of its arguments (`xp`): numpy stays numpy and is computed in float64, whatever JAX is
set to; JAX arrays stay JAX arrays, so that a score can be jitted and differentiated.
"""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import betainc, erf, gammaln

__all__ = [
    "QUIET",
    "Numbers",
    "Values",
    "by_row",
    "central_t",
    "log_gamma_step",
    "log_t",
    "namespaced",
    "residuals",
    "settle",
    "special",
]

Values = jax.Array | np.ndarray
Numbers = Any  # what a user may give where an array is meant: whatever numpy turns into one

# a broken forecast divides by zero or overflows; its score tells of that, and needs no warning besides
QUIET = np.errstate(all="ignore")


def namespaced(first: Numbers, *others: Numbers) -> tuple[Any, ...]:
    """Return numpy or jax.numpy, then the arguments as its arrays, in the floating dtype of the first.

    >>> xp, mean, y = namespaced(np.zeros(2), [1, 2])
    >>> xp.__name__, y.dtype
    ('numpy', dtype('float64'))
    """
    if any(isinstance(value, jax.Array) for value in (first, *others)):
        first = jnp.asarray(first)
        dtype = first.dtype if jnp.issubdtype(first.dtype, jnp.floating) else jnp.result_type(float)
        return jnp, *(jnp.asarray(value).astype(dtype) for value in (first, *others))
    return np, *(np.asarray(value, np.float64) for value in (first, *others))


def by_row(xp: Any, values: Values) -> Values:
    """Rows of one axis each, (T, N); with no rows there is nothing from which the other axis could be told.

    >>> by_row(np, np.zeros((0, 2, 3))).shape
    (0, 6)
    """
    return xp.reshape(values, (len(values), math.prod(values.shape[1:])))


def residuals(xp: Any, mean: Values, y: Values) -> tuple[Values, Values]:
    """Tell which values came, and how far each is from its forecast.

    The distance is 0 where nothing came, so that gradients stay finite.

    >>> seen, residual = residuals(np, np.zeros(2), np.array([3.0, np.nan]))
    >>> residual
    array([3., 0.])
    """
    seen = xp.isfinite(y)
    return seen, xp.where(seen, y, 0.0) - xp.where(seen, mean, 0.0)


def settle(xp: Any, loss: Values, seen: Values, worst: float = math.inf) -> Values:
    """Leave what never came unscored (NaN), and give what could not be computed the worst score.

    >>> settle(np, np.array([1.0, np.nan, 2.0]), np.array([True, True, False]))
    array([ 1., inf, nan])
    """
    return xp.where(seen, xp.where(xp.isnan(loss), worst, loss), math.nan)


def special(xp: Any, function: Callable[..., jax.Array], *arguments: Values) -> Values:
    """Call a JAX special function; on numpy arrays in float64, and numpy comes back.

    >>> from jax.scipy.special import erf
    >>> special(np, erf, np.zeros(1))
    array([0.])
    """
    if xp is jnp:
        return function(*arguments)
    with jax.enable_x64(True):
        return np.asarray(function(*arguments))


def log_t(xp: Any, z: Values, df: Values) -> Values:
    """Log density of the standard Student-t.

    >>> log_t(np, np.zeros(1), np.ones(1)).round(4)
    array([-1.1447])
    """
    return log_gamma_step(xp, 0.5 * df) - 0.5 * xp.log(math.pi * df) - 0.5 * (df + 1.0) * xp.log1p(z**2 / df)


def central_t(xp: Any, z: Values, df: Values) -> Values:
    """Signed probability between -|z| and |z| of the standard Student-t: 2F(z) - 1.

    From 50 degrees of freedom on by Hill's normal deviate of equal probability (CACM algorithm 395, 1970), then right
    to 1e-13: the incomplete beta function loses digits as they grow, in float32 the second one at a million.

    >>> central_t(np, np.array([-1.0, 1.0]), np.ones(2)).round(4)
    array([-0.5,  0.5])
    """
    many = df > 50.0
    few, shift = xp.where(many, 50.0, df), xp.where(many, df, 50.0) - 0.5
    exact = special(xp, betainc, xp.full_like(z, 0.5), 0.5 * few, z**2 / (few + z**2))
    w, scale = shift * xp.log1p(z**2 / (shift + 0.5)), 48.0 * shift**2
    inner = (((-0.4 * w - 3.3) * w - 24.0) * w - 85.5) / (0.8 * w**2 + 100.0 + scale) + w + 3.0
    nearly = special(xp, erf, xp.sqrt(0.5 * w) * (inner / scale + 1.0))
    return xp.sign(z) * xp.where(many, nearly, exact)


def log_gamma_step(xp: Any, x: Values) -> Values:
    """Compute log Γ(x + ½) - log Γ(x); by its asymptotic series for large x, where digits get lost.

    >>> log_gamma_step(np, np.array([1e12])).round(6)  # half of log(1e12)
    array([13.815511])
    """
    big = x > 40.0
    w = 1.0 / xp.where(big, x, 40.0)
    series = -w / 8.0 * (1.0 - w**2 * (1.0 / 24.0 - w**2 / 80.0))
    small = xp.where(big, 1.0, x)
    exact = special(xp, gammaln, small + 0.5) - special(xp, gammaln, small)
    return xp.where(big, series - 0.5 * xp.log(w), exact)
