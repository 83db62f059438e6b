r"""(M.1) Linear predictors: regression, the observation matrix of a state space, and a line for each segment.

With `since_change` the features are the time since the regime began, and x: $\eta = \theta_0 + \theta_1 r / u +
x^\top \theta_{2:}$, with r the run length of the hypothesis and u a unit of time. Each hypothesis about the last change
then has an intercept and a slope of its own; under an auxiliary variable without a run length r is 0, a constant.

Axes: D parameters, M features, O outputs. Cost: none beyond reading x.
Thesis: eq:recursive-linreg, prop:kf-equations (errata E2, E3); experiment:segmentation; eq:transition-rl-markov for r.
"""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from filtax import _validation as checks
from filtax.linalg import matmul
from filtax.models._gaussian import resolve
from filtax.models._model import Linearised, Model, Predictor
from filtax.protocols import RunLengthValue


class Linear(Predictor):
    """eta = H theta, where x is H itself, (O, D), or the features (M,) of an M x O parameter matrix."""

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


class SinceChange(Predictor):
    """eta = H theta with features (1, r / unit, x)."""

    unit: Any = 100.0

    def linearise(self, theta: Float[Array, " D"], x: Array | None, aux: PyTree) -> Linearised:
        """Linear in theta; the features depend on the hypothesis."""
        if x is not None and x.ndim != 1:
            raise ValueError(f"since_change: x has shape {x.shape}; give features (M,), or None for a line alone.")
        run = jnp.asarray(aux.runlength if isinstance(aux, RunLengthValue) else 0, theta.dtype)
        line = jnp.stack([jnp.ones_like(run), run / jnp.asarray(self.unit, theta.dtype)])
        features = line if x is None else jnp.concatenate([line, x.astype(theta.dtype)])
        return Linear().linearise(theta, features, aux)


def linear(noise: Any = None, *, likelihood: Any = None) -> Model:
    """Predict y from a linear function of x.

    With features x of shape (D,) this is regression with one output, a scalar. With D = M x O parameters (a row-major
    matrix of M features by O outputs) and features (M,) there are O outputs. A matrix x of shape (O, D) is used as the
    observation matrix H_t of a state-space model.

    Args:
        noise: Variance, O variances, O x O covariance, or a function of x that returns one of these.
        likelihood: Instead of `noise`, any likelihood: `bernoulli()` gives logistic, `categorical()` softmax and
            `poisson()` Poisson regression.

    >>> import filtax as fx
    >>> kf = fx.method("LG+C-Static", model=linear(noise=0.25))
    >>> state, info = kf.step(kf.init(mean=jnp.zeros(2), cov=1.0), jnp.array([1.0, 0.0]), 2.0)
    >>> kf.belief(state).mean.round(2).tolist()
    [1.6..., 0.0]
    """
    return Model(Linear(), resolve("linear", noise, likelihood))


def since_change(noise: Any = None, *, unit: Any = 100.0, likelihood: Any = None) -> Model:
    """Predict y by a line for each segment between changes, plus a linear function of x.

    There are D = 2 + M parameters for each output, in rows: intercepts, slopes, then the weights of x. Without x, give
    X = None to `scan`.

    Args:
        noise: Variance, O variances, O x O covariance, or a function of x; relative (1.0) under NIG.
        unit: Steps in one unit of time: the slope is the rise over so many steps.
        likelihood: Instead of `noise`, any likelihood.

    >>> import filtax as fx
    >>> rl = fx.method("NIG+RL[20]-PR(hazard=0.01)", model=since_change(1.0))
    >>> y = jnp.concatenate([jnp.arange(30.0), 5.0 - jnp.arange(20.0)])
    >>> _, info = rl.scan(rl.init(mean=jnp.zeros(2), cov=100.0), None, y, keep=("runlength",))
    >>> info.runlength[-1].item()
    19
    """
    checks.positive("since_change(unit=...)", unit, hint="It is a number of steps.")
    return Model(SinceChange(unit), resolve("since_change", noise, likelihood))
