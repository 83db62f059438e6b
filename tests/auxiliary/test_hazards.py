"""Hazards against laws of segment lengths drawn from scipy."""

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from filtax.auxiliary import hazards

pytestmark = pytest.mark.x64


@pytest.mark.parametrize(
    "law", [scipy.stats.geom(1 / 20), scipy.stats.nbinom(4.0, 4.0 / 33.0, loc=1), scipy.stats.randint(2, 4)]
)
def test_the_hazard_of_a_law_implies_the_law(law):
    h = np.asarray(hazards.from_lengths(law.pmf(np.arange(1, 2000)))(jnp.arange(30), None))
    got = h * np.concatenate([[1.0], np.cumprod(1.0 - h)[:-1]])
    np.testing.assert_allclose(got, law.pmf(np.arange(1, 31)), atol=1e-12)


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
        (lambda: hazards.hazard(np.array([0.1, 0.2])), r"hazard=\.\.\. must be one number, got shape \(2,\)"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()
