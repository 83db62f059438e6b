"""Two auxiliary variables at once, T = 12, and how many values each has: against the enumeration of all histories."""

from collections import Counter
from itertools import pairwise, product

import jax.numpy as jnp
import numpy as np
import pytest

import filtax as fx
from filtax.auxiliary import change_locations, change_times, experts, hazards, run_length, run_length_count
from paths import enumerate_paths

pytestmark = pytest.mark.x64
NOISE, WALKS, SHARE = 0.3, (0.0, 0.7), np.array([0.25, 0.75])
rng = np.random.default_rng(8)
X = rng.normal(size=(12, 2))
Y = X @ np.array([1.0, -1.0]) + np.where(np.arange(12) < 3, 0.0, 2.0) + 0.5 * rng.normal(size=12)
START = dict(mean=jnp.zeros(2), cov=1.0)
model = fx.models.linear(noise=NOISE)
dynamics = fx.priors.by_expert([fx.priors.additive_inflation(q) for q in WALKS])
two = lambda: experts(2, prior=SHARE)


def all_products(T, hazard):
    """Every history with every choice of an expert for each regime; a new hypothesis does not drift at its birth."""
    found = []
    for path in product((False, True), repeat=T):
        for names in product((0, 1), repeat=1 + sum(path)):
            m, P, c, total = np.zeros(2), np.eye(2), 0, np.log(SHARE[names[0]])
            for x, y, changed in zip(X[:T], Y[:T], path, strict=True):
                total += np.log(hazard if changed else 1 - hazard)
                if changed:
                    c += 1
                    m, P, total = np.zeros(2), np.eye(2), total + np.log(SHARE[names[c]])
                else:
                    P = P + WALKS[names[c]] * np.eye(2)
                s = x @ P @ x + NOISE
                total += -0.5 * ((y - x @ m) ** 2 / s + np.log(2 * np.pi * s))
                gain = P @ x / s
                m, P = m + gain * (y - x @ m), P - np.outer(gain, gain) * s
            run = T if not any(path) else path[::-1].index(True)
            found.append((run, names[-1], total, m))
    top = np.logaddexp.reduce([total for *_, total, _ in found])
    posterior, mean = Counter(), np.zeros(2)
    for run, name, total, m in found:
        posterior[run, name] += np.exp(total - top)
        mean += np.exp(total - top) * m
    return top, posterior, mean, len(found)


@pytest.mark.parametrize(
    ("build", "T"),
    [(change_times, 4), pytest.param(run_length, 4), pytest.param(change_times, 7, marks=pytest.mark.nightly)],
)
@pytest.mark.nightly
def test_experts_inside_regimes(build, T):
    """CPT/ME and RL/ME: evidence, posterior of run length and expert, mean."""
    both = fx.method(
        "RL[inf]-PR(hazard=0.2)",
        model=model,
        auxiliary=build(0.2, experts=two(), capacity=6),
        prior=fx.priors.reset(dynamics),
    )
    end, infos = both.scan(both.init(**START), X[:T], Y[:T], keep=("log_evidence",))
    evidence, posterior, mean, count = all_products(T, 0.2)
    np.testing.assert_allclose(infos.log_evidence.sum(), evidence, rtol=1e-11)
    got, aux = Counter(), end.hypotheses.aux
    for run, name, weight in zip(aux.runlength, aux.expert, np.exp(end.hypotheses.log_weight), strict=True):
        got[int(run), int(name)] += weight
    for key in posterior:
        assert got[key] == pytest.approx(posterior[key], abs=1e-11)
    np.testing.assert_allclose(both.belief(end).mean, mean, rtol=1e-9)
    live = int(np.isfinite(end.hypotheses.log_weight).sum())
    assert live == both.auxiliary.cardinality(T) == (count if build is change_times else 2 * (T + 1))


