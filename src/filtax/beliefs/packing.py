"""Beliefs of low rank that are laid by without their rows, which are zero before any datum: half of a state.

Axes: D parameters, K rows.
"""

import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp

__all__ = ["compress", "decompress", "with_rows"]


def compress(self: Any) -> Any:
    """The same before any datum, without the rows of U.

    >>> from filtax.beliefs import LowRank
    >>> LowRank.start(jnp.zeros(3), jnp.ones(3), rank=2).compress().rows.shape
    (0, 3)
    """
    return eqx.tree_at(lambda belief: belief.rows, self, self.rows[:0])


def decompress(self: Any) -> Any:
    """The belief with its rows again; one that has them as it is.

    >>> from filtax.beliefs import LowRank
    >>> LowRank.start(jnp.zeros(3), jnp.ones(3), rank=2, spare=0).compress().decompress().rows.shape
    (2, 3)
    """
    if self.rows.shape[-2] == self.core.shape[-1]:
        return self
    shape = (*self.core.shape[:-1], self.mean.shape[-1])  # many in one, too
    return eqx.tree_at(lambda held: held.rows, self, jnp.zeros(shape, self.mean.dtype))


def with_rows(verb: Callable) -> Callable:
    """A method that needs them, of a belief that may have been laid by.

    >>> with_rows(len).__name__
    'len'
    """

    @functools.wraps(verb)
    def asked(self: Any, *given: Any, **named: Any) -> Any:
        return verb(self.decompress(), *given, **named)

    return asked
