"""Truncations of a factor of low rank, against singular value decompositions in float64."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from filtax.beliefs import LowRank
from filtax.beliefs import _low_rank_algebra as algebra
from filtax.beliefs._low_rank_algebra import LEAST, leading, truncated

pytestmark = pytest.mark.x64


@functools.partial(jax.jit, static_argnums=4)
def cut(V, rows, R, root, rank):
    """A truncation of all rows, none of which was kept by an earlier one."""
    overlap = jnp.full((rank, rank), -1.0, rows.dtype)
    return truncated(V, rows, R, root, rank, jnp.asarray(len(rows), jnp.int32), overlap)


@pytest.mark.parametrize("spherical", [False, True])
def test_float32_truncation_keeps_small_singular_values(spherical):
    """A spread of 1e4 in float32: each kept singular value to 1e-4 (a Gram matrix alone is off by 34 %)."""
    local = np.random.default_rng(5)
    left = np.linalg.qr(local.normal(size=(400, 8)))[0]
    right = np.linalg.qr(local.normal(size=(8, 8)))[0]
    size = np.logspace(4, 0, 8)
    W = ((left * size) @ right).astype(np.float32)
    want = np.linalg.svd(W.astype(float), compute_uv=False)
    V = jnp.ones((), jnp.float32) if spherical else jnp.ones(400, jnp.float32)
    root = jnp.asarray(np.linalg.cholesky(np.eye(8) + W.T.astype(float) @ W), jnp.float32)
    eye = jnp.eye(8, dtype=jnp.float32)
    kept = cut(V, jnp.asarray(W.T), eye, root, 8).rows
    np.testing.assert_allclose(np.linalg.svd(np.asarray(kept, float), compute_uv=False), want, rtol=1e-4)
    np.testing.assert_allclose(np.linalg.norm(kept, axis=1), want, rtol=1e-4)
    new = cut(V, jnp.asarray(W.T), eye, root, 6)  # what is dropped is the least
    V = np.asarray(new.diag_var, float).reshape(1, -1)
    factor = np.asarray(new.scale, float) * np.asarray(new.rows[:6], float) / V
    np.testing.assert_allclose(np.linalg.svd(factor, compute_uv=False)[:6], want[:6], rtol=1e-4)
    plain = np.linalg.norm(W @ np.asarray(leading(jnp.asarray(W.T @ W), 8, 400)), axis=0)
    assert np.max(np.abs(np.sort(plain)[::-1] / want - 1.0)) > 1e-2  # the second decomposition is what does it


def test_many_parameters_are_decomposed_again_in_parts():
    """A factor that spans more than float32 tells apart, of more rows than one part holds, against its own columns."""
    rows = 2 * LEAST + 7
    raw = np.random.default_rng(5).normal(size=(rows, 3)) * (np.arange(rows) >= LEAST)[:, None]  # nothing in the first
    Q = np.linalg.qr(raw)[0] * np.array([1.0, 1e-4, 1e-6])
    mixed = Q @ np.linalg.qr(np.random.default_rng(6).normal(size=(3, 3)))[0]
    eye, ones = jnp.eye(3, dtype=jnp.float32), jnp.ones(rows, jnp.float32)
    new = cut(ones, jnp.asarray(mixed.T, jnp.float32), eye, eye, 2)
    got = np.asarray(new.rows[:2], float).T
    np.testing.assert_allclose(np.linalg.norm(got, axis=0), [1.0, 1e-4], rtol=1e-3)
    for at in (0, 1):
        assert abs(got[:, at] @ Q[:, at]) / np.linalg.norm(Q[:, at]) ** 2 == pytest.approx(1.0, rel=2e-3)


@pytest.mark.parametrize("spherical", [False, True])
def test_a_truncation_is_that_of_a_singular_value_decomposition(spherical):
    """With an R that is no identity."""
    local, many, rank = np.random.default_rng(7), 815, 2
    V = np.full(many, 0.5) if spherical else local.uniform(0.2, 2.0, many)
    U, R = local.normal(size=(4, many)) * np.array([[3.0], [2.0], [1.0], [0.5]]), local.normal(size=(4, 4))
    W = (U.T @ R) / V[:, None]
    root = np.linalg.cholesky(np.eye(4) + W.T @ (V[:, None] * W))
    args = (jnp.asarray(V[0] if spherical else V), *map(jnp.asarray, (U, R, root)))
    new = cut(*args, rank)
    V_new, kept = np.broadcast_to(new.diag_var, many), new.scale * new.rows.T[:, :rank]
    left, size, _ = np.linalg.svd(W, full_matrices=False)
    lost = np.sum((left[:, rank:] * size[rank:]) ** 2, axis=1)
    np.testing.assert_allclose(1.0 / V_new, 1.0 / V + (np.mean(lost) if spherical else lost), rtol=1e-10)
    kept = kept / V_new[:, None]
    np.testing.assert_allclose(kept @ (kept.T @ left), (left[:, :rank] * size[:rank] ** 2) @ np.eye(rank, 4), atol=1e-8)
    np.testing.assert_allclose(new.inner, kept.T @ (V_new[:, None] * kept), rtol=1e-10, atol=1e-8)


def test_what_a_truncation_has_kept_is_known_to_the_next(monkeypatch):
    """Twelve data of two outputs and five truncations, as singular value decompositions truncate.

    Noise before the fourth truncation: what was stored then counts no more.
    """
    local, D, rank = np.random.default_rng(5), 75, 3
    var, known = local.uniform(0.5, 2.0, size=D), []
    gram = algebra.gram

    def watched(U, weight, used, block, first=None):
        if first is None:
            jax.debug.callback(lambda block: known.append(int(block)), block)
        return gram(U, weight, used, block, first=first)

    monkeypatch.setattr(algebra, "gram", watched)
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
    assert known == [0, 3, 3, 0, 0, 3]  # the first truncation, the noise, and the truncation after it had to read all


def test_a_jacobian_is_joined_from_its_leaves(monkeypatch):
    """As on a GPU: the largest leaf first, and the others written into it."""
    from filtax.models import nonlinear
    from filtax.ravel import flatten

    net = lambda p, x: p["b"] + p["w"] @ x * p["c"]
    params = {"b": jnp.ones(3), "c": jnp.arange(3.0), "w": jnp.arange(12.0).reshape(3, 4)}
    x, (theta, layout) = jnp.arange(4.0), flatten(params)
    plain = nonlinear(net, 1.0).predictor.bind(layout).linearise(theta, x, None)
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    found = nonlinear(net, 1.0).predictor.bind(layout).linearise(theta, x, None)
    np.testing.assert_array_equal(found.jacobian, plain.jacobian)
