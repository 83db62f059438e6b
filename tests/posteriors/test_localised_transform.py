"""The localised transform against the analysis in the space of the members, scalar filters, and its two limits."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

import filtax as fx
from filtax.beliefs import Ensemble
from filtax.posteriors import ensemble_kalman, gaspari_cohn

pytestmark = pytest.mark.x64
S, D = 7, 5
rng = np.random.default_rng(4)
MEMBERS, Y = rng.normal(size=(S, D)), 2.0 * rng.normal(size=D)
R = np.array([0.5, 1.0, 0.2, 2.0, 0.7])
H = np.eye(D) + 0.3 * rng.normal(size=(D, D))


@jax.jit
def members(posterior, model, x, y, mask=None):
    belief = Ensemble.of(jnp.asarray(MEMBERS), jax.random.key(0))
    return posterior.update(belief, model, x, y, mask, None, None).belief.members


def moved(radius, x=None, model=None, mask=None, localisation=None):
    taper = gaspari_cohn(radius) if localisation is None else localisation
    posterior = ensemble_kalman(S, deterministic=True, localisation=taper)
    model = fx.models.linear(noise=R) if model is None else model
    return np.asarray(members(posterior, model, jnp.asarray(H if x is None else x), jnp.asarray(Y), mask))


def in_member_space(x, y, R, rho):
    """Hunt and others (2007), each parameter by the S x S analysis with its own observation errors."""
    mean, A = MEMBERS.mean(0), MEMBERS - MEMBERS.mean(0)
    B, gap = A @ x.T, y - x @ mean
    new = np.empty_like(MEMBERS)
    for i in range(D):
        C = B * (rho[i] / R)[None, :]
        P = np.linalg.inv((S - 1) * np.eye(S) + C @ B.T)
        W = scipy.linalg.sqrtm((S - 1) * P).real
        new[:, i] = mean[i] + (W + (P @ C @ gap)[:, None]).T @ A[:, i]
    return new


@pytest.mark.parametrize("radius", [1.5, 4.0, 9.0])
def test_each_parameter_is_analysed_by_what_is_near(radius):
    rho = np.asarray(gaspari_cohn(radius)(jnp.arange(D)[:, None], jnp.arange(D)[None, :]))
    np.testing.assert_allclose(moved(radius), in_member_space(H, Y, R, rho), rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(moved(0.0, localisation=rho), moved(radius), rtol=1e-12)  # a matrix will do


def test_an_infinite_radius_is_the_global_transform():
    """In its moments; the members are those of another square root of the same covariance."""
    everywhere = ensemble_kalman(S, deterministic=True)
    want = members(everywhere, fx.models.linear(noise=R), jnp.asarray(H), jnp.asarray(Y))
    got = moved(float("inf"))
    np.testing.assert_allclose(got.mean(0), want.mean(0), rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(np.cov(got.T), np.cov(want.T), rtol=1e-10, atol=1e-12)
    one = fx.models.linear(noise=0.5)  # of one output the root is unique, and so are the members
    x, y = jnp.asarray(H[0]), jnp.asarray(Y[:1])
    local = ensemble_kalman(S, deterministic=True, localisation=gaspari_cohn(float("inf")))
    np.testing.assert_allclose(members(local, one, x, y), members(everywhere, one, x, y), rtol=1e-11, atol=1e-12)


def test_without_a_radius_parameters_are_scalar_filters():
    """y looks at each parameter alone: mean by the scalar gain, deviations shrunk by one factor."""
    mean, var, A = MEMBERS.mean(0), MEMBERS.var(0, ddof=1), MEMBERS - MEMBERS.mean(0)
    gain = var / (var + R)
    np.testing.assert_allclose(
        moved(0.0, np.eye(D)), mean + gain * (Y - mean) + np.sqrt(1 - gain) * A, rtol=1e-11, atol=1e-12
    )
    global_ = moved(float("inf"), np.eye(D))
    assert np.abs(moved(0.0, np.eye(D)) - global_).max() > 0.1  # seven members do not know that


def test_what_is_missing_or_rejected_is_not_there():
    mask = jnp.array([True, False, True, True, True])
    missing = moved(4.0, mask=mask)
    rho = np.asarray(gaspari_cohn(4.0)(jnp.arange(D)[:, None], jnp.arange(D)[None, :]))
    seen = np.asarray(mask)
    np.testing.assert_allclose(missing, in_member_space(H[seen], Y[seen], R[seen], rho[:, seen]), rtol=1e-9, atol=1e-11)
    wolf = fx.models.robust(fx.models.linear(noise=R), trust=fx.models.threshold(50.0))
    posterior = ensemble_kalman(S, deterministic=True, localisation=gaspari_cohn(4.0))
    got = members(posterior, wolf, jnp.asarray(H), jnp.asarray(Y).at[1].set(1e9))
    np.testing.assert_allclose(got, missing, rtol=1e-10, atol=1e-12)


@pytest.mark.nightly
def test_the_taper_is_a_correlation():
    """One at no distance, none from the radius on, 5/24 half way from both sides, smooth, and positive definite."""
    taper = gaspari_cohn(2.0)
    at = lambda z: float(taper(jnp.asarray(z), jnp.asarray(0.0)))
    np.testing.assert_allclose(
        [at(0.0), at(1.0), at(1.0 + 1e-9), at(2.0), at(3.0)], [1, 5 / 24, 5 / 24, 0, 0], atol=1e-8
    )
    z = np.linspace(0.0, 2.5, 2501)
    values = np.asarray(taper(jnp.asarray(z), jnp.zeros(2501)))
    assert np.all(np.diff(values) <= 0.0)
    assert np.abs(np.diff(values, 3)).max() < 1e-6  # no kink up to the second derivative
    grid = np.arange(60) / 9.0
    matrix = np.asarray(taper(jnp.asarray(grid)[:, None], jnp.asarray(grid)[None, :]))
    assert np.linalg.eigvalsh(matrix).min() > -1e-12
    ring = np.asarray(gaspari_cohn(10.0, period=40)(jnp.arange(40)[:, None], jnp.arange(40)[None, :]))
    np.testing.assert_allclose(ring, scipy.linalg.circulant(ring[:, 0]), rtol=1e-12)


@pytest.mark.parametrize("call", [lambda: gaspari_cohn(-1.0), lambda: gaspari_cohn("far"), lambda: gaspari_cohn(2, 0)])
def test_what_is_no_distance_is_refused(call):
    with pytest.raises(ValueError, match="gaspari_cohn"):
        call()


@pytest.mark.nightly
@pytest.mark.parametrize(("size", "deterministic"), [(20, False), (10, True)])
def test_localisation_saves_a_small_ensemble(size, deterministic):
    """Lorenz-96 with 40 variables: without localisation it diverges (error 3.6), with it 0.22."""
    D = 40

    def rhs(s):
        return (jnp.roll(s, -1) - jnp.roll(s, 2)) * jnp.roll(s, 1) - s + 8.0

    def flow(s, dt=0.05):
        a = rhs(s)
        b = rhs(s + 0.5 * dt * a)
        c = rhs(s + 0.5 * dt * b)
        return s + dt / 6 * (a + 2 * b + 2 * c + rhs(s + dt * c))

    path = jax.lax.scan(lambda s, _: (flow(s), flow(s)), jnp.full(D, 8.0).at[0].add(0.01), None, 1100)[1][500:]
    y = path + np.random.default_rng(0).normal(size=path.shape)
    errors = []
    for taper in (gaspari_cohn(14.0, period=D), None):
        posterior = ensemble_kalman(size, 1.05, deterministic, localisation=taper)
        prior = fx.priors.nonlinear_dynamics(flow)
        method = fx.method("C-LSSM", model=fx.models.gaussian(1.0), prior=prior, posterior=posterior)
        start = method.init(mean=path[0], cov=1.0, key=jax.random.key(1))
        means = method.scan(start, None, y, keep=("belief_mean",))[1].belief_mean
        errors.append(np.sqrt(np.mean((means - path)[100:] ** 2)))
    assert errors[0] < 0.3 < 1.0 < errors[1], errors
