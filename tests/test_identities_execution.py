"""67: how a stream is executed does not change the answer, and names of the same thing agree."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import filtax as fx
from drive import FORMS, close, in_turn
from generators import systems
from oracles import kalman_filter

pytestmark = pytest.mark.x64
T = 12
by_night = [pytest.param(form, marks=pytest.mark.nightly) for form in FORMS[1:]]  # vmap is of the loop, not of the form
KEEP = ("mean", "var", "log_evidence", "ok", "belief_mean", "belief_cov")


@pytest.mark.parametrize("form", ["root", *by_night])
def test_vmap_over_methods_is_a_loop(form):
    """Hyper-parameters are leaves: a batch of methods is a method with longer leaves. Each against the oracle too."""
    rng = np.random.default_rng(0)
    X, y, noises, rates = (
        rng.normal(size=(T, 1, 3)),
        rng.normal(size=(T, 1)),
        np.array([0.1, 1.0, 4.0]),
        [0.0, 0.1, 0.9],
    )

    def run(noise, q):
        prior = fx.priors.additive_inflation(q)
        kf = fx.method(f"LG(form={form})+C-ACI", model=fx.models.linear(noise=noise), prior=prior)
        return kf.scan(kf.init(mean=jnp.zeros(3), cov=1.0), jnp.asarray(X[:, 0]), jnp.asarray(y[:, 0]), keep=KEEP)[1]

    together = jax.vmap(run)(jnp.asarray(noises), jnp.array(rates))
    every = np.tile(np.eye(3), (T, 1, 1))
    for k, (noise, q) in enumerate(zip(noises, rates, strict=True)):
        system = np.zeros(3), np.eye(3), every, np.zeros((T, 3)), q * every, X, noise * np.ones((T, 1, 1)), y
        want = kalman_filter(*system)
        np.testing.assert_allclose(together.belief_mean[k], want.mean, rtol=1e-10)
        np.testing.assert_allclose(together.belief_cov[k], want.cov, rtol=1e-10, atol=1e-13)
        np.testing.assert_allclose(together.log_evidence[k], want.log_evidence, rtol=1e-10)


STILL = {
    "Static": fx.priors.static(),
    "ACI": fx.priors.additive_inflation(0.0),
    "OU": fx.priors.ornstein_uhlenbeck(1.0),
    "SP": fx.priors.shrink_perturb(1.0, 0.0),
    "LSSM": fx.priors.linear_dynamics(F=1.0, Q=0.0),
}


@jax.jit
def learn(kf, state, X, Y):
    state, infos = kf.scan(state, X, Y, keep=("log_evidence",))
    return kf.belief(state).mean, kf.belief(state).cov, infos.log_evidence


@pytest.mark.parametrize(("form", "D", "O"), in_turn(FORMS, [(5, 2), (1, 1)]))
@given(data=st.data())
def test_priors_that_do_not_move_agree(form, D, O, data):
    """C-ACI with q = 0, C-OU with rate 1, C-SP with shrink 1 and the identity LSSM are all C-Static."""
    s = data.draw(systems(D, O, drifting=False, missing=0.2))
    model = fx.models.linear(noise=jnp.asarray(s.R[0]))
    results = []
    for name, prior in STILL.items():
        kf = fx.method(f"LG(form={form})+C-{name}", model=model, prior=prior)
        state = kf.init(mean=jnp.asarray(s.m0), cov=jnp.asarray(s.P0))
        results.append(learn(kf, state, jnp.asarray(s.H), jnp.asarray(s.y)))
    want = kalman_filter(*s._replace(R=np.tile(s.R[0], (len(s.y), 1, 1))).parts)
    for mean, cov, log_evidence in results:
        close(mean, want.mean[-1], s.units, floor=1.0)
        close(cov, want.cov[-1], np.outer(s.units, s.units))
        close(log_evidence, want.log_evidence, floor=O)
