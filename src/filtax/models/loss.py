r"""(M.1) Any differentiable loss in the place of a likelihood: generalised Bayes.

The belief is updated by $\exp(-\ell(\eta, y))$, which need not be a density of y. In output space the loss has a
slope g and a curvature C. With $C = V\mathrm{diag}(\lambda)V^\top$ the whitener is
$B = \mathrm{diag}(\sqrt\lambda)V^\top$ and the residual $r = -\mathrm{diag}(\lambda)^{-1/2}V^\top g$: one Newton
step, with information $J^\top C J$ and score $-J^\top g$. Where the loss does not curve upwards (|y - eta| away from
its kink, any bounded loss far out), $\lambda$ is raised to 1e-8 of the squared slope: the slope then acts in full, and
says next to nothing about how sure one may be.

A loss has no normaliser, so there is no distribution of y: a forecast has a mean and the spread of the parameters, and
refuses intervals, cdf and samples. `log_evidence` is minus the loss of the forecast at its mean: it compares methods
that have the same loss, and no others. A loss is made robust by its own shape, not by a trust.

Cost: a Hessian of O numbers and, for several outputs, its eigenvectors, through which no gradient is taken.
Thesis: eq:conditional-posterior, eq:generalised-posterior.
"""

from collections.abc import Callable
from typing import Any, NoReturn

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from filtax import lapack
from filtax.distributions._numerics import outward
from filtax.models.model import Whitened
from filtax.module import Module

__all__ = ["LossForecast", "LossLikelihood", "loss"]

FLOOR = 1e-8  # least curvature, in units of the squared slope


class LossForecast(Module):
    """What can be said of y without its law: where the prediction is, and how sure the parameters make it.

    >>> LossForecast(jnp.zeros(1), jnp.eye(1), lambda eta, y: jnp.sum(jnp.abs(y - eta)), True).log_prob(3.0).item()
    -3.0
    """

    location: Float[Array, "*H O"]
    covariance: Float[Array, "*H O O"]
    function: Callable = eqx.field(static=True)
    scalar: bool = eqx.field(static=True, default=False)

    @property
    def mean(self) -> Array:
        """The prediction at the mean of the parameters."""
        return outward(self.location, self.scalar)

    @property
    def var(self) -> Array:
        """Variance of the prediction by what is not known of the parameters; noise has no part in a loss."""
        return outward(jnp.diagonal(self.covariance, axis1=-2, axis2=-1), self.scalar)

    @property
    def cov(self) -> Array:
        """The same, (O, O)."""
        return self.covariance[..., 0, 0] if self.scalar else self.covariance

    def log_prob(self, y: Any, mask: Array | None = None) -> Array:
        """Minus the loss at the prediction; not a density. Exactly 0 where y is missing, if only in part."""
        y = jnp.asarray(y, self.location.dtype).reshape(*self.location.shape[:-1], -1)
        seen = jnp.ones(y.shape, bool) if mask is None else jnp.asarray(mask).reshape(y.shape)
        value = jnp.vectorize(lambda eta, y: _value(self.function, eta, y), signature="(o),(w)->()")
        return jnp.where(jnp.all(seen, axis=-1), -value(self.location, jnp.where(seen, y, 0.0)), 0.0)

    def interval(self, level: float = 0.9) -> NoReturn:
        """Refuse: a loss has no distribution of y."""
        raise ValueError(f"interval({level}) under a loss: {NO_LAW}")

    def cdf(self, y: Any) -> NoReturn:
        """Refuse: a loss has no distribution of y."""
        raise ValueError(f"cdf under a loss: {NO_LAW}")

    def sample(self, key: Any) -> NoReturn:
        """Refuse: a loss has no distribution of y."""
        raise ValueError(f"sample under a loss: {NO_LAW}")


NO_LAW = "it has no distribution of y; use .mean and .var, or a likelihood such as gaussian(noise)."


