"""The Gaussian held as its precision: what it cannot hold. What all forms share is in test_gaussian_forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import filtax as fx
from filtax.beliefs import Precision

pytestmark = pytest.mark.x64


def start(mean, cov):
    return Precision.start(jnp.asarray(mean), jnp.asarray(cov))


def test_a_drift_that_makes_certain_is_not_taken():
    belief = start(np.array([1.0, 2.0]), np.ones(2))
    lost = belief.affine(jnp.array([0.0, 1.0]), None, None)
    jax.tree.map(np.testing.assert_array_equal, lost, belief)


@pytest.mark.parametrize(("dtype", "x", "cov"), [("float32", 1.0, 1e10), ("float32", 1e5, 1.0), ("float64", 1e30, 1.0)])
def test_a_datum_without_a_factor_is_refused(dtype, x, cov):
    """Two equal features: next to x xᵀ the prior is less than a rounding, and the sum is singular."""
    belief = start(np.zeros(2, dtype), np.full(2, cov, dtype))
    part = jnp.full((1, 2), x, dtype), jnp.ones((1, 1), dtype), jnp.ones(1, dtype)
    done = belief.condition(*part)
    assert not done.ok
    jax.tree.map(np.testing.assert_array_equal, done.belief, belief)


def test_a_belief_that_has_no_factor_gives_no_evidence():
    """What drift and rounding made of a precision need not be positive definite: no datum of it counts as taken."""
    belief = Precision(jnp.zeros(2), jnp.array([[1.0, 2.0], [2.0, 1.0]]))
    done = belief.condition(jnp.eye(2), 3.0 * jnp.eye(2), jnp.ones(2))
    assert not done.ok
    jax.tree.map(np.testing.assert_array_equal, done.belief, belief)


@pytest.mark.parametrize("seed", range(4))
def test_two_equal_features_that_drift(seed):
    """The covariance on the way is nearly singular: what comes back as a precision without a factor is not taken."""
    method = fx.method("LG(form=precision)+C-ACI(q=0.01)", model=fx.models.linear(noise=1.0))
    a = np.random.default_rng(seed).normal(size=(50, 1)).astype("float32")
    state, infos = method.scan(method.init(mean=jnp.zeros(2, "float32"), cov=1e8), np.hstack([a, a]), a[:, 0])
    assert np.isfinite(method.belief(state).cov).all()
    assert np.isfinite(infos.var).all()
    np.testing.assert_allclose(method.belief(state).mean.sum(), 1.0, rtol=1e-3)


def test_a_precision_that_rounding_made_singular_has_a_covariance():
    """Two equal features again: the last pivot is nothing; a few roundings more on the diagonal are its error."""
    belief = Precision(jnp.zeros(2, jnp.float32), jnp.full((2, 2), 3.75, jnp.float32).at[1, 1].set(3.749999))
    assert np.isfinite(belief.cov).all()
    np.testing.assert_allclose(belief.project_cov(jnp.ones((1, 2), jnp.float32)), 1.0 / 3.75, rtol=1e-3)
    assert np.isfinite(belief.sample(jax.random.key(0))).all()
