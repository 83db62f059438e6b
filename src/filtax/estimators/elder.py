r"""The elder: the champion's filter without its forgetting, which goes on beside it from where nothing had changed.

A filter that adapts follows a change on its own, and then nothing keeps surprising. What shows the change is that the
elder, which must explain all data since the last one with one set of weights, forecasts worse from some datum on
(`filtax.estimators.rivalry.outdone`). If nothing has changed, the elder is the Bayesian forecaster of the stream, and
no other beats it for long, however little either has learned yet.

Axes: H heads (labels only). Cost: a step of the posterior without hypotheses.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, PyTree

from filtax.bone import Bone
from filtax.estimators.rivalry import LONGEST, MATURE, Rivalry
from filtax.protocols import Hypotheses

__all__ = ["followed", "studied"]


def studied(method: Bone, belief: PyTree, z: Array, y: Array) -> tuple[PyTree, PyTree]:
    """The elder after one datum, and what it had forecast.

    Args:
        method: Whose model and posterior it shares.
        belief: About bias and weights.
        z: Features in units.
        y: What came, in units; NaN where nothing did or what did is not believed, which teaches nothing.
    """
    known = jnp.isfinite(y)
    after = method.posterior.update(belief, method.model, z, jnp.where(known, y, 0.0)[None], known[None], None, None)
    return jax.tree.map(lambda new, old: jnp.where(after.ok, new, old), after.belief, belief), after.forecast


def followed(rival: Rivalry, hypotheses: Hypotheses, begins: Bool[Array, ""], count: Array, heads: bool) -> Rivalry:
    """The elder takes the champion's belief where a regime begins, while that is young, and where a race grew old.

    Args:
        rival: The elder and its race.
        hypotheses: Hypotheses of the champion.
        begins: Whether a change was found.
        count: Data of the regime before this one.
        heads: Whether there is one of each for every head.
    """
    begins = begins | (count < MATURE) | (rival.age >= LONGEST)
    best = lambda hypotheses: jax.tree.map(lambda leaf: leaf[jnp.argmax(hypotheses.log_weight)], hypotheses.belief)  # noqa: E731
    champion = jax.vmap(best)(hypotheses) if heads else best(hypotheses)
    belief = jax.tree.map(lambda new, old: jnp.where(begins, new, old), champion, rival.hypotheses)
    fresh = lambda value: jnp.where(begins, jnp.zeros_like(value), value)  # noqa: E731
    return Rivalry(belief, rival.racing, fresh(rival.score), fresh(rival.age))
