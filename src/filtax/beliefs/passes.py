r"""Passes over a tall basis U (K, D): what it shows of some rows, what it takes from them, its Gram matrix.

A step of a low-rank belief spends its time reading U, so that it is read in these few ways only. Its rows lie one after
the other: a new one is written in one piece, and threads that own a parameter each read side by side. Rows from `used`
on count as zero, whatever finite numbers they hold.

On a CPU, or over several devices, these are matrix `products`. On one CUDA device, in float32 and for many parameters,
they are `kernels` of our own, which do not read the rows that hold nothing; their derivatives are products again.

Axes: D parameters, K rows of U, O outputs. Cost: O(D K O), and O(D K²) for the Gram matrix.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from filtax.beliefs import products
from filtax.beliefs.products import live, product

__all__ = [
    "compared",
    "compares",
    "cut_by_kernel",
    "gram",
    "left_over",
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
    if not weight.ndim:
        return weight * (_shown(U, J, used, None) if _by_kernel(U, J) else products.shown(U, J, used, None))
    return _shown(U, J, used, weight) if _by_kernel(U, J) else products.shown(U, J, used, weight)


def compared(
    U: Float[Array, "K D"], J: Float[Array, "O D"], V: Float[Array, " D"], used: Int[Array, ""], wanted: Bool[Array, ""]
) -> tuple[Float[Array, "K O"], Float[Array, "K O"], Float[Array, "O O"]]:
    r"""$UJ^\top$ and, where wanted (else 0), $U\,\mathrm{diag}(1/V)\,J^\top$ and $JJ^\top$ over parameters with V > 0.

    >>> yes, two = jnp.asarray(True), jnp.asarray(2)
    >>> [a.tolist() for a in compared(jnp.eye(2), jnp.array([[3.0, 4.0]]), jnp.array([2.0, 0.0]), two, yes)]
    [[[3.0], [4.0]], [[1.5], [0.0]], [[9.0]]]
    """
    return (_compared if compares(U, J) else products.compared)(U, J, V, used, wanted)


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
    return _swept(U, J, V, c, used) if _by_kernel(U, J) else products.swept(U, J, V, c, used)


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
    if compares(U, J):
        return _left_over(U, J, V, c, used)
    P = swept(U, J, V, c, used)
    return P, shown(P, P, jnp.asarray(len(P), jnp.int32), products.inverse(V))


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
    return (_taken_up if some else products.taken_up)(U, P, mean, move, jnp.asarray(used, jnp.int32), taken)


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
    if used is not None:
        return live(live(gram(U, weight, first, None, wanted), used).T, used)
    if squared_by_kernel(U, first):
        return _gram(U, weight, wanted, first)
    if wanted is not None:
        size = len(U[:first])
        return jax.lax.cond(wanted, lambda: gram(U, weight, first), lambda: jnp.zeros((size, size), U.dtype))
    if U.shape[1] < 2 * CHUNK or jax.device_count() > 1:
        return products.gram(U, weight, first)
    chunks = partial(products.gram_in_chunks, first=first, size=CHUNK)
    ways = {"cpu": chunks, "default": partial(products.gram, first=first)}
    return jax.lax.platform_dependent(U, weight, **ways)


def _by_kernel(U: Array, J: Array) -> bool:
    """Whether there is a kernel for a basis of this kind: sizes beyond those would not fit a processor."""
    return _kernels(U) and _of().fits(len(U), len(J))


def _few(J: Array) -> bool:
    return len(J) <= _of().FEW


def _kernels(U: Array) -> bool:
    """Whether kernels are worth it for so many parameters, and run here."""
    if not one_gpu() or U.dtype != jnp.float32 or U.shape[1] < MANY:
        return False
    from filtax.beliefs import cuda

    return cuda.usable()


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
    from filtax.beliefs import cuda, small

    return 0 < len(A) <= small.MOST and cuda.usable()


@jax.custom_jvp
def _shown(U: Array, J: Array, used: Array, weight: Array | None) -> Array:
    return jax.lax.platform_dependent(U, J, used, weight, cuda=_of().shown, default=products.shown)


@_shown.defjvp
def _shown_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    (U, J, used, weight), (dU, dJ, _, dweight) = primals, tangents
    slope = products.shown(dU, J, used, weight) + products.shown(U, dJ, used, weight)
    return _shown(*primals), slope if weight is None else slope + products.shown(U, J, used, dweight)


@jax.custom_jvp
def _compared(U: Array, J: Array, V: Array, used: Array, wanted: Array) -> tuple[Array, Array, Array]:
    return jax.lax.platform_dependent(U, J, V, used, wanted, cuda=_of().compared, default=products.compared)


@_compared.defjvp
def _compared_jvp(primals: tuple, tangents: tuple) -> tuple[Any, Any]:
    plain = lambda U, J, V: products.compared(U, J, V, *primals[3:])  # noqa: E731
    return _compared(*primals), jax.jvp(plain, primals[:3], tangents[:3])[1]


@jax.custom_jvp
def _swept(U: Array, J: Array, V: Array, c: Array, used: Array) -> Array:
    return jax.lax.platform_dependent(U, J, V, c, used, cuda=_of().swept, default=products.swept)


@_swept.defjvp
def _swept_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    (U, J, V, c, used), (dU, dJ, dV, dc, _) = primals, tangents
    return _swept(*primals), products.swept(U, dJ, V, dc, used) + products.swept(dU, J, dV, c, used)


@jax.custom_jvp
def _left_over(U: Array, J: Array, V: Array, c: Array, used: Array) -> tuple[Array, Array]:
    return jax.lax.platform_dependent(U, J, V, c, used, cuda=_of().left_over, default=products.left_over)


@_left_over.defjvp
def _left_over_jvp(primals: tuple, tangents: tuple) -> tuple[Any, Any]:
    plain = lambda U, J, V, c: products.left_over(U, J, V, c, primals[-1])  # noqa: E731
    return _left_over(*primals), jax.jvp(plain, primals[:-1], tangents[:-1])[1]


@jax.custom_jvp
def _taken_up(U: Array, P: Array, mean: Array, move: Array, used: Array, taken: Array) -> tuple[Array, Array]:
    given = U, P, mean, move, used, taken
    return jax.lax.platform_dependent(*given, cuda=_of().taken_up, default=products.taken_up)


@_taken_up.defjvp
def _taken_up_jvp(primals: tuple, tangents: tuple) -> tuple[Any, Any]:
    plain = lambda *moving: products.taken_up(*moving, *primals[4:])  # noqa: E731
    return _taken_up(*primals), jax.jvp(plain, primals[:4], tangents[:4])[1]


@partial(jax.custom_jvp, nondiff_argnums=(3,))
def _gram(U: Array, weight: Array | None, wanted: Array | None, first: int | None) -> Array:
    def plain(U: Array, weight: Array | None, wanted: Array | None) -> Array:
        found = products.gram(U, weight, first)
        return found if wanted is None else jnp.where(wanted, found, 0.0)

    ways = {"cuda": lambda U, weight, wanted: _of().gram(U, weight, first, wanted), "default": plain}
    return jax.lax.platform_dependent(U, weight, wanted, **ways)


@_gram.defjvp
def _gram_jvp(first: int | None, primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    (U, weight, wanted), (dU, dweight, _) = primals, tangents
    half = product(dU[:first] if weight is None else dU[:first] * weight[None, :], U[:first].T)
    slope = half + half.T
    slope = slope if weight is None else slope + products.gram(U, dweight, first)
    return _gram(*primals, first), slope if wanted is None else jnp.where(wanted, slope, 0.0)
