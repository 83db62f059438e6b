r"""The algebra of small matrices in LoFi as CUDA kernels, one block each: their time is that of their launches.

A library needs two to sixty launches for each of these, and each waits for the one before it. A triangular system is
solved by a warp for each right-hand side, whose threads hold x and pass its entries around; the rest is in shared
memory. Everything is float32, and no more rounded than a library's. Under `vmap` there is a block for each case.
"""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from filtax._kernels import cuda

MOST = 128  # rows of U, and O times this must fit the shared memory
OUTPUTS = 32  # threads of a warp, which have a row of outputs each
SWEEPS = 10  # of rotations; five to eight are needed
Cases = tuple[int, ...]  # how many of each axis that `vmap` put in front


def fits(K: int, O: int) -> bool:
    """Whether the kernels have room for this many rows and outputs."""
    return 0 < K <= MOST and 0 < O <= OUTPUTS and _sizes(K, O)[-1] <= cuda.shared_memory()


def _batched(*axes: int) -> Callable[[Callable], Any]:
    """Have `vmap` put axes in front of the arrays of a function of (cases, *arrays); `axes` are those of one case."""

    def wrapped(one: Callable) -> Any:
        call = jax.custom_batching.custom_vmap(lambda *given: one(given[0].shape[: given[0].ndim - axes[0]], *given))

        @call.def_vmap
        def _(size: int, batched: list, *given: Array) -> tuple[Any, Any]:
            full = [
                a if some else jnp.broadcast_to(a, (size, *a.shape)) for a, some in zip(given, batched, strict=True)
            ]
            found = call(*full)
            return found, jax.tree.map(lambda _: True, found)

        call.__doc__ = one.__doc__
        return call

    return wrapped


@_batched(2, 2, 2, 0)
def explained_variance(
    cases: Cases, s: Array, cov_factor: Array, root: Array, used: Array
) -> tuple[Array, Array, Array]:
    r"""$h = S^\top s$ (K, O), $(Sh)^\top$ (O, K) and $f^\top f$ with $f = L^{-\top}h$, of the rows in use."""
    K, O = s.shape[-2:]
    groups, threads, shared = _sizes(K, O)
    shapes = _floats(*cases, K, O), _floats(*cases, O, K), _floats(*cases, O, O)
    sizes = dict(K=K, O=O, GROUPS=groups, THREADS=threads)
    return tuple(_launch("explained_variance", cases, shapes, threads, sizes, shared)(s, cov_factor, root, used))


def _sizes(K: int, O: int) -> tuple[int, int, int]:
    rows, wide = -(-K // 32) * 32, -(-O // 4) * 4
    groups = 8 if O <= 16 else 4
    threads = min(1024, max(groups * rows, 32 * O))
    shared = 4 * (2 * rows * wide + O * groups * rows + rows * (K | 1) + K * (K | 1) + rows)
    return groups, threads, shared


@_batched(2, 2, 1)
def innovation(cases: Cases, cov: Array, B: Array, r: Array) -> tuple[Array, Array, Array, Array]:
    r"""L, $L^{-1}r$, $r^\top S^{-1}B$ of $S = I + B\,\mathrm{cov}\,B^\top = LL^\top$, and whether all is finite."""
    O = r.shape[-1]
    flag = jax.ShapeDtypeStruct(cases, jnp.bool_)
    shapes = _floats(*cases, O, O), _floats(*cases, O), _floats(*cases, O), flag
    return tuple(_launch("innovation", cases, shapes, 32, dict(O=O))(cov, B, r))


@_batched(2, 2, 2, 2, 0)
def gain_correction(cases: Cases, s: Array, half: Array, cov_factor: Array, root: Array, used: Array) -> Array:
    r"""$(S(S^\top s - g))^\top$ (O, K) with $g = L^{-1}L^{-\top}h$; zero where no row is in use."""
    K, O = half.shape[-2:]
    return _launch("gain_correction", cases, _floats(*cases, O, K), 32 * O, dict(K=K, O=O))(
        s, half, cov_factor, root, used
    )


@_batched(2)
def eigenvectors(cases: Cases, G: Array) -> Array:
    """Orthogonal Q (K, K) whose columns are eigenvectors of G, largest first; identity where G is not finite, or zero.

    One block turns pairs of rows and columns of G, all disjoint ones at once (Jacobi), and writes the angles down;
    then a warp for each row of Q turns that.
    """
    K = G.shape[-1]
    N, pairs = K + K % 2, (K + 1) // 2
    blocks = pairs * (pairs + 1) // 2
    threads = -(-max(-(-blocks // -(-blocks // 1024)), 64) // 32) * 32
    whole = jax.ShapeDtypeStruct(cases, jnp.int32), jax.ShapeDtypeStruct((*cases, K), jnp.int32)
    given = _floats(*cases, SWEEPS * (N - 1), pairs, 2), *whole
    sizes = dict(K=K, THREADS=threads, SWEEPS=SWEEPS)
    found = _launch("jacobi_angles", cases, given, threads, sizes, 4 * (4 * blocks + 1))(G)
    warps = 4 if K > 32 else 1
    sizes, blocks = dict(K=K, WARPS=warps, SWEEPS=SWEEPS), -(-K // warps)
    return _launch("jacobi_apply", cases, _floats(*cases, K, K), 32 * warps, sizes, blocks=blocks)(*found)


@_batched(2)
def psd_cholesky(cases: Cases, A: Array) -> Array:
    """Lower triangular L with L Lᵀ = A to rounding, of a semidefinite matrix (O, O): `linalg.psd_root`."""
    O = A.shape[-1]
    return _launch("psd_cholesky", cases, _floats(*cases, O, O), 32, dict(O=O))(A)


def _floats(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def _launch(
    name: str,
    cases: Cases,
    shapes: Any,
    threads: int,
    sizes: dict[str, int],
    shared: int = 0,
    aliases: dict[int, int] | None = None,
    blocks: int = 1,
) -> Any:
    """Kernel of that name, with so many blocks for each case."""
    grid = blocks, math.prod(cases)
    return cuda.kernel(cuda.source(name), name, shapes, grid, (threads,), shared, aliases, **sizes)


KERNELS: dict[str, tuple[Callable[..., bool], Callable[..., Any]]] = {
    "explained_variance": (lambda s, *_: fits(*s.shape), explained_variance),
    "innovation": (lambda cov, B, r: r.size <= OUTPUTS, innovation),
    "gain_correction": (lambda s, *_: fits(*s.shape), gain_correction),
    "eigenvectors": (lambda G: 0 < len(G) <= MOST, eigenvectors),
    "psd_cholesky": (lambda A: 4 < len(A) <= OUTPUTS, psd_cholesky),
}
