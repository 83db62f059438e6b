r"""(M.3) Frames: what a polynomial means when its origin is moved.

$\sum_j a_j u^j$ with $u = r/\text{unit}$ is, seen from an origin s ticks later, $\sum_i a'_i u'^i$ with
$a'_i = \sum_{j \ge i} \binom{j}{i} (s/\text{unit})^{j-i} a_j$: a triangular matrix with ones on its diagonal, so that
nothing is lost.

Thesis: eq:cprior-cpt-mmpr, for models whose segments have an origin (Fearnhead and Liu 2011).
"""

from math import comb
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from filtax import checks
from filtax.module import Module

__all__ = ["PolynomialShift", "polynomial_shift"]


class PolynomialShift(Module):
    """The matrix that moves the origin; parameters lie in rows of `outputs`, powers first, and the others stay.

    >>> polynomial_shift(1, unit=10.0)(jnp.asarray(5), jnp.zeros(3)).tolist()
    [[1.0, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """

    unit: Any
    degree: int = eqx.field(static=True)
    outputs: int = eqx.field(static=True)

    def __call__(self, run: Array, theta: Float[Array, " D"]) -> Float[Array, "D D"]:
        """F for a shift by `run` ticks."""
        s = run.astype(theta.dtype) / jnp.asarray(self.unit, theta.dtype)
        D, n, O = theta.size, self.degree + 1, self.outputs
        if D < n * O:
            raise ValueError(
                f"polynomial_shift(degree={self.degree}, outputs={O}) moves {n * O} parameters but there are {D}; "
                "give the degree of the model."
            )
        rows = [[comb(j, i) * s ** (j - i) if j >= i else jnp.zeros_like(s) for j in range(n)] for i in range(n)]
        shift = jnp.kron(jnp.stack([jnp.stack(row) for row in rows]), jnp.eye(O, dtype=theta.dtype))
        return jnp.eye(D, dtype=theta.dtype).at[: n * O, : n * O].set(shift)


def polynomial_shift(degree: Any = 1, *, unit: Any = 100.0, outputs: Any = 1) -> PolynomialShift:
    """Move the origin of a polynomial in the run length, for `moment_matched_reset(frame=...)`.

    Args:
        degree: Of the polynomial, at least 0; 1 for `filtax.models.since_change`.
        unit: Ticks over which a power is counted, as in the model.
        outputs: Number of outputs O; coefficients lie in rows of O, as in `since_change`.

    >>> import filtax as fx
    >>> from filtax.priors import moment_matched_reset
    >>> linked = moment_matched_reset(frame=polynomial_shift(1, unit=10.0))
    >>> fx.method("RL[5]-MMPR(hazard=0.1)", model=fx.models.since_change(1.0, unit=10.0), prior=linked).prior.name
    'MMPR'
    """
    checks.whole("polynomial_shift(degree=...)", degree, least=0)
    checks.positive("polynomial_shift(unit=...)", unit, hint="It is a number of ticks.")
    checks.whole("polynomial_shift(outputs=...)", outputs, least=1)
    return PolynomialShift(unit, degree, outputs)
