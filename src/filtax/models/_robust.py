r"""(M.1) WoLF, the weighted observation likelihood filter: any model, with less trust in data that do not fit.

The log-likelihood of a datum is multiplied by w², where w = W(r) is the trust in it. In the whitened form B becomes w B
and r becomes w r, for every model and every belief. That is a noise of R/w², which is never formed: trust 0 leaves a
belief bit for bit as it was.

Forecasts and `log_evidence` stay those of the plain model. Hypotheses are weighed by a robust score, so that an outlier
does not look like a change: with Gaussian noise $N(y; \hat y, HPH^\top + R/w^2)$; for labels $w^2 p(y) + (1-w^2)/C$;
for counts and unknown noise the mixture, with the same weights, of p(y) and that Gaussian. As |y| grows the scores of
all hypotheses tend to each other, and the change probability to the hazard. A datum rejected by a gate scores as one on
the gate, without HPH'. `density_power` replaces the density of the forecast itself. The pull of `huber` does not
vanish, nor does its effect on the change probability, up to a distance where rounding would decide: from there on all
hypotheses score alike. `tempered` is not robust.

`temper` raises the likelihood of a datum to a power v, $p(y \mid \theta, x)^v$: B and r are multiplied by $\sqrt v$.
The prior Sub uses it for a datum that belongs to the regime with probability v, and the responsibilities of switching
models for a datum that several experts share.

Cost: that of the plain model, and the density of its forecast.
Thesis: eq:weighted-loglikelihood, prop:weighted-kf, algo:wlf-step, subsec:wlf-nonlinear-extensions (errata E20-E23).
"""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

from filtax._xla import no_inline
from filtax.beliefs import Conditioned
from filtax.linalg import log_normal, matmul, trace
from filtax.models._generalised_bayes import DensityPower
from filtax.models._model import Direct, Likelihood, Model, Whitened
from filtax.models._trust import Scaled, Tempered, Trust, supplied
from filtax.numerics import safe_log
from filtax.protocols import static

COMPARABLE = 0.01  # rounding error of a squared distance up to which scores are compared


