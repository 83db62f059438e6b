"""Small linear algebra against numpy, on both sides of the size at which unrolled code gives way to the library."""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
import scipy.stats

from filtax import linalg
from filtax.linalg import factor, log_normal

cholesky, matmul, psd_root, solve_lower, solve_upper, trace, triangular_root = (
    jax.jit(getattr(linalg, name))
    for name in ("cholesky", "matmul", "psd_root", "solve_lower", "solve_upper", "trace", "triangular_root")
)
triangular_roots = jax.jit(jax.vmap(linalg.triangular_root))
TOL = {"float64": dict(rtol=1e-12, atol=1e-13), "float32": dict(rtol=3e-5, atol=1e-5)}
dtypes = pytest.mark.parametrize("dtype", TOL)
sizes = pytest.mark.parametrize("N", [1, 3, 4, 5, 9])


def normal(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape)


@dtypes
@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 8, 3), (2, 9, 2), (9, 5, 3), (20, 3, 20)])
def test_matmul(shape, dtype):
    N, M, P = shape
    A, B = normal(0, N, M).astype(dtype), normal(1, M, P).astype(dtype)
    got = matmul(jnp.asarray(A), jnp.asarray(B))
    assert got.dtype == dtype
    np.testing.assert_allclose(got, A.astype("float64") @ B, **TOL[dtype])


@pytest.mark.parametrize("shape", [(1, 1), (2, 4), (4, 2), (9, 3)])
def test_gram_of_a_constant_and_of_an_argument(shape):
    A = np.random.default_rng(5).normal(size=shape)
    want = A @ A.T
    for got in (linalg.gram(jnp.asarray(A)), jax.jit(linalg.gram)(jnp.asarray(A))):
        np.testing.assert_allclose(got, want, **TOL[str(got.dtype)])
        np.testing.assert_array_equal(got, got.T)


@dtypes
@sizes
def test_factor_and_solve(N, dtype):
    """Cholesky and both triangular solves, for vectors and matrices on the right."""
    A = normal(N, N, 2 * N)
    A = (A @ A.T + np.eye(N)).astype(dtype)
    L = cholesky(jnp.asarray(A))
    assert L.dtype == dtype
    np.testing.assert_allclose(L, np.linalg.cholesky(A.astype("float64")), **TOL[dtype])
    for b in (normal(1, N), normal(2, N, 3)):
        b = jnp.asarray(b, dtype)
        want = [scipy.linalg.solve_triangular(np.asarray(L, "float64"), b, lower=True, trans=t) for t in (0, 1)]
        np.testing.assert_allclose(solve_lower(L, b), want[0], **TOL[dtype])
        np.testing.assert_allclose(solve_upper(L, b), want[1], **TOL[dtype])
    assert trace(jnp.asarray(A)).dtype == dtype
    np.testing.assert_allclose(trace(jnp.asarray(A)), np.trace(A), **TOL[dtype])


@pytest.mark.parametrize("N", [2, 6])
def test_cholesky_of_an_indefinite_matrix_is_not_a_number(N):
    assert bool(jnp.any(jnp.isnan(cholesky(-jnp.eye(N)))))


@dtypes
@pytest.mark.parametrize("shape", [(1, 7), (2, 2), (3, 8), (4, 2), (6, 12), (6, 13), (9, 4)])
@pytest.mark.parametrize("kind", ["full", "zero row", "rank one"])
def test_triangular_root(shape, kind, dtype):
    """L is lower triangular with a non-negative diagonal, and L Lᵀ = A Aᵀ, for wide, tall and degenerate A."""
    A = normal(5, *shape)
    if kind == "zero row":
        A[0] = 0.0
    elif kind == "rank one":
        A = np.outer(A[:, 0], A[0])
    L = np.asarray(triangular_root(jnp.asarray(A, dtype)))
    assert L.dtype == dtype
    np.testing.assert_array_equal(L, np.tril(L))
    assert (np.diag(L) >= 0.0).all()
    np.testing.assert_allclose(L.astype("float64") @ L.T, A @ A.T, **TOL[dtype])


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("shape", [(1, 2), (3, 6), (7, 9)])
def test_what_is_no_number_shows_on_the_diagonal_of_the_triangular_root(shape, bad):
    """In any row: of the last one it was taken for a zero, and a belief for certain."""
    for row in range(shape[0]):
        A = normal(5, *shape)
        A[row, -1] = bad
        for L in (triangular_root(jnp.asarray(A)), triangular_roots(jnp.asarray(np.stack([A] * 16)))[3]):
            assert not np.isfinite(np.diag(L)).all()


