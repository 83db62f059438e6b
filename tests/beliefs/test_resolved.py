"""Where LoFi's gain is lost in rounding: streams of features that nobody scaled, beside float64 and a dense filter."""

import jax.numpy as jnp
import numpy as np
import pytest

import filtax as fx
from filtax.beliefs.resolved import resolved

D, T = 12, 3000


def stream(offsets, outputs=1, seed=0):
    """Rows of unit features, but for those with an offset and a spread of their own; unit noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(T, D))
    for column, (offset, spread) in offsets.items():
        X[:, column] = offset + spread * X[:, column]
    return X, X @ rng.normal(size=(D, outputs)) + rng.normal(size=(T, outputs))


def last_errors(name, X, Y, dtype):
    """Root mean square of the last 500 errors, in noises."""
    method = fx.method(name, model=fx.models.linear(noise=1.0))
    start = method.init(params=jnp.zeros((D, Y.shape[1]), dtype), cov=1.0)
    _, info = method.scan(start, X.astype(dtype), Y.astype(dtype), keep=("mean",))
    return float(np.sqrt(np.mean((Y - np.reshape(info.mean, Y.shape).astype(float))[-500:] ** 2)))


UNSCALED = {
    "a constant": {0: (1000.0, 0.0)},
    "kelvin and pascals": {0: (300.0, 5.0), 1: (1013.0, 10.0)},
    "large": {0: (0.0, 1000.0), 1: (0.0, 300.0)},
    "a year, and two constants": {0: (1.0, 0.0), 1: (2020.0, 1.0), 2: (1000.0, 0.0)},
}


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("offsets", UNSCALED.values(), ids=UNSCALED)
def test_features_that_nobody_scaled_are_learned_in_float32(offsets, outputs):
    X, Y = stream(offsets, outputs)
    assert last_errors("LoFi(rank=4)+C-Static", X, Y, "float32") < 1.15


@pytest.mark.x64
@pytest.mark.parametrize("size", [1e6, 1e7])
def test_and_larger_ones_in_float64(size):
    X, Y = stream({0: (size, 0.0)})
    assert last_errors("LoFi(rank=4)+C-Static", X, Y, "float64") < 1.1


def test_the_spread_is_what_the_gain_does_to_the_forecast():
    """P Jᵀ becomes the spread, also where two outputs are one."""
    rng = np.random.default_rng(1)
    J = rng.normal(size=(3, D))
    J[2] = J[1]
    J[:, 0] += 1000.0
    V = rng.uniform(0.5, 2.0, size=D)
    whole = (J * V) @ J.T
    half = np.linalg.cholesky(whole + 1e-9 * np.trace(whole) * np.eye(3)).T
    spread = np.diag([1e-4, 1e-5, 1e-5])
    spread[1, 2] = spread[2, 1] = 1e-5
    P = J * V * 1e-7
    found = np.asarray(resolved(*(jnp.asarray(A, "float32") for A in (P, J, V, spread, half))), float)
    assert np.abs(P @ J.T - spread).max() > 0.1
    np.testing.assert_allclose(found @ J.T, spread, atol=1e-3)
    assert np.abs(found - P).max() < 1e-6 * np.abs(J * V).max()


def test_a_gain_that_is_told_well_is_left_bit_for_bit():
    J, V = jnp.ones((1, D), "float32"), jnp.ones(D, "float32")
    P, half = 0.25 * J, jnp.full((1, 1), 2.0, "float32")
    assert jnp.array_equal(resolved(P, J, V, jnp.ones((1, 1), "float32"), half), P)


def test_what_is_not_finite_is_left_for_the_belief_to_refuse():
    J, V = jnp.full((1, D), jnp.inf, "float32"), jnp.ones(D, "float32")
    bad = jnp.full((1, 1), jnp.nan, "float32")
    assert jnp.array_equal(resolved(J, J, V, bad, bad), J)
