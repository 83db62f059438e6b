"""Other people's filters on the same data: statsmodels, filterpy, dynamax, blackjax and scikit-learn.

In filtax the transition acts before the first datum; statsmodels and dynamax start with the belief that meets it. They
are given the prior pushed through one transition. dynamax adds 1e-9 to the diagonal of every matrix that it solves
with, whatever its size, so its means and covariances are only good to about eight digits here.
"""

import warnings

import blackjax.smc.base as smc
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
import sklearn.linear_model
from blackjax.smc.resampling import systematic
from filterpy.kalman import KalmanFilter
from scipy.special import expit
from statsmodels.tsa.statespace.kalman_filter import KalmanFilter as StatsmodelsFilter

import filtax as fx

with warnings.catch_warnings():
    warnings.filterwarnings("ignore", message="jax.core.pytype_aval_mappings", category=DeprecationWarning)
    from dynamax.generalized_gaussian_ssm import EKFIntegrals, ParamsGGSSM, conditional_moments_gaussian_filter
    from dynamax.linear_gaussian_ssm import lgssm_filter
    from dynamax.linear_gaussian_ssm.inference import make_lgssm_params
    from dynamax.nonlinear_gaussian_ssm import ParamsNLGSSM, extended_kalman_filter

pytestmark = pytest.mark.x64
TIGHT, BOOSTED = dict(rtol=1e-10, atol=1e-12), dict(rtol=1e-7, atol=1e-8)
KEEP = ("mean", "var", "log_evidence", "belief_mean", "belief_cov")
T, D, O = 60, 4, 2


def spd(rng, size):
    A = rng.normal(size=(size, size))
    return A @ A.T + 0.5 * np.eye(size)


@pytest.fixture
def system():
    """Constant dynamics with an offset, a full R, matrices H that change with time, one element in ten missing."""
    rng = np.random.default_rng(8)
    F, b, Q, R = rng.normal(size=(D, D)) / 3, rng.normal(size=D), 0.2 * spd(rng, D), spd(rng, O)
    H, y = rng.normal(size=(T, O, D)), rng.normal(size=(T, O))
    y[rng.random((T, O)) < 0.1] = np.nan
    y[7] = np.nan
    return rng.normal(size=D), spd(rng, D), F, b, Q, H, R, y


def ours(m0, P0, F, b, Q, H, R, y, form="root"):
    m0, P0, F, b, Q, H, R, y = map(jnp.asarray, (m0, P0, F, b, Q, H, R, y))
    prior = fx.priors.linear_dynamics(F=F, b=b, Q=Q)
    kf = fx.method(f"LG(form={form})+C-LSSM", model=fx.models.linear(noise=R), prior=prior)
    return kf.scan(kf.init(mean=m0, cov=P0), H, y, keep=KEEP)[1]


