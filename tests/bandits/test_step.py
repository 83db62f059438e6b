"""One round: ageing is a missing datum, learning a step, shared and separate arms agree, conjugate arms count."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import filtax as fx
from filtax.bandits import drifting_bernoulli, greedy, play, stack, table, thompson, ucb
from filtax.bandits._reward_posterior import IndependentBetas, IndependentGaussians, JointGaussian
from filtax.bandits.step import age, learn, reward_posterior

METHODS = {
    "LG+C-ACI(q=0.1)": (fx.models.bernoulli(), {"mean": jnp.zeros(1), "cov": 1.0}),
    "LG+RL[1]-OUPR(hazard=0.1)": (fx.models.bernoulli(), {"mean": jnp.zeros(1), "cov": 1.0}),
    "LG+CPP-OU": (fx.models.gaussian(0.5), {"mean": jnp.zeros(1), "cov": 1.0}),
    "Cj+RL[3]-PR(hazard=0.2)": (fx.models.bernoulli(), {"mean": 0.5, "cov": 1 / 12}),
}


def close(a, b):
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", METHODS)
def test_a_round_is_a_step_for_the_arm_and_a_missing_datum_for_the_others(name):
    model, start = METHODS[name]
    method = fx.method(name, model=model)
    states = [method.init(**start) for _ in range(2)]
    arms, turn = stack(states), jax.jit(lambda s, a, r: learn(method, s, None, a, r)[0])
    for arm, reward in ((0, 1.0), (0, 0.0), (1, 1.0), (1, 1.0)):
        arms = turn(arms, jnp.asarray(arm, jnp.int32), jnp.asarray(reward))
        states = [method.step(s, None, reward if a == arm else jnp.nan)[0] for a, s in enumerate(states)]
    close(arms.hypotheses, stack(states).hypotheses)
    assert arms.t.tolist() == [4, 4]


def test_conjugate_arms_are_the_closed_form():
    """Beta arms under OU: counts relax towards the prior's, then the reward is added; by hand."""
    method = fx.method("Cj+C-OU(rate=0.9)", model=fx.models.bernoulli())
    arms, turn = (
        stack([method.init(mean=0.5, cov=1 / 12)] * 2),
        jax.jit(lambda s, a, r: learn(method, s, None, a, r)[0]),
    )
    ones, zeros = np.ones(2), np.ones(2)
    for arm, reward in ((0, 1.0), (1, 0.0), (0, 1.0), (0, 0.0)):
        arms = turn(arms, jnp.asarray(arm, jnp.int32), jnp.asarray(reward))
        ones, zeros = 0.9 * ones + 0.1, 0.9 * zeros + 0.1
        ones[arm] += reward
        zeros[arm] += 1.0 - reward
    seen = reward_posterior(method, arms, None)
    assert isinstance(seen, IndependentBetas)
    np.testing.assert_allclose(seen.ones[:, 0], 0.9 * ones + 0.1, rtol=1e-6)  # the next step is asked for
    np.testing.assert_allclose(seen.zeros[:, 0], 0.9 * zeros + 0.1, rtol=1e-6)


