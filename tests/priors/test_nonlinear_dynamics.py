"""Nonlinear dynamics against f itself and differences of f: the mean moves by f, the covariance by its slope there."""

import inspect

import jax.numpy as jnp
import numpy as np
import pytest

from filtax.beliefs import Covariance, Precision, SquareRoot
from filtax.priors import nonlinear_dynamics
from moments import drifted, normal, same, spd
from oracles import Moments

pytestmark = pytest.mark.x64
MEAN, COV = np.array([0.4, -0.7]), 0.1 * spd(1, 2)
ROOT = normal(2, 2, 2)


def swing(theta, lib=jnp):
    return lib.stack([theta[0] + 0.1 * theta[1], theta[1] - lib.sin(theta[0]) * theta[1] ** 2])


def slope(mean, step=1e-6):
    """Central differences, column by column."""
    columns = [swing(mean + step * e, np) - swing(mean - step * e, np) for e in np.eye(len(mean))]
    return np.stack(columns, axis=1) / (2 * step)


def move(dynamics, form=SquareRoot, mean=MEAN, cov=COV, dt=None):
    return dynamics(form.start(jnp.asarray(mean), jnp.asarray(cov)), None, None, dt)


@pytest.mark.parametrize("form", [SquareRoot, Covariance, Precision])
@pytest.mark.parametrize("noise", [None, 0.2, np.array([0.0, 0.3]), ROOT @ ROOT.T])
def test_mean_by_f_covariance_by_its_slope(noise, form):
    want = drifted(MEAN, COV, slope(MEAN), None, noise)
    got = move(nonlinear_dynamics(swing, Q=noise), form)
    same(got, Moments(swing(MEAN, np), want.cov, 0.0), rtol=1e-8)


def test_a_straight_f_is_linear_and_one_parameter_will_do():
    same(
        move(nonlinear_dynamics(lambda theta: 3.0 * theta - 1.0, Q=0.5), mean=MEAN[:1], cov=COV[:1, :1]),
        drifted(MEAN[:1], COV[:1, :1], 3.0, -1.0, 0.5),
    )


def test_what_is_certain_follows_f():
    same(move(nonlinear_dynamics(swing), cov=np.zeros((2, 2))), Moments(swing(MEAN, np), np.zeros((2, 2)), 0.0))


def test_refusals():
    with pytest.raises(ValueError, match="must be a function of theta, got float"):
        inspect.unwrap(nonlinear_dynamics)(1.0)  # without the type checks of the test run, which refuse it first
    with pytest.raises(ValueError, match=r"nonlinear_dynamics\(Q=...\) must be positive semidefinite"):
        nonlinear_dynamics(swing, Q=[[1.0, 2.0], [2.0, 1.0]])
    with pytest.raises(ValueError, match=r"f returned shape \(1,\) for parameters of shape \(2,\)"):
        move(nonlinear_dynamics(lambda theta: theta[:1]))
    with pytest.raises(ValueError, match="knows one time step only"):
        move(nonlinear_dynamics(swing), dt=jnp.asarray(0.5))
    assert nonlinear_dynamics(swing).needs == ("affine",)
