"""One reading through the filter of a `Segmenter`, compiled, and how odd it is for the segment that goes on."""

from functools import lru_cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from filtax.bone import Bone
from filtax.distributions import Mixture
from filtax.log_space import normalised
from filtax.protocols import each
from filtax.segmentation import Settings
from filtax.segmentation.plan import build
from filtax.segmentation.watch import _watch
from filtax.state import State
from filtax.tick import conform, propose

__all__ = ["reader"]


@lru_cache(maxsize=64)
def reader(settings: Settings, outputs: int) -> Any:
    """The kernel for a setting; a segment born now expects mean and variance of what came before.

    >>> reader(Settings(keep=5), 1) is reader(Settings(keep=5), 1)
    True
    """
    method, _ = build(settings, outputs, cyclic=False)

    @jax.jit
    def read(state: State, centre: Any, variance: Any, y: Any, odds: Any, since: Any, least: Any) -> tuple:
        initial = state.initial
        mean = jnp.zeros_like(initial.mean).at[:outputs].set(centre)
        rate = jnp.asarray(settings.shape * settings.noise * variance, mean.dtype)
        first = eqx.tree_at(lambda belief: (belief.unit.mean, belief.rate), initial, (mean, rate))
        slots = state.bank.log_weight.size
        anew = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (slots, *leaf.shape)), first)
        belief = jax.tree.map(lambda new, old: jnp.where(state.t == 0, new, old), anew, state.bank.belief)
        state = eqx.tree_at(lambda s: (s.initial, s.bank.belief), state, (first, belief))
        born = jax.tree.map(lambda leaf: leaf[None], first)
        since, least = (jnp.asarray(value, jnp.int32) for value in (since, least))
        carry, seen = _watch(method, state, (None, y, born, jnp.zeros(1, bool)), odds, since, least, posterior=False)
        return state.after(*carry), (seen.alarm, seen.start, seen.log_odds), _deviation(method, state, y)

    return read


def _deviation(method: Bone, state: State, y: Array) -> Array:
    """Standard deviations from what the segments that go on expect, the largest of all outputs; 0 if it is missing."""
    method = conform(method, state)
    proposed, beliefs = propose(method, state.bank, state.initial, None)
    look = lambda belief, aux: method.posterior.forecast(belief, method.model, None, aux, False)  # noqa: E731
    log_weight = jnp.where(proposed.fresh, -jnp.inf, proposed.bank.log_weight)
    law = Mixture(each(look, beliefs, proposed.bank.aux), normalised(log_weight))
    off = jnp.reshape(y, (-1,)) - jnp.reshape(law.mean, (-1,))
    return jnp.max(jnp.nan_to_num(jnp.abs(off) / jnp.sqrt(jnp.reshape(law.var, (-1,))), nan=0.0))
