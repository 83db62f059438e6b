"""The C kernels against numpy in float64, a filter with and without them, and a package that was built without them."""

import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hatch_build
from filtax import _kernels
from filtax._kernels import c_kernels
from filtax.beliefs import LowRank

compiled = pytest.mark.skipif(not c_kernels.usable(), reason="filtax was built without a C compiler")
SIZES = [(30, 10, 5000), (7, 1, 1024), (13, 5, 1023), (5, 3, 17), (1, 1, 3), (26, 7, 33_001)]


def numbers(K, O, D, seed=0):
    """U, J, c, V, and a matrix that turns rows; with parameters that are certain."""
    rng = np.random.default_rng(seed)
    V = rng.uniform(0.5, 1.5, size=D) * (rng.uniform(size=D) > 0.1)
    given = rng.normal(size=(K, D)), rng.normal(size=(O, D)), rng.normal(size=(O, K)), V, rng.normal(size=(K, K)) / K
    return [np.asarray(a, np.float32) for a in given]


def count(n):
    return jnp.asarray(n, jnp.int32)


def close(found, want):
    """To the rounding of float32, beside the largest number."""
    np.testing.assert_allclose(np.asarray(found, float), want, rtol=0, atol=2e-6 * max(np.abs(want).max(), 1e-30))


def inverse(V):
    return np.where(V > 0, 1.0 / np.where(V > 0, V, 1.0), 0.0)


