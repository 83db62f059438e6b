r"""Outlier, change, or missing: three things that look alike at first, told apart at a chosen rate of false alarms.

A datum whose forecast gave it, and anything as extreme, a probability below $\alpha$ is an outlier: that happens to a
good datum with probability $\alpha$. What is done about it has a rate of its own, $\beta = \min(\alpha, 0.001)$: below
it the filter does not get to see the datum. Were that done to all that is told of, a filter asked for $\alpha = 0.05$
would learn from data without their tails, find the noise smaller than it is, and call ever more of them outliers.

A change is what keeps surprising. With e the event of a surprise, of probability
$q_0$ under the forecast, and $q_1 = \min(11 q_0, (1 + q_0)/2)$ after a change,
$$W_t = \max(0, W_{t-1} + \log \frac{q_1^e (1-q_1)^{1-e}}{q_0^e (1-q_0)^{1-e}}),$$
and the alarm is given when $W_t > \log(1/\beta)$: the filter starts anew with it, and one that did so every few dozen
data would never be calibrated. The ratio has mean 1 under the forecast, so that the mean time to a false alarm is at
least $1/\beta$ data, whatever the model, as long as its forecasts are calibrated (Page 1954; Lorden 1971). It is at
most 11: one datum, however extreme, is never a change. The new regime began when W last left 0.
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

__all__ = ["ACTED", "CHANGE", "MISSING", "NAMES", "OUTLIER", "SURPRISE", "acted_on", "next_score"]

ACTED = 0.001  # the most often that a good datum is not learned from, or a filter starts anew
SURPRISE = 0.0455  # probability beyond two standard deviations
MOST = 11.0
OUTLIER, CHANGE, MISSING = 1, 2, 3
NAMES = (None, "outlier", "change", "missing")


def acted_on(rate: float) -> float:
    """How often something is done about a false alarm, where alarms are told at a rate.

    >>> acted_on(0.05), acted_on(1e-6)
    (0.001, 1e-06)
    """
    return min(rate, ACTED)


def next_score(
    score: Float[Array, ""], event: Bool[Array, ""], chance: Float[Array, ""], seen: Bool[Array, ""]
) -> Float[Array, ""]:
    """W after one datum.

    Args:
        score: W before.
        event: Whether the datum surprised.
        chance: Probability that the forecast gave to a surprise, q_0.
        seen: Whether there was a datum that could be judged; if not, W stays.

    >>> round(next_score(jnp.zeros(()), jnp.array(True), jnp.array(0.05), jnp.array(True)).item(), 2)
    2.35
    """
    chance = jnp.clip(chance, 1e-12, 1.0 - 1e-12)
    after = jnp.minimum(MOST * chance, 0.5 * (1.0 + chance))
    gain = jnp.where(event, jnp.log(after / chance), jnp.log1p(-after) - jnp.log1p(-chance))
    return jnp.where(seen, jnp.maximum(score + gain, 0.0), score)
