r"""(M.3) Linear state-space dynamics (LSSM): $\theta_t = F\theta_{t-1} + b + e$, $e \sim N(0, Q)$.

Thesis: prop:kf-equations, algo:linear-kalman-filter (errata E3). Time gaps need F and Q as functions of dt.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from filtax import checks
from filtax.linalg import psd_root
from filtax.protocols import Dynamics

__all__ = ["LinearDynamics", "linear_dynamics", "noise_root"]


class LinearDynamics(Dynamics):
    """F, b and a square root of Q; or functions of dt that return F and Q.

    >>> linear_dynamics(F=jnp.eye(2), Q=0.04).root.round(3).item()
    0.2
    """

    F: Any
    b: Any
    root: Any
    F_of: Callable | None = eqx.field(static=True, default=None)
    Q_of: Callable | None = eqx.field(static=True, default=None)
    name = "LSSM"
    shown = {}  # noqa: RUF012
    needs = ("affine",)
    moves = True

    def __call__(self, belief: PyTree, initial: PyTree, aux: PyTree, dt: Array | None) -> PyTree:
        """Push the belief through the dynamics."""
        if dt is not None and any(part is not None for part in (self.F, self.b, self.root)):
            raise ValueError(
                "step(dt=...): linear_dynamics with a constant F, b or Q does not know what another time step does; "
                "give F and Q as functions of dt, such as Q=lambda dt: q * dt, and no b."
            )
        gap = 1.0 if dt is None else dt
        dtype = belief.mean.dtype
        F = self.F if self.F_of is None else _at("F", self.F_of, gap)
        F = F if self.F_of is None else checks.returned("linear_dynamics: F", F).astype(dtype)
        root = self.root
        if self.Q_of is not None:
            Q = _at("Q", self.Q_of, gap)
            numbers = checks.returned("linear_dynamics: Q", Q)
            checks.covariance_like("linear_dynamics: what Q returned", Q, singular=True)
            root = noise_root(numbers.astype(dtype))
        F, b, root = (None if value is None else jnp.asarray(value) for value in (F, self.b, root))
        D = belief.mean.size
        for name, value in (("F", F), ("Q", root)):
            if value is not None and value.shape not in ((), (1,), (D,), (D, D)):
                raise ValueError(
                    f"linear_dynamics({name}=...) returned shape {value.shape} but there are D = {D} parameters; "
                    f"return a number, ({D},) or ({D}, {D})."
                )
        return belief.affine(F, b, root)


def linear_dynamics(F: Any = None, b: Any = None, Q: Any = None) -> LinearDynamics:
    """Let the parameters follow a linear state-space model.

    Args:
        F: Transition: a factor, (D,) factors, a (D, D) matrix, or a function of dt that returns one; the identity
            if left out.
        b: Drift added at each tick: a number, or (D,).
        Q: Covariance of the process noise: a variance, (D,) variances, a (D, D) matrix that may be singular, or a
            function of dt that returns one; none if left out.

    >>> import filtax as fx
    >>> walk = linear_dynamics(F=jnp.array([[1.0, 1.0], [0.0, 1.0]]), Q=0.0)
    >>> tracker = fx.method("LG+C-LSSM", model=fx.models.linear(noise=1.0), prior=walk)
    >>> tracker.predict(tracker.init(mean=jnp.array([0.0, 2.0]), cov=1.0), jnp.array([1.0, 0.0])).mean.item()
    2.0
    """
    if not callable(F) and F is not None:
        checks.finite("linear_dynamics(F=...)", F)
        if np.ndim(F) > 2 or (np.ndim(F) == 2 and np.shape(F)[0] != np.shape(F)[1]):
            raise ValueError(
                f"linear_dynamics(F=...) must be a factor, a vector or a square matrix, got shape {np.shape(F)}; "
                "give (D, D)."
            )
        F = checks.floats(F)
    if b is not None:
        checks.finite("linear_dynamics(b=...)", b)
        if np.ndim(b) > 1:
            raise ValueError(
                f"linear_dynamics(b=...) must be a number or a vector, got shape {np.shape(b)}; give (D,)."
            )
        b = checks.floats(b)
    F_of, Q_of = (value if callable(value) else None for value in (F, Q))
    if Q_of is None and Q is not None:
        checks.covariance_like("linear_dynamics(Q=...)", Q, singular=True)
    _check_together(F=F, b=b, Q=Q)
    root = None if Q is None or Q_of is not None else noise_root(Q)
    return LinearDynamics(None if F_of else F, b, root, F_of, Q_of)


def _at(name: str, function: Callable, gap: Any) -> Any:
    """What a function of the user's says for a time step; where it fails, it was most likely written for theta."""
    try:
        return function(gap)
    except Exception as error:  # whatever the user's own code raises
        raise ValueError(
            f"linear_dynamics({name}=...) is a function that failed for a step dt ({error!s:.60}); give a function "
            "of the number dt, and one of theta as nonlinear_dynamics(f, Q)."
        ) from error


def _check_together(**parts: Any) -> None:
    """Refuse parts that are made for different numbers of parameters, and empty ones."""
    shapes = {name: np.shape(value) for name, value in parts.items() if value is not None and not callable(value)}
    for name in shapes:
        checks.one_or_more(f"linear_dynamics({name}=...)", parts[name])
    sized = {name: shape for name, shape in shapes.items() if shape not in ((), (1,))}  # one number serves any D
    if len({shape[0] for shape in sized.values()}) > 1:
        given = " and ".join(f"{name} of shape {shape}" for name, shape in sized.items())
        raise ValueError(f"linear_dynamics: {given} do not fit together; give all for the same D parameters.")


def noise_root(Q: Any) -> Array:
    """Square root of a process noise: of variances element by element, of a matrix by its eigenvectors.

    >>> noise_root(jnp.array([4.0, 9.0])).tolist()
    [2.0, 3.0]
    """
    if np.ndim(Q) < 2:
        return jnp.sqrt(checks.floats(Q))
    if not checks.is_concrete(Q):
        return psd_root(Q)
    exact = np.asarray(Q, "float64")
    sd = np.sqrt(np.maximum(np.diag(exact), 0.0))
    unit = np.where(sd > 0.0, sd, 1.0)  # parameters in very different units keep their digits
    value, vector = np.linalg.eigh(exact / np.outer(unit, unit))
    return checks.placed((sd[:, None] * vector * np.sqrt(np.maximum(value, 0.0))).astype(checks.floats(Q).dtype))
