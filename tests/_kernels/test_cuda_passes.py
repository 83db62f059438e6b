"""Passes over a tall basis as kernels in CUDA C, run thread by thread on this machine, against numpy in float64."""

import shutil

import jax.numpy as jnp
import numpy as np
import pytest

from _kernels.cuda_on_cpu import Machine
from filtax._kernels import cuda, cuda_passes

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="there is no compiler here")
D = 301  # tiles that are not full; one more than a block takes at a time


@pytest.fixture(autouse=True)
def machine(tmp_path, monkeypatch):
    monkeypatch.setattr(cuda, "kernel", Machine(tmp_path).kernel)
    monkeypatch.setattr(cuda, "capability", lambda: 90)
    monkeypatch.setattr(cuda_passes, "_processors", lambda: 1)  # so that a block has several tiles


def numbers(K, O):
    rng = np.random.default_rng(0)
    U, J, c = rng.normal(size=(K, D)), rng.normal(size=(O, D)), rng.normal(size=(O, K))
    V = np.where(np.arange(D) % 7 == 3, 0.0, rng.uniform(0.5, 1.5, size=D))
    return [np.asarray(a, np.float32) for a in (U, J, c, V)]


def call(kernel, *given, **more):
    """With arrays of JAX, as it would be called."""
    return kernel(*(jnp.asarray(a) if isinstance(a, np.ndarray | np.floating) else a for a in given), **more)


def close(found, true):
    """As exact as float32: relative to the largest number."""
    np.testing.assert_allclose(np.asarray(found, float), true, rtol=0, atol=2e-6 * np.abs(true).max())


def inverse(V):
    return np.where(V > 0.0, 1.0 / np.where(V > 0.0, V, 1.0), 0.0)


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
    found = call(cuda_passes.project, held, J, jnp.asarray(used, jnp.int32), V if weighted else None)
    close(found, (u * (v if weighted else 1.0)) @ j.T)
    assert not np.any(found[used:])


def test_nothing_is_shown_of_no_rows():
    """Nor read: a step asks so where it does not need to know."""
    U, J, _, _ = numbers(3, 3)
    unread = np.full_like(J, np.nan)
    assert not np.any(call(cuda_passes.project, U, unread, jnp.asarray(0, jnp.int32)))


@pytest.mark.parametrize(("K", "O", "used"), [(19, 3, 17), pytest.param(70, 12, 0, marks=pytest.mark.nightly)])
def test_residual_gram(K, O, used):
    U, J, c, V = numbers(K, O)
    held, (u, j, f, v) = split(K, used, U, J, c, V)
    P, spread = call(cuda_passes.residual_gram, held, J, V, c, jnp.asarray(used, jnp.int32))
    true = j * v - f @ u
    close(P, true)
    close(spread, (true * inverse(v)) @ true.T)


@pytest.mark.nightly
def test_residual_projection_with_one_variance():
    U, J, c, _ = numbers(19, 20)
    held, (u, j, f) = split(19, 19, U, J, c)
    close(
        call(cuda_passes.residual_projection, held, J, np.float32(2.0), c, jnp.asarray(19, jnp.int32)), 2.0 * j - f @ u
    )


@pytest.mark.parametrize("used", [0, 5])
def test_subtract_rows(used):
    U, P, c, _ = numbers(9, 3)
    held, (u, p, f) = split(9, used, U, P, c)
    found = call(cuda_passes.subtract_rows, P.copy(), held, c, jnp.asarray(used, jnp.int32))
    close(found, p - f[:, :used] @ u[:used])


@pytest.mark.parametrize("taken", [True, False])
def test_append_rows(taken):
    U, P, _, V = numbers(9, 4)
    move, mean = np.float32([1.0, -2.0, 0.5, 3.0]), 3.0 * V
    rows, moved = call(cuda_passes.append_rows, U, P, mean, move, jnp.asarray(5, jnp.int32), jnp.asarray(taken))
    want = np.concatenate([U[:5], P if taken else U[5:]])
    np.testing.assert_array_equal(rows, want)
    close(moved, mean.astype(float) + move.astype(float) @ P)


@pytest.mark.parametrize(("K", "first"), [(11, None), pytest.param(70, 41, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("weighted", [True, pytest.param(False, marks=pytest.mark.nightly)])
def test_gram(K, first, weighted):
    U, _, _, V = numbers(K, 1)
    u, v = U[:first].astype(float), V.astype(float) if weighted else 1.0
    weight, none = (V if weighted else None), jnp.asarray(0, jnp.int32)
    for used in (K, len(u) - 2, 0):
        want = (u * v) @ u.T
        want[used:], want[:, used:] = 0.0, 0.0
        found = call(cuda_passes.gram, U, weight, jnp.asarray(used, jnp.int32), none, first=first)
        np.testing.assert_allclose(found, want, rtol=0, atol=2e-6 * np.abs(u @ u.T).max())


@pytest.mark.parametrize(("K", "rank"), [(11, 5), pytest.param(40, 17, marks=pytest.mark.nightly)])
def test_a_truncation_with_each_variance(K, rank):
    U, _, _, V = numbers(K, 1)
    T = np.linalg.qr(np.random.default_rng(1).normal(size=(K, K)))[0].astype(np.float32)
    free, rows = call(cuda_passes.truncate, jnp.asarray(V), U, T, rank)
    long, v = T.T.astype(float) @ U, V.astype(float)
    scale = 1.0 / (1.0 + (long[rank:] ** 2).sum(0) * inverse(v))
    close(free, v * scale)
    close(rows[:rank], long[:rank] * scale)
    np.testing.assert_array_equal(rows[rank:], U[rank:])  # left as they were: nobody reads them


@pytest.mark.nightly
def test_a_truncation_with_one_variance():
    U, *_ = numbers(20, 1)
    T = np.linalg.qr(np.random.default_rng(1).normal(size=(20, 20)))[0][:, :13].astype(np.float32)
    _, rows = call(cuda_passes.truncate, jnp.ones(()), U, T, 13)
    close(rows[:13], T.T.astype(float) @ U)
    np.testing.assert_array_equal(rows[13:], U[13:])
