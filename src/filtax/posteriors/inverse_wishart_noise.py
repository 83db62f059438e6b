r"""(A.1) Compensate: each datum has a noise covariance of its own, with an inverse-Wishart prior (KF-IW, EKF-IW).

The filter of Agamennoni, Nieto and Nebot (2012), a baseline of the thesis:
$$y \mid \theta, R_t \sim N(h(\theta), R_t), \qquad R_t^{-1} \sim \mathrm{Wishart}(R^{-1}/s,\, s).$$
With $q(\theta)\,q(R_t)$ and $\Lambda = E[R_t^{-1}]^{-1}$, one iteration takes
$$\Lambda \leftarrow \frac{sR + E_q[(y - h(\theta))(y - h(\theta))^\top]}{s + 1}, \qquad
q(\theta) \propto \pi_t(\theta)\,N(y; h(\theta), \Lambda),$$
with the outer product, which for several outputs discounts the direction of the error and no other, and with the
uncertainty $HPH^\top$ of theta. The first residual e is that of the plain update, $\Lambda = R$, along that of the
forecast, $e \leftarrow e_0\,(e_0^\top R^{-1}e)/(e_0^\top R^{-1}e_0)$: in its own direction the pull of an outlier with
several outputs would grow with its size, whatever the number of iterations; from the forecast a vague belief would
learn little. The prior is proper for s > O - 1; the equations hold for every s > 0. A missing output is one that is not
there.

In whitened units $\Lambda = A + aee^\top$ with $A = (sI + V)/(s + 1) = LL^\top$, $a = 1/(s + 1)$; with
$u = \sqrt a L^{-1}e$ and $k^2 = 1 + |u|^2$ a root of its inverse is $C = (I - (1 - 1/k)\hat u\hat u^\top)L^{-1}$, and
$Ce = \hat u\,|u|/(k\sqrt a)$: a residual of any size stays bounded, where a Cholesky factor of Lambda would lose it.

Forecast and evidence are those of the plain model with noise R. Hypotheses are weighed by
$N(y; \hat y, HPH^\top + \Lambda)$.

Cost: one conditioning and O(O³) for each iteration; a form without correlations is conditioned each time.
Thesis: sec:experiments-robustness, tab:complexity-linear-model.
"""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key, PyTree

from filtax import checks
from filtax.factor import factor
from filtax.linalg import matmul
from filtax.models import Model
from filtax.posteriors.reweighing import Datum, Reweighing, Site, look, revised
from filtax.protocols import Update
from filtax.safe import safe_scale, safe_sqrt

__all__ = ["InverseWishartNoise"]


class InverseWishartNoise(Reweighing):
    """The Kalman filter that lets each datum have more noise (KF-IW); extended where h is not linear (EKF-IW).

    Attributes:
        degrees: Degrees of freedom s of the Wishart prior; the fewer, the more a datum may differ from the noise given.
        iterations: How often the noise of a datum is revised.
        form: Of the belief, as for `Extended`.

    >>> import filtax as fx
    >>> method = fx.method("IW(degrees=4)+C-Static", model=fx.models.linear(noise=1.0))
    >>> state = method.init(mean=jnp.zeros(1), cov=1.0)
    >>> [round(method.step(state, jnp.ones(1), y)[1].trust.item(), 2) for y in (1.0, 8.0, 100.0)]
    [1.06, 0.09, 0.0]
    """

    degrees: Any = 4.0
    iterations: Any = eqx.field(static=True, default=4)
    form: str = eqx.field(static=True, default="auto")
    name = "IW"
    shown = {"degrees": 4.0, "iterations": 4, "form": "auto"}  # noqa: RUF012

    def __check_init__(self) -> None:
        checks.positive("IW(degrees=...)", self.degrees, hint="Few degrees of freedom mean heavy tails; try 4.")
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
        r"""Condition on y with its own noise; `trust` is the mean of $E[R_t^{-1}]R$ over what was observed."""
        datum = look(belief, model, x, y, mask, aux)
        one = jnp.ones((), datum.residual.dtype)

        def revise(site: Site) -> Site:
            shift, spread = datum.fit(site)
            return self._site(datum, datum.residual - shift, one, shift, spread)

        site = revised(revise, self._first(datum), self.iterations - 1)
        return datum.absorb(model, x, y, mask, aux, site)

    def _first(self, datum: Datum) -> Site:
        r = datum.residual
        shift, spread = datum.fit(datum.scaled(jnp.ones((), r.dtype)))
        unit, length = _polar(r)
        left = jnp.where(length > 0.0, 1.0 - jnp.sum(unit * (shift / jnp.where(length > 0.0, length, 1.0))), 1.0)
        left = jnp.maximum(left, jnp.finfo(r.dtype).eps)
        return self._site(datum, left * r, 1.0 / left, jnp.zeros_like(r), spread)

    def _site(self, datum: Datum, e: Array, along: Array, rest: Array, spread: Float[Array, "O O"]) -> Site:
        """The noise, once the expected residual is e with covariance `spread`, for r = along e + rest."""
        s, seen = jnp.asarray(self.degrees, e.dtype), datum.observed
        both, eye = seen[:, None] & seen[None, :], jnp.eye(e.size, dtype=e.dtype)
        L = factor(jnp.where(both, (s * eye + spread) / (s + 1.0), eye))
        direction, size = _polar(e)
        unit, length = _polar(L.solve(direction))
        root = jnp.sqrt(s + 1.0)
        u = size / root * length
        far = u > 1.0 / jnp.finfo(u.dtype).eps  # beyond it 1 + u² is u², which need not be a number
        k = jnp.where(far, u, jnp.sqrt(1.0 + jnp.square(jnp.where(far, 1.0, u))))
        half = L.solve(eye)
        C = half - (1.0 - 1.0 / k) * unit[:, None] * matmul(unit[None, :], half)
        residual = along * root * (u / k) * unit + matmul(C, rest[:, None])[:, 0]
        precision = jnp.sum(jnp.where(both, jnp.square(C), 0.0)) / jnp.maximum(datum.count, 1.0)
        return Site(C, residual, -0.5 * L.log_det - jnp.log(k), precision)


def _polar(e: Float[Array, " O"]) -> tuple[Float[Array, " O"], Float[Array, ""]]:
    """Direction and length of an e whose square may be too large for a number."""
    scale = safe_scale(e)
    size = safe_sqrt(jnp.sum(jnp.square(e / scale)))
    return e / scale / jnp.where(size > 0.0, size, 1.0), scale * size
