"""The share that is kept against a fine grid in numpy, and OUPR against its recursion written out."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import filtax as fx

pytestmark = pytest.mark.x64
rng = np.random.default_rng(6)
T, NOISE = 25, 0.4
X = rng.normal(size=(T, 2))
Y = X @ np.array([1.0, -1.0]) + np.where(np.arange(T) < 12, 0.0, 4.0) + 0.5 * rng.normal(size=T)
START = dict(mean=jnp.array([0.5, 0.0]), cov=2.0)
M0, P0 = np.array([0.5, 0.0]), 2.0 * np.eye(2)
model = fx.models.linear(noise=NOISE)


def evidence(m, P, x, y, keep):
    m, P = keep * m + (1 - keep) * M0, keep**2 * P + (1 - keep**2) * P0
    return scipy.stats.norm(x @ m, np.sqrt(x @ P @ x + NOISE)).logpdf(y)


@pytest.mark.parametrize("y", [0.2, 1.5, 6.0])
def test_one_share_is_the_most_probable_one(y):
    plain, cpp = fx.method("C-Static", model=model), fx.method("CPP-OU", model=model)
    state, _ = plain.scan(plain.init(**START), X[:6], Y[:6])
    m, P = np.asarray(plain.belief(state).mean), np.asarray(plain.belief(state).cov)
    grid = np.linspace(0.0, 1.0, 2001)
    best = grid[np.argmax([evidence(m, P, X[0], y, keep) for keep in grid])]
    after, info = cpp.step(state, X[0], y)
    np.testing.assert_allclose(info.log_evidence, evidence(m, P, X[0], y, 1.0), rtol=1e-9)  # the forecast came before
    ou = fx.method(f"C-OU(rate={best})", model=model)
    want, _ = ou.step(state, X[0], y)
    np.testing.assert_allclose(cpp.belief(after).mean, ou.belief(want).mean, atol=0.02)
    np.testing.assert_allclose(cpp.belief(after).cov, ou.belief(want).cov, atol=0.05)


def test_a_share_for_each_parameter_forgets_the_one_that_is_wrong():
    """The second feature is off and y is far away: only what the first says is doubted."""
    cpp = fx.method("CPP-OU(each_parameter=True)", model=model)
    plain = fx.method("C-Static", model=model)
    state, _ = plain.scan(plain.init(**START), X[:6], Y[:6])
    after, _ = cpp.step(state, np.array([1.0, 0.0]), 9.0)
    var = np.asarray(cpp.belief(after).var)
    old, _ = plain.step(state, np.array([1.0, 0.0]), 9.0)
    gained = var - np.asarray(plain.belief(old).var)
    assert gained[0] > 5 * gained[1] >= -1e-9
    mean = np.asarray(cpp.belief(after).mean)
    assert mean[0] > np.asarray(plain.belief(old).mean)[0] + 1.0


@pytest.mark.parametrize("form", ["root", "covariance"])
@pytest.mark.parametrize("off", [0.0, 3.0])
def test_with_a_rate_the_share_takes_gradient_steps_from_where_all_is_kept(form, off):
    name = f"LG(form={form})+"
    plain, cpp = fx.method(f"{name}C-Static", model=model), fx.method(f"{name}CPP-OU(rate=0.005, steps=2)", model=model)
    assert cpp.name.endswith("CPP-OU(rate=0.005, steps=2)")
    state, _ = plain.scan(plain.init(**START), X[:6], Y[:6])
    m, P = np.asarray(plain.belief(state).mean), np.asarray(plain.belief(state).cov)
    y, decay = float(X[0] @ m) + off, 0.0
    for _ in range(2):
        at, h = max(decay, 1e-4), 1e-6
        ends = [evidence(m, P, X[0], y, np.exp(-0.5 * (at + side))) for side in (h, -h)]
        decay = max(0.0, decay + 0.005 * (ends[0] - ends[1]) / (2 * h))
    after, _ = cpp.step(state, X[0], y)
    ou = fx.method(f"{name}C-OU(rate={np.exp(-0.5 * decay)})", model=model)
    want, _ = ou.step(state, X[0], y)
    np.testing.assert_allclose(cpp.belief(after).mean, ou.belief(want).mean, atol=1e-5)
    assert (0.05 < decay < 5.0) == (off > 0.0)


@pytest.mark.nightly
def test_the_evidence_has_a_slope_where_nothing_is_to_be_forgotten():
    """At the first datum every share gives the same evidence: the ascent stands still, and its slope is no NaN."""
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(3, 2)), rng.normal(size=3)

    def total(noise):
        bone = fx.methods.galashov_2024(fx.models.linear(noise=noise), steps=2)
        start = bone.init(mean=jnp.zeros(2), cov=1.0)
        return bone.scan(start, X, y, keep=("log_evidence",))[1].log_evidence.sum()

    rise = (total(0.25 + 1e-5) - total(0.25 - 1e-5)) / 2e-5
    np.testing.assert_allclose(jax.grad(total)(0.25), rise, rtol=1e-6)


def by_hand(hazard, threshold):
    m, P, r, out = M0, P0, 0, []
    for x, y in zip(X, Y, strict=True):
        dens = [scipy.stats.norm(x @ a, np.sqrt(x @ B @ x + NOISE)).pdf(y) for a, B in ((m, P), (M0, P0))]
        total = (1 - hazard) * dens[0] + hazard * dens[1]
        nu = (1 - hazard) * dens[0] / total
        if nu > threshold:
            m, P, r = nu * m + (1 - nu) * M0, nu**2 * P + (1 - nu**2) * P0, r + 1
        else:
            m, P, r = M0, P0, 0
        s = x @ P @ x + NOISE
        gain = P @ x / s
        m, P = m + gain * (y - x @ m), P - np.outer(gain, gain) * s
        out.append((np.log(total), r, m, P))
    return out


@pytest.mark.parametrize("form", ["root", "covariance"])
@pytest.mark.parametrize(("hazard", "threshold"), [(0.1, 0.5), (0.1, 0.0), (0.3, 1.0)])
def test_against_the_recursion(form, hazard, threshold):
    oupr = fx.method(f"LG(form={form})+RL[1]-OUPR(hazard={hazard}, threshold={threshold})", model=model)
    end, infos = oupr.scan(oupr.init(**START), X, Y)
    want = by_hand(hazard, threshold)
    np.testing.assert_allclose(infos.log_evidence, [row[0] for row in want], rtol=1e-9)
    np.testing.assert_array_equal(infos.runlength, [row[1] for row in want])
    np.testing.assert_allclose(oupr.belief(end).mean, want[-1][2], rtol=1e-9)
    np.testing.assert_allclose(oupr.belief(end).cov, want[-1][3], rtol=1e-9)


def test_limits():
    """Hazard 0 is the static filter; threshold 1 is the prior updated with the last datum."""
    plain = fx.method("C-Static", model=model)
    static = plain.scan(plain.init(**START), X, Y)[1].log_evidence
    never = fx.method("RL[1]-OUPR(hazard=0.0)", model=model)
    np.testing.assert_allclose(never.scan(never.init(**START), X, Y)[1].log_evidence, static, rtol=1e-10)
    always = fx.method("RL[1]-OUPR(hazard=0.2, threshold=1.0)", model=model)
    end, _ = always.scan(always.init(**START), X, Y)
    once, _ = plain.step(plain.init(**START), X[-1], Y[-1])
    np.testing.assert_allclose(always.belief(end).mean, plain.belief(once).mean, rtol=1e-12)


def test_missing_data_age_the_belief_and_a_failure_keeps_it():
    oupr = fx.method("RL[1]-OUPR(hazard=0.1)", model=model)
    state, _ = oupr.scan(oupr.init(**START), X[:5], Y[:5])
    after, info = oupr.step(state, X[5], np.nan)
    assert float(info.log_evidence) == 0.0
    want = 0.9 * oupr.belief(state).mean + 0.1 * M0
    np.testing.assert_allclose(oupr.belief(after).mean, want, rtol=1e-12)
    _, info = oupr.step(state, X[5], 1e200)
    assert not bool(info.ok)


def test_refusals():
    with pytest.raises(ValueError, match=r"ou_reset\(threshold=\.\.\.\) must lie in \[0, 1\]"):
        fx.priors.ou_reset(1.5)


def test_an_outlier_does_not_reset_a_robust_model():
    """Under WoLF the belief is asked how the datum scores, so a gross error leaves the regime as it was."""
    robust = fx.method("WoLF-IMQ(c=3)+RL[1]-OUPR(hazard=0.01)", model=model)
    plain = fx.method("RL[1]-OUPR(hazard=0.01)", model=model)
    state, _ = plain.scan(plain.init(**START), X[:12], Y[:12])
    length = int(plain.step(state, X[12], Y[11])[1].runlength)
    _, hit = plain.step(state, X[12], 1e6)
    _, kept = robust.step(state, X[12], 1e6)
    assert int(hit.runlength) == 0
    assert int(kept.runlength) == length > 0
