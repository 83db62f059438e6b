"""The log-likelihood of each family against scipy; missing entries add nothing."""

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
import scipy.stats

from filtax.models import bernoulli, categorical, gaussian, poisson

eta = np.array([0.7, -1.3, 2.0])
R = np.array([[1.0, 0.3, 0.0], [0.3, 0.5, 0.1], [0.0, 0.1, 2.0]])
seen = np.array([True, False, True])
normal = lambda y, m: scipy.stats.multivariate_normal(eta[m], R[np.ix_(m, m)]).logpdf(y[m])
CASES = {
    "gaussian": (gaussian(R), np.array([0.0, 5.0, 1.0]), normal),
    "variances": (
        gaussian(np.diag(R)),
        np.ones(3),
        lambda y, m: scipy.stats.norm(eta, np.sqrt(np.diag(R))).logpdf(y)[m].sum(),
    ),
    "bernoulli": (
        bernoulli(),
        np.array([1.0, 0.0, 0.0]),
        lambda y, m: scipy.stats.bernoulli(scipy.special.expit(eta)).logpmf(y)[m].sum(),
    ),
    "poisson": (
        poisson(),
        np.array([0.0, 3.0, 40.0]),
        lambda y, m: scipy.stats.poisson(np.exp(eta)).logpmf(y)[m].sum(),
    ),
}


@pytest.mark.x64
@pytest.mark.parametrize("name", CASES)
def test_against_scipy(name):
    likelihood, y, oracle = CASES[name]
    every = np.ones(3, bool)
    call = lambda mask: likelihood.log_likelihood(jnp.asarray(eta), None, jnp.asarray(y), mask)
    np.testing.assert_allclose(call(None), oracle(y, every), rtol=1e-12)
    np.testing.assert_allclose(call(jnp.asarray(every)), oracle(y, every), rtol=1e-12)
    np.testing.assert_allclose(call(jnp.asarray(seen)), oracle(y, seen), rtol=1e-12)
    assert float(call(jnp.zeros(3, bool))) == 0.0
    given = likelihood.given(jnp.asarray(eta), None, scalar=False)
    np.testing.assert_allclose(given.log_prob(jnp.asarray(y)), oracle(y, every), rtol=1e-12)


@pytest.mark.x64
def test_class_labels():
    log_p = np.log(scipy.special.softmax(eta))
    for label in range(3):
        y = jnp.full(1, float(label))
        np.testing.assert_allclose(
            categorical().log_likelihood(jnp.asarray(eta), None, y, None), log_p[label], rtol=1e-12
        )
        assert float(categorical().log_likelihood(jnp.asarray(eta), None, y, jnp.zeros(1, bool))) == 0.0


@pytest.mark.x64
@pytest.mark.nightly
def test_known_rates_at_large_counts():
    """A count of 1e12 at its own rate: the difference of large logarithms would lose half the digits."""
    y = jnp.array([1e12])
    got = poisson().log_likelihood(jnp.log(y), None, y, None)
    np.testing.assert_allclose(got, -0.5 * np.log(2 * np.pi * 1e12), rtol=1e-10)
    given = poisson().given(jnp.log(jnp.array([3.0])), None, scalar=True)
    law = scipy.stats.poisson(3.0)
    np.testing.assert_allclose([given.mean, given.var, given.cdf(2.0)], [3.0, 3.0, law.cdf(2)], rtol=1e-6)
