"""Scores of a forecast at the value that came, element by element: errors, densities, CRPS, PIT, scores of classes.

Each takes numpy or JAX arrays and returns the same kind. Numpy is computed in float64, whatever JAX is set to; JAX
arrays stay JAX arrays, so that a score can be jitted and differentiated. A value y that is missing (NaN) or infinite is
not scored: its loss is NaN. A forecast that is not a number gets the worst score for a y that came, so that no method
wins by failing.

Gaussian and Student-t forecasts have closed forms. Any other is scored through equally likely points, which are draws
from it or its quantiles. Thesis: experiment:prequential.
"""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.special as jsp
import numpy as np

Values = jax.Array | np.ndarray
Numbers = Any  # what a user may give where an array is meant: whatever numpy turns into one

# a failed forecast divides by zero or overflows; its score says so, and needs no warning besides
QUIET = np.errstate(all="ignore")
_ROOT_PI = math.sqrt(math.pi)


def namespaced(first: Numbers, *others: Numbers) -> tuple[Any, ...]:
    """Return numpy or jax.numpy (if any argument is a JAX array), then the arguments as its arrays, in the first dtype.

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
    """Flatten each row, (T, N); unlike `reshape(T, -1)` it also works without rows.

    >>> by_row(np, np.zeros((0, 2, 3))).shape
    (0, 6)
    """
    return xp.reshape(values, (len(values), math.prod(values.shape[1:])))


def residuals(xp: Any, mean: Values, y: Values) -> tuple[Values, Values]:
    """Return which values were observed, and y minus the forecast; 0 where y is missing, so that gradients stay finite.

    >>> observed, residual = residuals(np, np.zeros(2), np.array([3.0, np.nan]))
    >>> residual
    array([3., 0.])
    """
    observed = xp.isfinite(y)
    return observed, xp.where(observed, y, 0.0) - xp.where(observed, mean, 0.0)


def masked_loss(xp: Any, loss: Values, observed: Values, worst: float = math.inf) -> Values:
    """Replace losses of missing values by NaN, and those that could not be computed by the worst score.

    >>> masked_loss(np, np.array([1.0, np.nan, 2.0]), np.array([True, True, False]))
    array([ 1., inf, nan])
    """
    return xp.where(observed, xp.where(xp.isnan(loss), worst, loss), math.nan)


def special(xp: Any, function: Callable[..., jax.Array], *arguments: Values) -> Values:
    """Call a JAX special function; numpy arrays are computed in float64 and returned as numpy.

    >>> from jax.scipy.special import erf
    >>> special(np, erf, np.zeros(1))
    array([0.])
    """
    if xp is jnp:
        return function(*arguments)
    with jax.enable_x64(True):
        return np.asarray(function(*arguments))


@QUIET
def squared_error(mean: Numbers, y: Numbers) -> Values:
    """Compute the squared error.

    >>> import numpy as np
    >>> squared_error(np.array([1.0, 1.0, np.nan]), np.array([3.0, np.nan, 0.0]))
    array([ 4., nan, inf])
    """
    xp, mean, y = namespaced(mean, y)
    observed, residual = residuals(xp, mean, y)
    return masked_loss(xp, residual**2, observed)


@QUIET
def absolute_error(mean: Numbers, y: Numbers) -> Values:
    """Compute the absolute error.

    >>> import numpy as np
    >>> absolute_error(np.array([1.0, 1.0]), np.array([3.0, np.nan]))
    array([ 2., nan])
    """
    xp, mean, y = namespaced(mean, y)
    observed, residual = residuals(xp, mean, y)
    return masked_loss(xp, xp.abs(residual), observed)


@QUIET
def log_density_gaussian(mean: Numbers, var: Numbers, y: Numbers) -> Values:
    """Compute the log density of N(mean, var) at y.

    >>> import numpy as np
    >>> log_density_gaussian(np.zeros(1), np.ones(1), np.zeros(1)).round(4)
    array([-0.9189])
    """
    xp, mean, var, y = namespaced(mean, var, y)
    observed, residual = residuals(xp, mean, y)
    return masked_loss(xp, -0.5 * (residual**2 / var + xp.log(2.0 * math.pi * var)), observed, worst=-math.inf)


@QUIET
def log_density_student_t(mean: Numbers, scale: Numbers, df: Numbers, y: Numbers) -> Values:
    """Compute the log density at y of a Student-t with `df` degrees of freedom around `mean`.

    >>> import numpy as np
    >>> log_density_student_t(np.zeros(1), np.ones(1), np.ones(1), np.zeros(1)).round(4)  # 1 / pi
    array([-1.1447])
    """
    xp, mean, scale, df, y = namespaced(mean, scale, df, y)
    observed, residual = residuals(xp, mean, y)
    return masked_loss(xp, log_t(xp, residual / scale, df) - xp.log(scale), observed, worst=-math.inf)


@QUIET
def crps_gaussian(mean: Numbers, var: Numbers, y: Numbers) -> Values:
    r"""Compute the continuous ranked probability score (CRPS) of N(mean, var), in the units of y.

    It is $\int (F(z) - 1[z \ge y])^2 dz = \sigma\{z(2\Phi(z) - 1) + 2\varphi(z) - 1/\sqrt\pi\}$ with $z = (y -
    \mu)/\sigma$ (Gneiting and Raftery 2007). A forecast without spread scores its absolute error.

    >>> import numpy as np
    >>> crps_gaussian(np.zeros(1), np.ones(1), np.zeros(1)).round(4)
    array([0.2337])
    """
    xp, mean, var, y = namespaced(mean, var, y)
    observed, residual = residuals(xp, mean, y)
    scale = xp.sqrt(var)
    z = residual / xp.where(scale > 0, scale, 1.0)
    density = xp.exp(-0.5 * z**2) / math.sqrt(2.0 * math.pi)
    score = scale * (z * special(xp, jsp.erf, z / math.sqrt(2.0)) + 2.0 * density - 1.0 / _ROOT_PI)
    return masked_loss(xp, xp.where(scale == 0, xp.abs(residual), score), observed)


@QUIET
def crps_student_t(mean: Numbers, scale: Numbers, df: Numbers, y: Numbers) -> Values:
    r"""Compute the CRPS of a Student-t forecast; infinite up to one degree of freedom.

    With $z = (y - \mu)/\sigma$, density f and distribution F of the standard t with $\nu$ degrees of freedom:
    $$\sigma\Bigl\{z(2F(z) - 1) + 2f(z)\frac{\nu + z^2}{\nu - 1}
      - \frac{2\sqrt\nu}{\nu - 1}\frac{B(1/2, \nu - 1/2)}{B(1/2, \nu/2)^2}\Bigr\}.$$

    >>> import numpy as np
    >>> crps_student_t(np.zeros(1), np.ones(1), np.full(1, 1e6), np.zeros(1)).round(4)
    array([0.2337])
    """
    xp, mean, scale, df, y = namespaced(mean, scale, df, y)
    observed, residual = residuals(xp, mean, y)
    z = residual / scale
    n = xp.where(df > 1, df, 2.0)
    # B(1/2, n - 1/2) / B(1/2, n/2)², with the large gamma functions cancelled by hand
    ratio = xp.exp(2.0 * log_gamma_step(xp, 0.5 * n) - log_gamma_step(xp, n - 0.5)) / _ROOT_PI
    score = z * central_t(xp, z, n) + 2.0 * (xp.exp(log_t(xp, z, n)) * (n + z**2) - xp.sqrt(n) * ratio) / (n - 1.0)
    return masked_loss(xp, xp.where(df > 1, scale * score, math.inf), observed)


@QUIET
def crps_points(points: Numbers, y: Numbers) -> Values:
    r"""Compute the CRPS of N equally likely points, on the last axis.

    The points are draws, or the quantiles of the forecast at $(i - 1/2)/N$: then this is the quantile form of the
    score, twice the mean pinball loss. Exact for the distribution of the points: $E|X - y| - E|X - X'|/2$.

    >>> import numpy as np
    >>> crps_points(np.array([[0.0, 2.0]]), np.array([1.0]))
    array([0.5])
    """
    xp, points, y = namespaced(points, y)
    observed, residual = residuals(xp, xp.sort(points, axis=-1), y[..., None])
    level = xp.reshape((xp.arange(points.shape[-1]) + 0.5) / points.shape[-1], (1,) * y.ndim + (-1,)).astype(
        points.dtype
    )
    return masked_loss(
        xp, 2.0 * xp.mean(xp.maximum(level * residual, (level - 1.0) * residual), axis=-1), observed[..., 0]
    )


@QUIET
def pit_gaussian(mean: Numbers, var: Numbers, y: Numbers) -> Values:
    """Compute the probability integral transform P(Y <= y) of N(mean, var). It is uniform if the forecast is right.

    >>> import numpy as np
    >>> pit_gaussian(np.zeros(1), np.ones(1), np.zeros(1))
    array([0.5])
    """
    xp, mean, var, y = namespaced(mean, var, y)
    observed, residual = residuals(xp, mean, y)
    return masked_loss(xp, special(xp, jsp.ndtr, residual / xp.sqrt(var)), observed, worst=0.0)


@QUIET
def pit_student_t(mean: Numbers, scale: Numbers, df: Numbers, y: Numbers) -> Values:
    """Compute the probability integral transform of a Student-t forecast.

    >>> import numpy as np
    >>> pit_student_t(np.zeros(1), np.ones(1), np.ones(1), np.ones(1)).round(4)
    array([0.75])
    """
    xp, mean, scale, df, y = namespaced(mean, scale, df, y)
    observed, residual = residuals(xp, mean, y)
    return masked_loss(xp, 0.5 + 0.5 * central_t(xp, residual / scale, df), observed, worst=0.0)


@QUIET
def pit_points(points: Numbers, y: Numbers, u: Numbers = 0.5) -> Values:
    """Compute the probability integral transform of N equally likely points: the share below y, plus `u` of the ties.

    Args:
        points: Draws from the forecast, or its quantiles, on the last axis.
        y: The observed values.
        u: 0.5 for the mid-PIT; uniform draws of the shape of y for the randomised PIT, which is uniform for a discrete
            forecast that is right.

    >>> import numpy as np
    >>> pit_points(np.array([[0.0, 1.0, 1.0, 2.0]]), np.array([1.0]))
    array([0.5])
    """
    xp, points, y, u = namespaced(points, y, u)
    observed, residual = residuals(xp, points, y[..., None])
    below, equal = xp.mean(residual > 0, axis=-1), xp.mean(residual == 0, axis=-1)
    return masked_loss(xp, below + u * equal, observed[..., 0], worst=0.0)


def log_t(xp: Any, z: Values, df: Values) -> Values:
    """Log density of the standard Student-t.

    >>> log_t(np, np.zeros(1), np.ones(1)).round(4)
    array([-1.1447])
    """
    return log_gamma_step(xp, 0.5 * df) - 0.5 * xp.log(math.pi * df) - 0.5 * (df + 1.0) * xp.log1p(z**2 / df)


def central_t(xp: Any, z: Values, df: Values) -> Values:
    """Signed probability between -|z| and |z| of the standard Student-t: 2F(z) - 1.

    From 50 degrees of freedom on, it uses Hill's normal deviate of equal probability (CACM algorithm 395, 1970), with
    an error of 1e-13. The incomplete beta function loses digits as they grow, in float32 all but one at a million.

    >>> central_t(np, np.array([-1.0, 1.0]), np.ones(2)).round(4)
    array([-0.5,  0.5])
    """
    many = df > 50.0
    few, shift = xp.where(many, 50.0, df), xp.where(many, df, 50.0) - 0.5
    exact = special(xp, jsp.betainc, xp.full_like(z, 0.5), 0.5 * few, z**2 / (few + z**2))
    w, scale = shift * xp.log1p(z**2 / (shift + 0.5)), 48.0 * shift**2
    inner = (((-0.4 * w - 3.3) * w - 24.0) * w - 85.5) / (0.8 * w**2 + 100.0 + scale) + w + 3.0
    nearly = special(xp, jsp.erf, xp.sqrt(0.5 * w) * (inner / scale + 1.0))
    return xp.sign(z) * xp.where(many, nearly, exact)


def log_gamma_step(xp: Any, x: Values) -> Values:
    """Compute log Γ(x + ½) - log Γ(x); by its asymptotic series for large x, where the difference loses digits.

    >>> log_gamma_step(np, np.array([1e12])).round(6)  # half of log(1e12)
    array([13.815511])
    """
    big = x > 40.0
    w = 1.0 / xp.where(big, x, 40.0)
    series = -w / 8.0 * (1.0 - w**2 * (1.0 / 24.0 - w**2 / 80.0))
    small = xp.where(big, 1.0, x)
    exact = special(xp, jsp.gammaln, small + 0.5) - special(xp, jsp.gammaln, small)
    return xp.where(big, series - 0.5 * xp.log(w), exact)


@QUIET
def log_probability(probabilities: Numbers, y: Numbers) -> Values:
    """Compute the log probability of the observed label.

    `probabilities` has one axis more than y, the classes; or, with the shape of y, it is that of label 1 against 0.

    >>> import numpy as np
    >>> log_probability(np.array([[0.25, 0.75]]), np.array([1])).round(4)
    array([-0.2877])
    """
    xp, p, y = namespaced(probabilities, y)
    observed = xp.isfinite(y)
    chosen = xp.sum(xp.where(_one_hot(xp, p, y), _class_probabilities(xp, p, y), 0.0), axis=-1)
    return masked_loss(
        xp, xp.where(chosen > 0, xp.log(xp.where(chosen > 0, chosen, 1.0)), -math.inf), observed, worst=-math.inf
    )


@QUIET
def brier_score(probabilities: Numbers, y: Numbers) -> Values:
    """Compute the squared distance between the class probabilities and the observed class.

    With a class axis: the sum over classes of (p - one-hot)², between 0 and 2. Without (label 1 against 0): (p - y)².

    >>> import numpy as np
    >>> brier_score(np.array([[0.25, 0.75]]), np.array([1]))
    array([0.125])
    >>> brier_score(np.array([0.75]), np.array([1]))
    array([0.0625])
    """
    xp, p, y = namespaced(probabilities, y)
    distance = (_class_probabilities(xp, p, y) - _one_hot(xp, p, y).astype(p.dtype)) ** 2
    score = xp.sum(distance, axis=-1) if p.ndim > y.ndim else distance[..., 1]
    return masked_loss(xp, score, xp.isfinite(y))


@QUIET
def correct(probabilities: Numbers, y: Numbers) -> Values:
    """Return 1 where the most probable class was observed, else 0; ties go to the first class.

    >>> import numpy as np
    >>> correct(np.array([[0.25, 0.75], [0.5, 0.5]]), np.array([1, 1]))
    array([1., 0.])
    """
    xp, p, y = namespaced(probabilities, y)
    both = _class_probabilities(xp, p, y)
    hit = (xp.argmax(both, axis=-1).astype(y.dtype) == y) & ~xp.any(xp.isnan(both), axis=-1)
    return masked_loss(xp, hit.astype(p.dtype), xp.isfinite(y))


def _class_probabilities(xp: Any, p: Values, y: Values) -> Values:
    """Probabilities with a class axis: as they are, or (1 - p, p) for a lone probability of label 1."""
    if y.shape not in (p.shape, p.shape[:-1]):
        raise ValueError(
            f"probabilities of shape {p.shape} do not fit labels of shape {y.shape}; give one axis more, the classes, "
            "or the probability of label 1 for each."
        )
    return p if p.ndim > y.ndim else xp.stack([1.0 - p, p], axis=-1)


def _one_hot(xp: Any, p: Values, y: Values) -> Values:
    classes = p.shape[-1] if p.ndim > y.ndim else 2
    return xp.reshape(xp.arange(classes), (1,) * y.ndim + (-1,)).astype(y.dtype) == y[..., None]
