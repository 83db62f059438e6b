"""Weights by Bayes' rule: exact fractions, what no float can hold, a share that is spread, and the K best by a sort."""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

from filtax.weighting import Exact, bounded, fixed_share

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


@pytest.mark.parametrize("share", [0.0, 0.1, 1.0])
def test_a_share_is_spread(share):
    raw = np.log([0.5, 2.0, 1e-30])
    got = np.exp(fixed_share(share)(jnp.asarray(raw)))
    np.testing.assert_allclose(got, (1 - share) * np.exp(raw) / np.exp(raw).sum() + share / 3, rtol=1e-12)


@pytest.mark.parametrize("keep", [1, 2, 4, 5, 6])
def test_bounded_keeps_the_best_and_normalises(keep):
    raw = np.log([0.1, 0.3, 0.05, 0.15, 0.4])
    got = np.exp(bounded(keep)(jnp.asarray(raw)))
    want = np.where(np.argsort(np.argsort(-raw)) < keep, np.exp(raw), 0.0)
    np.testing.assert_allclose(got, want / want.sum(), rtol=1e-12)


@pytest.mark.parametrize("keep", [1, 2, 3])
def test_equal_weights_leave_exactly_as_many_as_asked(keep):
    assert (np.exp(bounded(keep)(jnp.zeros(4))) > 0).sum() == keep


def test_dead_slots_stay_dead():
    got = bounded(3)(jnp.array([0.0, -jnp.inf, -jnp.inf, -jnp.inf]))
    np.testing.assert_array_equal(np.isfinite(got), [True, False, False, False])


def test_refusals():
    for keep in (0, 1.5, -1):
        with pytest.raises(ValueError, match=r"DA\[K\] must be a whole number of at least 1"):
            bounded(keep)
    with pytest.raises(ValueError, match=r"fixed_share\(share=\.\.\.\) must lie in \[0, 1\]"):
        fixed_share(-0.1)
