r"""(A.2) Gated experts: the weights are the output of a gate that is learned as the stream goes.

$\nu_k = \exp(w_k^\top u) / \sum_j \exp(w_j^\top u)$ with $u = (1, y)$, where w climbs the gain
$\log \sum_k \nu_k\,p(y \mid k)$ by its gradient, $(h_k - \nu_k)\,u$ with h the posterior of the experts, in steps that
are measured in units of $|u|^2$. The forecast of the next datum uses the gate as it stood at the last one. The constant
in u, which the thesis does not print, lets the gate prefer an expert whatever y is.

Cost: E numbers for each of the 1 + O inputs, and `steps` passes over them.
Thesis: sec:choice-weighting-function, mixture of experts with algorithmic weighting (Chaer 1997).
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

from filtax import checks
from filtax.log_space import normalised
from filtax.protocols import Weighting
from filtax.safe import safe_scale

__all__ = ["Gated", "gated"]

MOST = 1e3  # of a logit: beyond it a weight is 0 or 1


class Gated(Weighting):
    """Weights by a gate on the datum.

    >>> gated(0.5).rate
    0.5
    """

    rate: Any
    steps: int = eqx.field(static=True, default=1)
    revives = True
    gates = True
    stores_data = True

    def __call__(self, log_weight: Float[Array, " C"]) -> Float[Array, " C"]:
        """Normalise; the gate itself acts in `update_gate`."""
        return normalised(log_weight)

    def allocate_memory(self, aux: Any, initial: PyTree, x: Any, width: int) -> Any:
        """A gate that prefers none, with an input for each number of y and a constant."""
        if aux.gate is not None:
            return aux
        gate = jnp.zeros((aux.expert.size, 1 + width), initial.mean.dtype)
        return eqx.tree_at(lambda aux: aux.gate, aux, gate, is_leaf=lambda leaf: leaf is None)

    def memory_shape(self, aux: Any) -> tuple[None, int]:
        """The shape of y that a gate looks at."""
        return None, 1 if aux.gate is None else aux.gate.shape[-1] - 1

    def update_gate(
        self, aux: Any, log_weight: Float[Array, " C"], log_score: Float[Array, " C"], y: Array, mask: Bool[Array, " W"]
    ) -> tuple[Any, Float[Array, " C"]]:
        """Climb the gain of this datum, then weigh by the gate; a missing or failed one leaves all as it was."""
        u = jnp.concatenate([jnp.ones_like(y[:1]), jnp.where(mask, y, 0.0)])
        scale = safe_scale(u, 1.0)  # a large datum is never squared,
        inverse = 1.0 / scale  # nor its scale, as XLA would do to divide by it twice
        unit = u * inverse
        weigh = lambda gate: jax.nn.log_softmax(jnp.clip(gate @ unit * scale, -MOST, MOST))  # noqa: E731

        def climb(_: Array, gate: Array) -> Array:
            now = weigh(gate)
            pull = jax.nn.softmax(now + log_score) - jnp.exp(now)
            return (
                gate + jnp.asarray(self.rate, y.dtype) * pull[:, None] * (unit * inverse / jnp.sum(unit * unit))[None]
            )

        sound = jnp.any(mask) & jnp.any(log_score > -jnp.inf)
        gate = jnp.where(sound, jax.lax.fori_loop(0, self.steps, climb, aux.gate), aux.gate)
        return eqx.tree_at(lambda aux: aux.gate, aux, gate), jnp.where(sound, weigh(gate), log_weight)


def gated(rate: Any = 0.5, steps: Any = 1) -> Gated:
    """Weigh experts by a gate on the datum that is learned online (Chaer 1997); for ME.

    Args:
        rate: Length of a step, above 0; about 1 lets the newest datum decide.
        steps: Steps at each datum.

    >>> gated(0.1, steps=3).steps
    3
    """
    checks.positive("gated(rate=...)", rate, hint="It is the length of a step of the gate.")
    checks.whole("gated(steps=...)", steps, least=1, most=checks.REPEATS)
    return Gated(rate, steps)
