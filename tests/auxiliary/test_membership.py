"""Memberships of remembered data against all subsets of the past, each learned from in plain numpy."""

from itertools import product

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

import filtax as fx
from filtax.auxiliary import membership, membership_vector

pytestmark = pytest.mark.x64
NOISE, BELONG = 0.3, 0.7
rng = np.random.default_rng(11)
X = rng.normal(size=(13, 2))
Y = X @ np.array([1.0, -1.0]) + np.where(np.arange(13) % 4 < 2, 0.0, 2.0) + 0.5 * rng.normal(size=13)
START = dict(mean=jnp.zeros(2), cov=1.0)
model = fx.models.linear(noise=NOISE)


def learn(rows, share):
    """Posterior of N(0, I) given rows that count as a share of one: one dense solve."""
    G = X[rows] * np.sqrt(share)[:, None]
    cov = np.linalg.inv(np.eye(2) + G.T @ G / NOISE)
    return cov @ (X[rows].T @ (share * Y[rows])) / NOISE, cov


def density(t, mean, cov):
    s = X[t] @ cov @ X[t] + NOISE
    return -0.5 * ((Y[t] - X[t] @ mean) ** 2 / s + np.log(2 * np.pi * s))


def all_subsets(T, M, belong=BELONG):
    """For each datum the evidence, and the memberships (oldest first) with their posterior and beliefs at the last."""
    evidence = []
    for t in range(T):
        past = np.arange(max(0, t - M), t)
        found = []
        for bits in product((0.0, 1.0), repeat=len(past)):
            share = np.array(bits)
            prior = np.sum(np.where(share > 0, np.log(belong), np.log(1 - belong)))
            mean, cov = learn(past, share)
            found.append((bits, prior + density(t, mean, cov), *learn(np.r_[past, t], np.r_[share, 1.0])))
        evidence.append(scipy.special.logsumexp([joint for _, joint, *_ in found]))
    return np.array(evidence), found


@pytest.mark.parametrize(
    ("T", "M"), [(6, 6), (6, 3), pytest.param(12, 11, marks=pytest.mark.nightly)], ids=["all", "forgets", "twelve"]
)
def test_all_subsets_of_the_past(T, M):
    """Evidence, the probability of each subset, and the mean of the next forecast."""
    bone = fx.method(f"LG+CPL[inf](belong={BELONG}, memory={M})-Sub", model=model)
    end, infos = bone.scan(bone.init(**START), X[:T], Y[:T], keep=("log_evidence", "change_probability"))
    evidence, found = all_subsets(T, M)
    np.testing.assert_allclose(infos.log_evidence, evidence, rtol=1e-10, atol=1e-12)
    weight = np.exp(end.hypotheses.log_weight)
    members = np.asarray(end.hypotheses.aux.member)  # newest first, as they were asked: before the last datum
    got = {tuple(row[: len(found[0][0])][::-1].tolist()): w for row, w in zip(members, weight, strict=True) if w > 0}
    want = {bits: np.exp(joint - evidence[-1]) for bits, joint, *_ in found}
    assert got.keys() == want.keys()
    np.testing.assert_allclose([got[k] for k in want], list(want.values()), atol=1e-12)
    np.testing.assert_allclose(infos.change_probability[-1], want[(0.0,) * len(found[0][0])], atol=1e-12)
    mean = sum(np.exp(joint - evidence[-1]) * m for _, joint, m, _ in found)
    np.testing.assert_allclose(bone.belief(end).mean, mean, rtol=1e-9, atol=1e-11)
    further, _ = all_subsets(T + 1, M)
    np.testing.assert_allclose(bone.predict(end, X[T]).log_prob(Y[T]), further[-1], rtol=1e-10)
    assert len(found) == bone.auxiliary.cardinality(T - 1)


def greedy(t, past):
    """From the empty set, the datum that helps most, until none does."""
    value = lambda chosen: (
        density(t, *learn(past, np.isin(past, chosen).astype(float)))
        + len(chosen) * np.log(BELONG)
        + (len(past) - len(chosen)) * np.log(1 - BELONG)
    )
    chosen = []
    while True:
        tries = [[*chosen, j] for j in past if j not in chosen]
        best = max(tries, key=value, default=None)
        if best is None or value(best) <= value(chosen):
            return sorted(chosen)
        chosen = best


def test_the_subset_that_is_looked_for():
    """CPL[1]: the datum is judged by what was found last, learned with what is found now."""
    T, M = 7, 4
    bone = fx.method(f"CPL[1](belong={BELONG}, memory={M})-Sub", model=model)
    end, infos = bone.scan(bone.init(**START), X[:T], Y[:T])
    chosen = []
    for t in range(T):
        past = np.arange(max(0, t - M), t)
        last = [j for j in chosen if j in past]
        np.testing.assert_allclose(
            infos.log_evidence[t], density(t, *learn(np.array(last, int), np.ones(len(last)))), rtol=1e-10
        )
        found = greedy(t, past)
        assert int(infos.runlength[t]) == len(found)
        chosen = [*found, t]
    mean, cov = learn(np.array(chosen), np.ones(len(chosen)))
    np.testing.assert_allclose(bone.belief(end).mean, mean, rtol=1e-9)
    np.testing.assert_allclose(bone.belief(end).cov, cov, rtol=1e-9)


