"""Dynamics against the moments of what they stand for: affine maps, a stochastic equation, slopes by differences."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.linalg

import filtax as fx
from filtax.beliefs import Beta, Covariance, Precision, SquareRoot
from filtax.priors import (
    additive_inflation,
    linear_dynamics,
    nonlinear_dynamics,
    ornstein_uhlenbeck,
    shrink_perturb,
)
from filtax.priors._dynamics import noise_root
from moments import drifted, mixed, normal, same, spd
from oracles import Moments

pytestmark = pytest.mark.x64
MEAN, COV, MEAN0, COV0 = normal(0, 2), spd(1, 2), normal(2, 2), spd(3, 2)
F, B, Q = normal(2, 2, 2), normal(3, 2), spd(4, 2)
RANK_ONE = np.outer([1.0, 2.0], [1.0, 2.0])
SPRING = np.array([[0.0, 1.0], [-1.0, -0.3]])
forms = pytest.mark.parametrize("form", [SquareRoot, Covariance])
every_form = pytest.mark.parametrize("form", [SquareRoot, Covariance, Precision])


def move(dynamics, form=SquareRoot, dt=None, mean=MEAN, cov=COV):
    """One step from N(mean, cov), with N(MEAN0, COV0) as the initial belief."""
    belief, initial = (form.start(jnp.asarray(m), jnp.asarray(P)) for m, P in ((mean, cov), (MEAN0, COV0)))
    return dynamics(belief, initial, None, None if dt is None else jnp.asarray(dt))


@forms
@pytest.mark.parametrize("q", [0.0, 0.4, np.array([0.1, 2.0])])
def test_additive_inflation(q, form):
    """Variance q a step, times the length of the step; none in no time."""
    for dt in (None, 0.0, 2.5):
        same(move(additive_inflation(q), form, dt), drifted(MEAN, COV, Q=q if dt is None else q * dt))


@forms
@pytest.mark.parametrize("shrink", [0.0, 0.6, 1.0, np.array([0.5, 1.0])])
@pytest.mark.parametrize("q", [0.0, np.array([0.1, 2.0])])
def test_shrink_perturb(shrink, q, form):
    """In its name's order: what is shrunk is the old belief, not the noise that comes after."""
    same(move(shrink_perturb(shrink, q), form), drifted(MEAN, COV, shrink, None, q))


@pytest.mark.parametrize("shrink", [0.8, 1.0])
def test_shrink_perturb_over_time_gaps(shrink):
    """The factor is a power of the gap, the variance what as many steps add; nothing happens in no time."""
    dynamics = shrink_perturb(shrink, 0.3)
    for dt in (0.0, 1.0, 2.5):
        steps = dt if shrink == 1.0 else (1 - shrink ** (2.0 * dt)) / (1 - shrink**2)
        same(move(dynamics, dt=dt), drifted(MEAN, COV, shrink**dt, None, 0.3 * steps))


@pytest.mark.parametrize("prior", ["ACI(q=1e30)", "SP(shrink=1.0, q=1e30)"])
@pytest.mark.parametrize("form", ["root", "covariance", "diagonal"])
def test_an_inflation_that_overflows_is_not_taken_for_none(form, prior):
    """After it nothing is known of the parameters: a datum is refused, and the stream goes on."""
    method = fx.method(f"LG(form={form})+C-{prior}", model=fx.models.linear(noise=1.0))
    state = method.init(mean=np.zeros(2, "float32"), cov=1.0)
    X, gap = np.full((3, 2), 2.0), np.array([1e-30, 1e30, 1e-30])
    _, infos = method.scan(state, X, np.ones(3), dt=gap)
    assert infos.ok.tolist() == [True, False, False]
    assert infos.var[0] < 20.0
    assert not infos.var[1] < 1e37


