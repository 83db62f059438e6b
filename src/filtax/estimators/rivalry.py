r"""Whether a method that has forgotten was right to: one that has not goes on forecasting beside it.

In a run (`compared`) it is the belief of before. A filter that watches for changes drops what it knew at a row that
surprises it, be that the first of a new regime or a gross error; or it widens what it knows and follows, and drops
nothing. Which it was the rows behind it show: with $q_s$ the forecasts of the belief of before, which learns on and
forgets nothing, and $p_s$ those of the filter itself,
$$\Lambda_t = \sum_{s \le t} \min\bigl(\log p_s(y_s) - \log q_s(y_s),\ b\bigr)$$
grows after a change and falls after a gross error. Above $2\log(1/\alpha)$ it is a change; as far below, or after
`LASTS` rows, it is none. If nothing has changed, $e^\Lambda$ is a supermartingale that starts at 1, so that one
suspicion becomes a false alarm with a probability of at most $\alpha^2$. The bound b, a quarter of the limit, lets no
row decide alone. A row is suspected if the filter thinks a regime more likely than not to begin there, or if its
forecast gave the row, and anything as extreme, a probability below $\alpha$.

In an estimator (`outdone`) it is a filter that goes on learning and never forgets (`filtax.estimators.elder`), and the
race is on all the time: $\Lambda_t = \max(0, \Lambda_{t-1} + \min(\cdot, b))$. Of all rows at which the change may
have begun it takes the one that explains it best, where $\Lambda$ last left 0; the mean time to a false alarm is at
least $\alpha^{-2}$ data (Lorden 1971).
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from filtax._step import look_ahead
from filtax.protocols import over_hypotheses

__all__ = ["LONGEST", "MATURE", "Rivalry", "compared", "outdone", "unsuspected"]

LONGEST = 500  # rows that the race with an elder lasts at most
LASTS = 50  # rows that a suspicion does: what shows a change shows it soon, and the rows before it belong to it no more
ROWS = 4  # rows that either takes at least
MATURE = 100  # rows that a belief has learned before it may race: a young one would lose to any that goes on learning
PER_WEIGHT = 10  # rows for each weight before a row that surprises is suspected: weights of long lags are learned last


class Rivalry(NamedTuple):
    """The belief of before, whether it is in the race, its score, and for how many rows; below 0, rows of rest."""

    hypotheses: PyTree
    racing: Array
    score: Array
    age: Array


def unsuspected(hypotheses: PyTree) -> Rivalry:
    """Nothing is suspected; the bank only gives the shape."""
    return Rivalry(hypotheses, jnp.zeros((), bool), jnp.zeros(()), jnp.zeros((), jnp.int32))


def compared(
    method: Any,
    initial: PyTree,
    held: Rivalry,
    before: PyTree,
    x: Array,
    y: Array,
    made: PyTree,
    change: Array,
    length: Array,
    limit: Array,
) -> tuple[Rivalry, Array]:
    """One row of the race.

    Args:
        method: The method.
        initial: Its initial belief.
        held: The race so far.
        before: The bank before this row.
        x: Features of the row.
        y: What came; NaN where nothing did, and then nothing is learned of it.
        made: What the method forecast.
        change: Its probability that a regime began with this row.
        length: How long the regime before it has lasted.
        limit: 2 log(1/alpha).

    Returns:
        The race, and 0, or at an alarm the rows since the change.
    """
    known = jnp.isfinite(y)
    shown = jnp.where(known, y, 0.0)

    def run(hypotheses: PyTree) -> tuple[PyTree, Array]:
        old = look_ahead(method, hypotheses, initial, x, None, False)
        return _taught(method, hypotheses, x, shown), _bounded(made.log_prob(shown) - old.log_prob(shown), limit)

    rest = lambda hypotheses: (hypotheses, jnp.zeros_like(held.score))  # noqa: E731
    hypotheses, gain = jax.lax.cond(held.racing & known, run, rest, held.hypotheses)
    score, age = held.score + gain, held.age + 1
    alarm = held.racing & (score > limit)
    racing = held.racing & ~alarm & (score >= -limit) & (age < LASTS)
    tail = 2.0 * jnp.minimum(made.cdf(shown), 1.0 - made.cdf(shown))
    odd = known & (tail < jnp.exp(-0.5 * limit)) & (length >= PER_WEIGHT * x.size) & (held.age >= 0)
    begins = ((change > 0.5) | odd) & (length >= MATURE) & ~racing & ~alarm
    hypotheses = jax.tree.map(lambda new, old: jnp.where(begins, new, old), before, hypotheses)
    score = jnp.where(racing, score, 0.0)
    waits = jnp.where(held.racing, 0, jnp.minimum(age, 0))
    age = jnp.where(racing, age, jnp.where(alarm, -MATURE, jnp.where(begins, 0, waits)))
    return Rivalry(hypotheses, racing | begins, score, age), jnp.where(alarm, held.age + 1, 0)


def _taught(method: Any, hypotheses: PyTree, x: Array, y: Array) -> PyTree:
    """Every hypothesis after one datum, none of them more or less probable for it."""

    def one(belief: PyTree, aux: PyTree) -> PyTree:
        after = method.posterior.update(belief, method.model, x, y[None], jnp.ones(1, bool), aux, None)
        return jax.tree.map(lambda new, old: jnp.where(after.ok, new, old), after.belief, belief)

    return eqx.tree_at(lambda held: held.belief, hypotheses, over_hypotheses(one, hypotheses.belief, hypotheses.aux))


def outdone(held: Rivalry, gain: Array, limit: Array) -> tuple[Rivalry, Array]:
    """One row of a race that never ends.

    Args:
        held: The race so far.
        gain: By how much the log density of the filter exceeds that of its rival; 0 where nothing came.
        limit: 2 log(1/alpha).

    Returns:
        The race, and 0, or at an alarm the rows since the change.

    >>> race = unsuspected(None)
    >>> for gain in (0.5, -2.0, 9.0, 9.0, 9.0):
    ...     race, since = outdone(race, jnp.asarray(gain), jnp.asarray(8.0))
    >>> race.score.item(), since.item()  # no row counts for more than 2
    (6.0, 0)
    """
    score = jnp.maximum(held.score + _bounded(gain, limit), 0.0)
    age = jnp.where(score > 0.0, held.age + 1, 0)
    return Rivalry(held.hypotheses, held.racing, score, age), jnp.where(score > limit, age, 0)


def _bounded(gain: Array, limit: Array) -> Array:
    return jnp.minimum(jnp.nan_to_num(gain, nan=0.0), limit / ROWS)
