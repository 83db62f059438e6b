"""Logs: estimates are right on worlds whose truth is known, and what cannot be right is refused in one sentence."""

import gzip
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import filtax as fx
from filtax.bandits import (
    World,
    default_method,
    epsilon_greedy,
    evaluate_log,
    play,
    read_log,
    regret_of_means,
    regret_of_rewards,
    stack,
    thompson,
    wheel,
)
from filtax.bandits.logged_evaluation import Log, doubly_robust, evaluate_named_policy, ips, replay, snips
from filtax.cli import run

MEANS = np.array([0.2, 0.5, 0.7])


def logged(rng, rows, chances):
    arm = rng.choice(3, size=rows, p=chances)
    return arm, (rng.random(rows) < MEANS[arm]).astype(float), np.asarray(chances)[arm]


@pytest.mark.parametrize("chances", [(1 / 3, 1 / 3, 1 / 3), (0.6, 0.3, 0.1)])
def test_estimates_of_a_fixed_policy_are_unbiased_and_their_intervals_hold(chances):
    """500 logs of 400 rows: the mean of the estimates is the truth up to its own error, and 95 % cover it."""
    rng, own = np.random.default_rng(0), np.array([0.1, 0.2, 0.7])
    truth, guess = own @ MEANS, np.array([0.4, 0.4, 0.5])  # a wrong model of the rewards
    found = {"ips": [], "snips": [], "dr": []}
    for _ in range(500):
        arm, reward, p = logged(rng, 400, chances)
        found["ips"].append(ips(reward, p, own[arm]))
        found["snips"].append(snips(reward, p, own[arm]))
        found["dr"].append(doubly_robust(reward, p, own[arm], guess[arm], np.full(400, own @ guess)))
    for name, estimates in found.items():
        values = np.array([one.value for one in estimates])
        allowed = 4.0 * values.std() / np.sqrt(500) + (0.003 if name == "snips" else 0.0)  # its bias is of order 1/T
        assert abs(values.mean() - truth) < allowed, name
        assert np.mean([one.low <= truth <= one.high for one in estimates]) == pytest.approx(0.95, abs=0.04), name
    spread = {name: np.std([one.value for one in estimates]) for name, estimates in found.items()}
    assert spread["dr"] < spread["ips"]


@pytest.mark.parametrize("chances", [(1 / 3, 1 / 3, 1 / 3), pytest.param((0.5, 0.3, 0.2), marks=pytest.mark.nightly)])
@pytest.mark.nightly
def test_replay_of_a_learning_policy_is_what_it_would_have_earned(chances):
    """Thompson sampling on a uniform and on an uneven log, against the same policy at play in the true world."""
    method, start = default_method(rate=1.0)
    state = stack([method.init(**start)] * 3)
    rng, values = np.random.default_rng(1), []
    for i in range(60):
        arm, reward, p = logged(rng, 300, chances)
        log = Log(("a", "b", "c"), arm, reward, p)
        values.append(replay(log, method, thompson(), state, key=jax.random.key(i)))
    rounds = int(np.mean([one.rows for one in values]))
    assert rounds == pytest.approx(300 * 3 * min(chances) / 3, rel=0.15)
    means = jnp.broadcast_to(jnp.asarray(MEANS), (rounds, 400, 3))
    rewards = jax.random.uniform(jax.random.key(5), means.shape) < means
    played = play(method, thompson(), World(rewards.astype(jnp.int8), means), state, key=jax.random.key(6))
    truth = float(played.reward.mean())
    each = np.array([one.value for one in values])
    assert abs(each.mean() - truth) < 4.0 * np.hypot(each.std() / np.sqrt(60), 0.01)


@pytest.mark.nightly
def test_a_policy_that_learns_along_the_log_beats_it():
    arm, reward, p = logged(np.random.default_rng(2), 600, (1 / 3, 1 / 3, 1 / 3))
    told = evaluate_named_policy(Log(("a", "b", "c"), arm, reward, p)).estimates
    assert told["logged"].value == pytest.approx(reward.mean())
    for name in ("ips", "snips", "dr"):
        assert told[name].value > 0.55
        assert told[name].low <= 0.7 <= told[name].high + 0.1


