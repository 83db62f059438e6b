"""The three ways to read x, against numpy's products; a line for each segment, against a batch regression."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import filtax as fx
from filtax.models import since_change
from filtax.models._linear import Linear
from filtax.protocols import RunLengthValue
from moments import normal

pytestmark = pytest.mark.x64


def at(theta, x):
    return Linear().linearise(jnp.asarray(theta), None if x is None else jnp.asarray(x), None)


@pytest.mark.parametrize("D", [1, 4])
def test_features_of_one_output(D):
    theta, x = normal(0, D), normal(1, D)
    got = at(theta, x)
    np.testing.assert_allclose(got.eta, [np.dot(x, theta)], rtol=1e-14)
    np.testing.assert_array_equal(got.jacobian, x[None])
    assert got.scalar


@pytest.mark.parametrize(("O", "D"), [(1, 1), (1, 3), (5, 3)])
def test_an_observation_matrix(O, D):
    """More rows than parameters will do; a single row keeps its axis."""
    theta, H = normal(0, D), normal(1, O, D)
    got = at(theta, H)
    np.testing.assert_allclose(got.eta, H @ theta, rtol=1e-13)
    np.testing.assert_array_equal(got.jacobian, H)
    assert not got.scalar


@pytest.mark.parametrize(("M", "O"), [(3, 2), (1, 4)])
def test_a_matrix_of_parameters(M, O):
    """theta is an M x O matrix, row by row: outputs are x' W, and the slope is that of x' W in each entry."""
    W, x = normal(0, M, O), normal(1, M)
    got = at(W.ravel(), x)
    np.testing.assert_allclose(got.eta, x @ W, rtol=1e-13)
    slope = [(x @ (W + e.reshape(M, O)) - x @ W) for e in np.eye(M * O)]
    np.testing.assert_allclose(got.jacobian, np.stack(slope, axis=1), atol=1e-13)
    assert not got.scalar


@pytest.mark.parametrize(
    ("x", "match"),
    [
        (None, r"x is None but there are D = 4 parameters; give \(4,\) features"),
        (np.ones((2, 3)), r"x is a matrix H of shape \(2, 3\) but there are D = 4 parameters; give \(O, 4\)"),
        (np.ones(3), r"x has shape \(3,\) but there are D = 4 parameters"),
        (np.ones(8), "features with D = M x O"),
        (np.ones(0), r"x has shape \(0,\)"),
        (np.ones(()), r"x has shape \(\)"),
        (np.ones((1, 1, 4)), r"x has shape \(1, 1, 4\)"),
    ],
)
def test_refusals(x, match):
    with pytest.raises(ValueError, match=match):
        at(np.zeros(4), x)
    with pytest.raises(ValueError, match=match):
        jax.jit(lambda theta: Linear().linearise(theta, None if x is None else jnp.asarray(x), None))(jnp.zeros(4))


def test_features_since_a_change_are_one_the_run_and_x_for_each_output():
    theta = jnp.arange(8.0)  # rows: intercepts, slopes, two weights; two outputs
    at = since_change(1.0, unit=10.0).linearise(theta, jnp.array([3.0, -1.0]), RunLengthValue(jnp.asarray(5), None))
    want = np.array([1.0, 0.5, 3.0, -1.0]) @ np.arange(8.0).reshape(4, 2)
    np.testing.assert_allclose(at.eta, want)
    np.testing.assert_allclose(at.jacobian @ theta, want)


def test_without_a_run_length_it_is_a_constant():
    at = since_change(1.0).linearise(jnp.array([2.0, 5.0]), None, None)
    assert at.eta.tolist() == [2.0]


def test_without_a_change_the_evidence_is_that_of_one_regression():
    """Hazard 0: the run that began with the stream is 1 old at the first datum."""
    rng = np.random.default_rng(0)
    y = 3.0 + 0.2 * np.arange(9) + rng.normal(size=9)
    rl = fx.method("NIG(shape=2.0,rate=1.5)+RL[4]-PR(hazard=0.0)", model=since_change(1.0, unit=10.0))
    _, info = rl.scan(rl.init(mean=jnp.zeros(2), cov=4.0), None, y, keep=("log_evidence",))
    X = np.column_stack([np.ones(9), np.arange(1, 10) / 10.0])
    law = scipy.stats.multivariate_t(np.zeros(9), 0.75 * (np.eye(9) + 4.0 * X @ X.T), df=4.0)
    np.testing.assert_allclose(info.log_evidence.sum(), law.logpdf(y), rtol=1e-10)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: since_change(1.0, unit=0.0), r"since_change\(unit=\.\.\.\) must be finite and above 0"),
        (lambda: since_change(), r"since_change: give noise=\.\.\. or likelihood=\.\.\., got neither"),
        (
            lambda: since_change(1.0).linearise(jnp.zeros(2), jnp.ones((1, 2)), None),
            r"since_change: x has shape \(1, 2\); give features \(M,\)",
        ),
    ],
)
def test_refusals_of_since_change(call, message):
    with pytest.raises(ValueError, match=message):
        call()
