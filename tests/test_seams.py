"""The seams from the outside: a bank of run lengths and a prior with a second phase, each in a few lines of a user's.

Neither touches the framework; both are checked against enumeration.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import filtax as fx
from filtax.priors import Continue, static
from filtax.protocols import Auxiliary, Dynamics, Hypotheses, Posterior, Prior, Proposal, Weighting, over_hypotheses
from filtax.protocols import static as structure
from oracles import batch_regression, enumerate_segmentations

pytestmark = pytest.mark.x64


class RunLength(Auxiliary):
    """Slots hold run lengths; at each step a new one takes the place of the least probable hypothesis."""

    hazard: float
    slots: int = structure()
    name = "RL"
    shown = {}  # noqa: RUF012

    def start(self, dtype):
        return jnp.zeros(self.slots, jnp.int32), jnp.where(jnp.arange(self.slots) == 0, 0.0, -jnp.inf).astype(dtype)

    def expand(self, hypotheses, initial, dt):
        log_reset = hypotheses.log_weight + jnp.log(self.hazard)
        is_new = jnp.arange(self.slots) == jnp.argmin(hypotheses.log_weight)
        weight = jnp.where(is_new, jax.nn.logsumexp(log_reset), hypotheses.log_weight + jnp.log1p(-self.hazard))
        return Proposal(
            Hypotheses(hypotheses.belief, jnp.where(is_new, 0, hypotheses.aux + 1), weight), is_new, log_reset
        )

    def slots_needed(self, t):
        return None

    def report(self, hypotheses, age):
        change = jnp.sum(jnp.where(hypotheses.aux == 0, jnp.exp(hypotheses.log_weight), 0.0))
        return change, hypotheses.aux[jnp.argmax(hypotheses.log_weight)]


class Reset(Prior):
    """A new hypothesis starts from the initial belief, the others drift."""

    dynamics: object

    def __call__(self, proposed, initial, dt):
        drifted = Continue(self.dynamics)(proposed, initial, dt)
        pick = lambda fresh, old, new: jnp.where(fresh, new, old)
        return over_hypotheses(
            lambda fresh, old: jax.tree.map(lambda o, n: pick(fresh, o, n), old, initial), proposed.is_new, drifted
        )


class Doubt(Prior):
    """Second phase: reset when the evidence of the proposed belief falls below a bar."""

    dynamics: object
    bar: float

    def __call__(self, proposed, initial, dt):
        return Continue(self.dynamics)(proposed, initial, dt)

    def revise(self, proposed, beliefs, log_evidence, initial, ask):
        again = log_evidence[0] < self.bar
        return proposed, jax.tree.map(lambda old, new: jnp.where(again, new[None], old), beliefs, initial)


@pytest.mark.parametrize("role", [Auxiliary, Dynamics, Posterior, Prior, Weighting])
def test_a_part_without_a_required_method_is_refused(role):
    with pytest.raises(TypeError, match="instantiate abstract class Unfinished"):
        type("Unfinished", (role,), {})()


@pytest.mark.parametrize(
    ("phase", "flag"), [("search", "searches"), ("responsibilities", "shares"), ("update_gate", "gates")]
)
def test_a_weighting_has_the_phases_that_it_defines(phase, flag):
    own = type("Own", (fx.weighting.Exact,), {phase: lambda self, *rest: None})
    heir = type("Heir", (own,), {})
    for name in ("searches", "shares", "gates"):
        assert getattr(own, name) == getattr(heir, name) == (name == flag)
        assert not getattr(fx.weighting.Exact, name)


T, NOISE, HAZARD = 8, 0.3, 0.2
rng = np.random.default_rng(3)
X = rng.normal(size=(T, 2))
Y = X @ np.array([1.0, -1.0]) + np.where(np.arange(T) < 4, 0.0, 3.0) + 0.5 * rng.normal(size=T)


def bank_of(slots, dynamics, hazard=HAZARD):
    return fx.method(
        "LG+C-Static", model=fx.models.linear(noise=NOISE), auxiliary=RunLength(hazard, slots), prior=Reset(dynamics)
    )


def segment(start, stop):
    """Evidence of data start..stop under a fresh prior, in batch (none of the filter's code)."""
    rows = slice(max(start, 1) - 1, stop)
    return batch_regression(X[rows], Y[rows], np.zeros(2), np.eye(2), NOISE).log_evidence if stop >= start else 0.0


def test_bank_of_run_lengths_equals_enumeration():
    """All 2^T segmentations: evidence, run lengths; a new hypothesis learns the datum it is born with (E12)."""
    rl = bank_of(T + 1, static())
    end, infos = rl.scan(rl.init(mean=jnp.zeros(2), cov=1.0), X, Y)
    want = enumerate_segmentations(segment, HAZARD, T)
    np.testing.assert_allclose(infos.log_evidence.sum(), want.log_evidence, rtol=1e-12)
    got = np.bincount(end.hypotheses.aux, np.exp(end.hypotheses.log_weight), minlength=T + 1)
    np.testing.assert_allclose(got, want.runlength, atol=1e-12)
    assert int(infos.runlength[-1]) == int(np.argmax(want.runlength))


def test_hazard_zero_is_the_plain_filter():
    """The bank adds nothing when no change is possible, also under vmap over hazards."""
    plain = fx.method("LG+C-Static", model=fx.models.linear(noise=NOISE))
    want = plain.scan(plain.init(mean=jnp.zeros(2), cov=1.0), X, Y)[1].log_evidence.sum()

    def total(hazard):
        rl = bank_of(4, static(), hazard)
        return rl.scan(rl.init(mean=jnp.zeros(2), cov=1.0), X, Y)[1].log_evidence.sum()

    np.testing.assert_allclose(jax.vmap(total)(jnp.array([0.0, HAZARD]))[0], want, rtol=1e-12)


def test_overflow_keeps_the_weights():
    """When every hypothesis fails on a datum, weights and beliefs stay and the flag says so."""
    rl = bank_of(4, static())
    state, _ = rl.scan(rl.init(mean=jnp.zeros(2), cov=1.0), X, Y)
    after, info = rl.step(state, X[0], 1e200)
    assert not bool(info.ok)
    assert float(info.log_evidence) == -np.inf
    np.testing.assert_allclose(np.exp(after.hypotheses.log_weight).sum(), 1.0)
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(after.hypotheses.belief))


