"""The compiled verbs: what `Bone` calls once its arguments are checked. Each compiles once for a structure and a shape.

Thesis: algo:bone-step.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from filtax.beliefs import collapse
from filtax.growth import furnished
from filtax.passage import Passage
from filtax.protocols import Hypotheses
from filtax.state import Info, State, usual
from filtax.tick import admit, conform, look_ahead, new_hypotheses, tick

__all__ = ["advance", "forecast", "predict", "scan", "step"]


@partial(jax.jit, static_argnums=0)
def step(
    passage: Passage,
    leaves: list,
    moving: list,
    fixed: list,
    x: Array | None,
    y: Array,
    mask: Array | None,
    dt: Array | None,
    changed: Array | None,
) -> tuple[list, dict[str, Array]]:
    """One row. What is as usual stays None and does not travel: `told` knows it."""
    method, state = passage.enter(leaves, moving, fixed)
    carry, info = _tick(conform(method, state), state, _carry(state), x, y, mask, dt, changed, complete=False)
    return passage.leave(moving, carry), {name: value for name, value in vars(info).items() if value is not None}


@partial(jax.jit, static_argnums=0, static_argnames=("keep", "complete"))
def scan(
    passage: Passage,
    leaves: list,
    moving: list,
    fixed: list,
    X: Array | None,
    Y: Array,
    mask: Array | None,
    dt: Array | None,
    changed: Array | None,
    *,
    keep: tuple[str, ...],
    complete: bool,
) -> tuple[list, dict[str, Array]]:
    """Many rows."""
    method, state = passage.enter(leaves, moving, fixed)
    method = conform(method, state)

    # With one slot its axis stays outside of the loop: XLA then updates a large belief in place.
    slots = state.hypotheses.log_weight.size
    narrow = lambda hypotheses: jax.tree.map(lambda leaf: leaf[0], hypotheses) if slots == 1 else hypotheses  # noqa: E731
    widen = lambda hypotheses: jax.tree.map(lambda leaf: leaf[None], hypotheses) if slots == 1 else hypotheses  # noqa: E731

    def body(carry: tuple, row: tuple) -> tuple[tuple, dict[str, Array]]:
        given = widen(carry[0])
        (hypotheses, *rest), info = advance(method, state, (given, *carry[1:]), *row, complete=complete)
        return (_touched(carry[0], given, hypotheses, narrow), *rest), {
            name: _kept(name, hypotheses, info) for name in keep
        }

    hypotheses, *rest = _carry(state)
    given = narrow(hypotheses)
    (made, *rest), infos = _scan_over(body, (given, *rest), (X, Y, mask, dt, changed))
    return passage.leave(moving, (_touched(hypotheses, given, made, widen), *rest)), infos


@partial(jax.jit, static_argnames=("plugin",))
def predict(method: Any, state: State, x: Array | None, dt: Array | None, *, plugin: bool) -> PyTree:
    """The distribution of the next y."""
    method = conform(method, state)
    return look_ahead(method, state.hypotheses, state.initial, _typed(x, state), _time(dt, state), plugin)


@jax.jit
def forecast(method: Any, state: State, X: Array, dt: Array | None) -> PyTree:
    """The distributions of the y that follow, none of them seen."""
    method = conform(method, state)
    outputs = method.model.outputs(state.initial.mean, _typed(X[0], state))
    unseen = jnp.full(method.model.likelihood.width(outputs), jnp.nan)
    state = furnished(method, state, X[0], unseen)

    def body(carry: tuple, row: tuple) -> tuple[tuple, PyTree]:
        hypotheses, t = carry
        gap = _time(row[1], state)
        datum = admit(method, state.initial, row[0], unseen, None, False)
        outcome = tick(method, hypotheses, state.initial, t, datum, gap, state.key, t + 1)
        # the forecast is asked of x as it was given: where it is NaN, so is the forecast
        return (outcome.hypotheses, t + 1), look_ahead(
            method, hypotheses, state.initial, _typed(row[0], state), gap, False
        )

    return jax.lax.scan(body, (state.hypotheses, state.t), (X, dt))[1]


def advance(
    method: Any,
    state: State,
    carry: tuple,
    x: Array | None,
    y: Array,
    mask: Array | None,
    dt: Array | None,
    changed: Array | None,
    *,
    complete: bool,
) -> tuple[tuple, Info]:
    """Do one row, and report all of `Info`."""
    carry, info = _tick(method, state, carry, x, y, mask, dt, changed, complete)
    said = {name: value for name, value in vars(info).items() if value is not None}
    return carry, Info(**{**usual(state.initial.mean.dtype), **said})


def _tick(
    method: Any,
    state: State,
    carry: tuple,
    x: Array | None,
    y: Array,
    mask: Array | None,
    dt: Array | None,
    changed: Array | None,
    complete: bool,
) -> tuple[tuple, Info]:
    """One row. What does not change (`initial`, `key`) stays outside of the carry, which would hold it twice."""
    hypotheses, t, began, refused, conditioning_ratio = carry
    if changed is not None:
        anew = new_hypotheses(method, state.initial, hypotheses.log_weight.size, like=hypotheses)
        hypotheses = jax.tree.map(lambda new, old: jnp.where(changed, new, old), anew, hypotheses)
        began = jnp.where(changed, t, began)
    datum = admit(method, state.initial, x, y, mask, complete)
    outcome = tick(method, hypotheses, state.initial, t, datum, _time(dt, state), state.key, t + 1 - began)
    info, ok = outcome.info, outcome.ok
    conditioning_ratio = jnp.maximum(conditioning_ratio, jnp.nan_to_num(outcome.conditioning_ratio, nan=0.0))
    return (outcome.hypotheses, t + 1, began, refused + (~ok).astype(refused.dtype), conditioning_ratio), info


def _scan_over(body: Callable, carry: PyTree, rows: PyTree) -> tuple[PyTree, PyTree]:
    """As `jax.lax.scan`; in a `jax.shard_map`, what is carried may come to differ between devices."""
    axes = frozenset().union(*map(_varying, jax.tree.leaves((carry, rows))))

    def differing(value: Array) -> Array:
        alike = tuple(sorted(axes - _varying(value)))
        return jax.lax.pcast(value, alike, to="varying") if alike else value

    return jax.lax.scan(body, jax.tree.map(differing, carry) if axes else carry, rows)


def _varying(value: Any) -> frozenset[str]:
    """Axes of a `jax.shard_map` along which a value may differ; JAX has moved the name they go by."""
    told = jax.typeof(value)
    return frozenset(getattr(getattr(told, "mat", told), "varying", getattr(told, "vma", ())))


def _carry(state: State) -> tuple:
    return state.hypotheses, state.t, state.began, state.refused, state.conditioning_ratio


def _touched(
    old: Hypotheses, given: Hypotheses, made: Hypotheses, form: Callable[[Hypotheses], Hypotheses]
) -> Hypotheses:
    """What was made of a bank, in its old form; an array that was given back as it came is the old one itself."""
    return jax.tree.map(lambda old, given, made, new: old if made is given else new, old, given, made, form(made))


def _typed(x: Array | None, state: State) -> Array | None:
    return x if x is None or not jnp.issubdtype(x.dtype, jnp.floating) else x.astype(state.initial.mean.dtype)


def _time(dt: Array | None, state: State) -> Array | None:
    return None if dt is None else dt.astype(state.initial.mean.dtype)


def _kept(name: str, hypotheses: Hypotheses, info: Info) -> Array:
    if name == "log_weight":
        return hypotheses.log_weight
    if not name.startswith("belief_"):
        return getattr(info, name)
    return getattr(collapse(hypotheses.belief, hypotheses.log_weight), name.removeprefix("belief_"))
