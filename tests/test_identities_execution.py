"""67: how a stream is executed does not change the answer, and names of the same thing agree."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import filtax as fx
from drive import FORMS, close, in_turn, tracker
from generators import build, systems
from oracles import kalman_filter

pytestmark = pytest.mark.x64
T = 12
by_night = [pytest.param(form, marks=pytest.mark.nightly) for form in FORMS[1:]]  # vmap is of the loop, not of the form
KEEP = ("mean", "var", "log_evidence", "ok", "belief_mean", "belief_cov")
plain = dict(kind="plain", condition=10.0, noise=0.1, units=1.0, unit_y=1.0, diagonal=False, invertible=True)


def tracking(form, dtype):
    """A drifting state of four seen through two outputs, with a hole in three of ten numbers."""
    s = build(3, 4, 2, T, process="full", missing=0.3, drifting=True, **plain)
    F, b, Q, R = (jnp.asarray(a[0], dtype) for a in (s.F, s.b, s.Q, s.R))
    prior = fx.priors.linear_dynamics(F=F, b=b, Q=Q)
    kf = fx.method(f"LG(form={form})+C-LSSM", model=fx.models.linear(noise=R), prior=prior)
    state = kf.init(mean=jnp.asarray(s.m0, dtype), cov=jnp.asarray(s.P0, dtype))
    return kf, state, jnp.asarray(s.H, dtype), jnp.asarray(s.y, dtype)


def network(form, dtype):
    """A small network that learns a sine."""
    net = fx.models.mlp((1, 20, 1), activation="tanh")
    kf = fx.method(f"LG(form={form})+C-ACI(q=0.001)", model=fx.models.nonlinear(net.apply, noise=0.01))
    x = jnp.linspace(-1.0, 1.0, T, dtype=dtype)[:, None]
    return kf, kf.init(params=net.init(jax.random.key(0), dtype), cov=0.5), x, jnp.sin(3 * x[:, 0])


def assert_same_bits(got, want):
    jax.tree.map(np.testing.assert_array_equal, got, want)


@pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=pytest.mark.nightly)])
@pytest.mark.parametrize(
    ("form", "problem"),
    [("root", tracking), ("covariance", network)]
    + [pytest.param(*pair, marks=pytest.mark.nightly) for pair in (("root", network), ("covariance", tracking))],
)
def test_chunks_give_the_same_bits_and_single_steps_the_same_numbers(problem, form, dtype):
    kf, state, X, Y = problem(form, dtype)
    whole, infos = kf.scan(state, X, Y, keep=KEEP)
    assert np.isfinite(infos.belief_cov).all()
    for size in (2, 6):
        chunked, parts = state, []
        for start in range(0, T, size):
            chunked, part = kf.scan(chunked, X[start : start + size], Y[start : start + size], keep=KEEP)
            parts.append(part)
        assert_same_bits(chunked, whole)
        assert_same_bits(jax.tree.map(lambda *rows: np.concatenate(rows), *parts), infos)
    # a loop body and a single step are compiled apart, and multiply-adds may be contracted differently: ulps, not bits
    ulps = dict(rtol=500 * np.finfo(dtype).eps, atol=100 * np.finfo(dtype).eps)
    single = state
    for t in range(T):
        single, info = kf.step(single, X[t], Y[t])
        np.testing.assert_allclose(info.log_evidence, infos.log_evidence[t], **ulps)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, **ulps), single, whole)


@pytest.mark.parametrize("form", FORMS)
@given(seed=st.integers(0, 999), unit=st.floats(-6, 6, allow_subnormal=False))
def test_promised_complete_stream_is_filtered_the_same(form, seed, unit):
    """Without masks and guards another path is compiled; it has the same oracle, in any unit of the data."""
    s = build(seed, 4, 2, T, process="full", missing=0.0, drifting=True, **(plain | {"unit_y": 10.0**unit}))
    s = s._replace(
        **{name: np.tile(getattr(s, name)[0], (T, 1, 1)) for name in ("F", "Q", "R")}, b=np.tile(s.b[0], (T, 1))
    )
    kf = tracker(form, s.F[0], s.b[0], s.Q[0], s.R[0])
    state = kf.init(mean=jnp.asarray(s.m0), cov=jnp.asarray(s.P0))
    _, infos = kf.scan(state, jnp.asarray(s.H), jnp.asarray(s.y), keep=KEEP, complete=True)
    want = kalman_filter(*s.parts)
    close(infos.belief_mean, want.mean, s.units, floor=1.0)
    close(infos.belief_cov, want.cov, np.outer(s.units, s.units))
    close(infos.log_evidence, want.log_evidence, floor=2)


@pytest.mark.parametrize("form", ["root", *by_night])
def test_vmap_over_streams_is_a_loop(form):
    kf, state, X, Y = tracking(form, "float64")
    streams = jnp.stack([Y, 2.0 * Y[::-1], jnp.where(Y > 0, Y, jnp.nan)])
    _, together = jax.vmap(lambda Y: kf.scan(state, X, Y, keep=KEEP))(streams)
    for k, stream in enumerate(streams):
        _, alone = kf.scan(state, X, stream, keep=KEEP)
        np.testing.assert_allclose(together.belief_mean[k], alone.belief_mean, rtol=1e-10)
        np.testing.assert_allclose(together.belief_cov[k], alone.belief_cov, rtol=1e-10, atol=1e-14)
        np.testing.assert_allclose(together.log_evidence[k], alone.log_evidence, rtol=1e-10)


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
