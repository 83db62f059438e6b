r"""Small algebra between the passes of a low-rank belief: of K x K and O x O matrices.

Each function is written here as it is meant. On a CUDA device these few numbers wait for launches and not for
arithmetic, so that there, in float32, each is one kernel (`small`). On a CPU LAPACK's threads take the cores from the
passes, so that beside those of `native` roots and solves are made in one thread. Derivatives are those of the forms
written here.

Axes: K rows of U, O outputs. Cost: O(K² O), and O(K³) for a root or the eigenvectors.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from filtax.beliefs import cuda, native
from filtax.beliefs.instead import instead
from filtax.beliefs.passes import MANY, natively, one_gpu
from filtax.beliefs.products import live, product
from filtax.linalg import SMALL, cholesky, psd_root, solve_lower, solve_upper, trace

__all__ = [
    "along",
    "bounded",
    "by_kernel",
    "explained",
    "extended",
    "judged",
    "known",
    "lowered",
    "placed",
    "semiroot",
    "settled",
    "stable_root",
    "widened",
]

WARP = 32  # threads, and so outputs that one of them can have a row each of


def by_kernel(U: Float[Array, "K D"], outputs: int) -> str:
    """The platform whose kernels serve a basis of this kind, "cuda" or "cpu": many parameters, one device; or "".

    >>> by_kernel(jnp.ones((2, 3)), 1)
    ''
    """
    if natively(U):
        return "cpu"
    if not one_gpu() or U.dtype != jnp.float32 or U.shape[1] < MANY:
        return ""
    from filtax.beliefs import small

    return "cuda" if small.fits(len(U), outputs) and cuda.usable() else ""


def explained(
    s: Float[Array, "K O"],
    shed: Float[Array, "K K"],
    root: Float[Array, "K K"],
    used: Int[Array, ""],
    kernel: str = "",
) -> tuple[Float[Array, "K O"], Float[Array, "O K"], Float[Array, "O O"]]:
    r"""What a factor explains of some rows whose products with U are s.

    $h = S^\top s$; $(Sh)^\top$, which is to be taken from the rows; and $f^\top f$ with $f = L^{-\top}h$. From `used`
    on s is zero, and S and L are identity.

    >>> [part.tolist() for part in explained(jnp.ones((1, 1)), 0.5 * jnp.eye(1), 4 * jnp.eye(1), jnp.asarray(1))]
    [[[0.5]], [[0.25]], [[0.015625]]]
    """
    return _either("explained", _explained, kernel)(s, shed, root, used)


def _explained(s: Array, shed: Array, root: Array, _: Array) -> tuple[Array, Array, Array]:
    half = product(shed.T, s)
    fit = solve_upper(root, half)
    return half, product(half.T, shed.T), product(fit.T, fit)


def judged(
    spread: Float[Array, "O O"], B: Float[Array, "O O"], r: Float[Array, " O"], kernel: str = ""
) -> tuple[Float[Array, "O O"], Float[Array, " O"], Float[Array, " O"], Bool[Array, ""]]:
    r"""A residual r under $S = I + B\,\mathrm{spread}\,B^\top = LL^\top$: L, $L^{-1}r$ and $r^\top S^{-1}B$.

    And whether all is finite; where the spread is not, S is taken to be I.

    >>> L, z, move, sound = judged(jnp.full((1, 1), 3.0), jnp.ones((1, 1)), jnp.ones(1))
    >>> L.item(), z.item(), move.item(), bool(sound)
    (2.0, 0.5, 0.25, True)
    """
    return _either("judged", _judged, kernel)(spread, B, r)


def _judged(spread: Array, B: Array, r: Array) -> tuple[Array, Array, Array, Array]:
    spread = product(product(B, spread), B.T)
    finite = jnp.isfinite(trace(spread))
    S = jnp.eye(r.size, dtype=r.dtype) + jnp.where(finite, spread, 0.0)
    L = cholesky(0.5 * (S + S.T))
    z = solve_lower(L, r)
    return L, z, product(solve_upper(L, z)[None, :], B)[0], finite & jnp.all(jnp.isfinite(L))


def along(
    s: Float[Array, "K O"],
    half: Float[Array, "K O"],
    shed: Float[Array, "K K"],
    root: Float[Array, "K K"],
    used: Int[Array, ""],
    kernel: str = "",
) -> Float[Array, "O K"]:
    r"""$(S(S^\top s - g))^\top$ with $g = L^{-1}L^{-\top}h$: by which rows of U a gain is off that shows s of them.

    >>> one = jnp.ones((1, 1))
    >>> along(5.0 * one, 4.0 * one, one, 2.0 * one, jnp.asarray(1)).tolist()
    [[4.0]]
    """
    return _either("along", _along, kernel)(s, half, shed, root, used)


def _along(s: Array, half: Array, shed: Array, root: Array, used: Array) -> Array:
    off = product(shed.T, s) - solve_lower(root, solve_upper(root, half))
    return product(live(off, used).T, shed.T)


def placed(
    core: Float[Array, "K K"],
    root: Float[Array, "K K"],
    used: Int[Array, ""],
    taken: Bool[Array, ""],
    B: Float[Array, "O O"],
    half: Float[Array, "K O"],
    c: Float[Array, "O K"],
    L: Float[Array, "O O"],
    *of_overlap: Float[Array, "..."],
    kernel: str = "",
) -> tuple[Float[Array, "K K"], ...]:
    r"""R and L with a datum from `used` on, if it is taken: columns $[cB^\top; B^\top]$ and rows $[Bh^\top, L_S]$.

    With X (K, O), Y (O, O) and N (K, K) as `of_overlap`, where $X = UV^{-1}J^\top$, $Y = JJ^\top$ and $N = W^\top W$, N
    too: rows $[BX^\top R, BYB^\top]$ and their mirror images, if it is `known`. From `used` on h, c, X and N are zero.

    >>> one, none, c = jnp.ones((1, 1)), jnp.zeros((2, 1)), jnp.array([[5.0, 0.0]])
    >>> given = jnp.eye(2), jnp.eye(2), jnp.asarray(1), jnp.asarray(True), 3 * one, none, c, 2 * one
    >>> core, root, N = placed(*given, jnp.array([[7.0], [0.0]]), 5 * one, jnp.diag(jnp.array([4.0, 0.0])))
    >>> core.tolist(), root.tolist(), N.tolist()
    ([[1.0, 15.0], [0.0, 3.0]], [[1.0, 0.0], [0.0, 2.0]], [[4.0, 21.0], [21.0, 45.0]])
    """
    return _either("placed", _placed, kernel)(core, root, used, taken, B, half, c, L, *of_overlap)


def _placed(
    core: Array, root: Array, used: Array, taken: Array, B: Array, half: Array, c: Array, L: Array, *of_overlap: Array
) -> tuple[Array, ...]:
    place, start = jax.lax.dynamic_update_slice, jnp.zeros_like(used)
    new = place(place(core, product(c.T, B.T), (start, used)), B.T, (used, used))
    grown = place(place(root, product(B, half.T), (used, start)), L, (used, used))
    both = jnp.where(taken, new, core), jnp.where(taken, grown, root)
    if not of_overlap:
        return both
    X, Y, N = of_overlap
    rows = product(product(B, X.T), live(core, used))
    more = place(place(N, rows, (used, start)), rows.T, (start, used))
    more = place(more, product(product(B, Y), B.T), (used, used))
    return *both, jnp.where(taken & known(N), bounded(more), N)


def known(overlap: Float[Array, "K K"]) -> Bool[Array, ""]:
    """Whether this is WᵀW; negative numbers stand for one that is not known.

    >>> bool(known(jnp.zeros((1, 1)))), bool(known(-jnp.ones((1, 1))))
    (True, False)
    """
    return overlap[0, 0] >= 0.0 if overlap.size else jnp.ones((), bool)


def bounded(A: Float[Array, "K K"]) -> Float[Array, "K K"]:
    """A with the largest number where squares overflowed: a belief holds finite numbers.

    >>> bool(jnp.isfinite(bounded(jnp.full((1, 1), jnp.inf))).all())
    True
    """
    return jnp.where(jnp.isfinite(A), A, jnp.finfo(A.dtype).max)


def extended(A: Float[Array, "K K"], more: int) -> Float[Array, "M M"]:
    """A in the corner of a larger identity.

    >>> extended(jnp.full((1, 1), 3.0), 1).tolist()
    [[3.0, 0.0], [0.0, 1.0]]
    """
    return jax.lax.dynamic_update_slice(jnp.eye(len(A) + more, dtype=A.dtype), A, (0, 0))


def widened(held: tuple[Array, ...], datum: tuple[Array, ...], more: int) -> tuple[tuple, tuple]:
    """R, L, N and what a datum brings, with rows and columns for that datum beyond the end.

    >>> one = jnp.ones((1, 1))
    >>> [A.shape for A in widened((one, one), (one, one, one, one), 1)[0]]
    [(2, 2), (2, 2)]
    """
    (core, root, *overlap), (B, half, c, L, *of_overlap) = held, datum
    below, beside = ((0, more), (0, 0)), ((0, 0), (0, more))
    held = extended(core, more), extended(root, more), *(jnp.pad(N, (0, more)) for N in overlap)
    of_overlap = [jnp.pad(of_overlap[0], below), of_overlap[1]] if of_overlap else []
    return held, (B, jnp.pad(half, below), jnp.pad(c, beside), L, *of_overlap)


def stable_root(lost: Float[Array, "K K"], kernel: str = "") -> Float[Array, "K K"]:
    """Cholesky factor of I + lost; where rounding made that indefinite, of a neighbour that is not.

    >>> stable_root(jnp.full((1, 1), 3.0)).tolist()
    [[2.0]]
    """
    return _either("rooted", partial(_stable_root, kernel=kernel), kernel)(lost)


def _stable_root(lost: Array, kernel: str = "") -> Array:
    whole = jnp.eye(len(lost), dtype=lost.dtype) + 0.5 * (lost + lost.T)
    plain = (instead(cholesky, native.rooted, "cpu") if kernel == "cpu" else cholesky)(whole)
    return jax.lax.cond(jnp.all(jnp.isfinite(plain)), lambda: plain, lambda: psd_root(whole))


def lowered(C: Float[Array, "K K"], Y: Float[Array, "K M"], kernel: str = "") -> Float[Array, "K M"]:
    """C⁻¹ Y for lower triangular C and many columns.

    >>> lowered(2 * jnp.eye(1), jnp.ones((1, 2))).tolist()
    [[0.5, 0.5]]
    """
    return _either("lowered", solve_lower, kernel)(C, Y)


def settled(
    core: Float[Array, "K K"],
    root: Float[Array, "K K"],
    inner: Float[Array, "rank rank"],
    scale: Float[Array, ""],
    kernel: str = "",
) -> tuple[Float[Array, "K K"], Float[Array, "K K"]]:
    r"""R and L after a cut: a scale for the rows that are kept, and the root of $I + W^\top VW$; identity beyond.

    Of the old ones only the size counts; they are written over.

    >>> core, root = settled(jnp.eye(2), jnp.eye(2), jnp.full((1, 1), 3.0), jnp.asarray(0.5))
    >>> core.tolist(), root.tolist()
    ([[0.5, 0.0], [0.0, 1.0]], [[2.0, 0.0], [0.0, 1.0]])
    """
    plain = partial(_settled, kernel=kernel)
    return _either("settled", plain, kernel if len(inner) else "")(core, root, inner, scale)


def _settled(core: Array, _: Array, inner: Array, scale: Array, kernel: str = "") -> tuple[Array, Array]:
    eye, rank = jnp.eye(len(core), dtype=core.dtype), len(inner)
    kept = jnp.where(jnp.arange(len(core)) < rank, scale, 1.0)[:, None]
    return kept * eye, jax.lax.dynamic_update_slice(eye, _stable_root(inner, kernel), (0, 0)) if rank else eye


def semiroot(A: Float[Array, "O O"]) -> Float[Array, "O O"]:
    """`linalg.psd_root` of a few outputs; under `vmap` still one kernel.

    >>> semiroot(jnp.full((1, 1), 4.0)).round(5).tolist()
    [[2.0]]
    """
    return _either("semiroot", psd_root, _few_by_kernel(A))(A)


def _few_by_kernel(A: Array) -> str:
    if not SMALL < len(A) <= WARP or A.dtype != jnp.float32 or not one_gpu():
        return ""
    return "cuda" if cuda.usable() else ""


def _either(name: str, plain: Callable[..., Any], kernel: str) -> Callable[..., Any]:
    """The plain form, or a kernel of `small` or `native` in its place."""
    if kernel == "cpu":
        return instead(plain, getattr(native, name), "cpu") if name in native.SMALL else plain
    if not kernel:
        return plain
    from filtax.beliefs import small

    return instead(plain, getattr(small, name))
