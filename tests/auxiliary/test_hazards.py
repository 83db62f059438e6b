"""Hazards against laws of segment lengths drawn from scipy."""

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from filtax.auxiliary import hazards

pytestmark = pytest.mark.x64


def lengths(hazard, longest):
    """The law of segment lengths that a hazard implies."""
    h = np.asarray(hazard(jnp.arange(longest), None))
    return h * np.concatenate([[1.0], np.cumprod(1.0 - h)[:-1]])


@pytest.mark.parametrize(
    ("hazard", "law"),
    [
        (hazards.geometric(20.0), scipy.stats.geom(1 / 20)),
        (hazards.poisson(12.0), scipy.stats.poisson(11.0, loc=1)),
        (hazards.negative_binomial(30.0, 4.0), scipy.stats.nbinom(4.0, 4.0 / 33.0, loc=1)),
        (hazards.from_lengths([0.0, 0.5, 0.5]), scipy.stats.randint(2, 4)),
    ],
)
def test_the_hazard_of_a_law_implies_the_law(hazard, law):
    np.testing.assert_allclose(lengths(hazard, 30), law.pmf(np.arange(1, 31)), atol=1e-6)


@pytest.mark.parametrize(
    ("hazard", "law", "longest"),
    [
        (hazards.poisson(9.0), scipy.stats.poisson(8.0), 90),
        (hazards.poisson(5000.0), scipy.stats.poisson(4999.0), 5800),
        (hazards.negative_binomial(50.0, 4.0), scipy.stats.nbinom(4.0, 4.0 / 53.0), 900),
        (hazards.negative_binomial(3.0, 0.5), scipy.stats.nbinom(0.5, 0.5 / 2.5), 50),
    ],
)
def test_a_long_run_has_the_hazard_of_its_law(hazard, law, longest):
    """Also where the law has hardly any mass left: a regime that lasts is unlikely, but has not ended for that."""
    r = np.arange(longest)
    with np.errstate(all="ignore"):
        want = np.exp(law.logpmf(r) - np.logaddexp(law.logpmf(r), law.logsf(r)))
    np.testing.assert_allclose(hazard(jnp.asarray(r), None), want, rtol=1e-8, atol=1e-14)
    assert (np.asarray(hazard.table) < 1.0).all()


def test_time_gaps_and_what_counts_ticks():
    np.testing.assert_allclose(hazards.hazard(0.1)(jnp.arange(2), jnp.asarray(2.0)), 0.19)
    with pytest.raises(ValueError, match="counts steps, not time"):
        hazards.from_lengths([1.0])(jnp.arange(2), jnp.asarray(2.0))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: hazards.hazard(-0.1), r"must lie in \[0, 1\]"),
        (lambda: hazards.hazard(lambda r: 0.01 * r), r"must lie in \[0, 1\].* A function of the run length gives"),
        (lambda: hazards.hazard(lambda r: 1.0 / r - 1.0), r"must lie in \[0, 1\]"),
        (lambda: hazards.from_lengths([0.7, 0.7]), "a sum of at most 1"),
        (lambda: hazards.from_lengths([]), "must be a vector"),
        (lambda: hazards.geometric(0.5), "at least one datum"),
        (lambda: hazards.poisson(1.0), "must exceed 1"),
        (lambda: hazards.poisson(-1.0), r"got -1\.0\. The mean length must exceed 1"),
        (lambda: hazards.negative_binomial(0.5, 1.0), r"negative_binomial\(mean=0\.5\): .* must exceed 1"),
        (lambda: hazards.hazard(np.array([0.1, 0.2])), r"hazard=\.\.\. must be one number, got shape \(2,\)"),
        (lambda: hazards.negative_binomial(9.0, 0.0), "above 0"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()
