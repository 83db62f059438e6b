"""OB against the fixed-point equations of Wang et al. (2018) in plain numpy, its limits, and what an outlier does."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import digamma

import filtax as fx
from filtax.models import linear

rng = np.random.default_rng(4)
D, O = 3, 2
H = rng.normal(size=(O, D))
P = np.array([[1.0, 0.2, 0.0], [0.2, 0.8, -0.1], [0.0, -0.1, 1.5]])
R = np.array([[0.5, 0.2], [0.2, 1.0]])
m = rng.normal(size=D)
good = H @ m + np.array([0.4, -0.3])
FORMS = ["root", "covariance", "precision"]


def bayes(y, H, R, w):
    """The Kalman update with noise R/w, in the information form."""
    C = np.linalg.inv(np.linalg.inv(P) + w * H.T @ np.linalg.inv(R) @ H)
    return m + w * C @ H.T @ np.linalg.inv(R) @ (y - H @ m), C


def wang(y, a, b, iterations, H=H, R=R):
    """q(theta), q(pi), q(z) in turn, from z = 1."""
    z = 1.0
    for _ in range(iterations):
        mean, C = bayes(y, H, R, z)
        second = np.outer(y - H @ mean, y - H @ mean) + H @ C @ H.T
        e, f = a + z, b + 1.0 - z
        good = np.exp(digamma(e) - digamma(e + f) - 0.5 * np.trace(second @ np.linalg.inv(R)))
        z = good / (good + np.exp(digamma(f) - digamma(e + f)))
    return (*bayes(y, H, R, z), z)


def step(name, y, H=H, R=R):
    method = fx.method(name, model=linear(noise=R))
    state, info = method.step(method.init(mean=m, cov=P), H, y)
    return method.belief(state), info


@pytest.mark.x64
@pytest.mark.parametrize("form", FORMS)
def test_it_solves_the_published_equations(form):
    weights = []
    for size in (0.0, 2.0, 3.0, 3.5, 4.0, 6.0):
        y = good + size * np.array([0.8, -0.6])
        belief, info = step(f"OB(a=2, b=0.5, iterations=3, tolerance=0, form={form})+C-Static", y)
        mean, C, z = wang(y, 2.0, 0.5, 3)
        np.testing.assert_allclose(info.trust, z, rtol=1e-10)
        np.testing.assert_allclose(belief.mean, mean, rtol=1e-10)
        np.testing.assert_allclose(belief.cov, C, rtol=1e-10, atol=1e-12)
        weights.append(z)
    assert weights[0] > 0.7
    assert any(0.05 < weight < 0.7 for weight in weights)
    assert weights[-1] < 0.05


@pytest.mark.x64
def test_without_outliers_in_the_prior_it_is_the_kalman_filter():
    Y = np.stack([good, good + 3.0, good - 6.0])
    ends = []
    for name in ("OB(a=1e60)+C-ACI(q=0.1)", "OB(b=1e-9)+C-ACI(q=0.1)", "LG+C-ACI(q=0.1)"):
        method = fx.method(name, model=linear(noise=R))
        end, infos = method.scan(method.init(mean=m, cov=P), np.stack([H] * 3), Y)
        ends.append((method.belief(end), infos))
    kalman, plain = ends.pop()
    for belief, infos in ends:
        np.testing.assert_allclose(belief.mean, kalman.mean, atol=1e-8)
        np.testing.assert_allclose(belief.cov, kalman.cov, atol=1e-8)
        np.testing.assert_allclose(infos.trust, 1.0, atol=1e-8)
        np.testing.assert_allclose(infos.log_evidence, plain.log_evidence, rtol=1e-10)


@pytest.mark.x64
@pytest.mark.parametrize("form", ["root", *(pytest.param(form, marks=pytest.mark.nightly) for form in FORMS[1:])])
def test_an_outlier_has_a_bounded_influence_and_is_dropped(form):
    ob, kf = (fx.method(f"{name}(form={form})+C-Static", model=linear(noise=R)) for name in ("OB", "LG"))
    state = ob.init(mean=m, cov=P)
    far = good + np.concatenate([np.linspace(0.1, 60.0, 300), np.logspace(2, 300, 150)])[:, None] * np.array(
        [0.6, -0.8]
    )
    influence = fx.posterior_influence(ob, state, H, good, far)
    most = float(influence.max())
    assert np.isfinite(most)
    assert most < 150.0 < 1e6 < float(fx.posterior_influence(kf, state, H, good, far[310:320]).max())
    assert float(influence[-1]) == float(influence[-100])
    after, info = ob.step(state, H, far[-1])
    assert float(info.trust) == 0.0
    assert bool(info.ok)
    for old, new in zip(
        jax.tree.leaves(state.hypotheses.belief), jax.tree.leaves(after.hypotheses.belief), strict=True
    ):
        np.testing.assert_array_equal(old, new)


@pytest.mark.x64
def test_a_datum_below_the_tolerance_is_dropped():
    """The belief stays bit for bit; above the tolerance the same weight counts."""
    y = good + 5.0 * np.array([0.8, -0.6])
    z = wang(y, 2.0, 0.5, 4)[2]
    assert 1e-4 < z < 1e-3
    for tolerance, left in ((1e-3, 0.0), (1e-4, z)):
        belief, info = step(f"OB(a=2, b=0.5, tolerance={tolerance})+C-Static", y)
        np.testing.assert_allclose(info.trust, left, rtol=1e-9)
        assert (np.array(belief.mean) == m).all() == (left == 0.0)


@pytest.mark.x64
def test_a_missing_output_is_an_output_that_is_not_there():
    y = np.array([good[0] + 2.0, np.nan])
    belief, info = step("OB+C-Static", y)
    mean, C, z = wang(y[:1], 0.9, 0.1, 4, H[:1], R[:1, :1])
    np.testing.assert_allclose(info.trust, z, rtol=1e-10)
    np.testing.assert_allclose(belief.mean, mean, rtol=1e-10)
    np.testing.assert_allclose(belief.cov, C, rtol=1e-10, atol=1e-12)


@pytest.mark.x64
def test_hypotheses_are_weighed_by_the_mixture_and_an_outlier_is_no_change():
    """The probability of a change after y, from the two densities; far away it is the hazard."""
    method = fx.method("OB(a=3, b=1)+RL[8]-PR(hazard=0.1)", model=linear(noise=1.0))
    state = method.init(mean=np.zeros(1), cov=1.0)
    state, _ = method.step(state, np.ones(1), 2.0)
    belief = method.belief(state)

    def density(y, mean, var):
        return 0.75 * np.exp(-0.5 * (y - mean) ** 2 / var) / np.sqrt(2 * np.pi * var) + 0.25 / np.sqrt(2 * np.pi)

    _, far = method.step(state, np.ones(1), 1e30)
    np.testing.assert_allclose(far.change_probability, 0.1, rtol=1e-9)
    go_on = 0.9 * density(-1.0, float(belief.mean[0]), float(belief.cov[0, 0]) + 1.0)
    reset = 0.1 * density(-1.0, 0.0, 2.0)
    _, near = method.step(state, np.ones(1), -1.0)
    np.testing.assert_allclose(near.change_probability, reset / (reset + go_on), rtol=1e-6)


@pytest.mark.x64
def test_a_network_is_linearised_at_the_prior_mean():
    """EKF-B is KF-B on the linearised model."""
    h = lambda theta, x: jnp.stack([jnp.sin(theta @ x), theta[0] * theta[2]])
    x = np.array([0.3, -0.2, 0.5])
    J, value = jax.jacobian(h)(jnp.asarray(m), x), np.asarray(h(jnp.asarray(m), x))
    y = value + np.array([1.5, -1.0])
    method = fx.method("OB+C-Static", model=fx.models.nonlinear(h, noise=R))
    state, _ = method.step(method.init(mean=m, cov=P), x, y)
    mean, C, _ = wang(y - value + J @ m, 0.9, 0.1, 4, np.asarray(J))
    np.testing.assert_allclose(method.belief(state).mean, mean, rtol=1e-10)
    np.testing.assert_allclose(method.belief(state).cov, C, rtol=1e-10, atol=1e-12)


def test_a_nan_of_the_model_is_refused_even_though_it_is_far():
    method = fx.method("OB+C-Static", model=fx.models.nonlinear(lambda theta, x: jnp.log(x) + theta, noise=1.0))
    state = method.init(mean=np.zeros(1, "float32"), cov=1.0)
    after, info = method.step(state, np.float32(-1.0), np.float32(1.0))
    assert not bool(info.ok)
    np.testing.assert_array_equal(after.hypotheses.belief.mean, state.hypotheses.belief.mean)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("OB(a=0)", r"OB\(a=...\) must be finite and above 0"),
        ("OB(b=-1)", r"OB\(b=...\) must be finite and above 0"),
        ("OB(iterations=2.5)", "whole number of at least 1"),
        ("OB(iterations=0)", "whole number of at least 1"),
        ("OB(tolerance=2)", r"must lie in \[0, 1\]"),
        ("OB(form=cube)", "must be one of"),
        ("WoLF-MD(c=4)+OB", "weighs each datum itself"),
    ],
)
def test_what_makes_no_sense_is_refused(name, message):
    with pytest.raises(ValueError, match=message):
        fx.method(f"{name}+C-Static", model=linear(noise=1.0))
