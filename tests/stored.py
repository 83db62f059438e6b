"""What the tests of the store share: a small state, and what it means that every bit came back."""

import jax
import jax.numpy as jnp
import numpy as np

SMALL = {"mean": np.array([0.5, -np.inf, np.nan]), "t": 7, "on": True}


def bits(leaf):
    if isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    return np.asarray(leaf).dtype, np.asarray(leaf).shape, np.asarray(leaf).tobytes()


def same(a, b):
    assert jax.tree.structure(a) == jax.tree.structure(b)
    for left, right in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        assert type(left) is type(right)
        assert bits(left) == bits(right)
