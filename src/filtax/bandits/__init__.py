"""Deciding: policies on any belief, bandits that wait for late rewards, environments, and policies judged by a log.

Bandit(arms, method, policy)           pull an arm, report its reward later
load, save                             a bandit in a folder of checkpoints
thompson, ucb, bayes_ucb, greedy, epsilon_greedy     policies, for any belief
look, learn, age                       one round as pure functions
drifting_bernoulli, wheel, table       environments; play(method, policy, world) runs all simulations at once
regret_of_means, regret_of_rewards     what was lost against the best mean, and against the best reward as it fell
evaluate_log, replay, ips, snips, doubly_robust      the value of a policy from what another one did
"""

from filtax.bandits.bandit import Bandit, Decision
from filtax.bandits.environments import World, drifting_bernoulli, table, wheel
from filtax.bandits.estimates import Estimate, doubly_robust, ips, snips
from filtax.bandits.judge import Judged, judge_log
from filtax.bandits.keeping import load, save
from filtax.bandits.log import Log, read_log
from filtax.bandits.logs import evaluate_log, replay
from filtax.bandits.outlook import Counted, Drawn, Joint, Separate, argmax_at_random
from filtax.bandits.play import Played, play, regret_of_means, regret_of_rewards
from filtax.bandits.policies import bayes_ucb, epsilon_greedy, greedy, policy_named, thompson, ucb
from filtax.bandits.rounds import age, learn, look, stack
from filtax.bandits.usual import usual
from filtax.bandits.winner import larger_of_two, largest_of_betas, largest_of_normals

__all__ = [
    "Bandit",
    "Counted",
    "Decision",
    "Drawn",
    "Estimate",
    "Joint",
    "Judged",
    "Log",
    "Played",
    "Separate",
    "World",
    "age",
    "argmax_at_random",
    "bayes_ucb",
    "doubly_robust",
    "drifting_bernoulli",
    "epsilon_greedy",
    "evaluate_log",
    "greedy",
    "ips",
    "judge_log",
    "larger_of_two",
    "largest_of_betas",
    "largest_of_normals",
    "learn",
    "load",
    "look",
    "play",
    "policy_named",
    "read_log",
    "regret_of_means",
    "regret_of_rewards",
    "replay",
    "save",
    "snips",
    "stack",
    "table",
    "thompson",
    "ucb",
    "usual",
    "wheel",
]
