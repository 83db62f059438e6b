"""The Gaussian held as its precision: what it cannot hold. What all forms share is in test_gaussian_forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from filtax.beliefs import Precision
from moments import spd

pytestmark = pytest.mark.x64


def start(mean, cov):
    return Precision.start(jnp.asarray(mean), jnp.asarray(cov))


def test_a_drift_that_makes_certain_is_not_taken():
    belief = start(np.array([1.0, 2.0]), np.ones(2))
    lost = belief.drift(jnp.array([0.0, 1.0]), None, None)
    jax.tree.map(np.testing.assert_array_equal, lost, belief)


def test_start():
    """Variances or a full covariance; what is certain has no precision, and comes out as infinity or NaN."""
    np.testing.assert_array_equal(start(np.zeros(2), np.array([4.0, 0.5])).precision, np.diag([0.25, 2.0]))
    np.testing.assert_allclose(start(np.zeros(3), spd(0, 3)).precision, np.linalg.inv(spd(0, 3)), rtol=1e-12)
    assert not np.isfinite(start(np.zeros(2), np.array([1.0, 0.0])).precision).all()
