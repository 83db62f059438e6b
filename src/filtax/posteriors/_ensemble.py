r"""(A.1) The ensemble Kalman filter: a gain from the sample covariance of members and their predictions, no Jacobian.

EnKF perturbs the observation of each member; ETKF transforms the deviations without random noise. The noise of the
model enters the gain exactly, not by its draws. Labels and counts are whitened at the mean prediction, as in the
extended filter. Under a robust model each member has a trust in each component of y, from its own residual.

Deviations of the members are $A$ (S, D), those of their predictions $Y$ (S, O). With a whitener B, a residual r and $U
= YB^\top$ the datum says r = U + e, e ~ N(0, I). The gain comes from $I + U^\top U/(S-1) = LL^\top$; nothing is
inverted.

Axes: S members, D parameters, O outputs. Cost: S predictions and O(SO(D + O)), a localised ETKF O(SO²D); nothing of
size D².
Thesis: algo:ensemble-kalman-filter, eq:ensemble-kf-update (errata E7: 1/(S-1), and a gain of shape D x O); the
transform after Bishop (2001).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key, PyTree

from filtax import _validation as checks
from filtax import linalg
from filtax.beliefs import Conditioned, Ensemble
from filtax.distributions import Mixture
from filtax.linalg import factor, log_det, log_normal, matmul, solve_lower, solve_upper, triangular_root
from filtax.models import Model, Predicted, Whitened
from filtax.posteriors._extended import Mask, RandomKey, count_of, factored_evidence
from filtax.protocols import Module, Posterior, Update, static


class EnsembleKalman(Posterior):
    """EnKF, or ETKF if `deterministic`; `inflation` multiplies the deviations before each datum that is taken.

    `localisation` (D, O), or `taper(parameter, output)` of the indices, is 0 for a parameter and an output that are
    known to be unrelated. It multiplies the gain of EnKF; in ETKF it divides the noise of an output, separately for
    each parameter (LETKF). It assumes noise that is independent between outputs.

    >>> EnsembleKalman(size=20).name
    'EnKF'
    """

    size: Any = static(default=100)
    inflation: Any = 1.0
    deterministic: bool = static(default=False)
    localisation: Any = None
    taper: Callable | None = static(default=None)
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
        """Predictive distribution: Gaussian with the members' covariance under Gaussian noise, else their mixture."""
        if plugin:
            at = model.value(belief.mean, x, aux)
            return model.likelihood.predictive(at.eta, jnp.zeros((at.eta.size,) * 2, at.eta.dtype), x, at.scalar)
        return _predictive(model, x, model.values(belief.stretch(self.inflation).members, x, aux))

    def update(
        self, belief: Ensemble, model: Model, x: Array | None, y: Array, mask: Mask, aux: PyTree, key: RandomKey
    ) -> Update:
        """Move the members, with a key from the belief itself. A refused datum leaves them bit for bit as they were."""
        belief, key = belief.take_key()
        wide = belief.stretch(self.inflation)
        at = model.values(wide.members, x, aux)
        forecast = _predictive(model, x, at)
        inputs = _update_inputs(model, x, y, mask, at)
        new, whitened = self._moved(wide, inputs, key), inputs.whitened
        conditioned = _innovation(inputs)
        evidence = _evidence(forecast, conditioned, whitened, y, mask)
        narrow = jnp.isfinite(jnp.sum(jnp.square(new - jnp.mean(new, axis=0)[None])))  # or the covariance overflows
        sound = narrow & jnp.isfinite(jnp.sum(jnp.square(whitened.residual)))
        sound = sound if whitened.trust is not None else sound & jnp.isfinite(evidence)
        used = jnp.any(inputs.of_mean.whitener != 0.0) if self.deterministic else jnp.any(inputs.B != 0.0)
        belief = belief.replace(jnp.where(sound & used, new, belief.members))
        belief, conditioning_ratio = inputs.check_spread(belief, sound)
        if whitened.trust is None:
            score = jnp.where(sound, evidence, -jnp.inf)
            return Update(belief, forecast, score, score, jnp.ones_like(score), conditioning_ratio, sound)
        evidence = jnp.where(jnp.isnan(evidence), -jnp.inf, evidence)
        score = model.likelihood.log_score(whitened, conditioned, evidence, y, mask)
        return Update(belief, forecast, evidence, score, whitened.trust, conditioning_ratio, sound)

    def _moved(self, wide: Ensemble, inputs: "_EnsembleUpdateInputs", key: Key[Array, ""]) -> Float[Array, "S D"]:
        """Members after the datum."""
        A = wide.deviations
        if self.deterministic:
            U, rho = matmul(inputs.Y, inputs.of_mean.whitener.T), self._taper(A.shape[1], inputs.Y)
            if rho is None:
                return wide.mean[None, :] + _transformed(A, U, inputs.of_mean.residual)
            return wide.mean[None, :] + _localised(A, U, inputs.of_mean.residual, rho)
        return wide.members + _perturbed(key, A, inputs.Y, inputs.B, inputs.r, self._taper(A.shape[1], inputs.Y))

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
    """Build an ensemble filter, for many parameters or an h without a derivative.

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
    if model.likelihood.has_covariance:
        mean = jnp.mean(at.eta, axis=0)
        Y = at.eta - mean[None, :]
        return model.likelihood.predictive(mean, matmul(Y.T, Y) / (S - 1), x, at.scalar)
    given = model.likelihood.plain.given
    parts = jax.vmap(lambda eta: given(eta, x, at.scalar))(at.eta)
    return Mixture(parts, jnp.full(S, -math.log(S), at.eta.dtype))


def _innovation(inputs: "_EnsembleUpdateInputs") -> Conditioned:
    """Whitened innovation of the datum under the ensemble, and its log determinant."""
    L = _innovation_root(matmul(inputs.Y, inputs.whitened.whitener.T))
    z = solve_lower(L, inputs.whitened.residual)
    return Conditioned(None, z, log_det(L), jnp.all(jnp.isfinite(z)))


def _evidence(forecast: PyTree, conditioned: Conditioned, whitened: Whitened, y: Array, mask: Mask) -> Array:
    """Evidence from the factor of the update under Gaussian noise, else of the forecast; 0 if y is missing."""
    if whitened.trust is not None or whitened.log_scale is None:
        return forecast.log_prob(y, mask)
    return factored_evidence(conditioned, whitened, y, mask, log_normal)


class _EnsembleUpdateInputs(Module):
    """One datum for all members: deviations Y of their predictions, whiteners B and residuals r.

    `whitened` is the datum at the mean prediction, `of_mean` the same with a trust for each component, `plain` without.
    """

    Y: Float[Array, "S O"]
    B: Array
    r: Float[Array, "S O"]
    whitened: Whitened
    of_mean: Whitened
    plain: Whitened
    count: Float[Array, ""]

    def check_spread(self, belief: Ensemble, sound: Bool[Array, ""]) -> tuple[Ensemble, Float[Array, ""]]:
        """Let the belief compare its spread with its error; also return its variance in units of the noise."""
        conditioning_ratio = jnp.sum(jnp.square(matmul(self.Y, self.plain.whitener.T))) / (len(self.Y) - 1)
        miss = jnp.sum(jnp.square(self.plain.residual))
        some = jnp.maximum(self.count, 1.0)
        known = sound & (self.count > 0) & ~jnp.isnan(miss + conditioning_ratio)
        return belief.observe(miss / some, conditioning_ratio / some, known), conditioning_ratio


def _update_inputs(model: Model, x: Array | None, y: Array, mask: Mask, at: Predicted) -> _EnsembleUpdateInputs:
    """Whiten y for the mean prediction, and for each member where it has a trust of its own."""
    likelihood, mean = model.likelihood, jnp.mean(at.eta, axis=0)
    Y = at.eta - mean[None, :]
    whitened = plain = likelihood.whiten(mean, x, y, mask)
    count = count_of(y, mask)
    if whitened.trust is None:
        r = whitened.residual[None, :] - matmul(Y, whitened.whitener.T)
        return _EnsembleUpdateInputs(Y, whitened.whitener, r, whitened, whitened, whitened, count)
    plain = likelihood.plain.whiten(mean, x, y, mask)
    B, r = _member_trust(likelihood, x, y, mask, at.eta, Y)
    one, r_mean = _member_trust(likelihood, x, y, mask, mean[None, :], jnp.zeros_like(Y[:1]))
    return _EnsembleUpdateInputs(Y, B, r, whitened, Whitened(one[0], r_mean[0]), plain, count)


def _member_trust(
    likelihood: Any,
    x: Array | None,
    y: Float[Array, " W"],
    mask: Mask,
    eta: Float[Array, "S O"],
    Y: Float[Array, "S O"],
) -> tuple[Float[Array, "S O O"], Float[Array, "S O"]]:
    r"""Whitener and whitened residual of each member, with its trust in each component of y.

    The trust of a component is computed as if the others were missing, so that one bad sensor does not affect the good
    ones. Trust w adds independent noise to it, $R + \mathrm{diag}(R)(1/w^2 - 1)$, so that trust 0 is the same as
    missing. A class label has one component.
    """
    O = eta.shape[1]
    observed = jnp.ones(y.shape, bool) if mask is None else mask
    alone = jnp.eye(y.size, dtype=bool) & observed[None, :]

    def trusts(point: Array) -> Array:
        w = jax.vmap(lambda only: likelihood.whiten(point, x, y, only).trust)(alone)
        return jnp.broadcast_to(jnp.where(observed, w, 0.0), (O,))

    W = jax.vmap(trusts)(eta)
    if likelihood.has_covariance:
        return jax.vmap(lambda w, point: _noisier(likelihood.covariance(x, point), w, y - point))(W, eta)
    plain = likelihood.plain.whiten(jnp.mean(eta, axis=0), x, y, mask)
    return plain.whitener[None] * W[:, None, :], jnp.where(
        W > 0.0, W * (plain.residual[None, :] - Y @ plain.whitener.T), 0.0
    )


def _noisier(R: Array, w: Array, gap: Array) -> tuple[Array, Array]:
    """Root of the noise with less trust, without a division by it: W⁻¹ N W⁻¹ with N = W R W + diag(R)(I - W²)."""
    v = jnp.minimum(w, 1.0)
    N = v[:, None] * R * v[None, :] + jnp.diag(jnp.diagonal(R) * (1.0 - v) * (1.0 + v))
    L = factor(N)
    scaled = jnp.where(w > 0.0, w * jnp.where(w > 0.0, gap, 0.0), 0.0)
    return L.solve(jnp.diag(w)), L.solve(scaled)


def _innovation_root(U: Float[Array, "S O"]) -> Float[Array, "O O"]:
    """L with L Lᵀ = I + Uᵀ U / (S - 1), without forming the product."""
    eye = jnp.eye(U.shape[1], dtype=U.dtype)
    return triangular_root(jnp.concatenate([eye, U.T / _degrees(U)], axis=1))


def _perturbed(
    key: Key[Array, ""],
    A: Float[Array, "S D"],
    Y: Float[Array, "S O"],
    B: Array,
    r: Float[Array, "S O"],
    rho: Float[Array, "O D"] | None = None,
) -> Float[Array, "S D"]:
    r"""Compute the move of each member, gain times $r_s - e_s$ with $e_s \sim N(0, I)$.

    B is (O, O), or (S, O, O) for each member.

    The mean of the random noise is subtracted, so that the mean moves as without it. `rho` multiplies the gain element
    by element; to localise the covariance alone would leave the gain unbounded.
    """
    e = jax.random.normal(key, r.shape, r.dtype)
    gap = r - (e - jnp.mean(e, axis=0, keepdims=True))
    C = matmul(Y.T, A) / (Y.shape[0] - 1)
    if B.ndim == 2:
        return _moves(_innovation_root(matmul(Y, B.T)), B, gap, C, rho)
    K = triangular_root(Y.T / _degrees(Y))
    eye = jnp.eye(Y.shape[1], dtype=Y.dtype)

    def one(B: Array, gap: Array) -> Array:
        return _moves(triangular_root(jnp.concatenate([eye, matmul(B, K)], axis=1)), B, gap[None, :], C, rho)[0]

    return jax.vmap(one)(B, gap)


def _moves(L: Array, B: Array, gap: Float[Array, "N O"], C: Float[Array, "O D"], rho: Array | None) -> Array:
    """Gain times gap, (N, D); the gain itself is formed only to be localised."""
    if rho is None:
        return matmul(_solve(L, gap.T).T, matmul(B, C))
    return matmul(gap, rho * _solve(L, matmul(B, C)))


def _transformed(A: Float[Array, "S D"], U: Float[Array, "S O"], r: Float[Array, " O"]) -> Float[Array, "S D"]:
    r"""Compute the deviations after the datum, around the old mean: exactly the Kalman update of the sample moments.

    With $Z = U/\sqrt{S-1}$ the mean moves by $A^\top Z L^{-\top}L^{-1}r/\sqrt{S-1}$, and the deviations become
    $A - Z(L + I)^{-\top}L^{-1}Z^\top A$. They still sum to zero, since those of the predictions do.
    """
    Z, L = U / _degrees(U), _innovation_root(U)
    ZA = matmul(Z.T, A)
    shift = matmul(_solve(L, r[:, None]).T, ZA) / _degrees(U)
    eye = jnp.eye(L.shape[0], dtype=L.dtype)
    return shift + A - matmul(Z, solve_upper(L + eye, solve_lower(L, ZA)))


def _localised(
    A: Float[Array, "S D"], U: Float[Array, "S O"], r: Float[Array, " O"], rho: Float[Array, "O D"]
) -> Float[Array, "S D"]:
    r"""Compute the same with a transform for each parameter, in which output o has the noise $R_o/\rho_{oi}$.

    The analysis of Hunt, Kostelich and Szunyogh (2007): an output with $\rho = 0$ has no effect. Neighbours must move
    alike, so each transform is the symmetric root, the one nearest to the identity: with $Z = P\sigma V^\top$ and
    $h^2 = 1 + \sigma^2$ it is $I - P\,\sigma^2/(h(h + 1))\,P^\top$. Where $\rho$ is 1 its moments are those of
    `_transformed`. Cost: D singular value decompositions, whose derivative does not exist where two values are equal.
    """
    unit = _degrees(U)

    def one(a: Float[Array, " S"], s: Float[Array, " O"]) -> Float[Array, " S"]:
        Z = U * s[None, :] / unit
        V, size, Pt = linalg.svd(Z.T)
        h = jnp.sqrt(1.0 + size * size)
        along = matmul(Pt, a[:, None])[:, 0]
        shift = jnp.sum(size * along * matmul(V.T, (s * r)[:, None])[:, 0] / (h * h)) / unit
        return shift + a - matmul(Pt.T, (size * size / (h * (h + 1.0)) * along)[:, None])[:, 0]

    return jax.vmap(one, in_axes=1, out_axes=1)(A, jnp.sqrt(rho))


def _solve(L: Array, right: Array) -> Array:
    return solve_upper(L, solve_lower(L, right))


def _degrees(U: Array) -> Array:
    return jnp.sqrt(jnp.asarray(U.shape[0] - 1, U.dtype))


@dataclass(frozen=True)
class Taper:
    r"""The fifth-order taper of Gaspari and Cohn (1999), close to a Gaussian and exactly 0 from the radius on.

    With $z = 2|i - j|/\text{radius}$ it is $1 - \tfrac53z^2 + \tfrac58z^3 + \tfrac12z^4 - \tfrac14z^5$ for $z \le 1$,
    and $4 - 5z + \tfrac53z^2 + \tfrac58z^3 - \tfrac12z^4 + \tfrac1{12}z^5 - \tfrac2{3z}$ for $z \le 2$. It is a value:
    two of the same radius and period are equal.

    >>> gaspari_cohn(4.0)(jnp.arange(5), jnp.zeros(5)).round(3).tolist()
    [1.0, 0.685, 0.208, 0.016, 0.0]
    """

    radius: float
    period: float | None = None

    def __call__(self, i: Array, j: Array) -> Float[Array, "..."]:
        """Compute the taper of each pair of indices."""
        i, j = (jnp.asarray(index).astype(jnp.result_type(float)) for index in (i, j))
        gap = jnp.abs(i - j)
        if self.period is not None:
            gap = jnp.minimum(gap % self.period, self.period - gap % self.period)
        if self.radius == 0.0:
            return jnp.where(gap == 0.0, 1.0, 0.0)
        z = 2.0 * gap / self.radius
        far = jnp.clip(z, 1.0, 2.0)
        inner = 1.0 + z**2 * (-5 / 3 + z * (5 / 8 + z * (1 / 2 - z / 4)))
        outer = 4.0 - 2 / (3 * far) + far * (-5 + far * (5 / 3 + far * (5 / 8 + far * (-1 / 2 + far / 12))))
        return jnp.where(z <= 1.0, inner, jnp.where(z < 2.0, jnp.maximum(outer, 0.0), 0.0))


def gaspari_cohn(radius: Any, period: Any = None) -> Taper:
    """Build the taper of Gaspari and Cohn, for `localisation=` of `ensemble_kalman`.

    Args:
        radius: Distance, in indices, from which on an output has no effect: 0 is parameter j by output j alone,
            `float("inf")` no localisation.
        period: Number of parameters on a ring, where the first is the neighbour of the last.

    >>> gaspari_cohn(10.0, period=40)(jnp.asarray(0), jnp.asarray(39)).round(3).item()
    0.939
    """
    for name, value in (("radius", radius), ("period", period)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0.0):
            raise ValueError(f"gaspari_cohn({name}={value!r}) must be a number of at least 0: a distance in indices.")
    if period is not None:
        checks.positive("gaspari_cohn(period=...)", period, hint="It is the length of the ring.")
    return Taper(float(radius), None if period is None else float(period))
