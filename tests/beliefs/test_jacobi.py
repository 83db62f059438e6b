"""The warp that turns the columns of a small matrix, run by an interpreter, against numpy in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from filtax.beliefs import passes, truncation
from filtax.beliefs.jacobi import turned


def graded(K, decades, seed=0):
    """Symmetric, with eigenvalues over so many decades."""
    Q = np.linalg.qr(np.random.default_rng(seed).normal(size=(K, K)))[0]
    return np.asarray((Q * 10.0 ** np.linspace(0, -decades, K)) @ Q.T, np.float32)


@pytest.mark.parametrize(("K", "decades"), [(1, 0), (5, 3), pytest.param(30, 6, marks=pytest.mark.nightly)])
def test_the_vectors_are_orthogonal_and_in_order_of_size(K, decades):
    A = graded(K, decades)
    Q = np.asarray(turned(A, interpret=True), float)
    found = Q.T @ A.astype(float) @ Q
    np.testing.assert_allclose(Q.T @ Q, np.eye(K), atol=2e-6)
    np.testing.assert_allclose(found, np.diag(np.linalg.eigvalsh(A.astype(float))[::-1]), atol=2e-6)


@pytest.mark.parametrize("value", [0.0, 1e30, np.nan, np.inf])
def test_no_size_of_the_numbers_is_too_much(value):
    A = jnp.diag(value * jnp.array([1.0, 2.0, 4.0], jnp.float32))
    Q = np.asarray(turned(A, interpret=True))
    np.testing.assert_allclose(Q, np.eye(3)[:, ::-1] if value == 1e30 else np.eye(3))


def test_a_gpu_is_given_the_kernel_for_as_many_columns_as_threads(monkeypatch):
    monkeypatch.setattr(passes, "one_gpu", lambda: True)

    def calls(K):
        traced = jax.jit(lambda A: truncation.leading(A, 1)).trace(jnp.eye(K, dtype=jnp.float32))
        text = traced.lower(lowering_platforms=("cuda",)).as_text()
        return "triton" in text, "syev" in text

    assert calls(32) == (True, False)
    assert calls(33) == (False, True)
