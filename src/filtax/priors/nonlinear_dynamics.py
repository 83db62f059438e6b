r"""(M.3) Nonlinear dynamics, linearised at the mean: $\theta_t = f(\theta_{t-1}) + e$.

Thesis: algo:extended-kalman-filter (errata E5): the mean moves by f itself, the covariance by its Jacobian.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from filtax import checks
from filtax.priors.linear_dynamics import noise_root
from filtax.protocols import Dynamics

__all__ = ["NonlinearDynamics", "nonlinear_dynamics"]


class NonlinearDynamics(Dynamics):
    """f and a square root of Q.

    >>> nonlinear_dynamics(jnp.sin, Q=0.04).name
    'LSSM'
    """

    f: Callable = eqx.field(static=True)
    root: Any
    name = "LSSM"
    shown = {}  # noqa: RUF012
    needs = ("affine",)
    moves = True

    def __call__(self, belief: PyTree, initial: PyTree, aux: PyTree, dt: Array | None) -> PyTree:
        """Move the mean by f, the covariance by its Jacobian at the old mean; of a cloud, each member by f."""
        if dt is not None:
            raise ValueError(
                "step(dt=...): nonlinear_dynamics knows one time step only; write dt into f as a parameter."
            )
        root = None if self.root is None else jnp.asarray(self.root)
        if hasattr(belief, "push"):  # members move by f itself
            return belief.push(self.f, root)
        moved = checks.returned("nonlinear_dynamics: f", self.f(belief.mean))
        if moved.shape != belief.mean.shape:
            raise ValueError(
                f"nonlinear_dynamics: f returned shape {moved.shape} for parameters of shape {belief.mean.shape}."
            )
        F = jax.jacfwd(self.f)(belief.mean)
        return belief.affine(F, moved - F @ belief.mean, root)


def nonlinear_dynamics(f: Callable[[Array], Array], Q: Any = None) -> NonlinearDynamics:
    """Let the parameters follow theta -> f(theta) + e with e ~ N(0, Q).

    Args:
        f: Differentiable function from (D,) to (D,).
        Q: Covariance of the process noise: a variance, (D,) variances or a (D, D) matrix; none if left out.

    >>> import filtax as fx
    >>> swing = nonlinear_dynamics(lambda s: jnp.array([s[0] + 0.1 * s[1], s[1] - jnp.sin(s[0])]), Q=0.01)
    >>> ekf = fx.method("LG+C-LSSM", model=fx.models.linear(noise=0.1), prior=swing)
    >>> ekf.predict(ekf.init(mean=jnp.array([0.0, 1.0]), cov=0.01), jnp.array([1.0, 0.0])).mean.round(2).item()
    0.1...
    """
    if not callable(f):
        raise ValueError(f"nonlinear_dynamics(f=...) must be a function of theta, got {type(f).__name__}.")
    if Q is not None:
        checks.covariance_like("nonlinear_dynamics(Q=...)", Q, singular=True)
    return NonlinearDynamics(f, None if Q is None else noise_root(Q))
