"""Run a kernel on one platform and a plain function of the same arrays everywhere else.

Derivatives of any order, forwards and backwards, are those of the plain function. `jax.custom_jvp` would not do: the
part of a scan that does not depend on what is differentiated is traced without its rule, and a second derivative then
meets the kernel.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jaxtyping import Array

BACKENDS = {"cpu": "cpu", "cuda": "gpu"}  # platform of a lowering: name of its backend


def with_kernel(plain: Callable[..., Any], kernel: Callable[..., Any], platform: str) -> Callable[..., Any]:
    """Return a function that calls `kernel` on one platform and `plain` on all others and for derivatives.

    >>> either = with_kernel(jnp.sin, jnp.cos, "cpu")
    >>> (either(0.0).item(), jax.grad(either)(0.0).item()) if jax.default_backend() == "cpu" else (1.0, 1.0)
    (1.0, 1.0)
    """

    def call(*args: Any) -> Any:
        leaves, tree = jax.tree.flatten(args)

        def flat(function: Callable[..., Any]) -> Callable[..., list[Array]]:
            return lambda *leaves: jax.tree.leaves(function(*tree.unflatten(map(jnp.asarray, leaves))))

        result = jax.tree.structure(jax.eval_shape(plain, *args))
        return result.unflatten(_primitive.bind(*leaves, plain=flat(plain), kernel=flat(kernel), platform=platform))

    return call


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
