"""Passes over a tall basis against numpy in float64: as products, and as the kernels of a CUDA device."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from filtax.beliefs import kernels, passes


def numbers(K, D, O, seed=0):
    rng = np.random.default_rng(seed)
    U, J, c = rng.normal(size=(K, D)), rng.normal(size=(O, D)), rng.normal(size=(O, K))
    return [np.asarray(a, np.float32) for a in (U, J, c, rng.uniform(0.5, 1.5, size=D))]


def count(used):
    return jnp.asarray(used, jnp.int32)


def close(got, want, size):
    """To the rounding of a sum of that many numbers in float32."""
    np.testing.assert_allclose(np.asarray(got, float), want, rtol=0, atol=3e-7 * np.sqrt(size) * 10)


@pytest.mark.parametrize(("K", "O"), [(6, 1), (20, 4), pytest.param(100, 10, marks=pytest.mark.nightly)])
def test_kernels_are_products_over_the_rows_in_use(K, O, monkeypatch):
    """A number of parameters that nothing divides; rows that are not used hold what must not be read."""
    monkeypatch.setattr(kernels, "PROCESSORS", 1)  # so that each program has several tiles,
    if K < 100:
        monkeypatch.setattr(kernels, "REGISTERS", 20)  # and not every row the same program
    D = 203
    U, J, c, V = numbers(K, D, O)
    wide = [a.astype(float) for a in (U, J, c, V)]
    for used in (0, K - 1, K):
        held = np.where(np.arange(K)[:, None] < used, U, np.nan)
        u, j, w, v = np.nan_to_num(held).astype(float), *wide[1:]
        close(kernels.shown(held, J, count(used), interpret=True), u @ j.T, D)
        close(kernels.shown(held, J, count(used), V, interpret=True), (u * v) @ j.T, D)
        close(kernels.swept(held, J, V, c, count(used), interpret=True), j * v - w @ u, K)
        close(kernels.swept(held, J, np.float32(2.0), c, count(used), interpret=True), 2.0 * j - w @ u, K)
    close(kernels.mixed(c, U, interpret=True), wide[2] @ wide[0], K)
    close(kernels.inner(J, interpret=True), wide[1] @ wide[1].T, D)
    close(kernels.inner(J, V, interpret=True), (wide[1] * wide[3]) @ wide[1].T, D)
    np.testing.assert_allclose(kernels.gram(U, interpret=True), wide[0] @ wide[0].T, rtol=1e-6, atol=1e-4)
    held = np.where(np.arange(K)[:, None] < K - 1, U, np.nan)
    want = (wide[0] * wide[3])[:-1] @ wide[0][:-1].T
    np.testing.assert_allclose(kernels.gram(held, V, K - 1, interpret=True), want, rtol=1e-6, atol=1e-4)


def test_a_few_rows_are_multiplied_with_each_other():
    _, J, _, V = numbers(1, 203, 3)
    close(kernels.inner(J, V, interpret=True), (J.astype(float) * V) @ J.T.astype(float), 203)


@pytest.fixture
def on_a_gpu(monkeypatch):
    """Choose as on a machine with one CUDA device; what is lowered for this one is still a product."""
    monkeypatch.setattr(passes, "one_gpu", lambda: True)
    monkeypatch.setattr(passes, "MANY", 16)
    monkeypatch.setattr(passes, "VAST", 16)


def all_of(U, J, c, V, used):
    half = passes.shown(U, J, used, V)
    long = passes.swept(U, J, V, c, used)
    squared = passes.gram(U, V, 3).sum() + passes.gram(U).sum() + passes.inner(J, V).sum()
    return half.sum() + jnp.sin(long).sum() + jnp.sin(passes.mixed(J[:, :3], J[:3])).sum() + squared


def test_a_gpu_is_given_kernels_and_all_else_products(on_a_gpu):
    U, J, c, V = numbers(6, 40, 4)
    given = (U, J, c, V, count(6))
    traced = jax.jit(all_of).trace(*given)
    assert traced.lower(lowering_platforms=("cuda",)).as_text().count("custom_call @") == 6
    assert "custom_call" not in traced.lower(lowering_platforms=("cpu",)).as_text()
    many = jax.tree.map(lambda a: jnp.stack([a, a, a]), given)
    streams = jax.jit(jax.vmap(all_of)).trace(*many)
    assert streams.lower(lowering_platforms=("cuda",)).as_text().count("custom_call @") == 6


def test_derivatives_of_kernels_are_those_of_products(on_a_gpu, monkeypatch):
    U, J, c, V = numbers(6, 40, 4)
    slope = jax.jit(jax.grad(all_of, argnums=(0, 1, 2, 3)))
    got = slope(U, J, c, V, count(6))
    monkeypatch.setattr(passes, "one_gpu", lambda: False)
    for a, b in zip(got, jax.jit(jax.grad(all_of, argnums=(0, 1, 2, 3)))(U, J, c, V, count(6)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def test_streams_have_their_own_number_of_rows():
    U, J, c, V = numbers(6, 203, 2)
    kernel = lambda n: (kernels.shown(U, J, n, interpret=True), kernels.swept(U, J, V, c, n, interpret=True))
    half, long = jax.vmap(kernel)(jnp.array([0, 4, 6], jnp.int32))
    for at, used in enumerate((0, 4, 6)):
        close(half[at, :used], U[:used].astype(float) @ J.T, 203)
        assert not np.any(half[at, used:])
        close(long[at], J.astype(float) * V - c[:, :used].astype(float) @ U[:used], 6)


def test_other_sizes_and_types_are_products(on_a_gpu):
    U, J, *_ = numbers(6, 40, 4)
    assert passes._by_kernel(jnp.asarray(U), jnp.asarray(J))
    assert not passes._by_kernel(jnp.asarray(U), jnp.zeros((kernels.MOST_OUTPUTS + 1, 40)))
    assert not passes._by_kernel(jnp.asarray(U, jnp.float16), jnp.asarray(J))
    assert not passes._by_kernel(jnp.asarray(U[:, :8]), jnp.asarray(J))
    assert not passes._by_kernel(jnp.asarray(U[:0]), jnp.asarray(J))


def test_a_gram_matrix_in_chunks_is_whole(monkeypatch):
    monkeypatch.setattr(passes, "CHUNK", 16)
    U, _, _, V = numbers(3, 75, 1)
    close(passes.gram(jnp.asarray(U), jnp.asarray(V)), (U.astype(float) * V) @ U.T.astype(float), 75)
    close(passes.gram(jnp.asarray(U)), U.astype(float) @ U.T.astype(float), 75)
    np.testing.assert_allclose(passes.squares(jnp.asarray(U)), (U.astype(float) ** 2).sum(0), rtol=1e-6)
    assert passes.squares(jnp.zeros((0, 5))).tolist() == [0.0] * 5
