"""(M.1) The scores of WoLF: scipy's densities, brute-force integration, and run lengths that no outlier ends."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import filtax as fx
from filtax.models import imq, linear, mahalanobis, robust, threshold
from filtax.priors import static
from oracles import enumerate_segmentations, log_normal, newton_step
from test_seams import Reset, RunLength
from wolf import FORMS, NOISE, D, H, R, X, of_distance, sparse, y_line

HAZARD = 0.1


def absorbed(method, state, x, y):
    """The update of one hypothesis, with its two scores."""
    belief = jax.tree.map(lambda leaf: leaf[0], state.hypotheses.belief)
    y = jnp.atleast_1d(jnp.asarray(y, belief.mean.dtype))
    mask = ~jnp.isnan(y)
    return _update(method, belief, jnp.asarray(x), jnp.where(mask, y, 0.0), mask)


@jax.jit
def _update(method, belief, x, y, mask):
    return method.posterior.update(belief, method.model, x, y, mask, None, None)


@pytest.mark.x64
@pytest.mark.parametrize(("form", "trust"), sparse(FORMS, list(of_distance)))
def test_two_numbers_evidence_and_score(trust, form):
    """The evidence is the plain density, the score N(y; yhat, HPH' + R/w²), with scipy; TMD stops at the gate."""
    make, weigh = of_distance[trust]
    c = 0.6 if trust == "tempered" else 2.0
    wolf = fx.method(f"LG(form={form})+C-Static", model=robust(linear(noise=R), make(c)))
    P = np.diag([1.0, 2.0, 0.5])
    state = wolf.init(mean=np.ones(D), cov=P)
    m, spread = H[0] @ np.ones(D), H[0] @ P @ H[0].T
    for y in (m + 0.3, m + np.array([5.0, -2.0]), m + 1e5):
        got = absorbed(wolf, state, H[0], y)
        w = weigh(y - m, R, c)
        want = (
            scipy.stats.multivariate_normal(m, spread + R / w**2).logpdf(y)
            if w > 0
            else -0.5 * c**2 - 0.5 * np.log(np.linalg.det(2 * np.pi * R))
        )
        np.testing.assert_allclose(
            got.log_evidence, scipy.stats.multivariate_normal(m, spread + R).logpdf(y), rtol=1e-11
        )
        np.testing.assert_allclose(got.log_score, want, rtol=1e-11)
        _, info = wolf.step(state, H[0], y)
        np.testing.assert_allclose(info.log_evidence, wolf.predict(state, H[0]).log_prob(y), rtol=1e-11)
    gap = absorbed(wolf, state, H[0], [np.nan, np.nan])
    assert float(gap.log_score) == float(gap.log_evidence) == 0.0
    one = absorbed(wolf, state, H[0], [m[0] + 1.0, np.nan])
    w = weigh(np.ones(1), R[:1, :1], c)
    np.testing.assert_allclose(one.log_score, log_normal(np.ones(1), spread[:1, :1] + R[:1, :1] / w**2), rtol=1e-11)


@pytest.mark.x64
@pytest.mark.parametrize("family", ["bernoulli", "categorical", "poisson"])
def test_exponential_families_take_a_weighted_newton_step(family):
    """Score and information times w², w from the Pearson residual; labels are scored w² p + (1 - w²)/C."""
    x, mean, P = np.array([1.0, -0.5]), np.array([0.8, -1.1]), np.array([[0.4, 0.1], [0.1, 0.3]])
    y, c = 0.0, 1.2
    J = x[None, :]
    if family == "categorical":
        mean, P = np.concatenate([mean, [0.3, 0.2, -0.4, 0.9]]), 0.3 * np.eye(6) + 0.05
        J, y = np.kron(x[None, :], np.eye(3)), 2.0
    eta = J @ mean
    if family == "bernoulli":
        p = 1 / (1 + np.exp(-eta))
        moment, V, r = p, np.diag(p * (1 - p)), (y - p) / np.sqrt(p * (1 - p))
    elif family == "poisson":
        y, rate = 9.0, np.exp(eta)
        moment, V, r = rate, np.diag(rate), (y - rate) / np.sqrt(rate)
    else:
        p = np.exp(eta) / np.exp(eta).sum()
        moment, V, r = p, np.diag(p) - np.outer(p, p), (np.eye(3)[2] - p) / np.sqrt(p)
    target = np.eye(3)[2] if family == "categorical" else np.array([y])
    w = (1 + r @ r / c**2) ** -0.5
    want = newton_step(mean, P, w**2 * J.T @ (target - moment), w**2 * J.T @ V @ J)
    for trust in (mahalanobis(c), imq(c)):  # without a fixed scale of y - E[y], IMQ looks at the whitened residual too
        wolf = fx.method("LG+C-Static", model=robust(linear(likelihood=getattr(fx.models, family)()), trust))
        state = wolf.init(mean=mean, cov=P)
        got = absorbed(wolf, state, x, y)
        np.testing.assert_allclose(got.trust, w, rtol=1e-12)
        np.testing.assert_allclose(got.belief.mean, want.mean, rtol=1e-11)
        np.testing.assert_allclose(got.belief.cov, want.cov, rtol=1e-10)
    chance = np.exp(float(wolf.predict(state, x).log_prob(y)))
    np.testing.assert_allclose(got.log_evidence, np.log(chance), rtol=1e-10)
    spread = (J @ P @ J.T)[0, 0]
    flat = {
        "bernoulli": 0.5,
        "categorical": 1 / 3,
        "poisson": scipy.stats.norm(moment[0], np.sqrt(moment[0] ** 2 * spread + moment[0] / w**2)).pdf(y),
    }[family]
    np.testing.assert_allclose(got.log_score, np.log(w**2 * chance + (1 - w**2) * flat), rtol=1e-8)


@pytest.mark.x64
def test_unknown_noise_against_brute_force():
    """Prior times likelihood to the power w², integrated on a grid of theta and log variance; w in learnt units."""
    shape, rate, m, P, h, R, y, c = 3.0, 2.0, 0.4, 0.8, 1.3, 1.5, 6.0, 2.0
    wolf = fx.method(f"WoLF-MD(c={c})+NIG(shape={shape}, rate={rate})+C-Static", model=linear(noise=R))
    state = wolf.init(mean=np.array([m]), cov=P)
    after, info = wolf.step(state, np.array([h]), y)
    w = (1 + (y - h * m) ** 2 / (R * rate / shape) / c**2) ** -0.5
    np.testing.assert_allclose(info.trust, w, rtol=1e-12)
    theta, log_v = np.linspace(-25.0, 25.0, 2001)[:, None], np.linspace(-4.0, 7.0, 1501)[None, :]
    v = np.exp(log_v)
    log_prior = (
        scipy.stats.invgamma(shape, scale=rate).logpdf(v) + log_v + scipy.stats.norm(m, np.sqrt(v * P)).logpdf(theta)
    )
    density = np.exp(log_prior + w**2 * scipy.stats.norm(h * theta, np.sqrt(v * R)).logpdf(y))
    density /= density.sum()
    belief = wolf.belief(after)
    np.testing.assert_allclose(belief.mean[0], (density * theta).sum(), rtol=1e-5)
    np.testing.assert_allclose(belief.noise, (density * v).sum(), rtol=1e-3)
    np.testing.assert_allclose(belief.shape, shape + w**2 / 2, rtol=1e-12)
    log_mean = (density * log_v).sum()
    np.testing.assert_allclose(np.log(belief.rate) - scipy.special.digamma(float(belief.shape)), log_mean, rtol=1e-5)
    t = scipy.stats.t(2 * shape, h * m, np.sqrt((h * h * P + R) * rate / shape))
    np.testing.assert_allclose(info.log_evidence, t.logpdf(y), rtol=1e-11)
    unit = rate / shape
    wide = scipy.stats.norm(h * m, np.sqrt(unit * (h * h * P + R / w**2))).pdf(y)
    score = absorbed(wolf, state, [h], y).log_score
    np.testing.assert_allclose(score, np.log(w**2 * t.pdf(y) + (1 - w**2) * wide), rtol=1e-11)


def run_lengths(trust, posterior="LG", likelihood=None, slots=9, dynamics=None):
    model = linear(noise=NOISE) if likelihood is None else linear(likelihood=likelihood)
    return fx.method(
        f"{posterior}+C-Static",
        model=robust(model, trust),
        auxiliary=RunLength(HAZARD, slots),
        prior=Reset(static() if dynamics is None else dynamics),
    )


@pytest.mark.x64
def test_run_lengths_equal_enumeration_under_the_score():
    """All 2^T segmentations, each scored by a plain numpy WoLF-IMQ, with an outlier among the data."""
    y = y_line.copy()
    y[4] += 12.0
    c = 2.0

    def segment(start, stop):
        m, P, total = np.zeros(2), np.eye(2), 0.0
        for t in range(max(start, 1) - 1, stop):
            e = y[t] - X[t] @ m
            r = NOISE * (1 + e * e / c**2)
            S = X[t] @ P @ X[t] + r
            total += scipy.stats.norm(0.0, np.sqrt(S)).logpdf(e)
            m, P = m + P @ X[t] * e / S, P - np.outer(P @ X[t], P @ X[t]) / S
        return total

    rl = run_lengths(imq(c))
    end, infos = rl.scan(rl.init(mean=jnp.zeros(2), cov=1.0), X, y)
    want = enumerate_segmentations(segment, HAZARD, len(y))
    got = np.bincount(end.hypotheses.aux, np.exp(end.hypotheses.log_weight), minlength=len(y) + 1)
    np.testing.assert_allclose(got, want.runlength, atol=1e-12)
    assert np.all(np.isfinite(infos.log_evidence))


@pytest.mark.parametrize(
    ("trust", "posterior", "likelihood"),
    [
        (imq(3.0), "LG", None),
        pytest.param(mahalanobis(3.0), "LG(form=covariance)", None, marks=pytest.mark.nightly),
        (threshold(3.0), "LG", None),
        (mahalanobis(3.0), "NIG", None),
        (mahalanobis(3.0), "LG", "poisson"),
    ],
    ids=lambda part: getattr(part, "name", part),
)
def test_an_outlier_is_no_change(trust, posterior, likelihood):
    """As |y| grows without bound the change probability tends to the hazard; a plain filter's tends to one."""
    family = None if likelihood is None else fx.models.poisson()
    rl = run_lengths(trust, posterior, family, slots=10)
    y = y_line if family is None else np.array([1.0, 0.0, 2.0, 1.0, 0.0, 1.0, 3.0, 1.0])
    state, _ = rl.scan(rl.init(mean=jnp.zeros(2, "float32"), cov=0.3), np.float32(X), np.float32(y))
    x = np.array([0.6, 0.8], "float32")
    for far, tolerance in ((1e3, 0.02), (1e6, 1e-3), (1e18, 2e-5), (1e30, 2e-5), (3e38, 2e-5), (np.inf, 2e-5)):
        after, info = rl.step(state, x, np.float32(far))
        np.testing.assert_allclose(info.change_probability, HAZARD, atol=tolerance)
        assert bool(info.ok)
        np.testing.assert_allclose(np.exp(after.hypotheses.log_weight).sum(), 1.0, rtol=1e-5)
    plain = fx.method(
        f"{posterior}+C-Static",
        model=linear(noise=NOISE) if family is None else linear(likelihood=family),
        auxiliary=RunLength(HAZARD, 10),
        prior=Reset(static()),
    )
    if family is None:
        assert float(plain.step(state, x, np.float32(1e3))[1].change_probability) > 0.9


def test_behind_a_gate_it_does_not_matter_how_far():
    """TMD with learnt noise: hypotheses differ by their noise level alone, bounded, whatever y is."""
    rl = run_lengths(threshold(3.0), "NIG", slots=10)
    state, _ = rl.scan(rl.init(mean=jnp.zeros(2, "float32"), cov=0.3), np.float32(X), np.float32(y_line))
    far = [rl.step(state, np.ones(2, "float32"), np.float32(y))[1].change_probability for y in (1e3, 1e30, np.inf)]
    np.testing.assert_allclose(far, far[0], rtol=1e-6)
    assert 0.01 < far[0] < 0.3
