"""Regression on a polynomial of one input whose coefficients jump: the streams on which forgetting is needed.

x_t ~ U[-2, 2], phi(x) = (1, x, x²), y_t = phi(x_t) . theta_t + e_t. Theta is drawn from U[-3, 3]³, and drawn anew with
probability `hazard` at each step.
"""

import jax
import numpy as np

from filtax.streams.synthetic import Stream, generator

__all__ = ["piecewise_polynomial"]

INPUT, COEFFICIENT, DEGREE = 2.0, 3.0, 2


def piecewise_polynomial(steps: int = 300, *, key: int | jax.Array, hazard: float = 0.01, noise: float = 1.0) -> Stream:
    """Regress on (1, x, x²) with Gaussian errors and coefficients that jump.

    Args:
        steps: Length T.
        key: Whole number or JAX key.
        hazard: Probability of a change at each step; the thesis prints 0.001, which its figure cannot have had
            (errata E9).
        noise: Variance of y around its mean.

    Returns:
        A stream whose X is phi(x), (T, 3).

    Example:
        >>> from filtax.streams import piecewise_polynomial
        >>> stream = piecewise_polynomial(300, key=5)
        >>> stream.X.shape, len(stream.changes)
        ((300, 3), 5)
    """
    if not 0.0 <= hazard <= 1.0:
        raise ValueError(
            f"piecewise_polynomial(hazard=...) must lie in [0, 1], got {hazard}; it is a probability a step."
        )
    rng = generator(key)
    x = rng.uniform(-INPUT, INPUT, steps)
    changed = rng.random(steps) < hazard
    changed[:1] = False  # the first coefficients are new anyway
    drawn = rng.uniform(-COEFFICIENT, COEFFICIENT, (1 + changed.sum(), DEGREE + 1))
    theta = drawn[np.cumsum(changed)]
    X = x[:, None] ** np.arange(DEGREE + 1)
    truth = np.sum(X * theta, axis=1)
    y = truth + np.sqrt(noise) * rng.standard_normal(steps)
    changes = tuple(int(t) for t in np.flatnonzero(changed))
    return Stream(np.arange(steps), X, y, truth, theta, np.zeros(steps, bool), changes)