@pytest.mark.parametrize("form", ["root", "covariance", "precision"])
def test_statsmodels_filters_the_same(system, form):
    """Means, covariances, forecasts and log likelihood of each step, with missing elements."""
    m0, P0, F, b, Q, H, R, y = system
    got = ours(*system, form)
    peer = StatsmodelsFilter(O, D, obs_cov=R, transition=F, selection=np.eye(D), state_cov=Q)
    peer.bind(y.copy())
    peer.design, peer.state_intercept = np.moveaxis(H, 0, -1), b[:, None]
    peer.initialize_known(F @ m0 + b, F @ P0 @ F.T + Q)
    want = peer.filter()
    np.testing.assert_allclose(got.belief_mean, want.filtered_state.T, **TIGHT)
    np.testing.assert_allclose(got.belief_cov, np.moveaxis(want.filtered_state_cov, -1, 0), **TIGHT)
    np.testing.assert_allclose(got.mean, want.forecasts.T, **TIGHT)
    np.testing.assert_allclose(got.log_evidence, want.llf_obs, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(got.log_evidence.sum(), want.llf, rtol=1e-8)


def test_filterpy_filters_the_same(system):
    """It predicts first, as we do; it takes whole rows only."""
    m0, P0, F, b, Q, H, R, y = system
    y = np.where(np.isnan(y).any(axis=1, keepdims=True), np.nan, y)
    got = ours(m0, P0, F, b, Q, H, R, y)
    peer = KalmanFilter(D, O, dim_u=1)
    peer.x, peer.P, peer.F, peer.Q, peer.R, peer.B = m0[:, None], P0, F, Q, R, b[:, None]
    for t in range(T):
        peer.predict(u=np.ones((1, 1)))
        if not np.isnan(y[t, 0]):
            peer.update(y[t][:, None], H=H[t])
            np.testing.assert_allclose(got.log_evidence[t], peer.log_likelihood, rtol=1e-8)
        np.testing.assert_allclose(got.belief_mean[t], peer.x[:, 0], **TIGHT)
        np.testing.assert_allclose(got.belief_cov[t], peer.P, **TIGHT)


def test_filterpy_forgets_the_same():
    """Its fading memory multiplies P by α² before each datum; ours is a transition F = α I of rescaled data."""
    rng, alpha = np.random.default_rng(3), 1.05
    X, y = rng.normal(size=(T, D)), rng.normal(size=T)
    kf = fx.method(
        "LG+C-LSSM",
        model=fx.models.linear(noise=0.5),
        prior=fx.priors.linear_dynamics(F=alpha * jnp.eye(D), Q=jnp.zeros((D, D))),
    )
    grown = alpha ** np.arange(1, T + 1)
    state, _ = kf.scan(kf.init(mean=jnp.zeros(D), cov=2.0), jnp.asarray(X), jnp.asarray(grown * y))
    peer = KalmanFilter(D, 1)
    peer.P, peer.R, peer.Q, peer.alpha = 2.0 * np.eye(D), 0.5 * np.eye(1), np.zeros((D, D)), alpha
    for x, target in zip(X, y, strict=True):
        peer.predict()
        peer.update(target, H=x[None])
    np.testing.assert_allclose(kf.belief(state).mean / grown[-1], peer.x[:, 0], **TIGHT)
    np.testing.assert_allclose(kf.belief(state).cov, peer.P, **TIGHT)


def loosely(function, *args):
    """dynamax mixes dtypes and ranks, which our tests forbid to ourselves."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        return function(*args)


def test_dynamax_filters_the_same(system):
    m0, P0, F, b, Q, H, R, y = map(jnp.asarray, system)
    y = jnp.where(jnp.isnan(y), 0.3, y)
    got = ours(m0, P0, F, b, Q, H, R, y)
    params = make_lgssm_params(F @ m0 + b, F @ P0 @ F.T + Q, F, Q, H, R, dynamics_bias=b)
    want = loosely(lgssm_filter, params, y)
    np.testing.assert_allclose(got.belief_mean, want.filtered_means, **BOOSTED)
    np.testing.assert_allclose(got.belief_cov, want.filtered_covariances, **BOOSTED)
    np.testing.assert_allclose(got.log_evidence.sum(), want.marginal_loglik, rtol=1e-8)


def test_dynamax_extended_filter_on_a_pendulum():
    """Non-linear f and h with full noise: where the transition is linearised, and in which order, shows."""
    f = lambda s: jnp.stack([s[0] + 0.1 * s[1], s[1] - 0.981 * jnp.sin(s[0])])
    h = lambda s: jnp.stack([jnp.sin(s[0]), s[0] * s[1]])
    rng = np.random.default_rng(5)
    Q, R = jnp.asarray(0.02 * spd(rng, 2)), jnp.asarray(0.1 * spd(rng, 2))
    m0, P0, y = jnp.array([1.0, 0.3]), jnp.asarray(0.2 * spd(rng, 2)), jnp.asarray(rng.normal(size=(T, 2)))
    ekf = fx.method(
        "LG+C-LSSM",
        model=fx.models.nonlinear(lambda params, x: h(params), noise=R),
        prior=fx.priors.nonlinear_dynamics(f, Q),
    )
    got = ekf.scan(ekf.init(mean=m0, cov=P0), jnp.zeros((T, 1)), y, keep=KEEP)[1]
    F = jax.jacfwd(f)(m0)
    want = loosely(extended_kalman_filter, ParamsNLGSSM(f(m0), F @ P0 @ F.T + Q, f, Q, h, R), y)
    np.testing.assert_allclose(got.belief_mean, want.filtered_means, **BOOSTED)
    np.testing.assert_allclose(got.belief_cov, want.filtered_covariances, **BOOSTED)
    np.testing.assert_allclose(got.log_evidence.sum(), want.marginal_loglik, rtol=1e-8)


@pytest.mark.parametrize("family", ["bernoulli", "poisson"])
def test_dynamax_moment_filter_on_counts_and_labels(family):
    """Conditional moments, linearised: mean and variance of y as functions of the state, under drift."""
    rng = np.random.default_rng(6)
    X = jnp.asarray(rng.normal(size=(T, D)))
    if family == "bernoulli":
        likelihood, mean, var = fx.models.bernoulli(), jax.nn.sigmoid, lambda p: p * (1 - p)
        y = jnp.asarray(rng.integers(0, 2, size=T).astype(float))
    else:
        likelihood, mean, var = fx.models.poisson(), jnp.exp, lambda rate: rate
        y = jnp.asarray(rng.poisson(1.0, size=T).astype(float))
    kf = fx.method("LG+C-ACI(q=0.01)", model=fx.models.linear(likelihood=likelihood))
    got = kf.scan(kf.init(mean=jnp.zeros(D), cov=0.5), X, y, keep=KEEP)[1]
    link = lambda theta, x: mean(jnp.atleast_1d(x @ theta))
    params = ParamsGGSSM(
        initial_mean=jnp.zeros(D),
        initial_covariance=0.51 * jnp.eye(D),
        dynamics_function=lambda theta, x: theta,
        dynamics_covariance=0.01 * jnp.eye(D),
        emission_mean_function=link,
        emission_cov_function=lambda theta, x: var(link(theta, x))[:, None],
    )
    want = loosely(conditional_moments_gaussian_filter, params, EKFIntegrals(), y[:, None], X)
    np.testing.assert_allclose(got.belief_mean, want.filtered_means, **BOOSTED)
    np.testing.assert_allclose(got.belief_cov, want.filtered_covariances, **BOOSTED)


def test_scikit_learn_ridge_is_the_static_filter():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(T, D)), rng.normal(size=T)
    kf = fx.method("LG+C-Static", model=fx.models.linear(noise=0.3))
    state, _ = kf.scan(kf.init(mean=jnp.zeros(D), cov=2.0), jnp.asarray(X), jnp.asarray(y))
    want = sklearn.linear_model.Ridge(alpha=0.15, fit_intercept=False, solver="cholesky").fit(X, y)
    np.testing.assert_allclose(kf.belief(state).mean, want.coef_, **TIGHT)


def test_scikit_learn_bayesian_ridge_is_the_static_filter():
    """It learns two variances by maximum evidence; with these, its posterior and that evidence are ours."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(T, D))
    y = X @ np.array([1.0, -2.0, 0.5, 0.0]) + 0.3 * rng.normal(size=T)
    flat = dict(alpha_1=0.0, alpha_2=0.0, lambda_1=0.0, lambda_2=0.0)
    peer = sklearn.linear_model.BayesianRidge(fit_intercept=False, compute_score=True, tol=1e-12, max_iter=999, **flat)
    peer.fit(X, y)
    kf = fx.method("LG+C-Static", model=fx.models.linear(noise=1 / peer.alpha_))
    state, infos = kf.scan(kf.init(mean=jnp.zeros(D), cov=1 / peer.lambda_), jnp.asarray(X), jnp.asarray(y))
    np.testing.assert_allclose(kf.belief(state).mean, peer.coef_, **TIGHT)
    np.testing.assert_allclose(kf.belief(state).cov, peer.sigma_, **TIGHT)
    np.testing.assert_allclose(infos.log_evidence.sum(), peer.scores_[-1], rtol=1e-8)


@pytest.mark.parametrize("family", ["bernoulli", "poisson"])
def test_scikit_learn_finds_the_mode_of_the_iterated_filter(family):
    """All data as one datum: enough iterations reach the maximum a posteriori estimate of the whole batch."""
    rng = np.random.default_rng(4)
    X, theta = 0.7 * rng.normal(size=(30, D)), np.array([1.0, -1.0, 0.5, 0.0])
    strict = dict(fit_intercept=False, tol=1e-14, max_iter=10_000)
    if family == "bernoulli":
        likelihood, y = fx.models.bernoulli(), (rng.random(30) < expit(X @ theta)).astype(float)
        want = sklearn.linear_model.LogisticRegression(C=2.0, solver="newton-cholesky", **strict).fit(X, y).coef_[0]
        weight = expit(X @ want) * expit(-X @ want)
    else:
        likelihood, y = fx.models.poisson(), rng.poisson(np.exp(X @ theta)).astype(float)
        want = sklearn.linear_model.PoissonRegressor(alpha=0.5 / 30, solver="newton-cholesky", **strict).fit(X, y).coef_
        weight = np.exp(X @ want)
    kf = fx.method("IEKF(iterations=12)+C-Static", model=fx.models.linear(likelihood=likelihood))
    state, _ = kf.step(kf.init(mean=jnp.zeros(D), cov=2.0), jnp.asarray(X), jnp.asarray(y))
    np.testing.assert_allclose(kf.belief(state).mean, want, rtol=1e-8)
    np.testing.assert_allclose(kf.belief(state).cov, np.linalg.inv(X.T * weight @ X + 0.5 * np.eye(D)), rtol=1e-8)


def test_pandas_exponential_average_is_the_steady_filter():
    """16: EWMA(β) is a random walk filter once q/r = β²/(1-β), started at its own steady variance βr."""
    y, beta, r = np.random.default_rng(7).normal(size=T), 0.3, 0.8
    kf = fx.method(f"LG+C-ACI(q={r * beta**2 / (1 - beta)!r})", model=fx.models.linear(noise=r))
    state = kf.init(mean=jnp.asarray(y[:1]), cov=beta * r)
    infos = kf.scan(state, jnp.ones((T - 1, 1)), jnp.asarray(y[1:]), keep=("belief_mean", "belief_var"))[1]
    np.testing.assert_allclose(infos.belief_mean[:, 0], pd.Series(y).ewm(alpha=beta, adjust=False).mean()[1:], **TIGHT)
    np.testing.assert_allclose(infos.belief_var[:, 0], beta * r, **TIGHT)


@pytest.mark.nightly
def test_blackjax_weighs_particles_the_same():
    """A walk in one dimension: evidence and mean of 200 particles, ours and theirs, and of the exact filter.

    The library `particles` asks for numpy below 2, which jax does not run on.
    """
    y, q, r, S, runs = np.random.default_rng(8).normal(size=8), 0.3, 0.5, 200, 1000
    exact = fx.method(f"LG+C-ACI(q={q})", model=fx.models.linear(noise=r))
    end, infos = exact.scan(exact.init(mean=jnp.zeros(1), cov=1.0), jnp.ones((8, 1)), jnp.asarray(y))
    pf = fx.method(f"PF(size={S}, threshold=1.0)+C-ACI(q={q})", model=fx.models.linear(noise=r))

    def ours(key):
        start = pf.init(mean=jnp.zeros(1), cov=1.0, key=key)
        end, infos = pf.scan(start, jnp.ones((8, 1)), jnp.asarray(y), keep=("log_evidence",))
        return infos.log_evidence.sum(), pf.belief(end).mean[0]

    def theirs(key):
        of_start, of_steps = jax.random.split(key)
        walk = lambda keys, x, _: (x + jnp.sqrt(q) * jax.vmap(jax.random.normal)(keys), None)

        def step(state, row):
            weigh = lambda x: -0.5 * (row[1] - x) ** 2 / r - 0.5 * jnp.log(2 * jnp.pi * r)
            state, info = smc.step(row[0], state, walk, weigh, systematic)
            return state, info.log_likelihood_increment

        rows = (jax.random.split(of_steps, 8), jnp.asarray(y))
        end, increments = jax.lax.scan(step, smc.init(jax.random.normal(of_start, (S,)), None), rows)
        return increments.sum(), jnp.sum(end.weights * end.particles)

    keys = jax.random.split(jax.random.key(0), runs)
    found = {run.__name__: [np.asarray(part) for part in jax.jit(jax.vmap(run))(keys)] for run in (ours, theirs)}
    for evidence, mean in found.values():
        ratio = np.exp(evidence - float(infos.log_evidence.sum()))
        assert abs(ratio.mean() - 1.0) < 4 * ratio.std() / np.sqrt(runs)
        assert abs(mean.mean() - exact.belief(end).mean[0]) < 4 * mean.std() / np.sqrt(runs) + 1.0 / S
    for a, b in zip(*found.values(), strict=True):
        np.testing.assert_allclose(a.std() / b.std(), 1.0, atol=0.1)  # as noisy as theirs: three standard errors
        assert abs(a.mean() - b.mean()) < 4 * np.hypot(a.std(), b.std()) / np.sqrt(runs)
