"""Simulations: worlds to try bandits in, a loop that runs all simulations of a method in one, and the regret.

A world holds S simulations side by side with all rewards drawn beforehand, so that every method meets the same rewards
and comparisons are paired. The random numbers of the policy are drawn for blocks of rounds, so a round of a small arm
takes nanoseconds. Axes: T rounds, S simulations, A arms, M features, N rows of a table.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key, PyTree, Shaped

from filtax import _validation as checks
from filtax.bandits._validation import check_arms, checked_policy
from filtax.bandits.step import allocate_memory, allocate_slots, learn, reward_posterior
from filtax.protocols import Module
from filtax.state import State


class World(Module):
    """All rewards of all arms, drawn beforehand, and their true means.

    Attributes:
        rewards: What each arm would pay, (T, S, A), or (N, A) of a table.
        means: Their expectations, of the same shape.
        contexts: (T, S, ...) or (N, ...); None without contexts.
        order: Rows of the table in the order of each simulation, (T, S); None if it is no table.

    >>> world = drifting_bernoulli(key=jax.random.key(0), steps=5, simulations=2, arms=3)
    >>> world.steps, world.simulations, world.arms
    (5, 2, 3)
    """

    rewards: Shaped[Array, "*N A"]
    means: Float[Array, "*N A"]
    contexts: Shaped[Array, "..."] | None = None
    order: Int[Array, "T S"] | None = None

    @property
    def steps(self) -> int:
        """Rounds T."""
        return (self.rewards if self.order is None else self.order).shape[0]

    @property
    def simulations(self) -> int:
        """Simulations S."""
        return (self.rewards if self.order is None else self.order).shape[1]

    @property
    def arms(self) -> int:
        """Arms A."""
        return self.rewards.shape[-1]

    def of_rounds(self, values: Array) -> Array:
        """Return rewards or means by round, (T, S, A).

        >>> world = table(jnp.eye(2), jnp.eye(2), key=jax.random.key(0), steps=3, simulations=4)
        >>> world.of_rounds(world.means).shape
        (3, 4, 2)
        """
        return values if self.order is None else values[self.order]

    def at(self, t: Array | int) -> tuple[Array | None, Array]:
        """Return the contexts of round t, (S, ...) or None, and its rewards, (S, A).

        >>> drifting_bernoulli(key=jax.random.key(0), steps=5, simulations=2, arms=3).at(0)[1].shape
        (2, 3)
        """
        row = t if self.order is None else self.order[t]
        return None if self.contexts is None else self.contexts[row], self.rewards[row]


def drifting_bernoulli(
    *, key: Key[Array, ""], steps: int = 10_000, simulations: int = 100, arms: int = 10, sd: float = 0.03
) -> World:
    """Draw arms that pay 1 with a probability that walks between 0 and 1 (thesis, experiment:bandits).

    p_0 ~ U[0, 1], p_t = min(max(p_{t-1} + sd Z_t, 0), 1); the first round is paid by p_1. The default is that of the
    text of the thesis.

    >>> world = drifting_bernoulli(key=jax.random.key(0), steps=4, simulations=2)
    >>> world.rewards.shape, str(world.rewards.dtype)
    ((4, 2, 10), 'int8')
    """
    _check_sizes("drifting_bernoulli", steps=steps, simulations=simulations, arms=arms)
    checks.positive("drifting_bernoulli(sd=...)", sd, zero=True)
    of_start, of_walk, of_reward = jax.random.split(key, 3)
    start = jax.random.uniform(of_start, (simulations, arms), jnp.float32)

    def move(p: Array, key: Array) -> tuple[Array, Array]:
        p = jnp.clip(p + sd * jax.random.normal(key, p.shape, p.dtype), 0.0, 1.0)
        return p, p

    means = jax.lax.scan(move, start, jax.random.split(of_walk, steps))[1]
    rewards = jax.random.uniform(of_reward, means.shape, means.dtype) < means
    return World(rewards.astype(jnp.int8), means)


def wheel(
    *,
    key: Key[Array, ""],
    steps: int = 2000,
    simulations: int = 10,
    delta: float = 0.5,
    means: tuple[float, float, float] = (1.2, 1.0, 50.0),
    sd: float = 0.01,
) -> World:
    """Draw the wheel (Riquelme, Tucker and Snoek 2018): five arms, four of which pay well in one quadrant each.

    Contexts are uniform in the unit disc, with a constant as third feature. Arm 0 has the mean `means[0]` everywhere,
    the others `means[1]`, except that beyond the radius delta the arm of the quadrant has `means[2]`.

    >>> wheel(key=jax.random.key(0), steps=6, simulations=2).contexts.shape
    (6, 2, 3)
    """
    _check_sizes("wheel", steps=steps, simulations=simulations)
    checks.share("wheel(delta=...)", delta)
    checks.positive("wheel(sd=...)", sd, zero=True)
    of_radius, of_angle, of_noise = jax.random.split(key, 3)
    radius = jnp.sqrt(jax.random.uniform(of_radius, (steps, simulations)))
    angle = jax.random.uniform(of_angle, (steps, simulations), maxval=2.0 * np.pi)
    quadrant = jnp.floor(angle / (0.5 * np.pi)).astype(jnp.int32)
    usual = jnp.asarray([means[0]] + 4 * [means[1]], radius.dtype)
    rich = (jnp.arange(5, dtype=jnp.int32)[None, None] == 1 + quadrant[..., None]) & (radius > delta)[..., None]
    true = jnp.where(rich, jnp.asarray(means[2], radius.dtype), usual[None, None])
    rewards = true + sd * jax.random.normal(of_noise, true.shape, true.dtype)
    contexts = jnp.stack([radius * jnp.cos(angle), radius * jnp.sin(angle), jnp.ones_like(radius)], axis=-1)
    return World(rewards, true, contexts)


def table(
    contexts: Any,
    rewards: Any,
    *,
    key: Key[Array, ""],
    steps: int | None = None,
    simulations: int = 1,
    means: Any = None,
) -> World:
    """Turn a table into a world: each simulation visits its rows in an order of its own.

    Args:
        contexts: (N, ...), one row for each case.
        rewards: (N, A), what each arm would pay. The one-hot labels of a classification make it a bandit.
        key: Random key of the orders.
        steps: Rounds; the length of the table by default. Beyond it, rows are visited again, in a new order.
        simulations: How many orders.
        means: Expectations of the rewards where they are not certain.

    >>> world = table(jnp.eye(3), jnp.eye(3), key=jax.random.key(0), simulations=2)
    >>> world.order.shape
    (3, 2)
    """
    rewards = jnp.asarray(rewards)
    if rewards.ndim != 2 or not rewards.size:
        raise ValueError(f"table: rewards have shape {rewards.shape}; give (N, A), one column for each arm.")
    rows = int(rewards.shape[0])
    length = rows if steps is None else steps
    _check_sizes("table", steps=length, simulations=simulations)
    if np.shape(contexts)[0] != rows:
        raise ValueError(
            f"table: there are {np.shape(contexts)[0]} contexts but {rows} rows of rewards; row n of each must belong "
            "together."
        )
    if means is not None and np.shape(means) != rewards.shape:
        raise ValueError(f"table: means have shape {np.shape(means)} but rewards have {rewards.shape}; give the same.")
    for name, values in (("contexts", contexts), ("rewards", rewards), ("means", means)):
        if values is not None:
            checks.finite(f"table({name}=...)", values, flags=True)
    passes = -(-length // rows)
    keys = jax.random.split(key, (simulations, passes))
    orders = jax.vmap(jax.vmap(lambda key: jax.random.permutation(key, rows)))(keys)
    order = orders.reshape(simulations, passes * rows)[:, :length].T.astype(jnp.int32)
    true = rewards if means is None else jnp.asarray(means)
    return World(rewards, checks.floats(true), jnp.asarray(contexts), order)


def _check_sizes(call: str, **sizes: Any) -> None:
    for name, value in sizes.items():
        checks.whole(f"{call}({name}=...)", value, least=1)


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
    policy = checked_policy("play", method, policy)
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
    contexts, _ = world.at(0)
    x = None if contexts is None else contexts[0]
    check_arms("play", method, state, x, world.arms, shared=shared)
    state = allocate_slots(method, allocate_memory(method, state, x), world.steps)
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
    contexts, _ = world.at(0)
    first = None if contexts is None else contexts[0]
    like = reward_posterior(method, state, first, draw=policy.draw)

    def one(state: State, noise: PyTree, u: Array, x: Any, rewards: Array, t: Array) -> tuple[State, tuple]:
        posterior = reward_posterior(method, state, x, draw=policy.draw)
        arm = policy.choose(posterior, noise, u, t)
        reward = rewards[arm].astype(dtype)
        state, _ = learn(method, state, x, arm, reward, complete=True)
        return state, (arm, reward)

    def rounds(carry: tuple, key: Array) -> tuple[tuple, tuple]:
        state, t = carry
        of_noise, of_tie = jax.random.split(key)
        noise = policy.noise(like, of_noise, (block, S))
        u = jax.random.uniform(of_tie, (block, S), dtype)

        def body(carry: tuple, row: tuple) -> tuple[tuple, tuple]:
            state, t = carry
            x, rewards = world.at(jnp.minimum(t, steps - 1))  # the last block may be longer than the world
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
