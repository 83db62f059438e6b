r"""(M.2) The run length RL: how many ticks ago the regime began.

After t data there are t + 1 hypotheses (errata E17): the run that began before the stream, and one for each datum. At
each tick every run goes on with probability 1 - H(r), and one newborn takes the mass of all resets,
$\sum_k \nu(r^{(k)})\,H(r^{(k)})$; its belief is the prior, which then absorbs the datum (errata E12). Nothing is ever
moved: the newborn takes the place of a dead slot. With experts inside (`RL/ME`) a newborn is born once for each expert.

Axes: C slots. Cost: C updates a tick.
Thesis: eq:transition-rl-markov, algo:rl-pr-step (errata E12, E17, E19).
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.nn import logsumexp
from jaxtyping import Array, Float, Int

from filtax import checks
from filtax.auxiliary.experts import check_experts
from filtax.auxiliary.hazards import Flat, going_on, hazard, log_odds
from filtax.linalg import argleast
from filtax.module import Module
from filtax.protocols import Auxiliary, Hypotheses, Proposal

__all__ = ["Run", "RunLength", "run_length"]


class Run(Module):
    """What a hypothesis knows of its regime: its age in ticks, and which expert speaks in it.

    >>> Run(jnp.array([0]), None).runlength.tolist()
    [0]
    """

    runlength: Int[Array, " *C"]
    expert: Int[Array, " *C"] | None = None


class RunLength(Auxiliary):
    """Hypotheses about when the regime began; `keep` of them survive a tick, or all.

    >>> run_length(0.01, keep=10).slots
    11
    """

    hazard: Any
    inner: Any = None
    keep: int | None = eqx.field(static=True, default=None)
    capacity: int = eqx.field(static=True, default=64)
    name = "RL"
    regimes_end = True
    values = "{0, ..., t}"
    shown = {"capacity": 64}  # noqa: RUF012

    @property
    def births(self) -> int:
        """Newborns at a tick: one, or one for each expert."""
        return 1 if self.inner is None else self.inner.slots

    @property
    def slots(self) -> int:
        """Slots of a fresh bank; every expert has a place before the first datum, however few are kept after it."""
        return max(self.capacity, self.births) if self.keep is None else max(self.keep, self.births) + self.births

    def slots_needed(self, t: int) -> int | None:
        """Slots needed for the tick after t; None when survivors are bounded."""
        return None if self.keep is not None else (t + 2) * self.births

    def cardinality(self, t: int) -> int:
        """Possible values after t data (errata E17)."""
        return (t + 1) * self.births

    def start(self, dtype: Any) -> tuple[Run, Float[Array, " C"]]:
        """One hypothesis, or one for each expert, that the regime begins with the stream."""
        return self.start_of(self.slots, dtype)

    def start_of(self, slots: int, dtype: Any) -> tuple[Run, Float[Array, " C"]]:
        """The same in a bank of a given size."""
        zeros = jnp.zeros(slots, jnp.int32)
        first = jnp.full(slots, -jnp.inf, dtype)
        if self.inner is None:
            return Run(zeros), first.at[0].set(0.0)
        expert, log_prior = self.inner.start(dtype)
        return Run(zeros, zeros.at[: self.births].set(expert.expert)), first.at[: self.births].set(log_prior)

    def expand(self, hypotheses: Hypotheses, initial: Any, dt: Array | None) -> Proposal:
        """Let each run go on, and put the newborns into the slots of the least weight."""
        old = hypotheses.log_weight
        log_change, log_stay = log_odds(self.hazard, hypotheses.aux.runlength, dt, old.dtype)
        log_reset = old + log_change
        born, log_prior, expert = self._newborns(hypotheses, old)
        # weights sum to 1, so that of a constant hazard the mass of all resets is the hazard itself
        log_born = log_change[0] if isinstance(self.hazard, Flat) else logsumexp(log_reset)
        stay, rounded = going_on(old, log_stay)
        weight = jnp.where(born, log_born + log_prior, stay)
        rounded = None if rounded is None else jnp.where(born, 0.0, rounded)
        if self.keep is None:  # inside a jit the bank cannot grow: a full one gives up its least probable run
            gone = jnp.where(born, stay, -jnp.inf)
            lost = jnp.exp(jnp.max(gone)) if self.births == 1 else jnp.sum(jnp.exp(gone))
            weight = weight - jnp.log1p(-lost)
        aux = Run(jnp.where(born, 0, hypotheses.aux.runlength + 1), expert)
        return Proposal(Hypotheses(hypotheses.belief, aux, weight), born, log_reset, rounded)

    def _newborns(self, hypotheses: Hypotheses, old: Array) -> tuple[Array, Array | float, Array | None]:
        """Which slots are newborn, the log share of each, and the experts of all slots."""
        if self.inner is None:
            return jnp.arange(old.size, dtype=jnp.int32) == argleast(old), 0.0, None
        names, log_prior = self.inner.start(old.dtype)
        place = jax.lax.top_k(-old, self.births)[1]
        born = jnp.zeros(old.size, bool).at[place].set(True)
        share = jnp.zeros_like(old).at[place].set(log_prior)
        return born, share, hypotheses.aux.expert.at[place].set(names.expert)

    def report(self, hypotheses: Hypotheses, age: Array) -> tuple[Array, Array]:
        """Probability that a regime began with this datum, and the most probable run length."""
        change = jnp.sum(jnp.where(hypotheses.aux.runlength == 0, jnp.exp(hypotheses.log_weight), 0.0))
        return change, hypotheses.aux.runlength[argleast(-hypotheses.log_weight)]


def run_length(hazard_of: Any, *, keep: Any = None, capacity: Any = 64, experts: Any = None) -> RunLength:
    """Watch for changes: RL[K], or RL[inf] when `keep` is left out.

    Args:
        hazard_of: Probability of a change at a tick: a number in [0, 1], a function of the run length, or a law of
            segment lengths from `filtax.auxiliary.hazards`.
        keep: How many hypotheses survive a tick; all if left out, and the bank then doubles when it is full.
        capacity: Slots to begin with when all are kept.
        experts: `filtax.auxiliary.experts(...)`, for RL/ME.

    >>> import filtax as fx
    >>> rl = fx.method("LG+RL[5]-PR(hazard=0.1)", model=fx.models.linear(noise=1.0))
    >>> rl.auxiliary.slots
    6
    """
    if keep is not None:
        checks.whole("RL[K]", keep, least=1, hint="It is the number of hypotheses kept; RL[inf] keeps all.")
    checks.whole("RL(capacity=...)", capacity, least=2, hint="It is the number of slots to begin with.")
    check_experts("RL(experts=...)", experts)
    return RunLength(hazard(hazard_of), experts, keep, capacity)
