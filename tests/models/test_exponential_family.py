"""Labels and counts: whiteners against slopes of scipy's log probabilities, forecasts against quadrature."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
import scipy.stats

from filtax.models import bernoulli, categorical, poisson

pytestmark = pytest.mark.x64
whiten = jax.jit(lambda likelihood, eta, y, mask=None: likelihood.whiten(eta, None, y, mask))
ETA = np.array([-0.7, 0.4, 1.5])


def log_bernoulli(eta, y):
    return np.sum(y * eta - np.logaddexp(0.0, eta))


def log_categorical(eta, y):
    return scipy.special.log_softmax(eta)[int(y[0])]


def log_poisson(eta, y):
    return scipy.stats.poisson.logpmf(y, np.exp(eta)).sum()


def slope(function, at, step=1e-5):
    return np.array([(function(at + e) - function(at - e)) / (2 * step) for e in step * np.eye(len(at))])


FAMILIES = [(bernoulli(), log_bernoulli, [1.0, 0.0, 1.0]), (categorical(), log_categorical, [2.0])]
FAMILIES += [(poisson(), log_poisson, [3.0, 0.0, 5.0])]
families = pytest.mark.parametrize(("likelihood", "log_p", "y"), FAMILIES, ids=["bernoulli", "categorical", "poisson"])


@families
def test_whitening_gives_score_and_information(likelihood, log_p, y):
    """Bᵀr is the slope of the log probability and BᵀB minus its curvature: both by differences."""
    y = np.array(y)
    got = whiten(likelihood, ETA, y)
    B, r = np.asarray(got.whitener), np.asarray(got.residual)
    score = lambda eta: slope(lambda e: log_p(e, y), eta, 1e-4)
    np.testing.assert_allclose(B.T @ r, score(ETA), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(B.T @ B, -slope(score, ETA, 1e-4), rtol=1e-4, atol=1e-5)
    assert got.log_scale is None
    mask = np.arange(len(y)) > 0
    part = whiten(likelihood, ETA, y, mask)
    hidden = ~mask if len(y) == 3 else np.ones(3, bool)  # one label hides all classes
    np.testing.assert_array_equal(np.asarray(part.whitener)[hidden], 0.0)
    np.testing.assert_array_equal(np.asarray(part.residual)[hidden], 0.0)
    np.testing.assert_array_equal(np.asarray(part.whitener)[~hidden], B[~hidden])


@families
def test_log_likelihood(likelihood, log_p, y):
    """Of each family at a known eta; masked entries add nothing."""
    y, eta = np.array(y), jnp.asarray(ETA)
    call = lambda mask: likelihood.log_likelihood(eta, None, jnp.asarray(y), mask)
    np.testing.assert_allclose([call(None), call(jnp.ones(len(y), bool))], log_p(ETA, y), rtol=1e-12)
    assert float(call(jnp.zeros(len(y), bool))) == 0.0
    if len(y) == 3:
        seen = np.array([True, False, True])
        np.testing.assert_allclose(call(jnp.asarray(seen)), log_p(ETA[seen], y[seen]), rtol=1e-12)


@families
def test_saturation_stays_finite(likelihood, log_p, y):
    for eta in (np.array([-1e4, 0.0, 1e4]), np.array([1e4, 1e4, -1e4])):
        got = whiten(likelihood, eta, np.array(y))
        assert np.isfinite(got.whitener).all()
        assert np.isfinite(got.residual).all()


@jax.jit
def label_forecast(m, spread):
    made = bernoulli().predictive(m, spread, None, scalar=True)
    return made.log_prob(0.0), made.log_prob(1.0)


@pytest.mark.parametrize("spread", [0.0, 0.3, 4.0, 100.0])
@pytest.mark.parametrize("m", [-30.0, -2.0, 0.0, 1.0])
def test_forecast_of_a_label(m, spread):
    """E[sigmoid] over the belief, on a fine grid; both outcomes sum to one, also far in the tail."""
    got = label_forecast(jnp.array([m]), jnp.array([[spread]]))
    z = np.linspace(-40, 40, 80_001)
    log_w = -0.5 * z**2 - scipy.special.logsumexp(-0.5 * z**2)
    for log_p, sign in zip(got, (-1.0, 1.0), strict=True):
        want = scipy.special.logsumexp(log_w - np.logaddexp(0.0, -sign * (m + np.sqrt(spread) * z)))
        np.testing.assert_allclose(log_p, want, rtol=1e-5, atol=2e-6)
    np.testing.assert_allclose(np.exp(got[0]) + np.exp(got[1]), 1.0, rtol=1e-6)


def test_forecast_of_a_class():
    """Two classes are a label with the difference of the logits; a certain belief is a softmax."""
    P = np.array([[1.0, 0.3], [0.3, 0.5]])
    forecast = jax.jit(lambda eta, P: categorical().predictive(eta, P, None, scalar=False).mean)
    made = forecast(ETA[:2], P)
    z, w = np.polynomial.hermite_e.hermegauss(60)
    gap = ETA[0] - ETA[1] + np.sqrt(P[0, 0] + P[1, 1] - 2 * P[0, 1]) * z
    np.testing.assert_allclose(made[0], w @ scipy.special.expit(gap) / w.sum(), atol=2e-3)
    np.testing.assert_allclose(forecast(ETA, np.zeros((3, 3))), scipy.special.softmax(ETA), rtol=1e-6)


def test_forecast_of_a_count():
    """A Poisson whose log rate is normal: mean and variance of the log-normal, probability by quadrature."""
    m, v, y = 0.7, 0.4, 3.0
    made = poisson().predictive(jnp.array([m]), jnp.array([[v]]), None, scalar=True)
    mean = np.exp(m + v / 2)
    np.testing.assert_allclose([made.mean, made.var], [mean, mean + np.expm1(v) * mean**2], rtol=1e-9)
    z, w = np.polynomial.hermite_e.hermegauss(80)
    want = w @ scipy.stats.poisson.pmf(y, np.exp(m + np.sqrt(v) * z)) / w.sum()
    np.testing.assert_allclose(made.log_prob(y), np.log(want), rtol=1e-5)


def test_what_y_may_be():
    y = jnp.array([0.0, 1.0, 2.0, 0.5, -1.0, np.inf, np.nan])
    admitted = {
        "bernoulli": [1, 1, 0, 0, 0, 0, 0],
        "categorical": [1, 1, 1, 0, 0, 0, 0],
        "poisson": [1, 1, 1, 0, 0, 0, 0],
    }
    for likelihood, wanted in zip((bernoulli(), categorical(), poisson()), admitted.values(), strict=True):
        assert likelihood.admits(y, 3).tolist() == [bool(one) for one in wanted]
    assert [likelihood.width(3) for likelihood in (bernoulli(), categorical(), poisson())] == [3, 1, 3]
    assert not categorical().admits(jnp.array([3.0]), 3)[0]


def test_residuals():
    """In the forecast's shape; of a class it is the indicator minus the probabilities, and NaN where it is missing."""
    p = jnp.array([0.2, 0.3, 0.5])
    np.testing.assert_allclose(categorical().residual(jnp.array([1.0]), p), [-0.2, 0.7, -0.5], rtol=1e-6)
    assert np.isnan(categorical().residual(jnp.array([np.nan]), p)).all()
    for likelihood in (bernoulli(), poisson()):
        np.testing.assert_allclose(likelihood.residual(jnp.array([1.0]), jnp.asarray(0.2)), 0.8)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("eta", [-80.0, -700.0, -1e4])
