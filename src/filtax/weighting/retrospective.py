r"""(A.2) Retrospective membership: of all subsets of the past, the one under which the datum is most probable.

For CPL, greedily from the bottom up: from the empty set, the datum that raises $\log p(s) + \log p(y \mid s)$ most is
taken in, until none raises it. For CPV the same function is climbed by its gradient, in the logits of the shares, from
where they are expected. What is found has weight 1 (DA[1]).

Cost: M rounds of M recalls for CPL; `steps` gradients of a recall for CPV.
Thesis: sec:choice-weighting-function, CPL with retrospective membership (Nassar 2022).
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from filtax import checks
from filtax.protocols import Weighting

__all__ = ["Retrospective", "retrospective"]

EDGE = 1e-3  # shares begin this far from 0 and 1, where a logit has no slope


class Retrospective(Weighting):
    """Look for the best membership once the datum is known.

    >>> retrospective().steps
    20
    """

    step: Any
    steps: int = eqx.field(static=True)
    searches = True

    def __call__(self, log_weight: Float[Array, " C"]) -> Float[Array, " C"]:
        """What was found has all the weight."""
        return jnp.zeros_like(log_weight)

    def search(self, auxiliary: Any, aux: Any, score: Callable[[Any], Array]) -> Any:
        """Return the auxiliary value, of one slot, with the best membership; `score(aux)` is that of the datum."""
        known = aux.memory.weight
        at = lambda member: eqx.tree_at(lambda aux: aux.member, aux, member[None])  # noqa: E731
        value = lambda member: jnp.sum(score(at(member))) + auxiliary.log_prior(member, known[0])  # noqa: E731
        binary = auxiliary.name == "CPL"
        return at(self._grow(value, known[0]) if binary else self._climb(value, known[0], auxiliary.belong))

    @staticmethod
    def _grow(value: Callable[[Array], Array], known: Float[Array, " M"]) -> Float[Array, " M"]:
        """From the empty set, or from all where nothing else has a chance, take in what helps most."""
        safe = lambda member: jnp.nan_to_num(value(member), nan=-jnp.inf, neginf=-jnp.inf)  # noqa: E731
        whole, empty = (known > 0.0).astype(known.dtype), jnp.zeros_like(known)

        def grow(_: Array, now: tuple[Array, Array]) -> tuple[Array, Array]:
            member, best = now
            tries = jnp.maximum(member[None], jnp.eye(known.size, dtype=known.dtype) * whole[None])
            values = jax.vmap(safe)(tries)
            first = jnp.argmax(values)
            better = values[first] > best
            return jnp.where(better, tries[first], member), jnp.where(better, values[first], best)

        member, best = jax.lax.fori_loop(0, known.size, grow, (empty, safe(empty)))
        return jnp.where(best > -jnp.inf, member, whole)

    def _climb(self, value: Callable[[Array], Array], known: Array, belong: Any) -> Float[Array, " M"]:
        """Ascent in the logits of the shares by ever shorter steps, whose length does not depend on the slope."""
        share = lambda logit: jnp.where(known > 0.0, jax.nn.sigmoid(logit), 0.0)  # noqa: E731
        start = jnp.clip(jnp.asarray(belong, known.dtype), EDGE, 1.0 - EDGE)

        def uphill(i: Array, logit: Array) -> Array:
            slope = jax.grad(lambda logit: value(share(logit)))(logit)
            square = jnp.sum(slope * slope)
            sound = jnp.isfinite(square) & (square > 0.0)
            size = jnp.sqrt(jnp.where(sound, square, 1.0))  # a root has no slope at 0
            length = jnp.asarray(self.step, slope.dtype) * (1.0 - i / self.steps).astype(slope.dtype)
            return logit + jnp.where(sound, length * jnp.where(sound, slope, 0.0) / size, 0.0)

        logit = jnp.full_like(known, 1.0) * (jnp.log(start) - jnp.log1p(-start))
        return share(jax.lax.fori_loop(0, self.steps, uphill, logit))


def retrospective(steps: Any = 20, step: Any = 1.0) -> Retrospective:
    """Look back, at each datum, for the past data that belong with it; for CPL[1] and CPV.

    Args:
        steps: Gradient steps, for CPV.
        step: Length of the first of them, in logits.

    >>> retrospective(steps=5).steps
    5
    """
    checks.whole("retrospective(steps=...)", steps, least=1, most=checks.REPEATS)
    checks.positive("retrospective(step=...)", step)
    return Retrospective(step, steps)
