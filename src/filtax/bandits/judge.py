"""A policy by its name, judged by a log: what the command line prints."""

from typing import NamedTuple

import jax
import numpy as np

from filtax import checks
from filtax.bandits.estimates import Estimate
from filtax.bandits.log import Log
from filtax.bandits.logs import evaluate_log
from filtax.bandits.policies import policy_named
from filtax.bandits.rounds import stack
from filtax.bandits.usual import usual

__all__ = ["Judged", "judge_log"]


class Judged(NamedTuple):
    """The estimates, and the name of the method that learned along the log.

    >>> Judged("Cj+C-OU(rate=0.999)", {"ips": Estimate(0.5, 0.4, 0.6, 100.0)}).rows
    [('ips', '0.5000', '0.4000', '0.6000', '100')]
    """

    method: str
    estimates: dict[str, Estimate]

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """The table, one row for each estimate; a dash where there is nothing to tell."""
        shown = lambda value, digits: "-" if np.isnan(value) else f"{value:.{digits}f}"  # noqa: E731
        return [
            (name, shown(one.value, 4), shown(one.low, 4), shown(one.high, 4), shown(one.rows, 0))
            for name, one in self.estimates.items()
        ]


def judge_log(
    log: Log, policy: str = "ts", *, rewards: str = "auto", rate: float = 0.999, seed: int = 0, level: float = 0.95
) -> Judged:
    """Judge a policy with the usual method for separate arms; a context gets a constant added.

    Args:
        log: From `read_log`.
        policy: Name of a policy, such as "ts".
        rewards: "binary", "number", or "auto": binary if all rewards are 0 or 1. Numbers are brought to mean 0 and
            variance 1 for the method; what is told is of the rewards themselves.
        rate: Share of what was learned that a tick keeps.
        seed: Of the policy's draws.
        level: Of the intervals.

    >>> log = Log(("a", "b"), np.array([0, 1] * 50), np.array([1.0, 0.0] * 50), np.full(100, 0.5))
    >>> judge_log(log).estimates["logged"].value
    0.5
    """
    if rewards not in ("auto", "binary", "number"):
        raise ValueError(f"rewards={rewards!r}: expected auto, binary or number.")
    checks.share("rate", rate)
    zero_or_one = bool(np.all((log.reward == 0.0) | (log.reward == 1.0)))
    if rewards == "binary" and not zero_or_one:
        raise ValueError("rewards=binary: the log has rewards other than 0 and 1; say rewards=number.")
    kind = "binary" if zero_or_one and rewards != "number" else "number"
    with np.errstate(over="ignore", invalid="ignore"):
        shift, scale = (0.0, 1.0) if kind == "binary" else (float(log.reward.mean()), float(log.reward.std()) or 1.0)
    if not np.isfinite(scale):
        raise ValueError(
            f"the rewards reach {np.abs(log.reward).max():.3g}, too far to be squared; give smaller units."
        )
    contexts = log.contexts
    if contexts is None and kind == "number":
        contexts = np.ones((len(log), 1))
    elif contexts is not None:
        spread = contexts.std(axis=0)
        contexts = (contexts - contexts.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
        contexts = np.concatenate([contexts, np.ones((len(log), 1))], axis=1)
    method, start = usual(kind, 0 if contexts is None else contexts.shape[1], rate=rate)
    state = stack([method.init(**start)] * len(log.arms))
    given = Log(log.arms, log.arm, log.reward, log.probability, contexts)
    options = {"key": jax.random.key(seed), "level": level, "unit": (shift, scale)}
    return Judged(method.name, evaluate_log(given, method, policy_named(policy), state, **options))
