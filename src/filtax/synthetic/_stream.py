"""A stream with its hidden truth, and an object tracked in the plane (experiment:2d-tracking)."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

DEGREES = 2.01  # of freedom of Student's t noise
DOUBLED = 0.05  # share of observations at twice the position


@dataclass(frozen=True, eq=False)
class Stream:
    """A stream, and what only its generator knows.

    Attributes:
        time: When each row came: `datetime64[h]`, or the step number.
        X: Inputs, shape (T, D), or (T, O, D) for observation matrices.
        y: What was observed, shape (T,) or (T, O); NaN where missing.
        truth: The noiseless observation or the probability of a one, shape of y, without gaps.
        theta: Hidden parameters or state, shape (T, D); None where there are none.
        outliers: True where y is a gross error, shape (T,).
        changes: Steps at which the process jumped.
        names: Names of the columns of X, if they have any.

    Example:
        >>> from filtax.synthetic import fixed_regression
        >>> stream = fixed_regression(100, key=0)
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
        >>> from filtax.synthetic import constant_velocity
        >>> type(constant_velocity()).__name__
        'LinearSystem'
    """

    F: np.ndarray
    Q: np.ndarray
    H: np.ndarray
    R: np.ndarray
    initial: np.ndarray


def constant_velocity(dt: float = 0.1, q: float = 0.1, r: float = 10.0) -> LinearSystem:
    """Build the matrices of an object that moves in the plane: state (position, velocity), position observed.

    Args:
        dt: Time between observations.
        q: Variance of the system noise, on each of the four components.
        r: Variance of the observation noise.

    Returns:
        F, Q, H, R, and the start (0, 0, 1, 1) of the thesis's runs (eq:noisy-2d-ssm).

    Example:
        >>> from filtax.synthetic import constant_velocity
        >>> system = constant_velocity()
        >>> system.F @ system.initial
        array([0.1, 0.1, 1. , 1. ])
    """
    F = np.eye(4) + dt * np.eye(4, k=2)
    return LinearSystem(F, q * np.eye(4), np.eye(2, 4), r * np.eye(2), np.array([0.0, 0.0, 1.0, 1.0]))


def tracking_2d(
    steps: int = 1000, *, key: int | jax.Array, kind: str = "gaussian", system: LinearSystem | None = None
) -> Stream:
    """Track an object in the plane, with clean or with faulty observations; time passes before the first one too.

    Args:
        steps: Length T.
        key: Whole number or JAX key.
        kind: "gaussian"; "student", with 2.01 degrees of freedom (eq:noisy-2d-ssm-outlier-covariance); or "mixture",
            where one observation in twenty is of twice the position (eq:noisy-2d-ssm-outlier-mean).
        system: Matrices; those of `constant_velocity()` if not given.

    Returns:
        A stream whose `theta` is the state, `truth` the position and `outliers` the doubled observations.

    Example:
        >>> from filtax.synthetic import tracking_2d
        >>> stream = tracking_2d(100, key=0)
        >>> stream.X.shape, stream.y.shape, stream.theta.shape
        ((100, 2, 4), (100, 2), (100, 4))
    """
    kinds = ("gaussian", "student", "mixture")
    if kind not in kinds:
        raise ValueError(f'tracking_2d(kind=...) must be one of {", ".join(kinds)}, got "{kind}".')
    F, Q, H, R, state = system or constant_velocity()
    rng = generator(key)
    moves = rng.multivariate_normal(np.zeros(len(state)), Q, size=steps)
    theta = np.empty((steps, len(state)))
    for t in range(steps):
        theta[t] = state = F @ state + moves[t]
    truth = theta @ H.T
    errors = rng.multivariate_normal(np.zeros(len(R)), R, size=steps)
    outliers = np.zeros(steps, bool)
    if kind == "student":
        precision = rng.gamma(DEGREES / 2.0, 2.0 / DEGREES, size=(steps, 1))  # shared by the outputs of a step
        errors = errors / np.sqrt(precision)
    elif kind == "mixture":
        outliers = rng.random(steps) < DOUBLED
    y = np.where(outliers[:, None], 2.0, 1.0) * truth + errors
    return Stream(np.arange(steps), np.broadcast_to(H, (steps, *H.shape)), y, truth, theta, outliers)


def generator(key: int | jax.Array) -> np.random.Generator:
    """Return numpy's generator for a whole number or a JAX key."""
    if isinstance(key, jax.Array):
        words = jax.random.key_data(key) if jnp.issubdtype(key.dtype, jax.dtypes.prng_key) else key
        return np.random.default_rng([*np.asarray(words).tolist(), 1])  # numpy drops zeros at the end
    return np.random.default_rng(key)


def jumps(rng: np.random.Generator, steps: int, hazard: float) -> np.ndarray:
    """Draw at which steps the parameters jump, each with probability `hazard`; never at the first."""
    jumped = rng.random(steps) < hazard
    jumped[:1] = False
    return jumped


def steps_of(jumped: np.ndarray) -> tuple[int, ...]:
    """Return the steps at which a mask is True."""
    return tuple(int(t) for t in np.flatnonzero(jumped))
