"""(M.1) Linear predictors: regression, logistic and softmax regression, and the observation matrix of a state space.

Axes: D parameters, M features, O outputs. Cost: none beyond reading x.
Thesis: eq:recursive-linreg, prop:kf-equations (errata E2, E3).
"""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from filtax.linalg import matmul
from filtax.models._gaussian import resolve
from filtax.models._model import Linearised, Model, Predictor


class Linear(Predictor):
    """eta = H theta, where x is H itself, (O, D), or the features (M,) of an M x O parameter matrix.

    >>> Linear().linearise(jnp.arange(6.0), jnp.array([1.0, 0.0, 0.0]), None).eta.tolist()
    [0.0, 1.0]
    """

    def linearise(self, theta: Float[Array, " D"], x: Array | None, aux: PyTree) -> Linearised:
        """H theta and its Jacobian H."""
        D = theta.size
        if x is None:
            raise ValueError(f"linear: x is None but there are D = {D} parameters; give ({D},) features.")
        x = x.astype(theta.dtype)
        if x.ndim == 2:
            if x.shape[1] != D:
                raise ValueError(
                    f"linear: x is a matrix H of shape {x.shape} but there are D = {D} parameters; give (O, {D})."
                )
            return Linearised(matmul(x, theta[:, None])[:, 0], x)
        if x.ndim != 1 or x.size == 0 or D % x.size:
            raise ValueError(
                f"linear: x has shape {x.shape} but there are D = {D} parameters; "
                f"give ({D},) features, (M,) features with D = M x O, or an (O, {D}) matrix."
            )
        O = D // x.size
        if O == 1:
            return Linearised(jnp.sum(x * theta, keepdims=True), x[None, :], scalar=True)
        J = (jnp.eye(O, dtype=x.dtype)[:, None, :] * x[None, :, None]).reshape(O, D)
        return Linearised(jnp.sum(theta.reshape(x.size, O) * x[:, None], axis=0), J)


def linear(noise: Any = None, *, likelihood: Any = None) -> Model:
    """Predict y from a linear function of x.

    With features x of shape (D,) this is regression with one output, a scalar. With D = M x O parameters (a row-major
    matrix of M features by O outputs) and features (M,) there are O outputs. A matrix x of shape (O, D) is used as the
    observation matrix H_t of a state-space model.

    Args:
        noise: Variance, O variances, O x O covariance, or a function of x that returns one of these.
        likelihood: Instead of `noise`, any likelihood: `bernoulli()` gives logistic, `categorical()` softmax and
            `poisson()` Poisson regression.

    Returns:
        A model for `filtax.method(..., model=...)`.

    >>> import filtax as fx
    >>> kf = fx.method("LG+C-Static", model=linear(noise=0.25))
    >>> state, info = kf.step(kf.init(mean=jnp.zeros(2), cov=1.0), jnp.array([1.0, 0.0]), 2.0)
    >>> kf.belief(state).mean.round(2).tolist()
    [1.6..., 0.0]
    """
    return Model(Linear(), resolve("linear", noise, likelihood))
