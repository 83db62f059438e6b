"""The door to the kernels: what a CUDA device is given, what stays plain JAX, and derivatives of either."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from filtax import _kernels
from filtax._kernels import cuda_kernels
from filtax.beliefs import LowRank
from filtax.beliefs import _low_rank_algebra as algebra

K, O, D = 6, 4, 40


def numbers(K=K, D=D, O=O, seed=0):
    rng = np.random.default_rng(seed)
    U, J, c = rng.normal(size=(K, D)), rng.normal(size=(O, D)), rng.normal(size=(O, K))
    return [jnp.asarray(a, jnp.float32) for a in (U, J, c, rng.uniform(0.5, 1.5, size=D))]


def count(used):
    return jnp.asarray(used, jnp.int32)


@pytest.fixture
def device(monkeypatch):
    """Trace as on a machine with one CUDA device; PTX is not made, and what is lowered for this one is plain."""
    for module in (_kernels, algebra):
        monkeypatch.setattr(module, "backend", lambda: "gpu")
    monkeypatch.setattr(_kernels, "MANY", 16)
    monkeypatch.setattr(algebra, "MANY", 16)
    monkeypatch.setattr(cuda_kernels, "usable", lambda: True)
    monkeypatch.setattr(cuda_kernels, "capability", lambda: 90)
    monkeypatch.setattr(cuda_kernels, "compiled", lambda source, constants, arch: f"{constants} {arch}")
    monkeypatch.setattr(cuda_kernels, "_processors", lambda: 132)


def launched(traced):
    """Kernels of our own in the program for a CUDA device."""
    text = traced.lower(lowering_platforms=("cuda",)).as_text()
    return sorted(re.findall(r'kernel_type = "ptx", name = "(\w+)"', text))


def all_passes(U, J, c, V, used):
    half = algebra.project(U, J, used, V)
    P = algebra.subtract_rows(J, U, c, used)
    residual, square = algebra.residual_gram(U, J, V, c, used)
    diag_var, rows, inner = algebra.truncate_with_gram(V, U, jnp.eye(K, dtype=U.dtype) + 0.1, used, rank=3)
    squared = algebra.gram(U, None, used, 0 * used) + square.sum() + inner.sum() + jnp.sin(diag_var).sum()
    grown, moved = algebra.append_rows(U, J, V, c[:, 0], count(2), jnp.asarray(True))
    smooth = sum(jnp.sin(a).sum() for a in (grown, moved, P, residual, rows))
    return half.sum() + squared.sum() + smooth


PASSES = ["gram", "gram", "project", "project", "subtract_rows"]


def test_a_device_gets_kernels_and_all_else_plain_products(device, monkeypatch):
    args = (*numbers(), count(6))
    traced = jax.jit(all_passes).trace(*args)
    assert launched(traced) == PASSES
    assert "custom_call" not in traced.lower(lowering_platforms=("cpu",)).as_text()
    many = jax.tree.map(lambda a: jnp.stack([a, a, a]), args)
    assert launched(jax.jit(jax.vmap(all_passes)).trace(*many)) == PASSES
    monkeypatch.setenv("FILTAX_KERNELS_OFF", "gram")
    off = launched(jax.jit(lambda *args: all_passes(*args)).trace(*args))
    assert off == ["project", "project", "subtract_rows"]
    monkeypatch.setenv("FILTAX_KERNELS", "0")
    assert launched(jax.jit(lambda *args: all_passes(*args)).trace(*args)) == []


def test_without_kernels_a_device_multiplies_long_rows_in_three_tf32_products(device, monkeypatch):
    monkeypatch.setenv("FILTAX_KERNELS", "0")
    args = (*numbers(), count(6))
    traced = jax.jit(lambda *args: all_passes(*args)).trace(*args)
    assert "lhs_precision_type = tf32" in traced.lower(lowering_platforms=("cuda",)).as_text()
    assert "tf32" not in traced.lower(lowering_platforms=("cpu",)).as_text()


def test_derivatives_of_kernels_are_those_of_products(device, monkeypatch):
    args = (*numbers(), count(6))
    found = jax.jit(jax.grad(all_passes, argnums=(0, 1, 2, 3)))(*args)
    monkeypatch.setenv("FILTAX_KERNELS", "0")
    plain = jax.jit(jax.grad(lambda *args: all_passes(*args), argnums=(0, 1, 2, 3)))(*args)
    for a, b in zip(found, plain, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def test_a_step_gets_one_kernel_for_each_operation(device):
    belief = LowRank.start(jnp.zeros(20, jnp.float32), jnp.ones(20, jnp.float32), rank=3, spare=12)
    args = jnp.ones((5, 20), jnp.float32), jnp.eye(5, dtype=jnp.float32), jnp.ones(5, jnp.float32)
    step = lambda belief, *args: belief.condition(*args).belief
    names = ["gram", "gram", "jacobi_angles", "jacobi_apply", "project", "project", "project", "subtract_rows"]
    assert launched(jax.jit(step).trace(belief, *args)) == names
    noise = lambda belief, q: belief.add(q)
    drift = launched(jax.jit(noise).trace(belief, jnp.ones((), jnp.float32)))
    assert drift == ["gram"]
    double = LowRank.start(jnp.zeros(20), jnp.ones(20), rank=3, spare=12)
    assert not launched(jax.jit(step).trace(double, *(a.astype(double.mean.dtype) for a in args))) or (
        double.mean.dtype == jnp.float32
    )


def test_under_vmap_there_is_a_block_for_each_case(device):
    """No loop over them; what they share is given to each."""
    G = jnp.eye(9, dtype=jnp.float32)
    vectors = lambda G: algebra.eigenvectors(G, size=D)
    assert launched(jax.jit(jax.vmap(vectors)).trace(jnp.stack([G, G]))) == ["jacobi_angles", "jacobi_apply"]
    twice = jax.vmap(jax.vmap(vectors))
    text = jax.jit(twice).trace(jnp.zeros((2, 3, 9, 9), jnp.float32)).lower(lowering_platforms=("cuda",)).as_text()
    assert "grid_y = 6" in text
    assert "while" not in text


def test_with_a_kernel_chosen_another_platform_gets_the_plain_form(device):
    U, J, *_ = numbers()
    project = lambda U: algebra.project(U, J, count(K), None)
    np.testing.assert_allclose(jax.jit(project)(U), U @ J.T, rtol=1e-5)
    slope = jax.grad(lambda U: jnp.sum(project(U)))(U)
    np.testing.assert_allclose(slope, jax.grad(lambda U: jnp.sum(U @ J.T))(U), rtol=1e-5)
    many = jnp.stack([jnp.stack([U, U])] * 3)
    assert launched(jax.jit(jax.vmap(jax.vmap(project))).trace(many)) == ["project"]


def test_other_sizes_and_types_are_products(device, monkeypatch):
    U, J, *_ = numbers()

    def kernels(U, J):
        return launched(jax.jit(lambda U, J: algebra.project(U, J, count(6), None)).trace(U, J))

    assert kernels(U, J) == ["project"]
    half, many = (U.astype("float16"), J.astype("float16")), jnp.zeros((cuda_kernels.OUTPUTS + 1, D), "float32")
    for args in (half, (U, many), (U[:, :8], J[:, :8]), (U[:0], J)):
        assert kernels(*args) == []
    monkeypatch.setattr(cuda_kernels, "usable", lambda: False)
    assert kernels(U, J) == []


@pytest.mark.parametrize("capability", [80, 89, 90])
def test_what_does_not_fit_the_shared_memory_is_left(capability, monkeypatch):
    monkeypatch.setattr(cuda_kernels, "capability", lambda: capability)
    grams = lambda K: cuda_kernels.fits_gram(jnp.zeros((K, 1)))
    for fits in (grams, lambda K: cuda_kernels.fits(K, 10)):
        sizes = [rows for rows in range(1, 300) if fits(rows)]
        assert sizes == list(range(1, sizes[-1] + 1))
        assert 100 <= sizes[-1] < 299
    assert not cuda_kernels.fits(10, 33)
    with pytest.raises(AssertionError, match="`fits` says so"):
        cuda_kernels.project(jnp.ones((2000, 40)), jnp.ones((1, 40)), count(1))


def test_sources_compile(monkeypatch):
    """Where the compiler is installed."""
    try:
        cuda_kernels._nvrtc()
    except OSError:
        pytest.skip("there is no NVRTC here")
    monkeypatch.setattr(cuda_kernels, "capability", lambda: 90)
    U, J, c, V = numbers(30, 40, 10)
    n = count(6)
    for call in (
        lambda: cuda_kernels.project(U, J, n, V),
        lambda: cuda_kernels.subtract_rows(J, U, c, n),
        lambda: cuda_kernels.gram(U, V, n, n),
        lambda: cuda_kernels.eigenvectors.fun(U[:, :30]),
    ):
        jax.eval_shape(call)


def test_without_a_device_there_are_no_cuda_kernels():
    assert cuda_kernels.usable() == (jax.default_backend() == "gpu" and jax.device_count() == 1)