@pytest.mark.x64
@pytest.mark.parametrize("copies", [1, 7])
def test_triangular_root_does_not_square_the_condition_number(copies):
    """Rows that agree to 1e-9: a Cholesky factor of the product has no digit left of the last pivot."""
    A = np.array([[1.0, 1.0], [1.0, 1.0 + 1e-9]])
    exact = Fraction(float(A[1, 1])) - 1  # the determinant; the last pivot is it over the length of the first row
    A = np.kron(np.eye(copies), A)  # the larger one takes the path through the library
    L = triangular_root(jnp.asarray(A))
    np.testing.assert_allclose(L[-1, -1], float(exact) / np.sqrt(2.0), rtol=1e-6)


@pytest.mark.x64
@pytest.mark.parametrize("shape", [(1, 3), (3, 6), (7, 9)])
def test_gradient_of_the_triangular_root(shape):
    """A directional derivative against a difference, and finite where a row is zero (a belief that is certain)."""
    A, V = jnp.asarray(normal(3, *shape)), jnp.asarray(normal(4, *shape))
    weigh = jnp.asarray(normal(6, shape[0], shape[0]))
    value = jax.jit(lambda A: jnp.sum(weigh * triangular_root(A)))
    slope = jax.jit(lambda A, V: jax.jvp(value, (A,), (V,))[1])
    np.testing.assert_allclose(slope(A, V), (value(A + 1e-6 * V) - value(A - 1e-6 * V)) / 2e-6, rtol=1e-6)
    assert bool(jnp.isfinite(slope(A.at[0].set(0.0), V)))
    assert bool(jnp.isfinite(slope(jnp.zeros_like(A), V)))


@dtypes
@pytest.mark.parametrize(("N", "rank"), [(1, 1), (3, 1), (4, 2), (40, 3), (40, 40)])
def test_psd_root_of_singular_matrices_in_mixed_units(N, rank, dtype):
    """Each row in a unit of its own, over six decades; the error is small in every unit."""
    rng = np.random.default_rng(N)
    unit = 10.0 ** rng.uniform(-3, 3, size=N)
    A = rng.normal(size=(N, rank))
    A = (unit[:, None] * (A @ A.T) * unit).astype(dtype)
    A[0] = A[:, 0] = 0.0
    L = np.asarray(psd_root(jnp.asarray(A)), "float64")
    np.testing.assert_array_equal(L, np.tril(L))
    np.testing.assert_array_equal(L[0], 0.0)
    scale = np.sqrt(np.outer(np.diag(A), np.diag(A)).astype("float64"))
    assert (np.abs(L @ L.T - A) <= 4 * N * np.finfo(dtype).eps * scale).all()


def test_psd_root_scales_with_its_input():
    A = normal(1, 3, 3)
    A = jnp.asarray(A @ A.T, "float32")
    np.testing.assert_array_equal(psd_root(2.0**40 * A), 2.0**20 * psd_root(A))


@dtypes
def test_log_normal_is_a_density(dtype):
    """`count` and `log_det` set the constant that identities never pin."""
    z, L = normal(0, 3), np.array([[2.0, 0, 0], [1, 3, 0], [0, 1, 0.5]])
    got = log_normal(jnp.asarray(z, dtype), jnp.asarray(2.0 * np.log(np.diag(L)).sum(), dtype), 3)
    np.testing.assert_allclose(got, scipy.stats.multivariate_normal(np.zeros(3), L @ L.T).logpdf(L @ z), rtol=1e-6)


@dtypes
@pytest.mark.parametrize("N", [1, 2, 3, 101])
def test_the_place_of_the_least_is_the_first_of_equals(N, dtype):
    argleast = jax.jit(linalg.argleast)
    rng = np.random.default_rng(N)
    for trial in range(5):
        values = rng.integers(0, 4 + trial, size=N).astype(dtype)
        assert int(argleast(jnp.asarray(values))) == int(np.argmin(values))
        values[rng.random(N) < 0.3] = -np.inf
        assert int(argleast(jnp.asarray(values))) == int(np.argmin(values))
        assert int(argleast(jnp.asarray(-values))) == int(np.argmax(values))
    assert 0 <= int(argleast(jnp.full(N, np.nan, dtype))) < N
    assert int(argleast(jnp.full(N, np.inf, dtype))) == 0