def all_segments(T, hazard, walks, share):
    """The same sum by segmentations, each segment one dense Gaussian whose expert is summed over on the spot."""

    def one(a, b, q, old):
        """Log density of the data from a to b, and theta's mean at the last; a run from before has drifted once."""
        x, steps = X[a:b], np.arange(b - a) + old
        walk = 1.0 + q * np.minimum.outer(steps, steps)
        S = walk * (x @ x.T) + NOISE * np.eye(b - a)
        solved = np.linalg.solve(S, Y[a:b])
        log_density = -0.5 * (Y[a:b] @ solved + np.linalg.slogdet(2 * np.pi * S)[1])
        return log_density, (walk[-1][:, None] * x).T @ solved

    keys = [(a, b, old) for a in range(T) for b in range(a + 1, T + 1) for old in ({False, a == 0})]
    every = {(a, b, old): [one(a, b, q, old) for q in walks] for a, b, old in keys}
    found = []
    for path in product((False, True), repeat=T):
        cuts = [0, *(t for t in range(1, T) if path[t]), T]
        each = [every[a, b, a == 0 and not path[0]] for a, b in pairwise(cuts)]
        total = sum(np.log(hazard if changed else 1 - hazard) for changed in path)
        for segment in each[:-1]:
            total += np.logaddexp.reduce([np.log(s) + log for s, (log, _) in zip(share, segment, strict=True)])
        run = T if not any(path) else path[::-1].index(True)
        for e, (log_density, mean) in enumerate(each[-1]):
            found.append((run, e, total + np.log(share[e]) + log_density, mean))
    top = np.logaddexp.reduce([total for *_, total, _ in found])
    posterior, mean = Counter(), np.zeros(2)
    for run, e, total, m in found:
        posterior[run, e] += np.exp(total - top)
        mean += np.exp(total - top) * m
    return top, posterior, mean


@pytest.mark.parametrize(
    ("build", "T"),
    [pytest.param(run_length, 12, marks=pytest.mark.nightly), pytest.param(change_times, 7, marks=pytest.mark.nightly)],
)
def test_three_experts_to_twelve_data(build, T):
    """RL/ME with all 2^12 segmentations, CPT/ME with all 3 * 4^7 paths; and a bank smaller than the list of experts."""
    walks, share = (0.0, 0.2, 0.7), (0.2, 0.3, 0.5)
    inside = experts(3, prior=share)
    each = fx.priors.by_expert([fx.priors.additive_inflation(q) for q in walks])
    both = fx.method(
        "RL[inf]-PR(hazard=0.2)",
        model=model,
        auxiliary=build(0.2, experts=inside, capacity=2),
        prior=fx.priors.reset(each),
    )
    end, infos = both.scan(both.init(**START), X[:T], Y[:T], keep=("log_evidence",))
    evidence, posterior, mean = all_segments(T, 0.2, walks, share)
    np.testing.assert_allclose(infos.log_evidence.sum(), evidence, rtol=1e-10)
    got, aux = Counter(), end.hypotheses.aux
    for run, name, weight in zip(
        aux.runlength.tolist(), aux.expert.tolist(), np.exp(end.hypotheses.log_weight), strict=True
    ):
        got[run, name] += weight
    np.testing.assert_allclose([got[key] for key in posterior], list(posterior.values()), atol=1e-10)
    np.testing.assert_allclose(both.belief(end).mean, mean, rtol=1e-10, atol=1e-10)


def test_a_product_with_one_expert_is_no_product():
    alone = fx.method("CPT[4]/ME[1]-PR(hazard=0.2)", model=model)
    plain = fx.method("CPT[4]-PR(hazard=0.2)", model=model)
    got, want = (bone.scan(bone.init(**START), X, Y, keep=("log_evidence",))[1].log_evidence for bone in (alone, plain))
    np.testing.assert_allclose(got, want, rtol=1e-12)


