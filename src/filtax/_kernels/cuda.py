r"""Launch kernels written in CUDA C: NVRTC compiles them when a program is traced, and XLA launches them with it.

A kernel gets a pointer to each operand and then to each result, all row-major; sizes are macros that are defined when
it is compiled. NVRTC comes with JAX for CUDA; it turns the source into PTX, and XLA loads that with the program. There
is nothing to build beforehand, and a launch costs as much as one of XLA's own. Where the compiler, XLA's target or
a suitable device is missing, `usable` is False and the plain operations serve.

    twice = kernel(source("twice"), "twice", ShapeDtypeStruct((N,), float32), grid=(-(-N // 256),), block=(256,), N=N)
    twice(x)                 # in cu/twice.cu: extern "C" __global__ void twice(const float* x, float* out), N a macro

`vmap` runs it once for each case; it has no derivative (`with_kernel` gives one).
"""

import ctypes
import functools
import glob
import importlib.util
import os
import pathlib
from collections.abc import Callable, Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

TARGET = "__gpu$xla.gpu.ptx"
LEAST = 80  # compute capability, for asynchronous copies and TF32
PROBE = 'extern "C" __global__ void probe(const float* x, float* y) { y[threadIdx.x] = N * x[threadIdx.x]; }'


@functools.cache
def usable() -> bool:
    """Whether such kernels run here: there is one suitable CUDA device, and a small kernel compiles and runs on it.

    >>> usable() and jax.default_backend() == "cpu"
    False
    """
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
    """Text of `cu/NAME.cu`.

    >>> "void subtract_rows(" in source("subtract_rows")
    True
    """
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
