r"""(M.1) A likelihood that gives up: the density power divergence in the place of the log density.

Generalised Bayes with the beta-divergence (Basu and others 1998; for filters Boustati and others 2020): a point theta
is weighed by $\exp G$ with
$$G(\theta) = \frac{e^{\beta\ell} - 1}{\beta}, \qquad
\ell = \log\frac{N(y; h(\theta), R)}{N(0; 0, R)} = -\tfrac12|r|^2,$$
which is $\ell$ for small residuals or small beta, and never below $-1/\beta$: however wrong a datum is, no point is
ruled out by it. The integral of the divergence does not depend on theta under Gaussian noise and drops out. The
published loss takes the density itself, so that its strength $|2\pi R|^{-\beta/2}$ depends on the unit of y; ours,
taken relative to the peak, has none, and a datum that fits counts in full.

Posteriors that hold points (PF, APF, RBPF) weigh each by G. To first order $\nabla G = e^{\beta\ell}\nabla\ell$, so
that for all others it is a trust, $w = e^{-\beta|r|^2/4}$ at the forecast.

Thesis: eq:conditional-posterior, experiment:2d-tracking (the benchmark of its fig:2d-ssm-sample).
"""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from filtax import checks
from filtax.module import Module

__all__ = ["Power", "density_power"]


class Power(Module):
    """The trust exp(-beta |r|²/4), and what a point is weighed by.

    >>> round(density_power(0.5)(jnp.array([2.0])).item(), 4), density_power(0.5).tilt(jnp.asarray(-1e30)).item()
    (0.6065, -2.0)
    """

    beta: Any
    name = "WoLF-Power"
    shown = {"beta": None}  # noqa: RUF012

    def __check_init__(self) -> None:
        checks.positive("density_power(beta=...)", self.beta, hint="It is how soon a datum loses trust, such as 0.2.")

    def __call__(self, r: Float[Array, " O"]) -> Float[Array, ""]:
        """Trust of a residual; 0 where its square is no number."""
        square = jnp.sum(jnp.square(r))
        near = jnp.isfinite(square)
        return jnp.where(near, jnp.exp(-0.25 * jnp.asarray(self.beta, r.dtype) * jnp.where(near, square, 0.0)), 0.0)

    def tilt(self, log_density: Float[Array, "*S"]) -> Float[Array, "*S"]:
        """G of a log density that is relative to the peak of the noise."""
        beta = jnp.asarray(self.beta, log_density.dtype)
        return jnp.expm1(beta * log_density) / beta


def density_power(beta: Any) -> Power:
    """Weigh by the power divergence of the density: a generalised likelihood that no outlier can drive to zero.

    Args:
        beta: Above 0; a datum at |r| standard deviations counts as exp(-beta |r|²/2) of one. Gaussian noise only.

    Returns:
        A trust for `robust(model, trust=...)`.

    >>> density_power(0.2).name
    'WoLF-Power'
    """
    return Power(beta)
