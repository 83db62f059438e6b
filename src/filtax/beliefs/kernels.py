r"""Passes over a tall basis as kernels for a CUDA device, all as exact as float32.

A thread owns one parameter at a time and keeps the sums that it contributes to in registers; what bounds them is
reading U once. A product of a library would read it padded, or in an order that suits a square matrix. Sums over
parameters end as one partial sum for each program, which are then added up. Only a Gram matrix has so many products for
each number read that tensor cores pay: there, each float32 is taken as the sum of two TF32 numbers, and three of the
four products are made (the fourth is below the rounding).

`interpret` runs the same code on any machine, slowly, for tests. `passes` chooses when to use these.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as gpu
from jaxtyping import Array

__all__ = ["MOST_OUTPUTS", "MOST_ROWS", "gram", "mixed", "shown", "swept"]

MOST_OUTPUTS = 32  # more do not fit the registers
MOST_ROWS = 128  # of a Gram matrix, whose sums a processor holds
THREE = jax.lax.DotAlgorithmPreset.TF32_TF32_F32_X3
PROCESSORS, WARP = 132, 32
REGISTERS = 110  # for sums, and for two tiles: one that is multiplied, one on its way
AT_ONCE = 10  # rows that a thread asks for before it waits


@functools.partial(jax.jit, static_argnames="interpret")
def shown(U: Array, J: Array, used: Array, weight: Array | None = None, interpret: bool = False) -> Array:
    r"""$U\,\mathrm{diag}(w)\,J^\top$ (K, O): a tile is 32 parameters, and each of its warps has its own rows of U."""
    (K, D), O = U.shape, J.shape[0]
    warps = 16 if K > 56 else 8 if K > 24 else 4
    each = max(1, min(-(-K // warps), 16, (REGISTERS - 2 * O) // (O + 2)))  # rows of a warp
    groups = -(-K // (warps * each))
    programs = min(PROCESSORS * 16 // warps, -(-D // WARP))
    tiles = -(-D // (WARP * programs))

    def kernel(u: Any, j: Any, n: Any, *rest: Any) -> None:
        at, group, end = pl.program_id(0), pl.program_id(1), n[0]
        row = group * (warps * each) + jnp.arange(warps, dtype=jnp.int32)[:, None]

        def fetch(tile: Any) -> tuple:
            d = (tile * programs + at) * WARP + jnp.arange(WARP, dtype=jnp.int32)[None, :]
            inside, wide = d < D, jnp.broadcast_to(d, (warps, WARP))
            all_inside = jnp.broadcast_to(inside, wide.shape)
            place = [jnp.broadcast_to(row + warps * r, wide.shape) for r in range(each)]
            us = tuple(gpu.load(u.at[p, wide], mask=inside & (p < end), other=0.0) for p in place)
            js = tuple(gpu.load(j.at[o, wide], mask=all_inside, other=0.0) for o in range(O))
            return us, js if weight is None else tuple(x * _of(rest[0], wide, all_inside) for x in js)

        def body(tile: Any, carry: tuple) -> tuple:
            sums, us, js = carry
            later = fetch(tile + 1)  # before this one is waited for
            return tuple(sums[r * O + o] + us[r] * js[o] for r in range(each) for o in range(O)), *later

        zero = jnp.zeros((warps, WARP), jnp.float32)
        sums = jax.lax.fori_loop(0, tiles, body, ((zero,) * (each * O), *fetch(0)))[0]
        for r in range(each):
            for o in range(O):
                gpu.store(
                    rest[-1].at[at, group, r, o, jnp.arange(warps, dtype=jnp.int32)], jnp.sum(sums[r * O + o], axis=1)
                )

    given = (U, J, jnp.reshape(used, (1,)), *(() if weight is None else (weight,)))
    parts = _call(kernel, (programs, groups, each, O, warps), (programs, groups), warps, interpret)(*given)
    return parts.sum(0).transpose(0, 1, 3, 2).reshape(groups * each * warps, O)[:K]


@functools.partial(jax.jit, static_argnames="interpret")
def swept(U: Array, J: Array, V: Array, c: Array, used: Array, interpret: bool = False) -> Array:
    """J diag(V) - c U (O, D): a thread sums over the rows in use, and J is what it starts with."""
    return _summed(U, -c, jnp.reshape(used, (1,)), J, jnp.reshape(V, (-1,)), interpret)


@functools.partial(jax.jit, static_argnames="interpret")
def mixed(c: Array, J: Array, interpret: bool = False) -> Array:
    """The same without a start: c J (N, D)."""
    return _summed(J, c, jnp.full((1,), len(J), jnp.int32), None, None, interpret)


@functools.partial(jax.jit, static_argnames=("first", "interpret"))
def gram(U: Array, weight: Array | None = None, first: int | None = None, interpret: bool = False) -> Array:
    r"""$U\,\mathrm{diag}(w)\,U^\top$ of the first rows of U: a program adds up the products of its tiles."""
    K, D = len(U) if first is None else first, U.shape[1]
    padded, wide = max(16, 1 << (K - 1).bit_length()), 64
    programs = min(PROCESSORS * (1 if padded > 64 else 2), -(-D // wide))
    exact = jax.lax.DotAlgorithmPreset.F32_F32_F32 if interpret else THREE

    def kernel(u: Any, *rest: Any) -> None:
        at = pl.program_id(0)
        row = jnp.arange(padded, dtype=jnp.int32)[:, None]

        def body(tile: Any, total: Array) -> Array:
            d = (tile * programs + at) * wide + jnp.arange(wide, dtype=jnp.int32)[None, :]
            place = jnp.broadcast_to(row, (padded, wide)), jnp.broadcast_to(d, (padded, wide))
            part = gpu.load(u.at[place], mask=(row < K) & (d < D), other=0.0)
            other = part if weight is None else part * _of(rest[0], d, d < D)
            return total + jax.lax.dot_general(
                other, part, (((1,), (1,)), ((), ())), precision=exact, preferred_element_type=jnp.float32
            )

        tiles = -(-D // (wide * programs))
        rest[-1][at] = jax.lax.fori_loop(0, tiles, body, jnp.zeros((padded, padded), jnp.float32))

    given = (U,) if weight is None else (U, weight)
    shape, warps = (programs, padded, padded), 8 if padded > 64 else 4
    return _call(kernel, shape, (programs,), warps, interpret, stages=3)(*given).sum(0)[:K, :K]


def _summed(U: Array, c: Array, used: Array, J: Array | None, V: Array | None, interpret: bool) -> Array:
    """J diag(V) + c U, or c U alone."""
    (K, D), N = U.shape, c.shape[0]
    wide = 512 if N <= 16 else 256  # parameters of a program of four warps
    at_once = min(AT_ONCE, K)

    def kernel(u: Any, factor: Any, n: Any, *rest: Any) -> None:
        d = pl.program_id(0) * wide + jnp.arange(wide, dtype=jnp.int32)
        inside, end = d < D, n[0]
        sums = (jnp.zeros((wide,), jnp.float32),) * N
        if V is not None:
            scale = rest[1][0] if V.size == 1 else _of(rest[1], d, inside)
            sums = tuple(gpu.load(rest[0].at[o, d], mask=inside, other=0.0) * scale for o in range(N))

        def body(step: Any, sums: tuple) -> tuple:
            for k in range(at_once):
                at = step * at_once + k
                row = gpu.load(u.at[at, d], mask=inside & (at < end), other=0.0)
                sums = tuple(sums[o] + factor[at, o] * row for o in range(N))
            return sums

        sums = jax.lax.fori_loop(0, (end + at_once - 1) // at_once, body, sums)
        for o in range(N):
            gpu.store(rest[-1].at[o, d], sums[o], mask=inside)

    factor = jnp.pad(c.T, ((0, -K % at_once), (0, 0)))
    given = (U, factor, used, *(() if J is None else (J, V)))
    return _call(kernel, (N, D), (-(-D // wide),), 4, interpret)(*given)


def _of(vector: Any, place: Array, inside: Array) -> Array:
    return gpu.load(vector.at[place], mask=inside, other=0.0)


def _call(
    kernel: Any, shape: tuple[int, ...], grid: tuple[int, ...], warps: int, interpret: bool, stages: int = 2
) -> Any:
    return pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct(shape, jnp.float32),
        grid=grid,
        interpret=interpret,
        compiler_params=gpu.CompilerParams(num_warps=warps, num_stages=stages),
    )
