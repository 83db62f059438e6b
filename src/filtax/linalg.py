"""Dense linear algebra: unrolled into scalars for tiny sizes, LAPACK with derivatives of its own for the others.

LAPACK and batched products cost microseconds a call, which a 2 x 2 problem never earns back, and under `vmap` once for
every stream. So up to `SMALL` rows a factorisation is scalar arithmetic, which XLA fuses. The choice depends on static
shapes only. Nothing here adds a jitter of fixed size: results scale with their inputs.

Under `vmap` the members of a batch are handed to LAPACK one after another on a CPU. XLA would share a batch out to the
threads that also run the rest of the program; on two cores two batches at once then wait for each other for ever
(jaxlib 0.10). The derivatives are written in terms of the same functions, so that they are safe too.
"""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.custom_batching import sequential_vmap
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Bool, Float, Int

from filtax._xla import no_inline
from filtax.protocols import Module

SMALL = 4  # largest matrix whose factorisation is unrolled: code size grows with its cube
THIN = 8  # longest contraction that is unrolled in a product
MIDDLE, WIDE = 32, 1024  # LAPACK solves with threads from so many right-hand sides of a factor of so many rows


def matmul(A: Float[Array, "N M"], B: Float[Array, "M P"]) -> Float[Array, "N P"]:
    """Multiply two matrices; a short contraction becomes a sum of outer products."""
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
    """Multiply a matrix by its own transpose: A Aᵀ."""
    return _square(A) if max(A.shape) <= THIN else matmul(A, A.T)


@no_inline
def _square(A: Array) -> Array:
    return _outer(A, A.T)


def cholesky(A: Float[Array, "N N"]) -> Float[Array, "N N"]:
    """Return the lower Cholesky factor of a positive definite matrix; NaN where it is not."""
    N = A.shape[0]
    if N > SMALL:
        return _lapack_cholesky(A)
    L = [[jnp.zeros((), A.dtype)] * N for _ in range(N)]
    for j in range(N):
        L[j][j] = jnp.sqrt(A[j, j] - sum(L[j][k] * L[j][k] for k in range(j)))
        for i in range(j + 1, N):
            L[i][j] = (A[i, j] - sum(L[i][k] * L[j][k] for k in range(j))) / L[j][j]
    return jnp.stack([jnp.stack(row) for row in L])


def solve_lower(L: Float[Array, "N N"], b: Float[Array, "N *P"]) -> Float[Array, "N *P"]:
    """Solve L x = b for lower triangular L."""
    N = L.shape[0]
    if N > SMALL:
        return _lapack_solve(L, b)
    x: list[Array] = []
    for i in range(N):
        x.append((b[i] - sum(L[i, k] * x[k] for k in range(i))) / L[i, i])
    return jnp.stack(x)


def solve_upper(L: Float[Array, "N N"], b: Float[Array, "N *P"]) -> Float[Array, "N *P"]:
    """Solve Lᵀ x = b for lower triangular L."""
    N = L.shape[0]
    if N > SMALL:
        return _lapack_solve(L, b, transposed=True)
    x: list[Array] = []
    for i in reversed(range(N)):
        x.append((b[i] - sum(L[k, i] * x[N - 1 - k] for k in range(i + 1, N))) / L[i, i])
    return jnp.stack(x[::-1])


@jax.custom_jvp
def triangular_root(A: Float[Array, "N M"]) -> Float[Array, "N N"]:
    """Return lower triangular L with L Lᵀ = A Aᵀ for a wide A, without forming the product.

    The diagonal is non-negative. A product would square the condition number; an orthogonal reduction does not.
    """
    N, M = A.shape
    if N == 1:
        square = jnp.sum(A * A, axis=1, keepdims=True)
        return jnp.where(square == 0, 0.0, jnp.sqrt(square))
    if N <= SMALL + 2 and M <= 2 * SMALL:
        return _reflections(A)
    if M < N:
        A = jnp.pad(A, ((0, 0), (0, N - M)))
    upper = _qr(A.T)
    return upper.T * jnp.where(jnp.diag(upper) < 0, -1.0, 1.0).astype(A.dtype)[None, :]


