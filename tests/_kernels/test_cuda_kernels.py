"""The kernels in CUDA C, run thread by thread on this machine, against numpy in float64."""

import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from _kernels.cuda_on_cpu import Machine
from filtax._kernels import cuda_kernels

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="there is no compiler here")
D = 301  # tiles that are not full; one more than a block takes at a time


@pytest.fixture(autouse=True)
def machine(tmp_path, monkeypatch):
    monkeypatch.setattr(cuda_kernels, "kernel", Machine(tmp_path).kernel)
    monkeypatch.setattr(cuda_kernels, "capability", lambda: 90)
    monkeypatch.setattr(cuda_kernels, "_processors", lambda: 1)  # so that a block has several tiles


def numbers(K, O):
    rng = np.random.default_rng(0)
    U, J, c = rng.normal(size=(K, D)), rng.normal(size=(O, D)), rng.normal(size=(O, K))
    V = np.where(np.arange(D) % 7 == 3, 0.0, rng.uniform(0.5, 1.5, size=D))
    return [np.asarray(a, np.float32) for a in (U, J, c, V)]


def call(kernel, *given, **more):
    """With arrays of JAX, as it would be called."""
    return kernel(*(jnp.asarray(a) if isinstance(a, np.ndarray | np.floating) else a for a in given), **more)


def close(found, true, limit=2e-6):
    """As exact as float32: relative to the largest number."""
    np.testing.assert_allclose(np.asarray(found, float), true, rtol=0, atol=limit * np.abs(true).max())


def split(K, used, *arrays):
    """What is held, with what must not be read beyond the rows in use; the same in float64, with zeros there."""
    U, *rest = arrays
    held = np.where(np.arange(K)[:, None] < used, U, np.nan).astype(np.float32)
    return held, [np.nan_to_num(held).astype(float), *(a.astype(float) for a in rest)]


@pytest.mark.parametrize(("K", "O", "used"), [(19, 3, 17), pytest.param(70, 10, 41, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("weighted", [False, pytest.param(True, marks=pytest.mark.nightly)])
def test_project(K, O, used, weighted):
    U, J, _, V = numbers(K, O)
    held, (u, j, v) = split(K, used, U, J, V)
    found = call(cuda_kernels.project, held, J, jnp.asarray(used, jnp.int32), V if weighted else None)
    close(found, (u * (v if weighted else 1.0)) @ j.T)
    assert not np.any(found[used:])


def test_nothing_is_shown_of_no_rows():
    """Nor read: a step asks so where it does not need to know."""
    U, J, _, _ = numbers(3, 3)
    unread = np.full_like(J, np.nan)
    assert not np.any(call(cuda_kernels.project, U, unread, jnp.asarray(0, jnp.int32)))


@pytest.mark.parametrize("used", [0, 5])
def test_subtract_rows(used):
    U, P, c, _ = numbers(9, 3)
    held, (u, p, f) = split(9, used, U, P, c)
    found = call(cuda_kernels.subtract_rows, P.copy(), held, c, jnp.asarray(used, jnp.int32))
    close(found, p - f[:, :used] @ u[:used])


@pytest.mark.parametrize(("K", "first"), [(11, None), pytest.param(70, 41, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("weighted", [True, pytest.param(False, marks=pytest.mark.nightly)])
def test_gram(K, first, weighted):
    U, _, _, V = numbers(K, 1)
    u, v = U[:first].astype(float), V.astype(float) if weighted else 1.0
    weight, none = (V if weighted else None), jnp.asarray(0, jnp.int32)
    for used in (K, len(u) - 2, 0):
        want = (u * v) @ u.T
        want[used:], want[:, used:] = 0.0, 0.0
        found = call(cuda_kernels.gram, U, weight, jnp.asarray(used, jnp.int32), none, first=first)
        np.testing.assert_allclose(found, want, rtol=0, atol=2e-6 * np.abs(u @ u.T).max())


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def floats(*arrays):
    return [jnp.asarray(a, jnp.float32) for a in arrays]


def wide(*arrays):
    return [np.asarray(a, float) for a in arrays]


def each(call, *given):
    """What a kernel makes of one case; it makes the same of it as the second of two."""
    found = call.fun(*given)
    two = call.fun(*(jnp.stack([jnp.zeros_like(a), a]) for a in given))
    for one, pair in zip(jax.tree.leaves(found), jax.tree.leaves(two), strict=True):
        np.testing.assert_array_equal(pair[1], one)
    return found


@pytest.mark.nightly
@pytest.mark.parametrize("K", [1, 2, 6, 7, 66])
def test_eigenvectors(rng, K):
    W = rng.normal(size=(100, K)) * np.exp(rng.normal(size=K))
    (G,) = floats(W.T @ W)
    Q, wide_G = wide(each(cuda_kernels.eigenvectors, G), G)
    close(Q.T @ Q, np.eye(K))
    close(Q.T @ wide_G @ Q, np.diag(np.linalg.eigvalsh(wide_G)[::-1]), 1e-5)
    for nothing in (jnp.zeros_like(G), jnp.full_like(G, jnp.nan)):
        np.testing.assert_array_equal(each(cuda_kernels.eigenvectors, nothing), np.eye(K))


@pytest.mark.parametrize(
    ("K", "scale"), [(3, 1e30), *(pytest.param(6, s, marks=pytest.mark.nightly) for s in (1e-30, 1.0))]
)
def test_eigenvectors_over_many_decades_and_of_any_size(rng, K, scale):
    Q = np.linalg.qr(rng.normal(size=(K, K)))[0]
    (G,) = floats((Q * 10.0 ** np.linspace(0, -6, K)) @ Q.T)
    Q, wide_G = wide(cuda_kernels.eigenvectors.fun(jnp.float32(scale) * G), G)
    close(Q.T @ Q, np.eye(K))
    close(Q.T @ wide_G @ Q, np.diag(np.linalg.eigvalsh(wide_G)[::-1]))
    np.testing.assert_array_equal(cuda_kernels.eigenvectors.fun(jnp.full((3, 3), jnp.inf, jnp.float32)), np.eye(3))
