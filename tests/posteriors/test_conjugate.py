"""Counting updates against Bayes' rule on a grid of probabilities or rates: no conjugate formula is used there."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from filtax.beliefs import Beta, Gamma
from filtax.models import Direct, Model, bernoulli, categorical, gaussian, poisson
from filtax.posteriors import Conjugate
from filtax.posteriors._conjugate import conjugate_to

pytestmark = pytest.mark.x64
update = jax.jit(lambda post, belief, model, y, mask=None: post.update(belief, model, None, y, mask, None, None))
GRID = {Beta: (np.arange(20_000) + 0.5) / 20_000, Gamma: (np.arange(40_000) + 0.5) / 2_000}
CASES = [(bernoulli, 0.4, 0.04, [1.0, 1.0, 0.0, 1.0]), (poisson, 2.0, 0.8, [3.0, 0.0, 7.0])]


def begin(likelihood, mean, cov):
    model = Model(Direct(), likelihood())
    posterior = conjugate_to(model.likelihood)
    return (
        posterior,
        model,
        posterior.start(jnp.atleast_1d(jnp.asarray(mean)), jnp.atleast_1d(jnp.asarray(cov)), has_dynamics=False),
    )


def prior_on(grid, family, mean, var):
    """Densities with these moments, in scipy's words."""
    if family is Beta:
        total = mean * (1 - mean) / var - 1
        weight = scipy.stats.beta(mean * total, (1 - mean) * total).pdf(grid)
    else:
        weight = scipy.stats.gamma(mean**2 / var, scale=var / mean).pdf(grid)
    return weight / weight.sum()


@pytest.mark.parametrize(("likelihood", "mean", "var", "data"), CASES)
def test_update(likelihood, mean, var, data):
    """After each datum: moments, and the probability that the forecast gave to it."""
    posterior, model, belief = begin(likelihood, mean, var)
    grid = GRID[posterior.family]
    weight = prior_on(grid, posterior.family, mean, var)
    for y in data:
        mass = grid**y * (1 - grid) ** (1 - y) if posterior.family is Beta else scipy.stats.poisson.pmf(y, grid)
        got = update(posterior, belief, model, jnp.array([y]))
        np.testing.assert_allclose(got.log_evidence, np.log(weight @ mass), rtol=1e-5)
        assert got.log_evidence == got.log_score
        np.testing.assert_allclose(got.forecast.mean, weight @ grid, rtol=1e-5)
        weight = weight * mass / (weight @ mass)
        belief = got.belief
        moments = [weight @ grid, weight @ grid**2 - (weight @ grid) ** 2]
        np.testing.assert_allclose([belief.mean[0], belief.var[0]], moments, rtol=1e-5)
        assert bool(got.ok)
        assert (float(got.trust), float(got.conditioning_ratio)) == (1.0, 0.0)


@pytest.mark.parametrize(("likelihood", "mean", "var"), [case[:3] for case in CASES])
def test_missing_and_impossible_outputs_are_not_counted(likelihood, mean, var):
    """Two outputs: with the second missing only the first is counted, and a half is neither a label nor a count."""
    posterior, model, belief = begin(likelihood, [mean, mean], np.diag([var, var]))
    got = update(posterior, belief, model, jnp.array([1.0, 1.0]), jnp.array([True, False]))
    worth = mean * (1 - mean) / var - 1 if posterior.family is Beta else mean / var  # data that the prior is worth
    np.testing.assert_allclose(got.belief.mean, [(worth * mean + 1) / (worth + 1), mean], rtol=1e-12)
    gone = update(posterior, belief, model, jnp.array([1.0, 1.0]), jnp.array([False, False]))
    odd = update(posterior, belief, model, jnp.array([0.5, 1.0]), jnp.array([True, True]))
    assert (float(gone.log_evidence), bool(gone.ok)) == (0.0, True)
    assert (float(odd.log_evidence), bool(odd.ok)) == (-np.inf, False)
    for after in (gone, odd):
        jax.tree.map(np.testing.assert_array_equal, after.belief, belief)


def test_families_and_refusals():
    assert [conjugate_to(make()).family for make in (bernoulli, poisson)] == [Beta, Gamma]
    assert Conjugate(Gamma).families == (Gamma,)
    for likelihood in (categorical(), gaussian(1.0)):
        with pytest.raises(ValueError, match=r"no conjugate belief is known for .*Likelihood; use model=bernoulli"):
            conjugate_to(likelihood)
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        Conjugate(Beta).check_start(jnp.array([1.5]), jnp.array([0.1]))
    with pytest.raises(ValueError, match="of a rate"):
        Conjugate(Gamma).check_start(jnp.array([-1.0]), jnp.array([0.1]))
