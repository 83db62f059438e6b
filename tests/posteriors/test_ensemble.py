"""The ensemble Kalman filter against the exact filter, its own sample moments in numpy, and its statistics."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import filtax as fx
from filtax.beliefs import Ensemble
from filtax.models import Likelihood, Whitened
from filtax.posteriors import EnsembleKalman, ensemble_kalman

keys = lambda count: jax.random.split(jax.random.key(0), count)
rng = np.random.default_rng(3)
F, Q = np.array([[1.0, 0.5], [0.0, 0.9]]), np.array([[0.1, 0.02], [0.02, 0.2]])
X, Y = rng.normal(size=(6, 2)), 2.0 * rng.normal(size=6)
R = np.array([[1.0, 0.4], [0.4, 0.5]])


def dynamics():
    return fx.priors.linear_dynamics(F, Q=Q)


def cloud(S=8, D=3, seed=0):
    return Ensemble.of(jnp.asarray(np.random.default_rng(seed).normal(size=(S, D))), jax.random.key(seed))


@jax.jit
def update(method, belief, model, x, y, mask=None):
    return method.update(belief, model, x, y, mask, None, None)


def kalman(members, H, y, R):
    """The Kalman update of a sample's moments, in numpy."""
    m, P = members.mean(0), np.cov(members.T)
    K = P @ H.T @ np.linalg.inv(H @ P @ H.T + R)
    return m + K @ (y - H @ m), P - K @ H @ P, K


@pytest.mark.nightly
@pytest.mark.x64
@pytest.mark.parametrize("kind", ["EnKF", pytest.param("ETKF", marks=pytest.mark.nightly)])
def test_error_falls_as_the_root_of_the_ensemble(kind):
    """Claim 8: against the exact filter, on a linear system with process noise, over many seeds."""
    exact = fx.method("LG+C-LSSM", model=fx.models.linear(noise=0.5), prior=dynamics())
    state, infos = exact.scan(exact.init(mean=jnp.zeros(2), cov=1.0), X, Y)
    sizes = [32, 128, 512] if kind == "EnKF" else [32, 128, 512, 2048]  # by night there is time for the largest
    mean_error, cov_error = [], []
    for size in sizes:
        method = fx.method(f"{kind}(size={size})+C-LSSM", model=fx.models.linear(noise=0.5), prior=dynamics())

        def run(key, method=method):
            end, infos = method.scan(method.init(mean=jnp.zeros(2), cov=1.0, key=key), X, Y, keep=("log_evidence",))
            return method.belief(end).mean, method.belief(end).cov, infos.log_evidence.sum()

        mean, cov, evidence = jax.vmap(run)(keys(64))
        mean_error.append(np.sqrt(np.mean(np.square(mean - exact.belief(state).mean[None]))))
        cov_error.append(np.sqrt(np.mean(np.square(cov - exact.belief(state).cov[None]))))
    for error in (mean_error, cov_error):
        slope = np.polyfit(np.log(sizes), np.log(error), 1)[0]
        assert -0.6 < slope < -0.4
    np.testing.assert_allclose(np.mean(evidence), infos.log_evidence.sum(), atol=0.05)


@pytest.mark.x64
@pytest.mark.parametrize("seen", [(True, True), (True, False)])
def test_transform_is_the_kalman_update_of_the_sample_moments(seen):
    belief, seen = cloud(), np.array(seen)
    H, y = np.random.default_rng(1).normal(size=(2, 3)), np.array([0.7, -1.2])
    method = EnsembleKalman(size=8, deterministic=True)
    got = update(method, belief, fx.models.linear(noise=R), jnp.asarray(H), jnp.asarray(y), jnp.asarray(seen))
    mean, cov, _ = kalman(np.asarray(belief.members), H[seen], y[seen], R[np.ix_(seen, seen)])
    np.testing.assert_allclose(got.belief.mean, mean, rtol=1e-11)
    np.testing.assert_allclose(got.belief.cov, cov, rtol=1e-10, atol=1e-13)
    m, P = np.asarray(belief.mean), np.asarray(belief.cov)
    law = scipy.stats.multivariate_normal(H[seen] @ m, H[seen] @ P @ H[seen].T + R[np.ix_(seen, seen)])
    np.testing.assert_allclose(got.log_evidence, law.logpdf(y[seen]), rtol=1e-11)


