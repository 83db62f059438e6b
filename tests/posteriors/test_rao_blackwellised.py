"""The Rao-Blackwellised particle filter and its generalised likelihood: dense algebra, grids and the exact filter."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import filtax as fx
from filtax.beliefs import Marginalised
from filtax.posteriors import Particle

keys = lambda count: jax.random.split(jax.random.key(0), count)
F, Q = np.array([[1.0, 0.5], [-0.1, 0.9]]), np.array([[0.2, 0.05], [0.05, 0.1]])
SEES, NOISE = np.array([1.0, 0.0]), 0.5
Y = np.array([0.3, 1.1, 9.0, 0.9, 1.6])
X = np.broadcast_to(SEES, (5, 2))


def built(name, model=None, Q=Q):
    model = fx.models.linear(noise=NOISE) if model is None else model
    return fx.method(f"{name}+C-LSSM", model=model, prior=fx.priors.linear_dynamics(F=F, Q=Q))


def many(name, count, y=Y):
    """Mean, covariance and evidence of many runs."""
    method = built(name)

    def run(key):
        start = method.init(mean=jnp.array([0.5, 1.0]), cov=jnp.array([1.0, 2.0]), key=key)
        end, infos = method.scan(start, X[: len(y)], y, keep=("log_evidence", "ok"))
        return method.belief(end).mean, method.belief(end).cov, infos.log_evidence.sum(), infos.ok.all()

    mean, cov, evidence, ok = (np.asarray(part) for part in jax.jit(jax.vmap(run))(keys(count)))
    assert ok.all()
    return mean, cov, evidence


def kalman(y):
    """Mean, covariance and evidence in numpy."""
    m, P, total = np.array([0.5, 1.0]), np.diag([1.0, 2.0]), 0.0
    for datum in y:
        m, P = F @ m, F @ P @ F.T + Q
        S = SEES @ P @ SEES + NOISE
        total += scipy.stats.norm(SEES @ m, np.sqrt(S)).logpdf(datum)
        K = P @ SEES / S
        m, P = m + K * (datum - SEES @ m), P - np.outer(K, K) * S
    return m, P, total


@pytest.mark.x64
def test_what_is_not_drawn_is_conditioned_on_what_is():
    """One step of three parameters, two drawn, by the textbook's conditional Gaussian."""
    draw = np.random.default_rng(0)
    A, b, N = draw.normal(size=(3, 3)), draw.normal(size=3), draw.normal(size=(3, 3))
    start = Marginalised.start(jnp.ones(3), jnp.asarray(N @ N.T), 2, 4000, jax.random.key(0))
    C = N @ N.T
    gap = np.asarray(start.members) - 1.0
    np.testing.assert_allclose(gap[:, 2], gap[:, :2] @ np.linalg.solve(C[:2, :2], C[:2, 2]), rtol=1e-9, atol=1e-11)
    left = C[2, 2] - C[2, :2] @ np.linalg.solve(C[:2, :2], C[:2, 2])
    np.testing.assert_allclose(start.root**2, [[left]], rtol=1e-9)
    after = start.affine(jnp.asarray(A), jnp.asarray(b), jnp.asarray(N))
    S = left * np.outer(A[:, 2], A[:, 2]) + C
    at = np.asarray(start.members) @ A.T + b
    gap = np.asarray(after.members) - at
    np.testing.assert_allclose(gap[:, 2], gap[:, :2] @ np.linalg.solve(S[:2, :2], S[:2, 2]), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(after.root**2, [[S[2, 2] - S[2, :2] @ np.linalg.solve(S[:2, :2], S[:2, 2])]], rtol=1e-9)
    white = np.linalg.solve(np.linalg.cholesky(S[:2, :2]), gap[:, :2].T)
    assert scipy.stats.kstest(white.ravel(), "norm").pvalue > 1e-3
    assert abs(np.corrcoef(white)[0, 1]) < 4 / np.sqrt(4000)


@pytest.mark.x64
def test_moments_and_evidence_are_those_of_the_exact_filter():
    y = Y[[0, 1, 3, 4]]
    m, P, total = kalman(y)
    mean, cov, evidence = many("RBPF(size=300, drawn=1)", 400, y)
    assert np.all(np.abs(mean.mean(0) - m) < 4 * mean.std(0) / 20 + 2e-3)
    np.testing.assert_allclose(cov.mean(0), P, atol=0.01)
    ratio = np.exp(evidence - total)
    assert abs(ratio.mean() - 1.0) < 4 * ratio.std() / 20
    plain = many("PF(size=300)", 400, y)[0]
    assert mean[:, 1].std() < 0.9 * plain[:, 1].std()  # what is integrated out is not drawn


def on_a_grid(weigh, y):
    """The filter of (u, v) on a grid: prior, dynamics by a dense kernel, and any weight of a point."""
    u, v = np.linspace(-7.0, 9.0, 65), np.linspace(-6.0, 8.0, 57)
    points = np.stack(np.meshgrid(u, v, indexing="ij"), axis=-1).reshape(-1, 2)
    p = scipy.stats.multivariate_normal([0.5, 1.0], np.diag([1.0, 2.0])).pdf(points)
    gap = points[:, None, :] - (points @ F.T)[None, :, :]
    kernel = np.exp(-0.5 * np.einsum("ijk,kl,ijl->ij", gap, np.linalg.inv(Q), gap))
    for datum in y:
        p = kernel @ p * np.exp(weigh(datum - points @ SEES))
        p /= p.sum()
    return p @ points, (p[:, None] * points).T @ points - np.outer(p @ points, p @ points)


@pytest.mark.x64
@pytest.mark.nightly
def test_a_generalised_likelihood_on_a_grid():
    """Boustati's filter, one datum 13 standard deviations off, against sums over a grid of states."""
    beta, y = 0.3, Y[:4]
    want = on_a_grid(lambda e: np.expm1(-0.5 * beta * e**2 / NOISE) / beta, y)
    plain = on_a_grid(lambda e: -0.5 * e**2 / NOISE, y)
    np.testing.assert_allclose(plain[0], kalman(y)[0], atol=2e-3)  # the grid is fine enough
    for name in ("RBPF(size=1000, drawn=1)", "PF(size=1000)"):
        mean, cov, _ = many(f"WoLF-Power(beta={beta})+{name}", 100, y)
        np.testing.assert_allclose(mean.mean(0), want[0], atol=0.02)
        np.testing.assert_allclose(cov.mean(0), want[1], atol=0.03)
        assert np.all(np.abs(want[0] - plain[0]) > 0.2)  # and the loss matters


@pytest.mark.x64
def test_weights_by_hand():
    members = np.random.default_rng(0).normal(size=(40, 2))
    log_weight = np.log(np.random.default_rng(1).dirichlet(np.ones(40)))
    key = jax.random.key(0)
    sealed = fx.beliefs.Particles.of(jnp.asarray(members), key).key
    belief = Marginalised(jnp.asarray(members), sealed, jnp.asarray(log_weight), jnp.full((1, 1), 0.7))
    model = fx.models.robust(fx.models.linear(noise=NOISE), trust=fx.models.density_power(0.4))
    posterior = Particle(40, 0.0, drawn=1)
    after = jax.jit(lambda y: posterior.update(belief, model, jnp.asarray(SEES), y, None, None, None))
    got = after(jnp.array([1.5]))
    density = scipy.stats.norm(members[:, 0], np.sqrt(NOISE)).pdf(1.5)
    peak = scipy.stats.norm(0.0, np.sqrt(NOISE)).pdf(0.0)
    G = np.exp(((density / peak) ** 0.4 - 1.0) / 0.4)
    w = np.exp(log_weight) * G
    np.testing.assert_allclose(np.exp(got.belief.log_weight), w / w.sum(), rtol=1e-10)
    np.testing.assert_allclose(got.log_evidence, np.log(np.exp(log_weight) @ density), rtol=1e-10)
    np.testing.assert_allclose(got.log_score, np.log(w.sum()) + np.log(peak), rtol=1e-9)
    np.testing.assert_array_equal(got.belief.members, members)
    for far in (1e30, np.inf, -np.inf):
        got = after(jnp.array([far]))
        np.testing.assert_allclose(got.belief.log_weight, log_weight, rtol=1e-12)
        np.testing.assert_allclose(got.log_score, np.log(peak) - 1 / 0.4, rtol=1e-12)
        assert bool(got.ok)
        assert float(got.trust) == 0.0


@pytest.mark.nightly
@pytest.mark.x64
def test_moments_moves_and_draws():
    both = [Marginalised.start(jnp.arange(2.0), jnp.ones(2), 1, 30, key) for key in keys(2)]
    w = np.random.default_rng(0).dirichlet(np.ones(30))
    belief = both[0].weighted(jnp.log(w)).affine(jnp.asarray(F), None, None)
    points = np.asarray(belief.members)
    P = np.cov(points.T, aweights=w, ddof=0) + np.diag([0.0, belief.root.item() ** 2])
    J = np.array([[1.0, 2.0], [0.5, -1.0]])
    np.testing.assert_allclose(belief.mean, w @ points, rtol=1e-11)
    np.testing.assert_allclose(belief.cov, P, rtol=1e-10)
    np.testing.assert_allclose(belief.var, np.diag(P), rtol=1e-10)
    np.testing.assert_allclose(belief.project_cov(jnp.asarray(J)), J @ P @ J.T, rtol=1e-10)
    np.testing.assert_allclose(belief.effective, 1 / np.sum(w**2), rtol=1e-11)
    drawn = np.asarray(belief.sample(jax.random.key(0), (40_000,)))
    np.testing.assert_allclose(drawn.mean(0), belief.mean, atol=0.04)
    np.testing.assert_allclose(np.cov(drawn.T), P, atol=0.08)
    wider = belief.inflate(jnp.asarray(2.5))
    np.testing.assert_allclose(wider.mean, w @ points, rtol=1e-11)
    np.testing.assert_allclose(wider.cov, 2.5 * P, rtol=1e-10)
    kept = belief.mix(both[1], jnp.array([1.0, 0.6]))
    np.testing.assert_allclose(kept.members[:, 0], points[:, 0], rtol=1e-12)
    np.testing.assert_allclose(kept.root.item() ** 2, 0.36 * belief.root.item() ** 2 + 0.64, rtol=1e-12)
    moved = jax.jit(jax.vmap(lambda key: both[0].mix(Marginalised.start(*start(key)), jnp.asarray(0.6)).mean))(
        keys(500)
    )
    np.testing.assert_allclose(moved.mean(0), 0.6 * both[0].mean + 0.4 * np.arange(2.0), atol=0.03)
    again = belief.resample(jax.random.key(0))
    assert set(again.members[:, 0].tolist()) <= set(points[:, 0].tolist())
    np.testing.assert_array_equal(again.root, belief.root)


def start(key):
    return jnp.arange(2.0), jnp.ones(2), 1, 30, key


def test_data_of_what_is_integrated_out_are_refused():
    method = built("RBPF(size=10, drawn=1)")
    state = method.init(mean=jnp.zeros(2), cov=1.0, key=jax.random.key(0))
    assert method.step(state, SEES, 1.0)[1].ok
    after, info = method.step(state, np.array([1.0, 0.1]), 1.0)
    assert not info.ok
    assert int(after.refused) == 1


@pytest.mark.x64
def test_an_outlier_is_no_change_and_the_power_bends_the_forecast():
    """Under run lengths: the score is the power of the forecast, and far away the change probability is the hazard."""
    method = fx.method("WoLF-Power(beta=0.3)+RL[inf]-PR(hazard=0.05)", model=fx.models.linear(noise=NOISE))
    state = method.init(mean=jnp.zeros(1), cov=4.0)
    for y in (1.0, 1.2, 0.9):
        state, _ = method.step(state, np.ones(1), y)
    step = [method.step(state, np.ones(1), y)[1] for y in (1e4, 1e300, np.inf)]
    np.testing.assert_allclose([info.change_probability for info in step], 0.05, rtol=1e-9)
    beta, peak = 0.3, scipy.stats.norm(0, np.sqrt(NOISE)).logpdf(0.0)
    model = method.model
    update = fx.posteriors.Extended().update(state.initial, model, jnp.ones(1), jnp.array([2.0]), None, None, None)
    plain = scipy.stats.norm(0.0, np.sqrt(4.0 + NOISE)).logpdf(2.0)
    np.testing.assert_allclose(update.log_evidence, plain, rtol=1e-12)
    np.testing.assert_allclose(update.log_score, peak + np.expm1(beta * (plain - peak)) / beta, rtol=1e-12)
    np.testing.assert_allclose(update.trust, np.exp(-beta * 4.0 / NOISE / 4.0), rtol=1e-12)
    gain = 4.0 / (4.0 + NOISE / update.trust**2)
    np.testing.assert_allclose(update.belief.mean, [2.0 * gain], rtol=1e-12)


def test_names_and_refusals():
    linear = fx.models.linear(noise=NOISE)
    assert (
        built("WoLF-Power(beta=0.2)+RBPF(size=9, drawn=1)").name == "WoLF-Power(beta=0.2)+RBPF(size=9, drawn=1)+C-LSSM"
    )
    for call, words in [
        (lambda: built("RBPF(size=9)"), "RBPF needs drawn"),
        (lambda: built("RBPF(size=0, drawn=1)"), "at least 1"),
        (lambda: built("RBPF(drawn=0)"), "at least 1"),
        (lambda: built("RBPF(drawn=1.5)"), "whole number"),
        (lambda: built("RBPF(drawn=2)").init(mean=jnp.zeros(2), key=jax.random.key(0)), "none of the D = 2 parameters"),
        (lambda: built("RBPF(drawn=1)").init(mean=jnp.zeros(2)), "RBPF draws at random; give key="),
        (lambda: Particle(9, shrink=0.9, drawn=1), "leave it away, or use PF"),
        (lambda: fx.method("RBPF(drawn=1)+RL[2]-MMPR(hazard=0.1)", model=linear), "a Marginalised belief cannot"),
        (lambda: fx.models.density_power(-0.1), "above 0"),
        (lambda: fx.method("WoLF-Power(beta=0.1)+C-Static", model=fx.models.bernoulli()), "needs Gaussian noise"),
    ]:
        with pytest.raises(ValueError, match=words):
            call()
    assert fx.models.check_trust(fx.models.density_power(0.2), 2).bounded


def test_a_curved_walk_is_refused():
    method = fx.method("RBPF(size=9, drawn=1)+C-LSSM", model=fx.models.linear(noise=1.0), prior=bent())
    with pytest.raises(ValueError, match="linear_dynamics, or PF"):
        method.step(method.init(mean=jnp.zeros(2), cov=1.0, key=jax.random.key(0)), SEES, 1.0)


def bent():
    return fx.priors.nonlinear_dynamics(jnp.sin, Q=0.1)
