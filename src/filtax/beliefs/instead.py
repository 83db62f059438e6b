"""A kernel in the place of a plain form of the same arrays, where it can run; for all else it is the plain form.

Derivatives of any order, forwards and backwards, are those of the plain form. (`jax.custom_jvp` would not do: what a
loop knows beforehand when its slope is taken is written down without the rule, and a second slope finds the kernel.)
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jaxtyping import Array

__all__ = ["instead"]

PLATFORMS = {"cpu": "cpu", "cuda": "gpu"}  # and what the backend of each is called


def instead(plain: Callable[..., Any], kernel: Callable[..., Any], platform: str = "cuda") -> Callable[..., Any]:
    """A kernel on one platform, and a plain form of the same arrays on all others, which also gives the derivative.

    >>> either = instead(jnp.sin, jnp.cos, "cpu")
    >>> (either(0.0).item(), jax.grad(either)(0.0).item()) if jax.default_backend() == "cpu" else (1.0, 1.0)
    (1.0, 1.0)
    """

    def call(*given: Any) -> Any:
        leaves, tree = jax.tree.flatten(given)
        flat = lambda way: lambda *leaves: jax.tree.leaves(way(*tree.unflatten(map(jnp.asarray, leaves))))  # noqa: E731
        made = jax.tree.structure(jax.eval_shape(plain, *given))
        return made.unflatten(_instead.bind(*leaves, plain=flat(plain), kernel=flat(kernel), platform=platform))

    return call


_instead = Primitive("instead")
_instead.multiple_results = True


@_instead.def_impl
def _now(*given: Any, plain: Callable, kernel: Callable, platform: str) -> list[Array]:
    return (kernel if PLATFORMS[platform] == jax.default_backend() else plain)(*given)


@_instead.def_abstract_eval
def _shapes(*given: Any, plain: Callable, **_: Any) -> list[Any]:
    return jax.make_jaxpr(plain)(*(jax.ShapeDtypeStruct(one.shape, one.dtype) for one in given)).out_avals


def _batched(given: Sequence[Any], axes: Sequence[Any], **ways: Any) -> tuple[list[Array], list[int]]:
    both = {name: jax.vmap(ways[name], in_axes=list(axes)) for name in ("plain", "kernel")}
    made = _instead.bind(*given, **both, platform=ways["platform"])
    return made, [0] * len(made)


def _sloped(given: Sequence[Any], slopes: Sequence[Any], **ways: Any) -> tuple[list[Array], list[Array]]:
    moving = [i for i, slope in enumerate(slopes) if type(slope) is not ad.Zero]

    def moved(*values: Any) -> list[Array]:
        whole = list(given)
        for i, value in zip(moving, values, strict=True):
            whole[i] = value
        return ways["plain"](*whole)

    tangents = jax.jvp(moved, [given[i] for i in moving], [slopes[i] for i in moving])[1]
    return _instead.bind(*given, **ways), tangents


def _written(here: str, context: Any, *given: Any, plain: Callable, kernel: Callable, platform: str) -> Any:
    return mlir.lower_fun(kernel if platform == here else plain, multiple_results=True)(context, *given)


batching.primitive_batchers[_instead] = _batched
ad.primitive_jvps[_instead] = _sloped
mlir.register_lowering(_instead, partial(_written, "any other"))
for _platform in PLATFORMS:
    mlir.register_lowering(_instead, partial(_written, _platform), platform=_platform)
