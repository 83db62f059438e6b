r"""(A.1) Closed-form updates: of counts (Cj), Beta for Bernoulli and Gamma for Poisson, and of an unknown noise (NIG).

Under `Conjugate` the model is the bare likelihood: the parameter is the probability or the rate itself, and x is not
used.

`UnknownNoise` is linear regression with unknown noise variance: normal-inverse-gamma belief, Student-t forecast. The
model's `noise` is then relative (1.0 for equal noise), and so are the prior covariance and the process noise: all in
units of the unknown variance $\sigma^2 \sim \mathrm{IG}(\text{shape}, \text{rate})$. Exact for linear models; the
extended approximation otherwise. A robust model's datum of trust w counts as w² of one: the shape gains w²/2 for each
output, the rate $\tfrac12 e^\top(HPH^\top + R/w^2)^{-1}e$, which is w²e²/2 where the parameters are known.
"""

from functools import partial
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from filtax import _validation as checks
from filtax.beliefs import Beta, Gamma, NormalInverseGamma
from filtax.distributions import StudentT
from filtax.distributions._normal import log_student
from filtax.models import Linearised, Model
from filtax.models._exponential_family import BernoulliLikelihood, PoissonLikelihood
from filtax.models._robust import RobustLikelihood
from filtax.models._trust import Tempered
from filtax.posteriors._extended import GaussianPosterior, Mask, RandomKey, condition, count_of, total_root
from filtax.protocols import Posterior, Update, static, with_fields

FAMILIES = {BernoulliLikelihood: Beta, PoissonLikelihood: Gamma}


class UnknownNoise(GaussianPosterior):
    """Learn theta and the noise variance; the prior of the variance is inverse-gamma with `shape` and `rate`.

    >>> UnknownNoise(shape=2.0, rate=1.0).start(jnp.zeros(1), jnp.ones(1), has_dynamics=False).noise.item()
    1.0
    """

    shape: Any = 1.0
    rate: Any = 1.0
    form: str = static(default="auto")
    name = "NIG"
    shown = {"shape": 1.0, "rate": 1.0, "form": "auto"}  # noqa: RUF012
    families = (NormalInverseGamma,)  # pyright: ignore[reportAssignmentType, reportIncompatibleMethodOverride]
    needs_covariance = True

    def __check_init__(self) -> None:
        checks.positive("NIG(shape=...)", self.shape, hint="It is half the number of data that the prior counts as.")
        checks.positive("NIG(rate=...)", self.rate, hint="rate / shape is about the noise variance expected.")

    def start(self, mean: Float[Array, " D"], cov: Array, has_dynamics: bool) -> NormalInverseGamma:
        """Initial belief; `cov` is in units of the noise variance."""
        shape, rate = (jnp.asarray(value, mean.dtype) for value in (self.shape, self.rate))
        return NormalInverseGamma(super().start(mean, cov, has_dynamics), shape, rate)

    def forecast(self, belief: PyTree, model: Model, x: Array | None, aux: PyTree, plugin: bool = False) -> StudentT:
        """Student-t predictive, parameters and variance averaged out; with `plugin`, the parameters at their mean."""
        return _student(belief, model, x, model.linearise(belief.mean, x, aux), plugin)

    def update(
        self, belief: PyTree, model: Model, x: Array | None, y: Array, mask: Mask, aux: PyTree, key: RandomKey
    ) -> Update:
        """Condition parameters and variance on y."""
        at = model.linearise(belief.mean, x, aux)
        forecast = _student(belief, model, x, at, plugin=False)
        density = partial(log_student, belief.shape, belief.rate)
        if not isinstance(model.likelihood, RobustLikelihood):
            return condition(belief, model, x, y, mask, at, forecast, density)
        # the trust is computed from the residual in units of the present estimate of the noise
        model = Model(model.predictor, model.likelihood.in_units(jnp.sqrt(belief.rate / belief.shape)))
        update = condition(belief, model, x, y, mask, at, forecast, density)
        count = count_of(y, mask)
        trust = jnp.ones_like(count) if update.trust is None else update.trust
        gain = jnp.where(update.ok, 0.5 * count * jnp.square(trust), 0.0)
        return with_fields(update, belief=with_fields(update.belief, shape=belief.shape + gain))


def _student(belief: PyTree, model: Model, x: Array | None, at: Linearised, plugin: bool) -> StudentT:
    scale, unit = model.likelihood.covariance(x, at.eta), belief.rate / belief.shape
    if plugin:
        return StudentT(at.eta, scale * unit, 2.0 * belief.shape, at.scalar)
    root = total_root(belief, model, x, at)
    root = None if root is None else root * jnp.sqrt(unit)
    return StudentT(at.eta, (scale + belief.project_cov(at.jacobian)) * unit, 2.0 * belief.shape, at.scalar, root)


class Conjugate(Posterior):
    """Add each datum to the counts of the belief.

    >>> Conjugate(Beta).start(jnp.array([0.5]), jnp.array([0.05]), has_dynamics=False).ones.round(3).item()
    2.0
    """

    family: type = static(default=Beta)
    name = "Cj"
    shown = {}  # noqa: RUF012

    @property
    def families(self) -> tuple[type, ...]:
        """The family of its belief."""
        return (self.family,)

    def check_start(self, mean: Array, cov: Array) -> None:
        """Check that the family has a belief with these moments."""
        self.family.check_start(mean, cov)

    def start(self, mean: Float[Array, " O"], cov: Array, has_dynamics: bool) -> PyTree:
        """Initial belief with the given means and variances."""
        return self.family.start(mean, cov if cov.ndim < 2 else jnp.diag(cov))

    def forecast(self, belief: PyTree, model: Model, x: Array | None, aux: PyTree, plugin: bool = False) -> PyTree:
        """Predictive distribution of y."""
        return belief.forecast(belief.mean.size == 1)

    def update(
        self, belief: PyTree, model: Model, x: Array | None, y: Array, mask: Mask, aux: PyTree, key: RandomKey
    ) -> Update:
        """Add y to the counts."""
        forecast = self.forecast(belief, model, x, aux)
        log_evidence = forecast.log_prob(y, mask)
        ok = jnp.isfinite(log_evidence)
        observed = jnp.ones_like(y) if mask is None else (mask & ok).astype(y.dtype)
        if isinstance(model.likelihood, RobustLikelihood) and isinstance(model.likelihood.trust, Tempered):
            observed = observed * jnp.square(model.likelihood.trust.w)  # the datum counts as a share of one
        score = jnp.where(ok, log_evidence, -jnp.inf)
        return Update(
            belief.condition(y, observed), forecast, score, score, jnp.ones_like(score), jnp.zeros_like(score), ok
        )


def conjugate_to(likelihood: Any) -> Conjugate:
    """Choose the family that is conjugate to a likelihood."""
    if type(likelihood) not in FAMILIES:
        raise ValueError(
            f"Cj: no conjugate belief is known for {type(likelihood).__name__}; "
            "use model=bernoulli() or model=poisson(), or LG for any other likelihood."
        )
    return Conjugate(FAMILIES[type(likelihood)])
