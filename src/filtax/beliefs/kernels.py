r"""Passes over a tall basis as kernels for a CUDA device, all as exact as float32.

A thread owns one parameter at a time and keeps the sums that it contributes to in registers; what bounds them is
reading U once. A product of a library would read it padded, or in an order that suits a square matrix. Sums over
parameters end as one partial sum for each program, which are then added up. Only a Gram matrix has so many products for
each number read that tensor cores pay: there, each float32 is taken as the sum of two TF32 numbers, and three of the
four products are made (the fourth is below the rounding).

`interpret` runs the same code on any machine, slowly, for tests. `passes` chooses when to use these.
"""

import functools
import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as gpu
from jaxtyping import Array

__all__ = ["FEW", "MOST_OUTPUTS", "MOST_ROWS", "gram", "inner", "mixed", "shown", "swept"]

MOST_OUTPUTS = 32  # more do not fit the registers
FEW = 12  # rows, all of whose products a thread sums up
MOST_ROWS = 128  # of a Gram matrix, whose sums a processor holds
THREE = jax.lax.DotAlgorithmPreset.TF32_TF32_F32_X3
PROCESSORS, WARP = 132, 32
REGISTERS = 110  # for sums, and for two tiles: one that is multiplied, one on its way
AT_ONCE = 10  # rows that a thread asks for before it waits


