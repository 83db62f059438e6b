"""Losses of a forecast at the value that came, element by element: distance, log density, and the scores of classes.

Each takes numpy or JAX arrays and answers in kind. A value y that is missing (NaN) or infinite is not scored: its
loss is NaN. A forecast that is not a number, for a y that came, gets the worst score: no method wins by breaking.

Thesis: experiment:prequential.
"""

import math
from typing import Any

from filtax.evaluate.arrays import QUIET, Numbers, Values, log_t, namespaced, residuals, settle

__all__ = [
    "absolute_error",
    "brier_score",
    "correct",
    "log_density_gaussian",
    "log_density_student_t",
    "log_probability",
    "squared_error",
]


@QUIET
def squared_error(mean: Numbers, y: Numbers) -> Values:
    """Square the distance between forecast and value.

    >>> import numpy as np
    >>> squared_error(np.array([1.0, 1.0, np.nan]), np.array([3.0, np.nan, 0.0]))
    array([ 4., nan, inf])
    """
    xp, mean, y = namespaced(mean, y)
    seen, residual = residuals(xp, mean, y)
    return settle(xp, residual**2, seen)


@QUIET
def absolute_error(mean: Numbers, y: Numbers) -> Values:
    """Distance between forecast and value.

    >>> import numpy as np
    >>> absolute_error(np.array([1.0, 1.0]), np.array([3.0, np.nan]))
    array([ 2., nan])
    """
    xp, mean, y = namespaced(mean, y)
    seen, residual = residuals(xp, mean, y)
    return settle(xp, xp.abs(residual), seen)


@QUIET
def log_density_gaussian(mean: Numbers, var: Numbers, y: Numbers) -> Values:
    """Log density of N(mean, var) at y.

    >>> import numpy as np
    >>> log_density_gaussian(np.zeros(1), np.ones(1), np.zeros(1)).round(4)
    array([-0.9189])
    """
    xp, mean, var, y = namespaced(mean, var, y)
    seen, residual = residuals(xp, mean, y)
    return settle(xp, -0.5 * (residual**2 / var + xp.log(2.0 * math.pi * var)), seen, worst=-math.inf)


@QUIET
def log_density_student_t(mean: Numbers, scale: Numbers, df: Numbers, y: Numbers) -> Values:
    """Log density at y of a Student-t with `df` degrees of freedom around `mean`.

    >>> import numpy as np
    >>> log_density_student_t(np.zeros(1), np.ones(1), np.ones(1), np.zeros(1)).round(4)  # 1 / pi
    array([-1.1447])
    """
    xp, mean, scale, df, y = namespaced(mean, scale, df, y)
    seen, residual = residuals(xp, mean, y)
    return settle(xp, log_t(xp, residual / scale, df) - xp.log(scale), seen, worst=-math.inf)


@QUIET
def log_probability(probabilities: Numbers, y: Numbers) -> Values:
    """Log probability that the forecast gave to the label that came.

    `probabilities` has one axis more than y, the classes; or, with the shape of y, it is that of label 1 against 0.

    >>> import numpy as np
    >>> log_probability(np.array([[0.25, 0.75]]), np.array([1])).round(4)
    array([-0.2877])
    """
    xp, p, y = namespaced(probabilities, y)
    seen = xp.isfinite(y)
    chosen = xp.sum(xp.where(_one_hot(xp, p, y), _both(xp, p, y), 0.0), axis=-1)
    return settle(xp, xp.where(chosen > 0, xp.log(xp.where(chosen > 0, chosen, 1.0)), -math.inf), seen, worst=-math.inf)


@QUIET
def brier_score(probabilities: Numbers, y: Numbers) -> Values:
    """Squared distance between the forecast probabilities and what came.

    With a class axis: the sum over classes of (p - one-hot)², between 0 and 2. Without (label 1 against 0): (p - y)².

    >>> import numpy as np
    >>> brier_score(np.array([[0.25, 0.75]]), np.array([1]))
    array([0.125])
    >>> brier_score(np.array([0.75]), np.array([1]))
    array([0.0625])
    """
    xp, p, y = namespaced(probabilities, y)
    distance = (_both(xp, p, y) - _one_hot(xp, p, y).astype(p.dtype)) ** 2
    score = xp.sum(distance, axis=-1) if p.ndim > y.ndim else distance[..., 1]
    return settle(xp, score, xp.isfinite(y))


@QUIET
def correct(probabilities: Numbers, y: Numbers) -> Values:
    """1 where the most probable class came, else 0; ties go to the first class.

    >>> import numpy as np
    >>> correct(np.array([[0.25, 0.75], [0.5, 0.5]]), np.array([1, 1]))
    array([1., 0.])
    """
    xp, p, y = namespaced(probabilities, y)
    both = _both(xp, p, y)
    hit = (xp.argmax(both, axis=-1).astype(y.dtype) == y) & ~xp.any(xp.isnan(both), axis=-1)
    return settle(xp, hit.astype(p.dtype), xp.isfinite(y))


def _both(xp: Any, p: Values, y: Values) -> Values:
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
