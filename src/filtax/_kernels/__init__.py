"""Kernels in C (CPU) and CUDA (GPU) that compute what plain JAX operations say, in fewer passes over memory.

Deleting this package changes no result beyond rounding, only the speed of beliefs about many parameters. An operation
is written in plain JAX and marked with `replaceable`; when a program is traced, the kernel of the same name takes its
place if one serves this platform, these shapes and float32.

`FILTAX_KERNELS=0` switches all kernels off; `FILTAX_KERNELS_OFF="project,gram"` switches some off, to measure them.

A kernel is a primitive of JAX: its derivatives of any order, forwards and backwards, are those of the plain function.
`jax.custom_jvp` would not do: the part of a scan that does not depend on what is differentiated is traced without its
rule, and a second derivative then meets the kernel.
"""

import functools
import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jaxtyping import Array

MANY = 2**14  # fewest parameters for which a kernel is worth its call
BACKENDS = {"cpu": "cpu", "cuda": "gpu"}  # platform of a lowering: name of its backend


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
        return _bind(partial(plain, **static), partial(kernel, **static), platform, arrays)

    return run


def serving(size: int, dtype: Any) -> str:
    """Platform whose kernels serve a belief about so many parameters, "cpu" or "cuda"; or ""."""
    if size < MANY or dtype != jnp.float32 or jax.device_count() > 1 or not _wanted():
        return ""
    if backend() == "cpu":
        from filtax._kernels import c_kernels

        return "cpu" if c_kernels.usable() else ""
    from filtax._kernels import cuda_kernels

    return "cuda" if cuda_kernels.usable() else ""


def backend() -> str:
    """The kind of device that programs run on by default: "cpu", "gpu" or "tpu"."""
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
        from filtax._kernels import cuda_kernels

        return "CUDA, compiled by NVRTC" if cuda_kernels.usable() else "none for this GPU: plain JAX serves"
    from filtax._kernels import c_kernels

    if c_kernels.usable():
        return f"C, {c_kernels.library()}"
    if c_kernels.libraries():
        return "none (those that were built do not run here): plain JAX serves"
    return "none (not built; with a C compiler, `pip install` from the source builds them): plain JAX serves"


def _bind(plain: Callable[..., Any], kernel: Callable[..., Any], platform: str, args: tuple[Any, ...]) -> Any:
    """Call `kernel` on one platform, and `plain` on all others and for derivatives."""
    leaves, tree = jax.tree.flatten(args)

    def flat(function: Callable[..., Any]) -> Callable[..., list[Array]]:
        return lambda *leaves: jax.tree.leaves(function(*tree.unflatten(map(jnp.asarray, leaves))))

    result = jax.tree.structure(jax.eval_shape(plain, *args))
    return result.unflatten(_primitive.bind(*leaves, plain=flat(plain), kernel=flat(kernel), platform=platform))


_primitive = Primitive("filtax_kernel")
_primitive.multiple_results = True


@_primitive.def_impl
def _evaluate(*args: Any, plain: Callable, kernel: Callable, platform: str) -> list[Array]:
    return (kernel if BACKENDS[platform] == jax.default_backend() else plain)(*args)


@_primitive.def_abstract_eval
def _shapes(*args: Any, plain: Callable, **_: Any) -> list[Any]:
    return jax.make_jaxpr(plain)(*(jax.ShapeDtypeStruct(a.shape, a.dtype) for a in args)).out_avals


def _batch(args: Sequence[Any], axes: Sequence[Any], **parameters: Any) -> tuple[list[Array], list[int]]:
    both = {name: jax.vmap(parameters[name], in_axes=list(axes)) for name in ("plain", "kernel")}
    results = _primitive.bind(*args, **both, platform=parameters["platform"])
    return results, [0] * len(results)


def _jvp(args: Sequence[Any], tangents: Sequence[Any], **parameters: Any) -> tuple[list[Array], list[Array]]:
    moving = [i for i, tangent in enumerate(tangents) if type(tangent) is not ad.Zero]

    def of_moving(*values: Any) -> list[Array]:
        full = list(args)
        for i, value in zip(moving, values, strict=True):
            full[i] = value
        return parameters["plain"](*full)

    results = jax.jvp(of_moving, [args[i] for i in moving], [tangents[i] for i in moving])[1]
    return _primitive.bind(*args, **parameters), results


def _lower(here: str, context: Any, *args: Any, plain: Callable, kernel: Callable, platform: str) -> Any:
    return mlir.lower_fun(kernel if platform == here else plain, multiple_results=True)(context, *args)


batching.primitive_batchers[_primitive] = _batch
ad.primitive_jvps[_primitive] = _jvp
mlir.register_lowering(_primitive, partial(_lower, "any other"))
for _platform in BACKENDS:
    mlir.register_lowering(_primitive, partial(_lower, _platform), platform=_platform)
