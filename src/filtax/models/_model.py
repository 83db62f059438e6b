r"""(M.1) A measurement model: a predictor of the natural parameter times a likelihood in output space.

The seam of the library. A predictor gives $\eta = h(\theta, x)$ and its Jacobian J; it needs no y, so forecasts can use
it. A likelihood knows O numbers and no theta: it turns y into a whitener B (O x O) and a residual r such that, to first
order, y carries the information $(BJ)^\top(BJ)$ and the score $(BJ)^\top r$ about theta. Gaussian posteriors need no
more.

Thesis: eq:conditional-posterior, sec:exponential-family-ekf (errata E8).
"""

from abc import abstractmethod
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

from filtax.protocols import Module, static
from filtax.ravel import Layout


class Linearised(Module):
    """Natural parameter and Jacobian at a point; `scalar` if h returns a number without an axis.

    >>> Linearised(jnp.zeros(1), jnp.ones((1, 3)), scalar=True).jacobian.shape
    (1, 3)
    """

    eta: Float[Array, " O"]
    jacobian: Float[Array, "O D"]
    scalar: bool = static(default=False)


class Predicted(Module):
    """Natural parameter without a Jacobian; with a leading axis for several points.

    >>> Predicted(jnp.zeros(1), scalar=True).scalar
    True
    """

    eta: Float[Array, "*S O"]
    scalar: bool = static(default=False)


class Whitened(Module):
    """One datum in units of its own noise: r = B (J (theta - mean)) + e with e ~ N(0, I).

    `log_scale` is log |det B| over the observed entries, from which the update computes the evidence under Gaussian
    noise; it is None where the forecast computes the evidence. `trust` is None for a plain likelihood; a robust one
    multiplies B and r by it.

    >>> Whitened(jnp.eye(1), jnp.zeros(1)).trust is None
    True
    """

    whitener: Float[Array, "O O"]
    residual: Float[Array, " O"]
    log_scale: Float[Array, ""] | None = None
    trust: Float[Array, ""] | None = None


class Predictor(Module):
    """h(theta, x): what a model predicts before any noise. A predictor provides `linearise`; the rest has defaults.

    >>> class Level(Predictor):
    ...     def linearise(self, theta, x, aux):
    ...         return Linearised(theta[:1], jnp.eye(1, theta.size))
    >>> Level().value(jnp.array([3.0, 4.0]), None, None).eta.tolist()
    [3.0]
    """

    sizes: ClassVar[tuple[int, ...]] = ()  # of the blocks of parameters; empty where theta does not divide into blocks

    def bind(self, layout: Layout | None) -> "Predictor":
        """The predictor for parameters that lie in theta as `layout` says."""
        return self

    def begin(self) -> Float[Array, " D"] | None:
        """Parameters to start from, if the model knows them; the user gives them otherwise."""
        return None

    @abstractmethod
    def linearise(self, theta: Float[Array, " D"], x: Any, aux: PyTree) -> Linearised:
        """Value and Jacobian at theta."""

    def value(self, theta: Float[Array, " D"], x: Any, aux: PyTree) -> Predicted:
        """Value at theta; worth overriding where it is cheaper without the Jacobian."""
        at = self.linearise(theta, x, aux)
        return Predicted(at.eta, at.scalar)


class Likelihood(Module):
    """p(y | eta) for O natural parameters. A family provides `whiten` and `predictive`; the rest has defaults.

    `normalised` is False for a loss, which has no distribution of y. `has_covariance` is True for Gaussian noise, whose
    likelihood has a method `covariance(x, eta)`.

    >>> from filtax.models import gaussian
    >>> isinstance(gaussian(1.0), Likelihood), gaussian(1.0).residual(jnp.ones(1), jnp.full(1, 0.25)).item()
    (True, 0.75)
    """

    normalised = True
    has_covariance = False

    @property
    def plain(self) -> "Likelihood":
        """The likelihood without a trust."""
        return self

    def width(self, outputs: int) -> int:
        """How many numbers one y holds when eta has `outputs` of them."""
        return outputs

    def admits(self, y: Float[Array, " W"], outputs: int) -> Bool[Array, " W"]:
        """Which entries of y are possible."""
        return jnp.isfinite(y)

    @abstractmethod
    def whiten(self, eta: Array, x: Array | None, y: Array, mask: Bool[Array, " W"] | None) -> Whitened:
        """Whitener and residual of y at eta; masked entries carry nothing."""

    @abstractmethod
    def predictive(self, eta: Array, spread: Float[Array, "O O"], x: Array | None, scalar: bool) -> PyTree:
        """Distribution of y when eta ~ N(eta, spread)."""

    def residual(self, y: Float[Array, " W"], mean: Array) -> Array:
        """Y minus its forecast, in the shape of the forecast."""
        return y.reshape(mean.shape) - mean

    def given(self, eta: Array, x: Array | None, scalar: bool) -> PyTree:
        """Distribution of y when eta is known."""
        return self.predictive(eta, jnp.zeros((eta.size, eta.size), eta.dtype), x, scalar)

    def log_likelihood(self, eta: Array, x: Array | None, y: Array, mask: Bool[Array, " W"] | None) -> Array:
        """Log density of y when eta is known; masked entries add nothing."""
        return self.given(eta, x, scalar=False).log_prob(y, mask)

    def log_flat(self, count: Array, outputs: int) -> Array | None:
        """Log probability of `count` labels about which nothing is known; None for numbers, which have no such law."""
        return None


class Direct(Predictor):
    """eta = theta: the parameters themselves are observed, and x is not used.

    >>> Direct().linearise(jnp.array([0.5]), None, None).eta.tolist()
    [0.5]
    """

    def linearise(self, theta: Float[Array, " D"], x: Array | None, aux: PyTree) -> Linearised:
        """Identity."""
        return Linearised(theta, jnp.eye(theta.size, dtype=theta.dtype), scalar=theta.size == 1)


class Model(Module):
    """A predictor and a likelihood.

    >>> import filtax as fx
    >>> fx.models.linear(noise=0.25).linearise(jnp.ones(2), jnp.array([3.0, 4.0]), None).eta.tolist()
    [7.0]
    """

    predictor: Any
    likelihood: Any

    def bind(self, layout: Layout | None) -> "Model":
        """The model for parameters that lie in theta as `layout` says."""
        return Model(self.predictor.bind(layout), self.likelihood)

    def linearise(self, theta: Float[Array, " D"], x: Array | None, aux: PyTree = None) -> Linearised:
        """Natural parameter (O,) and Jacobian (O, D) at theta."""
        return self.predictor.linearise(theta, x, aux)

    def value(self, theta: Float[Array, " D"], x: Array | None, aux: PyTree = None) -> Predicted:
        """Natural parameter (O,) at theta; h need not be differentiable."""
        return self.predictor.value(theta, x, aux)

    def values(self, members: Float[Array, "S D"], x: Array | None, aux: PyTree = None) -> Predicted:
        """Natural parameters (S, O) at each of S points."""
        return jax.vmap(lambda theta: self.value(theta, x, aux))(members)

    def outputs(self, theta: Array, x: Array | None) -> int:
        """Number of natural parameters O for an x of this shape."""
        return eqx.filter_eval_shape(self.value, theta, x).eta.size
