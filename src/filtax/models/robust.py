r"""(M.1) WoLF, the weighted observation likelihood filter: any model, with each datum believed as far as it fits.

The log-likelihood of a datum is multiplied by w², where w = W(r) is the trust in it. In the whitened form B becomes w B
and r becomes w r, for every model and every belief. That is a noise of R/w², which is never formed: trust 0 leaves a
belief bit for bit as it was.

Forecasts and `log_evidence` stay those of the plain model. Hypotheses are weighed by a robust score, so that an outlier
does not look like a change: with Gaussian noise $N(y; \hat y, HPH^\top + R/w^2)$; for labels $w^2 p(y) + (1-w^2)/C$;
for counts and unknown noise the mixture, with the same shares, of p(y) and that Gaussian. As |y| grows the scores of
all hypotheses tend to one another, and the change probability to the hazard. Behind a gate, where the trust is 0, a
datum scores as one on the gate, without HPH': that too is the same for all hypotheses of one noise level.
`density_power` bends the density of the forecast itself, which ends at the same value for all. The pull of `huber` does
not vanish, nor does what it says about change, up to a distance where the last bit would decide: from there on all
hypotheses score alike. `tempered` is not robust at all.

Cost: that of the plain model, and the density of its forecast.
Thesis: eq:weighted-loglikelihood, prop:weighted-kf, algo:wlf-step, subsec:wlf-nonlinear-extensions (errata E20-E23).
"""

import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

from filtax._xla import no_inline
from filtax.beliefs import Conditioned
from filtax.linalg import log_normal
from filtax.models.model import Direct, Model, Whitened
from filtax.models.trust import Tempered, supplied
from filtax.module import Module
from filtax.safe import safe_log

__all__ = ["RobustLikelihood", "robust"]

TOLD_APART = 0.01  # error of a squared distance, by rounding, with which scores may still be compared


