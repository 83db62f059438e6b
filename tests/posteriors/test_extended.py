"""Linearise and condition, against dense joint conditioning, Gauss-Newton on numeric slopes, quadrature of labels."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

from filtax.models import bernoulli, linear, nonlinear
from filtax.posteriors import Extended
from filtax.posteriors._extended import FORMS, check_form, gaussian_belief
from moments import normal, same, spd
from oracles import Moments, joint_conditioning, log_normal, logistic_newton

pytestmark = pytest.mark.x64
update = jax.jit(lambda post, belief, model, x, y, mask=None: post.update(belief, model, x, y, mask, None, None))
EXACT = [form for form in FORMS if form not in ("diagonal", "decoupled")]  # they drop correlations: tests of their own


def start(form, mean, cov):
    return gaussian_belief(form, jnp.asarray(mean), jnp.asarray(cov), has_dynamics=False)


@pytest.mark.parametrize(("D", "O", "form"), [(1, 1, "root"), *((2, 3, form) for form in EXACT)])
def test_linear_model(D, O, form):
    """Belief, evidence, forecast and strain; complete, and with the last output missing."""
    m, P, H, R, y = normal(0, D), spd(1, D), normal(2, O, D), spd(3, O), normal(4, O)
    model, belief = linear(noise=jnp.asarray(R)), start(form, m, P)
    for mask in (np.ones(O, bool), np.arange(O) < O - 1, *([None] if form == "root" else [])):
        seen = np.ones(O, bool) if mask is None else mask
        got = update(Extended(form), belief, model, H, y, mask)
        still = (np.eye(D)[None], np.zeros((1, D)), np.zeros((1, D, D)))
        want = joint_conditioning(m, P, *still, H[None], R[None], np.where(seen, y, np.nan)[None])
        same(got.belief, want, rtol=1e-9)
        np.testing.assert_allclose([got.log_evidence, got.log_score], want.log_evidence, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(got.forecast.mean, H @ m, rtol=1e-9)
        np.testing.assert_allclose(got.forecast.cov, H @ P @ H.T + R, rtol=1e-9)
        h, r = H[seen], R[np.ix_(seen, seen)]
        np.testing.assert_allclose(got.conditioning_ratio, np.trace(np.linalg.solve(r, h @ P @ h.T)), rtol=1e-9)
        assert bool(got.ok)
        assert got.trust is None  # believed in full


def curve(theta, x, lib=jnp):
    return lib.stack([lib.exp(theta[0] * x[0]), lib.sin(theta[0] + 2 * theta[1]) * x[1]])


def gauss_newton(m, P, R, x, y, steps):
    """Minimise the squared misfit to y and to the prior mean, from there; slopes by central differences."""
    at = m
    for _ in range(steps):
        H = np.stack([curve(at + e, x, np) - curve(at - e, x, np) for e in 1e-6 * np.eye(2)], axis=1) / 2e-6
        information = np.linalg.inv(P) + H.T @ np.linalg.solve(R, H)
        step = np.linalg.inv(P) @ (m - at) + H.T @ np.linalg.solve(R, y - curve(at, x, np))
        at = at + np.linalg.solve(information, step)
    return Moments(at, np.linalg.inv(information), np.nan), H


@pytest.mark.parametrize("iterations", [1, 2, 3])
def test_each_iteration_is_a_step_of_gauss_newton(iterations):
    """The datum is counted once; forecast and evidence are those of the first linearisation."""
    m, P, R, x, y = np.array([0.3, -0.2]), 0.2 * spd(1, 2), 0.1 * spd(3, 2), np.array([1.0, 2.0]), np.array([2.0, 1.0])
    model = nonlinear(curve, noise=jnp.asarray(R))
    got = update(Extended("covariance", iterations), start("covariance", m, P), model, x, y)
    same(got.belief, gauss_newton(m, P, R, x, y, iterations)[0], rtol=1e-6)
    H = gauss_newton(m, P, R, x, y, 1)[1]
    np.testing.assert_allclose(got.log_evidence, log_normal(y - curve(m, x, np), H @ P @ H.T + R), rtol=1e-7)


def test_labels():
    """The belief takes Newton's step; the evidence is the average of the probability over the belief."""
    m, P, x = normal(0, 2), spd(1, 2), normal(2, 2)
    z, w = np.polynomial.hermite_e.hermegauss(60)
    for label in (0.0, 1.0):
        got = update(Extended("root"), start("root", m, P), linear(likelihood=bernoulli()), x, np.array([label]))
        same(got.belief, logistic_newton(m, P, x, label), rtol=1e-9)
        p = w @ scipy.special.expit((2 * label - 1) * (x @ m + np.sqrt(x @ P @ x) * z)) / w.sum()
        np.testing.assert_allclose(got.log_evidence, np.log(p), rtol=1e-5)


def test_a_prediction_that_is_no_number_is_refused():
    """Without a mask only the flag tells."""
    model = nonlinear(lambda theta, x: jnp.sqrt(theta[0] - 99.0), noise=0.5)
    got = update(Extended("covariance"), start("covariance", np.zeros(2), np.eye(2)), model, 1.0, np.zeros(1))
    assert (bool(got.ok), float(got.log_evidence)) == (False, -np.inf)


def test_forecast():
    """Averaged over the parameters, or at their mean alone."""
    m, P, x = normal(0, 2), spd(1, 2), normal(2, 2)
    for plugin, var in ((False, x @ P @ x + 0.5), (True, 0.5)):
        made = Extended().forecast(start("root", m, P), linear(noise=0.5), jnp.asarray(x), None, plugin)
        np.testing.assert_allclose([made.mean, made.var], [x @ m, var], rtol=1e-10)
        assert made.mean.shape == ()


def test_forms():
    """The square root, except for many parameters that drift; a precision refuses what is certain."""
    sizes = [(64, True), (65, True), (65, False)]
    beliefs = [Extended().start(jnp.zeros(D), jnp.ones(D), has_dynamics) for D, has_dynamics in sizes]
    assert [type(b).__name__ for b in beliefs] == ["SquareRoot", "Covariance", "SquareRoot"]
    for form, kind in FORMS.items():
        assert isinstance(Extended(form).start(jnp.zeros(2), jnp.eye(2), True), kind)
    check_form("covariance", jnp.zeros(2))
    for cov in (jnp.array([1.0, 0.0]), jnp.ones((2, 2))):
        with pytest.raises(ValueError, match="A precision cannot hold a zero variance"):
            Extended("precision").check_start(jnp.zeros(2), cov)
    assert [Extended(iterations=n).name for n in (1, 2)] == ["LG", "IEKF"]
    with pytest.raises(ValueError, match=r"LG\(form='dense'\) must be one of auto, root, covariance, precision"):
        Extended("dense")
    with pytest.raises(ValueError, match=r"IEKF\(iterations=...\) must be a whole number of at least 1, got 0"):
        Extended(iterations=0)