def test_second_phase_sees_the_evidence_of_what_was_proposed():
    """A prior with `settle` acts after the evidence is known; forecast and evidence stay those of the proposal."""
    doubt = fx.method("LG+C-Static", model=fx.models.linear(noise=NOISE), prior=Doubt(static(), -5.0))
    plain = fx.method("LG+C-Static", model=fx.models.linear(noise=NOISE))
    start = plain.init(mean=jnp.zeros(2), cov=1.0)
    state, _ = plain.scan(start, X[:4], Y[:4])
    for y, again in ((20.0, True), (float(plain.predict(state, X[0]).mean), False)):
        after, info = doubt.step(state, X[0], y)
        np.testing.assert_allclose(info.log_evidence, plain.predict(state, X[0]).log_prob(y), rtol=1e-12)
        want, _ = plain.step(start if again else state, X[0], y)
        np.testing.assert_allclose(doubt.belief(after).mean, plain.belief(want).mean, rtol=1e-12)


def test_large_hypotheses_are_looped_over_small_ones_batched():
    """`each` chooses by size, and both ways give the same numbers."""
    for size in (4, 8192):
        batch = jnp.arange(3.0 * size).reshape(3, size)
        np.testing.assert_array_equal(over_hypotheses(lambda row: 2.0 * row, batch), 2.0 * batch)


def clouds(name):
    model, auxiliary = fx.models.linear(noise=NOISE), RunLength(HAZARD, 5)
    return fx.method(f"{name}+C-Static", model=model, auxiliary=auxiliary, prior=Reset(static()))


def test_a_bank_of_ensembles_is_a_bank_of_their_moments():
    """Members and their key are selected, batched and reset like any other belief; the transform is exact."""
    rl, exact = clouds("ETKF(size=6)"), bank_of(5, static())
    state = rl.init(mean=jnp.zeros(2), cov=1.0, key=jax.random.key(2))
    end, infos = rl.scan(state, X, Y)
    want, other = exact.scan(exact.init(mean=state.initial.mean, cov=state.initial.cov), X, Y)
    np.testing.assert_allclose(infos.log_evidence, other.log_evidence, rtol=1e-9)
    np.testing.assert_allclose(end.hypotheses.log_weight, want.hypotheses.log_weight, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(rl.belief(end).cov, exact.belief(want).cov, rtol=1e-8)


@pytest.mark.parametrize("name", ["EnKF(size=20)", "PF(size=50)"])
def test_law_of_evidence_holds_for_a_bank_of_clouds(name):
    """A mixture over hypotheses of mixtures over members."""
    rl = clouds(name)
    state, _ = rl.scan(rl.init(mean=jnp.zeros(2), cov=1.0, key=jax.random.key(2)), X, Y)
    forecast = rl.predict(state, X[0])
    _, info = rl.step(state, X[0], Y[0])
    np.testing.assert_allclose(forecast.log_prob(Y[0]), info.log_evidence, rtol=1e-12)
    np.testing.assert_allclose(forecast.var, info.var, rtol=1e-10)
