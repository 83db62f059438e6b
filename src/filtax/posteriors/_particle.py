r"""(A.1) Particle filters: weigh by the likelihood, and resample when few particles carry the weight.

PF, the bootstrap filter: the prior has moved the particles, $w_s$ is multiplied by $p(y \mid \theta_s)$, and below an
effective size of `threshold` S the particles are resampled systematically. With `shrink` = a the resampled particles
move by the kernel of Liu and West (2001), $a\theta + (1-a)\mu + N(0, (1-a^2)\Sigma)$; without it all particles of
static parameters become copies of one. APF, their auxiliary filter: particles are first resampled by
$w_s\,p(y \mid a\theta_s + (1-a)\mu)$, then moved, then weighted by the ratio of likelihoods.

RBPF, the Rao-Blackwellised filter, is PF on a belief that samples the first `drawn` parameters alone; the others are
integrated out by the Kalman recursion along each path. It is for linear dynamics, and an h that depends on the first
parameters alone: where h depends on the others, a datum is refused. Under `density_power`, a generalised likelihood,
PF is a filter of Boustati and others (2020).

The evidence is the weighted mean likelihood (unbiased for PF without `shrink`), which is the density of the forecast, a
mixture over particles. A datum impossible under every particle keeps the belief.

Axes: S particles, D parameters, O outputs. Cost: S likelihoods (APF three times), and O(SD² + D³) with `shrink`.
Thesis: def:ssm, experiment:2d-tracking; the filters after Gordon (1993), Pitt and Shephard (1999), Liu and West (2001),
Doucet and others (2000).
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.nn import logsumexp
from jaxtyping import Array, Bool, Float, Key, PyTree

from filtax import _validation as checks
from filtax.beliefs import Marginalised, Particles
from filtax.beliefs._particles import noise_like, resample_indices
from filtax.distributions import Mixture
from filtax.models import Model, Predicted
from filtax.models._generalised_bayes import DensityPower
from filtax.posteriors._extended import Mask, RandomKey
from filtax.protocols import Posterior, Update, static

Cloud = Any  # Particles or Marginalised


class Particle(Posterior):
    """The bootstrap filter; with `auxiliary`, that of Liu and West; with `drawn`, the Rao-Blackwellised one.

    >>> Particle(size=500, shrink=0.98).name
    'PF'
    """

    size: Any = static(default=1000)
    threshold: Any = 0.5
    shrink: Any = None
    auxiliary: bool = static(default=False)
    drawn: Any = static(default=None)
    likelihood_needs = ("given", "log_likelihood")
    draws = True

    @property
    def name(self) -> str:
        """APF if it is auxiliary, RBPF if it samples some parameters alone, else PF."""
        return "APF" if self.auxiliary else "PF" if self.drawn is None else "RBPF"

    @property
    def families(self) -> tuple[type, ...]:
        """Beliefs that it works on."""
        return (Particles,) if self.drawn is None else (Marginalised,)

    @property
    def shown(self) -> dict[str, Any]:
        """Settings that are part of the name, with their defaults."""
        if self.auxiliary:
            return {"size": None, "shrink": 0.98}
        last = {"shrink": None} if self.drawn is None else {"drawn": None}
        return {"size": None, "threshold": 0.5, **last}

    def __check_init__(self) -> None:
        checks.whole(f"{self.name}(size=...)", self.size, least=1, hint="It is the number of particles.")
        checks.share(f"{self.name}(threshold=...)", self.threshold, hint="It is a share of the number of particles.")
        if self.shrink is not None:
            checks.share(f"{self.name}(shrink=...)", self.shrink, hint="1 moves nothing; 0.98 is usual.")
        elif self.auxiliary:
            raise ValueError("APF(shrink=...) is needed for its first resampling; give a share such as 0.98.")
        if self.drawn is not None:
            checks.whole(
                "RBPF(drawn=...)", self.drawn, least=1, hint="It is how many parameters, from the first, y is of."
            )
            if self.auxiliary or self.shrink is not None:
                raise ValueError(
                    "RBPF(shrink=...): a kernel would move what was integrated out; leave it away, or use PF."
                )

    def check_start(self, mean: Array, cov: Array) -> None:
        """Check that some parameters are left to integrate out."""
        if self.drawn is not None and self.drawn >= mean.size:
            raise ValueError(
                f"RBPF(drawn={self.drawn}) leaves none of the D = {mean.size} parameters to integrate out; give "
                "fewer, or use PF."
            )

    def start(self, mean: Float[Array, " D"], cov: Array, has_dynamics: bool, key: Key[Array, ""]) -> Cloud:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Draw the initial particles."""
        if self.drawn is not None:
            return Marginalised.start(mean, cov, self.drawn, self.size, key)
        return Particles.start(mean, cov, self.size, key)

    def forecast(self, belief: Cloud, model: Model, x: Array | None, aux: PyTree, plugin: bool = False) -> PyTree:
        """Mixture over the particles; with `plugin`, at their mean alone."""
        given = model.likelihood.plain.given
        if plugin:
            at = model.value(belief.mean, x, aux)
            return given(at.eta, x, at.scalar)
        return _mixture(model, x, model.values(belief.members, x, aux), belief.log_weight)

    def update(
        self, belief: Cloud, model: Model, x: Array | None, y: Array, mask: Mask, aux: PyTree, key: RandomKey
    ) -> Update:
        """Weigh the particles, and resample where needed, with a key from the belief itself."""
        belief, own = belief.take_key()
        at = model.values(belief.members, x, aux)
        trust, sound = _trust(belief, model, x, y, mask, at)
        score = partial(_log_likelihood, model, x, y, mask, trust)
        plain = _log_likelihood(model, x, y, mask, None, at.eta)
        log_evidence = _total(belief.log_weight + plain, mask)
        tempered = plain if trust is None else score(at.eta)
        log_score = _total(belief.log_weight + tempered, mask)
        if self.auxiliary:
            new = self._auxiliary_step(own, belief, lambda members: score(model.values(members, x, aux).eta))
        else:
            new = self._weigh(own, belief, tempered)
        ok = (
            sound
            & self._depends_on_drawn_alone(belief, model, x, aux)
            & jnp.isfinite(log_score)
            & jnp.all(jnp.isfinite(new.members))
            & ~jnp.any(jnp.isnan(new.log_weight))
        )
        taken = ok if mask is None else ok & jnp.any(mask)
        if trust is not None:  # a datum without trust changes no weight and moves no particle
            tilts = isinstance(model.likelihood.trust, DensityPower)
            taken = taken & (jnp.any(tempered != tempered[0]) if tilts else trust > 0.0)
        kept = jax.tree.map(lambda now, then: jnp.where(taken, now, then), new, belief)
        log_evidence = jnp.where(jnp.isnan(log_evidence), -jnp.inf, log_evidence)
        log_score = jnp.where(ok, log_score, -jnp.inf)
        trust = jnp.ones_like(log_score) if trust is None else trust
        forecast = _mixture(model, x, at, belief.log_weight)
        return Update(kept, forecast, log_evidence, log_score, trust, jnp.zeros_like(log_score), ok)

    def _depends_on_drawn_alone(self, belief: Cloud, model: Model, x: Array | None, aux: PyTree) -> Bool[Array, ""]:
        """Whether h does not depend on the parameters that were integrated out."""
        if self.drawn is None:
            return jnp.ones((), bool)
        return jnp.all(model.linearise(belief.mean, x, aux).jacobian[:, self.drawn :] == 0.0)

    def _weigh(self, key: Key[Array, ""], belief: Cloud, log_likelihood: Float[Array, " S"]) -> Cloud:
        """Bootstrap filter: new weights, and resampled particles where the effective size is small."""
        belief = belief.weighted(belief.log_weight + log_likelihood)
        of_choice, of_noise = jax.random.split(key)
        again = belief.resample(of_choice)
        if self.shrink is not None:
            centres, root = belief.shrunk(jnp.asarray(self.shrink, belief.members.dtype))
            chosen = resample_indices(of_choice, belief.log_weight, self.size)
            again = again.replace(centres[chosen] + noise_like(of_noise, centres, root))
        few = belief.effective < jnp.asarray(self.threshold, belief.members.dtype) * self.size
        return jax.tree.map(lambda now, then: jnp.where(few, now, then), again, belief)

    def _auxiliary_step(self, key: Key[Array, ""], belief: Particles, log_likelihood: Any) -> Particles:
        """Auxiliary filter: resample by the likelihood of the centres, move, weigh by the ratio of likelihoods."""
        of_choice, of_noise = jax.random.split(key)
        centres, root = belief.shrunk(jnp.asarray(self.shrink, belief.members.dtype))
        first = log_likelihood(centres)
        chosen = resample_indices(of_choice, belief.log_weight + first, self.size)
        moved = belief.replace(centres[chosen] + noise_like(of_noise, centres, root))
        return moved.weighted(log_likelihood(moved.members) - first[chosen])


