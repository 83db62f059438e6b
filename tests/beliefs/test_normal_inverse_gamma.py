"""Parameters and noise variance together, against an integral over the variance: Gaussian conditioning at each node.

Given the variance everything is Gaussian, so dense numpy gives the belief and the density of the datum there; what is
claimed of the shape and the rate is then an average over four thousand variances.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.special

from filtax.beliefs import Covariance, NormalInverseGamma, Precision, SquareRoot
from moments import conditioned, drifted, mixed, noise_rule, normal, same, spd
from oracles import Moments, log_normal

pytestmark = pytest.mark.x64
condition = jax.jit(lambda belief, J, B, r: belief.condition(J, B, r))
FORMS = [SquareRoot, Covariance, Precision]


def start(mean, cov, shape, rate, form=SquareRoot):
    unit = form.start(jnp.asarray(mean), jnp.asarray(cov))
    return NormalInverseGamma(unit, jnp.asarray(shape), jnp.asarray(rate))


@pytest.mark.parametrize("form", FORMS)
def test_conditioning(form):
    """One of three outputs is unseen: its row of B is zero."""
    mean, P, J, r = normal(0, 2), spd(1, 2), normal(2, 3, 2), np.array([1.0, -2.0, 0.0])
    B = np.array([[1.0, 0.0, 0.0], [0.3, 0.8, 0.0], [0.0, 0.0, 0.0]])
    done = condition(start(mean, P, 4.0, 3.0, form), J, B, r)
    S = (np.eye(3) + B @ J @ P @ J.T @ B.T)[:2, :2]
    nodes, weights = noise_rule(4.0, 3.0)
    density = weights * np.exp([log_normal(r[:2], v * S) for v in nodes])
    noise = density @ nodes / density.sum()  # E[variance | r]
    given = conditioned(mean, P, J, B, r)  # in units of the variance the posterior does not depend on it
    np.testing.assert_allclose(done.belief.noise, noise, rtol=1e-8)
    spread = density @ (nodes - noise) ** 2 / density.sum()
    shape = 2.0 + noise**2 / spread  # of the inverse-gamma with this mean and variance
    np.testing.assert_allclose([done.belief.shape, done.belief.rate], [shape, noise * (shape - 1.0)], rtol=1e-6)
    same(done.belief, Moments(given.mean, noise * given.cov, 0.0), rtol=1e-8)
    np.testing.assert_allclose(done.log_det, np.linalg.slogdet(S)[1], rtol=1e-10)
    assert bool(done.ok)


@pytest.mark.parametrize("form", FORMS)
def test_a_datum_that_overflows_is_not_taken(form):
    before = start(np.ones(2), np.ones(2), 4.0, 3.0, form)
    for r in (1e200, np.inf):
        done = condition(before, np.ones((1, 2)), np.eye(1), np.full(1, r))
        assert not bool(done.ok)
        assert (float(done.belief.shape), float(done.belief.rate)) == (4.0, 3.0)
        assert np.isfinite(done.belief.mean).all()


def test_a_variance_without_a_mean():
    """Up to shape 1 the expected variance is infinite, and with it every variance that is not zero."""
    belief = start(np.zeros(2), np.array([1.0, 0.0]), 1.0, 3.0)
    assert float(belief.noise) == np.inf
    np.testing.assert_array_equal(belief.cov, np.diag([np.inf, 0.0]))
    np.testing.assert_array_equal(belief.var, [np.inf, 0.0])
    slope = jax.grad(lambda shape: start(np.zeros(1), np.ones(1), shape, 3.0).noise)
    np.testing.assert_allclose([slope(4.0), slope(0.5)], [-3.0 / 9.0, 0.0])


def test_drift_is_in_units_of_the_variance():
    mean, P, F, b, root, J = normal(0, 2), spd(1, 2), normal(2, 2, 2), normal(3, 2), normal(4, 2, 2), normal(5, 3, 2)
    belief, noise = start(mean, P, 4.0, 3.0), 1.0  # 3 / (4 - 1)
    same(
        belief.affine(jnp.asarray(F), jnp.asarray(b), jnp.asarray(root)), drifted(mean, noise * P, F, b, root @ root.T)
    )
    same(belief.add(jnp.asarray(0.5)), drifted(mean, noise * P, Q=0.5))
    np.testing.assert_allclose(belief.project_cov(jnp.asarray(J)), J @ P @ J.T, rtol=1e-10)


@pytest.mark.parametrize("keep", [0.0, 0.25, 1.0, [0.5, 1.0]])
def test_mixing_with_the_initial_belief(keep):
    """Shape and rate move with the mean of the shares, the parameters each with its own."""
    mean, P, mean0, P0 = normal(0, 2), spd(1, 2), normal(2, 2), spd(3, 2)
    got = start(mean, P, 4.0, 3.0).mix(start(mean0, P0, 2.0, 7.0), jnp.asarray(keep))
    same(got.unit, mixed(mean, P, mean0, P0, keep))
    share = np.mean(keep)
    np.testing.assert_allclose([got.shape, got.rate], [2.0 + 2.0 * share, 7.0 - 4.0 * share], rtol=1e-14)


def test_samples():
    """A t distribution: its covariance, and tails that a Gaussian of that covariance does not have."""
    belief = start(np.array([1.0, -1.0]), spd(1, 2), 4.0, 3.0)
    draws = np.asarray(belief.sample(jax.random.key(0), (40_000,)))
    np.testing.assert_allclose(draws.mean(axis=0), [1.0, -1.0], atol=0.03)
    np.testing.assert_allclose(np.cov(draws.T), belief.cov, rtol=0.05, atol=0.03)
    z = (draws - [1.0, -1.0]) / np.sqrt(np.diag(np.cov(draws.T)))
    np.testing.assert_allclose((z**4).mean(axis=0), 3.0 * (8 - 2) / (8 - 4), rtol=0.25)  # kurtosis of t with 8
    shapes = [jax.eval_shape(lambda key, s=s: belief.sample(key, s), jax.random.key(0)).shape for s in ((), (2, 3))]
    assert shapes == [(2,), (2, 3, 2)]


def test_matched_beliefs_are_the_nearest_to_their_mixture():
    """E[tau], E[log tau], E[tau theta], E[tau theta theta'] of the mixture, the shape by a root finder."""
    rng = np.random.default_rng(6)
    mean, root = rng.normal(size=(3, 2)), rng.normal(size=(3, 2, 2))
    P, a, b = root @ root.transpose(0, 2, 1), np.array([0.7, 3.0, 8.0]), np.array([1.0, 2.0, 30.0])
    w, tau = np.array([0.5, 0.3, 0.2]), a / b
    total = w @ tau
    gap = np.log(total) - w @ (scipy.special.digamma(a) - np.log(b))
    shape = scipy.optimize.brentq(lambda s: np.log(s) - scipy.special.digamma(s) - gap, 1e-3, 1e3, xtol=1e-13)
    for family in (SquareRoot, Covariance):
        units = jax.vmap(family.start)(jnp.asarray(mean), jnp.asarray(P))
        batch = jax.vmap(NormalInverseGamma)(units, jnp.asarray(a), jnp.asarray(b))
        one = NormalInverseGamma.moment_match(batch, jnp.log(w))
        np.testing.assert_allclose(one.shape / one.rate, total, rtol=1e-10)
        np.testing.assert_allclose(one.shape, shape, rtol=1e-9)
        np.testing.assert_allclose(total * one.mean, (w * tau) @ mean, rtol=1e-9)
        second = np.einsum("k,kij->ij", w, P + tau[:, None, None] * mean[:, :, None] * mean[:, None])
        np.testing.assert_allclose(one.unit.cov + total * np.outer(one.mean, one.mean), second, rtol=1e-9)
    same = jax.tree.map(lambda leaf: jnp.stack([leaf[1]] * 2), batch)
    alone = NormalInverseGamma.moment_match(same, jnp.log(jnp.array([0.4, 0.6])))
    np.testing.assert_allclose([alone.shape, alone.rate], [3.0, 2.0], rtol=1e-9)
