r"""The value of a policy from what another one did: importance weights, with intervals.

With logged probability $p_t$ of the arm $a_t$ that was pulled, and $\pi_t(a)$ the policy's own,

$$\text{IPS} = \frac{1}{T}\sum_t w_t r_t, \quad w_t = \frac{\pi_t(a_t)}{p_t}, \qquad
  \text{SNIPS} = \frac{\sum_t w_t r_t}{\sum_t w_t}, \qquad
  \text{DR} = \frac{1}{T}\sum_t \Bigl(\sum_a \pi_t(a) \hat q_t(a) + w_t (r_t - \hat q_t(a_t))\Bigr).$$

IPS and DR are unbiased whenever the logged probabilities are right and $\hat q_t$ knows nothing of $r_t$; SNIPS
trades a bias of order 1/T for less variance. Intervals are those of the central limit theorem, for SNIPS by its
linearisation: with a few effective rows they are too narrow.
"""

from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from filtax import checks

__all__ = ["Estimate", "doubly_robust", "ips", "mean_of", "snips"]


class Estimate(NamedTuple):
    """A mean reward, an interval for it, and how many rows it rests on: the effective number for weighted ones.

    >>> Estimate(0.5, 0.4, 0.6, 100.0).value
    0.5
    """

    value: float
    low: float
    high: float
    rows: float


def ips(reward: Any, logged: Any, own: Any, *, level: float = 0.95) -> Estimate:
    """Inverse propensity score; the arrays are (T,), `own` the policy's probability of the arm that was pulled.

    >>> ips([1.0, 0.0, 1.0, 0.0], [0.5] * 4, [1.0, 0.0, 1.0, 0.0]).value
    1.0
    """
    reward, weight = _weights("ips", reward, logged, own)
    return _interval(weight * reward, _effective(weight), level)


def snips(reward: Any, logged: Any, own: Any, *, level: float = 0.95) -> Estimate:
    """Self-normalised inverse propensity score.

    >>> snips([1.0, 0.0, 1.0, 1.0], [0.25] * 4, [1.0, 1.0, 0.0, 0.0]).value
    0.5
    """
    reward, weight = _weights("snips", reward, logged, own)
    total = float(np.sum(weight))
    if total <= 0.0:
        return Estimate(np.nan, np.nan, np.nan, 0.0)
    value = float(np.sum(weight * reward)) / total
    half = _quantile(level) * float(np.sqrt(np.sum((weight * (reward - value)) ** 2))) / total
    half = half if np.count_nonzero(weight) > 1 else np.nan  # of one row nothing is known but its reward
    return Estimate(value, value - half, value + half, _effective(weight))


def doubly_robust(
    reward: Any,
    logged: Any,
    own: Any,
    predicted: Any,
    baseline: Any,
    *,
    level: float = 0.95,
) -> Estimate:
    """Doubly robust: a model of the rewards, corrected where it was seen to be wrong.

    Args:
        reward: (T,) what was paid.
        logged: (T,) the logged probability of the arm that was pulled.
        own: (T,) the probability that the policy gives to it.
        predicted: (T,) the model's expected reward of the arm that was pulled.
        baseline: (T,) its expected reward under the policy, sum over arms of probability times prediction.
        level: Of the interval.

    >>> doubly_robust([1.0, 1.0], [0.5, 0.5], [1.0, 0.0], [1.0, 1.0], [1.0, 1.0]).value
    1.0
    """
    reward, weight = _weights("doubly_robust", reward, logged, own)
    predicted, baseline = np.asarray(predicted, np.float64), np.asarray(baseline, np.float64)
    for name, values in (("predicted", predicted), ("baseline", baseline)):
        checks.finite(f"doubly_robust({name}=...)", values)
        if values.shape != reward.shape:
            raise ValueError(f"doubly_robust: {name} has shape {values.shape} but there are {reward.size} rows.")
    return _interval(baseline + weight * (reward - predicted), _effective(weight), level)


def mean_of(reward: Any, *, level: float = 0.95) -> Estimate:
    """The plain mean of some rewards; NaN of none.

    >>> mean_of([0.0, 1.0]).value
    0.5
    """
    reward = np.asarray(reward, np.float64)
    return _interval(reward, float(reward.size), level)


def _weights(call: str, reward: Any, logged: Any, own: Any) -> tuple[np.ndarray, np.ndarray]:
    reward, logged, own = (np.asarray(part, np.float64) for part in (reward, logged, own))
    if not reward.shape == logged.shape == own.shape or reward.ndim != 1:
        raise ValueError(
            f"{call}: reward, logged and own have shapes {reward.shape}, {logged.shape} and {own.shape}; give one "
            "number of each for every row."
        )
    checks.finite(f"{call}(reward=...)", reward)
    if not (np.all(logged > 0.0) and np.all(logged <= 1.0)):
        raise ValueError(
            f"{call}(logged=...) must lie in (0, 1], got {logged[~((logged > 0.0) & (logged <= 1.0))][0]}: an arm that "
            "was pulled had a probability; leave such rows out, or correct them."
        )
    checks.share(f"{call}(own=...)", own)
    return reward, own / logged


def _effective(weight: np.ndarray) -> float:
    squares = float(np.sum(weight * weight))
    return float(np.sum(weight)) ** 2 / squares if squares > 0.0 else 0.0


def _interval(each: np.ndarray, rows: float, level: float) -> Estimate:
    if each.size < 2:
        value = float(each[0]) if each.size else np.nan
        return Estimate(value, np.nan, np.nan, rows)
    value, half = float(np.mean(each)), _quantile(level) * float(np.std(each, ddof=1)) / np.sqrt(each.size)
    return Estimate(value, value - half, value + half, rows)


def _quantile(level: float) -> float:
    if not 0.0 < level < 1.0:
        raise ValueError(f"the level of an interval must lie between 0 and 1, got {level}; 0.95 is usual.")
    return NormalDist().inv_cdf(0.5 + 0.5 * level)
