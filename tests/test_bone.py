"""The verbs and the state: what a method of one structure shares, what is refused, what is handed on."""

import copy
import pickle

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import filtax as fx
from moments import normal, spd
from oracles import kalman_filter

pytestmark = pytest.mark.x64
T, D = 6, 2
X, Y, NOISE = normal(0, T, D), normal(1, T), np.array([0.2, 1.0, 3.0, 0.1, 0.5, 2.0])
M0, P0 = normal(2, D), spd(3, D)


def build(noise=0.5, name="LG+C-Static"):
    return fx.method(name, model=fx.models.linear(noise=noise))


def begin(kf):
    return kf.init(mean=jnp.asarray(M0), cov=jnp.asarray(P0))


def truth(noise):
    """The textbook recursion in numpy."""
    still = np.tile(np.eye(D), (T, 1, 1)), np.zeros((T, D)), np.zeros((T, D, D))
    return kalman_filter(M0, P0, *still, X[:, None], np.asarray(noise).reshape(T, 1, 1), Y[:, None])


def test_noise_that_changes_with_time_is_a_method_for_each_datum():
    """Methods of one structure share what was compiled and the state, but never their numbers."""
    want, state = truth(NOISE), begin(build())
    for t in range(T):
        state, info = build(NOISE[t]).step(state, X[t], Y[t])
        np.testing.assert_allclose(info.log_evidence, want.log_evidence[t], rtol=1e-10)
    np.testing.assert_allclose(build().belief(state).cov, want.cov[-1], rtol=1e-10)

    def step(state, row):
        x, y, noise = row
        return build(noise).step(state, x, y)

    after, infos = jax.lax.scan(step, begin(build()), (jnp.asarray(X), jnp.asarray(Y), jnp.asarray(NOISE)))
    np.testing.assert_allclose(infos.log_evidence, want.log_evidence, rtol=1e-10)
    np.testing.assert_allclose(infos.trust, np.ones(T))
    np.testing.assert_allclose(build().belief(after).mean, want.mean[-1], rtol=1e-10)


def test_methods_and_states_are_stored_copied_and_changed_as_values():
    kf = build()
    state, _ = kf.step(begin(kf), X[0], Y[0])
    for twin in (pickle.loads(pickle.dumps(state)), copy.copy(state), copy.deepcopy(state)):
        jax.tree.map(np.testing.assert_array_equal, twin, state)
    assert pickle.loads(pickle.dumps(kf)).name == copy.deepcopy(kf).name == kf.name
    moved = eqx.tree_at(lambda s: s.hypotheses.belief.mean, state, state.hypotheses.belief.mean + 1.0)
    got, want = (kf.step(s, X[1], Y[1])[1].mean for s in (moved, state))
    np.testing.assert_allclose(got - want, X[1].sum(), rtol=1e-9)
    louder = eqx.tree_at(lambda m: m.model.likelihood.noise, kf, kf.model.likelihood.noise * 4.0)
    np.testing.assert_allclose(louder.step(state, X[1], Y[1])[1].var - kf.step(state, X[1], Y[1])[1].var, 1.5)


def test_a_known_change_starts_the_stream_again():
    kf = build()
    state, _ = kf.scan(begin(kf), X, Y)
    state, info = kf.step(state, X[0], Y[0], changed=True)
    assert (int(info.runlength), int(state.began)) == (1, T)
    state, info = kf.step(state, X[1], Y[1])
    assert (int(info.runlength), int(state.began), int(state.t)) == (2, T, T + 2)
    np.testing.assert_allclose(kf.belief(state).mean, truth(np.full(T, 0.5)).mean[1], rtol=1e-10)


FULL = ["RL[inf](capacity=2)-PR(hazard=0.2)"]
NIGHT = ["CPL[inf]-MCI(hazard=0.2, beta=0.5)", "RLCC[inf](a=1.5, b=3, capacity=2)-PR", "CPT[inf]-PR(hazard=0.2)"]


@pytest.mark.parametrize("name", [*FULL, *(pytest.param(name, marks=pytest.mark.nightly) for name in NIGHT)])
def test_forecasts_from_full_slots_hold_every_hypothesis(name):
    """Looking ahead drops no hypothesis, and the law of evidence holds."""
    method = fx.method(name, model=fx.models.linear(noise=0.5))
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(6, 2)), 3.0 * rng.normal(size=6)
    state = method.init(mean=jnp.zeros(2), cov=1.0)
    for t in range(6):
        before = state
        state, info = method.step(state, X[t], y[t])
        np.testing.assert_allclose(method.predict(before, X[t]).log_prob(y[t]), info.log_evidence, rtol=1e-10)
    ahead = method.forecast(before, X[:3])
    later = before
    for h in range(3):
        seen = method.predict(later, X[h])
        np.testing.assert_allclose(ahead.mean[h], seen.mean, rtol=1e-10)
        np.testing.assert_allclose(ahead.var[h], seen.var, rtol=1e-10)
        later, _ = method.step(later, X[h], np.nan)


def test_a_step_is_counted_whatever_it_brings():
    """A gap is a step and no refusal; infinity is both; the conditioning ratio is the largest so far."""
    kf = fx.method("LG+C-Static", model=fx.models.linear(noise=1.0))
    state = kf.init(mean=jnp.zeros(1), cov=4.0)
    for y, refused in ((np.nan, 0), (np.inf, 1), (1.0, 1), (1.0, 1)):
        state, info = kf.step(state, [1.0], y)
        assert (int(state.refused), bool(info.ok)) == (refused, not np.isinf(y))
    assert int(state.t) == 4
    np.testing.assert_allclose(state.conditioning_ratio, 4.0, rtol=1e-6)  # prior variance over noise; later: smaller
