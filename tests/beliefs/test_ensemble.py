"""A cloud of equal members: its moves one by one and in their moments, and one cloud of several."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import filtax as fx
from filtax.beliefs import Ensemble

keys = lambda count: jax.random.split(jax.random.key(0), count)


def cloud(S=8, D=3, seed=0):
    return Ensemble.of(jnp.asarray(np.random.default_rng(seed).normal(size=(S, D))), jax.random.key(seed))


@pytest.mark.x64
def test_moves_of_an_ensemble():
    """Each member goes through f; noise changes the covariance and not the mean; OU composes the two beliefs."""
    belief, other = cloud(S=200), cloud(S=200, seed=9)
    np.testing.assert_allclose(belief.push(jnp.sin, None).members, np.sin(belief.members))
    swing = fx.priors.nonlinear_dynamics(lambda s: jnp.sin(s), Q=0.0)
    np.testing.assert_allclose(swing(belief, belief, None, None).members, np.sin(belief.members))
    np.testing.assert_allclose(belief.add(jnp.asarray(0.5)).mean, belief.mean, atol=1e-14)
    A, b = np.random.default_rng(2).normal(size=(3, 3)), np.arange(3.0)
    np.testing.assert_allclose(
        belief.affine(jnp.asarray(A), jnp.asarray(b), None).members, np.asarray(belief.members) @ A.T + b, rtol=1e-12
    )
    J = jnp.asarray(A[:2])
    np.testing.assert_allclose(
        belief.project_cov(J), A[:2] @ np.cov(np.asarray(belief.members).T) @ A[:2].T, rtol=1e-12
    )
    k = np.array([0.9, 0.5, 0.0])

    def moved(key):
        fresh = Ensemble.of(belief.members, key)
        return fresh.add(jnp.asarray(0.5)).cov, fresh.mix(other, jnp.asarray(k)).cov

    wide, mixed = (np.asarray(part) for part in jax.jit(jax.vmap(moved))(keys(2000)))
    rest = np.sqrt(1 - k * k)
    expected = np.outer(k, k) * belief.cov + np.outer(rest, rest) * other.cov
    for got, want in ((wide, belief.cov + 0.5 * np.eye(3)), (mixed, expected)):
        assert np.all(np.abs(got.mean(0) - want) < 4.5 * got.std(0) / np.sqrt(2000) + 1e-12)
    np.testing.assert_allclose(
        belief.mix(other, jnp.asarray(k)).mean, k * belief.mean + (1 - k) * other.mean, atol=1e-13
    )
    np.testing.assert_array_equal(belief.mix(other, jnp.asarray(1.0)).members, belief.members)


def test_one_ensemble_from_several():
    parts = jax.vmap(lambda m, key: Ensemble.of(m, key))(jnp.arange(8.0).reshape(2, 4, 1), keys(2))
    first = parts.moment_match(jnp.array([0.0, -jnp.inf]))
    assert sorted(first.members[:, 0].tolist()) == [0.0, 1.0, 2.0, 3.0]
    half = parts.moment_match(jnp.log(jnp.array([0.5, 0.5])))
    assert np.sum(np.asarray(half.members) < 4.0) == 2


@pytest.mark.parametrize("kind", ["EnKF", "ETKF"])
def test_members_whose_covariance_is_no_number_are_not_taken(kind):
    """In float32, a mean of 1e27 rounds them by 1e20: the datum is refused, and the ensemble keeps its bits."""
    method = fx.method(f"{kind}(size=20)+C-Static", model=fx.models.linear(noise=1.0))
    state = method.init(mean=jnp.ones(2, "float32"), cov=1e20, key=jax.random.key(0))
    x = jnp.array([1e-10, -0.5e-10], "float32")
    after, info = method.step(state, x, jnp.asarray(1e18, "float32"))
    assert not bool(info.ok)
    np.testing.assert_array_equal(after.hypotheses.belief.members, state.hypotheses.belief.members)
    after, info = method.step(state, x, jnp.asarray(1e6, "float32"))
    assert bool(info.ok)
    assert np.all(np.isfinite(method.belief(after).cov))