@pytest.mark.x64
def test_perturbed_observations_have_the_right_moments():
    """The mean moves exactly by the sample gain; the covariance is (I-KH) P (I-KH)' + K R K' on average."""
    belief = cloud()
    H, y = jnp.asarray(np.random.default_rng(1).normal(size=(2, 3))), jnp.array([0.7, -1.2])
    method = EnsembleKalman(size=8)

    def one(key):
        at = Ensemble.of(belief.members, key)
        return method.update(at, fx.models.linear(noise=R), H, y, None, None, None).belief

    got = jax.jit(jax.vmap(one))(keys(4000))
    mean, cov, _ = kalman(np.asarray(belief.members), np.asarray(H), np.asarray(y), R)
    np.testing.assert_allclose(jnp.mean(got.members, axis=1), np.tile(mean, (4000, 1)), rtol=1e-10)
    covs = jax.vmap(lambda one: one.cov)(got)
    error = np.std(covs, axis=0) / np.sqrt(4000)
    assert np.all(np.abs(np.mean(covs, axis=0) - cov) < 4 * error)


@pytest.mark.x64
def test_members_stay_in_the_span_of_the_first_ones():
    """Identity 65: without process noise nothing new is ever added."""
    method = fx.method("EnKF(size=4)+C-Static", model=fx.models.linear(noise=0.5))
    state = method.init(mean=jnp.zeros(6), cov=1.0, key=jax.random.key(2))
    rows = np.random.default_rng(0).normal(size=(10, 6))
    end, _ = method.scan(state, rows, rows[:, 0])
    first, last = (np.asarray(method.belief(s).members) for s in (state, end))
    basis = (first - first.mean(0)).T
    for member in last:
        weights = np.linalg.lstsq(basis, member - first.mean(0), rcond=None)[0]
        np.testing.assert_allclose(basis @ weights, member - first.mean(0), atol=1e-12)


@pytest.mark.x64
@pytest.mark.nightly
def test_collapse_is_told_and_enough_members_are_accurate():
    """The detector fires for S <= D; at S = 20 D the error is at most twice that of the exact posterior mean."""
    D = 50
    draw = np.random.default_rng(0)
    truth, rows = draw.normal(size=D), draw.normal(size=(2000, D))
    y = rows @ truth + 0.1 * draw.normal(size=2000)
    for size, T in ((10, 2000), (50, 2000), (1000, 200)):
        method = fx.method(f"EnKF(size={size})+C-Static", model=fx.models.linear(noise=0.01))
        start = method.init(mean=jnp.zeros(D), cov=1.0, key=jax.random.key(1))
        end, _ = method.scan(start, rows[:T], y[:T], keep=("ok",))
        if size <= D:
            with pytest.warns(fx.CollapseWarning, match="more members"):
                method.belief(end)
        else:
            exact = np.linalg.solve(np.eye(D) + rows[:T].T @ rows[:T] / 0.01, rows[:T].T @ y[:T] / 0.01)
            error = np.linalg.norm(method.belief(end).mean - truth)
            assert error < 2.0 * np.linalg.norm(exact - truth)


