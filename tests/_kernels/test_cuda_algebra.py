"""The kernels in CUDA C, run thread by thread on this machine, against numpy: what a device would compute."""

import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from _kernels.cuda_on_cpu import Machine
from filtax._kernels import cuda, cuda_algebra

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="there is no compiler here")


@pytest.fixture(autouse=True)
def machine(tmp_path, monkeypatch):
    monkeypatch.setattr(cuda, "kernel", Machine(tmp_path).kernel)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def floats(*arrays):
    return [jnp.asarray(a, jnp.float32) for a in arrays]


def lower(rng, N):
    A = rng.normal(size=(N, N))
    return np.linalg.cholesky(np.eye(N) + A @ A.T)


def wide(*arrays):
    return [np.asarray(a, float) for a in arrays]


def close(found, true, limit=2e-6):
    np.testing.assert_allclose(found, true, rtol=0, atol=limit * np.abs(true).max())


def each(call, *given):
    """What a kernel makes of one case; it makes the same of it as the second of two."""
    found = call.fun(*given)
    two = call.fun(*(jnp.stack([jnp.zeros_like(a), a]) for a in given))
    for one, pair in zip(jax.tree.leaves(found), jax.tree.leaves(two), strict=True):
        np.testing.assert_array_equal(pair[1], one)
    return found


@pytest.mark.parametrize(("K", "used"), [(9, 4), pytest.param(70, 65, marks=pytest.mark.nightly)])
def test_explained_variance(rng, K, used):
    O = 3
    s, R, L = np.zeros((K, O)), np.eye(K), np.eye(K)
    s[:used], R[:used, :used], L[:used, :used] = (
        rng.normal(size=(used, O)),
        rng.normal(size=(used, used)),
        lower(rng, used),
    )
    s, R, L = floats(s, R, L)
    half, taken, square = each(cuda_algebra.explained_variance, s, R, L, jnp.asarray(used, jnp.int32))
    s, R, L = wide(s, R, L)
    fit = np.linalg.solve(L.T, R.T @ s)
    close(half, R.T @ s)
    close(taken, (R @ R.T @ s).T)
    close(square, fit.T @ fit)


@pytest.mark.nightly
def test_innovation(rng):
    A = rng.normal(size=(5, 5))
    spread, B, r = floats(A @ A.T, rng.normal(size=(5, 5)), rng.normal(size=5))
    L, z, move, sound = each(cuda_algebra.innovation, spread, B, r)
    assert not each(cuda_algebra.innovation, jnp.full((5, 5), jnp.inf, jnp.float32), B, r)[3]
    spread, B, r = wide(spread, B, r)
    S = np.eye(5) + B @ spread @ B.T
    close(L, np.linalg.cholesky(S))
    close(z, np.linalg.solve(np.linalg.cholesky(S), r), 1e-5)
    close(move, np.linalg.solve(S, r) @ B, 1e-5)
    assert sound


@pytest.mark.parametrize(("K", "used"), [(9, 4), pytest.param(70, 65, marks=pytest.mark.nightly)])
def test_gain_correction(rng, K, used):
    O = 3
    S, L, there = np.eye(K), np.eye(K), np.arange(K)[:, None] < used
    S[:used, :used], L[:used, :used] = rng.normal(size=(used, used)), lower(rng, used)
    s, half, S, L = floats(rng.normal(size=(K, O)) * there, rng.normal(size=(K, O)) * there, S, L)
    found = each(cuda_algebra.gain_correction, s, half, S, L, jnp.asarray(used, jnp.int32))
    none = each(cuda_algebra.gain_correction, s, half, S, L, jnp.asarray(0, jnp.int32))
    s, half, S, L = wide(s, half, S, L)
    close(found, (S @ (S.T @ s - np.linalg.solve(L, np.linalg.solve(L.T, half)))).T, 1e-5)
    assert not np.any(none)


@pytest.mark.nightly
def test_psd_cholesky(rng):
    A = rng.normal(size=(6, 6))
    (A,) = floats(A @ A.T)
    close(each(cuda_algebra.psd_cholesky, A), np.linalg.cholesky(np.asarray(A, float)), 1e-4)


@pytest.mark.nightly
@pytest.mark.parametrize("K", [1, 2, 6, 7, 66])
def test_eigenvectors(rng, K):
    W = rng.normal(size=(100, K)) * np.exp(rng.normal(size=K))
    (G,) = floats(W.T @ W)
    Q, wide_G = wide(each(cuda_algebra.eigenvectors, G), G)
    close(Q.T @ Q, np.eye(K))
    close(Q.T @ wide_G @ Q, np.diag(np.linalg.eigvalsh(wide_G)[::-1]), 1e-5)
    for nothing in (jnp.zeros_like(G), jnp.full_like(G, jnp.nan)):
        np.testing.assert_array_equal(each(cuda_algebra.eigenvectors, nothing), np.eye(K))


@pytest.mark.parametrize(
    ("K", "scale"), [(3, 1e30), *(pytest.param(6, s, marks=pytest.mark.nightly) for s in (1e-30, 1.0))]
)
def test_eigenvectors_over_many_decades_and_of_any_size(rng, K, scale):
    Q = np.linalg.qr(rng.normal(size=(K, K)))[0]
    (G,) = floats((Q * 10.0 ** np.linspace(0, -6, K)) @ Q.T)
    Q, wide_G = wide(cuda_algebra.eigenvectors.fun(jnp.float32(scale) * G), G)
    close(Q.T @ Q, np.eye(K))
    close(Q.T @ wide_G @ Q, np.diag(np.linalg.eigvalsh(wide_G)[::-1]))
    np.testing.assert_array_equal(cuda_algebra.eigenvectors.fun(jnp.full((3, 3), jnp.inf, jnp.float32)), np.eye(3))
