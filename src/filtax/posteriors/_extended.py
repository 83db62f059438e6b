r"""(A.1) Linearise at the mean and condition: Kalman, extended and iterated extended filter, in any Gaussian form.

One class serves all of them, because the model whitens in output space and the belief owns its algebra. Exact for
linear-Gaussian models (recursive Bayesian regression and the Kalman filter); one Newton step for exponential families.

Axes: D parameters, O outputs. Cost: one linearisation and one conditioning for each iteration.
Thesis: algo:linear-kalman-filter, algo:extended-kalman-filter, sec:exponential-family-ekf (errata E3, E5, E8).
"""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key, PyTree

from filtax import _validation as checks
from filtax.beliefs import Conditioned, Covariance, Diagonal, LowRank, Pending, Precision, SquareRoot, _covariance
from filtax.distributions import Normal
from filtax.linalg import log_normal, matmul, psd_root, trace, triangular_root
from filtax.models import Linearised, Model, Whitened
from filtax.models._robust import RobustLikelihood
from filtax.protocols import Posterior, Update, static, with_fields

Mask = Bool[Array, " W"] | None  # which numbers of y are there; None promises all
RandomKey = Key[Array, ""] | None

FORMS = {
    "root": SquareRoot,
    "covariance": Covariance,
    "precision": Precision,
    "diagonal": Diagonal,
    "decoupled": Diagonal,
}
DENSE = (*FORMS.values(), Pending)  # the last is the covariance form for many parameters
LARGE = 64  # above so many moving parameters the QR of D x 2D that a square root needs each step takes too long


class GaussianPosterior(Posterior):
    """A posterior on a Gaussian belief, dense or of low rank, whose forecast is that of the extended filter."""

    form, rank, spare = "auto", None, None  # fields of those that have them

    @property
    def families(self) -> tuple[type, ...]:
        """Beliefs that it works on."""
        return DENSE if self.rank is None else (LowRank,)

    @property
    def _forms(self) -> tuple[str, ...]:
        """Names of the dense forms that it takes."""
        return tuple(FORMS)

    @property
    def _low_rank_form(self) -> str:
        """Form of the diagonal, where there is a rank."""
        return self.form

    def __check_init__(self) -> None:
        if self.rank is not None:
            check_rank(self.name, self._low_rank_form, self.rank, self.spare)
        elif self.form not in ("auto", *self._forms):
            raise ValueError(f"{self.name}(form={self.form!r}) must be one of auto, {', '.join(self._forms)}.")
        elif self.spare is not None:
            raise ValueError(f"{self.name}(spare={self.spare!r}) goes with a rank; give rank= too, or leave it out.")

    def check_start(self, mean: Array, cov: Array) -> None:
        """Refuse a covariance that the form cannot hold, and a rank above D."""
        check_form(self.form if self.rank is None else self._low_rank_form, cov)
        if self.rank is not None:
            check_rank(self.name, self._low_rank_form, self.rank, self.spare, mean.size)

    def start(self, mean: Float[Array, " D"], cov: Array, has_dynamics: bool) -> PyTree:
        """Initial belief in the chosen form."""
        if self.rank is not None:
            return LowRank.start(mean, cov, self.rank, self.spare, self._low_rank_form == "spherical")
        return gaussian_belief(self.form, mean, cov, has_dynamics)

    def forecast(self, belief: PyTree, model: Model, x: Array | None, aux: PyTree, plugin: bool = False) -> PyTree:
        """Predictive distribution of y with the parameters averaged out; with `plugin`, at their mean."""
        return _predictive(belief, model, x, model.linearise(belief.mean, x, aux), plugin)