@pytest.mark.x64
@pytest.mark.parametrize(
    ("likelihood", "posterior"),
    [("gaussian", "LG"), pytest.param("bernoulli", "LG", marks=pytest.mark.nightly), ("gaussian", "LoFi(rank=6)")],
)
def test_shared_parameters_learn_from_the_output_that_was_seen(likelihood, posterior):
    """Disjoint linear arms inside one shared model are the same as separate ones."""
    model = (
        fx.models.linear(noise=0.5) if likelihood == "gaussian" else fx.models.linear(likelihood=fx.models.bernoulli())
    )
    method = fx.method("LG+C-Static", model=model)
    joint = fx.method(f"{posterior}+C-Static", model=model)
    rng = np.random.default_rng(0)
    shared, split = joint.init(mean=jnp.zeros(6), cov=2.0), stack([method.init(mean=jnp.zeros(2), cov=2.0)] * 3)
    both = jax.jit(lambda s, p, x, a, r: (learn(joint, s, x, a, r)[0], learn(method, p, x, a, r)[0]))
    for _ in range(6):
        x, arm, reward = (
            jnp.array(rng.normal(size=2)),
            jnp.asarray(rng.integers(3), jnp.int32),
            jnp.asarray(float(rng.integers(2))),
        )
        shared, split = both(shared, split, x, arm, reward)
    x = jnp.array([0.3, -1.0])
    together, alone = reward_posterior(joint, shared, x), reward_posterior(method, split, x)
    assert isinstance(together, JointGaussian)
    assert isinstance(alone, IndependentGaussians)
    np.testing.assert_allclose(together.mean[0], alone.mean[:, 0], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(jnp.diagonal(together.cov[0]), alone.var[:, 0], rtol=1e-9)
    np.testing.assert_allclose(together.expected, alone.expected, rtol=1e-9, atol=1e-12)
    noisy = reward_posterior(method, split, x, draw="predictive")
    if likelihood == "gaussian":
        np.testing.assert_allclose(noisy.var, alone.var + 0.5, rtol=1e-12)


@pytest.mark.parametrize(
    "name", [pytest.param("EnKF(size=40)+C-ACI(q=0.01)", marks=pytest.mark.nightly), "NIG+C-Static"]
)
def test_any_belief_can_be_drawn_from(name):
    method = fx.method(
        name,
        model=fx.models.linear(
            noise=None if "NIG" in name else 0.1, likelihood=fx.models.gaussian(1.0) if "NIG" in name else None
        ),
    )
    state = stack([method.init(mean=jnp.array([1.0, 0.0]), cov=0.01, key=jax.random.key(1))] * 2)
    seen = reward_posterior(method, state, jnp.array([2.0, 0.0]))
    draws = jax.vmap(seen.draw)(seen.noise(jax.random.key(0), (400,)))
    np.testing.assert_allclose(draws.mean(axis=0), seen.expected, atol=0.12)
    np.testing.assert_allclose(seen.probabilities(jax.random.key(2), 400), 0.5, atol=0.1)


def test_time_passes_for_a_shared_model_too():
    method = fx.method("LG+C-ACI(q=0.5)", model=fx.models.linear(noise=1.0))
    later = age(method, method.init(mean=jnp.zeros(2), cov=1.0))
    np.testing.assert_allclose(jax.vmap(lambda belief: belief.var)(later.hypotheses.belief)[0], 1.5, rtol=1e-6)


@pytest.mark.nightly
def test_simulations_may_begin_from_states_of_their_own():
    method = fx.method("LG+C-Static", model=fx.models.linear(noise=0.1))
    world = table(jnp.eye(3), jnp.eye(3), key=jax.random.key(0), steps=12, simulations=2)
    one, other = method.init(mean=jnp.zeros(9), cov=1.0), method.init(mean=jnp.arange(9.0), cov=1.0)
    run = lambda state: play(method, thompson(), world, state, key=jax.random.key(1), shared=True).arm
    same, mixed = run(one), run(stack([one, other]))
    np.testing.assert_array_equal(same[:, 0], mixed[:, 0])
    assert (same[:, 1] != mixed[:, 1]).any()
    with pytest.raises(ValueError, match="3 states but 2 simulations"):
        run(stack([one] * 3))


@pytest.mark.x64
@pytest.mark.nightly
def test_one_simulation_alone_is_a_loop_by_hand():
    method = fx.method("LoFi(rank=2, spare=2)+C-Static", model=fx.models.linear(noise=0.1))
    world = table(jnp.eye(3), jnp.eye(3), key=jax.random.key(0), steps=9)
    start = method.init(mean=0.1 * jnp.arange(9.0), cov=1.0)
    played = play(method, greedy(), world, start, key=jax.random.key(1), shared=True)
    turn = jax.jit(lambda s, x, a, r: learn(method, s, x, a, r)[0])
    state = start
    for row, arm in zip(world.order[:, 0], played.arm[:, 0], strict=True):
        x = world.contexts[row]
        assert int(arm) == int(jnp.argmax(reward_posterior(method, state, x).expected))
        state = turn(state, x, arm, world.rewards[row, arm])


@pytest.mark.nightly
def test_hypotheses_without_bound_have_slots_for_all_rounds():
    """RL[inf] that begins with two slots decides as RL[K] with K above the number of rounds."""
    world = drifting_bernoulli(key=jax.random.key(3), steps=7, simulations=2, arms=2, sd=0.3)
    arms = {}
    for name in ("RL[inf](capacity=2)", "RL[8]"):
        method = fx.method(f"Cj+{name}-PR(hazard=0.3)", model=fx.models.bernoulli())
        start = stack([method.init(mean=0.5, cov=1 / 12)] * 2)
        arms[name] = play(method, ucb(1.0), world, start, key=jax.random.key(1)).arm
    first, second = arms.values()
    np.testing.assert_array_equal(first, second)
