"""(M.1) Losses: those that are likelihoods against the likelihoods, others against what they do on paper."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import filtax as fx
from filtax.models import linear, loss, nonlinear
from oracles import logistic_newton

pytestmark = pytest.mark.x64
rng = np.random.default_rng(9)
D = 3
H = rng.normal(size=(2, D))
P = np.array([[1.0, 0.2, 0.0], [0.2, 0.8, -0.1], [0.0, -0.1, 1.5]])
R = np.array([[0.5, 0.2], [0.2, 1.0]])
W = jnp.asarray(np.linalg.inv(R))
m, y = rng.normal(size=D), rng.normal(size=2)

squared = lambda eta, y: 0.5 * (y - eta) @ W @ (y - eta)
absolute = lambda eta, y: jnp.sum(jnp.abs(y - eta))
logistic = lambda eta, y: jnp.sum(jax.nn.softplus(eta) - y * eta)
welsch = lambda eta, y: 2.0 * jnp.sum(1.0 - jnp.exp(-0.25 * (y - eta) ** 2))
log_cosh = lambda eta, y: 3.0 * jnp.sum(jnp.logaddexp(y - eta, eta - y))


@pytest.mark.parametrize("form", ["root", "covariance", pytest.param("precision", marks=pytest.mark.nightly)])
def test_half_a_squared_error_is_gaussian_noise(form):
    """Two correlated outputs; the evidence lacks the normaliser and the spread, and nothing else differs."""
    a, b = (
        fx.method(f"LG(form={form})+C-ACI(q=0.1)", model=model)
        for model in (linear(likelihood=loss(squared)), linear(noise=R))
    )
    state = a.init(mean=m, cov=P)
    (one, got), (two, want) = a.step(state, H, y), b.step(state, H, y)
    np.testing.assert_allclose(a.belief(one).mean, b.belief(two).mean, rtol=1e-11)
    np.testing.assert_allclose(a.belief(one).cov, b.belief(two).cov, rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(got.residual, want.residual)
    np.testing.assert_allclose(got.var, np.diag(H @ (P + 0.1 * np.eye(D)) @ H.T), rtol=1e-12)
    e = y - H @ m
    np.testing.assert_allclose(got.log_evidence, -0.5 * e @ np.linalg.solve(R, e), rtol=1e-12)
    np.testing.assert_allclose(a.predict(state, H).log_prob(y), got.log_evidence, rtol=1e-12)


def test_log_loss_is_logistic_regression():
    learner = fx.method("LG+C-Static", model=linear(likelihood=loss(logistic)))
    state, info = learner.step(learner.init(mean=m, cov=P), H[0], 1.0)
    want = logistic_newton(m, P, H[0], 1.0)
    np.testing.assert_allclose(learner.belief(state).mean, want.mean, rtol=1e-11)
    np.testing.assert_allclose(learner.belief(state).cov, want.cov, rtol=1e-10)
    np.testing.assert_allclose(info.log_evidence, -np.log1p(np.exp(-H[0] @ m)), rtol=1e-12)


@pytest.mark.parametrize("form", ["root", "covariance", "precision"])
def test_a_loss_without_curvature_moves_the_mean_alone(form):
    """|y - eta| pulls by its slope, P J', however far y is, and leaves the covariance."""
    learner = fx.method(f"LG(form={form})+C-Static", model=linear(likelihood=loss(absolute)))
    for far in (10.0, 1e6):
        state, info = learner.step(learner.init(mean=m, cov=P), H, far * np.array([1.0, -1.0]))
        np.testing.assert_allclose(learner.belief(state).mean, m + P @ H.T @ [1.0, -1.0], rtol=1e-6)
        np.testing.assert_allclose(learner.belief(state).cov, P, atol=1e-6)
        assert bool(info.ok)


