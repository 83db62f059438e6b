"""Paths of changes against their enumeration: CPT and CPL hold all 2^t of them, RLCC merges equal counts."""

from collections import Counter

import jax.numpy as jnp
import numpy as np
import pytest

import filtax as fx
from filtax.auxiliary import change_locations, change_times, hazards, run_length_count
from paths import enumerate_paths

pytestmark = pytest.mark.x64
T, NOISE = 6, 0.3
rng = np.random.default_rng(5)
X = rng.normal(size=(T, 2))
Y = X @ np.array([1.0, -1.0]) + np.where(np.arange(T) < 3, 0.0, 2.0) + 0.5 * rng.normal(size=T)
START = dict(mean=jnp.zeros(2), cov=1.0)
model = fx.models.linear(noise=NOISE)


def run(auxiliary, prior="PR", **parts):
    bone = fx.method(
        f"RL[2]-{prior}(hazard=0.5)" if prior == "PR" else f"CPL[2]-{prior}(hazard=0.5, beta=0.25)",
        model=model,
        auxiliary=auxiliary,
        **parts,
    )
    end, infos = bone.scan(bone.init(**START), X, Y)
    return bone, end, infos


def check(end, infos, bone, want):
    np.testing.assert_allclose(infos.log_evidence.sum(), want.log_evidence, rtol=1e-11)
    weight = np.exp(end.hypotheses.log_weight)
    got = np.bincount(end.hypotheses.aux.runlength, weight, minlength=T + 1)
    np.testing.assert_allclose(got, np.bincount(want.runlength, want.probability, minlength=T + 1), atol=1e-11)
    np.testing.assert_allclose(infos.change_probability[-1], got[0], atol=1e-12)
    np.testing.assert_allclose(bone.belief(end).mean @ X[0], want.mean_of(X[0]), rtol=1e-9)


@pytest.mark.parametrize("build", [change_times, change_locations])
def test_paths_with_resets(build):
    """Evidence, run length, forecast, and the paths themselves."""
    bone, end, infos = run(build(0.2, capacity=2))
    want = enumerate_paths(X, Y, NOISE, lambda r, c, t: 0.2)
    check(end, infos, bone, want)
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


def test_segment_lengths():
    law = hazards.from_lengths([0.1, 0.2, 0.3, 0.4])
    exact = [0.1, 0.2 / 0.9, 0.3 / 0.7, 1.0]
    bone, end, infos = run(change_times(law))
    check(end, infos, bone, enumerate_paths(X, Y, NOISE, lambda r, c, t: exact[min(r, 3)]))


def test_inflation_at_a_change():
    """CPL-MCI with the factor of the evidence (errata E16): a change divides the covariance by beta."""
    bone, end, infos = run(change_locations(0.2), prior="MCI")
    want = enumerate_paths(X, Y, NOISE, lambda r, c, t: 0.2, change=lambda m, P: (m, P / 0.25))
    check(end, infos, bone, want)


@pytest.mark.parametrize(("a", "b"), [(1.0, 4.0), (0.5, 0.5)])
def test_unknown_hazard(a, b):
    """RLCC: run length and count with a Beta prior on the hazard; exactly 1 + t(t+1)/2 hypotheses."""
    bone, end, infos = run(run_length_count(a, b, capacity=4))
    want = enumerate_paths(X, Y, NOISE, lambda r, c, t: (a + c) / (a + b + t))
    check(end, infos, bone, want)
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


def test_bounded_with_room_for_all_is_exact():
    _, _, infos = run(change_times(0.2, keep=2**T))
    _, _, want = run(change_times(0.2))
    np.testing.assert_allclose(infos.log_evidence, want.log_evidence, rtol=1e-12)


def test_doubling_has_an_end():
    bone = fx.method("CPL[inf]-MCI(hazard=0.1)", model=model)
    with pytest.raises(ValueError, match=r"CPL\[inf\] would need about 10\^12 hypotheses"):
        bone.scan(bone.init(**START), np.ones((40, 2)), np.ones(40))


@pytest.mark.parametrize(
    ("call", "message"),
    [
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