def test_shares_that_are_told_by_age():
    """CPV with a rate: the power posterior of the remembered data."""
    T, M, rate = 8, 4, 0.8
    bone = fx.method(f"CPV(memory={M}, rate={rate})-Sub", model=model)
    _, infos = bone.scan(bone.init(**START), X[:T], Y[:T], keep=("log_evidence",))
    for t in range(T):
        past = np.arange(max(0, t - M), t)
        want = density(t, *learn(past, rate ** (t - past).astype(float)))
        np.testing.assert_allclose(infos.log_evidence[t], want, rtol=1e-10)


def test_shares_that_are_climbed_to_beat_those_expected():
    """CPV: with one remembered datum, against a grid over its share."""
    auxiliary = membership_vector(belong=BELONG, memory=1)
    bone = fx.method("CPV-Sub", model=model, auxiliary=auxiliary, weighting=fx.weighting.retrospective(steps=60))
    state, _ = bone.step(bone.init(**START), X[0], Y[0])
    value = lambda t, v: (
        density(t, *learn(np.array([0]), np.array([v]))) + v * np.log(BELONG) + (1 - v) * np.log(1 - BELONG)
    )
    grid = np.linspace(0.0, 1.0, 401)
    for t in (1, 2, 4):
        after, info = bone.step(state, X[t], Y[t])
        np.testing.assert_allclose(info.log_evidence, density(t, *learn(np.array([0]), np.ones(1))), rtol=1e-10)
        seen = bone.belief(after).mean
        share = min(grid, key=lambda v: np.abs(learn(np.array([0, t]), np.array([v, 1.0]))[0] - seen).sum())
        best = max(value(t, v) for v in grid)
        assert best - 0.02 <= value(t, share) <= best + 1e-3


def test_when_all_data_belong_nothing_is_lost():
    """VCL: what leaves the coreset is folded in, so that a linear model is the static filter."""
    vcl = fx.methods.nguyen_2017(model, memory=3, posterior="LG")
    plain = fx.method("C-Static", model=model)
    end, infos = vcl.scan(vcl.init(**START), X, Y)
    want, exact = plain.scan(plain.init(**START), X, Y)
    np.testing.assert_allclose(infos.log_evidence, exact.log_evidence, rtol=1e-10)
    np.testing.assert_allclose(vcl.belief(end).cov, plain.belief(want).cov, rtol=1e-9)


def test_counts_and_unknown_noise_are_recalled_too():
    """A coin that may look back at one toss; and with NIG and memberships of 1, the filter without a memory."""
    coin = fx.method("Cj+CPL[inf](memory=1)-Sub", model=fx.models.bernoulli())
    state, _ = coin.step(coin.init(mean=0.5, cov=1 / 12), None, 1.0)
    np.testing.assert_allclose(coin.predict(state, None).mean, 0.5 * (1 / 2) + 0.5 * (2 / 3), rtol=1e-6)
    half = fx.method("Cj+CPV(memory=1, rate=0.5)-Sub", model=fx.models.bernoulli())
    state, _ = half.step(half.init(mean=0.5, cov=1 / 12), None, 1.0)
    np.testing.assert_allclose(half.predict(state, None).mean, 1.5 / 2.5, rtol=1e-6)
    noisy = fx.method("NIG+CPL[1](belong=1.0, memory=3, fold=True)-Sub", model=fx.models.linear(noise=1.0))
    plain = fx.method("NIG+C-Static", model=fx.models.linear(noise=1.0))
    got, want = (bone.scan(bone.init(**START), X, Y)[1].log_evidence for bone in (noisy, plain))
    np.testing.assert_allclose(got, want, rtol=1e-9)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: membership(memory=0), r"CPL\(memory=...\) must be a whole number of at least 1"),
        (lambda: membership(memory=20), r"would hold 2\^20 subsets; give at most 14, or CPL\[1\]"),
        (lambda: membership(keep=3), r"CPL\[3\]-Sub: .* write CPL\[1\] or CPL\[inf\]"),
        (lambda: membership(belong=1.5), r"must lie in \[0, 1\]"),
        (lambda: membership_vector(rate=2.0), r"CPV\(rate=...\) must lie in \[0, 1\]"),
        (lambda: fx.method("RL[3]-Sub(hazard=0.1)", model=model), r"RL\[3\]-Sub: memberships of data and the prior"),
        (lambda: fx.method("CPV-Static", model=model), "CPV-Static: memberships .* need each other; use Sub"),
        (lambda: fx.method("PF+CPV-Sub", model=model), "PF with Sub: .* must not be drawn again"),
        (lambda: fx.method("OGD+CPV-Sub", model=model), "OGD with Sub: it cannot learn from a share"),
        (
            lambda: fx.method("RL[2]-PR(hazard=0.1)", model=model, weighting=fx.weighting.retrospective()),
            r"Retrospective with RL\[2\]: it looks for a membership; use CPL\[1\] or CPV",
        ),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()
