"""(A.1) Closed-form updates (Cj) of a belief conjugate to its likelihood: Beta for Bernoulli, Gamma for Poisson.

The model is the bare likelihood: the parameter is the probability or the rate itself, and x is not used.
"""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key, PyTree

from filtax.beliefs import Beta, Gamma
from filtax.models import Model
from filtax.models._exponential_family import BernoulliLikelihood, PoissonLikelihood
from filtax.models._robust import RobustLikelihood
from filtax.models._trust import Tempered
from filtax.protocols import Posterior, Update, static

FAMILIES = {BernoulliLikelihood: Beta, PoissonLikelihood: Gamma}


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
        self,
        belief: PyTree,
        model: Model,
        x: Array | None,
        y: Array,
        mask: Bool[Array, " O"] | None,
        aux: PyTree,
        key: Key[Array, ""] | None,
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
    """Choose the family that is conjugate to a likelihood.

    >>> from filtax.models import poisson
    >>> conjugate_to(poisson()).family.__name__
    'Gamma'
    """
    if type(likelihood) not in FAMILIES:
        raise ValueError(
            f"Cj: no conjugate belief is known for {type(likelihood).__name__}; "
            "use model=bernoulli() or model=poisson(), or LG for any other likelihood."
        )
    return Conjugate(FAMILIES[type(likelihood)])
