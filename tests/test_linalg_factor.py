"""The triangular factor against numpy, on both sides of the size at which scalars give way to the library."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

from filtax.linalg import factor

TOL = {"float64": dict(rtol=1e-12, atol=1e-13), "float32": dict(rtol=3e-5, atol=1e-5)}


def spd(N, dtype):
    A = np.random.default_rng(N).normal(size=(N, 2 * N))
    return (A @ A.T + np.eye(N)).astype(dtype)


@pytest.mark.parametrize("dtype", TOL)
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
