"""The diagonal belief against dense numpy: the nearest independent Gaussian to what the full filter would say."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import filtax as fx
from filtax.beliefs import Diagonal
from oracles import exact_update

pytestmark = pytest.mark.x64
models, priors = fx.models, fx.priors
M, V = np.array([0.5, -1.0, 2.0, 0.0]), np.array([1.0, 0.5, 4.0, 0.0])  # the last parameter is certain
NOISE = np.array([[1.0, 0.4], [0.4, 0.5]])


def dense(mean, var, H, R, y):
    """Posterior mean and precision of the full filter; the belief keeps the first, and of the second the diagonal."""
    full = exact_update(mean, np.diag(var), H, R, y)
    with np.errstate(divide="ignore"):
        return full.mean, 1.0 / (1.0 / var + np.einsum("od,op,pd->d", H, np.linalg.inv(R), H))


@pytest.mark.parametrize("outputs", [1, 2])
def test_a_datum_gives_the_full_mean_and_the_diagonal_of_the_precision(outputs):
    rng = np.random.default_rng(outputs)
    H, y, R = rng.normal(size=(outputs, 4)), rng.normal(size=outputs), NOISE[:outputs, :outputs]
    method = fx.method("LG(form=diagonal)+C-Static", model=models.linear(noise=R))
    state, info = method.step(method.init(mean=M, cov=V), H, y)
    mean, var = dense(M, V, H, R, y)
    belief = method.belief(state)
    np.testing.assert_allclose(belief.mean, mean, rtol=1e-12)
    np.testing.assert_allclose(belief.var, var, rtol=1e-12)
    np.testing.assert_allclose(belief.cov, np.diag(var), rtol=1e-12)
    S = H @ np.diag(V) @ H.T + R
    np.testing.assert_allclose(info.log_evidence, scipy.stats.multivariate_normal(H @ M, S).logpdf(y), rtol=1e-12)
    np.testing.assert_allclose(method.predict(method.init(mean=M, cov=V), H).cov, S, rtol=1e-12)


def test_decoupled_keeps_the_diagonal_of_the_covariance():
    """The same mean; of the full posterior's covariance the diagonal, so each parameter sees the others as noise."""
    rng = np.random.default_rng(4)
    H, y = rng.normal(size=(2, 4)), rng.normal(size=2)
    for form in ("diagonal", "decoupled"):
        method = fx.method(f"LG(form={form})+C-OU(rate=0.9)", model=models.linear(noise=NOISE))
        state = method.step(method.init(mean=M, cov=V), H, np.full(2, np.nan))[0]
        belief = method.belief(method.step(state, H, y)[0])
        full = exact_update(M, np.diag(V), H, NOISE, y)
        np.testing.assert_allclose(belief.mean, full.mean, rtol=1e-12)
        assert belief.decoupled == (form == "decoupled")
        if belief.decoupled:
            np.testing.assert_allclose(belief.var, np.diag(full.cov), rtol=1e-12)
    H, v = H[:1], V[:3]
    alone = Diagonal.start(jnp.asarray(M[:3]), jnp.asarray(v), decoupled=True)
    after = alone.condition(jnp.asarray(H[:, :3]), jnp.eye(1), jnp.ones(1)).belief
    for k in range(3):  # a scalar filter whose noise holds what the others do not know
        rest = 1.0 + sum(v[j] * H[0, j] ** 2 for j in range(3) if j != k)
        np.testing.assert_allclose(after.var[k], v[k] * rest / (rest + v[k] * H[0, k] ** 2), rtol=1e-12)


def test_it_is_the_nearest_of_the_independent_gaussians():
    """Every other mean or variance is further from the posterior, in KL(q || p)."""
    H, y = np.array([[1.0, 2.0, -1.0]]), np.array([3.0])
    full = exact_update(M[:3], np.diag(V[:3]), H, NOISE[:1, :1], y)
    target = fx.beliefs.Covariance(jnp.asarray(full.mean), jnp.asarray(full.cov))
    prior = Diagonal.start(jnp.asarray(M[:3]), jnp.asarray(V[:3]))
    found = prior.condition(jnp.asarray(H), jnp.eye(1), jnp.asarray(y - H @ M[:3])).belief
    least = float(fx.kl(found, target))
    for seed in range(20):
        a, b = 0.05 * np.random.default_rng(seed).normal(size=(2, 3))
        assert float(fx.kl(Diagonal(found.mean + a, found.var * np.exp(b)), target)) > least


