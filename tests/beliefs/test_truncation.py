"""What a cut keeps, against numpy's singular values: in float32 over a wide spread, and of many parameters in parts."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from filtax.beliefs import LowRank, passes, products, truncation
from filtax.beliefs.passes import CHUNK
from filtax.beliefs.truncation import LEAST, cut, leading

pytestmark = pytest.mark.x64


@pytest.mark.parametrize("spherical", [False, True])
def test_float32_cut_keeps_small_singular_values(spherical):
    """A spread of 1e4 in float32: each kept singular value to 1e-4 (a Gram matrix alone is off by 34 %)."""
    local = np.random.default_rng(5)
    left = np.linalg.qr(local.normal(size=(400, 8)))[0]
    right = np.linalg.qr(local.normal(size=(8, 8)))[0]
    size = np.logspace(4, 0, 8)
    W = ((left * size) @ right).astype(np.float32)
    want = np.linalg.svd(W.astype(float), compute_uv=False)
    free = jnp.ones((), jnp.float32) if spherical else jnp.ones(400, jnp.float32)
    root = jnp.asarray(np.linalg.cholesky(np.eye(8) + W.T.astype(float) @ W), jnp.float32)
    eye = jnp.eye(8, dtype=jnp.float32)
    kept = jax.jit(cut, static_argnums=4)(free, jnp.asarray(W.T), eye, root, 8).rows
    np.testing.assert_allclose(np.linalg.svd(np.asarray(kept, float), compute_uv=False), want, rtol=1e-4)
    np.testing.assert_allclose(np.linalg.norm(kept, axis=1), want, rtol=1e-4)
    new = jax.jit(cut, static_argnums=4)(free, jnp.asarray(W.T), eye, root, 6)  # what is dropped is the least
    factor = np.asarray(new.scale, float) * np.asarray(new.rows[:6], float) / np.asarray(new.free, float).reshape(1, -1)
    np.testing.assert_allclose(np.linalg.svd(factor, compute_uv=False)[:6], want[:6], rtol=1e-4)
    plain = np.linalg.norm(W @ np.asarray(leading(jnp.asarray(W.T @ W), 8)), axis=0)
    assert np.max(np.abs(np.sort(plain)[::-1] / want - 1.0)) > 1e-2  # the second look is what does it


def test_many_rows_are_looked_at_again_in_parts():
    """A factor that spans more than float32 tells apart, of more rows than one part holds, against its own columns."""
    rows = 2 * LEAST + 7
    raw = np.random.default_rng(5).normal(size=(rows, 3)) * (np.arange(rows) >= LEAST)[:, None]  # nothing in the first
    Q = np.linalg.qr(raw)[0] * np.array([1.0, 1e-4, 1e-6])
    mixed = Q @ np.linalg.qr(np.random.default_rng(6).normal(size=(3, 3)))[0]
    eye = jnp.eye(3, dtype=jnp.float32)
    new = jax.jit(cut, static_argnums=4)(jnp.ones(rows, jnp.float32), jnp.asarray(mixed.T, jnp.float32), eye, eye, 2)
    got = np.asarray(new.rows[:2], float).T
    np.testing.assert_allclose(np.linalg.norm(got, axis=0), [1.0, 1e-4], rtol=1e-3)
    for at in (0, 1):
        assert abs(got[:, at] @ Q[:, at]) / np.linalg.norm(Q[:, at]) ** 2 == pytest.approx(1.0, rel=2e-3)


@pytest.mark.parametrize("spherical", [False, True])
def test_a_cut_of_many_parameters_is_that_of_the_whole_matrix(spherical):
    """More parameters than are held close at a time, and a rest; a core that is no identity; against numpy's SVD."""
    local, many, rank = np.random.default_rng(7), 2 * CHUNK + 123, 2
    V = np.full(many, 0.5) if spherical else local.uniform(0.2, 2.0, many)
    U, R = local.normal(size=(4, many)) * np.array([[3.0], [2.0], [1.0], [0.5]]), local.normal(size=(4, 4))
    W = (U.T @ R) / V[:, None]
    root = np.linalg.cholesky(np.eye(4) + W.T @ (V[:, None] * W))
    given = (jnp.asarray(V[0] if spherical else V), *map(jnp.asarray, (U, R, root)))
    new = jax.jit(cut, static_argnums=4)(*given, rank)
    free, kept = np.broadcast_to(new.free, many), new.scale * new.rows.T[:, :rank]
    left, size, _ = np.linalg.svd(W, full_matrices=False)
    lost = np.sum((left[:, rank:] * size[rank:]) ** 2, axis=1)
    np.testing.assert_allclose(1.0 / free, 1.0 / V + (np.mean(lost) if spherical else lost), rtol=1e-10)
    kept = kept / free[:, None]
    np.testing.assert_allclose(kept @ (kept.T @ left), (left[:, :rank] * size[:rank] ** 2) @ np.eye(rank, 4), atol=1e-8)
    np.testing.assert_allclose(new.inner, kept.T @ (free[:, None] * kept), rtol=1e-10, atol=1e-8)
    np.testing.assert_array_equal(new.rows[rank:], U[rank:])  # as before: nothing reads them


