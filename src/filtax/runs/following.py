r"""How a run follows a change within a few rows: what may have changed is learned beside the method, and takes over.

A robust method does not believe the first rows of a new regime, and that is right: they may be gross errors. By the
time it does, dozens of rows are wrong. So with the second row in short order that lies outside of two standard
deviations others begin to learn beside it, each from what is believed then, and each free in something: one weight (the
level is one), all of them, or the size of the noise. A freed weight may move as far as that row asks for, with a
variance of $w + r^2 / x^2$ noises, r the distance of the row in noises, and all of them believe what comes. With $q_s$
the forecasts of one and $p_s$ those of the method,
$$\Lambda_t = \sum_{s \le t} \min\bigl(\log q_s(y_s) - \log p_s(y_s),\ b\bigr)$$
counts from its second row on, as nobody could have foretold the first. At $L = 2\log(1/\alpha) + \log K$ the one
that is ahead takes over with all it has learned, and that is told of as a change; not as long as larger noise explains
the rows, too, so that it is less than $1/\alpha$ times as likely. If nothing has changed, $e^\Lambda$ is a
supermartingale that starts at 1: a suspicion becomes a false alarm with a probability of at most $\alpha^2$. The bound
b lets three rows decide, or five where they are absurd: of gross errors in a row at least six are followed.

One begins anew with a row that surprises if it explains that and all rows before less well than one that begins there.
A suspicion ends when rows have stopped to surprise: W of `filtax.estimators.alarms` is back at 0.

Axes: K ways in which a regime may differ, D weights. Cost: K updates of the posterior in a row under suspicion; where
nothing changes that is one row in thirteen.
"""

import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree

from filtax.beliefs import NormalInverseGamma
from filtax.estimators.alarms import SURPRISE, next_score
from filtax.models import Model
from filtax.tick import fresh_bank

__all__ = ["Doubt", "Followed", "can_follow", "certain", "followed"]

SINGLE = 16  # weights that may be free alone, the first ones
WIDE = 4.0  # variance of what is freed, in units of the noise, whatever the row asks for
FARTHEST = 1e8  # and the most that a row may ask for
NEAREST = 1e-3  # square of a feature below which a row says nothing of its weight
KEPT, RELEARNED = 10.0, 2.0  # shapes that are left of the noise: half as many rows as it takes to learn another one
WARM = 50  # rows before any is suspected
ROWS = 2.9  # rows behind the first of a race that it takes at least: three, whatever is rounded
PATIENT = 4.9  # and five where they are absurd: so are gross errors
ABSURD = 20.0  # noises
NOISE = 0.5  # of the limit by which larger noise must be behind


class Doubt(NamedTuple):
    """What may be believed instead.

    Attributes:
        bank: Beliefs, each free in its way, (K, ...); the last in its noise.
        odds: Of each against the method, bounded, from its second row on, (K,).
        worth: The same without a bound, from its first row on, by which they are compared, (K,).
        age: Rows since each began, or since W left 0, (K,).
        score: W; above 0 something is suspected.
        racing: Whether they learn.
    """

    bank: PyTree
    odds: Float[Array, " K"]
    worth: Float[Array, " K"]
    age: Int[Array, " K"]
    score: Float[Array, ""]
    racing: Bool[Array, ""]


class Followed(NamedTuple):
    """What a row made of a suspicion; `alarm` is 0, or the rows since the change where another one took over."""

    bank: PyTree
    doubt: Doubt
    alarm: Int[Array, ""]


def can_follow(belief: PyTree) -> bool:
    """Whether a method can be freed in these ways: it must learn its noise.

    >>> can_follow(jnp.zeros(2))
    False
    """
    return isinstance(belief, NormalInverseGamma)


def certain(belief: PyTree) -> Doubt:
    """Nothing is suspected; the belief only gives the shape.

    >>> from filtax.beliefs import SquareRoot
    >>> unit = SquareRoot.start(jnp.zeros(2), jnp.ones(2))
    >>> certain(NormalInverseGamma(unit, jnp.ones(()), jnp.ones(()))).odds.shape  # level, weight, both, noise
    (4,)
    """
    ways = min(belief.mean.size, SINGLE) + 2
    every = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (ways, *leaf.shape)), belief)
    return Doubt(
        every, jnp.zeros(ways), jnp.zeros(ways), jnp.zeros(ways, jnp.int32), jnp.zeros(()), jnp.zeros((), bool)
    )


