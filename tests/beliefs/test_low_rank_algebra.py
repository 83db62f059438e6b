"""The operations on a factor of low rank in plain JAX, against numpy in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from filtax.beliefs import LowRank
from filtax.beliefs import _low_rank_algebra as algebra
from filtax.beliefs._low_rank_algebra import LEAST, leading, truncated

pytestmark = pytest.mark.x64
K, O, USED = 9, 5, 4


def lower(rng, N):
    A = rng.normal(size=(N, N))
    return np.linalg.cholesky(np.eye(N) + A @ A.T)


@pytest.fixture
def parts():
    """s, R and L with identity beyond the rows in use, B, r and a covariance."""
    rng = np.random.default_rng(0)
    s, R, L = np.zeros((K, O)), np.eye(K), np.eye(K)
    s[:USED], R[:USED, :USED], L[:USED, :USED] = (
        rng.normal(size=(USED, O)),
        rng.normal(size=(USED, USED)),
        lower(rng, USED),
    )
    A = rng.normal(size=(O, O))
    return s, R, L, rng.normal(size=(O, O)), rng.normal(size=O), A @ A.T


@pytest.mark.parametrize("V", [2.0, None])
def test_a_residual_and_its_weighted_squares(V):
    rng = np.random.default_rng(0)
    U, J, c, each = rng.normal(size=(6, 203)), rng.normal(size=(3, 203)), rng.normal(size=(3, 6)), rng.uniform(size=203)
    V = np.asarray(each + 0.5 if V is None else V)
    P, square = algebra.residual_gram(*map(jnp.asarray, (U, J, V, c)), jnp.asarray(6))
    np.testing.assert_allclose(P, J * V - c @ U, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(square, ((J * V - c @ U) / V) @ (J * V - c @ U).T, rtol=1e-12)
    certain = algebra.residual_gram(*map(jnp.asarray, (U, J, np.zeros_like(V), c)), jnp.asarray(6))[1]
    assert not np.any(certain)  # 1 / 0 is taken to be 0
    assert algebra.squares(jnp.zeros((0, 5))).tolist() == [0.0] * 5


def test_explained_variance(parts):
    s, R, L, *_ = parts
    S, M = R @ np.linalg.inv(L).T, L @ L.T
    half, c, square = algebra.explained_variance(*map(jnp.asarray, (s, S, L)), jnp.asarray(USED))
    fit = np.linalg.solve(M, R.T @ s)
    np.testing.assert_allclose(half.T @ half, s.T @ R @ np.linalg.inv(M) @ R.T @ s, atol=1e-12)
    np.testing.assert_allclose(c, (R @ fit).T, atol=1e-12)
    np.testing.assert_allclose(square, fit.T @ fit, atol=1e-12)


def test_gain_correction(parts):
    s, R, L, *_ = parts
    S, half = R @ np.linalg.inv(L).T, np.where(np.arange(K)[:, None] < USED, 3.0 * s, 0.0)
    found = algebra.gain_correction(*map(jnp.asarray, (s, half, S, L)), jnp.asarray(USED))
    off = S.T @ s - np.linalg.inv(L.T @ L) @ half
    np.testing.assert_allclose(found, (S @ np.where(np.arange(K)[:, None] < USED, off, 0.0)).T, atol=1e-10)


def test_innovation(parts):
    *_, B, r, cov = parts
    L, z, move, finite = algebra.innovation(*map(jnp.asarray, (cov, B, r)))
    S = np.eye(O) + B @ cov @ B.T
    np.testing.assert_allclose(L @ L.T, S, atol=1e-12)
    np.testing.assert_allclose(z @ z, r @ np.linalg.solve(S, r), atol=1e-12)
    np.testing.assert_allclose(move, B.T @ np.linalg.solve(S, r), atol=1e-12)
    assert finite
    assert not algebra.innovation(jnp.full((O, O), jnp.inf), jnp.asarray(B), jnp.asarray(r))[3]


@pytest.mark.parametrize("taken", [True, False])
def test_the_block_of_a_datum(parts, taken):
    s, R, L, B, *_ = parts
    root = lower(np.random.default_rng(1), O)
    c = -2.0 * s.T
    found = algebra.scatter_block(*map(jnp.asarray, (R, L, USED, taken, B, s, c, root)))
    prec_factor, grown = R.copy(), L.copy()
    if taken:
        prec_factor[USED:, USED:], grown[USED:, USED:], grown[USED:, :USED] = B.T, root, (B @ s.T)[:, :USED]
        prec_factor[:USED, USED:] = (B @ c).T[:USED]
    np.testing.assert_allclose(found[0], prec_factor, atol=1e-13)
    np.testing.assert_allclose(found[1], grown, atol=1e-13)


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
    kept = jax.jit(truncated, static_argnums=4)(V, jnp.asarray(W.T), eye, root, 8).rows
    np.testing.assert_allclose(np.linalg.svd(np.asarray(kept, float), compute_uv=False), want, rtol=1e-4)
    np.testing.assert_allclose(np.linalg.norm(kept, axis=1), want, rtol=1e-4)
    new = jax.jit(truncated, static_argnums=4)(V, jnp.asarray(W.T), eye, root, 6)  # what is dropped is the least
    V = np.asarray(new.diag_var, float).reshape(1, -1)
    factor = np.asarray(new.scale, float) * np.asarray(new.rows[:6], float) / V
    np.testing.assert_allclose(np.linalg.svd(factor, compute_uv=False)[:6], want[:6], rtol=1e-4)
    plain = np.linalg.norm(W @ np.asarray(leading(jnp.asarray(W.T @ W), 8)), axis=0)
    assert np.max(np.abs(np.sort(plain)[::-1] / want - 1.0)) > 1e-2  # the second decomposition is what does it


def test_many_parameters_are_decomposed_again_in_parts():
    """A factor that spans more than float32 tells apart, of more rows than one part holds, against its own columns."""
    rows = 2 * LEAST + 7
    raw = np.random.default_rng(5).normal(size=(rows, 3)) * (np.arange(rows) >= LEAST)[:, None]  # nothing in the first
    Q = np.linalg.qr(raw)[0] * np.array([1.0, 1e-4, 1e-6])
    mixed = Q @ np.linalg.qr(np.random.default_rng(6).normal(size=(3, 3)))[0]
    eye, ones = jnp.eye(3, dtype=jnp.float32), jnp.ones(rows, jnp.float32)
    new = jax.jit(truncated, static_argnums=4)(ones, jnp.asarray(mixed.T, jnp.float32), eye, eye, 2)
    got = np.asarray(new.rows[:2], float).T
    np.testing.assert_allclose(np.linalg.norm(got, axis=0), [1.0, 1e-4], rtol=1e-3)
    for at in (0, 1):
        assert abs(got[:, at] @ Q[:, at]) / np.linalg.norm(Q[:, at]) ** 2 == pytest.approx(1.0, rel=2e-3)


def test_a_gram_matrix_in_chunks_is_whole(monkeypatch):
    monkeypatch.setattr(algebra, "CHUNK", 16)
    U, V, all_rows, none = *numbers(3, 75), jnp.asarray(3), jnp.asarray(0)
    for weight, want in ((V, (U * V[None, :]) @ U.T), (None, U @ U.T)):
        np.testing.assert_allclose(algebra.gram(U, weight, all_rows, none), want, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(algebra.gram(U, V, all_rows, none, first=2), (U[:2] * V[None, :]) @ U[:2].T, atol=1e-12)


def numbers(K, D):
    rng = np.random.default_rng(0)
    return jnp.asarray(rng.normal(size=(K, D))), jnp.asarray(rng.uniform(0.5, 1.5, size=D))


@pytest.mark.parametrize("spherical", [False, True])
def test_a_truncation_is_that_of_a_singular_value_decomposition(spherical):
    """Many parameters; an R that is no identity."""
    local, many, rank = np.random.default_rng(7), 8315, 2
    V = np.full(many, 0.5) if spherical else local.uniform(0.2, 2.0, many)
    U, R = local.normal(size=(4, many)) * np.array([[3.0], [2.0], [1.0], [0.5]]), local.normal(size=(4, 4))
    W = (U.T @ R) / V[:, None]
    root = np.linalg.cholesky(np.eye(4) + W.T @ (V[:, None] * W))
    args = (jnp.asarray(V[0] if spherical else V), *map(jnp.asarray, (U, R, root)))
    new = jax.jit(truncated, static_argnums=4)(*args, rank)
    V_new, kept = np.broadcast_to(new.diag_var, many), new.scale * new.rows.T[:, :rank]
    left, size, _ = np.linalg.svd(W, full_matrices=False)
    lost = np.sum((left[:, rank:] * size[rank:]) ** 2, axis=1)
    np.testing.assert_allclose(1.0 / V_new, 1.0 / V + (np.mean(lost) if spherical else lost), rtol=1e-10)
    kept = kept / V_new[:, None]
    np.testing.assert_allclose(kept @ (kept.T @ left), (left[:, :rank] * size[:rank] ** 2) @ np.eye(rank, 4), atol=1e-8)
    np.testing.assert_allclose(new.inner, kept.T @ (V_new[:, None] * kept), rtol=1e-10, atol=1e-8)
    assert many > 2 * algebra.CHUNK


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
    assert known == [0, 3, 3, 0, 3]  # the first, and the one after the noise, had to read all


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
