r"""Gains that a difference cannot tell, where data know a direction far better than the diagonal of a precision does.

$P = J\Sigma = JV - cU$ is off by a rounding of JV. Where data have told $10^7$ times more than the prior (float32),
that is more than P itself: the mean moves by noise whose sign stays, and an error grows with each datum until it
overflows. But what P shows of the rows of U, $S^\top UV^{-1}P^\top$, is known to its last digit without P: it is
$S^\top UV^{-1}\Sigma J^\top = L^{-1}L^{-\top}h$. So what it shows is looked at, and what is too much is taken away: the
second look of an orthogonalisation.

Axes: D parameters, K rows of U, O outputs. Cost: O(D K O), for data whose spread has sunk that low only.
Thesis: prop:lofi-update, whose gain this is.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from filtax.beliefs.algebra import along, by_kernel
from filtax.beliefs.passes import eased, shown
from filtax.beliefs.products import inverse

__all__ = ["resolved"]

LOW = 1e5  # roundings of JVJᵀ below which a spread is low: P is then right to some 1e-5; networks hardly get there


def resolved(
    P: Float[Array, "O D"],
    spread: Float[Array, "O O"],
    half: Float[Array, "K O"],
    V: Float[Array, "*D"],
    U: Float[Array, "K D"],
    shed: Float[Array, "K K"],
    root: Float[Array, "K K"],
    used: Int[Array, ""],
) -> Float[Array, "O D"]:
    r"""P as it is, or after a second look where the spread is low beside $JVJ^\top = J\Sigma J^\top + h^\top h$.

    >>> one = jnp.ones((1, 1), "float32")
    >>> given = jnp.ones(1, "float32"), one, (1.0 - 1e-12) ** 0.5 * one, 1e6 * one, jnp.asarray(1)
    >>> abs(resolved(3e-4 * one, 1e-4 * one, 1e4 * one, *given).item()) < 1e-7
    True
    """
    seen = jnp.diagonal(spread)
    low = jnp.any(seen < LOW * jnp.finfo(P.dtype).eps * (seen + jnp.sum(half * half, axis=0)))

    def look(count: Array, kernel: str = "") -> Array:
        c = along(shown(U, P, count, inverse(V)), half, shed, root, count, kernel)
        return eased(P, U, c, count)

    if by_kernel(U, len(P)) == "cuda":  # none of which reads anything where it is not low: a device waits at a branch
        return look(jnp.where(low, used, 0).astype(used.dtype), kernel="cuda")
    return jax.lax.cond(low, lambda: look(used), lambda: P)
