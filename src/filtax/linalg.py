"""Small dense linear algebra, written so that tiny sizes cost no library call.

LAPACK and batched matrix products have a fixed price of microseconds that a 2 x 2 problem never earns back, and under
`vmap` it is paid once for every stream. Up to `SMALL` rows everything here is unrolled into scalar arithmetic, which
XLA fuses; beyond it the usual routines are called. The choice depends on static shapes only.

Nothing here adds a jitter of fixed size: the results scale with their inputs.
"""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from filtax import lapack
from filtax._xla import no_inline

__all__ = [
    "argleast",
    "cholesky",
    "gram",
    "log_det",
    "log_normal",
    "matmul",
    "psd_root",
    "solve_lower",
    "solve_upper",
    "trace",
    "triangular_root",
]

SMALL = 4  # largest matrix whose factorisation is unrolled: code size grows with its cube
THIN = 8  # longest contraction that is unrolled in a product


def matmul(A: Float[Array, "N M"], B: Float[Array, "M P"]) -> Float[Array, "N P"]:
    """Multiply two matrices; a short contraction becomes a sum of outer products.

    >>> matmul(jnp.eye(2), 3.0 * jnp.eye(2)).tolist()
    [[3.0, 0.0], [0.0, 3.0]]
    """
    M = A.shape[1]
    if M > THIN and B.shape[1] == 1 and A.size <= 4096:
        return jnp.sum(A * B[:, 0][None, :], axis=1)[:, None]
    if M > THIN or (M > SMALL and max(A.shape[0], B.shape[1]) > THIN):
        return jnp.matmul(A, B, precision="highest")
    if max(A.shape[0], B.shape[1]) > THIN:
        return _outer(A, B)
    return _slim(A, B[:, 0])[:, None] if B.shape[1] == 1 else _small(A, B)


def _outer(A: Array, B: Array) -> Array:
    return sum((A[:, k : k + 1] * B[k : k + 1, :] for k in range(1, A.shape[1])), start=A[:, :1] * B[:1, :])


_small = no_inline(_outer)


@no_inline
def _slim(A: Array, b: Array) -> Array:
    return _outer(A, b[:, None])[:, 0]  # a vector goes in as one: as a column it would be copied


def gram(A: Float[Array, "N M"]) -> Float[Array, "N N"]:
    """Multiply a matrix by its own transpose: A Aᵀ.

    >>> gram(jnp.array([[1.0, 2.0]])).tolist()
    [[5.0]]
    """
    return _square(A) if max(A.shape) <= THIN else matmul(A, A.T)


@no_inline
def _square(A: Array) -> Array:
    return _outer(A, A.T)


def cholesky(A: Float[Array, "N N"]) -> Float[Array, "N N"]:
    """Return the lower Cholesky factor of a positive definite matrix; NaN where it is not.

    >>> cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]])).tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """
    N = A.shape[0]
    if N > SMALL:
        return lapack.cholesky(A)
    L = [[jnp.zeros((), A.dtype)] * N for _ in range(N)]
    for j in range(N):
        L[j][j] = jnp.sqrt(A[j, j] - sum(L[j][k] * L[j][k] for k in range(j)))
        for i in range(j + 1, N):
            L[i][j] = (A[i, j] - sum(L[i][k] * L[j][k] for k in range(j))) / L[j][j]
    return _assemble(L)


def solve_lower(L: Float[Array, "N N"], b: Float[Array, "N *P"]) -> Float[Array, "N *P"]:
    """Solve L x = b for lower triangular L.

    >>> solve_lower(jnp.array([[2.0, 0.0], [1.0, 2.0]]), jnp.array([2.0, 5.0])).tolist()
    [1.0, 2.0]
    """
    N = L.shape[0]
    if N > SMALL:
        return lapack.solve_lower(L, b)
    x: list[Array] = []
    for i in range(N):
        x.append((b[i] - sum(L[i, k] * x[k] for k in range(i))) / L[i, i])
    return jnp.stack(x)


def solve_upper(L: Float[Array, "N N"], b: Float[Array, "N *P"]) -> Float[Array, "N *P"]:
    """Solve Lᵀ x = b for lower triangular L.

    >>> solve_upper(jnp.array([[2.0, 0.0], [1.0, 2.0]]), jnp.array([4.0, 4.0])).tolist()
    [1.0, 2.0]
    """
    N = L.shape[0]
    if N > SMALL:
        return lapack.solve_lower(L, b, transposed=True)
    x: list[Array] = []
    for i in reversed(range(N)):
        x.append((b[i] - sum(L[k, i] * x[N - 1 - k] for k in range(i + 1, N))) / L[i, i])
    return jnp.stack(x[::-1])


def triangular_root(A: Float[Array, "N M"]) -> Float[Array, "N N"]:
    """Return lower triangular L with L Lᵀ = A Aᵀ for a wide A, without forming the product.

    The diagonal is non-negative. A product would square the condition number; an orthogonal reduction does not.

    >>> triangular_root(jnp.array([[3.0, 4.0]])).tolist()
    [[5.0]]
    """
    return _triangular_root(A)


@jax.custom_jvp
def _triangular_root(A: Array) -> Array:
    N, M = A.shape
    if N == 1:
        square = jnp.sum(A * A, axis=1, keepdims=True)
        return jnp.where(square == 0, 0.0, jnp.sqrt(square))
    if N <= SMALL + 2 and M <= 2 * SMALL:
        return _reflections(A)
    if M < N:
        A = jnp.pad(A, ((0, 0), (0, N - M)))
    upper = lapack.upper_of_qr(A.T)
    return upper.T * jnp.where(jnp.diag(upper) < 0, -1.0, 1.0).astype(A.dtype)[None, :]


