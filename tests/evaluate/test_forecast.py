"""What is recorded of a predictive distribution, against integration in scipy and sums over whole numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.stats

from filtax.distributions import Categorical, Mixture, NegativeBinomial, Normal, StudentT
from filtax.evaluate._forecast import counts_whole, is_labelled, is_plain, ranked_score, record

TOL = 1e-6 if jax.config.jax_enable_x64 else 1e-4


def integrated(cdf, y, reach=60.0):
    below = scipy.integrate.quad(lambda z: cdf(z) ** 2, -reach, y, limit=500, points=[0.0] if y > 0 else None)
    above = scipy.integrate.quad(lambda z: (1 - cdf(z)) ** 2, y, reach, limit=500)
    return below[0] + above[0]


@pytest.mark.parametrize("y", [-3.0, 0.4, 30.0])
def test_ranked_score_of_a_gaussian_and_of_a_mixture(y):
    one = Normal(jnp.array([1.0]), jnp.array([[4.0]]), scalar=True)
    want = integrated(scipy.stats.norm(1.0, 2.0).cdf, y)
    np.testing.assert_allclose(jax.jit(ranked_score)(one, jnp.asarray(y)), want, rtol=TOL)
    both = Mixture(
        Normal(jnp.array([[1.0], [4.0]]), jnp.array([[[4.0]], [[1.0]]]), scalar=True), jnp.log(jnp.array([0.25, 0.75]))
    )
    cdf = lambda z: 0.25 * scipy.stats.norm(1.0, 2.0).cdf(z) + 0.75 * scipy.stats.norm(4.0, 1.0).cdf(z)
    np.testing.assert_allclose(jax.jit(ranked_score)(both, jnp.asarray(y)), integrated(cdf, y), rtol=10 * TOL)


@pytest.mark.parametrize("y", [0.0, 4.0, 60.0])
def test_ranked_score_of_counts_is_a_sum(y):
    counts = np.arange(3000)
    negative = NegativeBinomial(jnp.array([3.0]), jnp.array([0.2]), scalar=True)
    want = np.sum((scipy.stats.nbinom(3.0, 0.2 / 1.2).cdf(counts) - (counts >= y)) ** 2)
    np.testing.assert_allclose(jax.jit(ranked_score)(negative, jnp.asarray(y)), want, rtol=TOL, atol=TOL)


def test_ranked_score_of_many_counts_is_that_of_a_continuum():
    counts = np.arange(40000)
    wide = NegativeBinomial(jnp.array([5.0]), jnp.array([0.001]), scalar=True)
    want = np.sum((scipy.stats.nbinom(5.0, 0.001 / 1.001).cdf(counts) - (counts >= 7000)) ** 2)
    np.testing.assert_allclose(jax.jit(ranked_score)(wide, jnp.asarray(7000.0)), want, rtol=1e-3)


def test_counts_keep_the_probability_of_less_and_of_at_most():
    dist = NegativeBinomial(jnp.array([3.0, 1.0]), jnp.array([0.5, 2.0]))
    kept = jax.jit(record, static_argnums=(2, 3))(dist, jnp.array([2.0, jnp.nan]), 0.9, True)
    law = scipy.stats.nbinom(3.0, 0.5 / 1.5)
    np.testing.assert_allclose(kept["below"][0], law.cdf(1), rtol=1e-5)
    np.testing.assert_allclose(kept["upto"][0], law.cdf(2), rtol=1e-5)
    np.testing.assert_allclose(kept["log_prob"], law.logpmf(2), rtol=1e-5)
    np.testing.assert_allclose([kept["lower"][0], kept["upper"][0]], law.interval(0.9))
    assert kept["ranked"].shape == (2,)


def test_a_student_keeps_its_scale_and_freedom():
    dist = StudentT(jnp.zeros(2), jnp.diag(jnp.array([4.0, 9.0])), jnp.asarray(3.0))
    kept = jax.jit(record, static_argnums=(2, 3))(dist, jnp.array([1.0, 1.0]), 0.5, True)
    np.testing.assert_allclose(kept["scale"], [2.0, 3.0], rtol=1e-6)
    np.testing.assert_allclose(kept["df"], [3.0, 3.0])
    np.testing.assert_allclose(kept["upper"], scipy.stats.t(3, 0, [2.0, 3.0]).interval(0.5)[1], rtol=1e-4)
    assert "ranked" not in kept


def test_who_is_who():
    normal, counts = Normal(jnp.zeros(1), jnp.eye(1)), NegativeBinomial(jnp.ones(1), jnp.ones(1))
    labels = Categorical(jnp.log(jnp.array([0.5, 0.5])))
    for dist, facts in (
        (normal, (True, False, False)),
        (counts, (False, False, True)),
        (labels, (True, True, False)),
        (Mixture(labels, jnp.zeros(1)), (False, True, False)),
        (Mixture(counts, jnp.zeros(1)), (False, False, True)),
        (StudentT(jnp.zeros(1), jnp.eye(1), jnp.asarray(3.0)), (False, False, False)),
    ):
        assert (is_plain(dist), is_labelled(dist), counts_whole(dist)) == facts
