"""Resets: what a new hypothesis starts from, against enumeration and against moments in plain numpy."""

import jax.numpy as jnp
import numpy as np
import pytest

import filtax as fx
from filtax.auxiliary import run_length
from filtax.priors import additive_inflation, moment_matched_reset, reset
from filtax.protocols import Hypotheses, Proposal

pytestmark = pytest.mark.x64
rng = np.random.default_rng(2)
MEANS = rng.normal(size=(3, 2))
ROOTS = rng.normal(size=(3, 2, 2))
COVS = ROOTS @ ROOTS.transpose(0, 2, 1) + 0.1 * np.eye(2)
LOG_RESET = np.log([0.02, 0.05, 0.01])
WEIGHT = np.array([0.25, 0.625, 0.125])
FORMS = [fx.beliefs.Covariance, fx.beliefs.SquareRoot, fx.beliefs.Precision]


def proposal(family):
    import jax

    beliefs = jax.vmap(family.start)(jnp.asarray(MEANS), jnp.asarray(COVS))
    is_new = jnp.array([False, True, False])
    return Proposal(Hypotheses(beliefs, None, jnp.zeros(3)), is_new, jnp.asarray(LOG_RESET))


def moments(belief):
    import jax

    return jax.vmap(lambda one: (one.mean, one.cov))(belief)


