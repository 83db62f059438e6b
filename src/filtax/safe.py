"""Roots, logarithms and scales that stay numbers, slopes included, at the borders of what numbers can be."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

__all__ = ["safe_log", "safe_scale", "safe_sqrt"]


def safe_sqrt(value: Array) -> Array:
    """Square root of what is at least 0, with a slope of 0 at 0.

    >>> jax.grad(safe_sqrt)(0.0).item()
    0.0
    """
    some = value > 0.0
    return jnp.where(some, jnp.sqrt(jnp.where(some, value, 1.0)), 0.0)


def safe_log(value: Array) -> Array:
    """Logarithm of what is at least 0, with a slope of 0 at 0, where it is -inf.

    >>> safe_log(jnp.array([1.0, 0.0])).tolist(), jax.grad(safe_log)(0.0).item()
    ([0.0, -inf], 0.0)
    """
    some = value > 0.0
    return jnp.where(some, jnp.log(jnp.where(some, value, 1.0)), -jnp.inf)


def safe_scale(a: Float[Array, " N"], least: float = 0.0) -> Float[Array, ""]:
    """What to divide numbers of any finite size by, so that their squares are numbers: the largest of them, about.

    It is at least `least`, and at most a fourth of 1/tiny: XLA divides by multiplying with the inverse, and the inverse
    of a larger number is rounded to 0. What is divided is then at most 16. Without a slope, which cancels out.

    >>> far = jnp.array([3e38, 0.0])
    >>> bool(jnp.all(jnp.isfinite(jnp.square(far / safe_scale(far)))))
    True
    """
    largest = jnp.clip(jnp.max(jnp.abs(a)), least, 0.25 / jnp.finfo(a.dtype).tiny)
    return jax.lax.stop_gradient(jnp.where(largest > 0.0, largest, 1.0))
