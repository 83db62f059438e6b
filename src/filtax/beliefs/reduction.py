r"""A root of a covariance that learns of several outputs at once, by reflections.

With $\Sigma = AA^\top$ and $V = BJA$, an orthogonal matrix Q from the right takes

$$\begin{pmatrix} I & V \\ 0 & A \end{pmatrix} Q = \begin{pmatrix} L & 0 \\ U & A' \end{pmatrix},
\qquad LL^\top = I + VV^\top, \quad U = AV^\top L^{-\top}, \quad A'A'^\top = AA^\top - UU^\top,$$

and no product is formed that would square a condition number (Kaminski, 1971). Any root will do, so a reflection for
each output is enough: those that would make A' triangular as well are left out.

Axes: D parameters, O outputs. Cost: O(OD(O + D)), where that is many O((O + D)³).
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from filtax._xla import no_inline
from filtax.linalg import triangular_root

__all__ = ["reduced"]

FEW, SMALL = 8, 128  # outputs, and numbers of V, up to which reflections written out beat a library that makes all


def reduced(
    root: Float[Array, "D D"], V: Float[Array, "O D"]
) -> tuple[Float[Array, "O O"], Float[Array, "D O"], Float[Array, "D D"]]:
    r"""L, U and A' of the reduction above; the diagonal of L is positive. V = 0 leaves the root as it is.

    The row $(1\;v)$ of an output, with zeros between, has the length $n = (1 + v^\top v)^{1/2}$. The reflection that
    takes it to its first number takes each row $(0\;a)$ below to $((1 + n)d\;\;a - dv)$ with $d = a^\top v/(n(1 + n))$,
    up to the sign of the first column. It does not touch the columns of the other outputs. Rounding moves a row along v
    alone: scaled first, v would be rounded in each of its numbers, and what nearly equal outputs differ by with it.

    >>> [part.round(3).item() for part in reduced(2.0 * jnp.eye(1), jnp.array([[0.75]]))]
    [1.25, 1.2, 1.6]
    """
    O = len(V)
    if O > FEW or V.size > SMALL:
        return _reduced_whole(root, V)
    rows, columns = jnp.concatenate([V, root]), []
    for k in range(O):
        norm, dot = _reflected(rows)
        columns.append(jnp.concatenate([jnp.zeros(k, V.dtype), norm[None], (1.0 + norm) * dot]))
        rows = _without(rows, dot)
    lower = jnp.stack(columns, axis=1)
    return lower[:O], lower[O:], rows


@no_inline
def _reflected(rows: Array) -> tuple[Array, Array]:
    """Length n of the first row, and how many times each other one is to lose it."""
    v, below = rows[0], rows[1:]
    norm = jnp.sqrt(1.0 + sum((v[j] * v[j] for j in range(1, v.size)), start=v[0] * v[0]))
    gain = 1.0 / (norm * (1.0 + norm))
    return norm, gain * sum((below[:, j] * v[j] for j in range(1, v.size)), start=below[:, 0] * v[0])


@no_inline
def _without(rows: Array, dot: Array) -> Array:
    return rows[1:] - dot[:, None] * rows[:1]


def _reduced_whole(root: Array, V: Array) -> tuple[Array, Array, Array]:
    """The same with a triangular root, unless it would be that of an unchanged belief: that keeps its bits."""
    O = len(V)
    top = jnp.concatenate([jnp.eye(O, dtype=V.dtype), V], axis=1)
    full = triangular_root(jnp.concatenate([top, jnp.pad(root, ((0, 0), (O, 0)))]))
    some = jnp.any(V != 0.0)
    return full[:O, :O], jnp.where(some, full[O:, :O], 0.0), jnp.where(some, full[O:, O:], root)
