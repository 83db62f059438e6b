r"""(A.1) How far a datum reaches: a taper of the distance between a parameter and an output, for ensembles.

The fifth-order function of Gaspari and Cohn (1999), close to a Gaussian and exactly 0 from the radius on: with
$z = 2|i - j|/\text{radius}$,
$$1 - \tfrac53z^2 + \tfrac58z^3 + \tfrac12z^4 - \tfrac14z^5 \;(z \le 1), \qquad
4 - 5z + \tfrac53z^2 + \tfrac58z^3 - \tfrac12z^4 + \tfrac1{12}z^5 - \tfrac2{3z} \;(z \le 2).$$

Thesis: algo:ensemble-kalman-filter, which has fewer members than parameters and does not say what to do about it.
"""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from filtax import checks

__all__ = ["Taper", "gaspari_cohn"]


@dataclass(frozen=True)
class Taper:
    """A function of parameter and output index, equal to another of the same radius and period.

    >>> gaspari_cohn(4.0)(jnp.arange(5), jnp.zeros(5)).round(3).tolist()
    [1.0, 0.685, 0.208, 0.016, 0.0]
    """

    radius: float
    period: float | None = None

    def __call__(self, i: Array, j: Array) -> Float[Array, "..."]:
        """Taper of each pair of indices."""
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
    """Let data reach parameters within a radius, as `localisation=` of `ensemble_kalman`.

    Args:
        radius: Distance, in indices, from which on a datum says nothing: 0 is parameter j by output j alone,
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
