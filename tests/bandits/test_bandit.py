"""A bandit at work: late, repeated, missing and unknown rewards, arms that come and go, and going on bit for bit."""

import json

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import filtax as fx
from filtax import io
from filtax.bandits import Bandit, epsilon_greedy, greedy, thompson, ucb


def keys(n, seed=0):
    return jax.random.split(jax.random.key(seed), n)


def beliefs(bandit):
    return bandit.state()[0]["state"]


def same_numbers(a, b):
    return bool(eqx.tree_equal(a, b))


def same(a, b):
    (one, plain), (two, other) = a.state(), b.state()
    assert plain == other
    return same_numbers(one, two)


def test_rewards_late_repeated_never_and_unknown():
    bandit = Bandit(["a", "b"], pending=3)
    made = [bandit.pull(key=key) for key in keys(4)]
    assert [d.id for d in made] == [0, 1, 2, 3]
    assert bandit.pending == 3
    before = beliefs(bandit)
    assert bandit.update(0, 1.0) == "expired"  # the fourth decision pushed it out
    assert bandit.update(9, 1.0) == "unknown"
    assert bandit.update("x", 1.0) == "unknown"
    assert same_numbers(before, beliefs(bandit))
    assert bandit.update(3, 1.0) == "learned"
    assert bandit.update(1, 0.0) == "learned"
    assert bandit.update(3, 0.0) == "repeated"
    assert beliefs(bandit).t.tolist() == [3, 3]  # one expired, two learned: a step each, for both arms
    for key in keys(4, 1):
        bandit.pull(key=key)
    assert bandit.update(0, 1.0) == "forgotten"  # fates are bounded as well


def test_a_late_reward_goes_to_the_arm_and_the_context_of_its_decision():
    method = fx.method("LG+C-Static", model=fx.models.linear(noise=1.0))
    bandit = Bandit(["a", "b"], method, thompson(), mean=jnp.zeros(2), cov=1.0)
    contexts = ([1.0, 0.0], [0.0, 1.0], [9.0, 9.0])  # the third never has its reward
    first, second, _ = (bandit.pull(x, key=key) for x, key in zip(contexts, keys(3), strict=True))
    bandit.update(second.id, 3.0)
    bandit.update(first.id, 1.0)
    expected = np.zeros((2, 2))
    expected[bandit.arms.index(first.arm), 0] = 0.5  # prior 1, noise 1: half of the reward
    expected[bandit.arms.index(second.arm), 1] = 1.5
    np.testing.assert_allclose(beliefs(bandit).hypotheses.belief.mean[:, 0], expected, rtol=1e-6)


def test_bad_input_gets_a_sentence_and_nothing_is_lost():
    bandit = Bandit(["a", "b"])
    decision = bandit.pull(key=jax.random.key(0))
    before = beliefs(bandit)
    for reward, words in ((np.nan, "finite"), ("much", "number"), (0.5, "cannot take")):
        with pytest.raises(ValueError, match=words):
            bandit.update(decision.id, reward)
    assert bandit.pending == 1
    assert same_numbers(before, beliefs(bandit))
    assert bandit.update(decision.id, 1.0) == "learned"
    method = fx.method("LG+C-Static", model=fx.models.linear(noise=1.0))
    wide = Bandit(["a", "b"], method, mean=jnp.zeros(4))
    for context, words in (([1.0, 2.0], "predicts 2 rewards"), ([1.0] * 3, "shape"), ([np.nan] * 4, "finite")):
        with pytest.raises(ValueError, match=words):
            wide.pull(context, key=jax.random.key(0))
    assert wide.pending == 0


def test_arms_come_and_go():
    bandit = Bandit(["a", "b"], policy=greedy())
    for key in keys(6):
        decision = bandit.pull(key=key)
        bandit.update(decision.id, 1.0 if decision.arm == "b" else 0.0)
    waiting = bandit.pull(key=jax.random.key(5))
    bandit.add("c")
    bandit.remove(waiting.arm)
    assert bandit.update(waiting.id, 1.0) == "removed"
    assert bandit.update(waiting.id, 1.0) == "removed"
    assert bandit.arms == [*({"a", "b"} - {waiting.arm}), "c"]
    assert beliefs(bandit).t.shape == (2,)


