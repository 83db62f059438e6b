"""Worlds to try bandits in: pure functions of a key and a few numbers, with all rewards drawn beforehand.

A world holds S simulations side by side, so that every method meets the same rewards and comparisons are paired.
Axes: T rounds, S simulations, A arms, M features, N rows of a table.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key, Shaped

from filtax import _validation as checks
from filtax.protocols import Module


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
    return World(
        rewards,
        true.astype(jnp.result_type(float) if true.dtype.kind in "iu" else true.dtype),
        jnp.asarray(contexts),
        order,
    )


def _check_sizes(call: str, **sizes: Any) -> None:
    for name, value in sizes.items():
        checks.whole(f"{call}({name}=...)", value, least=1)
