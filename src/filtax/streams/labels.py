"""Generated labels of two classes whose boundary moves: it turns steadily, or it drifts and jumps.

Inputs are uniform on [-3, 3]², a label is 1 with probability sigmoid(theta_t . x_t). Pure functions of their arguments;
`key` is a whole number or a JAX key. Axes: T time, two features and parameters.

Thesis: exp:logistic-reg, exp:classification-jumps.
"""

import jax
import numpy as np

from filtax.streams.synthetic import Stream, generator

__all__ = ["jumping_labels", "rotating_labels"]

DEGREES = 5.0  # a tick
REACH = 3.0


def rotating_labels(steps: int = 720, *, key: int | jax.Array, length: float = 10.0) -> Stream:
    """Labels whose boundary turns by five degrees a tick: theta_t = length (sin 5°t, cos 5°t), t = 0, 1, ...

    Args:
        steps: Length T; 72 make a turn.
        key: Whole number or JAX key.
        length: Of theta; the larger, the sharper the boundary.

    Returns:
        A stream of labels 0 and 1; `truth` is the probability of 1, `theta` the parameters.

    Example:
        >>> from filtax.streams import rotating_labels
        >>> stream = rotating_labels(100, key=0)
        >>> stream.theta[18].round(6), sorted(set(stream.y.tolist()))
        (array([10.,  0.]), [0.0, 1.0])
    """
    angle = np.deg2rad(DEGREES * np.arange(steps))
    return _labels(generator(key), length * np.stack([np.sin(angle), np.cos(angle)], axis=1), ())


def jumping_labels(
    steps: int = 720, *, key: int | jax.Array, drift: float = 0.01, hazard: float = 0.01, reach: float = 2.0
) -> Stream:
    """Labels whose parameters walk by N(0, drift² I) a tick and now and then are drawn anew from U[-reach, reach]².

    Args:
        steps: Length T.
        key: Whole number or JAX key.
        drift: Standard deviation of a step of the walk.
        hazard: Probability of a jump at a tick.
        reach: Of the law from which the first parameters and those after a jump are drawn.

    Returns:
        A stream of labels 0 and 1; `truth` is the probability of 1, `changes` the ticks of the jumps.

    Example:
        >>> from filtax.streams import jumping_labels
        >>> stream = jumping_labels(200, key=0, drift=0.0, hazard=0.02)
        >>> moved = (stream.theta[1:] != stream.theta[:-1]).all(axis=1)
        >>> stream.changes == tuple((1 + moved.nonzero()[0]).tolist())
        True
    """
    if not 0.0 <= hazard <= 1.0:
        raise ValueError(f"jumping_labels(hazard=...) must lie in [0, 1], got {hazard}; it is a probability a tick.")
    rng = generator(key)
    jumps = rng.random(steps) < hazard
    jumps[:1] = False  # the first parameters are new anyway
    walk, drawn = drift * rng.normal(size=(steps, 2)), rng.uniform(-reach, reach, size=(steps, 2))
    theta = np.empty((steps, 2))
    for t in range(steps):
        theta[t] = drawn[t] if t == 0 or jumps[t] else theta[t - 1] + walk[t]
    return _labels(rng, theta, tuple(int(t) for t in np.flatnonzero(jumps)))


def _labels(rng: np.random.Generator, theta: np.ndarray, changes: tuple[int, ...]) -> Stream:
    X = rng.uniform(-REACH, REACH, size=theta.shape)
    truth = 1.0 / (1.0 + np.exp(-np.sum(X * theta, axis=1)))
    y = (rng.random(len(truth)) < truth).astype(np.float64)
    return Stream(np.arange(len(y)), X, y, truth, theta, np.zeros(len(y), bool), changes)
