"""Several beliefs as one, against the moments of the mixture: E[theta] and E[theta theta'] summed part by part."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from filtax.beliefs import Beta, Collapsed, Covariance, SquareRoot, collapse
from moments import normal, sampled, spd

pytestmark = pytest.mark.x64
WEIGHT = np.array([0.2, 0.5, 0.3])
MEANS, COVS = 2.0 * normal(0, 3, 2), np.array([spd(seed, 2) for seed in range(3)])


def hypotheses(form, means=MEANS, covs=COVS):
    parts = [form.start(jnp.asarray(mean), jnp.asarray(cov)) for mean, cov in zip(means, covs, strict=True)]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *parts)


def moments(weight, means, covs):
    mean = sum(w * m for w, m in zip(weight, means, strict=True))
    second = sum(w * (P + np.outer(m, m)) for w, m, P in zip(weight, means, covs, strict=True))
    return mean, second - np.outer(mean, mean)


@pytest.mark.parametrize("form", [SquareRoot, Covariance])
@pytest.mark.parametrize("weight", [WEIGHT, np.array([0.0, 1.0, 0.0])])
def test_moments_of_the_mixture(form, weight):
    """A hypothesis of weight zero adds nothing."""
    with np.errstate(divide="ignore"):
        got = collapse(hypotheses(form), jnp.asarray(np.log(weight)))
    mean, cov = moments(weight, MEANS, COVS)
    assert isinstance(got, Collapsed)
    np.testing.assert_allclose(got.mean, mean, rtol=1e-12)
    np.testing.assert_allclose(got.cov, cov, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(got.var, np.diag(cov), rtol=1e-11)


def test_far_means_keep_the_digits_of_the_spread():
    """A second moment minus a squared mean would lose all of them."""
    far = MEANS + 1e8
    got = collapse(hypotheses(Covariance, far), jnp.asarray(np.log(WEIGHT)))
    np.testing.assert_allclose(got.cov, moments(WEIGHT, MEANS, COVS)[1], rtol=1e-6)
    np.testing.assert_allclose(got.var, np.diag(moments(WEIGHT, MEANS, COVS)[1]), rtol=1e-6)


def test_one_parameter_and_beliefs_that_are_not_gaussian():
    ones, zeros = np.array([[2.0], [1.0]]), np.array([[2.0], [3.0]])
    got = collapse(jax.vmap(Beta)(jnp.asarray(ones), jnp.asarray(zeros)), jnp.log(jnp.array([0.5, 0.5])))
    p, v = ones / (ones + zeros), ones * zeros / (ones + zeros) ** 2 / (ones + zeros + 1)
    mean, cov = moments([0.5, 0.5], p, v[:, :, None])
    np.testing.assert_allclose(got.mean, mean, rtol=1e-12)
    np.testing.assert_allclose(got.cov, cov, rtol=1e-12)


def test_samples_come_from_the_mixture():
    """Two narrow peaks far apart: a Gaussian of the same moments would fill the gap."""
    means, covs = np.array([[-5.0, 0.0], [5.0, 1.0]]), 0.01 * np.stack([np.eye(2)] * 2)
    got = collapse(hypotheses(SquareRoot, means, covs), jnp.log(jnp.array([0.25, 0.75])))
    draws = np.asarray(got.sample(jax.random.key(1), (4000,)))
    right = draws[:, 0] > 0
    np.testing.assert_allclose(right.mean(), 0.75, atol=0.04)
    sampled(draws[right], means[1], covs[1])
    sampled(draws[~right], means[0], covs[0])
    shapes = [jax.eval_shape(lambda key, s=s: got.sample(key, s), jax.random.key(0)).shape for s in ((), (2, 3))]
    assert shapes == [(2,), (2, 3, 2)]
