r"""LoFi as CUDA kernels (the sources in `cu`), as exact as float32: passes over its basis U (K, D), and small algebra.

A pass takes the time of reading U once; a Gram matrix that of its products. Where tensor cores
compute products, each float32 is split into a sum of two TF32 numbers, and three of the four products are computed (the
fourth is below the rounding). Sums over parameters end as one partial sum for each block; these are added up, always in
the same order.

`eigenvectors` of a small matrix are two launches, of which a library needs many; under `vmap` there is a block for each
case. Other operations stay plain JAX: on an H200 at D = 1e6 a kernel gained each of
them less than 1.15 times a step (`benchmarks/cuda_ablation.py`).

NVRTC compiles the CUDA C when a program is traced, and XLA launches the kernels with it. A kernel gets a pointer to
each operand and then to each result, all row-major; sizes are macros that are defined when it is compiled. NVRTC comes
with JAX for CUDA; it turns the source into PTX, and XLA loads that with the program. There is nothing to build
beforehand, and a launch costs as much as one of XLA's own. Where the compiler, XLA's target or a suitable device is
missing, `usable` is False and the plain operations serve.
"""

import ctypes
import functools
import glob
import importlib.util
import math
import os
import pathlib
from collections.abc import Callable, Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

TARGET = "__gpu$xla.gpu.ptx"
LEAST = 80  # compute capability, for asynchronous copies and TF32
PROBE = 'extern "C" __global__ void probe(const float* x, float* y) { y[threadIdx.x] = N * x[threadIdx.x]; }'
OUTPUTS = 32  # more do not fit the registers, or a warp
MOST_ROWS = 160  # of U, likewise
SQUARE = 128  # rows, all of whose products the warps of a block hold
WARP, MOVERS, PARTS = 32, 4, 4
SWEEPS = 10  # of rotations; five to eight are needed
Cases = tuple[int, ...]  # how many of each axis that `vmap` put in front


def fits(K: int, O: int) -> bool:
    """Whether there is room for K rows of U and O outputs."""
    return 0 < K <= MOST_ROWS and 0 < O <= OUTPUTS and _tiles(O + 1 + K, 4, least=K * O) is not None


def fits_gram(U: Array, *_: Any, first: int | None = None) -> bool:
    """Whether there is room for the Gram matrix of the first rows of U."""
    K = len(U) if first is None else first
    return 0 < K <= SQUARE and _tiles(K + 1, 4) is not None