def test_the_evidence_of_events_that_hardly_happen(eta, dtype):
    """Log of e^(y eta) / y!: the rate itself is too small for any number."""

    def evidence(m, y):
        return poisson().predictive(m[None], jnp.full((1, 1), 1e-12, dtype), None, scalar=True).log_prob(y)

    at, (none, one, five) = jnp.asarray(eta, dtype), (jnp.asarray(y, dtype) for y in (0.0, 1.0, 5.0))
    np.testing.assert_allclose(evidence(at, one), eta, rtol=1e-6)
    np.testing.assert_allclose(evidence(at, five), 5.0 * eta - np.log(120.0), rtol=1e-6)
    np.testing.assert_allclose(jax.grad(evidence)(at, five), 5.0, rtol=1e-5)
    np.testing.assert_allclose(evidence(at, none), 0.0, atol=1e-6)


@pytest.mark.nightly
def test_known_rates_at_large_counts():
    """A count of 1e12 at its own rate: the difference of large logarithms would lose half the digits."""
    y = jnp.array([1e12])
    got = poisson().log_likelihood(jnp.log(y), None, y, None)
    np.testing.assert_allclose(got, -0.5 * np.log(2 * np.pi * 1e12), rtol=1e-10)
    given = poisson().given(jnp.log(jnp.array([3.0])), None, scalar=True)
    np.testing.assert_allclose([given.mean, given.var, given.cdf(2.0)], [3.0, 3.0, scipy.stats.poisson(3.0).cdf(2)])
