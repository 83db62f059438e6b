"""CPP-OU: the share that is kept, against a fine grid in numpy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import filtax as fx

pytestmark = pytest.mark.x64
rng = np.random.default_rng(6)
X = rng.normal(size=(6, 2))
Y = X @ np.array([1.0, -1.0]) + 0.3 * rng.normal(size=6)
NOISE, START = 0.4, dict(mean=jnp.zeros(2), cov=4.0)
model = fx.models.linear(noise=NOISE)


def evidence(m, P, x, y, keep):
    m, P = keep * m, keep**2 * P + (1 - keep**2) * 4.0 * np.eye(2)
    return scipy.stats.norm(x @ m, np.sqrt(x @ P @ x + NOISE)).logpdf(y)


@pytest.mark.parametrize("y", [0.2, 1.5, 6.0])
def test_one_share_is_the_most_probable_one(y):
    plain, cpp = fx.method("C-Static", model=model), fx.method("CPP-OU", model=model)
    state, _ = plain.scan(plain.init(**START), X, Y)
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
    state, _ = plain.scan(plain.init(**START), X, Y)
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
    state, _ = plain.scan(plain.init(**START), X, Y)
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