def project(U: Array, J: Array, used: Array, weight: Array | None = None) -> Array:
    r"""$U\,\mathrm{diag}(w)\,J^\top$ (K, O); rows of U from `used` on are not read."""
    (K, D), O, more = U.shape, len(J), () if weight is None else (weight,)
    wide, stages, shared = _needed(_tiles(O + 1 + K, 4, least=K * O))
    blocks = _blocks(-(-D // wide), shared, 2)
    sizes = dict(K=K, O=O, D=D, WEIGHTED=len(more), WIDE=wide, STAGES=stages, PARTS=PARTS, MOVERS=MOVERS)
    call = _launch_pass("project", _floats(blocks, K, O), blocks, MOVERS + 2 * PARTS, shared, sizes)
    return call(U, J, used, *more).sum(0)


def subtract_rows(P: Array, U: Array, c: Array, count: Array) -> Array:
    """P - c U (O, D) over the first `count` rows of U, written over P; nothing is read where that is none."""
    O, D = P.shape
    sizes, blocks = dict(K=len(U), O=O, D=D), min(8 * _processors(), -(-D // 256))
    call = kernel(source("subtract_rows"), "subtract_rows", _floats(O, D), (blocks,), (256,), 0, {0: 0}, **sizes)
    return call(P, U, c, count)


def gram(U: Array, weight: Array | None, used: Array, known: Array, first: int | None = None) -> Array:
    r"""$U\,\mathrm{diag}(w)\,U^\top$ of the first rows of U that are in use; of two equal entries one is computed."""
    K, D = len(U) if first is None else first, U.shape[1]
    tall, kinds = -(-K // 16), (-(-K // 16) + 1) // 2
    wide, stages, shared = _needed(_tiles(K + 1, 4))
    shares, movers, blocks = 8 // kinds, 2, _blocks(-(-D // wide), shared, 1)  # more would wait where others work
    wanted = used > 0
    args = [U, wanted] if weight is None else [U, weight, wanted]
    sizes = dict(K=K, D=D, WEIGHTED=int(weight is not None), MAYBE=1)
    sizes |= dict(WIDE=wide, STAGES=stages, SHARES=shares, MOVERS=movers)
    shape = _floats(blocks * shares, 16 * tall, 16 * tall)
    lower = _launch_pass("gram", shape, blocks, movers + kinds * shares, shared, sizes)(*args).sum(0)[:K, :K]
    live = jnp.arange(K, dtype=used.dtype) < used
    return jnp.where(live[:, None] & live[None, :], jnp.where(np.tri(K, dtype=bool), lower, lower.T), 0.0)


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
    found = _launch_cases("jacobi_angles", cases, given, threads, sizes, 4 * (4 * blocks + 1))(G)
    warps = 4 if K > 32 else 1
    sizes, blocks = dict(K=K, WARPS=warps, SWEEPS=SWEEPS), -(-K // warps)
    return _launch_cases("jacobi_apply", cases, _floats(*cases, K, K), 32 * warps, sizes, blocks=blocks)(*found)


def _tiles(
    rows: int, pad: int, extra: int = 0, least: int = 0, ways: tuple = ((128, 3), (128, 2), (64, 3), (64, 2))
) -> tuple[int, int, int] | None:
    """Parameters of a tile, tiles held, and bytes of shared memory: the largest that fit, if any do."""
    for wide, stages in ways:
        shared = 4 * max(extra + stages * rows * (wide + pad), least)
        if shared <= shared_memory():
            return wide, stages, shared
    return None


def _needed(found: tuple[int, int, int] | None) -> tuple[int, int, int]:
    if found is None:
        raise AssertionError("there is no room for this many rows; `fits` says so.")
    return found


def _processors() -> int:
    return jax.local_devices()[0].core_count if jax.default_backend() == "gpu" else 132


def _blocks(tiles: int, shared: int, most: int) -> int:
    """As many as run at once, each of which has several tiles."""
    return min(_processors() * min(most, max(1, shared_memory() // (shared + 1024))), tiles)


def _floats(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def _launch_pass(
    name: str,
    shapes: Any,
    blocks: int,
    warps: int,
    shared: int,
    sizes: dict[str, int],
    aliases: dict[int, int] | None = None,
) -> Any:
    code = "".join(map(source, ("ptx", "tiles", name)))
    return kernel(code, name, shapes, (blocks,), (WARP * warps,), shared, aliases, **sizes)


def _launch_cases(
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
    return kernel(source(name), name, shapes, grid, (threads,), shared, aliases, **sizes)


KERNELS: dict[str, tuple[Callable[..., bool], Callable[..., Any]]] = {
    "project": (lambda U, J, *_: fits(len(U), len(J)), project),
    "subtract_rows": (lambda P, U, *_: fits(len(U), len(P)), subtract_rows),
    "gram": (fits_gram, gram),
    "eigenvectors": (lambda G: 0 < len(G) <= SQUARE, eigenvectors),
}


# ---- launching


@functools.cache
def usable() -> bool:
    """Whether such kernels run here: there is one suitable CUDA device, and a small kernel compiles and runs on it."""
    if jax.default_backend() != "gpu" or jax.device_count() > 1 or not 0 < capability():
        return False
    try:
        with jax.ensure_compile_time_eval():
            probe = kernel(PROBE, "probe", jax.ShapeDtypeStruct((32,), jnp.float32), grid=(1,), block=(32,), N=2)
            return bool(np.all(np.asarray(jax.jit(probe)(jnp.ones(32, jnp.float32))) == 2.0))
    except Exception:  # whatever is missing, the plain operations serve
        return False


def capability() -> int:
    """Compute capability of the device, such as 90; 0 if it is too small or there is none."""
    if jax.default_backend() != "gpu":
        return 0
    digits = str(jax.local_devices()[0].compute_capability).replace(".", "")  # AMD's are names
    number = int(digits) if digits.isdigit() else 0
    return number if number >= LEAST else 0


def shared_memory() -> int:
    """Bytes of shared memory that a block may have on the device; the least of any device if it is not known."""
    return {80: 160, 87: 160, 90: 220, 100: 220, 103: 220}.get(capability(), 96) * 1024


def kernel(
    source: str,
    name: str,
    shapes: Any,
    grid: Iterable[int],
    block: Iterable[int],
    shared: int = 0,
    aliases: dict[int, int] | None = None,
    **constants: int | float,
) -> Callable[..., Any]:
    """A function of arrays that launches `name` of the source, in which the constants are defined.

    `shapes` are those of the results; `shared` the bytes of dynamic shared memory; `aliases` says which operand (its
    number) a result (its number) is written over.
    """
    x, y, z = (*grid, 1, 1)[:3]
    bx, by, bz = (*block, 1, 1)[:3]
    places = dict(grid_x=x, grid_y=y, grid_z=z, block_x=bx, block_y=by, block_z=bz, shared_mem_bytes=shared)
    given = {key: np.int32(value) for key, value in places.items()}
    ptx = compiled(source, tuple(sorted(constants.items())), capability())
    call = jax.ffi.ffi_call(TARGET, shapes, vmap_method="sequential", input_output_aliases=aliases)
    return functools.partial(call, name=name, kernel_type="ptx", kernel_data=ptx, **given)


@functools.cache
def source(name: str) -> str:
    """Text of `cu/NAME.cu`."""
    return (pathlib.Path(__file__).parent / "cu" / f"{name}.cu").read_text()


@functools.cache
def compiled(source: str, constants: tuple[tuple[str, int | float], ...], arch: int) -> str:
    """Return the PTX of a source with constants, for a compute capability."""
    options = [f"--gpu-architecture=compute_{arch}", "--std=c++17"] + [f"-D{key}={value}" for key, value in constants]
    nvrtc = _nvrtc()
    program = ctypes.c_void_p()
    _check(nvrtc, nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernel.cu", 0, None, None))
    try:
        words = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        failed = nvrtc.nvrtcCompileProgram(program, len(options), words)
        if failed:
            raise RuntimeError(_text(nvrtc, program, "ProgramLog"))
        return _text(nvrtc, program, "PTX")
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _text(nvrtc: ctypes.CDLL, program: ctypes.c_void_p, what: str) -> str:
    size = ctypes.c_size_t()
    _check(nvrtc, nvrtc[f"nvrtcGet{what}Size"](program, ctypes.byref(size)))
    held = ctypes.create_string_buffer(size.value)
    _check(nvrtc, nvrtc[f"nvrtcGet{what}"](program, held))
    return held.value.decode()


def _check(nvrtc: ctypes.CDLL, code: int) -> None:
    if code:
        nvrtc.nvrtcGetErrorString.restype = ctypes.c_char_p
        raise RuntimeError(nvrtc.nvrtcGetErrorString(code).decode())


@functools.cache
def _nvrtc() -> ctypes.CDLL:
    """The compiler, of the packages that JAX installs or of a CUDA toolkit."""
    for place in _places():
        for path in sorted(glob.glob(os.path.join(place, "libnvrtc.so*"))):
            try:
                for part in glob.glob(os.path.join(place, "libnvrtc-builtins.so*")):  # it would look elsewhere
                    ctypes.CDLL(part, mode=ctypes.RTLD_GLOBAL)
                return ctypes.CDLL(path)
            except OSError:
                continue
    return ctypes.CDLL("libnvrtc.so")


def _places() -> list[str]:
    found = importlib.util.find_spec("nvidia")
    roots = list(found.submodule_search_locations or []) if found else []
    packages = [os.path.join(root, *part) for root in roots for part in (("cu13", "lib"), ("cuda_nvrtc", "lib"))]
    return [*packages, "/usr/local/cuda/lib64"]
