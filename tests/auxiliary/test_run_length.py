"""Run lengths against the enumeration of all histories: evidence, posterior, forecast; any hazard, gaps, experts."""

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import filtax as fx
from filtax.auxiliary import hazards, run_length
from paths import enumerate_paths

pytestmark = pytest.mark.x64
T, NOISE = 8, 0.3
rng = np.random.default_rng(3)
X = rng.normal(size=(T, 2))
Y = X @ np.array([1.0, -1.0]) + np.where(np.arange(T) < 4, 0.0, 3.0) + 0.5 * rng.normal(size=T)
GAP = np.where(np.arange(T) == 5, np.nan, Y)
START = dict(mean=jnp.zeros(2), cov=1.0)
model = fx.models.linear(noise=NOISE)

LAWS = {
    "flat": (0.2, lambda r, c, t: 0.2),
    "zero": (0.0, lambda r, c, t: 0.0),
    "one": (1.0, lambda r, c, t: 1.0),
    "function": (lambda r: 1.0 / (r + 2.0), lambda r, c, t: 1.0 / (r + 2.0)),
    "lengths": (
        hazards.from_lengths([0.1, 0.2, 0.3, 0.4]),
        lambda r, c, t: [0.1, 0.2 / 0.9, 0.3 / 0.7, 1.0][min(r, 3)],
    ),
}


def build(law, keep=None, dynamics=None, capacity=16):
    return fx.method(
        "RL[inf]-PR(hazard=0.5)", model=model, auxiliary=run_length(law, keep=keep, capacity=capacity), prior=dynamics
    )


@pytest.mark.parametrize(("law", "q", "capacity"), [(law, 0.0, 16) for law in LAWS] + [("flat", 0.3, 2)])
def test_equals_the_enumeration_of_all_histories(law, q, capacity):
    """One datum is missing; the last case drifts, and begins with a bank of two slots that must double."""
    given, exact = LAWS[law]
    rl = build(given, dynamics=fx.priors.additive_inflation(q), capacity=capacity)
    end, infos = rl.scan(rl.init(**START), X, GAP)
    want = enumerate_paths(X, GAP, NOISE, exact, q=q)
    np.testing.assert_allclose(infos.log_evidence.sum(), want.log_evidence, rtol=1e-11)
    got = np.bincount(end.hypotheses.aux.runlength, np.exp(end.hypotheses.log_weight), minlength=T + 1)
    np.testing.assert_allclose(got, np.bincount(want.runlength, want.probability, minlength=T + 1), atol=1e-11)
    np.testing.assert_allclose(infos.change_probability[-1], got[0], atol=1e-12)
    assert int(infos.runlength[-1]) == int(np.argmax(got))
    np.testing.assert_allclose(rl.belief(end).mean @ X[0], want.mean_of(X[0]), rtol=1e-9, atol=1e-12)


def test_bounded_with_room_for_all_is_exact_and_steps_agree_with_scan():
    whole, few = build(0.2), build(0.2, keep=T + 1)
    start = whole.init(**START)
    _, exact = whole.scan(start, X, Y)
    _, same = few.scan(few.init(**START), X, Y)
    np.testing.assert_allclose(same.log_evidence, exact.log_evidence, rtol=1e-12)
    state = start
    for t in range(T):
        state, info = whole.step(state, X[t], Y[t])
        np.testing.assert_allclose(info.log_evidence, exact.log_evidence[t], rtol=1e-12)
    assert state.hypotheses.log_weight.size == 16


@pytest.mark.parametrize("K", [1, 3])
def test_bounded_keeps_the_most_probable(K):
    """Against lists that are extended, sorted and cut."""
    rl = build(0.2, keep=K)
    _, infos = rl.scan(rl.init(**START), X, Y)
    kept, evidence = [(0.0, np.zeros(2), np.eye(2))], []
    for x, y in zip(X, Y, strict=True):
        grown = [(lw + np.log(0.8), m, P) for lw, m, P in kept]
        grown.append((np.log(0.2), np.zeros(2), np.eye(2)))
        new = []
        for lw, m, P in grown:
            s = x @ P @ x + NOISE
            gain = P @ x / s
            score = lw + scipy.stats.norm(x @ m, np.sqrt(s)).logpdf(y)
            new.append((score, m + gain * (y - x @ m), P - np.outer(gain, gain) * s))
        evidence.append(np.logaddexp.reduce([lw for lw, _, _ in new]))
        new = sorted(new, key=lambda h: -h[0])[:K]
        total = np.logaddexp.reduce([lw for lw, _, _ in new])
        kept = [(lw - total, m, P) for lw, m, P in new]
    np.testing.assert_allclose(infos.log_evidence, evidence, rtol=1e-10)


def test_a_longer_step_is_several_short_ones():
    """dt = 3 with a datum at its end: the chance of no change is that of three steps."""
    rl = build(0.2, keep=5)
    state, _ = rl.scan(rl.init(**START), X[:3], Y[:3])
    after, _ = rl.step(state, X[3], np.nan, dt=3.0)
    np.testing.assert_allclose(
        np.exp(after.hypotheses.log_weight[after.hypotheses.aux.runlength == 0]).sum(), 1 - 0.8**3, rtol=1e-6
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: run_length(1.5), r"hazard=\.\.\. must lie in \[0, 1\], got 1\.5"),
        (lambda: run_length(0.1, keep=0), r"RL\[K\] must be a whole number of at least 1, got 0"),
        (lambda: run_length(0.1, keep=9_999_999_999), r"RL\[K\] must be a whole number of at most 10000000, got 99999"),
        (lambda: run_length(0.1, capacity=0), r"RL\(capacity=\.\.\.\) must be a whole number of at least 2"),
        (lambda: fx.online(build(0.1), build(0.1).init(**START)), r"a bank that grows has no fixed shape"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()