class RobustLikelihood(Module):
    """A likelihood whose data are trusted by `trust`; `unit` is the learnt noise level, where there is one.

    >>> import filtax as fx
    >>> wolf = fx.models.robust(fx.models.gaussian(1.0), trust=fx.models.imq(2.0)).likelihood
    >>> seen = wolf.whiten(jnp.zeros(1), None, jnp.full(1, 2.0), None)
    >>> seen.trust.round(3).item(), seen.residual.round(3).item()
    (0.707, 1.414)
    """

    inner: Any
    trust: Any
    unit: Any = 1.0
    learns: bool = eqx.field(static=True, default=False)

    @property
    def covariance(self) -> Callable:
        """The noise covariance, where the plain likelihood has one."""
        return self.inner.covariance

    def width(self, outputs: int) -> int:
        """As the plain likelihood."""
        return self.inner.width(outputs)

    def admits(self, y: Array, outputs: int) -> Bool[Array, " W"]:
        """As the plain likelihood, and infinity where numbers of any size are possible: it is trusted by its limit."""
        return self.inner.admits(jnp.nan_to_num(y, nan=jnp.nan), outputs)

    def predictive(self, eta: Array, spread: Array, x: Array | None, scalar: bool) -> PyTree:
        """As the plain likelihood: a good datum is what is forecast."""
        return self.inner.predictive(eta, spread, x, scalar)

    def residual(self, y: Array, mean: Array) -> Array:
        """As the plain likelihood."""
        return self.inner.residual(y, mean)

    def fixed(self, trust: Float[Array, ""]) -> "RobustLikelihood":
        """Hold the trust in the datum at hand, while a posterior relinearises: W looks at the forecast alone."""
        return RobustLikelihood(self.inner, Tempered(trust), self.unit, self.learns)

    def in_units(self, unit: Float[Array, ""]) -> "RobustLikelihood":
        """Judge residuals in units of a noise level that is being learned."""
        return RobustLikelihood(self.inner, self.trust, unit, True)

    def whiten(self, eta: Array, x: Array | None, y: Array, mask: Array | None) -> Whitened:
        """Trust, and B and r times it; a trust that is no number >= 0 gives a residual that is refused."""
        beyond = jnp.isinf(y)
        plain = self.inner.whiten(eta, x, jnp.where(beyond, 0.0, y), mask)
        r = _or_beyond(beyond, plain.residual)
        seen = r / self.unit
        if getattr(self.trust, "raw", False) and hasattr(self.inner, "covariance"):
            seen = y - eta if mask is None else jnp.where(mask, y - eta, 0.0)
        w = self._trust(r, seen)
        sound = jnp.isfinite(w) & (w >= 0.0)
        w = jnp.where(sound, w, 0.0)
        B, scaled = _weighed(w, sound, plain.whitener, r)
        return Whitened(B, scaled, self._log_scale(plain, w, y, mask), w)

    def tilted(self, eta: Array, x: Array | None, y: Array, mask: Array | None) -> Float[Array, ""]:
        """Log of what a point with prediction eta is weighed by, under a trust that says so (`density_power`)."""
        beyond = jnp.isinf(y)
        plain = self.inner.whiten(eta, x, jnp.where(beyond, 0.0, y), mask)
        peak = self._log_scale(plain, jnp.ones((), y.dtype), y, mask) - 0.5 * _count(y, mask) * math.log(2.0 * math.pi)
        square = jnp.where(jnp.any(beyond), jnp.inf, jnp.sum(jnp.square(plain.residual / self.unit)))
        return peak + self.trust.tilt(-0.5 * square)

    def trusted(self, w: Array, eta: Array, x: Array | None, y: Array, mask: Array | None) -> Float[Array, ""]:
        """Log-likelihood of a point with prediction eta, where y counts as w² of one; exactly 0 without trust.

        Gaussian noise squares w r, which is a number for an r whose own square is none.
        """
        y = jnp.where(w > 0.0, y, 0.0)
        if not hasattr(self.inner, "covariance"):
            each = self.inner.log_likelihood(eta, x, y, mask)
            return jnp.where(w > 0.0, w * w * jnp.where(w > 0.0, each, 0.0), 0.0)
        plain = self.inner.whiten(eta, x, y, mask)
        peak = plain.log_scale - 0.5 * _count(y, mask) * math.log(2.0 * math.pi)
        return jnp.where(w > 0.0, w * w * peak - 0.5 * self._felt(jnp.sum(jnp.square(w * plain.residual))), 0.0)

    def _felt(self, square: Array) -> Array:
        """A squared distance, up to where rounding decides which of two is the larger: from there on all are alike."""
        if isinstance(self.trust, Tempered):
            return square
        return jnp.minimum(square, TOLD_APART / jnp.finfo(square.dtype).eps)

    def _trust(self, r: Array, seen: Array) -> Array:
        """W at the residual; what is too far for its square to be a number is trusted by W at infinity."""
        near = jnp.all(jnp.isfinite(r) & jnp.isfinite(seen))
        w = self._ask(jnp.where(near, seen, 0.0))
        limit = jax.lax.stop_gradient(self._ask(jnp.full_like(r, jnp.inf)))
        pull = w * jnp.where(near, r, 0.0)
        return jnp.where(near & ~(jnp.isfinite(w) & jnp.isinf(jnp.sum(pull * pull))), w, limit)

    def _ask(self, r: Array) -> Array:
        w = jnp.asarray(self.trust(r))
        if w.size != 1:
            raise ValueError(
                f"robust(trust=W): W returned an array of shape {w.shape} for {r.size} outputs; it must return one "
                "number for the whole residual, such as jnp.exp(-jnp.sum(r * r))."
            )
        return w.reshape(()).astype(r.dtype)

    def _log_scale(self, plain: Whitened, w: Array, y: Array, mask: Array | None) -> Array:
        """Log |det| of the whitener of y, with the trust in it; what is rejected keeps a floor, never -inf.

        Where trust vanishes smoothly it does so in proportion to the noise, and the limit has no scale: it is the same
        for all hypotheses. A gate (`floor`) stays in units of the noise.
        """
        count, least = _count(y, mask), jnp.finfo(y.dtype).tiny
        scale = plain.log_scale
        if scale is None:  # of a natural parameter: y itself is whitened by the inverse
            rows = jnp.sqrt(jnp.sum(jnp.square(plain.whitener), axis=1))
            scale = -jnp.sum(jnp.where(rows > 0.0, jnp.log(jnp.where(rows > 0.0, rows, 1.0)), 0.0))
        scale = scale - count * jnp.log(jnp.asarray(self.unit, y.dtype))
        if hasattr(self.trust, "tilt"):  # it is what the density is relative to, whatever the trust
            return scale
        floor = scale + self.trust.floor(count) if hasattr(self.trust, "floor") else count * jnp.log(least)
        return jnp.where(w > 0.0, scale + count * jnp.log(jnp.maximum(w, least)), floor)

    def log_score(self, seen: Any, done: Conditioned, plain: Array, y: Array, mask: Array | None) -> Array:
        """What hypotheses are weighed by; `plain` is the log density of the forecast. Exactly 0 for a missing datum."""
        count = _count(y, mask)
        if hasattr(self.trust, "tilt"):
            peak = seen.log_scale - 0.5 * count * math.log(2.0 * math.pi)
            return jnp.where(count > 0, peak + self.trust.tilt(plain - peak), 0.0)
        flat = getattr(self.inner, "log_flat", None)
        z = done.innovation / self.unit
        wide = log_normal(jnp.zeros_like(z), done.log_det, count) - 0.5 * self._felt(jnp.sum(z * z)) + seen.log_scale
        score = wide if flat is None else flat(count, seen.residual.size)
        if flat is not None or self.learns or not hasattr(self.inner, "covariance"):
            share = jnp.square(jnp.minimum(seen.trust, 1.0))
            score = jnp.logaddexp(safe_log(share) + plain, safe_log(1.0 - share) + score)
        return jnp.where(count > 0, score, 0.0)


