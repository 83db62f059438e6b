"""What is recorded of a predictive distribution, against integration in scipy and sums over whole numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.stats

from filtax.distributions import Mixture, NegativeBinomial, Normal
from filtax.evaluate._prequential import ranked_score

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