@compiled
@pytest.mark.parametrize(("K", "O", "D"), SIZES)
def test_what_rows_show_and_leave_over(K, O, D):
    U, J, c, V, _ = numbers(K, O, D)
    u, j, less, v = (a.astype(float) for a in (U, J, c, V))
    for used in {0, K // 2, K}:
        want = u @ j.T
        want[used:] = 0.0
        close(jax.jit(c_kernels.project)(U, J, count(used), None), want)
        for free in (v, v[0] + 0.5):
            P, squares = jax.jit(c_kernels.residual_gram)(U, J, np.float32(free), c, count(used))
            true = j * free - less[:, :used] @ u[:used]
            close(P, true)
            close(squares, (true * inverse(np.broadcast_to(free, D))) @ true.T)


@compiled
@pytest.mark.parametrize(("K", "O", "D"), SIZES)
def test_a_gram_matrix_with_and_without_its_first_block(K, O, D):
    U, _, _, V, _ = numbers(K, O, D)
    for used, skip in ((K, 0), (K, K // 2), (K - 1, K // 3), (K, K)):
        want = (U.astype(float) * V) @ U.T.astype(float)
        want[used:], want[:, used:], want[:skip, :skip] = 0.0, 0.0, 0.0
        close(jax.jit(c_kernels.gram)(U, V, count(used), count(skip)), want)


@compiled
@pytest.mark.parametrize(("K", "O", "D"), SIZES)
def test_a_cut(K, O, D):
    """Of all rows, some are kept and the squares of the others go to the diagonal; or V is one number."""
    U, _, _, V, turn = numbers(K, O, D)
    rank, used = (K + 1) // 2, K - K // 4
    long = turn[:used].T.astype(float) @ U[:used].astype(float)
    scale = 1.0 / (1.0 + (long[rank:] ** 2).sum(0) * inverse(V.astype(float)))
    kept, free = long[:rank] * scale, V * scale
    found = jax.jit(c_kernels.truncate_with_gram, static_argnums=4)(V, U, turn, count(used), rank)
    close(found[0], free)
    close(found[1][:rank], kept)
    np.testing.assert_array_equal(found[1][rank:], U[rank:])
    close(found[2], (kept * inverse(free)) @ kept.T)
    if D > 1:
        one = jax.jit(c_kernels.truncate_with_gram, static_argnums=4)(
            np.float32(0.7), U, turn[:, :rank], count(used), rank
        )
        assert one[0] == np.float32(0.7)
        close(one[1][:rank], long[:rank])
        close(one[2], long[:rank] @ long[:rank].T)


@compiled
def test_the_same_numbers_each_time():
    """Whoever of the threads takes which part: twenty runs to the last bit."""
    U, J, _, V, _ = map(jnp.asarray, numbers(26, 7, 33_001))
    run = jax.jit(lambda: (c_kernels.project(U, J, count(26), None), c_kernels.gram(U, V, count(26), count(0))))
    first = run()
    for _ in range(20):
        for found, want in zip(run(), first, strict=True):
            np.testing.assert_array_equal(found, want)


def learned(D=120, steps=14, noise=None, batch=False):
    """A belief after data of two outputs, with cuts; of two streams side by side if asked for."""
    rng = np.random.default_rng(4)
    data = jnp.asarray(rng.normal(size=(steps, 2, D)), jnp.float32)
    var = jnp.asarray(rng.uniform(0.5, 2.0, size=D), jnp.float32)

    def step(belief, J):
        belief = belief if noise is None else belief.add(jnp.asarray(noise, jnp.float32))
        done = belief.condition(J, jnp.eye(2, dtype=J.dtype), jnp.ones(2, J.dtype))
        return done.belief, done.log_det

    def run(scale):
        start = LowRank.start(jnp.zeros(D, jnp.float32), scale * var, rank=3, spare=4)
        belief, found = jax.lax.scan(step, start, data)
        return belief.mean, belief.var, found

    if batch:
        return jax.jit(jax.vmap(run))(jnp.asarray([1.0, 2.0], jnp.float32))
    slope = jax.grad(lambda scale: run(scale)[2].sum())
    along = lambda scale: jax.jvp(slope, (scale,), (jnp.ones_like(scale),))  # and the slope of the slope
    return *jax.jit(run)(jnp.float32(1.0)), *jax.jit(along)(jnp.float32(1.0))


@compiled
@pytest.mark.parametrize("given", [{}, {"noise": 0.01}, {"batch": True}])
def test_a_filter_learns_the_same_with_them_as_with_products(monkeypatch, given):
    """Means, variances, evidence, its slopes; and streams side by side."""
    plain = learned(**given)
    monkeypatch.setattr(_kernels, "MANY", 16)
    assert _kernels.serving(120, jnp.float32) == "cpu"
    for found, want in zip(learned(**given), plain, strict=True):
        np.testing.assert_allclose(found, want, rtol=3e-5, atol=3e-6)


@compiled
def test_a_program_calls_them_once_each(monkeypatch):
    """Forecast, evidence and update share one pass over the rows; one kernel that is switched off is not called."""
    monkeypatch.setattr(_kernels, "MANY", 16)
    belief = LowRank.start(jnp.zeros(120, jnp.float32), jnp.ones(120, jnp.float32), rank=3, spare=4)
    J, eye, r = jnp.ones((2, 120), jnp.float32), jnp.eye(2, dtype=jnp.float32), jnp.ones(2, jnp.float32)
    names = ("project", "residual_gram", "gram", "truncate_with_gram")

    def calls():
        text = jax.jit(lambda b: (b.project_cov(J), b.condition(J, eye, r))).lower(belief).compile().as_text()
        return [text.count(f'"filtax_{name}"') for name in names]

    assert calls() == [2, 1, 1, 1]  # the second projection refines a gain where a variance is low
    monkeypatch.setenv("FILTAX_KERNELS_OFF", "residual_gram,truncate_with_gram")
    assert calls() == [3, 0, 2, 0]
    monkeypatch.setenv("FILTAX_KERNELS", "0")
    assert calls() == [0, 0, 0, 0]


@compiled
@pytest.mark.parametrize("cause", ["no library", "not a library", "another interface"])
def test_plain_jax_serves_without_a_library(monkeypatch, tmp_path, cause):
    whole = c_kernels.library()
    monkeypatch.setattr(c_kernels, "__file__", str(tmp_path / "c_kernels.py"))
    monkeypatch.setattr(_kernels, "MANY", 16)
    if cause == "not a library":
        (tmp_path / "lofi.so").write_text("not a library")
    elif cause == "another interface":
        shutil.copy(whole, tmp_path / "lofi.so")
        refuse = lambda *_, **__: (_ for _ in ()).throw(RuntimeError("another version"))
        monkeypatch.setattr(jax.ffi, "register_ffi_target", refuse)
    c_kernels.library.cache_clear(), c_kernels.usable.cache_clear()
    try:
        assert not c_kernels.usable()
        assert _kernels.serving(120, jnp.float32) == ""
        assert _kernels.status().startswith("none (not built" if cause == "no library" else "none (those")
    finally:
        c_kernels.library.cache_clear(), c_kernels.usable.cache_clear()


@compiled
@pytest.mark.parametrize("cause", ["no compiler", "it fails", "not wanted"])
def test_a_package_is_built_without_kernels_where_none_can_be_made(monkeypatch, tmp_path, capfd, cause):
    monkeypatch.setattr(hatch_build, "KERNELS", tmp_path)
    if cause == "no compiler":
        monkeypatch.setattr(hatch_build.shutil, "which", lambda name: None)
    elif cause == "it fails":
        monkeypatch.setenv("CC", "false")
    else:
        monkeypatch.setenv("FILTAX_BUILD_KERNELS", "0")
    assert hatch_build.build() == []
    assert not list(tmp_path.iterdir())
    assert ("did not compile" in capfd.readouterr().err) == (cause == "it fails")


@compiled
@pytest.mark.parametrize("K", [1, 2, 3, 40, 100])
@pytest.mark.parametrize("kind", ["any", "few", "equal", "diagonal", "apart"])
def test_eigenvectors_of_a_symmetric_matrix(K, kind):
    """A Q = Q diag, largest first, and Q orthogonal; of low rank, all equal, none to find, a wide spread."""
    rng = np.random.default_rng(K)
    A = rng.normal(size=(K, K))
    if kind == "few":
        A[:, 2:] = 0.0
    elif kind == "diagonal":
        A = np.diag(rng.normal(size=K))
    elif kind == "apart":
        A = A * np.logspace(0, -6, K)[None, :]
    G = np.eye(K) if kind == "equal" else A @ A.T
    G = np.asarray(0.5 * (G + G.T), np.float32)
    Q = np.asarray(jax.jit(c_kernels.eigenvectors)(G), float)
    np.testing.assert_allclose(Q.T @ Q, np.eye(K), atol=3e-6)
    inside = Q.T @ G @ Q
    scale = max(np.abs(G).max(), 1e-30)
    np.testing.assert_allclose(inside, np.diag(np.linalg.eigvalsh(G.astype(float))[::-1]), atol=5e-6 * K * scale)


@compiled
def test_of_what_is_not_finite_the_eigenvectors_are_those_of_nothing():
    np.testing.assert_array_equal(c_kernels.eigenvectors(jnp.full((3, 3), jnp.nan, jnp.float32)), np.eye(3))


@compiled
@pytest.mark.parametrize(("K", "O"), [(1, 1), (9, 3), (100, 10)])
def test_the_small_algebra_between_the_passes(K, O):
    rng = np.random.default_rng(K)
    A = rng.normal(size=(K, 2 * K)) / K
    L = np.linalg.cholesky(np.eye(K) + A @ A.T)
    S, s, Y = rng.normal(size=(K, K)), rng.normal(size=(K, O)), rng.normal(size=(K, 2 * O + 1))
    given = [np.asarray(a, np.float32) for a in (s, S, L, Y)]
    half, c, square = jax.jit(c_kernels.explained_variance)(*given[:3], count(K))
    close(half, S.T @ s)
    close(c, (S @ S.T @ s).T)
    fit = np.linalg.solve(L.T, S.T @ s)
    close(square, fit.T @ fit)
    close(jax.jit(c_kernels.triangular_solve)(given[2], given[3]), np.linalg.solve(L, Y))
    close(jax.jit(c_kernels.stable_cholesky)(np.asarray(A @ A.T, np.float32)), L)
    indefinite = jnp.diag(jnp.array([3.0, -4.0], jnp.float32))  # the second pivot is taken to be one
    np.testing.assert_array_equal(c_kernels.stable_cholesky(indefinite), np.diag([2.0, 1.0]))
