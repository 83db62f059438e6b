"""Generated streams whose truth is known: for tests, examples and figures.

Every generator is a pure function of its arguments; `key` is a whole number or a JAX key, and equal keys give equal
streams. Numpy, float64; axes T time, D parameters, O outputs. As in the filters, time passes before each datum, the
first included.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

__all__ = [
    "LinearSystem",
    "Stream",
    "constant_velocity",
    "drifting_regression",
    "generator",
    "piecewise_regression",
    "tracking_2d",
]


@dataclass(frozen=True, eq=False)
class Stream:
    """A stream, and what only its maker knows.

    Attributes:
        time: When each row came: `datetime64[h]`, or the step number.
        X: Inputs, shape (T, D), or (T, O, D) for observation matrices.
        y: What was observed, shape (T,) or (T, O); NaN where missing.
        truth: What a perfect observer would have seen, shape of y, without gaps.
        theta: Hidden parameters or state, shape (T, D); None where there are none.
        outliers: True where y is a gross error, shape (T,).
        changes: Steps at which the process jumped.
        names: Names of the columns of X, if they have any.

    Example:
        >>> from filtax.streams import drifting_regression
        >>> stream = drifting_regression(100, key=0)
        >>> len(stream), stream.X.shape, int(stream.missing.sum())
        (100, (100, 3), 0)
    """

    time: np.ndarray
    X: np.ndarray
    y: np.ndarray
    truth: np.ndarray
    theta: np.ndarray | None = None
    outliers: np.ndarray | None = None
    changes: tuple[int, ...] = ()
    names: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.y)

    @property
    def missing(self) -> np.ndarray:
        """True where nothing was observed."""
        return np.isnan(self.y)


class LinearSystem(NamedTuple):
    """Matrices of theta' = F theta + N(0, Q), y = H theta + N(0, R), and the mean of the state before the first step.

    Example:
        >>> from filtax.streams import constant_velocity
        >>> type(constant_velocity()).__name__
        'LinearSystem'
    """

    F: np.ndarray
    Q: np.ndarray
    H: np.ndarray
    R: np.ndarray
    initial: np.ndarray


def drifting_regression(
    steps: int, *, key: int | jax.Array, features: int = 3, drift: float = 0.05, noise: float = 0.25
) -> Stream:
    """Regress on standard normal inputs with parameters that walk: the model of additive inflation (ACI), exactly.

    theta_0 ~ N(0, I), theta_t = theta_{t-1} + N(0, drift² I), y_t = theta_t . x_t + N(0, noise).

    Args:
        steps: Length T.
        key: Whole number or JAX key.
        features: Number of parameters D.
        drift: Standard deviation of one step of the walk; its square is the q of ACI.
        noise: Variance of y around its mean, as the models take it.

    Example:
        >>> from filtax.streams import drifting_regression
        >>> still = drifting_regression(50, key=1, drift=0.0)
        >>> bool((still.theta == still.theta[0]).all())
        True
    """
    rng = generator(key)
    walk = drift * rng.normal(size=(steps, features))
    theta = rng.normal(size=features) + np.cumsum(walk, axis=0)
    return _regression(rng, theta, noise, ())


def piecewise_regression(
    steps: int, *, key: int | jax.Array, features: int = 3, hazard: float = 0.01, noise: float = 0.25
) -> Stream:
    """Regress on standard normal inputs with parameters that are drawn anew, N(0, I), with probability `hazard` a step.

    Args:
        steps: Length T.
        key: Whole number or JAX key.
        features: Number of parameters D.
        hazard: Probability of a change at each step.
        noise: Variance of y around its mean.

    Example:
        >>> from filtax.streams import piecewise_regression
        >>> stream = piecewise_regression(300, key=0)
        >>> bool((stream.theta[stream.changes[0]] != stream.theta[stream.changes[0] - 1]).all())
        True
    """
    if not 0.0 <= hazard <= 1.0:
        raise ValueError(
            f"piecewise_regression(hazard=...) must lie in [0, 1], got {hazard}; it is a probability a step."
        )
    rng = generator(key)
    changed = rng.random(steps) < hazard
    changed[0] = False  # the first parameters are new anyway
    drawn = rng.normal(size=(1 + changed.sum(), features))
    return _regression(rng, drawn[np.cumsum(changed)], noise, tuple(int(t) for t in np.flatnonzero(changed)))


def constant_velocity(dt: float = 0.1, q: float = 0.1, r: float = 10.0) -> LinearSystem:
    """Build the matrices of an object that moves in the plane: state (position, velocity), position observed.

    Args:
        dt: Time between observations.
        q: Variance of the system noise, on each of the four components.
        r: Variance of the observation noise.

    Returns:
        F, Q, H, R, and the start (0, 0, 1, 1) of the thesis's runs (eq:noisy-2d-ssm).

    Example:
        >>> from filtax.streams import constant_velocity
        >>> system = constant_velocity()
        >>> system.F @ system.initial
        array([0.1, 0.1, 1. , 1. ])
    """
    F = np.eye(4) + dt * np.eye(4, k=2)
    return LinearSystem(F, q * np.eye(4), np.eye(2, 4), r * np.eye(2), np.array([0.0, 0.0, 1.0, 1.0]))


def tracking_2d(
    steps: int = 1000, *, key: int | jax.Array, kind: str = "gaussian", system: LinearSystem | None = None
) -> Stream:
    """Track an object in the plane (experiment:2d-tracking), with clean or with faulty observations.

    Args:
        steps: Length T.
        key: Whole number or JAX key.
        kind: "gaussian"; "student", with 2.01 degrees of freedom (eq:noisy-2d-ssm-outlier-covariance); or "mixture",
            where one observation in twenty is of twice the position (eq:noisy-2d-ssm-outlier-mean).
        system: Matrices; those of `constant_velocity()` if not given.

    Returns:
        A stream whose `theta` is the state, `truth` the position and `outliers` the doubled observations.

    Example:
        >>> from filtax.streams import tracking_2d
        >>> stream = tracking_2d(100, key=0)
        >>> stream.X.shape, stream.y.shape, stream.theta.shape
        ((100, 2, 4), (100, 2), (100, 4))
    """
    F, Q, H, R, state = system or constant_velocity()
    rng = generator(key)
    moves = rng.multivariate_normal(np.zeros(len(state)), Q, size=steps)
    theta = np.empty((steps, len(state)))
    for t in range(steps):
        theta[t] = state = F @ state + moves[t]
    truth = theta @ H.T
    errors = rng.multivariate_normal(np.zeros(len(R)), R, size=steps)
    y, outliers = _FAULTS[_checked_kind(kind)](rng, truth, errors)
    return Stream(np.arange(steps), np.broadcast_to(H, (steps, *H.shape)), y, truth, theta, outliers)


def generator(key: int | jax.Array) -> np.random.Generator:
    """Return numpy's generator for a whole number or a JAX key.

    Example:
        >>> import jax
        >>> from filtax.streams.synthetic import generator
        >>> bool(generator(jax.random.key(3)).random() == generator(jax.random.key(3)).random())
        True
    """
    if isinstance(key, jax.Array):
        words = jax.random.key_data(key) if jnp.issubdtype(key.dtype, jax.dtypes.prng_key) else key
        return np.random.default_rng([*np.asarray(words).tolist(), 1])  # numpy drops zeros at the end
    return np.random.default_rng(key)


def _regression(rng: np.random.Generator, theta: np.ndarray, noise: float, changes: tuple[int, ...]) -> Stream:
    X = rng.normal(size=theta.shape)
    truth = np.sum(X * theta, axis=1)
    y = truth + np.sqrt(noise) * rng.normal(size=len(truth))
    return Stream(np.arange(len(y)), X, y, truth, theta, np.zeros(len(y), bool), changes)


def _clean(rng: np.random.Generator, truth: np.ndarray, errors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return truth + errors, np.zeros(len(truth), bool)


def _student(rng: np.random.Generator, truth: np.ndarray, errors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    precision = rng.gamma(2.01 / 2.0, 2.0 / 2.01, size=(len(truth), 1))  # shared by the two coordinates of a step
    return truth + errors / np.sqrt(precision), np.zeros(len(truth), bool)


def _mixture(rng: np.random.Generator, truth: np.ndarray, errors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    doubled = rng.random(len(truth)) < 0.05
    return np.where(doubled[:, None], 2.0, 1.0) * truth + errors, doubled


_FAULTS: dict[str, Callable] = {"gaussian": _clean, "student": _student, "mixture": _mixture}


def _checked_kind(kind: str) -> str:
    if kind not in _FAULTS:
        raise ValueError(f'tracking_2d(kind=...) must be one of {", ".join(_FAULTS)}, got "{kind}".')
    return kind
