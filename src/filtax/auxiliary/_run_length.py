r"""(M.2) The run length RL: how many steps ago the regime began.

After t data there are t + 1 hypotheses (errata E17): the run that began before the stream, and one for each datum. At
each step every run goes on with probability 1 - H(r), and one new run takes the mass of all resets,
$\sum_k \nu(r^{(k)})\,H(r^{(k)})$; its belief is the prior, which then absorbs the datum (errata E12). The new run takes
the slot of least weight, so nothing is ever moved. With experts inside (`RL/ME`) there is a new run for each expert.

Axes: C slots. Cost: C updates a step.
Thesis: eq:transition-rl-markov, algo:rl-pr-step (errata E12, E17, E19).
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax.nn import logsumexp
from jaxtyping import Array, Float

from filtax import _validation as checks
from filtax.auxiliary._experts import check_experts
from filtax.auxiliary.hazards import Flat, going_on, hazard, log_odds
from filtax.linalg import argleast
from filtax.protocols import Auxiliary, Hypotheses, Proposal, RunLengthValue, static


class RunLength(Auxiliary):
    """Hypotheses about when the regime began; `keep` of them survive a step, or all.

    >>> run_length(0.01, keep=10).slots
    11
    """

    hazard: Any
    inner: Any = None
    keep: int | None = static(default=None)
    capacity: int = static(default=64)
    name = "RL"
    regimes_end = True
    values = "{0, ..., t}"
    shown = {"capacity": 64}  # noqa: RUF012

    @property
    def new_runs(self) -> int:
        """New runs at a step: one, or one for each expert."""
        return 1 if self.inner is None else self.inner.slots

    @property
    def slots(self) -> int:
        """Initial slots; every expert has one before the first datum, however few are kept after it."""
        return max(self.capacity, self.new_runs) if self.keep is None else max(self.keep, self.new_runs) + self.new_runs

    def slots_needed(self, t: int) -> int | None:
        """Slots needed for the step after t; None when survivors are bounded."""
        return None if self.keep is not None else (t + 2) * self.new_runs

    def cardinality(self, t: int) -> int:
        """Possible values after t data (errata E17)."""
        return (t + 1) * self.new_runs

    def start(self, dtype: Any) -> tuple[RunLengthValue, Float[Array, " C"]]:
        """One hypothesis, or one for each expert, that the regime begins with the stream."""
        return self.start_of(self.slots, dtype)

    def start_of(self, slots: int, dtype: Any) -> tuple[RunLengthValue, Float[Array, " C"]]:
        """The same in a given number of slots."""
        zeros = jnp.zeros(slots, jnp.int32)
        first = jnp.full(slots, -jnp.inf, dtype)
        if self.inner is None:
            return RunLengthValue(zeros, None), first.at[0].set(0.0)
        inner, log_prior = self.inner.start(dtype)
        E = self.inner.slots
        return RunLengthValue(zeros, zeros.at[:E].set(inner.expert)), first.at[:E].set(log_prior)

    def expand(self, hypotheses: Hypotheses, initial: Any, dt: Array | None) -> Proposal:
        """Let each run go on, and put the new runs into the slots of least weight."""
        old = hypotheses.log_weight
        log_change, log_stay = log_odds(self.hazard, hypotheses.aux.runlength, dt, old.dtype)
        log_reset = old + log_change
        is_new, log_prior, expert = self._place(hypotheses, old)
        # weights sum to 1, so that under a constant hazard the mass of all resets is the hazard
        log_new = log_change[0] if isinstance(self.hazard, Flat) else logsumexp(log_reset)
        stay, rounded = going_on(old, log_stay)
        weight = jnp.where(is_new, log_new + log_prior, stay)
        rounded = None if rounded is None else jnp.where(is_new, 0.0, rounded)
        if self.keep is None:  # inside a jit C cannot grow: with all slots in use the least probable run is dropped
            dropped = jnp.where(is_new, stay, -jnp.inf)
            lost = jnp.exp(jnp.max(dropped)) if self.new_runs == 1 else jnp.sum(jnp.exp(dropped))
            weight = weight - jnp.log1p(-lost)
        aux = RunLengthValue(jnp.where(is_new, 0, hypotheses.aux.runlength + 1), expert)
        return Proposal(Hypotheses(hypotheses.belief, aux, weight), is_new, log_reset, rounded)

    def _place(self, hypotheses: Hypotheses, old: Array) -> tuple[Array, Array | float, Array | None]:
        """Which slots hold new runs, the log share of each, and the experts of all slots."""
        if self.inner is None:
            return jnp.arange(old.size, dtype=jnp.int32) == argleast(old), 0.0, None
        inner, log_prior = self.inner.start(old.dtype)
        place = jax.lax.top_k(-old, self.new_runs)[1]
        is_new = jnp.zeros(old.size, bool).at[place].set(True)
        share = jnp.zeros_like(old).at[place].set(log_prior)
        return is_new, share, hypotheses.aux.expert.at[place].set(inner.expert)

    def report(self, hypotheses: Hypotheses, age: Array) -> tuple[Array, Array]:
        """Probability that a regime began with this datum, and the most probable run length."""
        change = jnp.sum(jnp.where(hypotheses.aux.runlength == 0, jnp.exp(hypotheses.log_weight), 0.0))
        return change, hypotheses.aux.runlength[argleast(-hypotheses.log_weight)]


def run_length(hazard_of: Any, *, keep: Any = None, capacity: Any = 64, experts: Any = None) -> RunLength:
    """Hypotheses about when the regime began: RL[K], or RL[inf] if `keep` is omitted.

    Args:
        hazard_of: Probability of a change at a step: a number in [0, 1], a function of the run length, or a law of
            segment lengths from `filtax.auxiliary.hazards`.
        keep: How many hypotheses survive a step; all by default, and C then doubles when it is full.
        capacity: Initial number of slots if all are kept.
        experts: `filtax.auxiliary.experts(...)`, for RL/ME.

    >>> import filtax as fx
    >>> rl = fx.method("LG+RL[5]-PR(hazard=0.1)", model=fx.models.linear(noise=1.0))
    >>> rl.auxiliary.slots
    6
    """
    if keep is not None:
        checks.whole("RL[K]", keep, least=1, hint="It is the number of hypotheses kept; RL[inf] keeps all.")
    checks.whole("RL(capacity=...)", capacity, least=2, hint="It is the initial number of slots.")
    check_experts("RL(experts=...)", experts)
    return RunLength(hazard(hazard_of), experts, keep, capacity)