FILE = "arm,reward,probability\na,1,0.5\nb,0,0.5\na,1,0.5\n"
BAD = {
    "column": (FILE.replace("reward", "rewards"), "no column 'reward'"),
    "no probability": (FILE.replace(",probability", "").replace(",0.5", ""), r"no column .* \(uniform\)"),
    "probability": (FILE.replace("b,0,0.5", "b,0,0"), "log.csv:3: an arm that was pulled had the probability 0.0"),
    "probability above 1": (FILE.replace("b,0,0.5", "b,0,1.5"), "log.csv:3: .* had the probability 1.5"),
    "reward": (FILE.replace("b,0", "b,"), "log.csv:3: there is no number for 'reward'"),
    "text": (FILE.replace("b,0", "b,low"), "log.csv:3:3: reward: 'low' is not a number"),
    "nameless arm": (FILE.replace("b,0", ",0"), "log.csv:3: the row pulls the unknown arm ''"),
    "width": (FILE + "a,1,0.5,7\n", "log.csv:5:"),
    "context": ("arm,reward,probability,x\na,1,0.5,2\nb,0,0.5,NA\n", "log.csv:3: there is no number for 'x'"),
    "text in the context": ("arm,reward,probability,x\na,1,0.5,u\nb,0,0.5,v\n", "'x' holds text"),
    "empty": ("arm,reward,probability\n", "not one row"),
    "decision twice": ("id,arm,reward,probability\n7,a,1,0.5\n8,b,0,0.5\n7,a,1,0.5\n", "log.csv:4: the decision 7"),
    "infinite": (FILE.replace("b,0", "b,inf"), "log.csv:3:3: reward: 'inf' is not a number that is finite"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_logs_get_a_sentence(case, tmp_path):
    text, words = BAD[case]
    (tmp_path / "log.csv").write_text(text)
    with pytest.raises(ValueError, match=words):
        read_log(tmp_path / "log.csv")


def test_the_command_prints_a_table_or_one_sentence(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("filtax.cli._report.start_jax", lambda: None)  # this process has settings of its own
    path = tmp_path / "log.csv"
    path.write_text(FILE * 1 + "".join("a,1,0.5\nb,0,0.5\n" for _ in range(40)))
    assert run(["bandit", str(path), "--policy", "ts", "--seed", "1"]) == 0
    out = capsys.readouterr()
    assert [line.split()[0] for line in out.out.splitlines()] == ["estimate", "logged", "replay", "ips", "snips", "dr"]
    assert "83 rows, 2 arms; Cj+C-OU(rate=0.999) with ts" in out.err
    for arguments, words in ((["--arms", "a,c"], "unknown arm 'b'"), (["--policy", "tz"], "no policy 'tz'")):
        assert run(["bandit", str(path), *arguments]) == 2
        said = capsys.readouterr().err
        assert words in said
        assert said.count("\n") == 1
    damaged = tmp_path / "log.csv.gz"
    damaged.write_bytes(gzip.compress(path.read_bytes())[:40])
    for file, words in ((tmp_path / "none.csv", "does not exist"), (damaged, "log.csv.gz")):
        assert run(["bandit", str(file)]) == 2
        said = capsys.readouterr().err
        assert words in said.lower()
        assert said.count("\n") == 1


def test_logs_of_other_formats_are_the_same_log(tmp_path):
    """JSON lines in another order of columns, packed; arms that look like numbers keep their names."""
    (tmp_path / "log.csv").write_text("x,arm,reward,probability\n1.5,01,1,0.5\n-2,2,0,0.25\n")
    rows = [
        {"reward": 1, "arm": "01", "x": 1.5, "probability": 0.5},
        {"reward": 0, "arm": "2", "x": -2, "probability": 0.25},
    ]
    (tmp_path / "log.jsonl.gz").write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode() + b"\n"))
    for name in ("log.csv", "log.jsonl.gz"):
        log = read_log(tmp_path / name)
        assert log.arms == ("01", "2")
        assert log.arm.tolist() == [0, 1]
        assert log.reward.tolist() == [1.0, 0.0]
        assert log.probability.tolist() == [0.5, 0.25]
        np.testing.assert_array_equal(log.contexts, [[1.5], [-2.0]])
    assert read_log(tmp_path / "log.csv", context=[]).contexts is None
    with pytest.raises(ValueError, match="name each of them once"):
        read_log(tmp_path / "log.csv", arms=["01", "2", "2"])
    (tmp_path / "named.csv").write_text("id,arm,reward,probability\n5,ñandú,1,0.5\n3,北京,0,0.5\n")
    named = read_log(tmp_path / "named.csv")
    assert (named.arms, named.contexts) == (("ñandú", "北京"), None)  # the number of a decision is no feature
    with pytest.raises(ValueError, match="one or the other"):
        read_log(tmp_path / "log.csv", uniform=True)
    uniform = read_log(tmp_path / "log.csv", arms=["2", "01", "3"], context=["x"], uniform=True)
    assert uniform.probability.tolist() == [1 / 3, 1 / 3]
    assert uniform.arm.tolist() == [1, 0]


def test_a_log_that_cannot_be_right_is_refused_in_memory_too():
    made = lambda parts: Log(**{name: part if name == "arms" else np.asarray(part) for name, part in parts.items()})
    log = {"arms": ("a", "b"), "arm": [0, 1], "reward": [1.0, 0.5], "probability": [0.5, 0.5]}
    for change, words in (
        ({"arm": [0, 2]}, "row 2: arm number 2 was pulled, but there are 2 arms"),
        ({"arm": [-1, 0]}, "row 1: arm number -1"),
        ({"reward": [1.0]}, "reward has shape"),
        ({"contexts": [[1.0], [np.inf]]}, "row 2: there is no number for 'context 1'"),
        ({"arms": ("a", "a")}, "name each of them once"),
    ):
        with pytest.raises(ValueError, match=words):
            made(log | change)
    method, start = default_method()
    state = stack([method.init(**start)] * 2)
    with pytest.raises(ValueError, match=r"row 2 has the reward 0\.5, which Cj"):
        evaluate_log(made(log), method, "ts", state, key=jax.random.key(0))
    none = Log(("a", "b"), np.zeros(0, int), np.zeros(0), np.zeros(0))
    with pytest.raises(ValueError, match="it has no rows"):
        replay(none, method, thompson(), state, key=jax.random.key(0))
    with pytest.raises(ValueError, match="give one number of each for every row"):
        ips([1.0, 0.0], [0.5], [0.5])
    assert np.isnan(snips([1.0, 0.0], [0.5, 0.5], [0.0, 1.0]).low)  # one row tells nothing of its own error


@pytest.mark.x64
def test_the_unit_of_the_rewards_changes_what_is_learned_from_and_no_estimate():
    """Blind choice over three arms of a log: by hand, whatever the method learned from the rewards."""
    rng = np.random.default_rng(4)
    arm = rng.choice(3, size=50, p=(0.5, 0.3, 0.2))
    p, reward = np.array([0.5, 0.3, 0.2])[arm], 40.0 + 3.0 * rng.normal(size=50)
    log = Log(("a", "b", "c"), arm, reward, p, np.ones((50, 1)))
    method, start = default_method("number", 1, rate=1.0)
    state = stack([method.init(**start)] * 3)
    told = evaluate_log(log, method, epsilon_greedy(1.0), state, key=jax.random.key(0), unit=(40.0, 3.0))
    weight = 1 / 3 / p
    assert told["ips"].value == pytest.approx(np.mean(weight * reward), rel=1e-6)
    assert told["snips"].value == pytest.approx(np.sum(weight * reward) / weight.sum(), rel=1e-6)
    guess = np.zeros((3, 51))  # ridge of one feature, prior 1 and noise 1, row by row
    for a in range(3):
        seen = np.concatenate([[0.0], np.cumsum(np.where(arm == a, (reward - 40.0) / 3.0, 0.0))])
        guess[a] = seen / (1.0 + np.concatenate([[0], np.cumsum(arm == a)]))
    means = 40.0 + 3.0 * guess[:, :-1]
    by_hand = means.mean(axis=0) + weight * (reward - means[arm, np.arange(50)])
    assert told["dr"].value == pytest.approx(by_hand.mean(), rel=1e-6)
    assert told["replay"].value == pytest.approx(reward.mean(), abs=4 * 3.0 / np.sqrt(told["replay"].rows))


def test_the_wheel_has_its_rewards_where_it_should():
    world = wheel(key=jax.random.key(0), steps=200, simulations=5, delta=0.5)
    x, best = np.asarray(world.contexts), np.asarray(world.means).argmax(axis=-1)
    far, quadrant = (
        np.hypot(x[..., 0], x[..., 1]) > 0.5,
        (np.arctan2(x[..., 1], x[..., 0]) % (2 * np.pi)) // (np.pi / 2),
    )
    assert np.array_equal(best, np.where(far, 1 + quadrant, 0))
    assert far.mean() == pytest.approx(0.75, abs=0.06)
    np.testing.assert_allclose(world.rewards, world.means, atol=0.06)


@pytest.mark.x64
@pytest.mark.nightly
def test_regrets_are_those_of_numpy_and_a_linear_bandit_learns_the_wheel_better_than_chance():
    world = wheel(key=jax.random.key(1), steps=150, simulations=4, delta=0.5)
    method = fx.method("LG+C-Static", model=fx.models.linear(noise=100.0))
    state = stack([method.init(mean=jnp.zeros(3), cov=500.0)] * 5)
    played = play(method, thompson(), world, state, key=jax.random.key(2), block=40)
    arm, means, rewards = (np.asarray(part) for part in (played.arm, world.means, world.rewards))
    taken = np.take_along_axis(means, arm[..., None], -1)[..., 0]
    np.testing.assert_allclose(regret_of_means(world, played), np.cumsum(means.max(-1) - taken, axis=0))
    fell = np.take_along_axis(rewards, arm[..., None], -1)[..., 0]
    np.testing.assert_allclose(played.reward, fell)
    np.testing.assert_allclose(regret_of_rewards(world, played), np.cumsum(rewards.max(-1) - fell, axis=0))
    assert regret_of_means(world, played)[-1].mean() < 0.8 * (means.max(-1) - means.mean(-1)).sum(0).mean()
