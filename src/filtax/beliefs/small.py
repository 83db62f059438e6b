r"""The small algebra of a low-rank belief as kernels in CUDA C, one block each: what it costs is its launches.

A library needs two to sixty launches for each of these, and each waits for the one before it. A triangular system is
solved by a warp for each right-hand side, whose threads hold x and pass its entries around; the rest is in shared
memory. Everything float32, and no more rounded than a library's.

`algebra` chooses when to use these.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from filtax.beliefs import cuda

__all__ = ["MOST", "explained", "fits", "judged", "lowered", "placed", "rooted", "semiroot", "settled", "turned"]

MOST = 128  # rows of U, and O times this must fit the shared memory
SWEEPS = 10  # of rotations; three to six are needed
ROOM = 220 * 1024  # bytes of shared memory that a block may have


def explained(s: Array, core: Array, root: Array, used: Array) -> tuple[Array, Array, Array]:
    r"""$h = L^{-1}R^\top s$ (K, O), $(Rf)^\top$ (O, K) and $f^\top f$ with $f = L^{-\top}h$, of the rows in use."""
    K, O = s.shape
    groups, threads, shared = _sizes(K, O)
    shapes = _floats(K, O), _floats(O, K), _floats(O, O)
    sizes = dict(K=K, O=O, GROUPS=groups, THREADS=threads)
    return _launch("explained", shapes, (1,), (threads,), shared, **sizes)(s, core, root, used)


def fits(K: int, O: int) -> bool:
    """Whether the kernels have room for this many rows and outputs."""
    return 0 < K <= MOST and 0 < O <= 32 and _sizes(K, O)[-1] <= ROOM


def _sizes(K: int, O: int) -> tuple[int, int, int]:
    rows, wide = -(-K // 32) * 32, -(-O // 4) * 4
    groups = 8 if O <= 16 else 4
    threads = min(1024, max(groups * rows, 32 * O))
    shared = 4 * (2 * rows * wide + O * groups * rows + rows * (K | 1) + K * (K | 1) + rows)
    return groups, threads, shared


def judged(spread: Array, B: Array, r: Array) -> tuple[Array, Array, Array, Array]:
    r"""L, $L^{-1}r$, $r^\top S^{-1}B$ of $S = I + B\,\mathrm{spread}\,B^\top = LL^\top$, and whether all is finite."""
    O = len(r)
    shapes = _floats(O, O), _floats(O), _floats(O), jax.ShapeDtypeStruct((), jnp.bool_)
    return _launch("judged", shapes, (1,), (32,), O=O)(spread, B, r)


def placed(core: Array, root: Array, used: Array, taken: Array, B: Array, half: Array, L: Array) -> tuple[Array, Array]:
    """R and L with the rows of a new datum, written over the old ones."""
    K, O = half.shape
    shapes = _floats(K, K), _floats(K, K)
    call = _launch("placed", shapes, (1,), (512,), aliases={0: 0, 1: 1}, K=K, O=O)
    return tuple(call(core, root, used, taken, B, half, L))


def rooted(lost: Array) -> Array:
    """Cholesky factor of I + lost; a pivot that rounding brought below one is one."""
    K = len(lost)
    return _launch("rooted", _floats(K, K), (1,), (1024,), 4 * K * (K | 1), K=K)(lost)


def lowered(C: Array, Y: Array) -> Array:
    """C⁻¹ Y for lower triangular C (K, K) and many columns (K, M)."""
    (K, M), warps = Y.shape, 8
    rows = -(-K // 32) * 32
    shared = 4 * (rows * (K | 1) + rows * (warps | 1) + rows)
    return _launch("lowered", _floats(K, M), (-(-M // warps),), (32 * warps,), shared, K=K, M=M, WARPS=warps)(C, Y)


def settled(core: Array, root: Array, inner: Array, scale: Array) -> tuple[Array, Array]:
    """R and L after a cut, written over the old ones: a scale, and the root of I + inner, each in an identity."""
    K, rank = len(core), len(inner)
    shapes, sizes = (_floats(K, K), _floats(K, K)), dict(K=rank, WHOLE=K)
    kernel = cuda.kernel(
        cuda.source("rooted"), "settled", shapes, (1,), (1024,), 4 * rank * (rank | 1), {0: 0, 1: 1}, **sizes
    )
    return tuple(kernel(core, root, inner, scale))


def turned(G: Array) -> Array:
    """Orthogonal Q (K, K) whose columns are eigenvectors of G, largest first; identity where G is not finite, or zero.

    One block turns pairs of rows and columns of G, all disjoint ones at once (Jacobi), and writes the angles down;
    then a warp for each row of Q turns that.
    """
    K = len(G)
    N, pairs = K + K % 2, (K + 1) // 2
    blocks = pairs * (pairs + 1) // 2
    threads = -(-max(-(-blocks // -(-blocks // 1024)), 64) // 32) * 32
    whole = jax.ShapeDtypeStruct((), jnp.int32), jax.ShapeDtypeStruct((K,), jnp.int32)
    given = _floats(SWEEPS * (N - 1), pairs, 2), *whole
    sizes = dict(K=K, THREADS=threads, SWEEPS=SWEEPS)
    found = _launch("angles", given, (1,), (threads,), 4 * (4 * blocks + 1), **sizes)(G)
    warps = 4 if K > 32 else 1
    return _launch("rotated", _floats(K, K), (-(-K // warps),), (32 * warps,), K=K, WARPS=warps)(*found)


@jax.custom_batching.custom_vmap
def semiroot(A: Array) -> Array:
    """Lower triangular L with L Lᵀ = A to rounding, of semidefinite matrices (..., O, O): `linalg.psd_root`."""
    return _launch("semiroot", _floats(*A.shape), (math.prod(A.shape[:-2]),), (32,), O=A.shape[-1])(A)


@semiroot.def_vmap
def _semiroot_many(_: int, __: list, A: Array) -> tuple[Array, bool]:
    return semiroot(A), True


def _floats(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def _launch(name: str, *given: Any, **sizes: Any) -> Any:
    return cuda.kernel(cuda.source(name), name, *given, **sizes)
