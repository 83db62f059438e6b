"""Kernels in C for LoFi on a CPU: the passes over its basis U (K, D), and the algebra of small matrices between them.

XLA's products of a few long rows keep one core busy and read the rows more often than necessary; the threads of LAPACK
wait for each other at full speed on cores that the passes need. Here XLA's own threads share each pass, and a row is
read once: a step of LoFi takes less than half the time. The sources in `c/` are compiled when the package is built
(`hatch_build.py`), once for each level of instructions; the library is loaded through `jax.ffi`, and no compiler runs
afterwards. Without a compiler there is no library, and the plain operations serve.

float32 only; `vmap` runs a kernel once for each case.
"""

import ctypes
import functools
import pathlib
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array


def libraries() -> list[pathlib.Path]:
    """The libraries that were built with the package, the widest instructions first."""
    return sorted(pathlib.Path(__file__).parent.glob("lofi*.so"), reverse=True)  # v4 before v3


@functools.cache
def library() -> pathlib.Path | None:
    """The compiled kernels with the widest instructions that this processor has; None if there are none."""
    for path in libraries():
        try:
            if ctypes.CDLL(str(path)).filtax_runs_here():
                return path
        except (OSError, AttributeError):  # built for another machine, or cut short
            continue
    return None


@functools.cache
def usable() -> bool:
    """Whether the kernels are compiled, run on this processor, and are accepted by this version of XLA."""
    path = library()
    if path is None:
        return False
    loaded = ctypes.CDLL(str(path))
    try:
        for name in KERNELS:
            handler = jax.ffi.pycapsule(loaded[f"filtax_{name}"])
            jax.ffi.register_ffi_target(f"filtax_{name}", handler, platform="cpu")
    except Exception:  # XLA refuses handlers of another version of its interface
        return False
    return True


def project(U: Array, J: Array, used: Array, weight: Array | None) -> Array:
    """U diag(w) Jᵀ (K, O) of the rows in use."""
    return _call("project", (len(U), len(J)))(U, J if weight is None else J * weight[None, :], used)


def residual_gram(U: Array, J: Array, V: Array, c: Array, used: Array) -> tuple[Array, Array]:
    """P = J diag(V) - c U (O, D), and P diag(1 / V) Pᵀ (O, O)."""
    return tuple(_call("residual_gram", J.shape, (len(J), len(J)))(U, J, V, -c, used))


def gram(U: Array, weight: Array | None, used: Array, known: Array, first: int | None = None) -> Array:
    """U diag(w) Uᵀ (K, K) of the rows in use; zero in the block of the first `known` rows."""
    U = U[:first]
    weight = jnp.ones(U.shape[1], U.dtype) if weight is None else weight
    return _call("gram", (len(U), len(U)))(U, weight, used, known)


def truncate_with_gram(diag_var: Array, rows: Array, turn: Array, used: Array, rank: int) -> tuple[Array, Array, Array]:
    """V, U with turnᵀ U in the place of its first `rank` rows, and the Gram matrix of these (rank, rank)."""
    call = _call("truncate_with_gram", diag_var.shape, rows.shape, (rank, rank), aliases={1: 1})
    return tuple(call(diag_var, rows, turn.T, used))


def explained_variance(s: Array, cov_factor: Array, root: Array, used: Array) -> tuple[Array, Array, Array]:
    """$h = S^T s$ (K, O), (S h)ᵀ (O, K) and fᵀf (O, O) with $f = L^{-T} h$."""
    K, O = s.shape
    return tuple(_call("explained_variance", (K, O), (O, K), (O, O))(s, cov_factor, root, used))


def triangular_solve(C: Array, Y: Array) -> Array:
    """C⁻¹ Y for lower triangular C."""
    return _call("triangular_solve", Y.shape)(C, Y)


def stable_cholesky(lost: Array) -> Array:
    """Lower Cholesky factor of I + lost (K, K); a pivot that rounding brought below one is one."""
    return _call("stable_cholesky", lost.shape)(lost)


def eigenvectors(gram: Array) -> Array:
    """Eigenvectors of a symmetric matrix as columns (K, K), that of the largest eigenvalue first."""
    return _call("eigenvectors", gram.shape)(gram)


def _call(name: str, *shapes: tuple[int, ...], aliases: dict[int, int] | None = None) -> Callable[..., Any]:
    results = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]
    results = results if len(results) > 1 else results[0]
    return jax.ffi.ffi_call(f"filtax_{name}", results, vmap_method="sequential", input_output_aliases=aliases)


KERNELS: dict[str, Callable[..., Any]] = {
    kernel.__name__: kernel
    for kernel in (
        *(project, residual_gram, gram, truncate_with_gram),
        *(explained_variance, triangular_solve, stable_cholesky, eigenvectors),
    )
}
