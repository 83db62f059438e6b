"""What a policy would have earned, told from the log of another one.

A policy that learns is run along the log in two ways. *Replay*: it chooses for itself, and a row counts only where it
chose what was logged; it learns from those rows alone, so it lives through a shorter stream that it could have met
itself (Li et al. 2011; rows of probable arms are thinned, so logs need not be uniform). *Off-policy*: it learns from
every row, and the probability it gave to the logged arm before that row becomes an importance weight.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from filtax import checks
from filtax.bandits.border import check_arms, check_key, check_method, check_pair, check_policy
from filtax.bandits.estimates import Estimate, doubly_robust, ips, mean_of, snips
from filtax.bandits.log import Log
from filtax.bandits.play import with_room
from filtax.bandits.rounds import furnish, learn, look
from filtax.state import State

__all__ = ["evaluate_log", "replay"]


def replay(
    log: Log,
    method: Any,
    policy: Any,
    state: State,
    *,
    key: Array,
    shared: bool = False,
    level: float = 0.95,
    unit: tuple[float, float] = (0.0, 1.0),
) -> Estimate:
    """Mean reward of a learning policy by replay: it counts, and learns from, the rows where it agrees with the log.

    The arguments are those of `evaluate_log`.

    >>> from filtax.bandits import stack, thompson, usual
    >>> method, start = usual()
    >>> log = Log(("a", "b"), np.array([0, 1] * 50), np.array([1.0, 0.0] * 50), np.full(100, 0.5))
    >>> replay(log, method, thompson(), stack([method.init(**start)] * 2), key=jax.random.key(0)).value > 0.8
    True
    """
    policy, state = _ready(log, method, policy, state, key, shared, unit)
    counted = _replay(method, policy, state, *_rows(log, unit), float(log.probability.min()), key, shared=shared)
    return mean_of(log.reward[np.asarray(counted)], level=level)


def evaluate_log(
    log: Log,
    method: Any,
    policy: Any,
    state: State,
    *,
    key: Array,
    shared: bool = False,
    level: float = 0.95,
    unit: tuple[float, float] = (0.0, 1.0),
) -> dict[str, Estimate]:
    """All estimates for one policy, beside the mean reward of what was logged.

    Args:
        log: What another policy did.
        method: From `filtax.method`.
        policy: From this package.
        state: How it begins, as for `play`.
        key: Random key.
        shared: As for `Bandit`.
        level: Of the intervals.
        unit: (shift, scale): the method learns from (reward - shift) / scale. Estimates are of the rewards themselves.

    Returns:
        "logged", "replay", "ips", "snips" and "dr". For a policy that learns, the last three are the mean over rows of
        the value of what it was at that row, after it had learned from all rows before.

    >>> from filtax.bandits import stack, thompson, usual
    >>> method, start = usual()
    >>> log = Log(("a", "b"), np.array([0, 1] * 50), np.array([1.0, 0.0] * 50), np.full(100, 0.5))
    >>> told = evaluate_log(log, method, thompson(), stack([method.init(**start)] * 2), key=jax.random.key(0))
    >>> list(told)
    ['logged', 'replay', 'ips', 'snips', 'dr']
    """
    policy, ready = _ready(log, method, policy, state, key, shared, unit)
    *told, ok = _follow(method, policy, ready, *_rows(log, unit), key, shared=shared)
    if not np.all(ok):
        at = int(np.argmin(ok))
        raise ValueError(
            f"log: row {at + 1} has the reward {log.reward[at]:g}, which {method.name} cannot take; give a method "
            "whose likelihood allows it."
        )
    chances, expected = (np.asarray(part, np.float64) for part in told)
    expected = unit[0] + unit[1] * expected
    at = np.arange(len(log))
    own, predicted = np.clip(chances[at, log.arm], 0.0, 1.0), expected[at, log.arm]
    baseline = np.sum(chances * expected, axis=1)
    return {
        "logged": mean_of(log.reward, level=level),
        "replay": replay(log, method, policy, state, key=key, shared=shared, level=level, unit=unit),
        "ips": ips(log.reward, log.probability, own, level=level),
        "snips": snips(log.reward, log.probability, own, level=level),
        "dr": doubly_robust(log.reward, log.probability, own, predicted, baseline, level=level),
    }


def _ready(
    log: Log, method: Any, policy: Any, state: State, key: Any, shared: bool, unit: tuple[float, float]
) -> tuple[Any, State]:
    """Check what is put together, and give the state room for the rows."""
    policy = check_policy("log", policy)
    check_method("log", method)
    check_pair("log", method, policy)
    check_key("log", key)
    checks.positive("unit=(shift, scale): the scale", unit[1])
    if not len(log):
        raise ValueError("log: there is not one row; nothing can be told from it.")
    x = None if log.contexts is None else jnp.asarray(log.contexts[0])
    check_arms("log", method, state, x, len(log.arms), shared=shared)
    return policy, with_room(method, furnish(method, state, x, arms=len(log.arms) if shared else 1), len(log))


def _rows(log: Log, unit: tuple[float, float]) -> tuple:
    context = None if log.contexts is None else jnp.asarray(log.contexts)
    reward = (log.reward - unit[0]) / unit[1]
    return jnp.asarray(log.arm, jnp.int32), jnp.asarray(reward), jnp.asarray(log.probability), context


@partial(jax.jit, static_argnames=("shared",))
def _replay(
    method: Any, policy: Any, state: State, arm: Any, reward: Any, p: Any, X: Any, least: Any, key: Any, *, shared: bool
) -> Array:
    def body(carry: tuple, row: tuple) -> tuple[tuple, Array]:
        state, t = carry
        arm, reward, p, x, key = row
        of_noise, of_tie, of_thinning = jax.random.split(key, 3)
        outlook = look(method, state, x, shared=shared, draw=policy.draw)
        u = jax.random.uniform(of_tie, (), outlook.expected.dtype)
        chosen = policy.choose(outlook, policy.noise(outlook, of_noise), u, t)
        agrees = (chosen == arm) & (jax.random.uniform(of_thinning, (), p.dtype) * p < least)
        later, _ = learn(method, state, x, arm, reward, shared=shared)
        keep = lambda new, old: jnp.where(agrees, new, old)  # noqa: E731
        names = ("hypotheses", "t", "began", "refused", "conditioning_ratio")
        state = state.after(*(jax.tree.map(keep, getattr(later, n), getattr(state, n)) for n in names))
        return (state, t + agrees.astype(t.dtype)), agrees

    rows = (arm, reward, p, X, jax.random.split(key, len(arm)))
    return jax.lax.scan(body, (state, jnp.zeros((), jnp.int32)), rows)[1]


@partial(jax.jit, static_argnames=("shared",))
def _follow(
    method: Any, policy: Any, state: State, arm: Any, reward: Any, p: Any, X: Any, key: Any, *, shared: bool
) -> tuple[Array, Array, Array]:
    def body(carry: tuple, row: tuple) -> tuple[tuple, tuple]:
        state, t = carry
        arm, reward, x, key = row
        of_noise, of_chance = jax.random.split(key)
        outlook = look(method, state, x, shared=shared, draw=policy.draw)
        chances = policy.chances(outlook, policy.noise(outlook, of_noise), of_chance, t)
        state, ok = learn(method, state, x, arm, reward, shared=shared)
        return (state, t + 1), (chances, outlook.expected, ok)

    rows = (arm, reward, X, jax.random.split(key, len(arm)))
    return jax.lax.scan(body, (state, jnp.zeros((), jnp.int32)), rows)[1]