@pytest.mark.parametrize("name", ["Cj+RL[inf](capacity=2)-PR(hazard=0.1)", "Cj+C-OU(rate=0.9)"])
def test_a_stored_bandit_goes_on_bit_for_bit(name, tmp_path):
    method = fx.method(name, model=fx.models.bernoulli())
    start = {"mean": 0.5, "cov": 1 / 12}
    bandit = Bandit(["a", "b", "c"], method, ucb(1.0), pending=4, **start)
    made = [bandit.pull(key=key) for key in keys(5)]
    bandit.update(made[4].id, 1.0)
    bandit.update(made[2].id, 0.0)
    arrays, plain = bandit.state()
    bandit.save(tmp_path, source={"row": 5})
    other = Bandit.from_state(arrays, json.loads(json.dumps(plain)), method, ucb(1.0), **start)
    stored, manifest = Bandit.load(tmp_path, method, ucb(1.0), **start)
    assert manifest["source"] == {"row": 5}
    assert same(bandit, other)
    assert same(bandit, stored)
    for key in keys(3, 7):
        assert bandit.pull(key=key) == other.pull(key=key) == stored.pull(key=key)
        fates = {one.update(made[3].id, 1.0) for one in (bandit, other, stored)}
        assert len(fates) == 1
    for one in (bandit, other, stored):
        one.add("d")
    assert same(bandit, other)
    assert same(bandit, stored)
    with pytest.raises(ValueError, match="saved with the method"):
        Bandit.from_state(arrays, plain)


def test_a_bandit_on_disk_keeps_its_contexts_and_refuses_another_method_policy_or_damage(tmp_path):
    linear = lambda noise: fx.method("LG+C-Static", model=fx.models.linear(noise=noise))
    start = {"mean": jnp.zeros(2), "cov": 1.0}
    bandit = Bandit(["a", 7], linear(1.0), epsilon_greedy(0.1), **start)
    first, late, _ = (bandit.pull([1.0, 0.5 * i], key=jax.random.key(i)) for i in range(3))
    bandit.update(first.id, 2.0)
    assert bandit.save(tmp_path) == 1
    assert bandit.update(late.id, 3.0) == "learned"
    stored, _ = Bandit.load(tmp_path, linear(1.0), epsilon_greedy(0.1), **start)
    assert stored.pending == 2
    assert stored.update(late.id, 3.0) == "learned"
    assert same(bandit, stored)
    assert stored.arms == ["a", 7]
    for method, policy, words in (
        (linear(2.0), epsilon_greedy(0.1), "with the method"),
        (linear(1.0), epsilon_greedy(0.2), "with the policy"),
        (linear(1.0), thompson(), "not Thompson"),
    ):
        with pytest.raises(io.Foreign, match=words):
            Bandit.load(tmp_path, method, policy, **start)
    with pytest.raises(io.Foreign, match="shape"):
        Bandit.load(tmp_path, linear(1.0), epsilon_greedy(0.1), mean=jnp.zeros(3))
    arrays = tmp_path / "000001.safetensors"
    arrays.write_bytes(arrays.read_bytes()[:-3])
    with pytest.raises(io.Damaged, match="checksum"):
        Bandit.load(tmp_path, linear(1.0), epsilon_greedy(0.1), **start)


def test_the_key_decides_and_a_shared_model_may_look_at_features_of_arms():
    method = fx.method("LG+C-Static", model=fx.models.linear(noise=0.1))
    bandit = Bandit(["x", "y"], method, shared=True, mean=jnp.zeros(2), cov=1.0)
    features = np.eye(2)
    again = [bandit.pull(features, key=jax.random.key(3))[::2] for _ in range(2)]
    assert again[0] == again[1]
    assert again[0][1] == pytest.approx(0.5)
    id = bandit.pull(features, key=jax.random.key(4)).id
    assert bandit.update(id, 1.0) == "learned"
    with pytest.raises(ValueError, match="one for each arm"):
        Bandit(["x", "y", "z"], method, shared=True, mean=jnp.zeros(2)).pull(features, key=jax.random.key(0))
