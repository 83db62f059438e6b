"""Passes over a tall basis against numpy in float64, and when a CUDA device would be given kernels for them."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from filtax.beliefs import cuda, kernels, passes, products, truncation


def numbers(K, D, O, seed=0):
    rng = np.random.default_rng(seed)
    U, J, c = rng.normal(size=(K, D)), rng.normal(size=(O, D)), rng.normal(size=(O, K))
    return [np.asarray(a, np.float32) for a in (U, J, c, rng.uniform(0.5, 1.5, size=D))]


def count(used):
    return jnp.asarray(used, jnp.int32)


def close(got, want, size):
    """To the rounding of a sum of that many numbers in float32."""
    np.testing.assert_allclose(np.asarray(got, float), want, rtol=0, atol=3e-7 * np.sqrt(size) * 10)


@pytest.mark.parametrize("V", [np.float32(2.0), None])
def test_what_is_left_over_and_its_weighted_squares(V):
    U, J, c, each = numbers(6, 203, 3)
    V = each if V is None else V
    P, spread = passes.left_over(*map(jnp.asarray, (U, J, V, c)), count(6))
    true = J.astype(float) * V - c.astype(float) @ U.astype(float)
    close(P, true, 6)
    want = (true / V) @ true.T
    np.testing.assert_allclose(spread, want, rtol=0, atol=1e-6 * want.max())
    certain = passes.left_over(*map(jnp.asarray, (U, J, np.zeros_like(V), c)), count(6))[1]
    assert not np.any(certain)  # 1 / 0 is taken to be 0


@pytest.fixture
def on_a_gpu(monkeypatch):
    """Choose as on a machine with one CUDA device; what is lowered for this one is still a product."""
    monkeypatch.setattr(passes, "one_gpu", lambda: True)
    monkeypatch.setattr(passes, "MANY", 16)
    monkeypatch.setattr(cuda, "usable", lambda: True)
    monkeypatch.setattr(cuda, "capability", lambda: 90)
    monkeypatch.setattr(cuda, "compiled", lambda source, constants, arch: f"{constants} {arch}")


def all_of(U, J, c, V, used):
    half = passes.shown(U, J, used, V)
    long = passes.swept(U, J, V, c, used)
    left, spread = passes.left_over(U, J, V, c, used)
    turn = jnp.eye(6, dtype=U.dtype) + 0.1
    free, rows, inner = truncation._at_once(V, U, turn, 3)
    squared = passes.gram(U).sum() + spread.sum() + inner.sum() + jnp.sin(free).sum() + jnp.sin(rows).sum()
    grown, moved = passes.taken_up(U, J, V, c[:, 0], jnp.asarray(2, jnp.int32), jnp.asarray(True))
    taken = jnp.sin(grown).sum() + jnp.sin(moved).sum()
    return half.sum() + jnp.sin(long).sum() + taken + squared + jnp.sin(left).sum()


def launched(traced):
    text = traced.lower(lowering_platforms=("cuda",)).as_text()
    return sorted(re.findall(r'kernel_type = "ptx", name = "(\w+)"', text))


NAMES = ["cut", "gram", "gram", "shown", "swept", "swept", "taken_up"]


def test_a_gpu_is_given_kernels_and_all_else_products(on_a_gpu):
    given = tuple(map(jnp.asarray, (*numbers(6, 40, 4), count(6))))
    traced = jax.jit(all_of).trace(*given)
    assert launched(traced) == NAMES
    assert "custom_call" not in traced.lower(lowering_platforms=("cpu",)).as_text()
    many = jax.tree.map(lambda a: jnp.stack([a, a, a]), given)
    assert launched(jax.jit(jax.vmap(all_of)).trace(*many)) == NAMES


def test_derivatives_of_kernels_are_those_of_products(on_a_gpu, monkeypatch):
    given = tuple(map(jnp.asarray, (*numbers(6, 40, 4), count(6))))
    got = jax.jit(jax.grad(all_of, argnums=(0, 1, 2, 3)))(*given)
    monkeypatch.setattr(passes, "one_gpu", lambda: False)
    plain = jax.jit(jax.grad(lambda *given: all_of(*given), argnums=(0, 1, 2, 3)))(*given)  # traced anew
    for a, b in zip(got, plain, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def test_a_cut_is_made_in_place(on_a_gpu):
    U, _, _, V = map(jnp.asarray, numbers(6, 40, 4))
    text = jax.jit(kernels.cut, static_argnums=3).trace(V, U, U[:, :6], 3).lower(lowering_platforms=("cuda",)).as_text()
    assert text.count("output_operand_alias<") == 2


def test_other_sizes_and_types_are_products(on_a_gpu, monkeypatch):
    U, J, *_ = map(jnp.asarray, numbers(6, 40, 4))
    assert passes._by_kernel(U, J)
    assert not passes._by_kernel(U, jnp.zeros((kernels.MOST_OUTPUTS + 1, 40), "float32"))
    assert not passes._by_kernel(U.astype("float16"), J)
    assert not passes._by_kernel(U[:, :8], J)
    assert not passes._by_kernel(U[:0], J)
    monkeypatch.setattr(cuda, "usable", lambda: False)
    assert not passes._by_kernel(U, J)
    assert not passes.squared_by_kernel(U)
    assert not passes.cut_by_kernel(U, U[:, :6], 3)


@pytest.mark.parametrize("capability", [80, 89, 90])
def test_what_does_not_fit_the_shared_memory_is_left(capability, monkeypatch):
    monkeypatch.setattr(cuda, "capability", lambda: capability)
    for fits in (kernels.fits, lambda K: kernels.fits(K, 10), lambda K: kernels.fits_cut(K, K, -(-K // 2))):
        sizes = [rows for rows in range(1, 300) if fits(rows)]
        assert sizes == list(range(1, sizes[-1] + 1))
        assert 100 <= sizes[-1] < 299
    assert not kernels.fits(10, 33)
    assert not kernels.fits_cut(10, 10, 0)
    with pytest.raises(AssertionError, match="ask `fits` first"):
        kernels.cut(jnp.ones(40), jnp.ones((300, 40)), jnp.eye(300), 150)


def test_sources_compile(on_a_gpu, monkeypatch):
    """Where the compiler is installed."""
    try:
        cuda._nvrtc()
    except OSError:
        pytest.skip("there is no NVRTC here")
    monkeypatch.undo()
    monkeypatch.setattr(cuda, "capability", lambda: 90)
    U, J, c, V = map(jnp.asarray, numbers(30, 40, 10))
    for call in (
        lambda: kernels.shown(U, J, count(6), V),
        lambda: kernels.left_over(U, J, V, c, count(6)),
        lambda: kernels.taken_up(U, J, V, c[:, 0], count(6), jnp.asarray(True)),
        lambda: kernels.eased(J, U, c, count(6)),
        lambda: kernels.gram(U, V),
        lambda: kernels.cut(V, U, U[:, :30], 10),
    ):
        jax.eval_shape(call)


def test_a_gram_matrix_in_chunks_is_whole(monkeypatch):
    monkeypatch.setattr(passes, "CHUNK", 16)
    U, _, _, V = numbers(3, 75, 1)
    close(passes.gram(jnp.asarray(U), jnp.asarray(V)), (U.astype(float) * V) @ U.T.astype(float), 75)
    close(passes.gram(jnp.asarray(U)), U.astype(float) @ U.T.astype(float), 75)
    np.testing.assert_allclose(products.squares(jnp.asarray(U)), (U.astype(float) ** 2).sum(0), rtol=1e-6)
    assert products.squares(jnp.zeros((0, 5))).tolist() == [0.0] * 5
