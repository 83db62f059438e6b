"""The Gaussian held as a square root: roots of what a user may give. What all forms share is in test_gaussian_forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from filtax.beliefs import SquareRoot
from filtax.beliefs.square_root import root_of
from moments import spd

pytestmark = pytest.mark.x64


def test_roots_of_what_a_user_may_give():
    """Variances, a full covariance, a singular one in very different units; and the same under jit."""
    unit = np.array([1e-6, 1.0, 1e6])
    for cov in (np.diag([4.0, 0.0, 9.0]), spd(0, 3), np.outer(unit, unit), np.zeros((3, 3))):
        scale = np.outer(np.sqrt(np.diag(cov)), np.sqrt(np.diag(cov)))
        for root in (root_of(jnp.asarray(cov)), jax.jit(SquareRoot.start)(jnp.zeros(3), jnp.asarray(cov)).root):
            assert (np.abs(np.asarray(root) @ np.asarray(root).T - cov) <= 1e-14 * scale).all()
    np.testing.assert_array_equal(root_of(jnp.array([4.0, 0.0])), np.diag([2.0, 0.0]))