def spd(N, dtype):
    A = np.random.default_rng(N).normal(size=(N, 2 * N))
    return (A @ A.T + np.eye(N)).astype(dtype)


@dtypes
@pytest.mark.parametrize("N", [1, 2, 3, 4, 5, 9])
def test_solves_and_determinant(N, dtype):
    A = spd(N, dtype)
    L = factor(jnp.asarray(A))
    exact = np.linalg.cholesky(A.astype("float64"))
    for b in (np.arange(1.0, N + 1), np.random.default_rng(0).normal(size=(N, 3))):
        got = L.solve(jnp.asarray(b, dtype))
        assert got.dtype == dtype
        np.testing.assert_allclose(got, scipy.linalg.solve_triangular(exact, b, lower=True), **TOL[dtype])
    np.testing.assert_allclose(L.log_det, np.linalg.slogdet(A.astype("float64"))[1], **TOL[dtype])
    assert bool(L.sound())


@pytest.mark.parametrize("N", [1, 2, 3, 6])
@pytest.mark.parametrize("bad", [-1.0, 0.0, np.nan, np.inf])
def test_what_is_not_positive_definite_is_not_sound(N, bad):
    A = spd(N, "float32")
    A[-1, :] = A[:, -1] = 0.0
    A[-1, -1] = bad
    assert not bool(factor(jnp.asarray(A)).sound())


def test_only_the_lower_half_is_read():
    A = spd(3, "float32")
    np.testing.assert_array_equal(
        factor(jnp.asarray(np.tril(A))).solve(jnp.ones(3, "float32")),
        factor(jnp.asarray(A)).solve(jnp.ones(3, "float32")),
    )


@pytest.mark.parametrize("N", [2, 6])
def test_a_pivot_that_rounding_has_lost_is_noticed(N):
    """I plus 1e9 everywhere: in float32 the last pivots cancel, and exactly they are between 1 and 2."""
    A = jnp.eye(N, dtype="float32") + jnp.full((N, N), 1e9, "float32")
    assert not bool(factor(A).sound(least=0.5))
    assert not bool(factor(0.25 * jnp.eye(N)).sound(least=0.5))
    assert bool(factor(jnp.eye(N)).sound(least=0.5))


@pytest.mark.x64
def test_gradient():
    A = jnp.asarray(spd(3, "float64"))
    V = jnp.asarray(spd(4, "float64"))[:3, :3]
    value = lambda A: jnp.sum(factor(A).solve(jnp.ones(3)) ** 2) + factor(A).log_det
    slope = jax.jvp(value, (A,), (V,))[1]
    np.testing.assert_allclose(slope, (value(A + 1e-6 * V) - value(A - 1e-6 * V)) / 2e-6, rtol=1e-6)


@pytest.mark.x64
@pytest.mark.parametrize(("side", "width"), [(5, 300), (10, 99), (10, 200), (31, 100), (40, 60)])
def test_many_right_hand_sides_are_solved_as_one_is(side, width):
    """Whether by substitution or by a product with the inverse; L has entries of very different sizes."""
    rng = np.random.default_rng(side)
    root = rng.normal(size=(side, side)) * np.logspace(0, 3, side)[:, None]
    A, b = np.eye(side) + root @ root.T, rng.normal(size=(side, width))
    wanted = np.linalg.solve(np.linalg.cholesky(A), b)
    np.testing.assert_allclose(factor(jnp.asarray(A)).solve(jnp.asarray(b)), wanted, rtol=1e-9, atol=1e-12)


def test_a_solve_for_a_network_asks_no_library_for_threads():
    """OpenBLAS shares a triangular solve of 1024 numbers out to threads that spin."""
    solve = lambda A, b: factor(A).solve(b)
    text = jax.jit(solve).lower(jnp.eye(10), jnp.ones((10, 500))).compile().as_text()
    asked = [line for line in text.splitlines() if "trsm" in line and "custom-call(" in line]
    assert asked
    assert not any("10,500" in line for line in asked)