@pytest.mark.x64
def test_outliers_are_no_collapse():
    method = fx.method("EnKF(size=40)+C-Static", model=fx.models.linear(noise=0.01))
    draw = np.random.default_rng(0)
    rows = draw.normal(size=(400, 3))
    y = rows.sum(1) + 0.1 * draw.normal(size=400) + np.where(draw.random(400) < 0.02, 5.0, 0.0)
    end, _ = method.scan(method.init(mean=jnp.zeros(3), cov=1.0, key=jax.random.key(1)), rows, y, keep=("ok",))
    assert not bool(method.belief(end).collapsed)  # and no warning, which would be an error here


@pytest.mark.x64
def test_localised_gain():
    """The gain is multiplied element by element; a function of indices is the same as its matrix."""
    belief, taper = cloud(S=30), np.random.default_rng(5).random((3, 2))
    H, y, noise = np.random.default_rng(1).normal(size=(2, 3)), np.array([0.7, -1.2]), np.array([1.0, 0.5])
    given = [
        ensemble_kalman(30, localisation=taper),
        ensemble_kalman(30, localisation=lambda i, j: jnp.asarray(taper)[i, j]),
    ]
    args = (belief, fx.models.linear(noise=jnp.asarray(noise)), jnp.asarray(H), jnp.asarray(y))
    got = [update(method, *args).belief for method in given]
    np.testing.assert_array_equal(got[0].members, got[1].members)
    K = kalman(np.asarray(belief.members), H, y, np.diag(noise))[2]
    move = (taper * K) @ (y - H @ np.asarray(belief.mean))
    np.testing.assert_allclose(got[0].mean - belief.mean, move, rtol=1e-10)
    with pytest.raises(ValueError, match=r"give \(3, 2\)"):
        update(ensemble_kalman(30, localisation=taper.T), *args)


@pytest.mark.x64
def test_labels_have_the_evidence_of_the_members():
    """Log of the mean probability over members, and a move in the direction of the label."""
    belief, x = cloud(S=30), np.array([1.0, -0.5, 2.0])
    model = fx.models.linear(likelihood=fx.models.bernoulli())
    got = update(EnsembleKalman(size=30), belief, model, jnp.asarray(x), jnp.ones(1))
    p = 1.0 / (1.0 + np.exp(-np.asarray(belief.members) @ x))
    np.testing.assert_allclose(got.log_evidence, np.log(p.mean()), rtol=1e-12)
    np.testing.assert_allclose(got.forecast.mean, p.mean(), rtol=1e-12)
    # statistical linearisation: the Newton step with the sample covariance
    eta, P = np.asarray(belief.members) @ x, np.cov(np.asarray(belief.members).T)
    q = 1.0 / (1.0 + np.exp(-eta.mean()))
    step = P @ x / (1.0 / (q * (1 - q)) + x @ P @ x) * (1 - q) / (q * (1 - q))
    np.testing.assert_allclose(got.belief.mean - belief.mean, step, rtol=1e-10)


@pytest.mark.x64
def test_inflation_multiplies_the_deviations_of_what_is_taken():
    belief, x = cloud(), jnp.ones(3)
    args = (fx.models.linear(noise=1.0), x, jnp.ones(1))
    inflated = EnsembleKalman(size=8, inflation=1.5, deterministic=True)
    wide = np.asarray(belief.mean) + 1.5 * np.asarray(belief.deviations)
    mean, cov, _ = kalman(wide, np.ones((1, 3)), np.ones(1), np.eye(1))
    got = update(inflated, belief, *args)
    np.testing.assert_allclose(got.belief.mean, mean, rtol=1e-11)
    np.testing.assert_allclose(got.belief.cov, cov, rtol=1e-10)
    unseen = update(inflated, belief, *args, jnp.zeros(1, bool))
    np.testing.assert_array_equal(unseen.belief.members, belief.members)
    assert float(unseen.log_evidence) == 0.0


