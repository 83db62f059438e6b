"""One row of the race that tells of changes: against the belief of before, or for labels against the elder.

Numbers show a change by a row that surprises, and what was believed before it races from there
(`filtax.estimators.rivalry.compared`). A label surprises little, and a filter that adapts follows the change before it
suspects one: so there a filter that never forgets races all the time (`filtax.estimators.elder`). Of three and more
labels each head has an elder of its own, and there is one race, of what all heads say together.

Axes: H heads.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.nn import logsumexp
from jaxtyping import Array, Float, PyTree

from filtax.bone import Bone
from filtax.estimators.elder import followed, studied
from filtax.estimators.rivalry import Rivalry, compared, outdone
from filtax.state import Info, State

__all__ = ["Raced", "raced", "raced_heads"]


class Raced(NamedTuple):
    """What a row made of a race.

    Attributes:
        race: As it stands.
        alarm: 0, or at an alarm the rows since the change.
        excess: By how much the row surprised the elder more than it expected of itself; 0 where there is none.
    """

    race: list[Any]
    alarm: Array
    excess: Array


def raced(
    method: Bone,
    before: State,
    race: list[Any],
    learned: tuple[State, Info, PyTree],
    x: Array,
    y: Array,
    limit: Array,
) -> Raced:
    """One row of the race of a single filter.

    Args:
        method: The method.
        before: Its state before this row.
        race: Of the belief of before; or of the elder, and the rows since the last change that it told of.
        learned: What `filter_step` made of this row.
        x: Features.
        y: What came; NaN where nothing did.
        limit: 2 log(1/alpha).
    """
    after, info, forecast = learned
    if len(race) == 1:
        change = jnp.asarray(info.change_probability)
        lasted = method.auxiliary.report(before.hypotheses, before.t - before.began)[1]
        held, alarm = compared(
            method, before.initial, race[0], before.hypotheses, x, y, forecast, change, lasted, limit
        )
        return Raced([held], alarm, jnp.zeros_like(held.score))
    held, count = race
    known = jnp.isfinite(y)
    belief, law = studied(method, held.hypotheses, x, y)
    mine, theirs = (_logs(jnp.stack([1.0 - p, p])) for p in (forecast.mean, law.mean))
    return _told(held._replace(hypotheses=belief), count, after.hypotheses, mine, theirs, y, known, limit)


def raced_heads(
    method: Bone,
    race: list[Any],
    hypotheses: PyTree,
    chance: Float[Array, " H"],
    x: Array,
    label: Array,
    known: Array,
    limit: Array,
) -> Raced:
    """One row of the race of many heads with their elders.

    Args:
        method: The method.
        race: The elders, and the rows since the last change; what is the same for all heads stands in each.
        hypotheses: Hypotheses of each head, with this row.
        chance: Of yes, as each head had forecast it.
        x: Features.
        label: Number of the label that came; NaN where none did.
        known: Labels met before this row.
        limit: 2 log(1/alpha).
    """
    held, count = race
    heads = jnp.arange(chance.size).astype(x.dtype)
    own = jnp.where(jnp.isfinite(label), (heads == label).astype(x.dtype), jnp.nan)
    beliefs, law = jax.vmap(lambda belief, y: studied(method, belief, x, y))(held.hypotheses, own)

    def shares(each: Array) -> Array:
        logs = jnp.where(heads < known, _logs(each), -jnp.inf)
        return logs - logsumexp(logs)

    one = Rivalry(beliefs, *(leaf[0] for leaf in held[1:]))
    counts = jnp.isfinite(label) & (label < known) & (known > 1.0)
    after = _told(one, count[0], hypotheses, shares(chance), shares(law.mean), label, counts, limit)
    rival, count = after.race
    spread = lambda leaf: jnp.broadcast_to(leaf, (chance.size,))  # noqa: E731
    return after._replace(race=[Rivalry(rival.hypotheses, *(spread(leaf) for leaf in rival[1:])), spread(count)])


def _logs(chances: Array) -> Array:
    return jnp.log(jnp.maximum(chances, jnp.finfo(chances.dtype).tiny))


def _told(
    held: Rivalry,
    count: Array,
    hypotheses: PyTree,
    mine: Array,
    theirs: Array,
    label: Array,
    counts: Array,
    limit: Array,
) -> Raced:
    """The race by the log probabilities of all labels, the method's and the elder's."""
    at = jnp.where(counts, label, 0.0).astype(jnp.int32)
    gain = jnp.where(counts, mine[at] - theirs[at], 0.0)
    expected = jnp.sum(jnp.where(jnp.exp(theirs) > 0.0, jnp.exp(theirs) * theirs, 0.0))
    excess = jnp.where(counts, expected - theirs[at], 0.0)
    held, alarm = outdone(held, gain, limit)
    held = followed(held, hypotheses, alarm > 0, count, mine.size > 2)
    count = jnp.where(alarm > 0, 0, count + counts.astype(count.dtype))
    return Raced([held, count], jnp.maximum(alarm - 1, 0), excess)  # behind its first row
