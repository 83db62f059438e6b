"""(M.1) Any differentiable predictor: a function of the parameters and x, or a network of any library.

Axes: D parameters, O outputs. Cost: one forward pass and O backward passes.
Thesis: algo:extended-kalman-filter (errata E5): the residual is y - h(mean, x), never y - H mean.
"""

import inspect
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from filtax import _validation as checks
from filtax.models._gaussian import resolve
from filtax.models._model import Linearised, Model, Predicted, Predictor
from filtax.protocols import static
from filtax.ravel import Layout


class Function(Predictor):
    """eta = h(params, x); params is theta, or the pytree that theta is the flat vector of."""

    h: Callable = static()
    layout: Layout | None = None

    def bind(self, layout: Layout | None) -> "Function":
        """Restore the pytree before each call of h."""
        return Function(self.h, layout)

    def linearise(self, theta: Float[Array, " D"], x: Any, aux: PyTree) -> Linearised:
        """One forward pass and one backward pass for each output."""
        params = self.layout.restore(theta) if self.layout else theta
        eta, pull = jax.vjp(lambda params: self._value(params, x, theta.dtype), params)

        def back(row: Array) -> Array:
            # leaf by leaf: the gradient of a flat vector would pad each leaf to D numbers and add them all
            leaves = jax.tree.leaves(pull(row)[0])
            return leaves[0] if self.layout is None else jnp.concatenate([leaf.reshape(-1) for leaf in leaves])

        if eta.size == 1:
            return Linearised(eta.reshape(-1), back(jnp.ones_like(eta))[None, :], scalar=eta.ndim == 0)
        if self.layout is None or jax.default_backend() != "gpu" or jax.device_count() > 1:
            return Linearised(eta, jax.vmap(back)(jnp.eye(eta.size, dtype=eta.dtype)))
        rows = jnp.asarray(np.eye(eta.size), eta.dtype)  # a constant, which no kernel has to compute at each step
        return Linearised(
            eta, _side_by_side([leaf.reshape(eta.size, -1) for leaf in jax.tree.leaves(jax.vmap(pull)(rows))])
        )

    def value(self, theta: Float[Array, " D"], x: Any, aux: PyTree) -> Predicted:
        """One forward pass; h need not be differentiable."""
        eta = self._value(self.layout.restore(theta) if self.layout else theta, x, theta.dtype)
        return Predicted(eta.reshape(-1), scalar=eta.ndim == 0)

    def _value(self, params: PyTree, x: Array, dtype: Any) -> Array:
        eta = checks.returned("nonlinear: h", self.h(params, x)).astype(dtype)
        if eta.ndim > 1:
            raise ValueError(f"nonlinear: h returned an array of shape {eta.shape}; it must return a scalar or (O,).")
        return eta


def _side_by_side(parts: list[Array]) -> Array:
    """Concatenate along columns, part by part: on a GPU that is faster than one kernel that concatenates all."""
    ends = np.cumsum([part.shape[1] for part in parts]).tolist()
    joined = jax.lax.empty((len(parts[0]), ends[-1]), parts[0].dtype)
    for part, end in zip(parts, ends, strict=True):
        joined = jax.lax.dynamic_update_slice(joined, part, (0, end - part.shape[1]))
    return joined


def nonlinear(h: Callable[[Any, Array], Array], noise: Any = None, *, likelihood: Any = None) -> Model:
    """Predict y from any differentiable h(params, x): a formula, or the `apply` of a network from any library.

    Args:
        h: Function of the parameters and x that returns a scalar or (O,). After `init(mean=...)` it receives the flat
            vector (D,); after `init(params=...)` the pytree. It is part of the method's identity: give the same
            function object each time, or every new one is compiled again.
        noise: Variance, O variances, O x O covariance, or a function of x that returns one of these.
        likelihood: Instead of `noise`, any likelihood, whose natural parameter h then is (logits, log rates).

    >>> import filtax as fx
    >>> decay = nonlinear(lambda theta, x: theta[0] * jnp.exp(-theta[1] * x), noise=0.01)
    >>> ekf = fx.method("LG+C-Static", model=decay)
    >>> state, info = ekf.step(ekf.init(mean=jnp.array([1.0, 0.5]), cov=0.1), jnp.asarray(1.0), 0.7)
    >>> round(float(info.mean), 3)
    0.607
    """
    if not callable(h):
        raise ValueError(f"nonlinear(h=...) must be a function h(params, x), got {type(h).__name__}.")
    _check_two(h)
    return Model(Function(h), resolve("nonlinear", noise, likelihood))


def _check_two(h: Callable) -> None:
    """Refuse a function whose signature says that it cannot be called with two arguments."""
    try:
        signature = inspect.signature(h, follow_wrapped=False)  # of the wrapper, which is what is called
    except (TypeError, ValueError):
        return
    try:
        signature.bind(None, None)
    except TypeError:
        raise ValueError(
            f"nonlinear(h=...) must be a function of two arguments, h(params, x), got one of {signature}; if h "
            "does not use x, write lambda params, x: ..."
        ) from None
