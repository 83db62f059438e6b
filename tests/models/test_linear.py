"""The three ways to read x, against numpy's products; and what does not fit."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from filtax.models._linear import Linear
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
