r"""(M.1) Generalised Bayes: any differentiable loss, or a power divergence, in the place of the log-likelihood.

The belief is updated by $\exp(-\ell(\eta, y))$, which need not be a density of y. In output space the loss has a
slope g and a curvature $C = V\mathrm{diag}(\lambda)V^\top$. With the whitener
$B = \mathrm{diag}(\sqrt\lambda)V^\top$ and the residual $r = -\mathrm{diag}(\lambda)^{-1/2}V^\top g$ a datum is one
Newton step, with information $J^\top C J$ and score $-J^\top g$. Where the loss does not curve upwards, $\lambda$ is
raised to 1e-8 of the squared slope: the mean then moves by the full slope, and the covariance hardly shrinks.

A loss has no normaliser: `log_evidence` is minus the loss at the mean of the forecast, which compares methods with the
same loss only. A loss is robust by its own shape, not by a trust.

The power divergence (Basu and others 1998; for filters Boustati and others 2020) weighs a point theta by $\exp G$ with
$$G(\theta) = \frac{e^{\beta\ell} - 1}{\beta}, \qquad
\ell = \log\frac{N(y; h(\theta), R)}{N(0; 0, R)} = -\tfrac12|r|^2,$$
which is $\ell$ for small residuals or small beta, and never below $-1/\beta$: no datum rules a point out. The published
loss takes the density itself, so that its strength depends on the unit of y; here it is relative to its peak.
Posteriors that hold points (PF, APF, RBPF) weigh each by G. To first order $\nabla G = e^{\beta\ell}\nabla\ell$, so
that for all others it is a trust, $w = e^{-\beta|r|^2/4}$ at the forecast.

Cost: a Hessian of O numbers and, for several outputs, its eigenvectors, through which no gradient is taken.
Thesis: eq:conditional-posterior, eq:generalised-posterior, experiment:2d-tracking (the benchmark of fig:2d-ssm-sample).
"""

from collections.abc import Callable
from typing import Any, ClassVar, NoReturn

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from filtax import _validation as checks
from filtax import linalg
from filtax.distributions._normal import Located
from filtax.models._model import Likelihood, Whitened
from filtax.models._trust import Trust
from filtax.protocols import Module, static

FLOOR = 1e-8  # least curvature, in units of the squared slope


class LossForecast(Located, Module):
    """A prediction and its covariance, which is due to the parameters alone, without a distribution of y."""

    location: Float[Array, "*H O"]
    covariance: Float[Array, "*H O O"]
    function: Callable = static()
    scalar: bool = static(default=False)

    @property
    def _covariance(self) -> Array:
        return self.covariance

    def log_prob(self, y: Any, mask: Array | None = None) -> Array:
        """Minus the loss at the prediction, which is no density; exactly 0 where y, or a part of it, is missing."""
        y = jnp.asarray(y, self.location.dtype).reshape(*self.location.shape[:-1], -1)
        observed = jnp.ones(y.shape, bool) if mask is None else jnp.asarray(mask).reshape(y.shape)
        value = jnp.vectorize(lambda eta, y: _value(self.function, eta, y), signature="(o),(w)->()")
        return jnp.where(jnp.all(observed, axis=-1), -value(self.location, jnp.where(observed, y, 0.0)), 0.0)

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


class LossLikelihood(Likelihood):
    """exp(-function(eta, y)) in the place of a likelihood; `size` is how many numbers y holds, if not O."""

    function: Callable = static()
    size: int | None = static(default=None)
    normalised = False

    def width(self, outputs: int) -> int:
        """`size`, or one number for each output."""
        return outputs if self.size is None else self.size

    def whiten(self, eta: Array, x: Array | None, y: Array, mask: Array | None) -> Whitened:
        """Root of the curvature, and the slope in its units; 0 if an entry of y is missing."""

        def value(eta: Array) -> Array:
            return _value(self.function, eta, y)

        slope, curvature = jax.grad(value)(eta), jax.hessian(value)(eta)
        axes = jnp.ones((1, 1), eta.dtype)
        size = curvature[0]
        if eta.size > 1:
            size, axes = linalg.eigh(0.5 * (curvature + curvature.T))
        along = jnp.sum(axes * slope[:, None], axis=0)
        size = jnp.maximum(size, FLOOR * along * along)
        root = jnp.sqrt(jnp.where(size > 0.0, size, 1.0))
        B = jnp.where(size > 0.0, root, 0.0)[:, None] * axes.T
        r = jnp.where(size > 0.0, -along / root, 0.0)
        if mask is not None:
            B, r = jnp.where(jnp.all(mask), B, 0.0), jnp.where(jnp.all(mask), r, 0.0)
        return Whitened(B, r)

    def predictive(self, eta: Array, spread: Array, x: Array | None, scalar: bool) -> LossForecast:
        """The prediction and its spread."""
        return LossForecast(eta, spread, self.function, scalar)

    def residual(self, y: Array, mean: Array) -> Array:
        """Y - prediction; NaN where they have different sizes, since the prediction is then no forecast of y."""
        return y.reshape(mean.shape) - mean if y.size == mean.size else jnp.full(mean.shape, jnp.nan, mean.dtype)


def loss(function: Any, *, size: Any = None) -> LossLikelihood:
    """Learn by a loss of your own, in the place of a likelihood.

    Args:
        function: loss(eta, y) of the prediction (O,) and the datum, twice differentiable almost everywhere: a number in
            units of log-likelihood (such as half a squared error in standard deviations). Reuse one function object:
            each new one compiles again.
        size: How many numbers y holds, if not as many as the prediction.

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


class DensityPower(Trust):
    """The trust exp(-beta |r|²/4), and the weight G of a point."""

    beta: Any
    name = "WoLF-Power"
    shown: ClassVar = {"beta": None}

    def __check_init__(self) -> None:
        checks.positive("density_power(beta=...)", self.beta, hint="It is how soon a datum loses trust, such as 0.2.")

    def __call__(self, r: Float[Array, " O"]) -> Float[Array, ""]:
        """Trust of a residual; 0 where its square overflows."""
        square = jnp.sum(jnp.square(r))
        near = jnp.isfinite(square)
        return jnp.where(near, jnp.exp(-0.25 * jnp.asarray(self.beta, r.dtype) * jnp.where(near, square, 0.0)), 0.0)

    def tilt(self, log_density: Float[Array, "*S"]) -> Float[Array, "*S"]:
        """G of a log density relative to the peak of the noise."""
        beta = jnp.asarray(self.beta, log_density.dtype)
        return jnp.expm1(beta * log_density) / beta


def density_power(beta: Any) -> DensityPower:
    """Power divergence of the density: a generalised likelihood that no outlier can drive to zero.

    Args:
        beta: Above 0; a datum at |r| standard deviations counts as exp(-beta |r|²/2) of one. Gaussian noise only.

    >>> density_power(0.2).name
    'WoLF-Power'
    """
    return DensityPower(beta)