@every_form
def test_ornstein_uhlenbeck_solves_its_differential_equation(form):
    """d theta = -a (theta - m0) dt + noise, with the initial belief as its stationary law: the moments, integrated.

    They obey m' = -a (m - m0) and P' = -2 a (P - P0).
    """
    rate, dt = 0.7, 2.5
    a = -np.log(rate)
    slopes = lambda _, s: np.concatenate([-a * (s[:2] - MEAN0), -2 * a * (s[2:] - COV0.ravel())])
    start = np.concatenate([MEAN, COV.ravel()])
    end = scipy.integrate.solve_ivp(slopes, (0.0, dt), start, rtol=1e-11, atol=1e-12).y[:, -1]
    same(move(ornstein_uhlenbeck(rate), form, dt), Moments(end[:2], end[2:].reshape(2, 2), 0.0), rtol=1e-8)


@pytest.mark.parametrize("rate", [0.0, 0.3, 1.0, np.array([0.0, 0.9])])
def test_one_step_of_ornstein_uhlenbeck(rate):
    """Rate 1 keeps, rate 0 is reset, a vector keeps a share of each; no time forgets nothing."""
    dynamics = ornstein_uhlenbeck(rate)
    want = mixed(MEAN, COV, MEAN0, COV0, rate)
    for got in (move(dynamics), move(dynamics, dt=1.0), move(dynamics, Covariance)):
        same(got, want)
    same(move(dynamics, dt=0.0), Moments(MEAN, COV, 0.0))
    same(move(dynamics, cov=np.zeros((2, 2))), mixed(MEAN, np.zeros((2, 2)), MEAN0, COV0, rate))


def test_counts_are_forgotten_too():
    """Over two steps the share 0.25 of what was counted beyond the start is left."""
    dynamics, initial = ornstein_uhlenbeck(0.5), Beta(jnp.array([1.0]), jnp.array([2.0]))
    got = dynamics(Beta(jnp.array([9.0]), jnp.array([2.0])), initial, None, jnp.asarray(2.0))
    np.testing.assert_allclose([got.ones[0], got.zeros[0]], [3.0, 2.0])


@forms
@pytest.mark.parametrize(
    ("transition", "offset", "noise"),
    [
        (F, B, Q),
        (F, None, RANK_ONE),
        (0.5, B, 0.3),
        ([0.5, 2.0], None, [0.0, 0.3]),
        (None, B, None),
        (None, None, 0.0),
    ],
)
def test_every_way_to_give_the_matrices(transition, offset, noise, form):
    """What is omitted is the identity, and nothing."""
    same(move(linear_dynamics(transition, offset, noise), form), drifted(MEAN, COV, transition, offset, noise))


@forms
def test_functions_of_the_time_gap(form):
    """A damped spring: over a gap the transition is the matrix exponential, and without one the gap is one."""
    flow = lambda dt: jax.scipy.linalg.expm(jnp.asarray(SPRING) * dt)
    dynamics = linear_dynamics(F=flow, Q=lambda dt: jnp.asarray(Q) * dt)
    for dt in (None, 0.5):
        gap = 1.0 if dt is None else dt
        same(move(dynamics, form, dt), drifted(MEAN, COV, scipy.linalg.expm(SPRING * gap), None, Q * gap))
    same(move(linear_dynamics(F=lambda dt: 0.5**dt), form, 2.0), drifted(MEAN, COV, 0.25))


def test_noise_roots():
    """Singular, in very different units, traced; variances element by element."""
    unit = np.array([1e-6, 1.0, 0.0, 1e6])
    for noise in (np.outer(unit, unit), np.diag(unit), np.zeros((2, 2)), Q):
        scale = np.sqrt(np.outer(np.diag(noise), np.diag(noise)))
        for root in map(np.asarray, (noise_root(noise), jax.jit(noise_root)(jnp.asarray(noise)))):
            assert (np.abs(root @ root.T - noise) <= 1e-14 * scale).all()
    np.testing.assert_allclose(noise_root(np.array([4.0, 0.0])), [2.0, 0.0])
    assert noise_root(jnp.eye(2, dtype="float32")).dtype == "float32"


def test_gradient_with_respect_to_the_noise():
    """d trace / dq of a belief that gains q on each parameter is D."""
    grown = lambda q: jnp.trace(move(linear_dynamics(Q=q * jnp.eye(2)), Covariance).cov)
    np.testing.assert_allclose(jax.jit(jax.grad(grown))(0.3), 2.0, rtol=1e-9)