def test_iterating_finds_the_mode():
    """IEKF with a convex loss: the minimum of prior and loss, by brute force."""
    learner = fx.method("IEKF(iterations=8)+C-Static", model=linear(likelihood=loss(log_cosh)))
    state, _ = learner.step(learner.init(mean=np.array([0.2]), cov=0.7), np.array([1.3]), 2.0)
    theta = np.linspace(0.0, 2.0, 2_000_001)
    total = 0.5 * (theta - 0.2) ** 2 / 0.7 + 3.0 * np.logaddexp(2.0 - 1.3 * theta, 1.3 * theta - 2.0)
    np.testing.assert_allclose(learner.belief(state).mean[0], theta[np.argmin(total)], atol=2e-6)


def test_a_loss_that_bends_down_stays_positive():
    """Welsch's loss: negative curvature away from y, none far away; the covariance never grows nor turns negative."""
    learner = fx.method("LG+C-Static", model=linear(likelihood=loss(welsch)))
    state = learner.init(mean=m, cov=P)
    for gap in (0.0, 0.5, 2.0, 5.0, 30.0, 1e5):
        after, info = learner.step(state, H, H @ m + gap)
        belief = learner.belief(after)
        assert bool(info.ok)
        assert np.linalg.eigvalsh(belief.cov)[0] > 0.0
        assert np.linalg.eigvalsh(P - belief.cov)[0] > -1e-7
        if gap >= 30.0:
            np.testing.assert_allclose(belief.mean, m, atol=1e-12)


def test_missing_is_all_or_nothing():
    learner = fx.method("LG+C-Static", model=linear(likelihood=loss(squared)))
    state = learner.init(mean=m, cov=P)
    after, info = learner.step(state, H, [1.0, np.nan])
    jax.tree.map(np.testing.assert_array_equal, after.hypotheses, state.hypotheses)
    assert float(info.log_evidence) == 0.0
    assert bool(info.ok)
    _, info = learner.step(state, H, [1.0, np.inf])
    assert not bool(info.ok)


def test_a_label_of_another_size():
    hinge = loss(lambda eta, y: jnp.maximum(0.0, 1.0 - (2.0 * y[0] - 1.0) * (eta[0] - eta[1])), size=1)
    machine = fx.method("LG+C-Static", model=linear(likelihood=hinge))
    state, info = machine.step(machine.init(mean=np.zeros(4), cov=1.0), np.ones(2), 1.0)
    np.testing.assert_allclose(machine.belief(state).mean, [1.0, -1.0, 1.0, -1.0], rtol=1e-6)
    assert np.isnan(info.residual).all()


def test_refusals():
    with pytest.raises(ValueError, match="a loss is robust by its own shape; give a bounded one"):
        fx.method("WoLF-MD(c=2)+C-Static", model=linear(likelihood=loss(squared)))
    with pytest.raises(ValueError, match=r"loss\(function=...\) must be a function loss\(eta, y\), got 'l1'"):
        loss("l1")
    with pytest.raises(ValueError, match=r"loss\(size=0\) must be a whole number"):
        loss(absolute, size=0)
    wide = fx.method("LG+C-Static", model=linear(likelihood=loss(lambda eta, y: jnp.abs(y - eta))))
    with pytest.raises(ValueError, match=r"it returned an array of shape \(2,\); it must return one number"):
        wide.step(wide.init(mean=m, cov=P), H, y)
    learner = fx.method("LG+C-Static", model=nonlinear(lambda theta, x: theta[0] * x, likelihood=loss(absolute)))
    forecast = learner.predict(learner.init(mean=m, cov=P), 1.0)
    for ask in (forecast.interval, lambda: forecast.cdf(0.0), lambda: forecast.sample(jax.random.key(0))):
        with pytest.raises(ValueError, match=r"under a loss: it has no distribution of y; use .mean"):
            ask()
    with pytest.raises(ValueError, match=r"only be learned under Gaussian noise"):
        fx.method("NIG+C-Static", model=linear(likelihood=loss(absolute)))