def robust(model: Any, trust: Any) -> Model:
    """Make a model robust: data that do not fit are trusted less (WoLF).

    Args:
        model: A model, or a bare likelihood (a model of theta itself).
        trust: `imq(c)`, `mahalanobis(c)`, `threshold(c)`, `huber(c)`, `density_power(beta)`, `tempered(w)`, or your own
            function W(r) -> w of the whitened residual (O,), written with jax.numpy; it is asked at infinity
            too. What is not a number at least 0 is taken as 0, and the datum is refused.

    Returns:
        The model, for `filtax.method(..., model=...)`; its `Info.trust` is w.

    >>> import filtax as fx
    >>> wolf = fx.method("LG+C-Static", model=robust(fx.models.linear(noise=1.0), trust=fx.models.mahalanobis(3.0)))
    >>> state, info = wolf.step(wolf.init(mean=jnp.zeros(1), cov=1.0), jnp.ones(1), 1e30)
    >>> wolf.belief(state).mean.item() < 1e-20, wolf.name
    (True, 'WoLF-MD(c=3.0)+C-Static')
    """
    model = model if hasattr(model, "predictor") else Model(Direct(), model)
    if not hasattr(model.likelihood, "whiten"):
        given = type(model.likelihood).__name__
        raise ValueError(f"robust(model=...) must come from filtax.models, such as linear(noise=0.1), got {given}.")
    if isinstance(model.likelihood, RobustLikelihood):
        raise ValueError("robust(model=...): this model is robust already; give the plain one, and one trust.")
    if not getattr(model.likelihood, "normalised", True):
        raise ValueError(
            "robust(model=...): a loss is robust by its own shape; give a bounded one, such as 1 - exp(-e²)."
        )
    if hasattr(trust, "tilt") and not hasattr(model.likelihood, "covariance"):
        given = type(model.likelihood).__name__
        raise ValueError(f"robust(trust=density_power(...)) needs Gaussian noise, got {given}; use mahalanobis(c).")
    return Model(model.predictor, RobustLikelihood(model.likelihood, supplied(trust)))


@no_inline
def _or_beyond(beyond: Array, r: Array) -> Array:
    """The residual, or infinity where y or the residual is too far to be a number."""
    return jnp.where(jnp.any(beyond) | ~jnp.all(jnp.isfinite(r)), jnp.inf, r)


@no_inline
def _weighed(w: Array, sound: Array, B: Array, r: Array) -> tuple[Array, Array]:
    """Whitener and residual times the trust; a trust that was no number leaves a residual that is none."""
    return jnp.where(w > 0.0, w * B, 0.0), jnp.where(w > 0.0, w * r, jnp.where(sound, 0.0, jnp.nan))


def _count(y: Array, mask: Array | None) -> Array:
    return jnp.asarray(y.size if mask is None else jnp.sum(mask), y.dtype)
