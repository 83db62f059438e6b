"""The fast path for single events, against the textbook recursion in numpy, row by row."""

import inspect

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import filtax as fx
from filtax._online import online
from filtax.state import INFO
from moments import normal, spd
from oracles import kalman_filter

pytestmark = pytest.mark.x64
T, D, O, Q = 8, 3, 2, 0.1
H, M0, P0, R = normal(0, T, O, D), normal(1, D), spd(2, D), spd(3, O)


def truth(H, R, y):
    still = (np.tile(np.eye(D), (T, 1, 1)), np.zeros((T, D)), np.tile(Q * np.eye(D), (T, 1, 1)))
    return kalman_filter(M0, P0, *still, H, np.tile(R, (T, 1, 1)), y)


@pytest.mark.parametrize("outputs", [1, O])
def test_every_event_is_a_step_of_the_filter(outputs):
    """Features and a scalar, or a matrix and two outputs; with gaps, and with a row that is refused."""
    x, r = (H[:, 0], R[:1, :1]) if outputs == 1 else (H, R)
    y = normal(4, T, outputs)
    y[2], y[5, 0] = np.nan, np.nan
    want = truth(H[:, :outputs], r, np.where(np.arange(T)[:, None] == 6, np.nan, y))
    y[6] = np.inf
    kf = fx.method(f"LG+C-ACI(q={Q})", model=fx.models.linear(noise=jnp.asarray(r)))
    shape = dict(x=x[0], y=y[0]) if outputs > 1 else {}
    fast = online(kf, kf.init(mean=jnp.asarray(M0), cov=jnp.asarray(P0)), **shape)
    events = [fast.step(x[t], y[t] if outputs > 1 else y[t, 0]) for t in range(T)]
    for t, event in enumerate(events):  # looked at when all is over: no event is written over by a later one
        np.testing.assert_allclose(np.atleast_1d(event.mean), want.forecast_mean[t], rtol=1e-9)
        np.testing.assert_allclose(np.atleast_1d(event.var), np.diag(want.forecast_cov[t]), rtol=1e-9)
        np.testing.assert_allclose(event.log_evidence, want.log_evidence[t], rtol=1e-9, atol=1e-12)
        gap = np.where(t == 6, np.nan, y[t]) - want.forecast_mean[t]
        np.testing.assert_allclose(np.atleast_1d(event.residual), gap, rtol=1e-9)
        assert (event.ok, event.runlength) == (t != 6, t + 1)
        assert (float(event.trust), float(event.change_probability)) == (1.0, 0.0)
        assert event.mean.shape == (() if outputs == 1 else (O,))
    state = fast.state
    np.testing.assert_allclose(kf.belief(state).mean, want.mean[-1], rtol=1e-9)
    np.testing.assert_allclose(kf.belief(state).cov, want.cov[-1], rtol=1e-9, atol=1e-12)
    assert (int(state.t), int(state.refused)) == (T, 1)


def test_counts_without_features():
    """A coin: after k ones of n the forecast is (k + 1) / (n + 2), Laplace's rule."""
    coin = fx.method("Cj+C-Static", model=fx.models.bernoulli())
    fast = online(coin, coin.init(mean=0.5, cov=1 / 12))
    seen = [1, 1, 0, 1]
    means = [float(fast.step(None, y).mean) for y in seen]
    np.testing.assert_allclose(means, [(sum(seen[:n]) + 1) / (n + 2) for n in range(4)], rtol=1e-9)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64"])
def test_the_run_length_is_exact_beyond_what_a_float_holds(dtype):
    """Above 2^24 a float32 counts in twos, a bfloat16 above 2^8; the counter travels as its bits."""
    kf = fx.method("LG+C-Static", model=fx.models.linear(noise=1.0))
    start = kf.init(mean=jnp.zeros(1, dtype))
    for t in ((1 << 20) - 2, 17 * (1 << 20) + 4, 2**31 - 9):
        fast = online(kf, eqx.tree_at(lambda s: s.t, start, jnp.asarray(t, jnp.int32)))
        lengths = [fast.step([1.0], 0.0).runlength for _ in range(3)]
        assert lengths == [t + 1, t + 2, t + 3]
        assert int(fast.state.t) == t + 3


