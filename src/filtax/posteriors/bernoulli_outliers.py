r"""(A.1) Detect and reject: each datum is an outlier or not, and what is learned is that too (KF-B, EKF-B).

The filter of Wang, Li, Fang and Wang (2018), a baseline of the thesis. An indicator z says whether a datum is good:
$$p(y \mid \theta, z) \propto N(y; h(\theta), R)^z, \qquad z \sim \mathrm{Bern}(\pi), \qquad
\pi \sim \mathrm{Beta}(a, b).$$
With $q(\theta)\,q(z)\,q(\pi)$ and the weight $w = E[z]$, one iteration takes
$$q(\theta) \propto \pi_t(\theta)\,N(y; h(\theta), R/w), \qquad q(\pi) = \mathrm{Beta}(a + w, b + 1 - w),$$
$$\operatorname{logit} w \leftarrow \psi(a + w) - \psi(b + 1 - w)
  - \tfrac12 E_q[(y - h(\theta))^\top R^{-1}(y - h(\theta))],$$
from w = 1. The expectation holds the uncertainty $HPH^\top$ of theta, and the prior of the probability is counted once,
however many the iterations. An outlier has the constant density $|2\pi R|^{-1/2}$, so that no unit of y matters.

Forecast and evidence are those of the plain model. Hypotheses are weighed by the evidence of the mixture,
$\frac{a}{a+b}p(y) + \frac{b}{a+b}|2\pi R|^{-1/2}$, which an outlier of any size leaves alike.

Cost: one conditioning and O(O³) for each iteration; a form without correlations is conditioned each time.
Thesis: sec:experiments-robustness, tab:complexity-linear-model.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.special import digamma
from jaxtyping import Array, Bool, Float, Key, PyTree

from filtax import checks
from filtax.models import Model
from filtax.posteriors.reweighing import Datum, Reweighing, look, revised
from filtax.protocols import Update

__all__ = ["BernoulliOutliers"]


class BernoulliOutliers(Reweighing):
    """The Kalman filter that rejects outliers (KF-B); extended where h is not linear (EKF-B).

    Attributes:
        a: Of the Beta prior of the probability that a datum is good.
        b: Of the same; the prior expects b / (a + b) outliers.
        iterations: How often the weight of a datum is revised.
        tolerance: A datum of less weight is dropped: the belief stays as it is, bit for bit.
        form: Of the belief, as for `Extended`.

    >>> import filtax as fx
    >>> method = fx.method("OB+C-Static", model=fx.models.linear(noise=1.0))
    >>> state = method.init(mean=jnp.zeros(1), cov=1.0)
    >>> [round(method.step(state, jnp.ones(1), y)[1].trust.item(), 3) for y in (1.0, 8.0, 100.0)]
    [1.0, 0.0, 0.0]
    """

    a: Any = 0.9
    b: Any = 0.1
    iterations: Any = eqx.field(static=True, default=4)
    tolerance: Any = 1e-6
    form: str = eqx.field(static=True, default="auto")
    name = "OB"
    shown = {"a": 0.9, "b": 0.1, "iterations": 4, "tolerance": 1e-6, "form": "auto"}  # noqa: RUF012

    def __check_init__(self) -> None:
        hint = "a and b are worth that many good and bad data seen before."
        checks.positive("OB(a=...)", self.a, hint=hint)
        checks.positive("OB(b=...)", self.b, hint=hint)
        checks.share("OB(tolerance=...)", self.tolerance, hint="It is the weight below which a datum is dropped.")
        self.check_settings(self.iterations)

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
        """Condition on y as far as it is good; `trust` is the probability of that."""
        datum = look(belief, model, x, y, mask, aux)
        w = self._weight(datum)
        share = jnp.asarray(self.a / (self.a + self.b), w.dtype)
        return datum.absorb(model, x, y, mask, aux, datum.scaled(w), share)

    def _weight(self, datum: Datum) -> Float[Array, ""]:
        dtype = datum.residual.dtype
        a, b = jnp.asarray(self.a, dtype), jnp.asarray(self.b, dtype)

        def revise(w: Array) -> Array:
            square = datum.square(w)
            near = jnp.isfinite(square)
            odds = digamma(a + w) - digamma(b + 1.0 - w) - 0.5 * jnp.where(near, square, 0.0)
            return jnp.where(near, jax.nn.sigmoid(odds), 0.0)

        w = revised(revise, jnp.ones((), dtype), self.iterations)
        return jnp.where(w < jnp.asarray(self.tolerance, dtype), 0.0, w)
