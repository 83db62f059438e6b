"""What a run carries from row to row, looked at, and put into other units.

Axes: S series or heads, C hypotheses, D weights.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from filtax.estimators.rivalry import Rivalry
from filtax.estimators.units import Units, reexpressed
from filtax.protocols import Hypotheses
from filtax.runs.inputs import Pool

__all__ = ["mean_of", "moved"]


def mean_of(carry: PyTree) -> np.ndarray:
    """Mean of the weights of the first series or head, hypotheses averaged, (D,).

    >>> from filtax.runs.engine import Learner
    >>> mean_of(Learner("LG+RL[2]-PR(hazard=0.1)", columns=3, cov=1.0).fresh(1)).tolist()
    [0.0, 0.0, 0.0]
    """
    return np.asarray(_mean(jax.tree.map(lambda leaf: np.asarray(leaf)[0], carry[0])))  # one shape, whatever S is


def moved(carry: PyTree, before: list[Pool], now: list[Pool], made: int, target: bool) -> PyTree:
    """Beliefs that say in new units what they said in the old ones; the made columns have theirs for ever.

    >>> from filtax.runs.engine import Learner
    >>> learner = Learner("LG+C-Static", columns=2, cov=1.0)
    >>> one, two = Pool(*np.ones((3, 1))), Pool(np.ones(1), np.ones(1), np.full(1, 4.0))
    >>> carry = moved(learner.fresh(1), [one, one], [two, one], 1, target=False)
    >>> np.asarray(carry[0].belief.root)[0, 0].tolist()
    [[1.0, 0.0], [0.0, 2.0]]
    """

    def units(pool: Pool) -> Units:
        fixed = np.stack([np.ones(made - 1), np.zeros(made - 1), np.ones(made - 1)])
        return Units(*(jnp.asarray(row) for row in np.concatenate([fixed, pool.moments], axis=1)))

    ys = tuple(Units(*(jnp.asarray(row) for row in pool[1].moments)) for pool in (before, now)) if target else ()
    return _move(carry, units(before[0]), units(now[0]), *ys)


@jax.jit
def _mean(hypotheses: PyTree) -> Array:
    means = jax.vmap(lambda belief: belief.mean)(hypotheses.belief)
    return jnp.sum(jnp.exp(hypotheses.log_weight)[:, None] * means, axis=0)


@jax.jit
def _move(carry: PyTree, before: Units, now: Units, *target: Units) -> PyTree:
    hypotheses, *rest = carry
    one = lambda belief: reexpressed(belief, before, now, *target)  # noqa: E731
    over = lambda hypotheses: eqx.tree_at(lambda b: b.belief, hypotheses, jax.vmap(jax.vmap(one))(hypotheses.belief))  # noqa: E731
    whole = lambda held: over(held) if isinstance(held, Hypotheses) else jax.vmap(one)(held)  # noqa: E731
    return (
        over(hypotheses),
        *(each._replace(hypotheses=whole(each.hypotheses)) if isinstance(each, Rivalry) else each for each in rest),
    )
