r"""(M.1) Directions in which the parameters of a network may move: found from the iterates of a warm-up, or at random.

The rows of $\mathcal E$ are n parameter vectors met in training, $\mathcal E = U S V^\top$; A holds the first d right
singular vectors, orthonormal columns (D, d). They come from the n x n Gram matrix $\mathcal E\mathcal E^\top = U S^2
U^\top$, $V = \mathcal E^\top U S^{-1}$, so that nothing of size D x D is ever formed; in float64, because a Gram matrix
squares the range of the singular values.

An uncentred decomposition spends its first direction on the parameters themselves, which only scales the network
(errata E31); centred iterates, or differences from the last one, spend none.

Cost: O(n² D) time, O(n D) memory. Thesis: subsec:warm-up-subspace, algo:MAP-SGD.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Float

from filtax import checks

__all__ = ["directions", "random_directions"]

_KINDS = {
    "uncentred": lambda rows: rows,
    "centred": lambda rows: rows - rows.mean(axis=0),
    "differences": lambda rows: rows[:-1] - rows[-1],
}


def directions(iterates: Any, count: int, kind: str = "uncentred") -> Float[Array, "D d"]:
    """Find the directions along which training moved the parameters most.

    Args:
        iterates: (n, D) parameter vectors, in the order of training, such as `filtax.warmup(...).iterates`.
        count: How many directions d; at most as many as the iterates span.
        kind: "uncentred" as in the thesis; "centred", principal components; "differences" from the last iterate, for
            when that is the offset.

    Returns:
        (D, d) orthonormal columns, the most important first, in the dtype of the iterates.

    >>> path = np.array([[1.0, 0.0, 5.0], [1.0, 3.0, 5.0], [1.0, 9.0, 5.0]])
    >>> np.abs(directions(path, 1, kind="centred")).round(3).tolist()
    [[0.0], [1.0], [0.0]]
    """
    checks.whole("directions(count=...)", count, least=1)
    if kind not in _KINDS:
        raise ValueError(f"directions(kind={kind!r}): no such kind. {checks.nearest(str(kind), _KINDS)}")
    rows = np.asarray(iterates)
    if rows.ndim != 2:
        raise ValueError(
            f"directions(iterates=...) must be (n, D), one parameter vector a row, got shape {rows.shape}."
        )
    checks.finite("directions(iterates=...)", rows)
    most = min(len(rows) - (kind != "uncentred"), rows.shape[1])
    if count > most:
        raise ValueError(
            f"directions(count={count}): {len(rows)} iterates give at most {most} {kind} directions; ask for fewer, or "
            "store more iterates: more epochs, a smaller stride or skip, each='step'."
        )
    return jnp.asarray(_leading(_KINDS[kind](rows.astype(np.float64)), count), rows.dtype)


def _leading(rows: np.ndarray, count: int) -> np.ndarray:
    """First right singular vectors, by the Gram matrix of the rows."""
    square, U = np.linalg.eigh(rows @ rows.T)
    square, U = square[::-1][:count], U[:, ::-1][:, :count]
    span = int(np.sum(square > len(rows) * np.finfo(np.float64).eps * square[0])) if square[0] > 0.0 else 0
    if span < count:
        raise ValueError(
            f"directions(count={count}): the iterates span {span} directions only; ask for no more, or train longer."
        )
    V = rows.T @ (U / np.sqrt(square)[None, :])
    # what the Gram matrix lost in the small ones is put right against the large ones; the order stays
    return np.linalg.solve(np.linalg.cholesky(V.T @ V), V.T).T


def random_directions(size: int, count: int, *, key: Array, dtype: DTypeLike | None = None) -> Float[Array, "D d"]:
    """Draw directions at random, columns of length one: the alternative that needs no training.

    Args:
        size: Number of parameters D.
        count: How many directions d, at most D.
        key: A JAX random key.
        dtype: JAX's default float if not given.

    >>> random_directions(100, 3, key=jax.random.key(0)).shape
    (100, 3)
    """
    checks.whole("random_directions(size=...)", size, least=1)
    checks.whole("random_directions(count=...)", count)
    if count > size:
        raise ValueError(f"random_directions(count={count}): there are only {size} parameters; ask for fewer.")
    checks.key("random_directions(key=...)", key)
    drawn = jax.random.normal(key, (size, count), jnp.result_type(float) if dtype is None else dtype)
    return drawn / jnp.sqrt(jnp.sum(drawn * drawn, axis=0, keepdims=True))