class Extended(GaussianPosterior):
    """The extended Kalman filter; with `iterations` above 1 it relinearises at the new mean.

    `form` is "root", "covariance", "precision", or "diagonal" and "decoupled", which drop correlations. "auto" is the
    square root, except for more than 64 moving parameters: a reduction at each step would cost D³ there, and the
    guarded covariance is used.

    With a `rank` it is LoFi: the belief is a `LowRank` with that many columns, and `spare` more between truncations.
    `form` is then "diagonal", one number for each parameter in the precision, or "spherical", one for all.

    >>> type(Extended().start(jnp.zeros(2), jnp.ones(2), has_dynamics=True)).__name__
    'SquareRoot'
    """

    form: str = static(default="auto")
    iterations: int = static(default=1)
    rank: Any = static(default=None)
    spare: Any = static(default=None)

    @property
    def name(self) -> str:
        """LG, or IEKF when it iterates; LoFi when its belief is of low rank."""
        return "LoFi" if self.rank is not None else "LG" if self.iterations == 1 else "IEKF"

    @property
    def shown(self) -> dict[str, Any]:
        """Settings that are part of the name, with their defaults."""
        settings = {"form": "auto", "iterations": 1}
        return settings if self.rank is None else {"rank": None, "spare": None, "form": "diagonal", "iterations": 1}

    def __check_init__(self) -> None:
        checks.whole(f"{self.name}(iterations=...)", self.iterations, least=1, most=checks.REPEATS)

    def start(self, mean: Float[Array, " D"], cov: Array, has_dynamics: bool) -> PyTree:
        """Initial belief in the chosen form."""
        belief = super().start(mean, cov, has_dynamics)
        short = jnp.finfo(mean.dtype).bits < 64
        return belief.compensated() if isinstance(belief, SquareRoot) and short and not has_dynamics else belief

    def update(
        self, belief: PyTree, model: Model, x: Array | None, y: Array, mask: Mask, aux: PyTree, key: RandomKey
    ) -> Update:
        """Condition the belief on y."""
        at = model.linearise(belief.mean, x, aux)
        belief = belief.prepare(at.jacobian)  # the forecast and the update share products with J
        first = condition(belief, model, x, y, mask, at, _predictive(belief, model, x, at, plugin=False), log_normal)
        new, ok = first.belief, first.ok
        if isinstance(model.likelihood, RobustLikelihood) and first.trust is not None:
            model = Model(model.predictor, model.likelihood.fixed(first.trust))  # of the forecast, computed once
        for _ in range(self.iterations - 1):
            # relinearise at the new mean, but condition the old belief, so that the datum is counted once
            offset = new.mean - belief.mean
            at = model.linearise(new.mean, x, aux)
            later = condition(belief, model, x, y, mask, at, first.forecast, log_normal, offset)
            new, ok = later.belief, ok & later.ok
        return with_fields(first, belief=new, ok=ok)


def check_form(form: str, cov: Array) -> None:
    """Refuse a covariance that a form cannot hold: zero variance in a precision, correlations in a diagonal."""
    if form == "precision":
        hint = "A precision cannot hold a zero variance: use form=root or form=covariance."
        checks.covariance_like("init(cov=...) of form=precision", cov, singular=False, hint=hint)
    numbers = checks.concrete(cov) if form in ("diagonal", "decoupled", "spherical") else None
    if numbers is not None and cov.ndim == 2:
        if (numbers != np.diag(np.diagonal(numbers))).any():
            raise ValueError(
                f"init(cov=...) of form={form} has correlations, which it cannot hold; give (D,) variances, or use "
                "form=root or form=covariance."
            )
        numbers = np.diagonal(numbers)
    if form == "spherical" and numbers is not None and np.ptp(numbers) > 0.0:
        raise ValueError("init(cov=...) of form=spherical must be one variance for all parameters; give a number.")


def check_rank(name: str, form: str, rank: Any, spare: Any, size: int | None = None, where: str = "") -> None:
    """Check the settings of a low-rank belief, for any number of parameters or for `size` of them."""
    hint = "It is the number of columns that a cut keeps: give 10, say, or 0 for a diagonal precision."
    checks.whole(f"{name}(rank=...)", rank, hint=hint)
    if form not in ("diagonal", "spherical"):
        raise ValueError(
            f"{name}(form={form!r}) must be diagonal or spherical where there is a rank; leave it out for diagonal."
        )
    if spare is not None:
        hint = "It is the number of columns that data fill between cuts: leave it out for the rank, and at least 20."
        checks.whole(f"{name}(spare=...)", spare, hint=hint)
    if size is not None and rank > size:
        raise ValueError(
            f"{name}(rank={rank}) is more than the D = {size} parameters{where}; give at most {size}, which is exact."
        )


def gaussian_belief(form: str, mean: Float[Array, " D"], cov: Array, has_dynamics: bool) -> PyTree:
    """Build a Gaussian belief in a form; "auto" depends on its size and on whether the parameters move."""
    if form == "auto":
        form = "covariance" if has_dynamics and mean.size > LARGE else "root"
    if form == "decoupled":
        return Diagonal.start(mean, cov, decoupled=True)
    if form == "covariance" and mean.size > _covariance.LARGE:
        return Pending.start(mean, cov)
    return FORMS[form].start(mean, cov)


