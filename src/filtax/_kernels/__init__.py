"""Kernels in C (CPU) and CUDA (GPU) that compute what plain JAX operations say, in fewer passes over memory.

Deleting this package changes no result beyond rounding, only the speed of beliefs about many parameters. An operation
is written in plain JAX and marked with `replaceable`; when a program is traced, the kernel of the same name takes its
place if one serves this platform, these shapes and float32. Derivatives are those of the plain operation.

`FILTAX_KERNELS=0` switches all kernels off; `FILTAX_KERNELS_OFF="project,gram"` switches some off, to measure them.
"""

import functools
import os
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from filtax._kernels.custom_kernel import with_kernel

MANY = 2**14  # fewest parameters for which a kernel is worth its call


def replaceable(plain: Callable[..., Any]) -> Callable[..., Any]:
    """Have a kernel of the same name compute what a function of arrays says, wherever one serves.

    The result takes one more keyword, `size`: the number of parameters of the belief, if no array tells it.
    Other keywords are static and are passed on.

    >>> twice = replaceable(lambda a: 2.0 * a)
    >>> twice(jnp.ones(2)).tolist()
    [2.0, 2.0]
    """

    @functools.wraps(plain)
    def run(*arrays: Any, size: int | None = None, **static: Any) -> Any:
        parameters = size or max(a.shape[-1] for a in arrays if a is not None and jnp.ndim(a))
        platform = serving(parameters, arrays[0].dtype)
        kernel = _kernel(plain.__name__.lstrip("_"), platform, arrays, static) if platform else None
        if kernel is None:
            return plain(*arrays, **static)
        return with_kernel(functools.partial(plain, **static), functools.partial(kernel, **static), platform)(*arrays)

    return run


def serving(size: int, dtype: Any) -> str:
    """Platform whose kernels serve a belief about so many parameters, "cpu" or "cuda"; or "".

    >>> serving(10, jnp.float32)
    ''
    """
    if size < MANY or dtype != jnp.float32 or jax.device_count() > 1 or not _wanted():
        return ""
    if backend() == "cpu":
        from filtax._kernels import c_kernels

        return "cpu" if c_kernels.usable() else ""
    from filtax._kernels import cuda

    return "cuda" if cuda.usable() else ""


def serves(name: str, *arrays: Any, size: int | None = None, **static: Any) -> bool:
    """Whether a kernel of this name would compute something of these arrays.

    >>> serves("project", jnp.ones((2, 3)), jnp.ones((1, 3)))
    False
    """
    platform = serving(arrays[0].shape[-1] if size is None else size, arrays[0].dtype)
    return bool(platform) and _kernel(name, platform, arrays, static) is not None


def backend() -> str:
    """The kind of device that programs run on by default: "cpu", "gpu" or "tpu".

    >>> backend() == jax.default_backend()
    True
    """
    return jax.default_backend()


def _kernel(name: str, platform: str, arrays: tuple[Any, ...], static: dict[str, Any]) -> Callable[..., Any] | None:
    if name in os.environ.get("FILTAX_KERNELS_OFF", "").split(","):
        return None
    if platform == "cpu":
        from filtax._kernels import c_kernels

        return c_kernels.KERNELS.get(name)
    from filtax._kernels import cuda_kernels

    fits, kernel = cuda_kernels.KERNELS.get(name, (None, None))
    return kernel if fits is not None and fits(*arrays, **static) else None


def _wanted() -> bool:
    return os.environ.get("FILTAX_KERNELS", "1") != "0"


def status() -> str:
    """Which kernels serve beliefs about many parameters in this process, in words.

    >>> len(status()) > 0
    True
    """
    if not _wanted():
        return "none (FILTAX_KERNELS=0): plain JAX serves"
    if backend() == "gpu":
        from filtax._kernels import cuda

        return "CUDA, compiled by NVRTC" if cuda.usable() else "none for this GPU: plain JAX serves"
    from filtax._kernels import c_kernels

    if c_kernels.usable():
        return f"C, {c_kernels.library()}"
    if c_kernels.libraries():
        return "none (those that were built do not run here): plain JAX serves"
    return "none (not built; with a C compiler, `pip install` from the source builds them): plain JAX serves"
