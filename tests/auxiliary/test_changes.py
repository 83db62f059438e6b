"""Hypotheses about changes against the enumeration of all histories: run lengths, paths, counts; bounded ones, gaps."""

from collections import Counter

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import filtax as fx
from filtax.auxiliary import change_locations, change_times, hazards, run_length, run_length_count
from paths import enumerate_paths

pytestmark = pytest.mark.x64
T, NOISE = 6, 0.3
rng = np.random.default_rng(5)
X = rng.normal(size=(T, 2))
Y = X @ np.array([1.0, -1.0]) + np.where(np.arange(T) < 3, 0.0, 2.0) + 0.5 * rng.normal(size=T)
GAP = np.where(np.arange(T) == 4, np.nan, Y)
START = dict(mean=jnp.zeros(2), cov=1.0)
model = fx.models.linear(noise=NOISE)
LENGTHS, HAZARDS = [0.1, 0.2, 0.3, 0.4], [0.1, 0.2 / 0.9, 0.3 / 0.7, 1.0]
LAWS = {
    "flat": (0.2, lambda r, c, t: 0.2),
    "zero": (0.0, lambda r, c, t: 0.0),
    "one": (1.0, lambda r, c, t: 1.0),
    "function": (lambda r: 1.0 / (r + 2.0), lambda r, c, t: 1.0 / (r + 2.0)),
    "lengths": (hazards.from_lengths(LENGTHS), lambda r, c, t: HAZARDS[min(r, 3)]),
}


def build(auxiliary, prior="PR", dynamics=None):
    name = "RL[2]-PR(hazard=0.5)" if prior == "PR" else "CPL[2]-MCI(hazard=0.5, beta=0.25)"
    return fx.method(name, model=model, auxiliary=auxiliary, prior=dynamics)


def run(auxiliary, prior="PR", dynamics=None, Y=Y):
    bone = build(auxiliary, prior, dynamics)
    return bone, *bone.scan(bone.init(**START), X, Y)


def check(bone, end, infos, want):
    np.testing.assert_allclose(infos.log_evidence.sum(), want.log_evidence, rtol=1e-11)
    got = np.bincount(end.hypotheses.aux.runlength, np.exp(end.hypotheses.log_weight), minlength=T + 1)
    np.testing.assert_allclose(got, np.bincount(want.runlength, want.probability, minlength=T + 1), atol=1e-11)
    np.testing.assert_allclose(infos.change_probability[-1], got[0], atol=1e-12)
    np.testing.assert_allclose(bone.belief(end).mean @ X[0], want.mean_of(X[0]), rtol=1e-9, atol=1e-12)
    return got


@pytest.mark.parametrize(("law", "q", "capacity"), [(law, 0.0, 16) for law in LAWS] + [("flat", 0.3, 2)])
def test_run_lengths(law, q, capacity):
    """One datum is missing; the last case drifts, and begins with two slots that must double."""
    given, exact = LAWS[law]
    bone, end, infos = run(run_length(given, capacity=capacity), dynamics=fx.priors.additive_inflation(q), Y=GAP)
    got = check(bone, end, infos, enumerate_paths(X, GAP, NOISE, exact, q=q))
    assert int(infos.runlength[-1]) == int(np.argmax(got))


@pytest.mark.parametrize("kind", [change_times, change_locations])
def test_paths_with_resets(kind):
    """Evidence, run length, forecast, and the paths themselves."""
    bone, end, infos = run(kind(0.2, capacity=2))
    want = enumerate_paths(X, Y, NOISE, lambda r, c, t: 0.2)
    check(bone, end, infos, want)
    live = np.isfinite(end.hypotheses.log_weight)
    assert live.sum() == 2**T == bone.auxiliary.cardinality(T)
    got = {
        tuple(sorted(t for t in times if t > 0)): w
        for times, w in zip(
            np.asarray(end.hypotheses.aux.times)[live].tolist(), np.exp(end.hypotheses.log_weight)[live], strict=True
        )
    }
    exact = {tuple(np.flatnonzero(path) + 1): p for path, p in zip(want.changes, want.probability, strict=True)}
    assert got.keys() == exact.keys()
    np.testing.assert_allclose([got[k] for k in exact], list(exact.values()), atol=1e-11)