@pytest.mark.parametrize("family", FORMS)
def test_a_new_hypothesis_starts_from_the_initial_belief_and_others_drift(family):
    initial = family.start(jnp.ones(2), jnp.full(2, 9.0))
    mean, cov = moments(reset(additive_inflation(0.5))(proposal(family), initial, None))
    np.testing.assert_allclose(mean, [MEANS[0], np.ones(2), MEANS[2]], rtol=1e-10)
    want = [COVS[0] + 0.5 * np.eye(2), 9.0 * np.eye(2), COVS[2] + 0.5 * np.eye(2)]
    np.testing.assert_allclose(cov, want, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("family", FORMS)
def test_a_new_hypothesis_starts_from_the_moments_of_what_was_believed(family):
    """Weights nu(r) H(r), normalised (errata E13), centred."""
    initial = family.start(jnp.ones(2), jnp.full(2, 9.0))
    mean, cov = moments(moment_matched_reset()(proposal(family), initial, None))
    want = WEIGHT @ MEANS
    gap = MEANS - want
    np.testing.assert_allclose(mean[1], want, rtol=1e-10)
    np.testing.assert_allclose(cov[1], np.einsum("k,kij->ij", WEIGHT, COVS + gap[:, :, None] * gap[:, None]), rtol=1e-9)
    np.testing.assert_allclose(mean[0], MEANS[0])


def test_matching_needs_a_model_that_knows_its_regime():
    """Without a drift or a model of the run length new hypotheses copy one belief, and MMPR is the static filter."""
    X, Y = rng.normal(size=(9, 2)), rng.normal(size=9)
    model, start = fx.models.linear(noise=0.5), dict(mean=jnp.zeros(2), cov=1.0)
    matched = fx.method("RL[4]-MMPR(hazard=0.2)", model=model)
    plain = fx.method("C-Static", model=model)
    got = matched.scan(matched.init(**start), X, Y)[1].log_evidence
    np.testing.assert_allclose(got, plain.scan(plain.init(**start), X, Y)[1].log_evidence, rtol=1e-10)


@pytest.mark.parametrize("posterior", ["LG", "NIG"])
def test_a_line_goes_on_when_its_origin_moves(posterior):
    """Seen from the new origin, what was believed is the same line: nothing tells the regimes apart."""
    T, unit = 9, 4.0
    Y = 0.3 * np.arange(T) + rng.normal(size=T)
    linked = moment_matched_reset(frame=fx.priors.polynomial_shift(1, unit=unit))
    line = fx.method(f"{posterior}+RL[4]-MMPR(hazard=0.2)", model=fx.models.since_change(0.5, unit=unit), prior=linked)
    plain = fx.method(f"{posterior}+C-Static", model=fx.models.linear(noise=0.5))
    start = dict(mean=jnp.zeros(2), cov=1.0)
    rows = np.stack([np.ones(T), np.arange(1, T + 1) / unit], axis=1)
    got = line.scan(line.init(**start), None, Y)[1].log_evidence
    np.testing.assert_allclose(got, plain.scan(plain.init(**start), rows, Y)[1].log_evidence, rtol=1e-9)
    apart = fx.method(f"{posterior}+RL[4]-MMPR(hazard=0.2)", model=fx.models.since_change(0.5, unit=unit))
    assert np.abs(apart.scan(apart.init(**start), None, Y)[1].log_evidence - got).max() > 0.01


@pytest.mark.parametrize("degree", [0, 1, 3])
def test_a_shifted_polynomial_has_the_same_values(degree):
    """At the same moments, for two outputs and a parameter that is no coefficient."""
    a = rng.normal(size=(degree + 1, 2))
    theta = jnp.asarray(np.append(a, 7.0))
    F = fx.priors.polynomial_shift(degree, unit=5.0, outputs=2)(jnp.asarray(3), theta)
    moved = np.asarray(F @ theta)
    assert moved[-1] == 7.0
    for r in (3.0, 4.5, 11.0):
        want = np.vander([r / 5.0], degree + 1, increasing=True) @ a
        got = np.vander([(r - 3.0) / 5.0], degree + 1, increasing=True) @ moved[:-1].reshape(-1, 2)
        np.testing.assert_allclose(got, want, rtol=1e-10)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: fx.method("LoFi(rank=1)+RL[3]-MMPR(hazard=0.1)", model=m), "LowRank belief cannot move that way"),
        (lambda m: fx.method("OGD+RL[3]-MMPR(hazard=0.1)", model=m), "Point belief cannot move that way"),
        (lambda m: fx.method("RL[3]-MMPR(hazard=0.1, frame=3)", model=m), "must be a function of r and theta, got 3"),
        (lambda m: fx.priors.polynomial_shift(-1), "must be a whole number of at least 0"),
        (lambda m: fx.method("RL[3]-Static(hazard=0.1)", model=m), "a new regime needs a prior of its own"),
        (lambda m: fx.method("RL[3]-MCI(hazard=0.1)", model=m), "a change must know whom it happened to"),
        (lambda m: fx.method("RL[3]-OUPR(hazard=0.1)", model=m), r"there is one hypothesis; use RL\[1\]-OUPR"),
        (lambda m: fx.method("RL[inf]-OUPR(hazard=0.1)", model=m), r"RL\[inf\]-OUPR"),
        (lambda m: fx.method("C-OUPR", model=m), "OUPR needs a hazard"),
        (lambda m: fx.method("RL-PR(hazard=0.1)", model=m), r"say how many hypotheses RL keeps, RL\[10\]"),
        (lambda m: fx.method("RL[0]-PR(hazard=0.1)", model=m), r"RL\[K\] must be a whole number of at least 1"),
        (lambda m: fx.method("RL[x]-PR(hazard=0.1)", model=m), r"RL\[K\] must be a whole number"),
        (lambda m: fx.method("C[3]-Static", model=m), "C has one hypothesis"),
        (lambda m: fx.method("RL[3]-PR(hazard=given)", model=m), "hazard=given is no number; write hazard=0.01"),
        (lambda m: fx.method("RLL[3]-PR(hazard=0.1)", model=m), "Did you mean"),
        (lambda m: fx.method("ME-Static", model=m), r"give auxiliary=filtax\.auxiliary\.experts"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call(fx.models.linear(noise=1.0))


def test_drift_between_changes_is_given_as_the_prior():
    walk = fx.method("RL[3]-PR(hazard=0.1)", model=fx.models.linear(noise=1.0), prior=additive_inflation(0.2))
    assert walk.prior.dynamics.q == 0.2
    assert walk.name == "LG+RL[3]-PR(hazard=0.1)"
    assert fx.method("C-Static", model=walk.model, auxiliary=run_length(0.1, keep=2), prior=reset()).weighting.keep == 2
