"""The bandit of the thesis: what is reported of made-up regrets, and by night the verdict of the quick size."""

import jax
import numpy as np
import pytest

from thesis import bernoulli_bandit, reproduce


def contest(order, noise=1.0):
    """A stand-in for the contest: regrets by name, a little noise for each simulation."""

    def run(setting, key, sd, names, advance):
        steps = setting.steps
        luck = noise * np.random.default_rng(int(1e4 * sd)).normal(size=(len(names) + 1, setting.simulations))
        results = {}
        for i, name in enumerate((*names, "uniform")):
            regret = steps * order[name] * (1 + sd) + luck[i]
            curve = np.linspace(0, 1, 5)[:, None] * regret
            results[name] = {"rounds": np.arange(5), "number": 0.1}
            for of in ("means", "rewards"):
                results[name] |= {f"regret_of_{of}": regret, f"curve_of_{of}": curve}
        return results

    return run


def test_blind_choice_loses_the_gap_between_the_best_arm_and_the_mean_arm():
    setting = bernoulli_bandit.Setting(steps=400, simulations=300, arms=3, warm_up=(4, 2))
    told = bernoulli_bandit.contest(setting, jax.random.key(0), 0.0, (), print)["uniform"]
    # three uniform probabilities: the greatest is 3/4 in the mean, a blind pull has 1/2
    assert told["regret_of_means"].mean() / 400 == pytest.approx(0.25, abs=0.03)
    np.testing.assert_allclose(told["curve_of_means"][-1], told["regret_of_means"])
    assert (told["regret_of_rewards"] > 0).all()


@pytest.mark.nightly
def test_the_verdict_of_the_quick_size(tmp_path):
    (found,) = reproduce(["bernoulli-bandit"], out=tmp_path)
    assert [claim["verdict"] for claim in found["claims"]] == ["does not hold"]
    of_rewards = {row[0]: row[2] for row in found["tables"][1]["rows"]}
    assert max(of_rewards, key=of_rewards.get) == "uniform"
    assert of_rewards["RL[1]-PR"] == max(of_rewards[name] for name in bernoulli_bandit.CLAIMED)
