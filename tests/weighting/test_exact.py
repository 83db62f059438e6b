"""Exact weights against Bayes' rule in exact fractions, and far below what a float can hold."""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

from filtax.weighting import Exact

pytestmark = pytest.mark.x64


def test_bayes_rule_in_fractions():
    prior, likelihood = [Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)], [Fraction(1, 7), Fraction(2, 5), Fraction(1)]
    joint = [p * l for p, l in zip(prior, likelihood, strict=True)]
    want = [float(part / sum(joint)) for part in joint]
    got = Exact()(jnp.log(jnp.array([float(part) for part in joint])))
    np.testing.assert_allclose(np.exp(got), want, rtol=1e-14)


@pytest.mark.parametrize("shift", [-1e5, 0.0, 1e5])
def test_any_size_of_the_log_weights(shift):
    """exp(-1e5) is no float; the weights only know differences. What is impossible stays so."""
    log_weight = np.array([-1.0, 2.0, -np.inf, 0.5])
    got = Exact()(jnp.asarray(log_weight + shift))
    np.testing.assert_allclose(got, scipy.special.log_softmax(log_weight), atol=1e-10)
    np.testing.assert_allclose(np.exp(got).sum(), 1.0, rtol=1e-10)
    assert float(got[2]) == -np.inf


def test_a_single_hypothesis_has_weight_one_to_the_last_bit():
    for value in (0.1, -1e5, -np.inf):
        assert Exact()(jnp.array([value])).tolist() == [0.0]
    assert Exact()(jnp.zeros(1, "float32")).dtype == "float32"


def test_gradient_is_that_of_a_softmax():
    log_weight = jnp.array([0.3, -0.2])
    p = scipy.special.softmax(np.asarray(log_weight))
    got = jax.grad(lambda w: Exact()(w)[0])(log_weight)
    np.testing.assert_allclose(got, np.array([1.0, 0.0]) - p, rtol=1e-12)
