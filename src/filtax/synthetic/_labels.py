"""Synthetic labels of two classes: a boundary that stays, turns (exp:logistic-reg) or jumps, and two half-moons.

The boundary of `jumping_labels` is that of exp:classification-jumps; the moons are the data of the thesis's network
examples.
"""

from collections.abc import Sequence

import jax
import numpy as np

from filtax import _validation as checks
from filtax.synthetic._stream import Stream, generator, jumps, steps_of

ANGLE = 5.0  # degrees a step
REACH = 3.0  # inputs are uniform on [-REACH, REACH]²
NODES = 200  # of the integral along a moon
CENTRE = np.array([0.5, 0.25])  # of the moons
SPREAD = np.array([0.75, 0.5 - 4 / np.pi**2 + (2 / np.pi - 0.25) ** 2])  # their variances without noise


def fixed_labels(steps: int, *, key: int | jax.Array, theta: Sequence[float] = (-0.5, 2.0, -1.0)) -> Stream:
    """Label standard normal inputs by a boundary that stays: y_t is 1 with probability sigmoid(theta . (1, x_t)).

    `theta` holds the parameters, (D,), that of the constant first.

    Returns:
        A stream of labels 0 and 1 whose X is (T, D), its first column one; `truth` is the probability of 1.

    Example:
        >>> from filtax.synthetic import fixed_labels
        >>> stream = fixed_labels(200, key=0)
        >>> stream.X.shape, sorted(set(stream.X[:, 0].tolist())), sorted(set(stream.y.tolist()))
        ((200, 3), [1.0], [0.0, 1.0])
    """
    rng, coefficients = generator(key), np.asarray(theta, float)
    X = np.concatenate([np.ones((steps, 1)), rng.standard_normal((steps, coefficients.size - 1))], axis=1)
    return _labels(rng, X, np.tile(coefficients, (steps, 1)), X @ coefficients)


def rotating_labels(steps: int = 720, *, key: int | jax.Array, length: float = 10.0) -> Stream:
    """Label inputs uniform on [-3, 3]² by a boundary that turns: theta_t = length (sin 5°t, cos 5°t), t = 0, 1, ...

    72 steps make a turn. The larger the `length`, the sharper is the boundary.

    Returns:
        A stream of labels 0 and 1; `truth` is the probability of 1, `theta` the parameters.

    Example:
        >>> from filtax.synthetic import rotating_labels
        >>> stream = rotating_labels(100, key=0)
        >>> stream.theta[18].round(6), sorted(set(stream.y.tolist()))
        (array([10.,  0.]), [0.0, 1.0])
    """
    angle = np.deg2rad(ANGLE * np.arange(steps))
    return _in_the_square(generator(key), length * np.stack([np.sin(angle), np.cos(angle)], axis=1))


def jumping_labels(
    steps: int = 720, *, key: int | jax.Array, drift: float = 0.01, hazard: float = 0.01, reach: float = 2.0
) -> Stream:
    """Label inputs uniform on [-3, 3]² by parameters that walk by N(0, drift² I) and jump with probability `hazard`.

    The first parameters, and those after a jump, are drawn from U[-reach, reach]².

    Returns:
        A stream of labels 0 and 1; `truth` is the probability of 1, `changes` the steps of the jumps.

    Example:
        >>> from filtax.synthetic import jumping_labels
        >>> stream = jumping_labels(200, key=0, drift=0.0, hazard=0.02)
        >>> moved = (stream.theta[1:] != stream.theta[:-1]).all(axis=1)
        >>> stream.changes == tuple((1 + moved.nonzero()[0]).tolist())
        True
    """
    checks.share("jumping_labels(hazard=...)", hazard, hint="It is a probability a step.")
    rng = generator(key)
    jumped = jumps(rng, steps, hazard)
    walk, drawn = drift * rng.normal(size=(steps, 2)), rng.uniform(-reach, reach, size=(steps, 2))
    theta = np.empty((steps, 2))
    for t in range(steps):
        theta[t] = drawn[t] if t == 0 or jumped[t] else theta[t - 1] + walk[t]
    return _in_the_square(rng, theta, steps_of(jumped))


def moons(steps: int, *, key: int | jax.Array, noise: float = 0.1) -> Stream:
    """Draw labelled points of two interleaved half-moons, (cos a, sin a) and (1 - cos a, 1/2 - sin a), a ~ U[0, pi].

    Both labels are equally likely. Coordinates get normal noise, and are then centred and scaled by the mean and the
    standard deviation of their distribution, not by those of the sample.

    `noise` is its standard deviation before scaling, in radii of a moon. The thesis does not state it.

    Returns:
        A stream whose X is (T, 2) and whose `truth` is the probability of a one at each point (the Bayes classifier).

    Example:
        >>> from filtax.synthetic import moons
        >>> stream = moons(1000, key=0, noise=0.2)
        >>> bool(((stream.truth > 0.5) == (stream.y > 0.5)).mean() > 0.95)
        True
    """
    checks.positive("moons(noise=...)", noise, hint="It is a standard deviation, such as 0.1.")
    rng = generator(key)
    label = rng.integers(0, 2, steps)
    angle = rng.uniform(0.0, np.pi, steps)
    points = np.where(label[:, None] == 1, _moon(angle, 1), _moon(angle, 0)) + noise * rng.standard_normal((steps, 2))
    X = (points - CENTRE) / np.sqrt(SPREAD + noise**2)
    return Stream(np.arange(steps), X, label.astype(float), _probability(points, noise), None, np.zeros(steps, bool))


def _in_the_square(rng: np.random.Generator, theta: np.ndarray, changes: tuple[int, ...] = ()) -> Stream:
    X = rng.uniform(-REACH, REACH, size=theta.shape)
    return _labels(rng, X, theta, np.sum(X * theta, axis=1), changes)


def _labels(
    rng: np.random.Generator, X: np.ndarray, theta: np.ndarray, logit: np.ndarray, changes: tuple[int, ...] = ()
) -> Stream:
    truth = 1.0 / (1.0 + np.exp(-logit))
    y = (rng.random(len(truth)) < truth).astype(np.float64)
    return Stream(np.arange(len(y)), X, y, truth, theta, np.zeros(len(y), bool), changes)


def _moon(angle: np.ndarray, which: int) -> np.ndarray:
    x, y = np.cos(angle), np.sin(angle)
    return np.stack([1.0 - x, 0.5 - y] if which else [x, y], axis=-1)


def _probability(points: np.ndarray, noise: float) -> np.ndarray:
    """P(label 1 | point), by the midpoint rule along each moon."""
    angle = (np.arange(NODES) + 0.5) * np.pi / NODES
    far = [np.sum((points[:, None, :] - _moon(angle, which)) ** 2, axis=2) / (2 * noise**2) for which in (0, 1)]
    nearest = np.minimum(far[0].min(axis=1), far[1].min(axis=1))[:, None]
    likelihood = [np.exp(nearest - distance).sum(axis=1) for distance in far]
    return likelihood[1] / (likelihood[0] + likelihood[1])
