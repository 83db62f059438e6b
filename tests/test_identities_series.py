"""(M.3) Filters of one number, forgetting and mixing: what they become in closed form."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import filtax as fx
from drive import FORMS, close, in_turn, tracker
from generators import covariance, systems
from oracles import weighted_least_squares

pytestmark = pytest.mark.x64
every_form = pytest.mark.parametrize("form", FORMS)
scales = st.floats(-6, 6, allow_subnormal=False).map(lambda power: 10.0**power)
data = given(data=st.data())


@jax.jit
def series(kf, state, X, Y):
    state, infos = kf.scan(state, X, Y, keep=("mean", "var", "log_evidence", "belief_mean", "belief_var"))
    return kf.belief(state).mean, kf.belief(state).cov, infos


@pytest.mark.parametrize(("form", "D"), in_turn(FORMS, [(5,), (1,)]))
@data
def test_forgetting_is_exponentially_weighted_least_squares(form, D, data):
    """15: P/λ before each datum weighs datum t by λ^(T-t) and the prior by λ^T.

    P/λ without moving the mean is the transition F = I/√λ of data that grow at the same pace.
    """
    system, T = data.draw(systems(D, 1, T=12, drifting=False)), 12
    forget = data.draw(st.floats(0.8, 1.0, allow_subnormal=False))
    kf = tracker(form, np.eye(D) / np.sqrt(forget), np.zeros(D), np.zeros((D, D)), system.R[0])
    grown = forget ** (-0.5 * np.arange(1, T + 1))
    state = kf.init(mean=jnp.asarray(system.m0), cov=jnp.asarray(system.P0))
    mean, cov, _ = series(kf, state, jnp.asarray(system.H), jnp.asarray(grown[:, None] * system.y))
    noise, U = system.R[0, 0, 0], system.units
    X, y = system.H[:, 0] * U / np.sqrt(noise), system.y[:, 0] / np.sqrt(noise)
    weights = forget ** np.arange(T - 1.0, -1.0, -1.0)
    want = weighted_least_squares(X, y, weights, system.m0 / U, system.P0 / np.outer(U, U), forget**T)
    close(mean / grown[-1], want.mean * U, U, floor=1.0)
    close(cov, want.cov * np.outer(U, U), np.outer(U, U))


def walk(form, q, r):
    return fx.method(f"LG(form={form})+C-ACI", model=fx.models.linear(noise=r), prior=fx.priors.additive_inflation(q))


@every_form
@given(
    beta=st.floats(0.2, 0.9, allow_subnormal=False),
    unit=scales,
    start=st.floats(-2, 2, allow_subnormal=False),
    seed=st.integers(0, 999),
)
def test_random_walk_filter_settles_into_an_exponential_average(form, beta, unit, start, seed):
    """16: the gain tends to β exactly when q/r = β²/(1-β); at that variance the filter is the average at once."""
    rng, r = np.random.default_rng(seed), unit**2
    y, ones = unit * rng.normal(size=150), jnp.ones((150, 1))
    q = r * beta**2 / (1 - beta)
    kf = walk(form, q, r)
    _, cov, _ = series(kf, kf.init(mean=jnp.zeros(1), cov=r * 10.0**start), ones, jnp.asarray(y))
    close(cov / r, beta)
    _, other, _ = series(walk(form, 1.01 * q, r), kf.init(mean=jnp.zeros(1), cov=r), ones, jnp.asarray(y))
    assert abs(float(other[0, 0]) / r - beta) > 1e-4
    _, _, infos = series(kf, kf.init(mean=jnp.asarray(y[:1]), cov=beta * r), ones[1:], jnp.asarray(y[1:]))
    average = [y[0]]
    for value in y[1:]:
        average.append((1 - beta) * average[-1] + beta * value)
    close(infos.belief_mean[:, 0], average[1:], unit, floor=1.0)


@every_form
@given(unit=scales, prior=st.floats(-3, 3, allow_subnormal=False), dynamics=st.floats(-3, 3, allow_subnormal=False))
def test_variance_of_one_number_is_gain_times_noise(form, unit, prior, dynamics):
    """17: s' = k r = (1-k)(s + q), variances all; from mean 0 the datum 1 moves the mean to k itself."""
    r, s, q = unit**2, unit**2 * 10.0**prior, unit**2 * 10.0**dynamics
    kf = walk(form, q, r)
    _, cov, infos = series(kf, kf.init(mean=jnp.zeros(1), cov=s), jnp.ones((1, 1)), jnp.array([unit]))
    gain = infos.belief_mean[0, 0] / unit
    close(gain, (s + q) / (s + q + r))
    close(cov[0, 0], gain * r)
    close(infos.belief_var[0, 0], (r / (s + q + r)) * (s + q))
    close(infos.var[0], s + q + r)


@jax.jit
def wander(kf, state, x, y, rates):
    """Learn one datum, then let time pass without data at each of the rates."""
    rest = lambda state, rate: (eqx.tree_at(rate_of, kf, rate).step(state, x, y * jnp.nan)[0], None)
    state, _ = kf.step(state, x, y)
    state, _ = jax.lax.scan(rest, state, rates)
    return kf.belief(state).mean, kf.belief(state).cov


def rate_of(method):
    return method.prior.dynamics.rate


@pytest.mark.parametrize(("form", "D"), in_turn(FORMS, [(5,), (1,)]))
@given(seed=st.integers(0, 999), a=st.floats(0, 1, allow_subnormal=False), b=st.floats(0, 1, allow_subnormal=False))
def test_relaxing_twice_is_relaxing_once(form, D, seed, a, b):
    """46: Ornstein-Uhlenbeck at rate a and then b is one step at rate ab, and a weighted sum of moments."""
    rng = np.random.default_rng(seed)
    U = 10.0 ** rng.uniform(-3, 3, size=D)
    m0, P0, x = rng.normal(size=D) * U, covariance(rng, D, 100.0) * np.outer(U, U), rng.normal(size=D) / U
    prior = fx.priors.ornstein_uhlenbeck(jnp.asarray(1.0))
    kf = fx.method(f"LG(form={form})+C-OU", model=fx.models.linear(noise=0.1), prior=prior)
    state = kf.init(mean=jnp.asarray(m0), cov=jnp.asarray((P0 + P0.T) / 2))
    run = lambda *rates: map(np.asarray, wander(kf, state, jnp.asarray(x), jnp.asarray(1.5), jnp.array(rates)))
    (mean, cov), (learned, sharp) = run(a, b), run(1.0, 1.0)
    for other, spread in (run(a * b, 1.0), run(1.0, a * b), run(b, a)):
        close(other, mean, U, floor=1.0)
        close(spread, cov, np.outer(U, U))
    close(mean, a * b * learned + (1 - a * b) * m0, U, floor=1.0)
    close(cov, (a * b) ** 2 * sharp + (1 - (a * b) ** 2) * P0, np.outer(U, U))
