"""Forgetting at a rate, against the exact solution of the stochastic equation that it is named after, in numpy.

d theta = -a (theta - mean_0) dt + noise, whose noise is such that the initial belief is stationary: over a gap dt it
keeps the share exp(-a dt) of the deviation, and the noise has covariance (1 - exp(-2 a dt)) cov_0.
"""

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate

from filtax.beliefs import Beta, Covariance, Precision, SquareRoot
from filtax.priors import ornstein_uhlenbeck
from moments import mixed, normal, same, spd
from oracles import Moments

pytestmark = pytest.mark.x64
MEAN, COV, MEAN0, COV0 = normal(0, 2), spd(1, 2), normal(2, 2), spd(3, 2)


def move(rate, dt=None, form=SquareRoot, cov=COV):
    belief, initial = (form.start(jnp.asarray(m), jnp.asarray(P)) for m, P in ((MEAN, cov), (MEAN0, COV0)))
    return ornstein_uhlenbeck(rate)(belief, initial, None, None if dt is None else jnp.asarray(dt))


@pytest.mark.parametrize("form", [SquareRoot, Covariance, Precision])
def test_it_solves_its_differential_equation(form):
    """Moments obey m' = -a (m - m0), P' = -2 a (P - P0); integrated numerically over the gap."""
    rate, dt = 0.7, 2.5
    a = -np.log(rate)
    slopes = lambda _, s: np.concatenate([-a * (s[:2] - MEAN0), -2 * a * (s[2:] - COV0.ravel())])
    start = np.concatenate([MEAN, COV.ravel()])
    end = scipy.integrate.solve_ivp(slopes, (0.0, dt), start, rtol=1e-11, atol=1e-12).y[:, -1]
    same(move(rate, dt, form), Moments(end[:2], end[2:].reshape(2, 2), 0.0), rtol=1e-8)


@pytest.mark.parametrize("rate", [0.0, 0.3, 1.0, np.array([0.0, 0.9])])
def test_one_step(rate):
    """Rate 1 keeps, rate 0 is reset, a vector keeps a share of each; a gap of one changes nothing."""
    want = mixed(MEAN, COV, MEAN0, COV0, rate)
    same(move(rate), want)
    same(move(rate, 1.0), want)
    same(move(rate, form=Covariance), want)


def test_no_time_forgets_nothing_and_the_certain_gain_doubt():
    same(move(0.3, 0.0), Moments(MEAN, COV, 0.0))
    same(move(0.6, cov=np.zeros((2, 2))), mixed(MEAN, np.zeros((2, 2)), MEAN0, COV0, 0.6))


def test_counts_are_forgotten_too():
    """Over two steps the share 0.25 of what was counted beyond the start is left."""
    dynamics, initial = ornstein_uhlenbeck(0.5), Beta(jnp.array([1.0]), jnp.array([2.0]))
    got = dynamics(Beta(jnp.array([9.0]), jnp.array([2.0])), initial, None, jnp.asarray(2.0))
    np.testing.assert_allclose([got.ones[0], got.zeros[0]], [3.0, 2.0])
    assert (dynamics.name, dynamics.needs, set(dynamics.shown)) == ("OU", ("mix",), {"rate"})


@pytest.mark.parametrize("rate", [-0.1, 1.1, np.nan, [0.5, 2.0]])
def test_refusals(rate):
    with pytest.raises(ValueError, match=r"ornstein_uhlenbeck\(rate=...\) must lie in \[0, 1\].*share of the belief"):
        ornstein_uhlenbeck(rate)
