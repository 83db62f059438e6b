"""Roots, logarithms and weights stay numbers at the edges of what numbers can be."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_softmax

import filtax as fx
from filtax.numerics import normalised, safe_log, safe_scale, safe_sqrt


@given(
    values=st.lists(st.floats(-50, 50, allow_subnormal=False), min_size=2, max_size=6),
    shift=st.sampled_from([0.0, -1e4, 1e12, -1e30]),
)
def test_weights_are_those_of_scipy_and_the_shift_does_not_count(values, shift):
    """Shifted values are rounded before they come; the same ones are given to both."""
    given_ = np.float32(values) + np.float32(shift)
    found = np.asarray(normalised(jnp.asarray(given_)), np.float64)
    np.testing.assert_allclose(found, log_softmax(given_.astype(np.float64)), rtol=2e-6, atol=1e-5)
    np.testing.assert_allclose(np.exp(found).sum(), 1.0, atol=1e-6)


def test_a_slope_is_that_of_a_softmax():
    at = jnp.array([0.3, -1.0, -jnp.inf])
    slope = np.asarray(jax.jacfwd(normalised)(at))[:2, :2]
    share = np.exp(np.asarray(normalised(at)))[:2]
    np.testing.assert_allclose(slope, np.eye(2) - share[None, :], rtol=1e-5)


@pytest.mark.parametrize("name", ["CPT[10]-PR(hazard=0.01)", "RLCC[10](a=1, b=99)-PR", "RL[5]/ME[2]-PR(hazard=0.01)"])
def test_one_absurd_datum_does_not_multiply_the_belief(name):
    """Hypotheses that share a large score share one weight: float32, y = 1e5, noise 1."""
    method = fx.method(name, model=fx.models.linear(noise=1.0))
    rng = np.random.default_rng(0)
    state = method.init(mean=jnp.zeros(2), cov=1.0)
    X, y = rng.normal(size=(30, 2)).astype("float32"), rng.normal(size=30).astype("float32")
    state, _ = method.scan(state, X, y)
    state, info = method.step(state, X[0], np.float32(1e5))
    np.testing.assert_allclose(np.exp(np.asarray(state.hypotheses.log_weight, float)).sum(), 1.0, atol=1e-6)
    assert float(info.change_probability) <= 1.0 + 1e-6
    assert np.abs(np.asarray(method.belief(state).mean)).max() < 1.1e5 / np.abs(X[0]).max()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("traced", [True, False])
def test_lengths_of_every_size(dtype, traced):
    """By 80-bit arithmetic: direction and length are right, whatever the largest number is."""
    limits = np.finfo(dtype)
    far = np.exp2(np.arange(limits.minexp + 2, limits.maxexp - 1, 0.25)).astype(dtype)
    rows = np.stack([far, -0.5 * far], 1).astype(dtype)

    def polar(e):
        scale = safe_scale(e)
        size = safe_sqrt(jnp.sum(jnp.square(e / scale)))
        return e / scale / size, scale * size

    each = jax.vmap(polar)
    unit, length = (jax.jit(each) if traced else each)(rows)
    true = far.astype(np.longdouble) * np.sqrt(np.longdouble(1.25))
    np.testing.assert_allclose(np.asarray(length, np.longdouble), true, rtol=10 * limits.eps)
    np.testing.assert_allclose(unit, rows.astype(np.longdouble) / true[:, None], rtol=10 * limits.eps)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_borders(dtype):
    most = np.finfo(dtype).max
    assert safe_scale(jnp.zeros(3, dtype)) == 1.0
    assert safe_scale(jnp.asarray([-3.0, 2.0], dtype)) == 3.0
    assert safe_scale(jnp.asarray([0.1], dtype), 1.0) == 1.0
    assert most / safe_scale(jnp.asarray([most], dtype)) <= 16.0
    assert jax.grad(lambda a: safe_scale(jnp.asarray([a, 1.0], dtype)))(jnp.asarray(2.0, dtype)) == 0.0
    for root, at_zero in ((safe_sqrt, 0.0), (safe_log, -np.inf)):
        assert root(jnp.asarray(0.0, dtype)) == at_zero
        assert jax.grad(root)(jnp.asarray(0.0, dtype)) == 0.0
    np.testing.assert_allclose(safe_sqrt(jnp.asarray(2.0, dtype)) ** 2, 2.0, rtol=1e-6)
    np.testing.assert_allclose(jnp.exp(safe_log(jnp.asarray(2.0, dtype))), 2.0, rtol=1e-6)
