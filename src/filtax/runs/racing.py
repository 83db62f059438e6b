"""One row of the race that tells of changes: against the belief of before, or for labels against the elder.

Numbers show a change by a row that surprises, and what was believed before it races from there
(`filtax.estimators.rivalry.compared`). A label surprises little, and a filter that adapts follows the change before it
suspects one: so there a filter that never forgets races all the time (`filtax.estimators.elder`).
"""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, PyTree

from filtax.bone import Bone
from filtax.estimators.elder import followed, studied
from filtax.estimators.rivalry import compared, outdone

__all__ = ["raced"]


def raced(
    method: Bone,
    initial: PyTree,
    race: list[Any],
    bank: PyTree,
    outcome: Any,
    x: Array,
    y: Array,
    length: Array,
    limit: Array,
) -> tuple[list[Any], Array]:
    """The race after a row, and 0, or at an alarm the rows since the change.

    Args:
        method: The method.
        initial: Its initial belief.
        race: Of the belief of before; or of the elder, and the rows since the last change that it told of.
        bank: Hypotheses before this row.
        outcome: What the tick of this row made of them.
        x: Features.
        y: What came; NaN where nothing did.
        length: Rows that the method has learned.
        limit: 2 log(1/alpha).
    """
    if len(race) == 1:
        change = jnp.asarray(outcome.info.change_probability)
        lasted = method.auxiliary.report(bank, length)[1]
        held, alarm = compared(method, initial, race[0], bank, x, y, outcome.forecast, change, lasted, limit)
        return [held], alarm
    held, count = race
    known = jnp.isfinite(y)
    shown = jnp.where(known, y, 0.0)
    belief, law = studied(method, held.bank, x, y)
    gain = jnp.where(known, outcome.forecast.log_prob(shown) - law.log_prob(shown), 0.0)
    held, alarm = outdone(held._replace(bank=belief), gain, limit)
    held = followed(held, outcome.bank, alarm > 0, count, False)
    count = jnp.where(alarm > 0, 0, count + known.astype(count.dtype))
    return [held, count], jnp.maximum(alarm - 1, 0)  # behind its first row
