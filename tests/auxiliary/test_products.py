"""Two auxiliary variables at once, T = 12, and how many values each has: against the enumeration of all histories."""

from collections import Counter
from itertools import pairwise, product

import jax.numpy as jnp
import numpy as np
import pytest

import filtax as fx
from filtax.auxiliary import change_times, experts, run_length

pytestmark = pytest.mark.x64
NOISE, WALKS, SHARE = 0.3, (0.0, 0.7), np.array([0.25, 0.75])
rng = np.random.default_rng(8)
X = rng.normal(size=(12, 2))
Y = X @ np.array([1.0, -1.0]) + np.where(np.arange(12) < 3, 0.0, 2.0) + 0.5 * rng.normal(size=12)
START = dict(mean=jnp.zeros(2), cov=1.0)
model = fx.models.linear(noise=NOISE)
dynamics = fx.priors.by_expert([fx.priors.additive_inflation(q) for q in WALKS])
two = lambda: experts(2, prior=SHARE)


def all_segments(T, hazard, walks, share):
    """All segmentations, each segment one dense Gaussian whose expert is summed over on the spot."""

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
    [
        (run_length, 4),
        (change_times, 4),
        pytest.param(run_length, 12, marks=pytest.mark.nightly),
        pytest.param(change_times, 7, marks=pytest.mark.nightly),
    ],
)
def test_three_experts_inside_regimes(build, T):
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
    assert np.isfinite(end.hypotheses.log_weight).sum() == both.auxiliary.cardinality(T)
    assert fx.method(both.name, model=model).name == both.name


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