def test_it_goes_on_from_any_state_and_back():
    """Earlier refusals and the conditioning ratio are kept; the state can be stepped on by the method itself."""
    kf = fx.method("LG+C-Static", model=fx.models.linear(noise=0.25))
    state, _ = kf.step(kf.init(mean=jnp.zeros(1), cov=4.0), [1.0], np.inf)
    fast = online(kf, state)
    fast.step([1.0], 2.0)
    assert (int(fast.state.refused), int(fast.state.t)) == (1, 2)
    np.testing.assert_allclose(fast.state.conditioning_ratio, 4.0 / 0.25, rtol=1e-9)
    after, _ = kf.step(fast.state, [1.0], 2.0)
    np.testing.assert_allclose(kf.belief(after).mean, [2.0 * 8.0 / (0.25 + 8.0)], rtol=1e-9)  # two data 2 of noise 1/4


def test_whole_numbers_stay_such_where_the_model_needs_them():
    table = fx.method("LG+C-Static", model=fx.models.nonlinear(lambda theta, x: theta[x], noise=0.1))
    state = table.init(mean=jnp.zeros(4, "float32"))
    fast = online(table, state, x=2)
    for x, y in ((2, 1.0), (0, 3.0), (2, 1.5)):
        fast.step(x, y)
        state, _ = table.step(state, x, y)
    np.testing.assert_allclose(table.belief(fast.state).mean, table.belief(state).mean, rtol=1e-6)
    for x in (1.5, 2**24 + 1):
        with pytest.raises(ValueError, match=r"step: x = .* is no whole number that float32 holds"):
            fast.step(x, 0.0)
    kf = fx.method("LG+C-Static", model=fx.models.linear(noise=1.0))
    fast = online(kf, kf.init(mean=jnp.zeros(1)), x=[1])  # an example of the shape
    assert float(fast.step([0.5], 2.0).residual) == 2.0


@pytest.mark.parametrize("h", [lambda theta, x: theta[x], lambda theta, x: theta.reshape(2, 3) @ x])
def test_a_model_that_takes_no_plain_features_asks_for_an_example(h):
    method = fx.method("LG+C-Static", model=fx.models.nonlinear(h, noise=0.1))
    state = method.init(mean=jnp.zeros(6))
    with pytest.raises(ValueError, match=r"online: x was omitted, .* features \(6,\) .*; give an example of x, such"):
        online(method, state)
    with pytest.raises(TypeError):  # an example that does not fit is the model's own to refuse
        online(method, state, x=np.ones(4))


def test_refusals():
    kf = fx.method("LG+C-Static", model=fx.models.linear(noise=1.0))
    start = kf.init(mean=jnp.zeros(2))
    fast = online(kf, start)
    for x, y, match in (
        ([1.0], 0.0, r"x has shape \(1,\) but was made for \(2,\)"),
        ([1.0, 2.0], [0.0, 1.0], "y has"),
    ):
        with pytest.raises(ValueError, match=f"step: {match}"):
            fast.step(x, y)
    assert float(fast.step([1.0, 2.0], [3.0]).residual) == 3.0  # a single number may come in a list
    with pytest.raises(AttributeError, match=r"an event has mean, .*; there is no 'median'"):
        _ = fast.step([1.0, 2.0], 0.0).median
    with pytest.raises(ValueError, match=r"online\(method=...\) must come from filtax.method, got str"):
        inspect.unwrap(online)("LG+C-Static", start)  # without the type checks of the test run, which refuse it first
    with pytest.raises(ValueError, match="y must hold numbers"):
        online(kf, start, y="one")
    assert set(INFO) == {*fast._fields}