class RobustLikelihood(Likelihood):
    """A likelihood whose data are weighted by `trust`; `unit` is the noise level where it is being learned."""

    inner: Any
    trust: Trust
    unit: Any = 1.0
    learns: bool = static(default=False)

    @property
    def plain(self) -> Likelihood:
        """The likelihood without the trust."""
        return self.inner

    @property
    def has_covariance(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """As the plain likelihood."""
        return self.inner.has_covariance

    @property
    def covariance(self) -> Callable:
        """The noise covariance, where the plain likelihood has one."""
        return self.inner.covariance

    def width(self, outputs: int) -> int:
        """As the plain likelihood."""
        return self.inner.width(outputs)

    def admits(self, y: Array, outputs: int) -> Bool[Array, " W"]:
        """As the plain likelihood, and infinity where it admits numbers of any size: its trust is the limit of W."""
        return self.inner.admits(jnp.nan_to_num(y, nan=jnp.nan), outputs)

    def predictive(self, eta: Array, spread: Array, x: Array | None, scalar: bool) -> PyTree:
        """As the plain likelihood: forecasts are for data that fit."""
        return self.inner.predictive(eta, spread, x, scalar)

    def residual(self, y: Array, mean: Array) -> Array:
        """As the plain likelihood."""
        return self.inner.residual(y, mean)

    def fixed(self, trust: Float[Array, ""]) -> "RobustLikelihood":
        """The same with a given trust in the datum, for posteriors that relinearise: W is computed at the forecast."""
        return RobustLikelihood(self.inner, Tempered(trust), self.unit, self.learns)

    def in_units(self, unit: Float[Array, ""]) -> "RobustLikelihood":
        """The same with residuals in units of a noise level that is being learned."""
        return RobustLikelihood(self.inner, self.trust, unit, True)

    def whiten(self, eta: Array, x: Array | None, y: Array, mask: Array | None) -> Whitened:
        """B and r times the trust; a trust that is not a number >= 0 gives a residual of NaN, which is refused."""
        beyond = jnp.isinf(y)
        plain = self.inner.whiten(eta, x, jnp.where(beyond, 0.0, y), mask)
        r = _or_infinite(beyond, plain.residual)
        distance = r / self.unit
        if self.trust.raw and self.has_covariance:
            distance = y - eta if mask is None else jnp.where(mask, y - eta, 0.0)
        w = self._trust(r, distance)
        sound = jnp.isfinite(w) & (w >= 0.0)
        w = jnp.where(sound, w, 0.0)
        B, scaled = _weighed(w, sound, plain.whitener, r)
        return Whitened(B, scaled, self._log_scale(plain, w, y, mask), w)

    def tilted(self, eta: Array, x: Array | None, y: Array, mask: Array | None) -> Float[Array, ""]:
        """Log weight of a point with prediction eta under `density_power`."""
        beyond = jnp.isinf(y)
        plain = self.inner.whiten(eta, x, jnp.where(beyond, 0.0, y), mask)
        peak = self._log_scale(plain, jnp.ones((), y.dtype), y, mask) - 0.5 * _count(y, mask) * math.log(2.0 * math.pi)
        square = jnp.where(jnp.any(beyond), jnp.inf, jnp.sum(jnp.square(plain.residual / self.unit)))
        assert isinstance(self.trust, DensityPower)
        return peak + self.trust.tilt(-0.5 * square)

    def trusted(self, w: Array, eta: Array, x: Array | None, y: Array, mask: Array | None) -> Float[Array, ""]:
        """Log-likelihood of a point with prediction eta, where y counts as w² of one; exactly 0 without trust.

        Under Gaussian noise w r is squared, which is finite where the square of r overflows.
        """
        y = jnp.where(w > 0.0, y, 0.0)
        if not self.has_covariance:
            each = self.inner.log_likelihood(eta, x, y, mask)
            return jnp.where(w > 0.0, w * w * jnp.where(w > 0.0, each, 0.0), 0.0)
        plain = self.inner.whiten(eta, x, y, mask)
        peak = plain.log_scale - 0.5 * _count(y, mask) * math.log(2.0 * math.pi)
        return jnp.where(w > 0.0, w * w * peak - 0.5 * self._capped(jnp.sum(jnp.square(w * plain.residual))), 0.0)

    def _capped(self, square: Array) -> Array:
        """A squared distance, at most the one from which rounding decides which of two is the larger."""
        if isinstance(self.trust, Tempered):
            return square
        return jnp.minimum(square, COMPARABLE / jnp.finfo(square.dtype).eps)

    def _trust(self, r: Array, distance: Array) -> Array:
        """W of the distance, or at infinity if the pull of the datum overflows."""
        near = jnp.all(jnp.isfinite(r) & jnp.isfinite(distance))
        w = self._weight(jnp.where(near, distance, 0.0))
        limit = jax.lax.stop_gradient(self._weight(jnp.full_like(r, jnp.inf)))
        pull = w * jnp.where(near, r, 0.0)
        return jnp.where(near & ~(jnp.isfinite(w) & jnp.isinf(jnp.sum(pull * pull))), w, limit)

    def _weight(self, r: Array) -> Array:
        w = jnp.asarray(self.trust(r))
        if w.size != 1:
            raise ValueError(
                f"robust(trust=W): W returned an array of shape {w.shape} for {r.size} outputs; it must return one "
                "number for the whole residual, such as jnp.exp(-jnp.sum(r * r))."
            )
        return w.reshape(()).astype(r.dtype)

    def _log_scale(self, plain: Whitened, w: Array, y: Array, mask: Array | None) -> Array:
        """Log |det| of the whitener of y times the trust; a rejected datum has a floor, so that it is never -inf.

        A smooth trust that tends to 0 removes the scale of the noise, and the limit is the same for all hypotheses. The
        floor of a gate keeps the unit of the noise.
        """
        count, least = _count(y, mask), jnp.finfo(y.dtype).tiny
        scale = plain.log_scale
        if scale is None:  # B whitens the natural parameter; y itself is whitened by the inverse
            rows = jnp.sqrt(jnp.sum(jnp.square(plain.whitener), axis=1))
            scale = -jnp.sum(jnp.where(rows > 0.0, jnp.log(jnp.where(rows > 0.0, rows, 1.0)), 0.0))
        scale = scale - count * jnp.log(jnp.asarray(self.unit, y.dtype))
        if isinstance(self.trust, DensityPower):  # the peak that the density is relative to, whatever the trust
            return scale
        gate = self.trust.floor(count)
        floor = count * jnp.log(least) if gate is None else scale + gate
        return jnp.where(w > 0.0, scale + count * jnp.log(jnp.maximum(w, least)), floor)

    def log_score(self, whitened: Any, conditioned: Conditioned, plain: Array, y: Array, mask: Array | None) -> Array:
        """Score of a hypothesis whose forecast has log density `plain` at y; exactly 0 for a missing datum."""
        count = _count(y, mask)
        if isinstance(self.trust, DensityPower):
            peak = whitened.log_scale - 0.5 * count * math.log(2.0 * math.pi)
            return jnp.where(count > 0, peak + self.trust.tilt(plain - peak), 0.0)
        flat = self.inner.log_flat(count, whitened.residual.size)
        z = conditioned.innovation / self.unit
        wide = (
            log_normal(jnp.zeros_like(z), conditioned.log_det, count)
            - 0.5 * self._capped(jnp.sum(z * z))
            + whitened.log_scale
        )
        score = wide if flat is None else flat
        if flat is not None or self.learns or not self.has_covariance:
            share = jnp.square(jnp.minimum(whitened.trust, 1.0))
            score = jnp.logaddexp(safe_log(share) + plain, safe_log(1.0 - share) + score)
        return jnp.where(count > 0, score, 0.0)


def robust(model: Any, trust: Any) -> Model:
    """Make a model robust: data that do not fit are trusted less (WoLF).

    Args:
        model: A model, or a bare likelihood (a model of theta itself).
        trust: `imq(c)`, `mahalanobis(c)`, `threshold(c)`, `huber(c)`, `density_power(beta)`, `tempered(w)`, or your own
            function W(r) -> w of the whitened residual (O,), written with jax.numpy and defined at infinity too.
            Missing outputs are given to it as 0. If w, the `Info.trust`, is not a number of at least 0, the datum is
            refused.

    >>> import filtax as fx
    >>> wolf = fx.method("LG+C-Static", model=robust(fx.models.linear(noise=1.0), trust=fx.models.mahalanobis(3.0)))
    >>> state, info = wolf.step(wolf.init(mean=jnp.zeros(1), cov=1.0), jnp.ones(1), 1e30)
    >>> wolf.belief(state).mean.item() < 1e-20, wolf.name
    (True, 'WoLF-MD(c=3.0)+C-Static')
    """
    model = model if isinstance(model, Model) else Model(Direct(), model)
    if not isinstance(model.likelihood, Likelihood):
        given = type(model.likelihood).__name__
        raise ValueError(f"robust(model=...) must come from filtax.models, such as linear(noise=0.1), got {given}.")
    if isinstance(model.likelihood, RobustLikelihood):
        raise ValueError("robust(model=...): this model is robust already; give the plain one, and one trust.")
    if not model.likelihood.normalised:
        raise ValueError(
            "robust(model=...): a loss is robust by its own shape; give a bounded one, such as 1 - exp(-e²)."
        )
    if isinstance(trust, DensityPower) and not model.likelihood.has_covariance:
        given = type(model.likelihood).__name__
        raise ValueError(f"robust(trust=density_power(...)) needs Gaussian noise, got {given}; use mahalanobis(c).")
    return Model(model.predictor, RobustLikelihood(model.likelihood, supplied(trust)))


def temper(model: Model, power: Float[Array, ""]) -> Model:
    """A model in which a datum counts as `power` of one, at least 0; a robust model keeps its trust as well.

    >>> from filtax.models import linear
    >>> half = temper(linear(noise=1.0), jnp.asarray(0.25))
    >>> half.likelihood.whiten(jnp.zeros(1), None, jnp.ones(1), None).residual.item()
    0.5
    """
    w, likelihood = jnp.sqrt(power), model.likelihood
    if not isinstance(likelihood, RobustLikelihood):
        return Model(model.predictor, RobustLikelihood(likelihood, Tempered(w)))
    scaled = RobustLikelihood(likelihood.inner, Scaled(likelihood.trust, w), likelihood.unit, likelihood.learns)
    return Model(model.predictor, scaled)


def expected_log_likelihood(
    model: Model, belief: PyTree, x: Array | None, y: Array, mask: Array | None, aux: PyTree
) -> Float[Array, ""]:
    r"""Mean of $\log p(y \mid \theta, x)$ under a belief: exact for a linear model with Gaussian noise.

    $\log p(y \mid \mu, x) - \tfrac12 \mathrm{tr}(B J P J^\top B^\top)$, with the curvature of the whitened datum.

    >>> from filtax.beliefs import Covariance
    >>> from filtax.models import linear
    >>> at = Covariance.start(jnp.zeros(1), jnp.ones(1))
    >>> round(expected_log_likelihood(linear(noise=1.0), at, jnp.ones(1), jnp.zeros(1), None, None).item(), 4)
    -1.4189
    """
    likelihood = model.likelihood.plain
    at = model.linearise(belief.mean, x, aux)
    observed = jnp.ones(y.shape, bool) if mask is None else mask
    B = likelihood.whiten(at.eta, x, y, observed).whitener
    value = likelihood.log_likelihood(at.eta, x, y, observed) - 0.5 * trace(
        matmul(matmul(B, belief.project_cov(at.jacobian)), B.T)
    )
    return jnp.where(jnp.any(observed), value, 0.0)


@no_inline
def _or_infinite(beyond: Array, r: Array) -> Array:
    """The residual; all of it is infinite if y, or an entry of the residual, is."""
    return jnp.where(jnp.any(beyond) | ~jnp.all(jnp.isfinite(r)), jnp.inf, r)


@no_inline
def _weighed(w: Array, sound: Array, B: Array, r: Array) -> tuple[Array, Array]:
    """Whitener and residual times the trust; NaN if the trust is not sound."""
    return jnp.where(w > 0.0, w * B, 0.0), jnp.where(w > 0.0, w * r, jnp.where(sound, 0.0, jnp.nan))


def _count(y: Array, mask: Array | None) -> Array:
    return jnp.asarray(y.size if mask is None else jnp.sum(mask), y.dtype)
