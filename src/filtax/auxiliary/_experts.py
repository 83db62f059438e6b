r"""(M.2) A mixture of experts ME: which of E dynamics of one model holds.

Without a transition matrix one expert holds for the whole stream (Magill). With one, $P_{ij}$ is the probability that
expert j follows i, and beliefs are merged before the step so that there stay E of them: under `imm` the belief of each
expert is the mixture of those it can come from, under `gpb` all have the same mixture. Under `none` each keeps its own
belief, and only the weights switch.

The most probable path of experts that switch is found by Viterbi's recursion, from the weights that a scan has kept:
$\delta_t(j) = \max_i \{\delta_{t-1}(i) + \log P_{ij}\} + \log p(y_t \mid j)$, and back from the best end. The score of
each expert follows from $\nu_t(j) \propto p(y_t \mid j) \sum_i \nu_{t-1}(i) P_{ij}$, so that it is that of the merged
beliefs (IMM, GPB) before the datum. The weights themselves are the posterior of the expert at each step.

Axes: E experts. Cost: E updates a step; merging E² (imm) or E (gpb) sums of moments; T E² for a path.
Thesis: eqn:MELSSM; cardinality K; the switching state-space models (SSSM) among the tasks.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.nn import logsumexp
from jaxtyping import Array, Float, Int

from filtax import _validation as checks
from filtax.beliefs import moment_match
from filtax.protocols import Auxiliary, Hypotheses, Module, Proposal, static


class ExpertValue(Module):
    """Which expert a hypothesis is, and, under a gated weighting, its weights in the gate."""

    expert: Int[Array, " *C"]
    gate: Float[Array, "*C G"] | None = None


class Experts(Auxiliary):
    """E experts in E slots."""

    log_prior: Float[Array, " E"]
    log_transition: Float[Array, "E E"] | None = None
    merge: str = static(default="imm")
    name = "ME"
    knows_parent = True
    values = "{1, ..., K}"

    @property
    def slots(self) -> int:
        """One for each expert."""
        return self.log_prior.shape[-1]

    def cardinality(self, t: int) -> int:
        """Possible values after t data."""
        return self.slots

    def start(self, dtype: Any) -> tuple[ExpertValue, Float[Array, " E"]]:
        """Every expert, with its prior probability."""
        return ExpertValue(jnp.arange(self.slots, dtype=jnp.int32)), self.log_prior.astype(dtype)

    def expand(self, hypotheses: Hypotheses, initial: Any, dt: Array | None) -> Proposal:
        """Let the experts switch by the transition matrix."""
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
        """No change probability: which expert holds is in the weights of the hypotheses."""
        return jnp.zeros((), hypotheses.log_weight.dtype), age


def experts(count: Any, *, prior: Any = None, transition: Any = None, merge: Any = "imm") -> Experts:
    """Let several experts compete, or switch.

    Args:
        count: Number of experts E. What differs between them is given by `filtax.priors.by_expert`.
        prior: (E,) probabilities before any datum; equal by default.
        transition: (E, E), rows sum to 1; the identity (no switching) by default.
        merge: "imm" or "gpb", how beliefs are merged when experts switch; "none" if each keeps its own.

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
    """Refuse what is neither None nor experts without a transition matrix."""
    if given is not None and not isinstance(given, Experts):
        raise ValueError(f"{call} must be filtax.auxiliary.experts(...), such as experts(2), got {given!r:.40}.")
    if given is not None and given.log_transition is not None:
        raise ValueError(f"{call}: experts inside of a regime hold until it ends; leave their transition= out.")


def _check_law(call: str, law: np.ndarray, shape: tuple[int, ...]) -> None:
    if law.shape != shape or (law < 0.0).any() or not np.allclose(law.sum(-1), 1.0, atol=1e-6):
        raise ValueError(f"{call} must have shape {shape} and sum to 1 along its last axis, got {law.tolist()!r:.80}.")


def map_path(auxiliary: Any, log_weight: Any) -> np.ndarray:
    """The most probable sequence of experts, (T,) whole numbers below E.

    Args:
        auxiliary: `filtax.auxiliary.experts(...)`, of the method that was run from its start.
        log_weight: (T, E), from `scan(..., keep=("log_weight",))`; exp of it is the posterior of each step.

    >>> sticky = experts(2, transition=[[0.9, 0.1], [0.1, 0.9]])
    >>> map_path(sticky, np.log([[0.6, 0.4], [0.3, 0.7], [0.1, 0.9]])).tolist()
    [1, 1, 1]
    """
    weight = np.asarray(log_weight, "float64")
    E = auxiliary.slots if isinstance(auxiliary, Experts) else 0
    if weight.ndim != 2 or not len(weight) or weight.shape[1] != E:
        raise ValueError(
            f"map_path: log_weight has shape {weight.shape} but there are {E} experts; give the (T, {E}) array that "
            'scan(..., keep=("log_weight",)) keeps of a method whose auxiliary is ME.'
        )
    prior, turn = np.asarray(auxiliary.log_prior, "float64"), np.where(np.eye(E, dtype=bool), 0.0, -np.inf)
    if auxiliary.log_transition is not None:
        turn = np.asarray(auxiliary.log_transition, "float64")
    before, best, back = prior, prior, []
    for now in weight:
        predicted = np.logaddexp.reduce(before[:, None] + turn, axis=0)
        score = np.where(predicted > -np.inf, now - np.where(predicted > -np.inf, predicted, 0.0), -np.inf)
        from_each = best[:, None] + turn
        back.append(np.argmax(from_each, axis=0))
        best = np.max(from_each, axis=0) + score
        best, before = best - best.max(), now
    path = [int(np.argmax(best))]
    for previous in back[:0:-1]:
        path.append(int(previous[path[-1]]))
    return np.array(path[::-1])
