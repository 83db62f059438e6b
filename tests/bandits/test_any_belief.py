"""Any belief can choose: methods that remember data or draw survivors too; what makes no sense is refused."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import filtax as fx
from filtax.bandits import Bandit, bayes_ucb, epsilon_greedy, greedy, play, stack, table, thompson, ucb
from filtax.bandits.step import age, allocate_memory, decide, learn

models, KEY = fx.models, jax.random.key(0)
linear = models.linear(noise=0.5)
walk = lambda q: fx.priors.linear_dynamics(F=0.9, Q=q)
X = jnp.array([1.0, -0.5])
UNUSUAL = {
    "remembers": lambda: fx.method("OGD(rate=0.1, memory=2)+C-Static", model=linear),
    "recalls": lambda: fx.method("CPL[1](memory=2)-Sub", model=linear),
    "gated": lambda: fx.methods.chaer_1997(linear, [walk(0.1), walk(1.0)], 0.5),
    "draws survivors": lambda: fx.method("RL[2]-PR(hazard=0.1)", model=linear, weighting=fx.weighting.sampled(2)),
}


def start_of(name, size=2):
    return {"mean": jnp.zeros(size)} | ({"key": jax.random.key(3)} if name == "draws survivors" else {})


def close(a, b):
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6)


each_unusual = pytest.mark.parametrize("name", UNUSUAL)


@each_unusual
@pytest.mark.nightly
def test_a_round_is_a_step_and_a_missing_datum_for_every_part(name):
    """The pulled arm is `step` with its reward, the other `step` with NaN, and so is a step without a decision."""
    method = UNUSUAL[name]()
    one = method.init(**start_of(name))

    @jax.jit
    def two_ticks(arms, arm):
        arms, ok = learn(method, allocate_memory(method, arms, X), X, arm, jnp.asarray(0.7))
        return age(method, arms, X), ok

    arms, ok = two_ticks(stack([one, one]), jnp.asarray(1, jnp.int32))
    assert ok
    states = [one, one]
    for rewards in ((np.nan, 0.7), (np.nan, np.nan)):
        states = [method.step(s, X, r)[0] for s, r in zip(states, rewards, strict=True)]
    close(arms.hypotheses, stack(states).hypotheses)


@each_unusual
@pytest.mark.nightly
def test_it_decides_late_and_goes_on_bit_for_bit(name, tmp_path):
    method, policy = UNUSUAL[name](), epsilon_greedy(0.3)
    bandit = Bandit(["a", "b"], method, policy, **start_of(name))
    made = [bandit.pull(X, key=jax.random.key(i)) for i in range(3)]
    assert bandit.update(made[1].id, 0.7) == "learned"
    bandit.add("c")
    bandit.save(tmp_path)
    stored, _ = Bandit.load(tmp_path, method, policy, **start_of(name))
    for one in (bandit, stored):
        assert one.update(made[0].id, 0.1) == "learned"
    assert eqx.tree_equal(bandit.state()[0], stored.state()[0])
    assert bandit.pull(X, key=KEY) == stored.pull(X, key=KEY)


@pytest.mark.parametrize(
    ("posterior", "noise"), [("NIG", 1.0), pytest.param("LG", np.array([0.5, 0.6]), marks=pytest.mark.nightly)]
)
@pytest.mark.nightly
def test_a_shared_model_whose_reward_is_a_row_learns_in_play(posterior, noise):
    """The other arms of the row are missing, so it is not complete: each context has one arm that pays."""
    method = fx.method(f"{posterior}+C-Static", model=models.linear(noise=noise))
    world = table(jnp.eye(2), jnp.eye(2), key=KEY, steps=60, simulations=4)
    played = play(method, thompson(), world, method.init(mean=jnp.zeros(4)), key=KEY, shared=True)
    assert played.reward[-20:].mean() > 0.9


def loss(eta, y):
    return jnp.sum(jnp.logaddexp(y - eta, eta - y))


def test_a_loss_is_explored_by_its_prediction_and_shared_arms_learn_from_one_output():
    bandit = Bandit(["a", "b"], LOSS, thompson(), shared=True, mean=jnp.zeros(4))
    decision = bandit.pull(X, key=KEY)
    assert decision.probability == pytest.approx(0.5)
    bandit.update(decision.id, 5.0)
    moved = np.asarray(bandit.state()[0]["state"].hypotheses.belief.mean)[0].reshape(2, 2)  # features by arms
    at = bandit.arms.index(decision.arm)
    assert X @ moved[:, at] > 0.3
    np.testing.assert_array_equal(moved[:, 1 - at], 0.0)


EXPLORERS = (thompson(), ucb(), bayes_ucb(), "ts")
OGD = UNUSUAL["remembers"]()
LOSS = fx.method("LG+C-Static", model=models.linear(likelihood=models.loss(loss)))
LABELS = fx.method("LG+C-Static", model=models.linear(likelihood=models.categorical()))
NET = fx.method("LG+C-Static", model=models.nonlinear(lambda W, x: W @ x, noise=0.1))
COIN = fx.method("Cj+C-Static", model=models.bernoulli())
TWO = stack([COIN.init(mean=0.5, cov=1 / 12)] * 2)
WORLD = table(jnp.eye(2), jnp.ones((2, 3)), key=KEY)
netted = lambda: Bandit(["a", "b"], NET, shared=True, params=jnp.ones((2, 2)))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        *((lambda p=p: Bandit(["a", "b"], OGD, p, mean=jnp.zeros(2)), "a single point.*use greedy") for p in EXPLORERS),
        (lambda: Bandit(["a", "b"], LOSS, thompson("predictive"), mean=jnp.zeros(2)), "no distribution to draw"),
        (lambda: Bandit(["a", "b"], LABELS, shared=True, mean=jnp.zeros(4)), "labels, which are no rewards"),
        (lambda: Bandit(["a", "b"], "LG+C-Static"), "must come from filtax.method"),
        (lambda: Bandit(["a", "b"], policy=3), "must come from filtax.bandits"),
        (lambda: Bandit(["a", "b"], policy="tz"), "no policy 'tz'"),
        (lambda: Bandit(3), "must be a list of arms"),
        (lambda: Bandit("ab"), "must be a list of arms"),
        (lambda: Bandit(["a"]).remove("a"), "last arm"),
        (lambda: Bandit(["a", "b"]).remove("c"), "no such arm"),
        (lambda: Bandit(["a", "b"]).add("a"), "there already"),
        (lambda: ucb(draw="all"), r"ucb\(draw='all'\)"),
        (lambda: bayes_ucb(count=0), r"bayes_ucb\(count"),
        (lambda: netted().pull(np.ones(5), key=KEY), r"cannot take a context of shape \(5,\)"),
        (lambda: netted().pull(np.ones(2), key=0), "must be a single random key, got 0"),
        (lambda: Bandit(["a", "b"]).pull([1.0], key=KEY), "takes no context"),
        (lambda: Bandit([1, 2], COIN, shared=True, mean=0.5, cov=0.1).pull(key=KEY), "predicts 1 rewards, expected 2"),
        (lambda: play(COIN, greedy(), WORLD, TWO, key=KEY), "2 states stacked but 3 arms"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_sentence(call, words):
    with pytest.raises(ValueError, match=words):
        call()


@pytest.mark.parametrize("policy", [ucb(1.0, count=16), bayes_ucb(count=16)])
def test_scores_that_are_estimated_choose_for_certain(policy):
    """Gamma arms are drawn from: whatever the key, the arm is the same, as its probability of 1 says."""
    method = fx.method("Cj+C-Static", model=models.poisson())
    arms = stack([method.init(mean=m, cov=v) for m, v in ((1.0, 0.5), (1.2, 0.2), (0.9, 1.0))])
    at = lambda key, t: decide(method, policy, arms, None, key, t)
    chosen, told = jax.jit(jax.vmap(at, in_axes=(0, None)))(jax.random.split(KEY, 200), jnp.asarray(5, jnp.int32))
    assert len(set(chosen.tolist())) == 1
    np.testing.assert_array_equal(told, 1.0)


def test_an_arm_that_comes_back_owes_nothing_to_the_one_that_left():
    bandit = Bandit(["a", "b"], policy=greedy())
    waiting = bandit.pull(key=KEY)
    bandit.remove(waiting.arm)
    bandit.add(waiting.arm)
    assert bandit.update(waiting.id, 1.0) == "removed"
    counts = bandit.state()[0]["state"].hypotheses.belief.ones
    np.testing.assert_allclose(counts, 1.0, rtol=1e-5)  # it relaxes where it is