class Gate(Likelihood):
    """A robust likelihood as the contract has it: whiten reports a trust, `plain` is without one."""

    inner: Any
    has_covariance = True

    @property
    def plain(self):
        return self.inner

    def covariance(self, x, eta):
        return self.inner.covariance(x, eta)

    def predictive(self, eta, spread, x, scalar):
        return self.inner.predictive(eta, spread, x, scalar)

    def whiten(self, eta, x, y, mask):
        plain = self.inner.whiten(eta, x, y, mask)
        w = jnp.where(jnp.max(jnp.abs(plain.residual)) < 5.0, 1.0, 0.0)
        return Whitened(w * plain.whitener, jnp.where(w > 0, plain.residual, 0.0), plain.log_scale, w)

    def log_score(self, seen, done, plain, y, mask):
        return plain


@pytest.mark.x64
@pytest.mark.parametrize("deterministic", [False, True])
def test_trust_is_of_each_member_and_component(deterministic):
    """A component that is rejected is a missing one, for each member by its own prediction."""
    belief, H = cloud(), jnp.asarray(np.random.default_rng(1).normal(size=(2, 3)))
    plain = fx.models.linear(noise=R)
    robust = fx.models.Model(plain.predictor, Gate(plain.likelihood))
    method = EnsembleKalman(size=8, deterministic=deterministic)
    fine = jnp.array([0.5, -0.5])
    same = [update(method, belief, model, H, fine, None).belief.members for model in (plain, robust)]
    np.testing.assert_allclose(*same, rtol=1e-9)
    for far in (1e6, 1e200):
        got = update(method, belief, robust, H, jnp.array([0.5, far]), None)
        one = update(method, belief, plain, H, jnp.array([0.5, 0.0]), jnp.array([True, False]))
        np.testing.assert_allclose(got.belief.members, one.belief.members, rtol=1e-9)
        assert bool(got.ok)
    # between: some members accept the second component and some do not
    predicted = np.asarray(belief.members @ H.T)[:, 1]
    edge = np.median(predicted) + 5.0 * np.sqrt(R[1, 1])
    if not deterministic:
        got = update(method, belief, robust, H, jnp.array([0.5, edge]), None).belief.members
        both = update(method, belief, plain, H, jnp.array([0.5, edge]), None).belief.members
        one = update(method, belief, plain, H, jnp.array([0.5, 0.0]), jnp.array([True, False])).belief.members
        rejects = edge - predicted > 5.0 * np.sqrt(R[1, 1])
        np.testing.assert_allclose(got, np.where(rejects[:, None], one, both), rtol=1e-9)
        assert 0 < rejects.sum() < 8


def test_a_model_without_derivative_will_do():
    def h(theta, x):  # reverse mode cannot see through this loop
        return jax.lax.while_loop(
            lambda c: c[1] < 3.0, lambda c: (c[0] * 1.1, c[1] + jnp.abs(c[0]) + 1.0), (theta[0], 0.0 * x)
        )[0]

    method = fx.method("EnKF(size=10)+C-Static", model=fx.models.nonlinear(h, noise=0.5))
    state = method.init(mean=jnp.ones(1), cov=1.0, key=jax.random.key(0))
    state, info = method.step(state, 1.0, 2.0)
    assert bool(info.ok)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: fx.method("EnKF(size=1)+C-Static", model=fx.models.linear(noise=1.0)), "at least 2"),
        (lambda: fx.method("ETKF(size=2.5)+C-Static", model=fx.models.linear(noise=1.0)), "whole number"),
        (lambda: ensemble_kalman(9, inflation=-1.0), "above 0"),
        (lambda: ensemble_kalman(9, localisation=np.full((2, 1), 1.5)), r"\[0, 1\]"),
        (lambda: started(None), r"EnKF draws at random; give key=jax.random.key\(0\)"),
        (lambda: started(0), "single random key"),
        (lambda: started(keys(2)), "single random key"),
    ],
)
def test_what_cannot_be_is_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def started(key):
    return fx.method("EnKF(size=9)+C-Static", model=fx.models.linear(noise=1.0)).init(mean=jnp.zeros(1), key=key)
