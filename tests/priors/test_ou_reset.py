"""OUPR against the recursion written out in numpy, and its limits."""

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import filtax as fx

pytestmark = pytest.mark.x64
rng = np.random.default_rng(4)
T, NOISE = 25, 0.4
X = rng.normal(size=(T, 2))
Y = X @ np.array([1.0, -1.0]) + np.where(np.arange(T) < 12, 0.0, 4.0) + 0.5 * rng.normal(size=T)
START = dict(mean=jnp.array([0.5, 0.0]), cov=2.0)
model = fx.models.linear(noise=NOISE)


def by_hand(hazard, threshold):
    m0, P0 = np.array([0.5, 0.0]), 2.0 * np.eye(2)
    m, P, r, out = m0, P0, 0, []
    for x, y in zip(X, Y, strict=True):
        dens = [scipy.stats.norm(x @ a, np.sqrt(x @ B @ x + NOISE)).pdf(y) for a, B in ((m, P), (m0, P0))]
        total = (1 - hazard) * dens[0] + hazard * dens[1]
        nu = (1 - hazard) * dens[0] / total
        if nu > threshold:
            m, P, r = nu * m + (1 - nu) * m0, nu**2 * P + (1 - nu**2) * P0, r + 1
        else:
            m, P, r = m0, P0, 0
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
    want = 0.9 * oupr.belief(state).mean + 0.1 * np.array([0.5, 0.0])
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
