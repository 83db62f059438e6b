r"""Right singular vectors of a small matrix by rotations of its columns, as one kernel for a CUDA device.

A library makes them by some thirty kernels, for which a small matrix waits far longer than for its arithmetic. Here one
warp does it: a thread holds a column x of A and of Q, and meets each other one once in a sweep. A pair turns until
$x^\top y = 0$ (Hestenes); the columns of A Q are then orthogonal, and their lengths the singular values.

`interpret` runs the same code on any machine, slowly, for tests.
"""

import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as gpu
from jaxtyping import Array, Float

__all__ = ["LANES", "turned"]

LANES = 32  # threads of a warp, and so most columns
SWEEPS = 12  # six to nine are needed
NEAR = 2e-6  # cosine between columns that are orthogonal in float32
ACROSS = "shfl.sync.bfly.b32 $0, $1, $2, 0x1f, 0xffffffff;"
Held = Sequence[Array]  # a number for each thread, row by row


@functools.partial(jax.jit, static_argnames="interpret")
def turned(A: Float[Array, "K K"], interpret: bool = False) -> Float[Array, "K K"]:
    """Orthogonal Q whose columns are the right singular vectors of A, largest first; of what is not finite, identity.

    >>> turned(jnp.diag(jnp.array([1.0, 9.0], jnp.float32)), interpret=True)[:, 0].tolist()
    [0.0, 1.0]
    """
    K = len(A)

    def kernel(a: Any, out: Any) -> None:
        lane = jnp.arange(LANES, dtype=jnp.int32)
        whole = [jnp.full((LANES,), r, jnp.int32) for r in range(K)]
        X = tuple(gpu.load(a.at[r, lane], mask=lane < K, other=0.0) for r in whole)
        top = jnp.max(functools.reduce(jnp.maximum, [jnp.abs(x) for x in X]))
        some = (top > 0.0) & (top < jnp.inf)
        X = tuple(jnp.where(some, x / jnp.where(some, top, 1.0), 0.0) for x in X)  # squares do not overflow
        Q = tuple((lane == r).astype(jnp.float32) for r in range(K))
        X, Q = _swept(X, Q, lane, interpret)
        for row, q in zip(whole, Q, strict=True):
            gpu.store(out.at[row, _order(_dot(X, X), lane, interpret)], q)

    shape = jax.ShapeDtypeStruct((K, LANES), jnp.float32)
    params = gpu.CompilerParams(num_warps=1, num_stages=1)
    return pl.pallas_call(kernel, out_shape=shape, grid=(1,), interpret=interpret, compiler_params=params)(A)[:, :K]


def _swept(X: Held, Q: Held, lane: Array, interpret: bool) -> tuple[Held, Held]:
    """Turn all pairs, again and again, until none turns."""

    def turn(mask: Any, held: tuple) -> tuple:
        X, Q, any_turned = held
        mask = jnp.asarray(mask, jnp.int32)
        Y = [_across(x, mask, lane, interpret) for x in X]
        a, b, both = _dot(X, X), _dot(Y, Y), _dot(X, Y)
        first = lane < (lane ^ mask)  # of two threads that both work out the same angle
        skew = jnp.abs(both) > NEAR * jnp.sqrt(a) * jnp.sqrt(b)
        half = jnp.where(first, b - a, a - b) / (2.0 * jnp.where(skew, both, 1.0))
        tan = jnp.where(skew, 1.0 / (jnp.abs(half) + jnp.sqrt(1.0 + half * half)), 0.0)
        tan = jnp.where(half < 0.0, -tan, tan)
        cos = 1.0 / jnp.sqrt(1.0 + tan * tan)
        sin = jnp.where(first, -cos * tan, cos * tan)
        less = sin / (1.0 + cos)  # cos = 1 - sin less: a small angle changes little, and that exactly
        X = tuple(x + sin * (y - less * x) for x, y in zip(X, Y, strict=True))
        Q = tuple(q + sin * (_across(q, mask, lane, interpret) - less * q) for q in Q)
        return X, Q, jnp.maximum(any_turned, skew.astype(jnp.float32))

    def sweep(held: tuple) -> tuple:
        X, Q, _, count = held
        X, Q, any_turned = jax.lax.fori_loop(1, LANES, turn, (X, Q, jnp.zeros((LANES,), jnp.float32)))
        return X, Q, jnp.max(any_turned), count + 1

    start = (X, Q, jnp.ones((), jnp.float32), jnp.zeros((), jnp.int32))
    return jax.lax.while_loop(lambda held: (held[2] > 0.0) & (held[3] < SWEEPS), sweep, start)[:2]


def _order(size: Array, lane: Array, interpret: bool) -> Array:
    """Place of each column, largest first, and in their order where equal."""
    place = jnp.zeros((LANES,), jnp.int32)
    for mask in range(1, LANES):
        other = _across(size, jnp.full((), mask, jnp.int32), lane, interpret)
        place = place + ((other > size) | ((other == size) & ((lane ^ mask) < lane))).astype(jnp.int32)
    return place


def _across(x: Array, mask: Any, lane: Array, interpret: bool) -> Array:
    """What the thread at the place `lane ^ mask` holds."""
    if interpret:
        return x[lane ^ mask]
    args, result = [x, jnp.broadcast_to(mask, x.shape)], [jax.ShapeDtypeStruct(x.shape, x.dtype)]
    return gpu.elementwise_inline_asm(ACROSS, args=args, constraints="=f,f,r", pack=1, result_shape_dtypes=result)[0]


def _dot(X: Held, Y: Held) -> Array:
    """Sum of products, in four sums that do not wait for each other."""
    sums = [jnp.zeros((LANES,), jnp.float32)] * 4
    for r, (x, y) in enumerate(zip(X, Y, strict=True)):
        sums[r % 4] = sums[r % 4] + x * y
    return (sums[0] + sums[1]) + (sums[2] + sums[3])
