r"""Gains that a difference cannot tell, where data know a parameter far better than the diagonal of a precision does.

$P = J\Sigma = JV - cU$ is off by a rounding of JV. Where data have told $10^7$ times more than the prior (float32),
that is more than P itself: the mean moves by noise whose sign stays, and an error grows with each datum until it
overflows. But $PJ^\top = J\Sigma J^\top$, the spread of the forecast, is known as a sum of squares to its last digit.
$P - AJV$ with $A = (PJ^\top - J\Sigma J^\top)(JVJ^\top)^{-1}$ is the nearest to P, in the metric of V, for which that
holds: what a datum does to its own forecast is right again; what is left of the error lies where the datum does not see
it. W, which P is a part of, changes by AJ: by a rounding of J.

Axes: D parameters, K columns of W, O outputs. Cost: O(D O²), for data whose spread has sunk that low only.
Thesis: prop:lofi-update, whose gain this is.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from filtax.beliefs.algebra import along, by_kernel
from filtax.beliefs.passes import eased, shown
from filtax.beliefs.products import product

__all__ = ["resolved"]

LOW = 1e3  # roundings of JVJᵀ below which a spread is low: P is then still right to a part in a hundred


def resolved(
    P: Float[Array, "O D"],
    J: Float[Array, "O D"],
    V: Float[Array, "*D"],
    spread: Float[Array, "O O"],
    half: Float[Array, "K O"],
) -> Float[Array, "O D"]:
    r"""P = JΣ as it is, or put right along JV where the spread is low beside $JVJ^\top$, the spread plus $h^\top h$.

    >>> P, J = jnp.array([[2e-6, 0.0]], "float32"), jnp.array([[100.0, 1.0]], "float32")
    >>> known, low = jnp.full((1, 1), 100.005, "float32"), jnp.full((1, 1), 1e-5, "float32")
    >>> [round(float(jnp.sum(J * gain)), 7) for gain in (P, resolved(P, J, jnp.ones(2, "float32"), low, known))]
    [0.0002, 1e-05]
    """
    seen = jnp.diagonal(spread)
    low = jnp.any(seen < LOW * jnp.finfo(P.dtype).eps * (seen + jnp.sum(half * half, axis=0)))
    if by_kernel(P, len(J)):  # none of which reads anything where it is not low: a device waits at a branch
        rows = jnp.where(low, len(J), 0).astype(jnp.int32)
        A = along(shown(P, J, rows, jnp.ones((), P.dtype)) - spread, spread, half, low, kernel=True)
    else:
        some = lambda: along(product(P, J.T) - spread, spread, half, low)  # noqa: E731
        A = jax.lax.cond(low, some, lambda: jnp.zeros_like(spread))
    return eased(P, J, V, A, low)