def followed(
    method: Any, initial: PyTree, doubt: Doubt, before: PyTree, outcome: Any, x: Array, y: Array, t: Array, limit: Array
) -> Followed:
    """One row of a suspicion.

    Args:
        method: The method.
        initial: Its initial belief.
        doubt: The suspicion so far.
        before: The bank before this row.
        outcome: What the tick of this row made of it.
        x: Features.
        y: What came; NaN where nothing did.
        t: Rows before this one.
        limit: 2 log(1/alpha).
    """
    made, known = outcome.forecast, jnp.isfinite(y) & (t >= WARM)
    shown = jnp.where(known, y, 0.0)
    below = made.cdf(shown)
    event = known & (2.0 * jnp.minimum(below, 1.0 - below) < SURPRISE)
    score = next_score(doubt.score, event, jnp.asarray(SURPRISE, y.dtype), known)

    def race() -> Followed:
        sure = limit + math.log(doubt.odds.size)  # as many suspicions
        left = _raced(method, doubt, _best(before), made, x, shown, event, sure)
        ahead = jnp.argmax(left.worth)
        quiet = left.worth[ahead] - left.worth[-1] >= NOISE * limit  # the noise is none that takes over
        taken = quiet & (left.odds[ahead] >= sure)
        anew = _begun(method, initial, outcome.bank, jax.tree.map(lambda leaf: leaf[ahead], left.bank))
        bank = jax.tree.map(lambda new, old: jnp.where(taken, new, old), anew, outcome.bank)
        left = left._replace(score=jnp.where(taken, 0.0, score), racing=~taken)
        return Followed(bank, left, jnp.where(taken, left.age[ahead], 0))

    def rest() -> Followed:
        age = jnp.where((doubt.score > 0.0) & (score > 0.0), doubt.age + 1, 0)
        idle = doubt._replace(age=age, score=score, racing=doubt.racing & (score > 0.0))
        return Followed(outcome.bank, idle, jnp.zeros((), age.dtype))

    again = doubt.racing | (event & (doubt.score > 0.0))
    return jax.lax.cond(known & again & (score > 0.0), race, rest)


def _raced(
    method: Any, doubt: Doubt, belief: PyTree, made: PyTree, x: Array, y: Array, event: Array, limit: Array
) -> Doubt:
    """Each with one row more, or begun anew with it; the score is as it was."""
    freed, plain = _freed(belief, x, y - made.mean), made.log_prob(y)
    gain, first = (jnp.nan_to_num(_density(method, each, x, y) - plain) for each in (doubt.bank, freed))
    absurd = jnp.square(y - made.mean) * belief.shape > ABSURD**2 * belief.rate
    odds, worth = doubt.odds + jnp.minimum(gain, limit / jnp.where(absurd, PATIENT, ROWS)), doubt.worth + gain
    anew = event & (worth < first)
    starts = anew | ~doubt.racing
    held = jax.tree.map(lambda new, old: _where(starts, new, old), freed, doubt.bank)
    odds, worth = jnp.where(starts, 0.0, odds), jnp.where(starts, first, worth)
    age = jnp.where(anew & doubt.racing, 0, doubt.age + 1)  # the first one to surprise belongs to it
    return Doubt(_taught(method, held, x, y), odds, worth, age, doubt.score, doubt.racing)


def _best(bank: PyTree) -> NormalInverseGamma:
    """The belief of the most probable hypothesis."""
    return jax.tree.map(lambda leaf: leaf[jnp.argmax(bank.log_weight)], bank.belief)


def _freed(belief: NormalInverseGamma, x: Array, off: Array) -> NormalInverseGamma:
    """The belief, freed in each way, (K, ...); `off` is by how much the row was off."""
    asked = jnp.square(off) * belief.shape / belief.rate
    alone = jnp.diag(WIDE + jnp.minimum(asked / jnp.maximum(x * x, NEAREST), FARTHEST))[:SINGLE]
    every = jnp.full_like(x, WIDE + jnp.minimum(asked / jnp.sum(x * x), FARTHEST))
    moves = jnp.concatenate([alone, jnp.stack([every, jnp.zeros_like(every)])])
    shape = jnp.minimum(belief.shape, jnp.full(len(moves), KEPT).at[-1].set(RELEARNED))
    rate = belief.rate * (shape / belief.shape)
    return jax.vmap(lambda *each: NormalInverseGamma(belief.unit.add(each[0]), *each[1:]))(moves, shape, rate)


def _density(method: Any, beliefs: PyTree, x: Array, y: Array) -> Float[Array, " K"]:
    """Log density that each gives to a row."""
    return jax.vmap(lambda belief: method.posterior.forecast(belief, method.model, x, None).log_prob(y))(beliefs)


def _taught(method: Any, beliefs: PyTree, x: Array, y: Array) -> PyTree:
    """Each after one row that it believes, whatever the method's trust in it."""
    likelihood = getattr(method.model.likelihood, "inner", method.model.likelihood)
    model = Model(method.model.predictor, likelihood)

    def one(belief: PyTree) -> PyTree:
        after = method.posterior.update(belief, model, x, y[None], jnp.ones(1, bool), None, None)
        return jax.tree.map(lambda new, old: jnp.where(after.ok, new, old), after.belief, belief)

    return jax.vmap(one)(beliefs)


def _begun(method: Any, initial: PyTree, bank: PyTree, belief: PyTree) -> PyTree:
    """A bank in which a regime has begun, with what is known of it."""
    fresh = fresh_bank(method, initial, bank.log_weight.size, like=bank)
    every = jax.tree.map(lambda leaf, like: jnp.broadcast_to(leaf, like.shape), belief, fresh.belief)
    return eqx.tree_at(lambda held: held.belief, fresh, every)


def _where(which: Array, new: Array, old: Array) -> Array:
    return jnp.where(which.reshape(-1, *(1,) * (new.ndim - 1)), new, old)
