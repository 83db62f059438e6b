"""How well the spread of a forecast fits: continuous ranked probability score and probability integral transform.

Numpy or JAX arrays, element by element; what is missing is not scored (see `filtax.evaluate.scores`). Closed forms for
Gaussian and Student-t forecasts; any other is scored through equally likely points, drawn from it or its quantiles.
"""

import math

import jax.scipy.special as jsp

from filtax.evaluate.arrays import (
    QUIET,
    Numbers,
    Values,
    central_t,
    log_gamma_step,
    log_t,
    namespaced,
    residuals,
    settle,
    special,
)

__all__ = ["crps_gaussian", "crps_points", "crps_student_t", "pit_gaussian", "pit_points", "pit_student_t"]

_ROOT_PI = math.sqrt(math.pi)


@QUIET
def crps_gaussian(mean: Numbers, var: Numbers, y: Numbers) -> Values:
    r"""Continuous ranked probability score of N(mean, var): $\int (F(z) - 1[z \ge y])^2 dz$, in the units of y.

    With $z = (y - \mu)/\sigma$ it is $\sigma\{z(2\Phi(z) - 1) + 2\varphi(z) - 1/\sqrt\pi\}$ (Gneiting and Raftery
    2007). A forecast without spread scores its absolute error.

    >>> import numpy as np
    >>> crps_gaussian(np.zeros(1), np.ones(1), np.zeros(1)).round(4)
    array([0.2337])
    """
    xp, mean, var, y = namespaced(mean, var, y)
    seen, residual = residuals(xp, mean, y)
    scale = xp.sqrt(var)
    z = residual / xp.where(scale > 0, scale, 1.0)
    density = xp.exp(-0.5 * z**2) / math.sqrt(2.0 * math.pi)
    score = scale * (z * special(xp, jsp.erf, z / math.sqrt(2.0)) + 2.0 * density - 1.0 / _ROOT_PI)
    return settle(xp, xp.where(scale == 0, xp.abs(residual), score), seen)


@QUIET
def crps_student_t(mean: Numbers, scale: Numbers, df: Numbers, y: Numbers) -> Values:
    r"""Continuous ranked probability score of a Student-t forecast; infinite up to one degree of freedom.

    With $z = (y - \mu)/\sigma$, density f and distribution F of the standard t with $\nu$ degrees of freedom:
    $$\sigma\Bigl\{z(2F(z) - 1) + 2f(z)\frac{\nu + z^2}{\nu - 1}
      - \frac{2\sqrt\nu}{\nu - 1}\frac{B(1/2, \nu - 1/2)}{B(1/2, \nu/2)^2}\Bigr\}.$$

    >>> import numpy as np
    >>> crps_student_t(np.zeros(1), np.ones(1), np.full(1, 1e6), np.zeros(1)).round(4)
    array([0.2337])
    """
    xp, mean, scale, df, y = namespaced(mean, scale, df, y)
    seen, residual = residuals(xp, mean, y)
    z = residual / scale
    n = xp.where(df > 1, df, 2.0)
    # B(1/2, n - 1/2) / B(1/2, n/2)², with the large gamma functions cancelled by hand
    ratio = xp.exp(2.0 * log_gamma_step(xp, 0.5 * n) - log_gamma_step(xp, n - 0.5)) / _ROOT_PI
    score = z * central_t(xp, z, n) + 2.0 * (xp.exp(log_t(xp, z, n)) * (n + z**2) - xp.sqrt(n) * ratio) / (n - 1.0)
    return settle(xp, xp.where(df > 1, scale * score, math.inf), seen)


@QUIET
def crps_points(points: Numbers, y: Numbers) -> Values:
    r"""Continuous ranked probability score of N equally likely points, on the last axis.

    The points are draws, or the quantiles of the forecast at $(i - 1/2)/N$: then this is the quantile form of the
    score, twice the mean pinball loss. Exact for the distribution of the points: $E|X - y| - E|X - X'|/2$.

    >>> import numpy as np
    >>> crps_points(np.array([[0.0, 2.0]]), np.array([1.0]))
    array([0.5])
    """
    xp, points, y = namespaced(points, y)
    seen, residual = residuals(xp, xp.sort(points, axis=-1), y[..., None])
    level = xp.reshape((xp.arange(points.shape[-1]) + 0.5) / points.shape[-1], (1,) * y.ndim + (-1,)).astype(
        points.dtype
    )
    return settle(xp, 2.0 * xp.mean(xp.maximum(level * residual, (level - 1.0) * residual), axis=-1), seen[..., 0])


@QUIET
def pit_gaussian(mean: Numbers, var: Numbers, y: Numbers) -> Values:
    """Probability integral transform: where y fell in N(mean, var), between 0 and 1. Uniform if the forecast is right.

    >>> import numpy as np
    >>> pit_gaussian(np.zeros(1), np.ones(1), np.zeros(1))
    array([0.5])
    """
    xp, mean, var, y = namespaced(mean, var, y)
    seen, residual = residuals(xp, mean, y)
    return settle(xp, special(xp, jsp.ndtr, residual / xp.sqrt(var)), seen, worst=0.0)


@QUIET
def pit_student_t(mean: Numbers, scale: Numbers, df: Numbers, y: Numbers) -> Values:
    """Probability integral transform of a Student-t forecast.

    >>> import numpy as np
    >>> pit_student_t(np.zeros(1), np.ones(1), np.ones(1), np.ones(1)).round(4)
    array([0.75])
    """
    xp, mean, scale, df, y = namespaced(mean, scale, df, y)
    seen, residual = residuals(xp, mean, y)
    return settle(xp, 0.5 + 0.5 * central_t(xp, residual / scale, df), seen, worst=0.0)


@QUIET
def pit_points(points: Numbers, y: Numbers, u: Numbers = 0.5) -> Values:
    """Probability integral transform of N equally likely points (last axis): the share below y, plus `u` of the equal.

    Args:
        points: Draws from the forecast, or its quantiles.
        y: The values that came.
        u: 0.5 for the mid-PIT; uniform draws of the shape of y for the randomised PIT, which is uniform for a discrete
            forecast that is right.

    >>> import numpy as np
    >>> pit_points(np.array([[0.0, 1.0, 1.0, 2.0]]), np.array([1.0]))
    array([0.5])
    """
    xp, points, y, u = namespaced(points, y, u)
    seen, residual = residuals(xp, points, y[..., None])
    below, equal = xp.mean(residual > 0, axis=-1), xp.mean(residual == 0, axis=-1)
    return settle(xp, below + u * equal, seen[..., 0], worst=0.0)
