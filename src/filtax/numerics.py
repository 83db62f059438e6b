"""Roots, logarithms and weights that stay numbers, and have slopes, at the edges of what numbers can be."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


def safe_sqrt(value: Array) -> Array:
    """Square root of what is at least 0, with a slope of 0 at 0."""
    some = value > 0.0
    return jnp.where(some, jnp.sqrt(jnp.where(some, value, 1.0)), 0.0)


def safe_log(value: Array) -> Array:
    """Logarithm of what is at least 0, with a slope of 0 at 0, where it is -inf."""
    some = value > 0.0
    return jnp.where(some, jnp.log(jnp.where(some, value, 1.0)), -jnp.inf)


def safe_scale(a: Float[Array, " N"], least: float = 0.0) -> Float[Array, ""]:
    """A number to divide finite numbers by so that their squares are finite: about the largest of them.

    It is at least `least`, and at most a fourth of 1/tiny, since XLA divides by multiplying with the inverse, and the
    inverse of a larger number is rounded to 0; the quotients are then at most 16. It has no slope: it cancels out.
    """
    largest = jnp.clip(jnp.max(jnp.abs(a)), least, 0.25 / jnp.finfo(a.dtype).tiny)
    return jax.lax.stop_gradient(jnp.where(largest > 0.0, largest, 1.0))


def normalised(log_weight: Float[Array, " C"]) -> Float[Array, " C"]:
    """Log weights that sum to one, of any that are not all -inf.

    The largest is subtracted first: beside a large score the log of the number that share it would be rounded off.
    """
    from_best = log_weight - jax.lax.stop_gradient(jnp.max(log_weight))
    return from_best - jnp.log(jnp.sum(jnp.exp(from_best)))
