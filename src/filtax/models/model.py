r"""(M.1) A measurement model: a predictor of the natural parameter times a likelihood in output space.

The seam of the whole library. A predictor gives $\eta = h(\theta, x)$ and its Jacobian J, and needs no y, so
forecasts can use it. A likelihood looks at O numbers only: it turns y into a whitener B (O x O) and a residual r such
that, to first order, y carries the information $(BJ)^\top(BJ)$ and the score $(BJ)^\top r$ about theta. Every
Gaussian-type posterior needs no more.

Thesis: eq:conditional-posterior, sec:exponential-family-ekf (errata E8).
"""

from typing import Any, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

from filtax.layout import Layout
from filtax.module import Module

__all__ = ["Direct", "Likelihood", "Linearised", "Model", "Predicted", "Predictor", "Whitened"]


class Linearised(Module):
    """Natural parameter and Jacobian at a point; `scalar` when h returns a number without an axis.

    >>> Linearised(jnp.zeros(1), jnp.ones((1, 3)), scalar=True).jacobian.shape
    (1, 3)
    """

    eta: Float[Array, " O"]
    jacobian: Float[Array, "O D"]
    scalar: bool = eqx.field(static=True, default=False)


class Predicted(Module):
    """Natural parameter alone, for those who need no Jacobian; with a leading axis for several points.

    >>> Predicted(jnp.zeros(1), scalar=True).scalar
    True
    """

    eta: Float[Array, "*S O"]
    scalar: bool = eqx.field(static=True, default=False)


class Whitened(Module):
    """One datum in units of its own noise: r = B (J (theta - mean)) + e with e ~ N(0, I).

    `log_scale` is log |det B| over what was observed: with it a Gaussian likelihood has its evidence from the update
    itself; None where the evidence is asked of the forecast. `trust` is None for a plain likelihood; a robust one
    multiplies B and r by it and reports it, and its evidence is always asked of the forecast.

    >>> Whitened(jnp.eye(1), jnp.zeros(1)).trust is None
    True
    """

    whitener: Float[Array, "O O"]
    residual: Float[Array, " O"]
    log_scale: Float[Array, ""] | None = None
    trust: Float[Array, ""] | None = None


class Predictor(Protocol):
    """h(theta, x): what a model predicts before any noise.

    A predictor may also have `value(theta, x, aux)`, which returns `Predicted` without a derivative of h.
    """

    def bind(self, layout: Layout | None) -> "Predictor":
        """Take note of how theta lies in a parameter pytree."""
        ...

    def linearise(self, theta: Float[Array, " D"], x: Array | None, aux: PyTree) -> Linearised:
        """Value and Jacobian at theta."""
        ...


class Likelihood(Protocol):
    """The law of y given the natural parameter. All of it is in output space; a new family is these seven methods.

    Labels may also have `log_flat(count, outputs)`, the log probability of labels of which nothing is known: a robust
    model weighs hypotheses by it where a label is not trusted.
    """

    def width(self, outputs: int) -> int:
        """How many numbers one y holds when eta has `outputs` of them."""
        ...

    def admits(self, y: Float[Array, " W"], outputs: int) -> Bool[Array, " W"]:
        """Which entries of y are possible at all."""
        ...

    def whiten(self, eta: Array, x: Array | None, y: Array, mask: Bool[Array, " W"] | None) -> Whitened:
        """Whitener and residual of y at eta; masked entries carry nothing."""
        ...

    def predictive(self, eta: Array, spread: Float[Array, "O O"], x: Array | None, scalar: bool) -> PyTree:
        """Proper distribution of y when eta is N(eta, spread)."""
        ...

    def residual(self, y: Float[Array, " W"], mean: Array) -> Array:
        """Y minus its forecast, in the forecast's shape."""
        ...

    def given(self, eta: Array, x: Array | None, scalar: bool) -> PyTree:
        """Distribution of y when eta is known; asked by posteriors that sample."""
        ...

    def log_likelihood(self, eta: Array, x: Array | None, y: Array, mask: Bool[Array, " W"] | None) -> Array:
        """Log density of y when eta is known; masked entries add nothing. Asked by posteriors that sample."""
        ...


class Direct(Module):
    """eta = theta: y looks at the parameters themselves, and x is not used.

    >>> Direct().linearise(jnp.array([0.5]), None, None).eta.tolist()
    [0.5]
    """

    def bind(self, layout: Layout | None) -> "Direct":
        """Parameters are used flat: nothing to note."""
        return self

    def linearise(self, theta: Float[Array, " D"], x: Array | None, aux: PyTree) -> Linearised:
        """Identity."""
        return Linearised(theta, jnp.eye(theta.size, dtype=theta.dtype), scalar=theta.size == 1)


class Model(Module):
    """A predictor and a likelihood: everything the framework asks of (M.1).

    >>> import filtax as fx
    >>> fx.models.linear(noise=0.25).linearise(jnp.ones(2), jnp.array([3.0, 4.0]), None).eta.tolist()
    [7.0]
    """

    predictor: Any
    likelihood: Any

    def bind(self, layout: Layout | None) -> "Model":
        """Return the model for parameters that lie as `layout` says."""
        return Model(self.predictor.bind(layout), self.likelihood)

    def linearise(self, theta: Float[Array, " D"], x: Array | None, aux: PyTree = None) -> Linearised:
        """Natural parameter (O,) and Jacobian (O, D) at theta."""
        return self.predictor.linearise(theta, x, aux)

    def value(self, theta: Float[Array, " D"], x: Array | None, aux: PyTree = None) -> Predicted:
        """Natural parameter (O,) at theta; what is not differentiable will do."""
        if hasattr(self.predictor, "value"):
            return self.predictor.value(theta, x, aux)
        at = self.predictor.linearise(theta, x, aux)
        return Predicted(at.eta, at.scalar)

    def values(self, members: Float[Array, "S D"], x: Array | None, aux: PyTree = None) -> Predicted:
        """Natural parameters (S, O) at each of S points."""
        return jax.vmap(lambda theta: self.value(theta, x, aux))(members)

    def outputs(self, theta: Array, x: Array | None) -> int:
        """How many natural parameters the model has for this x, known from shapes alone."""
        return eqx.filter_eval_shape(self.value, theta, x).eta.size
