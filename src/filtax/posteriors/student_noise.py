r"""(A.1) Heavy-tailed noise of known degrees of freedom: Student-t data, a Gaussian belief.

The variational scale mixture of Piché, Särkkä and Hartikainen (2012): a Student-t density is a Gaussian whose precision
has a factor of its own for each datum,
$$y \mid \theta, \tau \sim N(h(\theta), R/\tau), \qquad \tau \sim \mathrm{Gam}(\nu/2, \nu/2).$$
With $q(\theta)\,q(\tau)$ and the weight $w = E[\tau]$, one iteration takes, for O outputs,
$$w \leftarrow \frac{\nu + O}{\nu + E_q[(y - h(\theta))^\top R^{-1}(y - h(\theta))]}, \qquad
q(\theta) \propto \pi_t(\theta)\,N(y; h(\theta), R/w),$$
from w = 1, where the expectation holds the uncertainty $HPH^\top$ of theta. The Student-t filter of Roth, Özkan and
Gustafsson (2013) is another: it keeps a t-shaped belief, whose degrees of freedom grow with each datum unless they are
reset by hand, so that no fixed point defines it. A datum that fits better than most has a weight above 1, up to
(nu + O) / nu.

Forecast and evidence are those of the plain model with noise R. Hypotheses are weighed by
$N(y; \hat y, HPH^\top + R/w)$.

Cost: one conditioning and O(O³) for each iteration; a form without correlations is conditioned each time.
Thesis: eq:noisy-2d-ssm-outlier-covariance.
"""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key, PyTree

from filtax import checks
from filtax.models import Model
from filtax.posteriors.reweighing import Datum, Reweighing, look, revised
from filtax.protocols import Update

__all__ = ["StudentNoise"]


class StudentNoise(Reweighing):
    """The Kalman filter for noise with Student-t tails; extended where h is not linear.

    Attributes:
        degrees: Degrees of freedom nu; the fewer, the heavier the tails.
        iterations: How often the weight of a datum is revised.
        form: Of the belief, as for `Extended`.

    >>> import filtax as fx
    >>> method = fx.method("ST(degrees=4)+C-Static", model=fx.models.linear(noise=1.0))
    >>> state = method.init(mean=jnp.zeros(1), cov=1.0)
    >>> [round(method.step(state, jnp.ones(1), y)[1].trust.item(), 2) for y in (1.0, 8.0, 100.0)]
    [1.06, 0.09, 0.0]
    """

    degrees: Any = 4.0
    iterations: Any = eqx.field(static=True, default=4)
    form: str = eqx.field(static=True, default="auto")
    name = "ST"
    shown = {"degrees": 4.0, "iterations": 4, "form": "auto"}  # noqa: RUF012

    def __check_init__(self) -> None:
        checks.positive("ST(degrees=...)", self.degrees, hint="Few degrees of freedom mean heavy tails; try 4.")
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
        """Condition on y with its own precision; `trust` is the expected factor of that precision."""
        datum = look(belief, model, x, y, mask, aux)
        return datum.absorb(model, x, y, mask, aux, datum.scaled(self._weight(datum)))

    def _weight(self, datum: Datum) -> Float[Array, ""]:
        nu = jnp.asarray(self.degrees, datum.residual.dtype)

        def revise(w: Array) -> Array:
            square = datum.square(w)
            near = jnp.isfinite(square)
            return jnp.where(near, (nu + datum.count) / (nu + jnp.where(near, square, 0.0)), 0.0)

        return revised(revise, jnp.ones((), nu.dtype), self.iterations)