class LossLikelihood(Module):
    """exp(-function(eta, y)) in the place of a likelihood; `size` is how many numbers y holds, if not O.

    >>> squared = loss(lambda eta, y: 2.0 * jnp.sum((y - eta) ** 2))
    >>> squared.whiten(jnp.zeros(1), None, jnp.ones(1), None).whitener.tolist()
    [[2.0]]
    """

    function: Callable = eqx.field(static=True)
    size: int | None = eqx.field(static=True, default=None)
    normalised = False

    def width(self, outputs: int) -> int:
        """One number for each output, unless told otherwise."""
        return outputs if self.size is None else self.size

    def admits(self, y: Array, outputs: int) -> Bool[Array, " W"]:
        """Every finite number."""
        return jnp.isfinite(y)

    def whiten(self, eta: Array, x: Array | None, y: Array, mask: Array | None) -> Whitened:
        """Slope and curvature of the loss as a root; a y that misses an entry is missing, since the loss needs all."""
        value = lambda eta: _value(self.function, eta, y)  # noqa: E731
        slope, curvature = jax.grad(value)(eta), jax.hessian(value)(eta)
        axes = jnp.ones((1, 1), eta.dtype)
        size = curvature[0]
        if eta.size > 1:
            size, axes = lapack.eigh(0.5 * (curvature + curvature.T))
        along = jnp.sum(axes * slope[:, None], axis=0)
        size = jnp.maximum(size, FLOOR * along * along)
        root = jnp.sqrt(jnp.where(size > 0.0, size, 1.0))
        B = jnp.where(size > 0.0, root, 0.0)[:, None] * axes.T
        r = jnp.where(size > 0.0, -along / root, 0.0)
        if mask is not None:
            B, r = jnp.where(jnp.all(mask), B, 0.0), jnp.where(jnp.all(mask), r, 0.0)
        return Whitened(B, r)

    def predictive(self, eta: Array, spread: Array, x: Array | None, scalar: bool) -> LossForecast:
        """The prediction and its spread: no more is known."""
        return LossForecast(eta, spread, self.function, scalar)

    def residual(self, y: Array, mean: Array) -> Array:
        """Y - prediction, where they have one shape; else the prediction is no forecast of y, and there is none."""
        return y.reshape(mean.shape) - mean if y.size == mean.size else jnp.full(mean.shape, jnp.nan, mean.dtype)


def loss(function: Any, *, size: Any = None) -> LossLikelihood:
    """Learn by a loss of your own, in the place of a likelihood.

    Args:
        function: loss(eta, y) of the prediction (O,) and the datum, twice differentiable almost everywhere: a number in
            units of log-likelihood (such as half a squared error in standard deviations). It is part of the method's
            identity: give the same function object each time, or every new one is compiled anew.
        size: How many numbers y holds, if not as many as the prediction.

    Returns:
        A likelihood for `linear(likelihood=...)` or `nonlinear(h, likelihood=...)`.

    >>> import filtax as fx
    >>> median = fx.models.linear(likelihood=loss(lambda eta, y: jnp.sum(jnp.abs(y - eta))))
    >>> learner = fx.method("LG+C-Static", model=median)
    >>> state, info = learner.step(learner.init(mean=jnp.zeros(1), cov=0.1), jnp.ones(1), 1000.0)
    >>> round(learner.belief(state).mean.item(), 4), info.log_evidence.item()
    (0.1, -1000.0)
    """
    if not callable(function):
        raise ValueError(f"loss(function=...) must be a function loss(eta, y), got {function!r:.40}.")
    if size is not None and (not isinstance(size, int) or size < 1):
        raise ValueError(f"loss(size={size!r}) must be a whole number of at least 1: how many numbers y holds.")
    return LossLikelihood(function, size)


def _value(function: Callable, eta: Array, y: Array) -> Array:
    value = jnp.asarray(function(eta, y))
    if value.size != 1:
        raise ValueError(
            f"loss(function): it returned an array of shape {value.shape}; it must return one number, such as "
            "jnp.sum(jnp.abs(y - eta))."
        )
    return value.reshape(()).astype(eta.dtype)
