"""Experts: Magill's bank against independent filters; switching ones against enumeration and by hand."""

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import filtax as fx
from filtax.auxiliary import experts

pytestmark = pytest.mark.x64
rng = np.random.default_rng(8)
T, NOISE = 9, 0.5
X = rng.normal(size=(T, 2))
Y = rng.normal(size=T)
START = dict(mean=jnp.zeros(2), cov=1.0)
model = fx.models.linear(noise=NOISE)
QS = [0.0, 0.2, 1.0]
dynamics = fx.priors.by_expert([fx.priors.additive_inflation(q) for q in QS])


def test_a_bank_of_filters_is_a_mixture_of_filters():
    """Evidence of the stream = prior mixture of the evidences of each filter alone; weights likewise."""
    prior = np.array([0.5, 0.3, 0.2])
    hypotheses = fx.method("ME[3]-ACI", model=model, auxiliary=experts(3, prior=prior), prior=dynamics)
    end, infos = hypotheses.scan(hypotheses.init(**START), X, Y)
    alone = []
    for q in QS:
        kf = fx.method(f"C-ACI(q={q})", model=model)
        alone.append(float(kf.scan(kf.init(**START), X, Y)[1].log_evidence.sum()))
    joint = np.log(prior) + alone
    np.testing.assert_allclose(infos.log_evidence.sum(), np.logaddexp.reduce(joint), rtol=1e-11)
    np.testing.assert_allclose(np.exp(end.hypotheses.log_weight), np.exp(joint - np.logaddexp.reduce(joint)), rtol=1e-9)
    assert hypotheses.name == "LG+ME[3]-ACI"


@pytest.mark.parametrize("merge", ["imm", "gpb"])
def test_switching_experts_by_hand(merge):
    """Two steps of the interacting multiple model, and of the pseudo-Bayesian one, written out in numpy."""
    P = np.array([[0.9, 0.1], [0.3, 0.7]])
    pair = fx.priors.by_expert([fx.priors.additive_inflation(0.0), fx.priors.additive_inflation(1.0)])
    hypotheses = fx.method("ME[2]-ACI", model=model, auxiliary=experts(2, transition=P, merge=merge), prior=pair)
    end, infos = hypotheses.scan(hypotheses.init(**START), X[:4], Y[:4])
    w, m, C = np.array([0.5, 0.5]), np.zeros((2, 2)), np.stack([np.eye(2)] * 2)
    evidence = []
    for x, y in zip(X[:4], Y[:4], strict=True):
        joint = w[:, None] * P
        ahead = joint.sum(0)
        share = joint / ahead if merge == "imm" else np.stack([w, w], axis=1)
        mean = share.T @ m
        cov = np.stack(
            [sum(share[i, j] * (C[i] + np.outer(m[i] - mean[j], m[i] - mean[j])) for i in (0, 1)) for j in (0, 1)]
        )
        cov[1] += np.eye(2)
        dens = np.array([scipy.stats.norm(x @ mean[j], np.sqrt(x @ cov[j] @ x + NOISE)).pdf(y) for j in (0, 1)])
        evidence.append(np.log(ahead @ dens))
        w = ahead * dens / (ahead @ dens)
        for j in (0, 1):
            s = x @ cov[j] @ x + NOISE
            gain = cov[j] @ x / s
            m[j], C[j] = mean[j] + gain * (y - x @ mean[j]), cov[j] - np.outer(gain, gain) * s
    np.testing.assert_allclose(infos.log_evidence, evidence, rtol=1e-9)
    np.testing.assert_allclose(np.exp(end.hypotheses.log_weight), w, rtol=1e-9)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: experts(0), "must not be empty"),
        (lambda: experts(2, prior=[0.5, 0.6]), r"experts\(prior=\.\.\.\) must have shape \(2,\) and sum to 1"),
        (lambda: experts(2, transition=np.eye(3)), r"must have shape \(2, 2\)"),
        (lambda: experts(2, merge="max"), "must be imm, gpb or none"),
        (
            lambda: fx.priors.by_expert([fx.priors.additive_inflation(0.1), fx.priors.static()]),
            "must be of one kind",
        ),
        (lambda: fx.priors.by_expert([]), "the list of dynamics is empty"),
        (lambda: fx.auxiliary.run_length(0.1, experts=2), r"RL\(experts=...\) must be filtax.auxiliary.experts"),
        (lambda: fx.auxiliary.change_times(0.1, experts=[1]), r"CPT\(experts=...\) must be filtax.auxiliary.experts"),
        (
            lambda: fx.auxiliary.run_length(0.1, experts=experts(2, transition=np.eye(2))),
            "experts inside of a regime hold until it ends; leave their transition= out",
        ),
        (lambda: fx.method("C-ACI", model=model, prior=dynamics), r"holds 3 dynamics but C has no experts"),
        (lambda: fx.method("ME[2]-ACI", model=model, prior=dynamics), r"holds 3 dynamics but ME\[2\] has 2 experts"),
        (
            lambda: fx.method("RL[2]-PR(hazard=0.1)", model=model, weighting=fx.weighting.fixed_share(0.1)),
            "those that hold no hypothesis; use it with ME",
        ),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()
