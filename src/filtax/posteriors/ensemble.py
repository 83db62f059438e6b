r"""(A.1) The ensemble Kalman filter: a gain from the sample covariance of members and their predictions, no Jacobian.

EnKF perturbs the observation of each member, ETKF transforms the deviations without noise. That of the model enters
the gain exactly, not by its draws. Labels and counts are whitened at the mean prediction, as the extended filter does.
Under a robust model each member trusts each component of y by its own residual.

Axes: S members, D parameters, O outputs. Cost: S predictions and O(SO(D + O)), a localised ETKF O(SO²D); nothing of
size D².
Thesis: algo:ensemble-kalman-filter, eq:ensemble-kf-update (errata E7); the transform after Bishop (2001).
"""

import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key, PyTree

from filtax import checks
from filtax.beliefs import Conditioned, Ensemble
from filtax.distributions import Mixture
from filtax.linalg import log_det, log_normal, matmul, solve_lower
from filtax.models import Model, Predicted, Whitened
from filtax.posteriors.gain import perturbed, root, transformed, transformed_nearby
from filtax.posteriors.trusting import Look, look_at, plain_likelihood
from filtax.protocols import Posterior, Update

__all__ = ["EnsembleKalman", "ensemble_kalman"]


class EnsembleKalman(Posterior):
    """EnKF, or ETKF if `deterministic`; `inflation` multiplies the deviations before each datum that is taken.

    `localisation` (D, O), or `taper(parameter, output)` of the indices, is 0 where they are known to have nothing to do
    with each other. It multiplies the gain of EnKF; in ETKF it divides the noise of an output, as each parameter sees
    it (LETKF). It is meant for noise that is independent between outputs.

    >>> EnsembleKalman(size=20).name
    'EnKF'
    """

    size: Any = eqx.field(static=True, default=100)
    inflation: Any = 1.0
    deterministic: bool = eqx.field(static=True, default=False)
    localisation: Any = None
    taper: Callable | None = eqx.field(static=True, default=None)
    shown = {"size": None, "inflation": 1.0}  # noqa: RUF012
    families = (Ensemble,)
    likelihood_needs = ("given",)
    draws = True

    @property
    def name(self) -> str:
        """ETKF if deterministic, else EnKF."""
        return "ETKF" if self.deterministic else "EnKF"

    def __check_init__(self) -> None:
        checks.whole(f"{self.name}(size=...)", self.size, least=2, hint="One member has no spread.")
        checks.positive(f"{self.name}(inflation=...)", self.inflation, hint="It multiplies the deviations; 1 is none.")

    def start(self, mean: Float[Array, " D"], cov: Array, has_dynamics: bool, key: Key[Array, ""]) -> Ensemble:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Draw the initial members."""
        return Ensemble.start(mean, cov, self.size, key)

    def forecast(self, belief: Ensemble, model: Model, x: Array | None, aux: PyTree, plugin: bool = False) -> PyTree:
        """Gaussian with the members' covariance under Gaussian noise, else the members' mixture."""
        if plugin:
            at = model.value(belief.mean, x, aux)
            return model.likelihood.predictive(at.eta, jnp.zeros((at.eta.size,) * 2, at.eta.dtype), x, at.scalar)
        return _predictive(model, x, model.values(belief.stretch(self.inflation).members, x, aux))

    def update(
        self,
        belief: Ensemble,
        model: Model,
        x: Array | None,
        y: Array,
        mask: Bool[Array, " W"] | None,
        aux: PyTree,
        key: Key[Array, ""] | None,
    ) -> Update:
        """Move the members; the key is the belief's own. A datum that is not taken leaves them bit for bit."""
        belief, key = belief.take_key()
        wide = belief.stretch(self.inflation)
        at = model.values(wide.members, x, aux)
        forecast = _predictive(model, x, at)
        look = look_at(model, x, y, mask, at)
        new, seen = self._moved(wide, look, key), look.seen
        done = _foreseen(look)
        evidence = _evidence(forecast, done, seen, y, mask)
        narrow = jnp.isfinite(jnp.sum(jnp.square(new - jnp.mean(new, axis=0)[None])))  # or the covariance is no number
        sound = narrow & jnp.isfinite(jnp.sum(jnp.square(seen.residual)))
        sound = sound if seen.trust is not None else sound & jnp.isfinite(evidence)
        used = jnp.any(look.of_mean.whitener != 0.0) if self.deterministic else jnp.any(look.B != 0.0)
        belief = belief.replace(jnp.where(sound & used, new, belief.members))
        belief, conditioning_ratio = look.judge(belief, sound)
        if seen.trust is None:
            score = jnp.where(sound, evidence, -jnp.inf)
            return Update(belief, forecast, score, score, jnp.ones_like(score), conditioning_ratio, sound)
        evidence = jnp.where(jnp.isnan(evidence), -jnp.inf, evidence)
        score = model.likelihood.log_score(seen, done, evidence, y, mask)
        return Update(belief, forecast, evidence, score, seen.trust, conditioning_ratio, sound)

    def _moved(self, wide: Ensemble, look: Look, key: Key[Array, ""]) -> Float[Array, "S D"]:
        """Members after the datum."""
        A = wide.deviations
        if self.deterministic:
            U, rho = matmul(look.Y, look.of_mean.whitener.T), self._taper(A.shape[1], look.Y)
            if rho is None:
                return wide.mean[None, :] + transformed(A, U, look.of_mean.residual)
            return wide.mean[None, :] + transformed_nearby(A, U, look.of_mean.residual, rho)
        return wide.members + perturbed(key, A, look.Y, look.B, look.r, self._taper(A.shape[1], look.Y))

    def _taper(self, D: int, Y: Float[Array, "S O"]) -> Array | None:
        """The localisation (O, D), of a matrix or a function of indices."""
        O = Y.shape[1]
        if self.taper is not None:
            return jnp.asarray(self.taper(jnp.arange(D)[None, :], jnp.arange(O)[:, None])).astype(Y.dtype)
        if self.localisation is None:
            return None
        if jnp.shape(self.localisation) != (D, O):
            raise ValueError(
                f"{self.name}(localisation=...) has shape {jnp.shape(self.localisation)} but there are D = {D} "
                f"parameters and O = {O} outputs; give ({D}, {O})."
            )
        return jnp.asarray(self.localisation).T


