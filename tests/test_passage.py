"""What a method and a state remember of their arrays changes no number, and is no part of them."""

import copy
import pickle

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import filtax as fx
from filtax.passage import _builder, _Place, remembered, take_apart
from filtax.protocols import Hypotheses
from moments import normal, spd
from oracles import kalman_filter

pytestmark = pytest.mark.x64
T, D = 6, 2
X, Y, NOISE = normal(0, T, D), normal(1, T), np.array([0.2, 1.0, 3.0, 0.1, 0.5, 2.0])
M0, P0 = normal(2, D), spd(3, D)


def build(noise=0.5, name="LG+C-Static"):
    return fx.method(name, model=fx.models.linear(noise=noise))


def begin(kf):
    return kf.init(mean=jnp.asarray(M0), cov=jnp.asarray(P0))


def truth(noise):
    """The textbook recursion in numpy."""
    still = np.tile(np.eye(D), (T, 1, 1)), np.zeros((T, D)), np.zeros((T, D, D))
    return kalman_filter(M0, P0, *still, X[:, None], np.asarray(noise).reshape(T, 1, 1), Y[:, None])


def forgetful(state):
    """The same state, put together anew."""
    return jax.tree.unflatten(jax.tree.structure(state), jax.tree.leaves(state))


def test_a_loop_that_remembers_is_a_loop_that_does_not():
    kf = build()
    one = other = begin(kf)
    for t in range(T):
        one, info = kf.step(one, X[t], Y[t])
        other, same = kf.step(forgetful(other), X[t], Y[t])
        jax.tree.map(np.testing.assert_array_equal, (one, info), (other, same))
        assert remembered(kf, one) is not None
        assert remembered(kf, forgetful(one)) is None
    assert jax.tree.structure(one) == jax.tree.structure(begin(kf))


def test_noise_that_changes_with_time_is_a_method_for_each_datum():
    """Methods of one structure share what was compiled and the state, but never their numbers."""
    want, state = truth(NOISE), begin(build())
    for t in range(T):
        state, info = build(NOISE[t]).step(state, X[t], Y[t])
        np.testing.assert_allclose(info.log_evidence, want.log_evidence[t], rtol=1e-10)
    np.testing.assert_allclose(build().belief(state).cov, want.cov[-1], rtol=1e-10)

    def tick(state, row):
        x, y, noise = row
        return build(noise).step(state, x, y)

    after, infos = jax.lax.scan(tick, begin(build()), (jnp.asarray(X), jnp.asarray(Y), jnp.asarray(NOISE)))
    np.testing.assert_allclose(infos.log_evidence, want.log_evidence, rtol=1e-10)
    np.testing.assert_allclose(infos.trust, np.ones(T))
    np.testing.assert_allclose(build().belief(after).mean, want.mean[-1], rtol=1e-10)


def test_what_is_remembered_is_not_stored_copied_or_trusted():
    kf = build()
    state, _ = kf.step(begin(kf), X[0], Y[0])
    for twin in (pickle.loads(pickle.dumps(state)), copy.copy(state), copy.deepcopy(state)):
        assert remembered(kf, twin) is None
        jax.tree.map(np.testing.assert_array_equal, twin, state)
    assert pickle.loads(pickle.dumps(kf)).name == copy.deepcopy(kf).name == kf.name
    moved = eqx.tree_at(lambda s: s.hypotheses.belief.mean, state, state.hypotheses.belief.mean + 1.0)
    got, want = (kf.step(s, X[1], Y[1])[1].mean for s in (moved, state))
    np.testing.assert_allclose(got - want, X[1].sum(), rtol=1e-9)
    louder = eqx.tree_at(lambda m: m.model.likelihood.noise, kf, kf.model.likelihood.noise * 4.0)
    np.testing.assert_allclose(louder.step(state, X[1], Y[1])[1].var - kf.step(state, X[1], Y[1])[1].var, 1.5)


def test_a_state_of_another_kind_of_method_is_still_refused():
    kf, three = build(), build(name="LG+RL[3]-PR(hazard=0.1)")
    state, _ = kf.step(begin(kf), X[0], Y[0])
    assert remembered(three, state) is None
    with pytest.raises(ValueError, match="hypotheses"):
        three.step(state, X[1], Y[1])
    with pytest.raises(ValueError, match="hypotheses"):
        three.scan(state, X, Y)


def test_a_change_that_was_told_of_is_remembered():
    kf = build()
    state, _ = kf.scan(begin(kf), X, Y)
    state, info = kf.step(state, X[0], Y[0], changed=True)
    assert (int(info.runlength), int(state.began)) == (1, T)
    state, info = kf.step(state, X[1], Y[1])
    assert (int(info.runlength), int(state.began), int(state.t)) == (2, T, T + 2)
    np.testing.assert_allclose(kf.belief(state).mean, truth(np.full(T, 0.5)).mean[1], rtol=1e-10)


def test_equal_structures_pass_through_one_place():
    one, two = build(0.5), build(2.0)
    assert take_apart(one, begin(one))[0] is take_apart(two, begin(two))[0]
    other = build(name="LG+C-ACI(q=0.1)")
    assert take_apart(other, begin(other))[0] is not take_apart(one, begin(one))[0]


def test_a_bank_is_put_together_as_jax_does_it():
    """Of modules within modules, with settings that are no arrays; where a tuple holds arrays JAX is asked."""
    for name in ("LG+C-Static", "LoFi(rank=1)+RL[2]-PR(hazard=0.1)", "LG(form=diagonal)+CPL[2]-PR(hazard=0.1)"):
        kf = build(name=name)
        state, _ = kf.step(kf.init(mean=jnp.asarray(M0), cov=0.5), X[0], Y[0])
        leaves, structure = jax.tree.flatten(state.hypotheses)
        assert structure == jax.tree.structure(structure.unflatten(leaves))
        assert vars(state.hypotheses).keys() == vars(structure.unflatten(leaves)).keys()
        passage, _, moving, _ = take_apart(kf, state)
        assert all(a is b for a, b in zip(jax.tree.leaves(passage._built(moving)), leaves, strict=True))
    assert _builder((_Place(0),)) is None
    structure = jax.tree.structure(Hypotheses(jnp.zeros(1), {"aux": jnp.zeros(1)}, jnp.zeros(1)))
    assert _builder(structure.unflatten(map(_Place, range(3)))) is None


def test_what_no_row_touches_is_handed_on():
    """The weight of the only hypothesis, and when the stream began: no copy comes out of the loop."""
    kf = fx.method("LG+C-ACI(q=0.1)", model=fx.models.linear(noise=1.0))
    before = kf.init(mean=jnp.zeros(2), cov=1.0)
    after, _ = kf.scan(before, np.ones((3, 2)), np.ones(3), keep=())
    assert after.hypotheses.log_weight is before.hypotheses.log_weight
    assert after.began is before.began
    assert int(after.t) == 3


def test_a_bank_that_grows_is_looked_at_each_time():
    """What is as usual is told in the dtype of the state, by it as by others."""
    kf = build(name="LG+RL[inf]-PR(hazard=0.1)")
    for dtype in ("float32", "float64"):
        state, info = kf.step(kf.init(mean=jnp.zeros(D, dtype)), X[0], Y[0])
        assert remembered(kf, state) is None
        assert (info.trust.dtype, float(info.trust)) == (dtype, 1.0)
        still, info = build().step(build().init(mean=jnp.zeros(D, dtype)), X[0], Y[0])
        assert remembered(build(), still) is not None
        assert (info.trust.dtype, float(info.trust)) == (dtype, 1.0)