def test_dynamics_move_means_and_variances():
    F, b, Q = np.array([0.9, 1.0, -0.5, 2.0]), np.array([0.0, 1.0, 0.0, 0.5]), np.array([0.1, 0.0, 0.2, 0.3])
    belief = Diagonal.start(jnp.asarray(M), jnp.asarray(V))
    moved = belief.affine(jnp.asarray(F), jnp.asarray(b), jnp.sqrt(Q))
    np.testing.assert_allclose(moved.mean, F * M + b, rtol=1e-12)
    np.testing.assert_allclose(moved.var, F**2 * V + Q, rtol=1e-12)
    np.testing.assert_allclose(belief.add(jnp.asarray(Q)).var, V + Q, rtol=1e-12)
    start = Diagonal.start(jnp.zeros(4), jnp.ones(4))
    for keep in (0.9, np.array([1.0, 0.0, 0.5, 0.9])):
        mixed = belief.mix(start, jnp.asarray(keep))
        np.testing.assert_allclose(mixed.mean, keep * M, rtol=1e-12)
        np.testing.assert_allclose(mixed.var, keep**2 * V + 1.0 - keep**2, rtol=1e-12)


def test_samples_have_its_moments():
    """20000 draws: means and variances within five standard errors, and a certain parameter does not move."""
    drawn = np.asarray(Diagonal.start(jnp.asarray(M), jnp.asarray(V)).sample(jax.random.key(0), (20000,)))
    np.testing.assert_allclose(drawn.mean(0), M, atol=5 * 2.0 / np.sqrt(20000))
    np.testing.assert_allclose(drawn.var(0), V, atol=5 * 4.0 * np.sqrt(2 / 20000))
    assert np.all(drawn[:, 3] == M[3])
    assert Diagonal.start(jnp.asarray(M), jnp.asarray(V)).sample(jax.random.key(0)).shape == (4,)


def test_what_it_cannot_hold_is_refused():
    with pytest.raises(ValueError, match="correlations"):
        fx.method("LG(form=diagonal)+C-Static", model=models.linear(noise=1.0)).init(mean=np.zeros(2), cov=NOISE)
    for prior in (priors.linear_dynamics(F=np.eye(2)), priors.linear_dynamics(Q=NOISE)):
        method = fx.method("LG(form=diagonal)+C-LSSM", model=models.linear(noise=1.0), prior=prior)
        with pytest.raises(ValueError, match=r"holds no correlations.*\(D,\)"):
            method.step(method.init(mean=np.zeros(2), cov=1.0), np.ones(2), 1.0)
    plain = fx.method("LG(form=diagonal)+C-Static", model=models.linear(noise=1.0))
    assert plain.init(mean=np.zeros(2), cov=np.eye(2)).initial.var.shape == (2,)


def test_overflow_is_not_taken():
    belief = Diagonal.start(jnp.asarray(M), jnp.asarray(V))
    assert not bool(belief.condition(jnp.full((1, 4), 1e200), jnp.eye(1), jnp.ones(1)).ok)
    for far in (belief.add(jnp.asarray(np.inf)), belief.affine(jnp.asarray(1e200), None, None)):
        assert np.all(np.isfinite(far.var))


def test_variational_filter_in_the_diagonal_family():
    """Mean-field R-VGA of one label: at what it finds, the gradient of the divergence is zero (dense quadrature)."""
    m, v, x, y = np.array([-1.0, 0.5]), np.array([2.0, 1.0]), np.array([1.0, -0.5]), 1.0
    method = fx.method(
        "RVGA(iterations=12, form=diagonal)+C-Static", model=models.linear(likelihood=models.bernoulli())
    )
    belief = method.belief(method.step(method.init(mean=m, cov=v), x, y)[0])
    z, w = np.polynomial.hermite_e.hermegauss(60)
    nodes, weights = np.stack(np.meshgrid(z, z), -1).reshape(-1, 2), np.outer(w, w).ravel() / w.sum() ** 2
    p = 1.0 / (1.0 + np.exp(-(np.asarray(belief.mean) + nodes * np.sqrt(belief.var)) @ x))
    np.testing.assert_allclose(belief.mean, m + v * x * (weights @ (y - p)), atol=1e-7)
    np.testing.assert_allclose(1.0 / belief.var, 1.0 / v + x**2 * (weights @ (p * (1 - p))), atol=1e-7)