@pytest.mark.parametrize("name", ["RL[1]/ME[3]-PR(hazard=0.0)", "CPT[2]/ME[3]-PR(hazard=0.0)"])
def test_equal_experts_are_one_however_few_are_kept(name):
    """None is lost before the first datum: what is foreseen sums to 1."""
    few, plain = fx.method(name, model=model), fx.method("C-Static", model=model)
    got, want = (bone.scan(bone.init(**START), X, Y, keep=("log_evidence",))[1].log_evidence for bone in (few, plain))
    np.testing.assert_allclose(got, want, rtol=1e-12)


LENGTHS = [0.1, 0.2, 0.3, 0.4]
TWELVE = {
    "RL-flat": (lambda: run_length(0.2, capacity=2), "PR", lambda r, c, t: 0.2),
    "RL-function": (lambda: run_length(lambda r: 1.0 / (r + 2.0)), "PR", lambda r, c, t: 1.0 / (r + 2.0)),
    "RL-lengths": (
        lambda: run_length(hazards.from_lengths(LENGTHS)),
        "PR",
        lambda r, c, t: [0.1, 0.2 / 0.9, 0.3 / 0.7, 1.0][min(r, 3)],
    ),
    "RLCC": (lambda: run_length_count(1.0, 4.0), "PR", lambda r, c, t: (1.0 + c) / (5.0 + t)),
    "CPT": (lambda: change_times(0.2), "PR", lambda r, c, t: 0.2),
    "CPL": (lambda: change_locations(0.2), "MCI", lambda r, c, t: 0.2),
}


@pytest.mark.nightly
@pytest.mark.parametrize("name", TWELVE)
def test_twelve_data(name):
    """All 2^12 histories: probabilities, evidence and the mean of the next forecast to 1e-10."""
    build, prior, hazard = TWELVE[name]
    named = "RL[inf]-PR(hazard=0.5)" if prior == "PR" else "CPL[inf]-MCI(hazard=0.5, beta=0.25)"
    bone = fx.method(named, model=model, auxiliary=build())
    end, infos = bone.scan(bone.init(**START), X, Y, keep=("log_evidence",))
    want = enumerate_paths(X, Y, NOISE, hazard, change=None if prior == "PR" else lambda m, P: (m, P / 0.25))
    np.testing.assert_allclose(infos.log_evidence.sum(), want.log_evidence, rtol=1e-10)
    got = np.bincount(end.hypotheses.aux.runlength, np.exp(end.hypotheses.log_weight), minlength=13)
    np.testing.assert_allclose(got, np.bincount(want.runlength, want.probability, minlength=13), atol=1e-10)
    np.testing.assert_allclose(bone.belief(end).mean @ X[0], want.mean_of(X[0]), rtol=1e-10, atol=1e-10)


VALUES = {
    "RL[inf]-PR(hazard=0.2)": ("{0, ..., t}", 4),
    "RLCC[inf](a=1.0, b=4.0)-PR": ("{(r, c): r + c <= t, c >= 1} and (t, 0)", 7),
    "CPT[inf]-PR(hazard=0.2)": ("2^{1, ..., t}", 8),
    "CPL[inf]-MCI(hazard=0.2)": ("{0, 1}^t", 8),
    "CPL[inf](memory=2)-Sub": ("{0, 1}^t", 4),
    "ME[2]-Static": ("{1, ..., K}", 2),
    "C-Static": ("{c}", 1),
}


@pytest.mark.parametrize("name", VALUES)
def test_values_and_how_many_there_are(name):
    """Declared, and as many as the bank holds after three data (errata E17); a missing one counts a step as well."""
    bone = fx.method(name, model=model)
    end, _ = bone.scan(bone.init(**START), X[:3], Y[:3], keep=("ok",))
    assert (bone.auxiliary.values, bone.auxiliary.cardinality(3)) == VALUES[name]
    assert int(np.isfinite(end.hypotheses.log_weight).sum()) == VALUES[name][1]
