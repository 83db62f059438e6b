"""What clouds of points share: a random key that travels with them, and how points move, mix and are drawn again.

Time passes without a key being handed over, so a cloud carries its own. It is kept as eight bytes: every float dtype
holds a byte exactly, so the key survives selection, batching and the packing of `filtax.compile`. A forecast and the
step after it start from the same key and meet the same noise; hypotheses that start alike share theirs.

Axes: S points, D parameters.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key, UInt8

__all__ = ["draw_again", "each_member", "moved", "noise_like", "partners", "seal", "take_key"]

IMPL = "threefry2x32"


def seal(key: Key[Array, ""]) -> UInt8[Array, "8"]:
    """Turn a random key of any kind into eight bytes.

    >>> seal(jax.random.key(0)).shape
    (8,)
    """
    return _bytes(jax.random.bits(key, (2,), jnp.uint32))


def take_key(sealed: UInt8[Array, "8"]) -> tuple[UInt8[Array, "8"], Key[Array, ""]]:
    """Split a key to use off the bytes; return the bytes that remain, and the key.

    >>> rest, key = take_key(seal(jax.random.key(0)))
    >>> bool(jnp.all(rest == take_key(seal(jax.random.key(0)))[0]))
    True
    """
    words = jax.lax.bitcast_convert_type(sealed.reshape(2, 4), jnp.uint32)
    rest, key = jax.random.split(jax.random.wrap_key_data(words, impl=IMPL))
    return _bytes(jax.random.key_data(rest)), key


def _bytes(words: Array) -> Array:
    return jax.lax.bitcast_convert_type(words, jnp.uint8).reshape(8)


def noise_like(key: Key[Array, ""], members: Float[Array, "S D"], root: Array) -> Float[Array, "S D"]:
    """Draw N(0, root rootᵀ) for each member; root (D, D), or (D,) or () standard deviations.

    >>> noise_like(jax.random.key(0), jnp.ones((3, 2)), jnp.zeros(())).tolist()
    [[0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]
    """
    e = jax.random.normal(key, members.shape, members.dtype)
    if root.ndim == 2:
        return jnp.matmul(e, root.T, precision="highest")
    return e * jnp.broadcast_to(root, members.shape[1:])[None, :]


def moved(members: Float[Array, "S D"], F: Array | None, b: Array | None) -> Float[Array, "S D"]:
    """Push each member through theta -> F theta + b; F (D, D), (D,) or ().

    >>> moved(jnp.ones((1, 2)), 2.0 * jnp.eye(2), jnp.ones(2)).tolist()
    [[3.0, 3.0]]
    """
    if F is not None and F.ndim == 2:
        members = jnp.matmul(members, F.T, precision="highest")
    elif F is not None:
        members = members * jnp.broadcast_to(F, members.shape[1:])[None, :]
    return members if b is None else members + jnp.broadcast_to(b, members.shape[1:])[None, :]


def draw_again(key: Key[Array, ""], log_weight: Float[Array, " N"], count: int) -> Int[Array, " S"]:
    """Choose `count` points by systematic resampling: point n comes floor(count w) or ceil(count w) times.

    One uniform number shifts a comb of evenly spaced teeth along the cumulative weights.

    >>> draw_again(jax.random.key(0), jnp.log(jnp.array([0.25, 0.75])), 4).tolist()
    [0, 1, 1, 1]
    """
    total = jnp.cumsum(jnp.exp(log_weight - jnp.max(log_weight)))
    dtype = log_weight.dtype
    teeth = (jnp.arange(count, dtype=dtype) + jax.random.uniform(key, (), dtype)) / count
    teeth = jnp.minimum(teeth, 1.0 - jnp.finfo(dtype).eps)  # rounding must not reach beyond the last point
    chosen = jnp.searchsorted(jax.lax.stop_gradient(total / total[-1]), teeth, side="right")
    return jnp.minimum(chosen, log_weight.size - 1)


def partners(key: Key[Array, ""], log_weight: Float[Array, " N"], count: int) -> Int[Array, " S"]:
    """Choose as `draw_again` does, in random order: a partner for each of `count` points.

    >>> sorted(partners(jax.random.key(0), jnp.zeros(3), 3).tolist())
    [0, 1, 2]
    """
    of_choice, of_order = jax.random.split(key)
    return jax.random.permutation(of_order, draw_again(of_choice, log_weight, count))


def each_member(f: Callable[[Array], Array], members: Float[Array, "S D"]) -> Float[Array, "S D"]:
    """Apply a function from (D,) to (D,) to each member, and refuse one of another shape."""
    out = jax.vmap(f)(members)
    if out.shape != members.shape:
        raise ValueError(
            f"nonlinear_dynamics: f returned shape {out.shape[1:]} for parameters of shape {members.shape[1:]}."
        )
    return out
