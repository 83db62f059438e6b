"""A covariance with a deferred downdate: the same belief as `Covariance`, whatever happens to it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import filtax as fx
from filtax.beliefs import Covariance, Pending, _covariance
from moments import problem

pytestmark = pytest.mark.x64
condition = jax.jit(lambda belief, J, B, r: belief.condition(J, B, r).belief)


def both(D, O, seed):
    """A belief in both forms after a datum with one output, of which one has yet to take it off; and the next datum."""
    mean, cov, J, B, r = map(jnp.asarray, problem(D, O, seed))
    first = J[:1], 0.7 * jnp.eye(1), jnp.full(1, 0.4)
    whole, deferred = (condition(kind.start(mean, cov), *first) for kind in (Covariance, Pending))
    assert np.abs(deferred.column).max() > 0.1
    return whole, deferred, (J, B, r)


def moves(belief, datum):
    """Everything that can happen to a belief."""
    D, other = belief.mean.size, condition(belief.inflate(jnp.asarray(2.0)), *datum)
    k = jnp.linspace(0.5, 1.0, D)
    yield belief
    yield belief.add(jnp.asarray(0.1))
    yield belief.add(jnp.arange(float(D)).at[0].set(jnp.inf))
    yield condition(belief, *datum)
    yield condition(condition(belief, *datum), *datum)
    yield condition(belief, datum[0], 0.0 * datum[1], 0.0 * datum[2])
    yield belief.affine(None, jnp.ones(D), None)
    yield belief.affine(None, None, k)
    yield belief.affine(k, jnp.ones(D), k)
    yield belief.affine(jnp.asarray(0.9), None, jnp.asarray(0.1))
    yield belief.affine(jnp.full(D, jnp.inf), None, None)
    yield belief.affine(jnp.eye(D) + 0.01 * jnp.ones((D, D)), None, jnp.eye(D))
    yield belief.affine(jnp.full((D, D), jnp.inf), None, None)
    yield belief.mix(other, k)
    yield other.mix(belief, jnp.asarray(0.3))
    yield belief.inflate(jnp.asarray(1.5))
    yield type(belief).moment_match(
        jax.tree.map(lambda *two: jnp.stack(two), belief, other), jnp.log(jnp.array([0.3, 0.7]))
    )


@pytest.mark.parametrize("O", [1, 2])
def test_whatever_happens_it_is_the_belief_that_is_whole(O):
    whole, deferred, datum = both(20, O, 3)
    for one, other in zip(moves(whole, datum), moves(deferred, datum), strict=True):
        assert isinstance(other, Pending)
        np.testing.assert_array_equal(np.diagonal(other.base), 0.0)
        np.testing.assert_array_equal(np.diagonal(other.cov), other.var)
        for part in ("mean", "cov", "var"):
            np.testing.assert_allclose(getattr(other, part), getattr(one, part), rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(other.project_cov(datum[0]), one.project_cov(datum[0]), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("O", [2, 5])
def test_one_output_after_the_other_is_all_at_once(O, monkeypatch):
    _, deferred, (J, B, r) = both(20, O, 3)
    together = deferred.condition(J, B, r)
    monkeypatch.setattr("filtax.beliefs._covariance.RESOLVED", 0.0)
    apart = deferred.condition(J, B, r)
    for part in ("mean", "cov"):
        want = getattr(together.belief, part)
        np.testing.assert_allclose(getattr(apart.belief, part), want, rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(apart.innovation, together.innovation, rtol=1e-10)
    np.testing.assert_allclose(apart.log_det, together.log_det, rtol=1e-10)


def test_prepared_for_a_datum_it_is_the_same_belief_for_any_other():
    _, deferred, (J, B, r) = both(20, 1, 4)
    prepared, other = deferred.prepare(J), jnp.ones((1, 20))
    np.testing.assert_allclose(prepared.prepared[1], deferred.cov @ J.T, rtol=1e-12)
    for rows in (J, other, jnp.concatenate([J, other])):
        np.testing.assert_allclose(prepared.project_cov(rows), deferred.project_cov(rows), rtol=1e-12)
    for rows in (J, other):
        one, two = (belief.condition(rows, B, r) for belief in (prepared, deferred))
        np.testing.assert_allclose(one.belief.cov, two.belief.cov, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(one.belief.mean, two.belief.mean, rtol=1e-12)


@pytest.mark.parametrize(
    "name", ["C-ACI(q=0.01)", "RL[3]-PR(hazard=0.05)", "C-OU(rate=0.95)", "RL[1]-OUPR(hazard=0.05)"]
)
@pytest.mark.parametrize("O", [1, 2])
def test_a_method_learns_the_same_with_it(monkeypatch, name, O):
    """Gaps in y, data that are refused, chunks, known changes: forecasts and evidence as with the whole covariance."""
    rng = np.random.default_rng(1)
    D, T = 12, 30
    X, Y = rng.normal(size=(T, O, D)), rng.normal(size=(T, O))
    Y[7], X[11, 0, 0], Y[15, 0] = np.nan, np.inf, np.nan
    method = fx.method(f"LG(form=covariance)+{name}", model=fx.models.linear(noise=0.3))

    def run(cut):
        state = method.init(mean=jnp.zeros(D), cov=2.0)
        state, one = method.scan(state, X[:cut], Y[:cut])
        state, _ = method.step(state, X[cut], Y[cut], changed=True)
        state, two = method.scan(state, X[cut + 1 :], Y[cut + 1 :])
        belief = method.belief(state)
        seen = method.predict(state, X[0]).cov, method.forecast(state, X[:3]).cov
        return state, [*jax.tree.leaves((one, two)), belief.mean, belief.cov, *seen]

    _, want = run(20)
    monkeypatch.setattr(_covariance, "LARGE", 4)
    state, found = run(20)
    assert isinstance(jax.tree.map(lambda leaf: leaf, state.hypotheses.belief), Pending)
    for one, other in zip(found, want, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-10)


def test_nothing_is_changed_by_no_datum():
    """Bit for bit, whichever of the two is asked."""
    _, deferred, (J, B, r) = both(20, 1, 7)
    after = condition(deferred, J, 0.0 * B, 0.0 * r)
    np.testing.assert_array_equal(after.cov, deferred.cov)
    np.testing.assert_array_equal(after.mean, deferred.mean)
    assert not after.column.any()
