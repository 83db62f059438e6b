r"""(A.1) Linear regression with unknown noise variance: normal-inverse-gamma belief, Student-t forecast.

The model's `noise` is then relative (1.0 for equal noise), and so are the prior covariance and the process noise: all
in units of the unknown variance $\sigma^2 \sim \mathrm{IG}(\text{shape}, \text{rate})$. Exact for linear models;
the extended approximation otherwise. A robust model's datum of trust w counts as w² of one: the shape gains w²/2 for
each output, the rate $\tfrac12 e^\top(HPH^\top + R/w^2)^{-1}e$, which is w²e²/2 where the parameters are known.
"""

from functools import partial
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key, PyTree

from filtax import _validation as checks
from filtax.beliefs import NormalInverseGamma
from filtax.distributions import StudentT
from filtax.distributions._normal import log_student
from filtax.models import Linearised, Model
from filtax.models._robust import RobustLikelihood
from filtax.posteriors._extended import FORMS, check_form, condition, gaussian_belief, total_root
from filtax.protocols import Posterior, Update, static


class UnknownNoise(Posterior):
    """Learn theta and the noise variance; the prior of the variance is inverse-gamma with `shape` and `rate`.

    >>> UnknownNoise(shape=2.0, rate=1.0).start(jnp.zeros(1), jnp.ones(1), has_dynamics=False).noise.item()
    1.0
    """

    shape: Any = 1.0
    rate: Any = 1.0
    form: str = static(default="auto")
    name = "NIG"
    shown = {"shape": 1.0, "rate": 1.0, "form": "auto"}  # noqa: RUF012
    families = (NormalInverseGamma,)
    needs_covariance = True

    def __check_init__(self) -> None:
        checks.positive("NIG(shape=...)", self.shape, hint="It is half the number of data that the prior counts as.")
        checks.positive("NIG(rate=...)", self.rate, hint="rate / shape is about the noise variance expected.")
        if self.form not in ("auto", *FORMS):
            raise ValueError(f"NIG(form={self.form!r}) must be one of auto, {', '.join(FORMS)}.")

    def check_start(self, mean: Array, cov: Array) -> None:
        """Refuse what the chosen form cannot hold."""
        check_form(self.form, cov)

    def start(self, mean: Float[Array, " D"], cov: Array, has_dynamics: bool) -> NormalInverseGamma:
        """Initial belief; `cov` is in units of the noise variance."""
        unit = gaussian_belief(self.form, mean, cov, has_dynamics)
        shape, rate = (jnp.asarray(value, mean.dtype) for value in (self.shape, self.rate))
        return NormalInverseGamma(unit, shape, rate)

    def forecast(self, belief: PyTree, model: Model, x: Array | None, aux: PyTree, plugin: bool = False) -> StudentT:
        """Student-t predictive, parameters and variance averaged out; with `plugin`, the parameters at their mean."""
        at = model.linearise(belief.mean, x, aux)
        return _predictive(belief, model, x, at, plugin)

    def update(
        self,
        belief: PyTree,
        model: Model,
        x: Array | None,
        y: Array,
        mask: Bool[Array, " W"] | None,
        aux: PyTree,
        key: Key[Array, ""] | None,
    ) -> Update:
        """Condition parameters and variance on y."""
        at = model.linearise(belief.mean, x, aux)
        forecast = _predictive(belief, model, x, at, plugin=False)
        density = partial(log_student, belief.shape, belief.rate)
        if not isinstance(model.likelihood, RobustLikelihood):
            return condition(belief, model, x, y, mask, at, forecast, density)
        # the trust is computed from the residual in units of the present estimate of the noise
        model = Model(model.predictor, model.likelihood.in_units(jnp.sqrt(belief.rate / belief.shape)))
        update = condition(belief, model, x, y, mask, at, forecast, density)
        count = jnp.asarray(y.size if mask is None else jnp.sum(mask), y.dtype)
        trust = jnp.ones_like(count) if update.trust is None else update.trust
        gain = jnp.where(update.ok, 0.5 * count * jnp.square(trust), 0.0)
        new = NormalInverseGamma(update.belief.unit, belief.shape + gain, update.belief.rate)
        return eqx.tree_at(lambda update: update.belief, update, new)


def _predictive(belief: PyTree, model: Model, x: Array | None, at: Linearised, plugin: bool) -> StudentT:
    scale, unit = model.likelihood.covariance(x, at.eta), belief.rate / belief.shape
    if plugin:
        return StudentT(at.eta, scale * unit, 2.0 * belief.shape, at.scalar)
    root = total_root(belief, model, x, at)
    root = None if root is None else root * jnp.sqrt(unit)
    return StudentT(at.eta, (scale + belief.project_cov(at.jacobian)) * unit, 2.0 * belief.shape, at.scalar, root)
