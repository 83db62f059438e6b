"""Generated streams whose parameters stay as they are: what a batch estimate can be compared with.

Pure functions of their arguments; `key` is a whole number or a JAX key. Numpy, float64; axes T time, D parameters.

Thesis: prop:recursive-and-static-ridge, prop:rvga-matches-linreg, fig:recursive-logreg. It gives no data there: laws
and parameters are ours.
"""

from collections.abc import Sequence

import jax
import numpy as np

from filtax.streams.synthetic import Stream, generator

__all__ = ["fixed_labels", "fixed_regression", "parabola_regression"]

LOW, HIGH = -2.0, 3.0  # of x in the parabola


def fixed_regression(
    steps: int, *, key: int | jax.Array, theta: Sequence[float] = (-0.5, 2.0, -1.0), noise: float = 0.5
) -> Stream:
    """Regress on standard normal inputs with parameters that stay: y_t = theta . x_t + N(0, noise).

    Args:
        steps: Length T.
        key: Whole number or JAX key.
        theta: Parameters, (D,).
        noise: Variance of y around its mean, as the models take it.

    Returns:
        A stream whose X is (T, D); `truth` is theta . x, `theta` the parameters, (T, D).

    Example:
        >>> from filtax.streams import fixed_regression
        >>> stream = fixed_regression(50, key=1, theta=(1.0, -1.0), noise=0.0)
        >>> stream.X.shape, bool((stream.y == stream.X[:, 0] - stream.X[:, 1]).all())
        ((50, 2), True)
    """
    rng, coefficients = generator(key), np.asarray(theta, float)
    return _observed(rng, rng.standard_normal((steps, coefficients.size)), coefficients, noise, "fixed_regression")


def parabola_regression(
    steps: int, *, key: int | jax.Array, theta: Sequence[float] = (2.0, -1.0), noise: float = 1.0
) -> Stream:
    """Observe a parabola through the origin: y_t = theta_1 x_t + theta_2 x_t² + N(0, noise), x_t ~ U[-2, 3].

    Args:
        steps: Length T.
        key: Whole number or JAX key.
        theta: Parameters of x and x², (2,).
        noise: Variance of y around its mean.

    Returns:
        A stream whose X is (T, 2), the features (x, x²); `truth` is the parabola, `theta` the parameters, (T, 2).

    Example:
        >>> from filtax.streams import parabola_regression
        >>> stream = parabola_regression(50, key=0)
        >>> stream.X.shape, bool((stream.X[:, 1] == stream.X[:, 0] ** 2).all())
        ((50, 2), True)
    """
    rng = generator(key)
    x = rng.uniform(LOW, HIGH, steps)
    return _observed(rng, np.stack([x, x**2], axis=1), np.asarray(theta, float), noise, "parabola_regression")


def fixed_labels(steps: int, *, key: int | jax.Array, theta: Sequence[float] = (-0.5, 2.0, -1.0)) -> Stream:
    """Label standard normal inputs by a boundary that stays: y_t is 1 with probability sigmoid(theta . (1, x_t)).

    Args:
        steps: Length T.
        key: Whole number or JAX key.
        theta: Parameters, (D,), that of the constant first.

    Returns:
        A stream of labels 0 and 1 whose X is (T, D), a one in front; `truth` is the probability of 1.

    Example:
        >>> from filtax.streams import fixed_labels
        >>> stream = fixed_labels(200, key=0)
        >>> stream.X.shape, sorted(set(stream.X[:, 0].tolist())), sorted(set(stream.y.tolist()))
        ((200, 3), [1.0], [0.0, 1.0])
    """
    rng, coefficients = generator(key), np.asarray(theta, float)
    X = np.concatenate([np.ones((steps, 1)), rng.standard_normal((steps, coefficients.size - 1))], axis=1)
    truth = 1.0 / (1.0 + np.exp(-X @ coefficients))
    y = (rng.random(steps) < truth).astype(np.float64)
    return Stream(np.arange(steps), X, y, truth, np.tile(coefficients, (steps, 1)), np.zeros(steps, bool))


def _observed(rng: np.random.Generator, X: np.ndarray, theta: np.ndarray, noise: float, name: str) -> Stream:
    if theta.shape != X.shape[1:]:
        raise ValueError(f"{name}(theta=...) has shape {theta.shape}; give {X.shape[1]} numbers, one for each feature.")
    if not noise >= 0.0:
        raise ValueError(f"{name}(noise=...) must be at least 0, got {noise}; it is a variance, such as 1.0.")
    truth, steps = X @ theta, len(X)
    y = truth + np.sqrt(noise) * rng.standard_normal(steps)
    return Stream(np.arange(steps), X, y, truth, np.tile(theta, (steps, 1)), np.zeros(steps, bool))