@functools.partial(jax.jit, static_argnames="interpret")
def shown(U: Array, J: Array, used: Array, weight: Array | None = None, interpret: bool = False) -> Array:
    r"""$U\,\mathrm{diag}(w)\,J^\top$ (K, O): a tile is 32 parameters, and each of its warps has its own rows of U.

    Nothing is masked in the loop: what lies beyond the rows or parameters is read as the last of them, and left out.
    """
    (K, D), O = U.shape, J.shape[0]
    warps = 16 if K > 56 else 8 if K > 24 else 4
    each = max(1, min(-(-K // warps), 16, (REGISTERS - 2 * O) // (O + 2)))  # rows of a warp
    groups = -(-K // (warps * each))
    programs = min(PROCESSORS * 16 // warps, -(-D // WARP))
    whole = D // (WARP * programs)

    def kernel(u: Any, j: Any, n: Any, *rest: Any) -> None:
        at, group, last = pl.program_id(0), pl.program_id(1), jnp.maximum(n[0] - 1, 0)
        row = group * (warps * each) + jnp.arange(warps, dtype=jnp.int32)[:, None]
        place = [jnp.broadcast_to(jnp.minimum(row + warps * r, last), (warps, WARP)) for r in range(each)]

        def where(tile: Any) -> Array:
            return (tile * programs + at) * WARP + jnp.arange(WARP, dtype=jnp.int32)[None, :]

        def fetch(tile: Any) -> tuple:
            d = jnp.broadcast_to(jnp.minimum(where(tile), D - 1), (warps, WARP))
            us = tuple(gpu.load(u.at[p, d]) for p in place)
            js = tuple(gpu.load(j.at[o, d]) for o in range(O))
            return us, js if weight is None else tuple(x * gpu.load(rest[0].at[d]) for x in js)

        def add(sums: tuple, us: tuple, js: tuple) -> tuple:
            return tuple(sums[r * O + o] + us[r] * js[o] for r in range(each) for o in range(O))

        def body(tile: Any, carry: tuple) -> tuple:
            later = fetch(tile + 1)  # before this one is waited for
            return add(*carry), *later

        zero = jnp.zeros((warps, WARP), jnp.float32)
        sums, us, js = jax.lax.fori_loop(0, whole, body, ((zero,) * (each * O), *fetch(0)))
        sums = add(sums, us, tuple(jnp.where(where(whole) < D, x, 0.0) for x in js))
        for r, o in itertools.product(range(each), range(O)):
            spot = rest[-1].at[at, group, r, o, jnp.arange(warps, dtype=jnp.int32)]
            gpu.store(spot, jnp.sum(sums[r * O + o], axis=1))

    given = (U, J, jnp.reshape(used, (1,)), *(() if weight is None else (weight,)))
    parts = _call(kernel, (programs, groups, each, O, warps), (programs, groups), warps, interpret)(*given)
    found = parts.sum(0).transpose(0, 1, 3, 2).reshape(groups * each * warps, O)[:K]
    return jnp.where(jnp.arange(K, dtype=jnp.int32)[:, None] < used, found, 0.0)


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


@functools.partial(jax.jit, static_argnames="interpret")
def inner(P: Array, weight: Array | None = None, interpret: bool = False) -> Array:
    r"""$P\,\mathrm{diag}(w)\,P^\top$ of a few rows: a thread reads each once, and has a sum for each pair of them."""
    O, D = P.shape
    wide = 4 * WARP
    programs = min(4 * PROCESSORS, -(-D // wide))
    row, column = np.tril_indices(O)

    def kernel(p: Any, *rest: Any) -> None:
        at = pl.program_id(0)

        def fetch(tile: Any) -> tuple:
            d = (tile * programs + at) * wide + jnp.arange(wide, dtype=jnp.int32)
            xs = tuple(gpu.load(p.at[o, d], mask=d < D, other=0.0) for o in range(O))
            return xs, xs if weight is None else tuple(x * _of(rest[0], d, d < D) for x in xs)

        def body(tile: Any, carry: tuple) -> tuple:
            sums, xs, ys = carry
            later = fetch(tile + 1)
            return tuple(s + xs[a] * ys[b] for s, a, b in zip(sums, row, column, strict=True)), *later

        zero = (jnp.zeros((wide,), jnp.float32),) * len(row)
        sums = jax.lax.fori_loop(0, -(-D // (wide * programs)), body, (zero, *fetch(0)))[0]
        for place, total in enumerate(sums):
            rest[-1][at, place] = jnp.sum(total)

    given = (P,) if weight is None else (P, weight)
    half = _call(kernel, (programs, len(row)), (programs,), 4, interpret)(*given).sum(0)
    place = np.zeros((O, O), np.int32)
    place[row, column] = place[column, row] = np.arange(len(row))
    return half[place]


def _summed(U: Array, c: Array, used: Array, J: Array | None, V: Array | None, interpret: bool) -> Array:
    """J diag(V) + c U, or c U alone."""
    (K, D), N = U.shape, c.shape[0]
    wide = 256  # parameters of a program of four warps: two for each thread, which reads them together
    at_once = min(AT_ONCE, K)

    def kernel(u: Any, factor: Any, n: Any, *rest: Any) -> None:
        d = pl.program_id(0) * wide + jnp.arange(wide, dtype=jnp.int32)
        inside, end = d < D, n[0]
        sums = (jnp.zeros((wide,), jnp.float32),) * N
        if V is not None:
            scale = rest[1][0] if V.size == 1 else _of(rest[1], d, inside)
            sums = tuple(gpu.load(rest[0].at[o, d], mask=inside, other=0.0) * scale for o in range(N))

        def body(step: Any, sums: tuple) -> tuple:
            ats = [step * at_once + k for k in range(at_once)]
            rows = [gpu.load(u.at[jnp.minimum(at, end - 1), d], mask=inside, other=0.0) for at in ats]
            for at, row in zip(ats, rows, strict=True):
                sums = tuple(sums[o] + factor[at, o] * row for o in range(N))
            return sums

        sums = jax.lax.fori_loop(0, (end + at_once - 1) // at_once, body, sums)
        for o in range(N):
            gpu.store(rest[-1].at[o, d], sums[o], mask=inside)

    known = jnp.where(jnp.arange(K, dtype=jnp.int32)[:, None] < used[0], c.T, 0.0)  # instead of masks on the rows
    factor = jnp.pad(known, ((0, -K % at_once), (0, 0)))
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