def _mixture(model: Model, x: Array | None, at: Predicted, log_weight: Array) -> Mixture:
    given = model.likelihood.plain.given
    return Mixture(jax.vmap(lambda eta: given(eta, x, at.scalar))(at.eta), log_weight)


def _total(log_joint: Array, mask: Array | None) -> Array:
    """Log of the weighted mean likelihood; exactly 0 if y is missing."""
    total = logsumexp(log_joint)
    return total if mask is None else jnp.where(jnp.any(mask), total, 0.0)


def _trust(
    belief: Cloud, model: Model, x: Array | None, y: Array, mask: Any, at: Predicted
) -> tuple[Array | None, Bool[Array, ""]]:
    """Trust of a robust model in y from the mean prediction, None for a plain one; and whether it is a number."""
    mean = jnp.sum(jnp.exp(belief.log_weight)[:, None] * at.eta, axis=0)
    whitened = model.likelihood.whiten(mean, x, y, mask)
    valid = jnp.ones((), bool) if whitened.trust is None else ~jnp.any(jnp.isnan(whitened.residual))
    return whitened.trust, valid


def _log_likelihood(
    model: Model, x: Array | None, y: Array, mask: Array | None, trust: Array | None, eta: Float[Array, "S O"]
) -> Float[Array, " S"]:
    """Log-likelihood of y at each eta; under a robust model y counts as trust² of one.

    A generalised likelihood (`density_power`) uses no trust at the mean, but weighs y by each eta.
    """
    if trust is not None and isinstance(model.likelihood.trust, DensityPower):
        return jax.vmap(lambda eta: model.likelihood.tilted(eta, x, y, mask))(eta)
    if trust is None:
        return jax.vmap(lambda eta: model.likelihood.plain.log_likelihood(eta, x, y, mask))(eta)
    return jax.vmap(lambda eta: model.likelihood.trusted(trust, eta, x, y, mask))(eta)
