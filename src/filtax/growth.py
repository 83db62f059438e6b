"""Banks that grow: RL[inf] and its like keep every hypothesis, so the bank doubles when it is full.

The size of a bank is a shape, and a shape is fixed within a compilation. So growth happens here, between two compiled
calls, and a long `scan` compiles once for each doubling. Under `jit` or `vmap` the number of ticks cannot be looked at:
the bank then keeps its size, and a full one gives up its least probable hypotheses.

A part that remembers data does not know their shape at the start. Its memory is furnished here too, at the first
datum.
"""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from filtax import checks
from filtax.protocols import Hypotheses
from filtax.state import State
from filtax.tick import new_hypotheses, whole

__all__ = ["furnished", "grown", "in_growing_steps", "remembers", "roomy"]

MOST = 2**17  # slots: beyond it a tick takes seconds, and what asks for more has asked for 2^t hypotheses


def roomy(method: Any, state: State, ahead: int = 1) -> State:
    """The state with room for one more tick, or for several, as long as they do not ask for more than there can be.

    >>> import filtax as fx
    >>> rl = fx.method("LG+RL[inf](capacity=2)-PR(hazard=0.1)", model=fx.models.linear(noise=1.0))
    >>> state, _ = rl.scan(rl.init(mean=jnp.zeros(1), cov=1.0), jnp.ones((5, 1)), jnp.ones(5))
    >>> roomy(rl, state).hypotheses.log_weight.size
    8
    """
    ticks = _ticks(method, state)
    if ticks is None:
        return state
    wanted = method.auxiliary.slots_needed(ticks + max(ahead, 1) - 1)
    return grown(method, state, wanted if wanted <= MOST else method.auxiliary.slots_needed(ticks))


def in_growing_steps(method: Any, state: State, rows: tuple, scan: Callable) -> tuple[State, Any]:
    """Scan the rows, in pieces between which the bank doubles if it must."""
    length, ticks = rows[1].shape[0], _ticks(method, state)
    if ticks is None or length == 0:
        return scan(state, *rows)
    _check_room(
        method, method.auxiliary.slots_needed(ticks + length - 1)
    )  # before anything is learned, not halfway through
    pieces, done = [], 0
    while done < length:
        state = grown(method, state, method.auxiliary.slots_needed(ticks + done))
        slots, fit = state.hypotheses.log_weight.shape[-1], 1
        while done + fit < length and method.auxiliary.slots_needed(ticks + done + fit) <= slots:
            fit += 1
        state, infos = scan(state, *_piece(rows, done, fit))
        pieces.append(infos)
        done += fit
    return state, pieces[0] if len(pieces) == 1 else jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *pieces)


def _piece(rows: tuple, start: int, length: int) -> tuple:
    return jax.tree.map(lambda leaf: leaf[start : start + length], rows)


def _ticks(method: Any, state: State) -> int | None:
    """Ticks of the stream so far; None when the bank never grows, or when it cannot be known now."""
    if method.auxiliary.slots_needed(0) is None:
        return None
    t = checks.concrete(state.t - state.began)
    return None if t is None else int(t.max())


def grown(method: Any, state: State, wanted: int) -> State:
    """The state with room for at least `wanted` hypotheses.

    >>> import filtax as fx
    >>> rl = fx.method("LG+RL[inf](capacity=2)-PR(hazard=0.1)", model=fx.models.linear(noise=1.0))
    >>> grown(rl, rl.init(mean=jnp.zeros(1), cov=1.0), 5).hypotheses.log_weight.size
    8
    """
    slots = state.hypotheses.log_weight.shape[-1]
    if wanted <= slots:
        return state
    _check_room(method, wanted)
    while slots < wanted:
        slots *= 2
    new = new_hypotheses(method, state.initial, slots)
    new = Hypotheses(new.belief, new.aux, jnp.full_like(new.log_weight, -jnp.inf))
    hypotheses = jax.tree.map(lambda old, fresh: fresh.at[: old.shape[0]].set(old), state.hypotheses, new)
    return state.after(hypotheses, state.t, state.began, state.refused, state.conditioning_ratio)


def furnished(method: Any, state: State, x: Any, y: Any) -> State:
    """The state with a memory that fits data like x and y, where its posterior keeps one.

    >>> import filtax as fx
    >>> ogd = fx.method("OGD(rate=0.1, memory=4)+C-Static", model=fx.models.linear(noise=1.0))
    >>> state = ogd.init(mean=jnp.zeros(3))
    >>> furnished(ogd, state, jnp.ones(3), jnp.ones(())).initial.memory.X.shape
    (4, 3)
    """
    state = _noting(method, state, x, y)
    if not method.posterior.stores_data:
        return state
    furnish = method.posterior.allocate_memory
    dtype = state.initial.mean.dtype
    x = x if x is None or not jnp.issubdtype(x.dtype, jnp.floating) else jnp.zeros(x.shape, dtype)
    initial = furnish(state.initial, x, y.size)
    belief = jax.vmap(lambda one: furnish(one, x, y.size))(state.hypotheses.belief)
    hypotheses = Hypotheses(belief, state.hypotheses.aux, state.hypotheses.log_weight)
    return State(
        hypotheses, initial, state.t, state.began, state.refused, state.conditioning_ratio, state.key, state.layout
    )


def remembers(method: Any) -> bool:
    """Whether a part keeps data as they came, so that their shape is needed before the first of them.

    >>> import filtax as fx
    >>> [remembers(fx.method(name, model=fx.models.linear(noise=1.0))) for name in ("C-Static", "CPV-Sub")]
    [False, True]
    """
    return any(part.stores_data for part in (method.posterior, method.auxiliary, method.weighting))


def _noting(method: Any, state: State, x: Any, y: Any) -> State:
    """The same for (M.2) and (A.2), which keep what they note of the data with the auxiliary values."""
    aux = state.hypotheses.aux
    for part in (method.auxiliary, method.weighting):
        aux = part.allocate_memory(aux, whole(state.initial), x, y.size)
    if aux is state.hypotheses.aux:
        return state
    hypotheses = Hypotheses(state.hypotheses.belief, aux, state.hypotheses.log_weight)
    return State(
        hypotheses,
        state.initial,
        state.t,
        state.began,
        state.refused,
        state.conditioning_ratio,
        state.key,
        state.layout,
    )


def _check_room(method: Any, wanted: int) -> None:
    if wanted > MOST:
        name = method.auxiliary.name
        shown = wanted if wanted < 10**9 else f"about 10^{math.log10(wanted):.0f}"
        raise ValueError(
            f"{name}[inf] would need {shown} hypotheses for this stream, more than {MOST}; give {name}[K] to keep the "
            "K most probable ones."
        )