def test_what_a_cut_has_kept_is_known_to_the_next(monkeypatch):
    """Twelve data of two outputs, five cuts, in chunks: as singular value decompositions cut.

    Drift before the fourth cut: what was held then counts no more.
    """
    monkeypatch.setattr(passes, "CHUNK", 16)
    monkeypatch.setattr(truncation, "CHUNK", 16)
    local, D, rank = np.random.default_rng(5), 75, 3
    var, beside = local.uniform(0.5, 2.0, size=D), []
    completed = products.completed_in_chunks
    seen = lambda *given: jax.debug.callback(lambda: beside.append(1)) or completed(*given)
    monkeypatch.setattr(products, "completed_in_chunks", seen)
    condition = jax.jit(lambda b, J: b.condition(J, jnp.eye(2), jnp.ones(2)).belief)
    b = LowRank.start(jnp.zeros(D), jnp.asarray(var), rank, spare=4)
    upsilon, W, mean = 1.0 / var, np.zeros((D, 0)), np.zeros(D)
    for t in range(12):
        if t == 8:
            b, noisy = b.add(jnp.asarray(0.1)), np.linalg.inv(np.diag(upsilon) + W @ W.T) + 0.1 * np.eye(D)
            upsilon = 1.0 / (1.0 / upsilon + 0.1)
            value, vector = np.linalg.eigh(np.linalg.inv(noisy) - np.diag(upsilon))
            W = (vector * np.sqrt(np.maximum(value, 0.0)))[:, -W.shape[1] :]
        J = local.normal(size=(2, D)) * local.uniform(0.2, 3.0)
        b, before = condition(b, jnp.asarray(J)), np.diag(upsilon) + W @ W.T
        cov = np.linalg.inv(before)
        mean = mean + cov @ J.T @ np.linalg.solve(np.eye(2) + J @ cov @ J.T, np.ones(2))
        W = np.concatenate([W, J.T], axis=1)
        if W.shape[1] + 2 > rank + 4:
            left, size, _ = np.linalg.svd(W, full_matrices=False)
            upsilon = upsilon + np.sum((left[:, rank:] * size[rank:]) ** 2, axis=1)
            W = left[:, :rank] * size[:rank]
        found = np.diag(np.asarray(b.upsilon)) + np.asarray(b.factor) @ np.asarray(b.factor).T
        np.testing.assert_allclose(found, np.diag(upsilon) + W @ W.T, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(b.mean, mean, rtol=1e-9, atol=1e-11)
    jax.effects_barrier()
    assert len(beside) == 3  # of five cuts the first, and the one behind the drift, had to look at all
