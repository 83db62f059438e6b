"""The prior without resets: each hypothesis drifts by itself, with its own auxiliary value; numpy, one by one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from filtax.beliefs import Covariance
from filtax.priors import Continue, additive_inflation, ornstein_uhlenbeck
from filtax.protocols import Dynamics, Hypotheses, Proposal
from moments import drifted, mixed, normal, spd

pytestmark = pytest.mark.x64


class Pull(Dynamics):
    """A drift of the test's own: the parameters move by the auxiliary value."""

    def __call__(self, belief, initial, aux, dt):
        return belief.affine(None, aux * jnp.ones_like(belief.mean), None)


def proposal(slots, D=2):
    means, covs = normal(0, slots, D), np.array([spd(seed, D) for seed in range(slots)])
    beliefs = jax.vmap(Covariance)(jnp.asarray(means), jnp.asarray(covs))
    weight = jnp.zeros(slots)
    return (
        means,
        covs,
        Proposal(Hypotheses(beliefs, jnp.arange(1.0, slots + 1.0), weight), jnp.zeros(slots, bool), weight),
    )


INITIAL = Covariance(jnp.array([1.0, -1.0]), 2.0 * jnp.eye(2))


@pytest.mark.parametrize("slots", [1, 3])
def test_each_hypothesis_drifts_alone(slots):
    means, covs, proposed = proposal(slots)
    walked = Continue(additive_inflation(0.5))(proposed, INITIAL, None)
    waited = Continue(additive_inflation(0.5))(proposed, INITIAL, jnp.asarray(3.0))
    relaxed = Continue(ornstein_uhlenbeck(0.6))(proposed, INITIAL, None)
    for c in range(slots):
        np.testing.assert_allclose(walked.cov[c], drifted(means[c], covs[c], Q=0.5).cov, rtol=1e-12)
        np.testing.assert_allclose(waited.cov[c], drifted(means[c], covs[c], Q=1.5).cov, rtol=1e-12)
        want = mixed(means[c], covs[c], np.array([1.0, -1.0]), 2.0 * np.eye(2), 0.6)
        np.testing.assert_allclose(relaxed.mean[c], want.mean, rtol=1e-12)
        np.testing.assert_allclose(relaxed.cov[c], want.cov, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("slots", [1, 3])
def test_each_hypothesis_has_its_own_auxiliary_value(slots):
    means, _, proposed = proposal(slots)
    got = Continue(Pull())(proposed, INITIAL, None)
    np.testing.assert_allclose(got.mean, means + np.arange(1.0, slots + 1.0)[:, None], rtol=1e-12)


def test_large_beliefs_are_looped_over_with_the_same_answer():
    """Seventy parameters in each of two slots are above the size from which a batch becomes a loop."""
    means, covs, proposed = proposal(2, 70)
    got = Continue(additive_inflation(0.5))(proposed, None, None)
    np.testing.assert_array_equal(got.mean, means)
    np.testing.assert_allclose(got.cov, covs + 0.5 * np.eye(70), rtol=1e-12, atol=1e-14)
