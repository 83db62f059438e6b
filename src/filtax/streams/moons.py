"""Two half-moons that reach into each other: the labels of the thesis's network examples.

A label is 0 or 1 with probability one half. The first moon is (cos a, sin a), the second (1 - cos a, 1/2 - sin a), with
a ~ U[0, pi]; both coordinates get normal noise, and are then centred and scaled by the mean and the standard deviation
that they have, not by those of the sample.
"""

import jax
import numpy as np

from filtax.streams.synthetic import Stream, generator

__all__ = ["moons"]

NODES = 200  # of the integral along a moon
CENTRE = np.array([0.5, 0.25])
SPREAD = np.array([0.75, 0.5 - 4 / np.pi**2 + (2 / np.pi - 0.25) ** 2])  # variances without noise


def moons(steps: int, *, key: int | jax.Array, noise: float = 0.1) -> Stream:
    """Draw labelled points of two half-moons.

    Args:
        steps: Length T.
        key: Whole number or JAX key.
        noise: Standard deviation of the noise before scaling, in radii of a moon. The thesis does not state it.

    Returns:
        A stream whose X is (T, 2) and whose `truth` is the probability of a one at each point: to guess by it is the
        best that can be done.

    Example:
        >>> from filtax.streams import moons
        >>> stream = moons(1000, key=0, noise=0.2)
        >>> bool(((stream.truth > 0.5) == (stream.y > 0.5)).mean() > 0.95)
        True
    """
    if not noise > 0.0:
        raise ValueError(f"moons(noise=...) must be above 0, got {noise}; it is a standard deviation, such as 0.1.")
    rng = generator(key)
    label = rng.integers(0, 2, steps)
    angle = rng.uniform(0.0, np.pi, steps)
    points = np.where(label[:, None] == 1, _moon(angle, 1), _moon(angle, 0)) + noise * rng.standard_normal((steps, 2))
    X = (points - CENTRE) / np.sqrt(SPREAD + noise**2)
    return Stream(np.arange(steps), X, label.astype(float), _probability(points, noise), None, np.zeros(steps, bool))


def _moon(angle: np.ndarray, which: int) -> np.ndarray:
    x, y = np.cos(angle), np.sin(angle)
    return np.stack([1.0 - x, 0.5 - y] if which else [x, y], axis=-1)


def _probability(points: np.ndarray, noise: float) -> np.ndarray:
    """P(label 1 | point), by the midpoint rule along each moon."""
    angle = (np.arange(NODES) + 0.5) * np.pi / NODES
    far = [np.sum((points[:, None, :] - _moon(angle, which)) ** 2, axis=2) / (2 * noise**2) for which in (0, 1)]
    nearest = np.minimum(far[0].min(axis=1), far[1].min(axis=1))[:, None]
    of = [np.exp(nearest - distance).sum(axis=1) for distance in far]
    return of[1] / (of[0] + of[1])