def test_paths_under_a_law_of_segment_lengths():
    check(*run(change_times(LAWS["lengths"][0])), enumerate_paths(X, Y, NOISE, LAWS["lengths"][1]))


def test_inflation_at_a_change():
    """CPL-MCI with the factor of the evidence (errata E16): a change divides the covariance by beta."""
    bone, end, infos = run(change_locations(0.2), prior="MCI")
    want = enumerate_paths(X, Y, NOISE, lambda r, c, t: 0.2, change=lambda m, P: (m, P / 0.25))
    check(bone, end, infos, want)


@pytest.mark.parametrize(("a", "b"), [(1.0, 4.0), (0.5, 0.5)])
def test_unknown_hazard(a, b):
    """RLCC: run length and count with a Beta prior on the hazard; exactly 1 + t(t+1)/2 hypotheses."""
    bone, end, infos = run(run_length_count(a, b, capacity=4))
    want = enumerate_paths(X, Y, NOISE, lambda r, c, t: (a + c) / (a + b + t))
    check(bone, end, infos, want)
    live = np.isfinite(end.hypotheses.log_weight)
    assert live.sum() == bone.auxiliary.cardinality(T) == 1 + T * (T + 1) // 2
    pairs = Counter()
    for r, c, p in zip(want.runlength, want.changes.sum(1), want.probability, strict=True):
        pairs[int(r), int(c)] += p
    aux = end.hypotheses.aux
    got = {
        (int(r), int(c)): w
        for r, c, w in zip(aux.runlength[live], aux.count[live], np.exp(end.hypotheses.log_weight)[live], strict=True)
    }
    assert got.keys() == pairs.keys()
    np.testing.assert_allclose([got[k] for k in pairs], list(pairs.values()), atol=1e-11)


@pytest.mark.parametrize(("kind", "keep"), [(run_length, T + 1), (change_times, 2**T)])
def test_bounded_with_room_for_all_is_exact(kind, keep):
    _, _, infos = run(kind(0.2, keep=keep))
    _, _, want = run(kind(0.2))
    np.testing.assert_allclose(infos.log_evidence, want.log_evidence, rtol=1e-12)


@pytest.mark.parametrize("K", [1, 3])
def test_bounded_keeps_the_most_probable(K):
    """Against lists that are extended, sorted and cut."""
    rl = build(run_length(0.2, keep=K))
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
    rl = build(run_length(0.2, keep=5))
    state, _ = rl.scan(rl.init(**START), X[:3], Y[:3])
    after, _ = rl.step(state, X[3], np.nan, dt=3.0)
    np.testing.assert_allclose(
        np.exp(after.hypotheses.log_weight[after.hypotheses.aux.runlength == 0]).sum(), 1 - 0.8**3, rtol=1e-6
    )


def test_doubling_has_an_end():
    bone = fx.method("CPL[inf]-MCI(hazard=0.1)", model=model)
    with pytest.raises(ValueError, match=r"CPL\[inf\] would need about 10\^12 hypotheses"):
        bone.scan(bone.init(**START), np.ones((40, 2)), np.ones(40))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: run_length(1.5), r"hazard=\.\.\. must lie in \[0, 1\], got 1\.5"),
        (lambda: run_length(0.1, keep=0), r"RL\[K\] must be a whole number of at least 1, got 0"),
        (lambda: run_length(0.1, keep=9_999_999_999), r"RL\[K\] must be a whole number of at most 10000000, got 99999"),
        (lambda: run_length(0.1, capacity=0), r"RL\(capacity=\.\.\.\) must be a whole number of at least 2"),
        (
            lambda: fx.online(build(run_length(0.1)), build(run_length(0.1)).init(**START)),
            "a bank that grows has no fixed",
        ),
        (lambda: change_times(0.1, keep=10**9), r"CPT\[K\] must be a whole number of at most 10000000"),
        (lambda: change_times(0.1, keep=0), r"CPT\[K\] must be a whole number"),
        (lambda: change_locations(2.0), r"must lie in \[0, 1\]"),
        (lambda: run_length_count(0.0, 1.0), r"RLCC\(a=\.\.\.\) must be finite and above 0"),
        (lambda: change_times(0.1, memory=0), "memory"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()
