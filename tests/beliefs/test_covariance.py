"""The Gaussian held as its covariance: the guards. What all forms share is in test_gaussian_forms.

Twenty parameters are beyond the size up to which the diagonal is reached by a mask.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from filtax.beliefs import Covariance
from moments import conditioned, drifted, problem, same, spd

pytestmark = pytest.mark.x64
condition = jax.jit(lambda belief, J, B, r: belief.condition(J, B, r))


def start(mean, cov):
    return Covariance.start(jnp.asarray(mean), jnp.asarray(cov))


def test_noise_that_overflows_is_not_added():
    for D in (2, 20):
        added = start(np.zeros(D), np.ones(D)).add(jnp.full(D, 1.0).at[0].set(np.inf))
        np.testing.assert_array_equal(added.cov, np.diag(np.r_[1.0, np.full(D - 1, 2.0)]))
    same(start(np.zeros(20), spd(0, 20)).add(jnp.arange(20.0)), drifted(np.zeros(20), spd(0, 20), Q=np.arange(20.0)))


def test_start():
    np.testing.assert_array_equal(start(np.zeros(2), np.array([4.0, 0.0])).cov, np.diag([4.0, 0.0]))
    np.testing.assert_array_equal(start(np.zeros(2), spd(0, 2)).cov, spd(0, 2))


def precise(D, O, seed):
    """Four times the same datum, 1e5 times more precise than its belief, in float32; and the exact variances."""
    mean, cov, J, B, r = (np.asarray(part, "float32") for part in problem(D, O, seed))
    belief = start(mean, cov)
    for _ in range(4):
        belief = condition(belief, J, np.float32(1e5) * B, np.float32(1e5) * r).belief
    wide = [part.astype("float64") for part in (mean, cov, J, 2e5 * B, r)]
    return belief, np.diag(conditioned(*wide).cov)


@pytest.mark.parametrize("D", [2, 20])
def test_what_is_seen_keeps_the_variance_that_exact_arithmetic_promises(D):
    """Σ - U Uᵀ alone is zero or negative for some of these: the first parameter is seen with a noise of 1e-18."""
    for seed in range(12):
        mean, cov, *_ = problem(D, 1, seed)
        known = condition(start(mean, cov), np.eye(1, D), 1e9 * np.eye(1), np.zeros(1)).belief
        assert float(known.var[0]) >= 0.99e-18
    for J in (np.eye(1, 2), np.eye(2)):
        spread = Covariance(jnp.zeros(2), jnp.diag(jnp.array([-1e-9, 1.0]))).spread(jnp.asarray(J))
        np.testing.assert_array_equal(np.diag(spread), [0.0, 1.0][: len(J)])


@pytest.mark.parametrize("D", [2, 20])
def test_rounding_leaves_no_negative_variance(D):
    for seed in range(12):
        belief, _ = precise(D, 1, seed)
        assert belief.cov.dtype == "float32"
        assert (np.asarray(belief.var) > 0.0).all()


@pytest.mark.parametrize(("D", "O"), [(2, 5), (20, 2)])
def test_several_precise_outputs_leave_a_sound_belief(D, O):
    """Refused or taken, no variance becomes NaN, and none that the data do not determine falls to zero."""
    for seed in range(8):
        belief, want = precise(D, O, seed)
        assert np.isfinite(belief.cov).all()
        assert (np.asarray(belief.var) >= 0.5 * want).all()
