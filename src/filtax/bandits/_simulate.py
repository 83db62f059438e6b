"""Simulations: one compiled loop runs all simulations of a method and a policy in a world.

The simulations run side by side, and the random numbers of the policy are drawn for blocks of rounds, so a round of a
small arm takes nanoseconds. Regret has two definitions, each under its own name.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key, PyTree, Shaped

from filtax import _validation as checks
from filtax.bandits._environments import World
from filtax.bandits._validation import check_arms, check_method, check_pair, check_policy
from filtax.bandits.step import allocate_memory, allocate_slots, learn, reward_posterior
from filtax.protocols import Module
from filtax.state import State


class Played(Module):
    """The arms that were pulled, and their rewards, (T, S).

    >>> Played(jnp.zeros((3, 2), jnp.int32), jnp.ones((3, 2))).total.tolist()
    [3.0, 3.0]
    """

    arm: Int[Array, "T S"]
    reward: Shaped[Array, "T S"]

    @property
    def total(self) -> Float[Array, " S"]:
        """Cumulative reward of each simulation."""
        return jnp.sum(self.reward, axis=0)


def play(
    method: Any, policy: Any, world: World, state: State, *, key: Key[Array, ""], shared: bool = False, block: int = 500
) -> Played:
    """Run a bandit through all rounds of all simulations of a world.

    Args:
        method: From `filtax.method`.
        policy: From this package, or its short name.
        world: From this package.
        state: How each simulation begins: `stack([method.init(...)] * arms)` for separate arms, `method.init(...)`
            for a shared model; or `stack` of S such, one for each simulation. RL[inf] gets slots for all rounds at
            once: RL[K] is cheaper.
        key: Random key of the policy.
        shared: As for `Bandit`.
        block: Rounds whose noise is drawn at once.

    >>> import filtax as fx
    >>> from filtax.bandits import default_method, drifting_bernoulli, stack, thompson
    >>> method, start = default_method("binary", rate=0.99)
    >>> world = drifting_bernoulli(key=jax.random.key(0), steps=20, simulations=3, arms=2)
    >>> arms = stack([method.init(**start)] * 2)
    >>> play(method, thompson(), world, arms, key=jax.random.key(1)).arm.shape
    (20, 3)
    """
    policy = check_policy("play", policy)
    check_method("play", method)
    check_pair("play", method, policy)
    checks.key("play(key=...)", key)
    rank = 0 if shared else 1
    if state.t.ndim not in (rank, rank + 1):
        raise ValueError("play: give state=stack([method.init(...)] * arms), or method.init(...) with shared=True.")
    S = state.t.shape[0] if state.t.ndim > rank else world.simulations
    if world.simulations != S:
        raise ValueError(
            f"play: there are {S} states but {world.simulations} simulations in the world; give one state for all, or "
            "one for each."
        )
    first = _contexts(world, jnp.zeros((), jnp.int32))
    x = None if first is None else first[0]
    check_arms("play", method, state, x, world.arms, shared=shared)
    state = allocate_slots(method, allocate_memory(method, state, x, arms=world.arms if shared else 1), world.steps)
    return _play(method, policy, world, state, key, shared=shared, block=max(1, min(block, world.steps)))


@partial(jax.jit, static_argnames=("shared", "block"))
def _play(method: Any, policy: Any, world: World, state: State, key: Array, *, shared: bool, block: int) -> Played:
    steps, S = world.steps, world.simulations
    blocks = -(-steps // block)
    dtype = state.conditioning_ratio.dtype
    if state.t.ndim > (0 if shared else 1):  # one for each simulation
        carry, state = state, jax.tree.map(lambda leaf: leaf[0], state)
    else:
        carry = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (S, *leaf.shape)), state)
    first = _contexts(world, jnp.zeros((), jnp.int32))
    like = reward_posterior(method, state, None if first is None else first[0], shared=shared, draw=policy.draw)

    def one(state: State, noise: PyTree, u: Array, x: Any, rewards: Array, t: Array) -> tuple[State, tuple]:
        posterior = reward_posterior(method, state, x, shared=shared, draw=policy.draw)
        arm = policy.choose(posterior, noise, u, t)
        reward = rewards[arm].astype(dtype)
        state, _ = learn(method, state, x, arm, reward, shared=shared, complete=True)
        return state, (arm, reward)

    def rounds(carry: tuple, key: Array) -> tuple[tuple, tuple]:
        state, t = carry
        of_noise, of_tie = jax.random.split(key)
        noise = policy.noise(like, of_noise, (block, S))
        u = jax.random.uniform(of_tie, (block, S), dtype)

        def body(carry: tuple, row: tuple) -> tuple[tuple, tuple]:
            state, t = carry
            at = jnp.minimum(t, steps - 1)  # the last block may be longer than the world
            x, rewards = _contexts(world, at), _rewards(world, at)
            all_at_once: Any = (
                _alone(one) if S == 1 else jax.vmap(one, in_axes=(0, 0, 0, None if x is None else 0, 0, None))
            )
            state, made = all_at_once(state, *row, x, rewards, t)
            return (state, t + 1), made

        return jax.lax.scan(body, (state, t), (noise, u))

    _, (arm, reward) = jax.lax.scan(rounds, (carry, jnp.zeros((), jnp.int32)), jax.random.split(key, blocks))
    arm, reward = (values.reshape(blocks * block, S)[:steps] for values in (arm, reward))
    return Played(arm.astype(jnp.int32), reward)


def _alone(one: Callable) -> Callable:
    """What `vmap` over one simulation would give, but a `cond` stays a `cond`: only one branch is computed."""

    def call(state: State, noise: PyTree, u: Array, x: Any, rewards: Array, t: Array) -> tuple[State, tuple]:
        first = jax.tree.map(lambda leaf: leaf[0], (state, noise, u, x, rewards))
        return jax.tree.map(lambda leaf: leaf[None], one(*first, t))

    return call


def _rewards(world: World, t: Array) -> Array:
    return world.rewards[t] if world.order is None else world.rewards[world.order[t]]


def _contexts(world: World, t: Array) -> Any:
    if world.contexts is None:
        return None
    return world.contexts[t] if world.order is None else world.contexts[world.order[t]]


def regret_of_means(world: World, played: Played) -> Float[Array, "T S"]:
    """Compute the cumulative regret against the true means: the best mean of each round, less that of the arm pulled.

    A policy that knows the means has none.

    >>> world = World(jnp.zeros((1, 1, 2)), jnp.array([[[0.25, 0.75]]]))
    >>> regret_of_means(world, Played(jnp.zeros((1, 1), jnp.int32), jnp.zeros((1, 1)))).tolist()
    [[0.5]]
    """
    means = world.of_rounds(world.means)
    taken = jnp.take_along_axis(means, played.arm[..., None], axis=-1)[..., 0]
    return jnp.cumsum(jnp.max(means, axis=-1) - taken, axis=0)


def regret_of_rewards(world: World, played: Played) -> Float[Array, "T S"]:
    """Compute the cumulative regret against the realised rewards, as the thesis plots it; no policy has none.

    >>> world = World(jnp.array([[[0.0, 1.0]]]), jnp.array([[[0.25, 0.75]]]))
    >>> regret_of_rewards(world, Played(jnp.zeros((1, 1), jnp.int32), jnp.zeros((1, 1)))).tolist()
    [[1.0]]
    """
    rewards = world.of_rounds(world.rewards).astype(played.reward.dtype)
    return jnp.cumsum(jnp.max(rewards, axis=-1) - played.reward, axis=0)
