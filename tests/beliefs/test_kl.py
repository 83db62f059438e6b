"""Divergence between beliefs, against the integral of p log(p / q) on a grid, in any pair of forms."""

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from filtax.beliefs import Beta, Covariance, Gamma, NormalInverseGamma, Precision, SquareRoot, kl
from moments import normal, spd

pytestmark = pytest.mark.x64
FORMS = [SquareRoot, Covariance, Precision]


def integral(mean, cov, mean0, cov0):
    """A trapezium rule over ten standard deviations is exact to rounding for smooth integrands that vanish."""
    D = len(mean)
    axis = np.linspace(-10, 10, 2001 if D == 1 else 201)
    z = np.stack(np.meshgrid(*[axis] * D, indexing="ij"), -1).reshape(-1, D)
    theta = mean + z @ np.linalg.cholesky(cov).T
    p, q = scipy.stats.multivariate_normal(mean, cov), scipy.stats.multivariate_normal(mean0, cov0)
    weight = np.exp(p.logpdf(theta))
    return weight @ (p.logpdf(theta) - q.logpdf(theta)) / weight.sum()


@pytest.mark.parametrize("D", [1, 2])
def test_gaussians(D):
    mean, cov, mean0, cov0 = normal(0, D), spd(1, D), normal(2, D), 2.0 * spd(3, D)
    want = integral(mean, cov, mean0, cov0)
    for i, form in enumerate(FORMS):
        p = form.start(jnp.asarray(mean), jnp.asarray(cov))
        q = FORMS[(i + 1) % 3].start(jnp.asarray(mean0), jnp.asarray(cov0))
        np.testing.assert_allclose(kl(p, q), want, rtol=1e-7)
        np.testing.assert_allclose(kl(p, p), 0.0, atol=1e-12)
    np.testing.assert_allclose(kl(q, p), integral(mean0, cov0, mean, cov), rtol=1e-7)  # it is not symmetric


def test_conjugate_beliefs_of_one_family():
    coin, other = Beta(jnp.array([2.0]), jnp.array([3.0])), Beta(jnp.array([1.0]), jnp.array([1.0]))
    np.testing.assert_allclose(kl(coin, other), -scipy.stats.beta(2, 3).entropy(), rtol=1e-10)  # q is uniform
    rate = Gamma(jnp.array([2.0]), jnp.array([3.0]))
    x = np.linspace(1e-9, 20, 200_001)
    p, q = scipy.stats.gamma(2, scale=1 / 3), scipy.stats.gamma(1, scale=1.0)
    want = np.trapezoid(p.pdf(x) * (p.logpdf(x) - q.logpdf(x)), x)
    np.testing.assert_allclose(kl(rate, Gamma(jnp.array([1.0]), jnp.array([1.0]))), want, rtol=1e-5)


def test_unknown_noise_is_part_of_the_belief():
    """On a grid of the parameter and the logarithm of the noise variance."""
    noise, theta = np.exp(np.linspace(-4, 6, 801)), np.linspace(-30, 30, 1601)[:, None]

    def density(mean, cov, shape, rate):
        given = scipy.stats.norm(mean, np.sqrt(noise * cov)).logpdf(theta)
        return given + scipy.stats.invgamma(shape, scale=rate).logpdf(noise) + np.log(noise)

    parts = (0.3, 0.5, 5.0, 4.0), (-0.4, 2.0, 3.0, 2.5)
    p, q = (density(*part) for part in parts)
    mine, other = (
        NormalInverseGamma(SquareRoot.start(jnp.full(1, m), jnp.full(1, v)), jnp.asarray(a), jnp.asarray(b))
        for m, v, a, b in parts
    )
    np.testing.assert_allclose(kl(mine, other), np.sum(np.exp(p) * (p - q)) / np.sum(np.exp(p)), rtol=1e-6)
    np.testing.assert_allclose(kl(mine, mine), 0.0, atol=1e-12)


def test_a_certain_belief_has_no_finite_divergence():
    certain, wide = SquareRoot.start(jnp.zeros(1), jnp.zeros(1)), SquareRoot.start(jnp.zeros(1), jnp.ones(1))
    assert float(kl(certain, wide)) == np.inf
    assert not np.isfinite(kl(wide, certain))


def test_refusals():
    one, two = (SquareRoot.start(jnp.zeros(D), jnp.ones(D)) for D in (1, 2))
    coin, rate = Beta(jnp.ones(1), jnp.ones(1)), Gamma(jnp.ones(1), jnp.ones(1))
    noisy = NormalInverseGamma(one, jnp.asarray(2.0), jnp.asarray(1.0))
    with pytest.raises(ValueError, match="over 1 and 2 parameters; both must be about the same"):
        kl(one, two)
    for p, q, names in ((coin, rate, "Beta, Gamma"), (one, coin, "SquareRoot, Beta"), (noisy, one, "NormalInverse")):
        with pytest.raises(ValueError, match=rf"kl\({names}.* has no closed form"):
            kl(p, q)
