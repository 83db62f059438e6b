r"""Passes over the basis U (K, D) of LoFi as CUDA kernels (the sources in `cu`), all as exact as float32.

Their time is that of reading U once, or that of the products of a Gram matrix and of a truncation. Where tensor cores
compute products, each float32 is split into a sum of two TF32 numbers, and three of the four products are computed (the
fourth is below the rounding). Sums over parameters end as one partial sum for each block; these are added up, always in
the same order.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from filtax._kernels import cuda

MOST_OUTPUTS = 32  # more do not fit the registers
MOST_ROWS = 160  # of U, likewise
SQUARE = 128  # rows, all of whose products the warps of a block hold
FEW = 12  # outputs, all of whose products a thread sums up, or which are a block of rows
WARP, MOVERS, PARTS = 32, 4, 4


def fits(K: int, O: int) -> bool:
    """Whether there is room for K rows of U and O outputs.

    >>> fits(161, 1)
    False
    """
    return 0 < K <= MOST_ROWS and 0 < O <= MOST_OUTPUTS and _tiles(O + 1 + K, 4, least=K * O) is not None


def fits_gram(U: Array, *_: Any, first: int | None = None) -> bool:
    """Whether there is room for the Gram matrix of the first rows of U.

    >>> fits_gram(jnp.ones((129, 1)))
    False
    """
    K = len(U) if first is None else first
    return 0 < K <= SQUARE and _tiles(K + 1, 4) is not None


def fits_truncate(K: int, M: int, rank: int) -> bool:
    """Whether there is room to truncate K rows to M, of which `rank` are kept.

    >>> fits_truncate(300, 300, 150)
    False
    """
    return 0 < rank <= M <= K and _truncate_tiles(K, M, rank) is not None


def project(U: Array, J: Array, used: Array, weight: Array | None = None) -> Array:
    r"""$U\,\mathrm{diag}(w)\,J^\top$ (K, O); rows of U from `used` on are not read."""
    (K, D), O, more = U.shape, len(J), () if weight is None else (weight,)
    wide, stages, shared = _needed(_tiles(O + 1 + K, 4, least=K * O))
    blocks = _blocks(-(-D // wide), shared, 2)
    sizes = dict(K=K, O=O, D=D, WEIGHTED=len(more), WIDE=wide, STAGES=stages, PARTS=PARTS, MOVERS=MOVERS)
    call = _launch("project", _floats(blocks, K, O), blocks, MOVERS + 2 * PARTS, shared, sizes)
    return call(U, J, used, *more).sum(0)


def residual_projection(U: Array, J: Array, V: Array, c: Array, used: Array) -> Array:
    """J diag(V) - c U (O, D); rows of U from `used` on are not read."""
    return _residual(U, J, V, c, used, False)


def residual_gram(U: Array, J: Array, V: Array, c: Array, used: Array) -> tuple[Array, Array]:
    """The same, P, and P diag(1 / V) Pᵀ (O, O), of which a thread has a sum for each pair of rows."""
    P, parts = _residual(U, J, V, c, used, True)
    O = len(J)
    place = np.zeros((O, O), np.int32)
    place[np.tril_indices(O)] = np.arange(O * (O + 1) // 2)
    return P, parts.sum(0)[place + np.tril(place, -1).T]


def _residual(U: Array, J: Array, V: Array, c: Array, used: Array, spread: bool) -> Any:
    (K, D), O = U.shape, J.shape[0]
    many, ahead, per = 2, 5, 4 if O <= 10 else 3  # as many as fit the registers
    blocks = min(per * _processors(), -(-D // (4 * WARP * many)))
    shapes = (_floats(O, D), _floats(blocks, O * (O + 1) // 2)) if spread else _floats(O, D)
    sizes = dict(K=K, O=O, D=D, SPREAD=int(spread), ONE=int(V.size == 1), MANY=many, AHEAD=ahead, BLOCKS=per)
    kernel = cuda.kernel(
        cuda.source("residual_projection"), "residual_projection", shapes, (blocks,), (4 * WARP,), 0, None, **sizes
    )
    return kernel(U, J, jnp.reshape(V, (-1,)), c, used)


def subtract_rows(P: Array, U: Array, c: Array, count: Array) -> Array:
    """P - c U (O, D) over the first `count` rows of U, written over P; nothing is read where that is none."""
    O, D = P.shape
    sizes, blocks = dict(K=len(U), O=O, D=D), min(8 * _processors(), -(-D // 256))
    call = cuda.kernel(
        cuda.source("subtract_rows"), "subtract_rows", _floats(O, D), (blocks,), (256,), 0, {0: 0}, **sizes
    )
    return call(P, U, c, count)


def append_rows(U: Array, P: Array, mean: Array, move: Array, used: Array, taken: Array) -> tuple[Array, Array]:
    """U with the rows P from `used` on, written over the old ones if they are taken, and mean + move P (D,)."""
    (K, D), O = U.shape, len(P)
    shapes, grid = (_floats(K, D), _floats(D)), (-(-D // 256),)
    call = cuda.kernel(cuda.source("append_rows"), "append_rows", shapes, grid, (256,), 0, {0: 0}, K=K, O=O, D=D)
    return tuple(call(U, P, mean, move, used, taken))


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
    lower = _launch("gram", shape, blocks, movers + kinds * shares, shared, sizes)(*args).sum(0)[:K, :K]
    live = jnp.arange(K, dtype=used.dtype) < used
    return jnp.where(live[:, None] & live[None, :], jnp.where(np.tri(K, dtype=bool), lower, lower.T), 0.0)


def truncate(diag_var: Array, rows: Array, turn: Array, rank: int) -> tuple[Array, Array]:
    r"""V and $T^\top U$, written over the old ones; rows from `rank` on are not written.

    With a V for each parameter the squares of the dropped rows go to it, and the kept rows are scaled like V.
    """
    (K, D), M = rows.shape, turn.shape[1]
    movers, (wide, _, shared) = 2, _needed(_truncate_tiles(K, M, rank))
    blocks = _blocks(-(-D // wide), shared, 1)
    sizes = dict(K=K, M=M, RANK=rank, D=D, SHARED=int(not diag_var.ndim), WIDE=wide, MOVERS=movers)
    warps = movers + 2 + wide // 16
    if not diag_var.ndim:
        return diag_var, _launch("truncate_basis", _floats(K, D), blocks, warps, shared, sizes, {0: 0})(rows, turn)
    shapes = (_floats(D), _floats(K, D))
    return tuple(_launch("truncate_basis", shapes, blocks, warps, shared, sizes, {2: 0, 0: 1})(rows, turn, diag_var))


def _tiles(
    rows: int, pad: int, extra: int = 0, least: int = 0, ways: tuple = ((128, 3), (128, 2), (64, 3), (64, 2))
) -> tuple[int, int, int] | None:
    """Parameters of a tile, tiles held, and bytes of shared memory: the largest that fit, if any do."""
    for wide, stages in ways:
        shared = 4 * max(extra + stages * rows * (wide + pad), least)
        if shared <= cuda.shared_memory():
            return wide, stages, shared
    return None


def _truncate_tiles(K: int, M: int, rank: int) -> tuple[int, int, int] | None:
    steps, groups = -(-K // 8), -(-rank // 8) - (-(M - rank) // 8)
    return _tiles(8 * steps + 3, 8, extra=64 * steps * groups, ways=((128, 3), (64, 3), (32, 3)))


def _needed(found: tuple[int, int, int] | None) -> tuple[int, int, int]:
    if found is None:
        raise AssertionError("there is no room for this many rows; `fits` says so.")
    return found


def _processors() -> int:
    return jax.local_devices()[0].core_count if jax.default_backend() == "gpu" else 132


def _blocks(tiles: int, shared: int, most: int) -> int:
    """As many as run at once, each of which has several tiles."""
    return min(_processors() * min(most, max(1, cuda.shared_memory() // (shared + 1024))), tiles)


def _floats(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def _launch(
    name: str,
    shapes: Any,
    blocks: int,
    warps: int,
    shared: int,
    sizes: dict[str, int],
    aliases: dict[int, int] | None = None,
) -> Any:
    source = "".join(map(cuda.source, ("ptx", "tiles", name)))
    return cuda.kernel(source, name, shapes, (blocks,), (WARP * warps,), shared, aliases, **sizes)


KERNELS: dict[str, tuple[Callable[..., bool], Callable[..., Any]]] = {
    "project": (lambda U, J, *_: fits(len(U), len(J)), project),
    "residual_projection": (lambda U, J, *_: fits(len(U), len(J)), residual_projection),
    "residual_gram": (lambda U, J, *_: fits(len(U), len(J)) and len(J) <= FEW, residual_gram),
    "subtract_rows": (lambda P, U, *_: fits(len(U), len(P)), subtract_rows),
    "append_rows": (lambda U, P, *_: 0 < len(P) <= min(MOST_OUTPUTS, len(U)), append_rows),
    "gram": (fits_gram, gram),
    "truncate": (lambda diag_var, rows, turn, rank: fits_truncate(len(turn), turn.shape[1], rank), truncate),
}
