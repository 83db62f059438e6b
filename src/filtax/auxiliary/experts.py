r"""(M.2) A mixture of experts ME: which of E models, or of E settings of one, holds.

Without a transition matrix an expert holds for ever (Magill). With one, $P_{ij}$ is the probability that expert i is
followed by j, and the beliefs are merged before the tick so that there stay E of them: `imm` gives each expert the
mixture of those it can come from, `gpb` gives all of them the same mixture. With `none` each keeps its own belief, as
parameters that rest while others are in use; the weights alone take turns.

Axes: E experts. Cost: E updates a tick; merging E² (imm) or E (gpb) sums of moments.
Thesis: eqn:MELSSM; cardinality K.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.nn import logsumexp
from jaxtyping import Array, Float, Int

from filtax import checks
from filtax.beliefs import moment_match
from filtax.module import Module
from filtax.protocols import Auxiliary, Hypotheses, Proposal

__all__ = ["Expert", "Experts", "check_experts", "experts"]


class Expert(Module):
    """Which expert a hypothesis is, and, under a gated weighting, its weights in the gate.

    >>> Expert(jnp.array([1])).expert.tolist()
    [1]
    """

    expert: Int[Array, " *C"]
    gate: Float[Array, "*C G"] | None = None


class Experts(Auxiliary):
    """E experts in E slots.

    >>> experts(3).slots
    3
    """

    log_prior: Float[Array, " E"]
    log_transition: Float[Array, "E E"] | None = None
    merge: str = eqx.field(static=True, default="imm")
    name = "ME"
    knows_parent = True
    values = "{1, ..., K}"
    shown = {}  # noqa: RUF012

    @property
    def slots(self) -> int:
        """One for each expert."""
        return self.log_prior.shape[-1]

    def slots_needed(self, t: int) -> None:
        """A bank of experts never grows."""
        return

    def cardinality(self, t: int) -> int:
        """Possible values after t data."""
        return self.slots

    def start(self, dtype: Any) -> tuple[Expert, Float[Array, " E"]]:
        """Every expert, as probable as was said."""
        return Expert(jnp.arange(self.slots, dtype=jnp.int32)), self.log_prior.astype(dtype)

    def expand(self, hypotheses: Hypotheses, initial: Any, dt: Array | None) -> Proposal:
        """Let the experts take turns as the transition matrix says."""
        never = jnp.full_like(hypotheses.log_weight, -jnp.inf)
        stays = jnp.zeros(self.slots, bool)
        if self.log_transition is None:
            return Proposal(hypotheses, stays, never)
        if dt is not None:
            raise ValueError("step(dt=...): a transition matrix knows one time step only; leave dt out.")
        joint = hypotheses.log_weight[:, None] + self.log_transition  # from, to
        weight = logsumexp(joint, axis=0)
        if self.merge == "none":
            belief = hypotheses.belief
        elif self.merge == "gpb":
            one = moment_match(hypotheses.belief, hypotheses.log_weight)
            belief = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (self.slots, *leaf.shape)), one)
        else:
            belief = jax.vmap(lambda log_w: moment_match(hypotheses.belief, log_w), in_axes=1)(joint)
        return Proposal(Hypotheses(belief, hypotheses.aux, weight), stays, never)

    def report(self, hypotheses: Hypotheses, age: Array) -> tuple[Array, Array]:
        """No change of parameters is suspected; which expert holds is in the weights of the bank."""
        return jnp.zeros((), hypotheses.log_weight.dtype), age


def experts(count: Any, *, prior: Any = None, transition: Any = None, merge: Any = "imm") -> Experts:
    """Let several experts compete, or take turns.

    Args:
        count: Number of experts E. What differs between them is given by `filtax.priors.by_expert`.
        prior: (E,) probabilities before any datum; equal if left out.
        transition: (E, E), rows sum to 1; the identity (no switching) if left out.
        merge: "imm" or "gpb", how beliefs are merged when experts take turns; "none" if each keeps its own.

    >>> import filtax as fx
    >>> fx.method("LG+ME-Static", model=fx.models.linear(noise=1.0), auxiliary=experts(2)).name
    'LG+ME[2]-Static'
    """
    checks.whole("experts(count=...)", count, least=1, hint="A list of experts must not be empty.")
    if merge not in ("imm", "gpb", "none"):
        raise ValueError(f"experts(merge={merge!r}) must be imm, gpb or none.")
    law = np.full(count, 1.0 / count) if prior is None else np.asarray(prior, "float64")
    _check_law("experts(prior=...)", law, (count,))
    log_transition = None
    if transition is not None:
        _check_law("experts(transition=...)", np.asarray(transition, "float64"), (count, count))
        log_transition = jnp.log(checks.floats(transition))
    return Experts(jnp.log(jnp.asarray(law)), log_transition, merge)


def check_experts(call: str, given: Any) -> None:
    """Refuse what is neither None nor a bank of experts.

    >>> check_experts("RL(experts=...)", experts(2))
    """
    if given is not None and not isinstance(given, Experts):
        raise ValueError(f"{call} must be filtax.auxiliary.experts(...), such as experts(2), got {given!r:.40}.")
    if given is not None and given.log_transition is not None:
        raise ValueError(f"{call}: experts inside of a regime hold until it ends; leave their transition= out.")


def _check_law(call: str, law: np.ndarray, shape: tuple[int, ...]) -> None:
    if law.shape != shape or (law < 0.0).any() or not np.allclose(law.sum(-1), 1.0, atol=1e-6):
        raise ValueError(f"{call} must have shape {shape} and sum to 1 along its last axis, got {law.tolist()!r:.80}.")