def ensemble_kalman(
    size: Any = 100, inflation: Any = 1.0, deterministic: bool = False, localisation: Any = None
) -> EnsembleKalman:
    """Filter with an ensemble: for many parameters, or an h that has no derivative.

    Args:
        size: Number of members S. Below the number of directions that matter, use `inflation` or `localisation`.
        inflation: Factor on the deviations before each datum, such as 1.02; 1 is none.
        deterministic: Transform the deviations (ETKF) instead of perturbing the observations (EnKF).
        localisation: (D, O) factors in [0, 1], or a function of parameter and output index that returns them, such as
            `gaspari_cohn(radius)`. An ETKF then makes a transform for each parameter.

    Returns:
        A posterior for `filtax.method(..., posterior=...)`; `init` then needs a `key`.

    >>> import filtax as fx
    >>> near = ensemble_kalman(20, localisation=lambda i, j: jnp.exp(-0.5 * (i - j) ** 2))
    >>> fx.method("C-Static", model=fx.models.linear(noise=1.0), posterior=near).name
    'EnKF(size=20)+C-Static'
    """
    if callable(localisation):
        return EnsembleKalman(size, inflation, deterministic, None, localisation)
    if localisation is not None:
        hint = "0 is unrelated, 1 is untouched."
        checks.share("ensemble_kalman(localisation=...)", localisation, flags=True, hint=hint)
        localisation = checks.floats(localisation)
    return EnsembleKalman(size, inflation, deterministic, localisation)


def _predictive(model: Model, x: Array | None, at: Predicted) -> PyTree:
    S = at.eta.shape[0]
    if hasattr(model.likelihood, "covariance"):
        mean = jnp.mean(at.eta, axis=0)
        Y = at.eta - mean[None, :]
        return model.likelihood.predictive(mean, matmul(Y.T, Y) / (S - 1), x, at.scalar)
    given = plain_likelihood(model.likelihood).given
    parts = jax.vmap(lambda eta: given(eta, x, at.scalar))(at.eta)
    return Mixture(parts, jnp.full(S, -math.log(S), at.eta.dtype))


def _foreseen(look: Look) -> Conditioned:
    """How the ensemble had foreseen the datum: innovation and log determinant."""
    L = root(matmul(look.Y, look.seen.whitener.T))
    z = solve_lower(L, look.seen.residual)
    return Conditioned(None, z, log_det(L), jnp.all(jnp.isfinite(z)))


def _evidence(forecast: PyTree, done: Conditioned, seen: Whitened, y: Array, mask: Array | None) -> Array:
    """Evidence from the factor of the update under Gaussian noise, else asked of the forecast; exactly 0 if unseen."""
    if seen.trust is not None or seen.log_scale is None:
        return forecast.log_prob(y, mask)
    count = jnp.asarray(y.size if mask is None else jnp.sum(mask), y.dtype)
    value = log_normal(done.innovation, done.log_det, count) + seen.log_scale
    return value if mask is None else jnp.where(count > 0, value, 0.0)