@_triangular_root.defjvp
def _triangular_root_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    r"""Differentiate L Lᵀ = A Aᵀ instead of the reflections: it compiles far faster.

    $\dot L = L\,\Phi(L^{-1}(\dot A A^\top + A\dot A^\top)L^{-\top})$ with $\Phi$ the lower half. A zero pivot (a belief
    that is certain) gets the derivative of a pivot of one.
    """
    (A,), (dA,) = primals, tangents
    L = _triangular_root(A)
    N = L.shape[0]
    solid = L + jnp.diag(jnp.where(jnp.diag(L) > 0, 0.0, 1.0).astype(A.dtype))
    half = matmul(dA, A.T)
    X = solve_lower(solid, solve_lower(solid, half + half.T).T).T
    lower = jnp.tril(X) - 0.5 * jnp.diag(jnp.diag(X))
    return L, matmul(L, lower) if N > 1 else L * lower


def argleast(values: Float[Array, " N"]) -> Int[Array, ""]:
    """Place of the least of some numbers, the first of equals; NaN is no number.

    A minimum, and the first place that has it: XLA's CPU compiler makes vectors of both, and of `argmin` it makes a
    scalar loop that takes ten times as long.

    >>> argleast(jnp.array([3.0, 1.0, 1.0])).item()
    1
    """
    N = values.size
    if N == 2:
        return (values[1] < values[0]).astype(jnp.int32)
    place = jnp.arange(N, dtype=jnp.int32)
    return jnp.min(jnp.where(values == jnp.min(values), place, N - 1))


def trace(A: Float[Array, "N N"]) -> Float[Array, ""]:
    """Sum of the diagonal.

    >>> trace(2.0 * jnp.eye(3)).item()
    6.0
    """
    if A.shape[0] > THIN:
        return jnp.trace(A)
    return sum((A[i, i] for i in range(1, A.shape[0])), start=A[0, 0])


def psd_root(A: Float[Array, "N N"]) -> Float[Array, "N N"]:
    """Return a lower triangular L with L Lᵀ = A to rounding, for a semidefinite A that may be singular.

    A shift of the size of A's own rounding error keeps the pivots positive; it is relative to each variance, so it
    scales with A and with the unit of each row.

    >>> L = psd_root(jnp.array([[1.0, 1.0], [1.0, 1.0]]))
    >>> bool(jnp.allclose(L @ L.T, 1.0, atol=1e-6))
    True
    """
    N = A.shape[0]
    var = A.reshape(N * N)[:: N + 1]  # a slice, where jnp.diag has a branch for each platform
    some = var > 0.0
    sd = jnp.where(some, jnp.sqrt(jnp.where(some, var, 1.0)), 0.0)
    safe = jnp.where(some, sd, 1.0)
    unit = A / safe[:, None] / safe[None, :] + (N * jnp.finfo(A.dtype).eps) * jnp.eye(N, dtype=A.dtype)
    return sd[:, None] * cholesky(unit)


def log_det(L: Float[Array, "N N"]) -> Float[Array, ""]:
    """Log determinant of L Lᵀ for lower triangular L.

    >>> log_det(jnp.eye(3)).item()
    0.0
    """
    if L.shape[0] > SMALL:
        return 2.0 * jnp.sum(jnp.log(jnp.diag(L)))
    return 2.0 * sum((jnp.log(L[i, i]) for i in range(1, L.shape[0])), start=jnp.log(L[0, 0]))


def log_normal(z: Float[Array, " O"], log_det: Float[Array, ""], count: Array | int) -> Float[Array, ""]:
    """Log density of `count` whitened coordinates: N(z; 0, I) times the volume exp(-log_det / 2).

    >>> round(float(log_normal(jnp.zeros(1), jnp.zeros(()), 1)), 6)
    -0.918939
    """
    return -0.5 * (jnp.sum(z * z) + log_det + count * math.log(2.0 * math.pi))


def _reflections(A: Array) -> Array:
    """Unrolled reflections on the rows of A; each takes a column off, and leaves a smaller array for the next."""
    N = A.shape[0]
    columns: list[Array] = []
    for _ in range(min(A.shape)):
        norm, head, dot = _reflection(A)
        below = jnp.where(head < 0, -1.0, 1.0).astype(A.dtype) * (dot * head - A[1:, 0])
        columns.append(jnp.concatenate([jnp.zeros(len(columns), A.dtype), norm[None], below]))
        A = A[1:, 1:] - dot[:, None] * A[:1, 1:]
    columns += [jnp.zeros(N, A.dtype)] * (N - len(columns))
    return jnp.stack(columns, axis=1)


@no_inline
def _reflection(A: Array) -> tuple[Array, Array, Array]:
    """Of the first row its length and the head of its mirror, which the other rows are to lose `dot` times."""
    x, M = A[0], A.shape[1]
    square = sum((x[j] * x[j] for j in range(1, M)), start=x[0] * x[0])
    norm = jnp.sqrt(square)
    away = jnp.where(x[0] < 0, -norm, norm)
    head = x[0] + away  # away from zero: no cancellation
    gain = jnp.where(square == 0, 0.0, 1.0 / (away * head))  # a zero row reflects to itself
    return norm, head, gain * sum((x[j] * A[1:, j] for j in range(1, M)), start=head * A[1:, 0])


def _assemble(rows: list[list[Array]]) -> Array:
    return jnp.stack([jnp.stack(row) for row in rows])
