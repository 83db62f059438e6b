r"""(A.1) What posteriors share that revise the noise of a datum while they learn from it.

They alternate between q(theta), the prior conditioned on the datum with the noise as it is believed by now, and the
belief about that noise, which asks q(theta) for the expected square of the whitened residual,
$$E_q[\epsilon\epsilon^\top] = (r - s)(r - s)^\top + BJ\Sigma'J^\top B^\top, \qquad s = BJ(\mu' - \mu).$$
h is linearised once, at the mean of the prior. In a form that conditions exactly both follow from the covariance of
the forecast before the datum, $BJ\Sigma J^\top B^\top = KK^\top$, so that an iteration costs O(O³) and no pass over
the belief: with $I + K^\top C^\top CK = LL^\top$ the covariance after it is $KL^{-\top}L^{-1}K^\top$. A form that drops
correlations is conditioned anew each time. The revised noise is $B^{-1}(C^\top C)^{-1}B^{-\top}$ and is never
formed: C B takes the place of the whitener B, so that C = 0 leaves the belief bit for bit as it was.

Axes: D parameters, O outputs; what is missing has rows of zeros.
"""

import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

from filtax import checks
from filtax.beliefs import Covariance, Pending, Precision, SquareRoot
from filtax.factor import factor
from filtax.linalg import log_normal, matmul, psd_root, trace, triangular_root
from filtax.models import Model, Whitened
from filtax.module import Module
from filtax.posteriors.extended import DENSE, FORMS, Extended, absorb, check_form, gaussian_belief
from filtax.protocols import Posterior, Update
from filtax.safe import safe_sqrt

__all__ = ["Datum", "Reweighing", "Site", "look", "revised"]

EXACT = (Covariance, Pending, Precision, SquareRoot)  # forms in which a datum loses nothing
UNROLLED = 8  # so many iterations are written out: a loop within a loop is one that XLA does not compile whole


class Reweighing(Posterior):
    """What such posteriors are besides their law of the noise: beliefs and forecasts are those of `Extended`.

    >>> Reweighing.needs_covariance
    True
    """

    form: eqx.AbstractVar[str]
    name: eqx.AbstractClassVar[str]
    families = DENSE
    needs_covariance = True
    weighs_data = True

    def check_settings(self, iterations: Any) -> None:
        """Refuse a number of iterations, or a form, that there is not."""
        checks.whole(f"{self.name}(iterations=...)", iterations, least=1, most=checks.REPEATS)
        if self.form not in ("auto", *FORMS):
            raise ValueError(f"{self.name}(form={self.form!r}) must be one of auto, {', '.join(FORMS)}.")

    def check_start(self, mean: Array, cov: Array) -> None:
        """Refuse what the chosen form cannot hold."""
        check_form(self.form, cov)

    def start(self, mean: Float[Array, " D"], cov: Array, has_dynamics: bool) -> PyTree:
        """Initial belief in the chosen form."""
        return gaussian_belief(self.form, mean, cov, has_dynamics)

    def forecast(self, belief: PyTree, model: Model, x: Array | None, aux: PyTree, plugin: bool = False) -> PyTree:
        """Predictive of y as the extended filter makes it: of a datum with the noise given."""
        return Extended().forecast(belief, model, x, aux, plugin)


class Site(Module):
    """What has been settled about the noise of a datum: C, C r, log |C| over what was observed, and the trust."""

    scale: Float[Array, "O O"]
    residual: Float[Array, " O"]
    log_scale: Float[Array, ""]
    trust: Float[Array, ""]


