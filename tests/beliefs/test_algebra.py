"""Small algebra of a low-rank belief: the plain forms against numpy, and which kernels a CUDA device would get."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from filtax.beliefs import LowRank, algebra, cuda, passes, small
from filtax.layout import flatten
from filtax.linalg import psd_root
from filtax.models.nonlinear import nonlinear

K, O, USED = 9, 5, 4


def lower(rng, N):
    A = rng.normal(size=(N, N))
    return np.linalg.cholesky(np.eye(N) + A @ A.T)


@pytest.fixture
def parts():
    """s, R and L with identity beyond the rows in use, B, r and a spread."""
    rng = np.random.default_rng(0)
    s, R, L = np.zeros((K, O)), np.eye(K), np.eye(K)
    s[:USED], R[:USED, :USED], L[:USED, :USED] = (
        rng.normal(size=(USED, O)),
        rng.normal(size=(USED, USED)),
        lower(rng, USED),
    )
    A = rng.normal(size=(O, O))
    return s, R, L, rng.normal(size=(O, O)), rng.normal(size=O), A @ A.T


@pytest.fixture
def device(monkeypatch):
    """As if there were one CUDA device; PTX is not made."""
    for module in (passes, algebra):
        monkeypatch.setattr(module, "one_gpu", lambda: True)
        monkeypatch.setattr(module, "MANY", 8)
    monkeypatch.setattr(cuda, "usable", lambda: True)
    monkeypatch.setattr(cuda, "capability", lambda: 90)
    monkeypatch.setattr(cuda, "compiled", lambda source, constants, arch: f"{constants} {arch}")


def launched(call, *given) -> list[str]:
    """Kernels of our own in the program for a CUDA device, in their order."""
    text = jax.jit(call).trace(*given).lower(lowering_platforms=("cuda",)).as_text()
    return re.findall(r'kernel_type = "ptx", name = "(\w+)"', text)


def test_what_is_explained(parts):
    s, R, L, *_ = parts
    S, M = R @ np.linalg.inv(L).T, L @ L.T
    half, taken, square = algebra.explained(*map(jnp.asarray, (s, S, L)), jnp.asarray(USED))
    fit = np.linalg.solve(M, R.T @ s)
    np.testing.assert_allclose(half.T @ half, s.T @ R @ np.linalg.inv(M) @ R.T @ s, atol=1e-12)
    np.testing.assert_allclose(taken, (R @ fit).T, atol=1e-12)
    np.testing.assert_allclose(square, fit.T @ fit, atol=1e-12)


def test_by_what_a_gain_is_off(parts):
    s, R, L, *_ = parts
    S, half = R @ np.linalg.inv(L).T, np.where(np.arange(K)[:, None] < USED, 3.0 * s, 0.0)
    found = algebra.along(*map(jnp.asarray, (s, half, S, L)), jnp.asarray(USED))
    off = S.T @ s - np.linalg.inv(L.T @ L) @ half
    np.testing.assert_allclose(found, (S @ np.where(np.arange(K)[:, None] < USED, off, 0.0)).T, atol=1e-10)


def test_a_residual_is_judged(parts):
    *_, B, r, spread = parts
    L, z, move, sound = algebra.judged(*map(jnp.asarray, (spread, B, r)))
    S = np.eye(O) + B @ spread @ B.T
    np.testing.assert_allclose(L @ L.T, S, atol=1e-12)
    np.testing.assert_allclose(z @ z, r @ np.linalg.solve(S, r), atol=1e-12)
    np.testing.assert_allclose(move, B.T @ np.linalg.solve(S, r), atol=1e-12)
    assert sound
    assert not algebra.judged(jnp.full((O, O), jnp.inf), jnp.asarray(B), jnp.asarray(r))[3]


@pytest.mark.parametrize("taken", [True, False])
def test_a_datum_is_placed(parts, taken):
    s, R, L, B, *_ = parts
    root = lower(np.random.default_rng(1), O)
    c = -2.0 * s.T
    found = algebra.placed(*map(jnp.asarray, (R, L, USED, taken, B, s, c, root)))
    core, grown = R.copy(), L.copy()
    if taken:
        core[USED:, USED:], grown[USED:, USED:], grown[USED:, :USED] = B.T, root, (B @ s.T)[:, :USED]
        core[:USED, USED:] = (B @ c).T[:USED]
    np.testing.assert_allclose(found[0], core, atol=1e-13)
    np.testing.assert_allclose(found[1], grown, atol=1e-13)


def test_what_the_columns_have_in_common_grows_with_a_datum(parts):
    """Of W = V⁻¹UᵀR with columns JᵀBᵀ more, formed whole."""
    s, R, L, B, *_ = parts
    local = np.random.default_rng(3)
    U, V, J = (
        local.normal(size=(K, 30)) * (np.arange(K) < USED)[:, None],
        local.uniform(0.5, 2.0, 30),
        local.normal(size=(O, 30)),
    )
    W = (U / V).T @ R
    N, X, Y = W.T @ W, (U / V) @ J.T, J @ J.T
    given = *map(jnp.asarray, (R, L, USED)), jnp.asarray(True), *map(jnp.asarray, (B, s, s.T, lower(local, O)))
    W[:, USED : USED + O] = J.T @ B.T
    np.testing.assert_allclose(algebra.placed(*given, *map(jnp.asarray, (X, Y, N)))[2], W.T @ W, atol=1e-12)
    unknown = jnp.full((K, K), -1.0)
    np.testing.assert_array_equal(algebra.placed(*given, *map(jnp.asarray, (X, Y)), unknown)[2], unknown)
    huge = algebra.placed(*given, jnp.asarray(X), jnp.full((O, O), jnp.inf), jnp.asarray(N))[2]
    assert np.all(np.isfinite(huge))


def test_after_a_cut(parts):
    inner = parts[-1]
    core, root = algebra.settled(jnp.ones((K, K)), jnp.ones((K, K)), jnp.asarray(inner), jnp.asarray(0.5))
    np.testing.assert_array_equal(core, np.diag([0.5] * O + [1.0] * (K - O)))
    whole = np.eye(K)
    whole[:O, :O] += inner
    np.testing.assert_allclose(root @ root.T, whole, atol=1e-12)


def test_a_device_gets_one_kernel_for_each(device):
    belief = LowRank.start(jnp.zeros(20, jnp.float32), jnp.ones(20, jnp.float32), rank=3, spare=12)
    given = jnp.ones((O, 20), jnp.float32), jnp.eye(O, dtype=jnp.float32), jnp.ones(O, jnp.float32)
    step = lambda belief, *given: belief.condition(*given).belief
    of_passes = ["cut", "eased", "gram", "gram", "shown", "shown", "swept", "taken_up"]
    names = sorted(
        ["along", "angles", "explained", "judged", "lowered", "lowered", "placed", "rotated", "settled", *of_passes]
    )
    assert sorted(launched(step, belief, *given)) == names
    noise = lambda belief, q: belief.add(q)
    assert sorted(launched(noise, belief, jnp.ones((), jnp.float32))) == ["gram", "lowered", "rooted"]
    double = LowRank.start(jnp.zeros(20), jnp.ones(20), rank=3, spare=12)
    assert not launched(
        lambda belief, *given: belief.condition(*given).belief, double, *(a.astype(float) for a in given)
    )


def test_under_vmap_there_is_a_block_for_each_case(device, parts):
    """No loop over them; what they share is given to each."""
    s, R, L, B, _, spread = (jnp.asarray(a, jnp.float32) for a in parts)
    shared = lambda s: algebra.explained(s, R, L, jnp.asarray(USED, jnp.int32), kernel="cuda")
    assert launched(jax.vmap(shared), jnp.stack([s, s])) == ["explained"]
    twice = jax.vmap(jax.vmap(lambda r: algebra.judged(spread, B, r, kernel="cuda")))
    text = jax.jit(twice).trace(jnp.zeros((2, 3, O), jnp.float32)).lower(lowering_platforms=("cuda",)).as_text()
    assert "grid_y = 6" in text
    assert "while" not in text


def test_with_kernels_chosen_another_platform_gets_the_plain_form(device):
    A = jnp.asarray(np.diag(np.arange(1.0, O + 1)), jnp.float32)
    np.testing.assert_array_equal(jax.jit(algebra.semiroot)(A), psd_root(A))
    slope = jax.grad(lambda A: jnp.sum(algebra.semiroot(A)))(A)
    np.testing.assert_array_equal(slope, jax.grad(lambda A: jnp.sum(psd_root(A)))(A))
    assert launched(jax.vmap(jax.vmap(algebra.semiroot)), jnp.stack([jnp.stack([A, A])] * 3)) == ["semiroot"]


def test_kernels_write_over_what_they_may(device):
    core, one = jnp.eye(K, dtype=jnp.float32), jnp.ones((), jnp.float32)
    text = jax.jit(small.settled).trace(core, core, core[:2, :2], one).lower(lowering_platforms=("cuda",)).as_text()
    assert text.count("output_operand_alias<") == 2


@pytest.mark.parametrize("outputs", [1, 10, 32])
def test_what_does_not_fit_the_shared_memory_is_left(outputs):
    sizes = [rows for rows in range(1, 200) if small.fits(rows, outputs)]
    assert sizes == list(range(1, sizes[-1] + 1))
    assert sizes[-1] <= small.MOST
    assert not small.fits(10, 33)


def test_every_source_is_one_kernel_of_its_name():
    for name in ("along", "angles", "explained", "judged", "lowered", "placed", "rooted", "rotated", "semiroot"):
        assert f"void {name}(" in cuda.source(name)


def test_here_there_is_no_such_device():
    assert not cuda.usable()


def test_sources_compile():
    """Where the compiler is installed."""
    try:
        cuda._nvrtc()
    except OSError:
        pytest.skip("there is no NVRTC here")
    for name, sizes in {
        "explained": {"K": 30, "O": 10, "GROUPS": 8, "THREADS": 320},
        "along": {"K": 100, "O": 10},
        "judged": {"O": 10},
        "placed": {"K": 30, "O": 10},
    }.items():
        assert name in cuda.compiled(cuda.source(name), tuple(sizes.items()), 90)


def test_a_jacobian_is_joined_from_its_leaves(monkeypatch):
    """As on a GPU: the largest leaf first, and the others written into it."""
    net = lambda p, x: p["b"] + p["w"] @ x * p["c"]
    params = {"b": jnp.ones(3), "c": jnp.arange(3.0), "w": jnp.arange(12.0).reshape(3, 4)}
    x, (theta, layout) = jnp.arange(4.0), flatten(params)
    plain = nonlinear(net, 1.0).predictor.bind(layout).linearise(theta, x, None)
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    found = nonlinear(net, 1.0).predictor.bind(layout).linearise(theta, x, None)
    np.testing.assert_array_equal(found.jacobian, plain.jacobian)