@triangular_root.defjvp
def _triangular_root_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    r"""Differentiate L Lᵀ = A Aᵀ instead of the reflections: it compiles far faster.

    $\dot L = L\,\Phi(L^{-1}(\dot A A^\top + A\dot A^\top)L^{-\top})$ with $\Phi$ the lower half. A zero pivot (a belief
    that is certain) gets the derivative of a pivot of one.
    """
    (A,), (dA,) = primals, tangents
    L = triangular_root(A)
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
    """
    N = values.size
    if N == 2:
        return (values[1] < values[0]).astype(jnp.int32)
    place = jnp.arange(N, dtype=jnp.int32)
    return jnp.min(jnp.where(values == jnp.min(values), place, N - 1))


def trace(A: Float[Array, "N N"]) -> Float[Array, ""]:
    """Sum of the diagonal."""
    if A.shape[0] > THIN:
        return jnp.trace(A)
    return sum((A[i, i] for i in range(1, A.shape[0])), start=A[0, 0])


def diagonals(A: Float[Array, "*H N N"]) -> Float[Array, "*H N"]:
    """Diagonals of square matrices, for any leading axes; a slice, where `jnp.diagonal` is a gather."""
    N = A.shape[-1]
    return A.reshape(*A.shape[:-2], N * N)[..., :: N + 1]


def psd_root(A: Float[Array, "N N"]) -> Float[Array, "N N"]:
    """Return a lower triangular L with L Lᵀ = A to rounding, for a semidefinite A that may be singular.

    A shift of the size of A's own rounding error keeps the pivots positive; it is relative to each variance, so it
    scales with A and with the unit of each row.
    """
    N, var = A.shape[0], diagonals(A)
    some = var > 0.0
    sd = jnp.where(some, jnp.sqrt(jnp.where(some, var, 1.0)), 0.0)
    safe = jnp.where(some, sd, 1.0)
    unit = A / safe[:, None] / safe[None, :] + (N * jnp.finfo(A.dtype).eps) * jnp.eye(N, dtype=A.dtype)
    return sd[:, None] * cholesky(unit)


def log_det(L: Float[Array, "N N"]) -> Float[Array, ""]:
    """Log determinant of L Lᵀ for lower triangular L."""
    if L.shape[0] > SMALL:
        return 2.0 * jnp.sum(jnp.log(jnp.diag(L)))
    return 2.0 * sum((jnp.log(L[i, i]) for i in range(1, L.shape[0])), start=jnp.log(L[0, 0]))


def log_normal(z: Float[Array, " O"], log_det: Float[Array, ""], count: Array | int) -> Float[Array, ""]:
    """Log density of `count` whitened coordinates: N(z; 0, I) times the volume exp(-log_det / 2)."""
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


class Factor(Module):
    """A root of a positive definite matrix A that is cheap to use; in its units A is the identity.

    `rows` is its lower Cholesky factor (N, N). For small N it is L D Lᵀ: a tuple of scalars for each row of the unit
    triangle, which ends in the reciprocal root of the pivot. XLA's CPU compiler ends a kernel at each root or division
    that several others read, and a small filter spends its time on the number of its kernels: this form has one for
    each entry below the diagonal, one for each pivot, and none for a solve.
    """

    rows: Array | tuple[tuple[Array, ...], ...]

    def solve(self, b: Float[Array, "N *P"]) -> Float[Array, "N *P"]:
        """L⁻¹ b for the lower Cholesky factor L."""
        if not isinstance(self.rows, tuple):
            N = self.rows.shape[0]
            if b.size >= WIDE and N < MIDDLE:  # LAPACK's threads wait for each other by spinning; a product has none
                return matmul(_lapack_solve(self.rows, jnp.eye(N, dtype=self.rows.dtype)), b)
            return _lapack_solve(self.rows, b)
        x: list[Array] = []
        for i, row in enumerate(self.rows):
            x.append(b[i] - sum(row[k] * x[k] for k in range(i)) if i else b[i])
        return jnp.stack([value * row[-1] for value, row in zip(x, self.rows, strict=True)])

    @property
    def log_det(self) -> Float[Array, ""]:
        """Log determinant of A."""
        if not isinstance(self.rows, tuple):
            return 2.0 * jnp.sum(jnp.log(jnp.diagonal(self.rows)))
        logs = [jnp.log(row[-1]) for row in self.rows]
        return -2.0 * sum(logs[1:], start=logs[0])

    def sound(self, least: float = 0.0) -> Bool[Array, ""]:
        """Whether A was positive definite, with every pivot finite and above `least`."""
        if not isinstance(self.rows, tuple):
            pivot = jnp.diagonal(self.rows)
            return jnp.all((pivot > math.sqrt(least)) & (pivot < jnp.inf))
        most = 1.0 / math.sqrt(least) if least else math.inf
        flags = [(row[-1] > 0.0) & (row[-1] < most) for row in self.rows]
        return flags[0] if len(flags) == 1 else jnp.all(jnp.stack(flags))


def factor(A: Float[Array, "N N"]) -> Factor:
    """Factor a symmetric positive definite matrix, of which the lower half is read; NaN where it is not one."""
    return Factor(_lapack_cholesky(A) if A.shape[0] > SMALL else _eliminated(A))


@no_inline
def _eliminated(A: Array) -> tuple[tuple[Array, ...], ...]:
    """The rows of a small factor."""
    rows: list[tuple[Array, ...]] = []
    pivots: list[Array] = []
    for i in range(A.shape[0]):
        # w = l * pivot is what elimination leaves of the line; l itself is kept
        low, rest = [], []
        for j in range(i):
            rest.append(A[i, j] - sum(rest[k] * rows[j][k] for k in range(j)) if j else A[i, j])
            low.append(rest[j] / pivots[j])
        pivot = A[i, i] - sum(w * unit for w, unit in zip(rest, low, strict=True)) if i else A[i, i]
        pivots.append(pivot)
        rows.append((*low, jax.lax.rsqrt(pivots[i])))
    return tuple(rows)


Decomposition = tuple[Float[Array, "N K"], Float[Array, " K"], Float[Array, "K M"]]


def _one_by_one(function: Callable[..., Any]) -> Callable[..., Any]:
    """Under `vmap`, call a function once for each member of the batch, on a CPU."""
    mapped = sequential_vmap(function)
    return lambda *args: (mapped if jax.default_backend() == "cpu" else function)(*args)


def _product(A: Array, B: Array) -> Array:
    return jnp.matmul(A, B, precision="highest")


_cholesky = _one_by_one(lambda A: jnp.linalg.cholesky(A, symmetrize_input=False))
_eigh = _one_by_one(lambda A: tuple(jnp.linalg.eigh(A)))
_svd = _one_by_one(lambda A: tuple(jnp.linalg.svd(A, full_matrices=False)))
_forwards = _one_by_one(lambda L, b: solve_triangular(L, b, lower=True))
_backwards = _one_by_one(lambda L, b: solve_triangular(L, b, lower=True, trans="T"))
_qr = _one_by_one(lambda A: jnp.linalg.qr(A, mode="r"))  # without a derivative


def _lapack_solve(L: Float[Array, "N N"], b: Float[Array, "N *P"], transposed: bool = False) -> Float[Array, "N *P"]:
    """Solve L x = b for lower triangular L, or Lᵀ x = b."""
    forwards, backwards = (lambda _, b: _forwards(L, b)), (lambda _, b: _backwards(L, b))
    if transposed:
        return jax.lax.custom_linear_solve(lambda x: _product(jnp.tril(L).T, x), b, backwards, forwards)
    return jax.lax.custom_linear_solve(lambda x: _product(jnp.tril(L), x), b, forwards, backwards)


@jax.custom_jvp
def _lapack_cholesky(A: Float[Array, "N N"]) -> Float[Array, "N N"]:
    """Return the lower Cholesky factor of a positive definite matrix, of which the lower half is read."""
    return _cholesky(A)


@_lapack_cholesky.defjvp
def _cholesky_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    r"""$\dot L = L\,\Phi(L^{-1}\dot A L^{-\top})$, with Φ the lower half."""
    (A,), (dA,) = primals, tangents
    L = _lapack_cholesky(A)
    lower = jnp.tril(dA)
    symmetric = lower + lower.T - jnp.diag(jnp.diagonal(dA))
    inner = _lapack_solve(L, _lapack_solve(L, symmetric).T)
    return L, _product(L, jnp.tril(inner) - 0.5 * jnp.diag(jnp.diagonal(inner)))


@jax.custom_jvp
def eigh(A: Float[Array, "N N"]) -> tuple[Float[Array, " N"], Float[Array, "N N"]]:
    """Eigenvalues, in ascending order, and eigenvectors of a symmetric matrix."""
    return _eigh(A)


@eigh.defjvp
def _eigh_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    r"""With $P = V^\top\dot A V$: $\dot\lambda_i = P_{ii}$ and $\dot V = V\Omega$.

    Here $\Omega_{ij} = P_{ij}/(\lambda_j - \lambda_i)$ for i ≠ j.
    """
    (A,), (dA,) = primals, tangents
    value, V = eigh(A)
    turned = _product(V.T, _product(0.5 * (dA + dA.T), V))
    gap = value[None, :] - value[:, None] + jnp.eye(value.size, dtype=A.dtype)
    turn = turned / gap * (1.0 - jnp.eye(value.size, dtype=A.dtype))
    return (value, V), (jnp.diagonal(turned), _product(V, turn))


@jax.custom_jvp
def svd(A: Float[Array, "N M"]) -> Decomposition:
    """Thin singular value decomposition A = U diag(s) Vᵀ, with K = min(N, M)."""
    return _svd(A)


@svd.defjvp
def _svd_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Decomposition, Decomposition]:
    r"""With $P = U^\top\dot A V$ and S = diag(s): $\dot s_i = P_{ii}$, and U and V turn within their columns.

    U by $(PS + SP^\top)_{ij}/(s_j^2 - s_i^2)$, V by $(SP + P^\top S)_{ij}/(s_j^2 - s_i^2)$. What A moves out of their
    span is added, divided by s.
    """
    (A,), (dA,) = primals, tangents
    U, s, Vt = svd(A)
    P = _product(U.T, _product(dA, Vt.T))
    eye = jnp.eye(s.size, dtype=A.dtype)
    F = (1.0 - eye) / (s[None, :] ** 2 - s[:, None] ** 2 + eye)
    left, right = P * s[None, :], s[:, None] * P
    safe = jnp.where(s > 0.0, s, 1.0)
    dU = _product(U, F * (left + left.T)) + _rest(U, _product(dA, Vt.T) / safe[None, :])
    dV = _product(Vt.T, F * (right + right.T)) + _rest(Vt.T, _product(dA.T, U) / safe[None, :])
    return (U, s, Vt), (dU, jnp.diagonal(P), dV.T)


def _rest(Q: Array, X: Array) -> Array:
    """What of the columns of X the columns of Q do not span."""
    return X - _product(Q, _product(Q.T, X)) if Q.shape[0] > Q.shape[1] else jnp.zeros_like(X)