class Datum(Module):
    """A datum beside the belief before it: whitened with the plain noise, finite, and flagged where it was not."""

    prior: PyTree
    rows: Float[Array, "O D"]
    whitener: Float[Array, "O O"]
    residual: Float[Array, " O"]
    log_scale: Float[Array, ""]
    observed: Bool[Array, " O"]
    far: Bool[Array, ""]
    lost: Bool[Array, ""]
    root: Float[Array, "O O"] | None

    @property
    def count(self) -> Float[Array, ""]:
        """How many outputs were observed."""
        return jnp.sum(self.observed.astype(self.residual.dtype))

    def fit(self, site: Site) -> tuple[Float[Array, " O"], Float[Array, "O O"]]:
        """Condition on a site; how far that moves the whitened forecast, and its covariance afterwards."""
        if self.root is not None:
            CK = matmul(site.scale, self.root)
            half = factor(jnp.eye(len(CK), dtype=CK.dtype) + matmul(CK.T, CK)).solve(self.root.T)
            pull = matmul(half, matmul(site.scale.T, site.residual[:, None]))
            return matmul(half.T, pull)[:, 0], matmul(half.T, half)
        q = self.prior.condition(self.rows, site.scale, site.residual).belief
        return matmul(self.rows, (q.mean - self.prior.mean)[:, None])[:, 0], q.project_cov(self.rows)

    def scaled(self, w: Float[Array, ""]) -> Site:
        """The site of a datum whose precision is multiplied by w."""
        root = safe_sqrt(w)
        log_root = 0.5 * self.count * jnp.log(jnp.where(w > 0.0, w, 1.0))
        return Site(root * jnp.eye(self.residual.size, dtype=w.dtype), root * self.residual, log_root, w)

    def square(self, w: Float[Array, ""]) -> Float[Array, ""]:
        """Expected square of the whitened residual, once the belief has been conditioned on it with precision w."""
        shift, spread = self.fit(self.scaled(w))
        return jnp.sum(jnp.square(self.residual - shift)) + trace(spread)

    def absorb(
        self,
        model: Model,
        x: Array | None,
        y: Array,
        mask: Array | None,
        aux: PyTree,
        site: Site,
        share: Float[Array, ""] | None = None,
    ) -> Update:
        """Condition on the datum as `site` weighs it.

        What is too far for a number says nothing; what is no number is refused. `share` is the probability of a good
        datum, where outliers have a density of their own.
        """
        taken = ~self.far & (site.trust > 0.0)
        B = jnp.where(taken, matmul(site.scale, self.whitener), 0.0)
        r = jnp.where(self.lost, jnp.nan, jnp.where(taken, site.residual, 0.0))
        least = self.count * jnp.log(jnp.finfo(r.dtype).tiny)
        log_scale = jnp.where(taken, self.log_scale + site.log_scale, least)
        trust = jnp.where(self.count > 0, jnp.where(taken, site.trust, 0.0), 1.0)
        seen = Whitened(B, r, log_scale, trust)
        flat = self.log_scale - 0.5 * math.log(2.0 * math.pi) * self.count
        at = model.linearise(self.prior.mean, x, aux)
        forecast = Extended().forecast(self.prior, model, x, aux)
        model = Model(model.predictor, _Reweighed(seen, log_scale, flat, self.count, share))
        return absorb(self.prior, model, x, y, mask, at, forecast, log_normal)


class _Reweighed(Module):
    """The likelihood of one datum whose weight has been settled."""

    seen: Whitened
    log_scale: Float[Array, ""]
    flat: Float[Array, ""]
    count: Float[Array, ""]
    share: Float[Array, ""] | None

    def whiten(self, *_: Array | None) -> Whitened:
        return self.seen

    def log_score(self, _seen: Whitened, done: PyTree, plain: Array, *_: Array | None) -> Array:
        """What hypotheses are weighed by, so that an outlier does not look like a change."""
        if self.share is None:
            score = log_normal(done.innovation, done.log_det, self.count) + self.log_scale
        else:
            score = jnp.logaddexp(jnp.log(self.share) + plain, jnp.log1p(-self.share) + self.flat)
        return jnp.where(self.count > 0, score, 0.0)


def look(belief: PyTree, model: Model, x: Array | None, y: Array, mask: Bool[Array, " O"] | None, aux: PyTree) -> Datum:
    """Whiten a datum with the plain noise.

    >>> from filtax.beliefs import SquareRoot
    >>> from filtax.models import linear
    >>> belief = SquareRoot.start(jnp.zeros(1), jnp.ones(1))
    >>> datum = look(belief, linear(noise=0.25), jnp.ones(1), jnp.ones(1), None, None)
    >>> shift, spread = datum.fit(datum.scaled(jnp.ones(())))
    >>> round(shift.item(), 3), round(spread.item(), 3)
    (1.6, 0.8)
    """
    at = model.linearise(belief.mean, x, aux)
    seen = model.likelihood.whiten(at.eta, x, y, mask)
    B, r = seen.whitener, seen.residual
    rows = matmul(B, at.jacobian)
    lost = jnp.any(jnp.isnan(r)) | ~jnp.all(jnp.isfinite(B)) | ~jnp.all(jnp.isfinite(rows))
    far = jnp.any(jnp.isinf(r))
    rows, B, r = jnp.where(lost, 0.0, rows), jnp.where(lost, 0.0, B), jnp.where(lost | far, 0.0, r)
    observed = jnp.ones(r.shape, bool) if mask is None else mask
    root = None
    if isinstance(belief, EXACT):
        root = _root(belief, rows)
    return Datum(belief, rows, B, r, jnp.asarray(seen.log_scale), observed, far, lost, root)


def _root(belief: PyTree, rows: Float[Array, "O D"]) -> Float[Array, "O O"]:
    """K with K Kᵀ the covariance that the belief gives to rows theta; a root is not squared for it."""
    if isinstance(belief, SquareRoot):
        wide = matmul(rows, belief.root)
        return triangular_root(jnp.where(jnp.isfinite(jnp.sum(wide * wide)), wide, 0.0))
    spread = belief.project_cov(rows)
    return psd_root(jnp.where(jnp.isfinite(trace(spread)), spread, 0.0))


def revised(revise: Callable[[Any], Any], first: PyTree, iterations: int) -> PyTree:
    """Apply a revision of the noise so many times.

    >>> revised(lambda w: 0.5 * w, jnp.ones(()), 3).item()
    0.125
    """
    if iterations > UNROLLED:
        return jax.lax.scan(lambda carry, _: (revise(carry), None), first, length=iterations)[0]
    for _ in range(iterations):
        first = revise(first)
    return first
