r"""Passes over a tall basis U (K, D): what it shows of some rows, what it takes from them, its Gram matrix.

A step of a low-rank belief spends its time reading U, so that it is read in these few ways only. Its rows lie one after
the other: a new one is written in one piece, and threads that own a parameter each read side by side. Rows from `used`
on count as zero, whatever finite numbers they hold.

Over several devices, and for few parameters, these are matrix `products`. On one CUDA device, in float32 and for many
parameters, they are `kernels` of our own, which do not read the rows that hold nothing; on a CPU with a C compiler so
are the largest of them (`native`). Their derivatives are products again.

Axes: D parameters, K rows of U, O outputs. Cost: O(D K O), and O(D K²) for the Gram matrix.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from filtax.beliefs import cuda, native, products
from filtax.beliefs.instead import instead
from filtax.beliefs.products import live

__all__ = [
    "compared",
    "compares",
    "completed",
    "cut_by_kernel",
    "eased",
    "gram",
    "left_over",
    "natively",
    "one_gpu",
    "shown",
    "small_by_kernel",
    "squared_by_kernel",
    "swept",
    "taken_up",
]

MANY = 2**14  # fewest parameters for which a kernel is worth its launch
CHUNK = 4096  # parameters of U that a core holds close while it multiplies them with each other


def shown(
    U: Float[Array, "K D"], J: Float[Array, "O D"], used: Int[Array, ""], weight: Float[Array, "*D"]
) -> Float[Array, "K O"]:
    r"""$U\,\mathrm{diag}(w)\,J^\top$.

    >>> shown(jnp.eye(2), jnp.array([[3.0, 4.0]]), jnp.asarray(2), jnp.ones(())).tolist()
    [[3.0], [4.0]]
    """
    if natively(U):
        plain = lambda U, J, used: products.shown(U, J, used, None)  # noqa: E731
        found = instead(plain, native.shown, "cpu")(U, J * weight[None, :] if weight.ndim else J, used)
        return found if weight.ndim else weight * found
    way = _kernel("shown") if _by_kernel(U, J) else products.shown
    return way(U, J, used, weight) if weight.ndim else weight * way(U, J, used, None)


def compared(
    U: Float[Array, "K D"], J: Float[Array, "O D"], V: Float[Array, " D"], used: Int[Array, ""], wanted: Bool[Array, ""]
) -> tuple[Float[Array, "K O"], Float[Array, "K O"], Float[Array, "O O"]]:
    r"""$UJ^\top$ and, where wanted (else 0), $U\,\mathrm{diag}(1/V)\,J^\top$ and $JJ^\top$ over parameters with V > 0.

    >>> yes, two = jnp.asarray(True), jnp.asarray(2)
    >>> [a.tolist() for a in compared(jnp.eye(2), jnp.array([[3.0, 4.0]]), jnp.array([2.0, 0.0]), two, yes)]
    [[[3.0], [4.0]], [[1.5], [0.0]], [[9.0]]]
    """
    return (_kernel("compared") if compares(U, J) else products.compared)(U, J, V, used, wanted)


def compares(U: Float[Array, "K D"], J: Float[Array, "O D"]) -> bool:
    """Whether a kernel does so while it reads U. Products would hold J twice, and take longer than a Gram matrix.

    >>> compares(jnp.ones((2, 3)), jnp.ones((1, 3)))
    False
    """
    return _by_kernel(U, J) and _few(J)


def swept(
    U: Float[Array, "K D"],
    J: Float[Array, "O D"],
    V: Float[Array, "*D"],
    c: Float[Array, "O K"],
    used: Int[Array, ""],
) -> Float[Array, "O D"]:
    r"""$J\,\mathrm{diag}(V) - cU$, where V is a number for each parameter, or one for all.

    >>> swept(jnp.eye(2), jnp.ones((1, 2)), jnp.asarray(2.0), jnp.ones((1, 2)), jnp.asarray(2)).tolist()
    [[1.0, 1.0]]
    """
    return (_kernel("swept") if _by_kernel(U, J) else products.swept)(U, J, V, c, used)


def left_over(
    U: Float[Array, "K D"],
    J: Float[Array, "O D"],
    V: Float[Array, "*D"],
    c: Float[Array, "O K"],
    used: Int[Array, ""],
) -> tuple[Float[Array, "O D"], Float[Array, "O O"]]:
    r"""The same, $P = J\,\mathrm{diag}(V) - cU$, and $P\,\mathrm{diag}(1/V)\,P^\top$, where 1 / 0 is 0.

    >>> P, spread = left_over(jnp.eye(2), jnp.ones((1, 2)), jnp.ones(2), jnp.zeros((1, 2)), jnp.asarray(2))
    >>> P.tolist(), spread.tolist()
    ([[1.0, 1.0]], [[2.0]])
    """
    if natively(U):
        return instead(products.left_over, native.left_over, "cpu")(U, J, V, c, used)
    if compares(U, J):
        return _kernel("left_over")(U, J, V, c, used)
    P = swept(U, J, V, c, used)
    return P, shown(P, P, jnp.asarray(len(P), jnp.int32), products.inverse(V))


def eased(
    P: Float[Array, "O D"], U: Float[Array, "K D"], c: Float[Array, "O K"], count: Int[Array, ""]
) -> Float[Array, "O D"]:
    r"""$P - cU$ over the first so many rows of U.

    >>> eased(jnp.ones((1, 2)), jnp.eye(2), jnp.full((1, 2), 3.0), jnp.asarray(1)).tolist()
    [[-2.0, 1.0]]
    """
    return (_kernel("eased") if _by_kernel(U, P) else products.eased)(P, U, c, count)


def taken_up(
    U: Float[Array, "K D"],
    P: Float[Array, "O D"],
    mean: Float[Array, " D"],
    move: Float[Array, " O"],
    used: Int[Array, ""] | int,
    taken: Bool[Array, ""],
) -> tuple[Float[Array, "K D"], Float[Array, " D"]]:
    """U with the rows P from `used` on, if they are taken, and mean + move P in any case.

    >>> rows, moved = taken_up(jnp.zeros((2, 1)), jnp.ones((1, 1)), jnp.ones(1), jnp.ones(1), 1, jnp.asarray(True))
    >>> rows.tolist(), moved.tolist()
    ([[0.0], [1.0]], [2.0])
    """
    some = _kernels(U) and 0 < len(P) <= min(_of().MOST_OUTPUTS, len(U))
    return (_kernel("taken_up") if some else products.taken_up)(U, P, mean, move, jnp.asarray(used, jnp.int32), taken)


def gram(
    U: Float[Array, "K D"],
    weight: Float[Array, " D"] | None = None,
    first: int | None = None,
    used: Int[Array, ""] | None = None,
    wanted: Bool[Array, ""] | None = None,
) -> Float[Array, "M M"]:
    r"""$U\,\mathrm{diag}(w)\,U^\top$, of all rows or of the first so many; zero where it is not wanted.

    On a CPU a few parameters at a time, which stay close by while they are read.

    >>> gram(jnp.ones((1, 3)), jnp.arange(3.0)).tolist()
    [[3.0]]
    """
    if natively(U) and weight is not None and first is None and wanted is None:
        return _native_gram(U, weight, used, jnp.zeros((), jnp.int32))
    if used is not None:
        return live(live(gram(U, weight, first, None, wanted), used).T, used)
    if squared_by_kernel(U, first):
        kernel = lambda U, weight, wanted: _of().gram(U, weight, first, wanted)  # noqa: E731
        return instead(partial(products.gram_if, first=first), kernel)(U, weight, wanted)
    if wanted is not None:
        size = len(U[:first])
        return jax.lax.cond(wanted, lambda: gram(U, weight, first), lambda: jnp.zeros((size, size), U.dtype))
    if _at_a_time(U):
        return products.gram(U, weight, first)
    chunks = partial(products.gram_in_chunks, first=first, size=CHUNK)
    ways = {"cpu": chunks, "default": partial(products.gram, first=first)}
    return jax.lax.platform_dependent(U, weight, **ways)


def completed(
    U: Float[Array, "K D"],
    weight: Float[Array, " D"],
    block: Float[Array, "M M"],
    known: Bool[Array, ""],
    used: Int[Array, ""],
) -> Float[Array, "K K"]:
    r"""$U\,\mathrm{diag}(w)\,U^\top$ whose first block may be known; of rows that are in use.

    >>> completed(jnp.ones((2, 3)), jnp.arange(3.0), jnp.zeros((1, 1)), jnp.asarray(False), jnp.asarray(1)).tolist()
    [[3.0, 0.0], [0.0, 0.0]]
    """
    M = len(block)
    if not M or _at_a_time(U) or jax.default_backend() != "cpu":
        return gram(U, weight, used=used)
    if natively(U):
        found = _native_gram(U, weight, used, jnp.where(known, M, 0).astype(jnp.int32))
        return found.at[:M, :M].set(jnp.where(known, block, found[:M, :M]))
    beside = lambda: products.completed_in_chunks(U, weight, block, CHUNK)  # noqa: E731
    return live(live(jax.lax.cond(known, beside, lambda: gram(U, weight)), used).T, used)


def _native_gram(U: Array, weight: Array, used: Array | None, skip: Array) -> Array:
    """Of the rows in use, without the block of the first `skip`."""

    def plain(U: Array, weight: Array, used: Array, skip: Array) -> Array:
        before = jnp.arange(len(U), dtype=skip.dtype) < skip
        return jnp.where(before[:, None] & before[None, :], 0.0, live(live(products.gram(U, weight), used).T, used))

    used = jnp.asarray(len(U), jnp.int32) if used is None else used.astype(jnp.int32)
    return instead(plain, native.gram, "cpu")(U, weight, used, skip)


def _at_a_time(U: Array) -> bool:
    """Whether all parameters are looked at together: where they are few, or lie on several devices."""
    return U.shape[1] < 2 * CHUNK or jax.device_count() > 1


def _by_kernel(U: Array, J: Array) -> bool:
    """Whether there is a kernel for a basis of this kind: sizes beyond those would not fit a processor."""
    return _kernels(U) and _of().fits(len(U), len(J))


def _few(J: Array) -> bool:
    return len(J) <= _of().FEW


def _kernels(U: Array) -> bool:
    """Whether kernels are worth it for so many parameters, and run here."""
    if not one_gpu() or U.dtype != jnp.float32 or U.shape[1] < MANY:
        return False
    return cuda.usable()


def natively(U: Float[Array, "K D"]) -> bool:
    """Whether kernels that a C compiler made are worth it for so many parameters, and run here.

    >>> natively(jnp.ones((2, 3)))
    False
    """
    return len(U) > 0 and U.shape[1] >= MANY and not one_gpu() and native.serves(U)


def _of() -> Any:
    from filtax.beliefs import kernels

    return kernels


def one_gpu() -> bool:
    """Whether all is on one device that is a GPU.

    >>> one_gpu() and jax.default_backend() == "cpu"
    False
    """
    return jax.default_backend() == "gpu" and jax.device_count() == 1


def squared_by_kernel(U: Float[Array, "K D"], first: int | None = None) -> bool:
    """Whether a kernel makes the Gram matrix, which weighs the rows as it reads them.

    >>> squared_by_kernel(jnp.ones((2, 3)))
    False
    """
    return _kernels(U) and _of().fits(len(U) if first is None else first)


def cut_by_kernel(U: Float[Array, "K D"], turn: Float[Array, "K M"], rank: int) -> bool:
    """Whether a kernel makes a cut.

    >>> cut_by_kernel(jnp.ones((2, 3)), jnp.eye(2), 1)
    False
    """
    return _kernels(U) and _of().fits_cut(*turn.shape, rank)


def small_by_kernel(A: Float[Array, "K K"]) -> bool:
    """Whether a kernel makes the singular vectors of a small matrix.

    >>> small_by_kernel(jnp.eye(2))
    False
    """
    if not one_gpu() or A.dtype != jnp.float32:
        return False
    from filtax.beliefs import small

    return 0 < len(A) <= small.MOST and cuda.usable()


def _kernel(name: str) -> Callable[..., Any]:
    return instead(getattr(products, name), lambda *given: getattr(_of(), name)(*given))
