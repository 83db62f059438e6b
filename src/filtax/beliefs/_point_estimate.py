"""Belief that is a single point: the parameters, the averages that Adam keeps, and the data it learns from again.

It knows no uncertainty: its covariance is zero. So it can be moved, and pulled towards its start, but not widened.

Axes: D parameters, M data remembered, W numbers in one y.
"""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key

from filtax import _validation as checks
from filtax.protocols import Belief, Module


class Memory(Module):
    """The last M data, newest first; `weight` is 0 where there is none yet.

    >>> memory = Memory.empty(2, jnp.zeros(3), 1)
    >>> memory.put(jnp.ones(3), jnp.array([5.0]), jnp.array([True]), jnp.asarray(1.0)).Y[0].item()
    5.0
    """

    X: Array | None
    Y: Float[Array, "M W"]
    mask: Bool[Array, "M W"]
    weight: Float[Array, " M"]

    @classmethod
    def empty(cls, size: int, x: Array | None, width: int, dtype: Any = float) -> "Memory":
        """Room for `size` data like x, with `width` numbers in y."""
        X = None if x is None else jnp.zeros((size, *x.shape), x.dtype)
        return cls(X, jnp.zeros((size, width), dtype), jnp.zeros((size, width), bool), jnp.zeros(size, dtype))

    def put(self, x: Array | None, y: Array, mask: Array, weight: Array) -> "Memory":
        """Remember one datum, forget the oldest."""
        X = None if x is None or self.X is None else _shifted(x, self.X)
        return Memory(X, _shifted(y, self.Y), _shifted(mask, self.mask), _shifted(jnp.asarray(weight), self.weight))


def _shifted(new: Array, old: Array) -> Array:
    return jnp.concatenate([new[None].astype(old.dtype), old[:-1]])


class Point(Belief):
    """theta, known for certain; `slope` and `size` are Adam's averages of the gradient and of its square.

    >>> Point.start(jnp.array([1.0, 2.0])).cov.tolist()
    [[0.0, 0.0], [0.0, 0.0]]
    """

    mean: Float[Array, " D"]
    slope: Float[Array, " D"]
    size: Float[Array, " D"]
    steps: Float[Array, ""]
    memory: Memory | None

    @classmethod
    def start(cls, mean: Float[Array, " D"], memory: Memory | None = None) -> "Point":
        """Begin at a mean; nothing is known of gradients yet."""
        return cls(mean, jnp.zeros_like(mean), jnp.zeros_like(mean), jnp.zeros((), mean.dtype), memory)

    @property
    def var(self) -> Float[Array, " D"]:
        """Zero."""
        return jnp.zeros_like(self.mean)

    @property
    def cov(self) -> Float[Array, "D D"]:
        """Zero, formed on request."""
        return jnp.zeros((self.mean.size, self.mean.size), self.mean.dtype)

    def mix(self, initial: "Point", keep: Array) -> "Point":
        """Move towards `initial`, keeping the share k of the parameters."""
        return self._at(keep * self.mean + (1.0 - keep) * initial.mean)

    def sample(self, key: Key[Array, ""], shape: tuple[int, ...] = ()) -> Float[Array, "*shape D"]:
        """Draw parameters: they are all the same."""
        checks.key("sample(key=...)", key)
        return jnp.broadcast_to(self.mean, (*shape, self.mean.size))

    def _at(self, mean: Array) -> "Point":
        moved = jnp.where(jnp.isfinite(mean), mean, self.mean)
        return Point(moved, self.slope, self.size, self.steps, self.memory)