def condition(
    belief: PyTree,
    model: Model,
    x: Array | None,
    y: Array,
    mask: Mask,
    at: Linearised,
    forecast: PyTree,
    density: Callable[[Array, Array, Array], Array],
    offset: Float[Array, " D"] | None = None,
) -> Update:
    """Condition on one whitened datum, linearised at the belief's mean plus `offset`.

    Numbers that are not finite are set to zero in output space before they reach the belief, so a refused datum leaves
    it bit for bit as it was. `density` is the log density of a whitened innovation, from its log determinant and its
    count. Without a mask the datum is promised to be complete and finite, and only `ok` reports a failure: then the
    covariance does not depend on the data, and vmapped streams share it.
    """
    whitened = model.likelihood.whiten(at.eta, x, y, mask)
    B, r, J = whitened.whitener, whitened.residual, at.jacobian
    if offset is not None:
        r = r + matmul(B, matmul(J, offset[:, None]))[:, 0]
    robust = whitened.trust is not None
    asked = None if whitened.log_scale is not None and not robust else forecast.log_prob(y, mask)
    # |L⁻¹ r| <= |r|, so a finite square implies a finite evidence, before the belief is conditioned
    sound = jnp.all(jnp.isfinite(B)) & jnp.all(jnp.isfinite(jnp.sum(r * r) if asked is None or robust else r))
    sound = sound if asked is None or robust else sound & jnp.isfinite(asked)
    if mask is not None:
        B, r = jnp.where(sound, B, 0.0), jnp.where(sound, r, 0.0)
    conditioned = belief.condition(J, B, r)
    evidence = factored_evidence(conditioned, whitened, y, mask, density) if asked is None else asked
    ok = sound & conditioned.ok
    conditioning_ratio = _conditioning_ratio(belief, J, B)
    if robust:  # forecast and evidence are those of the plain model, for a datum of any size, taken or not
        evidence = jnp.where(jnp.isnan(evidence), -jnp.inf, evidence)
        score = model.likelihood.log_score(whitened, conditioned, evidence, y, mask)
        return Update(conditioned.belief, forecast, evidence, score, whitened.trust, conditioning_ratio, ok)
    score = jnp.where(ok, evidence, -jnp.inf)
    return Update(conditioned.belief, forecast, score, score, None, conditioning_ratio, ok)


def factored_evidence(
    conditioned: Conditioned, whitened: Whitened, y: Array, mask: Mask, density: Callable[[Array, Array, Array], Array]
) -> Float[Array, ""]:
    """Evidence from the factor of the update; exactly 0 if y is missing."""
    count = count_of(y, mask)
    evidence = density(conditioned.innovation, conditioned.log_det, count) + jnp.asarray(whitened.log_scale)
    return evidence if mask is None else jnp.where(count > 0, evidence, 0.0)


def count_of(y: Array, mask: Mask) -> Float[Array, ""]:
    """How many numbers of y are there."""
    return jnp.asarray(y.size if mask is None else jnp.sum(mask), y.dtype)


def _conditioning_ratio(belief: PyTree, J: Array, B: Array) -> Float[Array, ""]:
    """Variance of the forecast's mean in units of the noise: tr(B J Σ Jᵀ Bᵀ)."""
    root = belief.project_root(J)
    if root is None:
        return trace(matmul(matmul(B, belief.project_cov(J)), B.T))
    V = matmul(B, root)  # the same expression as in the update, so XLA computes it once
    return jnp.sum(V * V)


def _predictive(belief: PyTree, model: Model, x: Array | None, at: Linearised, plugin: bool) -> PyTree:
    spread = jnp.zeros((at.eta.size, at.eta.size), at.eta.dtype) if plugin else belief.project_cov(at.jacobian)
    forecast = model.likelihood.predictive(at.eta, spread, x, at.scalar)
    if plugin or not isinstance(forecast, Normal):
        return forecast
    return with_fields(forecast, root=total_root(belief, model, x, at))


def total_root(belief: PyTree, model: Model, x: Array | None, at: Linearised) -> Float[Array, "O O"] | None:
    """Root of the forecast covariance, by reduction: as a sum it would round away precise outputs that agree.

    None for a single output, where nothing is lost, and for a belief without a root. The noise may be singular.
    """
    if at.eta.size == 1 or not model.likelihood.has_covariance:
        return None
    projected = belief.project_root(at.jacobian)
    if projected is None:
        return None
    R = psd_root(model.likelihood.covariance(x, at.eta))
    return triangular_root(jnp.concatenate([R, projected], axis=1))
