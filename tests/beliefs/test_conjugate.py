"""Beta and Gamma beliefs against scipy's densities: moments, Bayes' rule and divergences by quadrature."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.stats

from filtax.beliefs import Beta, Gamma

pytestmark = pytest.mark.x64
BETAS = Beta(jnp.array([0.7, 3.0]), jnp.array([2.0, 9.0]))
GAMMAS = Gamma(jnp.array([0.8, 5.0]), jnp.array([2.0, 0.5]))


def laws(belief):
    """The same belief in scipy's words."""
    if isinstance(belief, Beta):
        return [scipy.stats.beta(a, b) for a, b in zip(belief.ones, belief.zeros, strict=True)]
    return [scipy.stats.gamma(a, scale=1.0 / b) for a, b in zip(belief.count, belief.exposure, strict=True)]


def average(law, function):
    ends = law.interval(1 - 1e-14)
    return scipy.integrate.quad(lambda p: law.pdf(p) * function(p), *ends, epsabs=1e-12, limit=400)[0]


both = pytest.mark.parametrize("belief", [BETAS, GAMMAS], ids=["Beta", "Gamma"])


@both
def test_moments_there_and_back(belief):
    mean, var = np.array([law.mean() for law in laws(belief)]), np.array([law.var() for law in laws(belief)])
    np.testing.assert_allclose(belief.mean, mean, rtol=1e-12)
    np.testing.assert_allclose(belief.var, var, rtol=1e-12)
    np.testing.assert_allclose(belief.cov, np.diag(var), rtol=1e-12)
    again = type(belief).start(jnp.asarray(mean), jnp.asarray(var))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-10), again, belief)


@both
def test_bayes_rule(belief):
    """Belief times likelihood, normalised, is the belief that was counted into; an unseen output stays."""
    y = jnp.array([1.0, 0.0]) if isinstance(belief, Beta) else jnp.array([3.0, 0.0])
    mass = (lambda k, p: p**k * (1 - p) ** (1 - k)) if isinstance(belief, Beta) else scipy.stats.poisson.pmf
    after = belief.condition(y, jnp.ones(2))
    forecast = belief.forecast(False)
    for i, (old, new) in enumerate(zip(laws(belief), laws(after), strict=True)):
        evidence = average(old, lambda p, i=i: mass(float(y[i]), p))
        at = old.ppf([0.2, 0.5, 0.9])
        np.testing.assert_allclose(new.pdf(at), old.pdf(at) * mass(float(y[i]), at) / evidence, rtol=1e-6)
        alone = jnp.arange(2) == i
        np.testing.assert_allclose(forecast.log_prob(y, alone), np.log(evidence), rtol=1e-6)
    half = belief.condition(y, jnp.array([0.0, 0.5]))
    assert float(half.mean[0]) == float(belief.mean[0])
    want = 0.5 * (np.array(jax.tree.leaves(belief))[:, 1] + np.array(jax.tree.leaves(after))[:, 1])
    np.testing.assert_allclose(np.array(jax.tree.leaves(half))[:, 1], want, rtol=1e-12)


@both
def test_divergence(belief):
    other = jax.tree.map(lambda leaf: leaf[::-1] + 0.5, belief)
    pairs = list(zip(laws(belief), laws(other), strict=True))
    want = sum(average(p, lambda v, p=p, q=q: p.logpdf(v) - q.logpdf(v)) for p, q in pairs)
    np.testing.assert_allclose(belief.kl(other), want, rtol=1e-6)
    np.testing.assert_allclose(belief.kl(belief), 0.0, atol=1e-12)


@both
@pytest.mark.parametrize("keep", [0.0, 0.25, 1.0])
def test_mixing_averages_the_counts(belief, keep):
    initial = jax.tree.map(lambda leaf: leaf + 4.0, belief)
    got = belief.mix(initial, jnp.asarray(keep))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b + 4.0 * (1.0 - keep), rtol=1e-14), got, belief)


@both
def test_samples(belief):
    draws = np.asarray(belief.sample(jax.random.key(0), (2000,)))
    for i, law in enumerate(laws(belief)):
        assert scipy.stats.kstest(draws[:, i], law.cdf).pvalue > 1e-3
    shapes = [jax.eval_shape(lambda key, s=s: belief.sample(key, s), jax.random.key(0)).shape for s in ((), (2, 3))]
    assert shapes == [(2,), (2, 3, 2)]


@pytest.mark.parametrize(
    ("family", "mean", "cov", "match"),
    [
        (Beta, 0.0, 0.05, "strictly between 0 and 1"),
        (Beta, [0.5, 1.0], 0.05, "strictly between 0 and 1"),
        (Beta, 0.5, 0.0, "above 0 and below"),
        (Beta, 0.5, 0.25, "above 0 and below"),
        (Beta, [0.5, 0.1], np.diag([0.05, 0.1]), "above 0 and below"),
        (Gamma, 0.0, 1.0, r"init\(mean=...\) of a rate must be finite and above 0"),
        (Gamma, 1.0, 0.0, r"init\(cov=...\) of a rate must be finite and above 0"),
        (Gamma, [1.0, 1.0], np.diag([1.0, -1.0]), r"init\(cov=...\) of a rate"),
    ],
)
def test_refuses_what_no_belief_has(family, mean, cov, match):
    with pytest.raises(ValueError, match=match):
        family.check_start(jnp.asarray(mean), jnp.asarray(cov))