def swing(theta, lib=jnp):
    return lib.stack([theta[0] + 0.1 * theta[1], theta[1] - lib.sin(theta[0]) * theta[1] ** 2])


def slope(mean, step=1e-6):
    """Central differences, column by column."""
    columns = [swing(mean + step * e, np) - swing(mean - step * e, np) for e in np.eye(len(mean))]
    return np.stack(columns, axis=1) / (2 * step)


@every_form
@pytest.mark.parametrize("noise", [None, 0.2, np.array([0.0, 0.3]), RANK_ONE])
def test_the_mean_moves_by_f_and_the_covariance_by_its_slope(noise, form):
    want = drifted(MEAN, COV, slope(MEAN), None, noise)
    same(move(nonlinear_dynamics(swing, Q=noise), form), Moments(swing(MEAN, np), want.cov, 0.0), rtol=1e-8)


def test_what_is_certain_follows_f():
    zero = np.zeros((2, 2))
    same(move(nonlinear_dynamics(swing), cov=zero), Moments(swing(MEAN, np), zero, 0.0))


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: additive_inflation(-0.1), r"additive_inflation\(q=...\) must be finite and at least 0, got -0.1"),
        (lambda: additive_inflation([0.1, np.nan]), "variance added to each parameter per step"),
        (lambda: additive_inflation("much"), "must be a number"),
        (lambda: shrink_perturb(1.1, 0.1), r"shrink_perturb\(shrink=...\) must lie in \[0, 1\], got 1.1"),
        (lambda: shrink_perturb(-0.1, 0.1), "1 keeps the parameters, 0 forgets them"),
        (lambda: shrink_perturb(0.9, np.inf), r"shrink_perturb\(q=...\) must be finite"),
        (lambda: ornstein_uhlenbeck(np.nan), r"ornstein_uhlenbeck\(rate=...\) must lie in .*share of the belief"),
        (lambda: ornstein_uhlenbeck([0.5, 2.0]), r"ornstein_uhlenbeck\(rate=...\) must lie in \[0, 1\]"),
        (lambda: linear_dynamics(F=np.ones((2, 3))), r"a square matrix, got shape \(2, 3\)"),
        (lambda: linear_dynamics(F=np.ones((1, 2, 2))), "got shape"),
        (lambda: linear_dynamics(F=np.nan), r"linear_dynamics\(F=...\) must be finite"),
        (lambda: linear_dynamics(b=[0.0, np.inf]), r"linear_dynamics\(b=...\) must be finite"),
        (lambda: linear_dynamics(Q=-1.0), r"linear_dynamics\(Q=...\) must be finite and at least 0"),
        (lambda: linear_dynamics(Q=[[1.0, 2.0], [2.0, 1.0]]), "positive semidefinite"),
        (lambda: linear_dynamics(Q=[[1.0, 0.5], [0.0, 1.0]]), "symmetric"),
        (lambda: move(linear_dynamics(F=F, Q=lambda dt: dt), dt=0.5), "does not know what another time step does"),
        (lambda: move(linear_dynamics(F=lambda dt: dt, Q=0.1), dt=0.5), "does not know what another time step does"),
        (lambda: move(linear_dynamics(b=B), dt=0.5), "does not know what another time step does"),
        # without the type checks of the test run, which refuse it first
        (lambda: inspect.unwrap(nonlinear_dynamics)(1.0), "must be a function of theta, got float"),
        (lambda: nonlinear_dynamics(swing, Q=[[1.0, 2.0], [2.0, 1.0]]), r"\(Q=...\) must be positive semidefinite"),
        (lambda: move(nonlinear_dynamics(lambda theta: theta[:1])), r"f returned shape \(1,\) for parameters of shape"),
        (lambda: move(nonlinear_dynamics(swing), dt=0.5), "knows one time step only"),
    ],
)
def test_refusals(call, match):
    with pytest.raises(ValueError, match=match):
        call()
