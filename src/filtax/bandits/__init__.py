"""Decisions: policies on any belief, bandits that wait for late rewards, simulations, and policies judged by a log.

Bandit(arms, method, policy)           pull an arm, report its reward later; `save` and `load`
default_method                         a method for the arms of a bandit
thompson, ucb, bayes_ucb, greedy, epsilon_greedy     policies, for any belief
drifting_bernoulli, wheel, table       worlds; play(method, policy, world) runs all simulations at once
regret_of_means, regret_of_rewards     regret against the best mean, and against the best realised reward
read_log, evaluate_log                 the value of a policy from the decisions of another one
logged_evaluation                      its estimators, and logs in memory
step                                   one round as pure functions
"""

from filtax.bandits import logged_evaluation, step
from filtax.bandits._bandit import Bandit, default_method
from filtax.bandits._policies import bayes_ucb, epsilon_greedy, greedy, thompson, ucb
from filtax.bandits._simulate import (
    Played,
    World,
    drifting_bernoulli,
    play,
    regret_of_means,
    regret_of_rewards,
    table,
    wheel,
)
from filtax.bandits.logged_evaluation import evaluate_log, read_log
from filtax.bandits.step import stack

__all__ = [
    "Bandit",
    "Played",
    "World",
    "bayes_ucb",
    "default_method",
    "drifting_bernoulli",
    "epsilon_greedy",
    "evaluate_log",
    "greedy",
    "logged_evaluation",
    "play",
    "read_log",
    "regret_of_means",
    "regret_of_rewards",
    "stack",
    "step",
    "table",
    "thompson",
    "ucb",
    "wheel",
]
