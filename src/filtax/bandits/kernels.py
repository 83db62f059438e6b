"""The rounds, compiled once for a shape, and how their states become plain arrays and come back."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from filtax.bandits import rounds
from filtax.state import State

__all__ = ["age", "chances", "decide", "learn", "named", "unnamed"]


@partial(jax.jit, static_argnames=("shared",))
def decide(
    method: Any, policy: Any, state: State, x: Any, key: Array, t: Array, *, shared: bool
) -> tuple[Array, Array]:
    """Index of the chosen arm, and the probability it was chosen with."""
    outlook = rounds.look(method, state, x, shared=shared, draw=policy.draw)
    of_noise, of_tie, of_chance = jax.random.split(key, 3)
    noise = policy.noise(outlook, of_noise)
    u = jax.random.uniform(of_tie, (), outlook.expected.dtype)
    arm = policy.choose(outlook, noise, u, t)
    return arm, policy.propensity(outlook, arm, policy.chances(outlook, noise, of_chance, t))


@partial(jax.jit, static_argnames=("shared",))
def chances(method: Any, policy: Any, state: State, x: Any, key: Array, t: Array, *, shared: bool) -> Array:
    """Probability of each arm to be chosen."""
    outlook = rounds.look(method, state, x, shared=shared, draw=policy.draw)
    of_noise, _, of_chance = jax.random.split(key, 3)
    return policy.chances(outlook, policy.noise(outlook, of_noise), of_chance, t)


@partial(jax.jit, static_argnames=("shared",))
def learn(method: Any, state: State, x: Any, arm: Array, reward: Array, *, shared: bool) -> tuple[State, Array]:
    """The state after one reward, and whether it was taken."""
    return rounds.learn(method, state, x, arm, reward, shared=shared)


@partial(jax.jit, static_argnames=("shared",))
def age(method: Any, state: State, x: Any, *, shared: bool) -> State:
    """The state after a tick without a reward."""
    return rounds.age(method, state, shared=shared, x=x)


def named(prefix: str, tree: Any) -> dict[str, np.ndarray]:
    """The leaves of a pytree as numpy arrays by their paths; a random key as its words."""
    paths = jax.tree_util.tree_flatten_with_path(tree)[0]
    return {f"{prefix}{jax.tree_util.keystr(path)}": _plain(leaf) for path, leaf in paths}


def unnamed(prefix: str, arrays: dict[str, np.ndarray], like: Any) -> Any:
    """The pytree again, of the structure of another."""
    paths, structure = jax.tree_util.tree_flatten_with_path(like)
    leaves = [_restored(arrays[f"{prefix}{jax.tree_util.keystr(path)}"], old) for path, old in paths]
    return jax.tree.unflatten(structure, leaves)


def _plain(leaf: Any) -> np.ndarray:
    is_key = jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return np.asarray(jax.random.key_data(leaf) if is_key else leaf)


def _restored(array: np.ndarray, like: Any) -> Array:
    is_key = jnp.issubdtype(like.dtype, jax.dtypes.prng_key)
    return jax.random.wrap_key_data(jnp.asarray(array)) if is_key else jnp.asarray(array)
