"""Gaussian noise: whitening against numpy's inverses and scipy's density, for each way to give R and any mask."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from filtax.models import Likelihood, bernoulli, gaussian
from filtax.models._gaussian import resolve
from moments import normal, spd
from oracles import log_normal

pytestmark = pytest.mark.x64
ETA, Y, FULL = normal(0, 3), normal(1, 3), spd(2, 3)
NOISES = [(0.5, 0.5 * np.eye(3)), ([0.5, 1.0, 2.0], np.diag([0.5, 1.0, 2.0])), (FULL, FULL)]
whiten = jax.jit(lambda likelihood, eta, y, mask=None: likelihood.whiten(eta, None, y, mask))
MASKS = [None, [True, True, True], [True, False, True], [False, False, False]]


@pytest.mark.parametrize(("noise", "R"), NOISES)
@pytest.mark.parametrize("mask", MASKS)
def test_whitening(noise, R, mask):
    """BᵀB is the information of what was seen, Bᵀr its score, and log_scale makes |r| a density."""
    likelihood = gaussian(jnp.asarray(noise) if np.ndim(noise) else noise)
    got = whiten(likelihood, ETA, np.where(mask, Y, 0.0) if mask else Y, None if mask is None else np.array(mask))
    seen = np.flatnonzero(np.ones(3) if mask is None else mask)
    information = np.zeros((3, 3))
    information[np.ix_(seen, seen)] = np.linalg.inv(R[np.ix_(seen, seen)]) if seen.size else 0.0
    gap = np.where(np.isin(np.arange(3), seen), Y - ETA, 0.0)
    B, r = np.asarray(got.whitener), np.asarray(got.residual)
    np.testing.assert_allclose(B.T @ B, information, atol=1e-12)
    np.testing.assert_allclose(B.T @ r, information @ gap, atol=1e-12)
    density = -0.5 * r @ r - 0.5 * len(seen) * np.log(2 * np.pi) + got.log_scale
    np.testing.assert_allclose(density, log_normal(gap[seen], R[np.ix_(seen, seen)]), rtol=1e-12, atol=1e-14)
    log_likelihood = likelihood.log_likelihood(jnp.asarray(ETA), None, jnp.asarray(Y), mask and jnp.array(mask))
    np.testing.assert_allclose(log_likelihood, density, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(("noise", "R"), NOISES)
def test_predictive(noise, R):
    likelihood, spread = gaussian(jnp.asarray(noise) if np.ndim(noise) else noise), spd(5, 3)
    made = likelihood.predictive(jnp.asarray(ETA), jnp.asarray(spread), None, scalar=False)
    np.testing.assert_allclose(made.log_prob(Y), scipy.stats.multivariate_normal(ETA, spread + R).logpdf(Y), rtol=1e-10)
    np.testing.assert_allclose(likelihood.covariance(None, jnp.asarray(ETA)), R)


def test_noise_as_a_function_of_x():
    """It may return a variance, variances or a matrix, in any type."""
    for noise, x, R in (
        (lambda x: x[0] ** 2, [3.0], 9.0 * np.eye(3)),
        (lambda x: x, np.array([1.0, 2.0, 3.0], "float32"), np.diag([1.0, 2.0, 3.0])),
        (lambda x: x[0] * jnp.asarray(FULL), [2.0], 2.0 * FULL),
    ):
        np.testing.assert_allclose(gaussian(noise).covariance(jnp.asarray(x), jnp.asarray(ETA)), R)
    assert gaussian(0.5).covariance(None, jnp.zeros(1, "float32")).dtype == "float32"


@pytest.mark.parametrize("noise", [0.0, -1.0, np.nan, [1.0, 0.0], [[1.0, 1.0], [1.0, 1.0]], [[1.0, 2.0], [2.0, 1.0]]])
def test_refuses_what_gives_no_density(noise):
    with pytest.raises(ValueError, match=r"noise=... must be .*some noise of its own"):
        gaussian(noise)


def test_other_refusals():
    with pytest.raises(ValueError, match=r"noise of shape \(2,\) does not fit 3 outputs; give a variance, \(3,\) or"):
        gaussian([1.0, 2.0]).covariance(None, jnp.asarray(ETA))
    for noise, likelihood, given in ((None, None, "neither"), (0.1, bernoulli(), "both")):
        with pytest.raises(ValueError, match=f"f: give noise=... or likelihood=..., got {given}"):
            resolve("f", noise, likelihood)
    with pytest.raises(ValueError, match=r"f\(likelihood=...\) must be a likelihood, such as .* got 'normal'"):
        resolve("f", None, "normal")
    with pytest.raises(ValueError, match="must be an instance, got the class Bernoulli"):
        resolve("f", None, type(bernoulli()))
    assert resolve("f", None, bernoulli()) == bernoulli()
    assert resolve("f", 0.25, None).noise == 0.25


def test_a_family_of_ones_own_inherits_from_likelihood_and_has_two_methods():
    methods = dict.fromkeys(("whiten", "predictive"), lambda self: None)
    with pytest.raises(ValueError, match=r"a family of your own inherits from filtax.models.Likelihood"):
        resolve("f", None, type("Plain", (), methods)())
    with pytest.raises(TypeError, match="predictive"):
        type("Half", (Likelihood,), {"whiten": methods["whiten"]})()
    resolve("f", None, type("Whole", (Likelihood,), methods)())
