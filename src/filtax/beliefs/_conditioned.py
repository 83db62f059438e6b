"""What conditioning returns: the new belief, and how the old one had foreseen the datum."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

from filtax.protocols import Module

RESOLVED = 0.01  # up to this over ε in units of the noise, a forecast of several outputs is factored at once


class Conditioned(Module):
    r"""A belief conditioned on r = B J (theta - mean) + e, e ~ N(0, I).

    With $S = I + BJ\Sigma J^\top B^\top = LL^\top$: `innovation` is $L^{-1}r$ and `log_det` is $\log|S|$, from the
    factor that the update itself used. They give the evidence where the covariance of the forecast, formed as a sum,
    would be singular to rounding.

    >>> import jax.numpy as jnp
    >>> from filtax.beliefs import SquareRoot
    >>> prior = SquareRoot.start(jnp.zeros(1), jnp.full(1, 3.0))
    >>> round(prior.condition(jnp.eye(1), jnp.eye(1), jnp.ones(1)).innovation.item(), 3)
    0.5
    """

    belief: PyTree
    innovation: Float[Array, " O"]
    log_det: Float[Array, ""]
    ok: Bool[Array, ""]


def one_by_one(belief: Any, G: Float[Array, "O D"], r: Float[Array, " O"]) -> Conditioned:
    """Condition on r = G (theta - mean) + e with e ~ N(0, I), one output after the other.

    The innovations are those of the Cholesky factor of all at once. That factor is lost to rounding where the forecast
    is 1/ε times as uncertain as the noise; a single number has nothing to lose.

    >>> from filtax.beliefs import SquareRoot
    >>> prior = SquareRoot.start(jnp.zeros(1), jnp.ones(1))
    >>> one_by_one(prior, jnp.ones((2, 1)), jnp.full(2, 3.0)).belief.mean.round(4).tolist()
    [2.0]
    """
    one = jnp.eye(1, dtype=r.dtype)

    def take(now: Any, datum: tuple[Array, Array]) -> tuple[Any, tuple]:
        g, left = datum
        gap = left - jnp.sum(g * (now.mean - belief.mean))
        new = now.condition(g[None, :], one, gap[None])
        return new.belief, (new.innovation[0], new.log_det, new.ok)

    last, (z, log_det, taken) = jax.lax.scan(take, belief, (G, r))
    ok = jnp.all(taken)
    # a datum is taken whole or not at all
    kept = jax.tree.map(lambda new, old: jnp.where(ok, new, old), last, belief)
    return Conditioned(kept, z, jnp.sum(log_det), ok)
