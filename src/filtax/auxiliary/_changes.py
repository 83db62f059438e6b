r"""(M.2) Hypotheses about changes: run length RL, change times CPT, change locations CPL, run length and count RLCC.

RL says how many steps ago the regime began. After t data there are t + 1 hypotheses (errata E17): the run that began
before the stream, and one for each datum. At each step every run goes on with probability 1 - H(r), and one new run
takes the mass of all resets, $\sum_k \nu(r^{(k)})\,H(r^{(k)})$; its belief is the prior, which then absorbs the datum
(errata E12). The new run takes the slot of least weight, so nothing is ever moved.

The others split in two at every step: 2K slots hold at most K survivors, each of which becomes a hypothesis that goes
on and one that changes. CPT and CPL remember the whole path, so no hypotheses are merged, and after t data there are
2^t of them; RLCC knows the run length and the number of changes, and merges resets with equal counts (errata E17). The
unknown hazard of RLCC has a Beta prior, so that after c changes in t steps it is (a + c) / (a + b + t) (Wilson 2010).

With E experts inside (`RL/ME`, `CPT/ME`) any of them may hold after a change: there are E new runs at a step, or each
survivor becomes 1 + E hypotheses.

Axes: C slots, M remembered changes. Cost: C updates a step, and for paths one sort.
Thesis: eq:transition-rl-markov, eq:transition-cpl-independent, algo:rl-pr-step (errata E12, E16, E17, E19).
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax.nn import logsumexp
from jaxtyping import Array, Float, Int

from filtax import _validation as checks
from filtax.auxiliary._experts import check_experts
from filtax.auxiliary.hazards import Flat, going_on, hazard, log_odds
from filtax.linalg import argleast
from filtax.numerics import normalised
from filtax.protocols import Auxiliary, Hypotheses, Proposal, RunLengthValue, static, with_fields


class _Changes(Auxiliary):
    """What all hypotheses about the last change have in common; `keep` of them survive a step, or all."""

    hazard: Any
    inner: Any = None
    keep: int | None = static(default=None)
    capacity: int = static(default=64)
    regimes_end = True

    @property
    def starts(self) -> int:
        """Regimes that may begin at a step: one, or one for each expert."""
        return 1 if self.inner is None else self.inner.slots

    def start(self, dtype: Any) -> tuple[RunLengthValue, Float[Array, " C"]]:
        """One hypothesis, or one for each expert, that the regime begins with the stream."""
        return self.start_of(self.slots, dtype)

    def start_of(self, slots: int, dtype: Any) -> tuple[RunLengthValue, Float[Array, " C"]]:
        """The same in a given number of slots."""
        zeros, first = jnp.zeros(slots, jnp.int32), jnp.full(slots, -jnp.inf, dtype)
        if self.inner is None:
            return RunLengthValue(zeros, None), first.at[0].set(0.0)
        inner, log_prior = self.inner.start(dtype)
        expert = zeros.at[: self.starts].set(inner.expert)
        return RunLengthValue(zeros, expert), first.at[: self.starts].set(log_prior)

    def report(self, hypotheses: Hypotheses, age: Array) -> tuple[Array, Array]:
        """Probability that a regime began with this datum, and the run length of the most probable hypothesis."""
        change = jnp.sum(jnp.where(hypotheses.aux.runlength == 0, jnp.exp(hypotheses.log_weight), 0.0))
        return change, hypotheses.aux.runlength[argleast(-hypotheses.log_weight)]


class RunLength(_Changes):
    """Hypotheses about when the regime began."""

    name = "RL"
    values = "{0, ..., t}"
    shown = {"capacity": 64}  # noqa: RUF012

    @property
    def slots(self) -> int:
        """Initial slots; every expert has one before the first datum, however few are kept after it."""
        return max(self.capacity, self.starts) if self.keep is None else max(self.keep, self.starts) + self.starts

    def slots_needed(self, t: int) -> int | None:
        """Slots needed for the step after t; None when survivors are bounded."""
        return None if self.keep is not None else (t + 2) * self.starts

    def cardinality(self, t: int) -> int:
        """Possible values after t data (errata E17)."""
        return (t + 1) * self.starts

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
            lost = jnp.exp(jnp.max(dropped)) if self.starts == 1 else jnp.sum(jnp.exp(dropped))
            weight = weight - jnp.log1p(-lost)
        aux = RunLengthValue(jnp.where(is_new, 0, hypotheses.aux.runlength + 1), expert)
        return Proposal(Hypotheses(hypotheses.belief, aux, weight), is_new, log_reset, rounded)

    def _place(self, hypotheses: Hypotheses, old: Array) -> tuple[Array, Array | float, Array | None]:
        """Which slots hold new runs, the log share of each, and the experts of all slots."""
        if self.inner is None:
            return jnp.arange(old.size, dtype=jnp.int32) == argleast(old), 0.0, None
        inner, log_prior = self.inner.start(old.dtype)
        place = jax.lax.top_k(-old, self.starts)[1]
        is_new = jnp.zeros(old.size, bool).at[place].set(True)
        share = jnp.zeros_like(old).at[place].set(log_prior)
        return is_new, share, hypotheses.aux.expert.at[place].set(inner.expert)


class PathValue(RunLengthValue):
    """The path of a hypothesis: besides its run length and expert, how often it changed in how many steps, and when.

    `times` holds the steps of the latest changes, newest first, -1 where there was none; a regime that begins with
    datum t (counted from 1) has time t.
    """

    count: Int[Array, " *C"]
    steps: Int[Array, " *C"]
    times: Int[Array, "*C M"]


class Branching(_Changes):
    """K survivors, each of which goes on or changes; `merge` adds up resets with equal counts of changes."""

    memory: int = static(default=16)
    merge: bool = static(default=False)
    name: str = static(default="CPT")
    knows_parent = True

    @property
    def shown(self) -> dict[str, Any]:
        """Settings that a name spells out."""
        return {"memory": 1 if self.merge else 16, "capacity": 64}

    @property
    def values(self) -> str:
        """The set that psi lies in."""
        sets = {"CPT": "2^{1, ..., t}", "CPL": "{0, 1}^t", "RLCC": "{(r, c): r + c <= t, c >= 1} and (t, 0)"}
        return sets[self.name]

    @property
    def futures(self) -> int:
        """Hypotheses that a survivor becomes: it goes on, or changes to any of the experts."""
        return 1 + self.starts

    @property
    def slots(self) -> int:
        """Initial slots: one for each future of each survivor, or of each expert before the first datum."""
        survivors = -(-self.capacity // self.futures) if self.keep is None else max(self.keep, self.starts)
        return self.futures * survivors

    def slots_needed(self, t: int) -> int | None:
        """Slots needed for the step after t; None when survivors are bounded."""
        return None if self.keep is not None else self.futures * self.cardinality(t)

    def cardinality(self, t: int) -> int:
        """Possible values after t data."""
        return 1 + t * (t + 1) // 2 if self.merge else self.starts * self.futures**t

    def start_of(self, slots: int, dtype: Any) -> tuple[PathValue, Float[Array, " C"]]:
        """One path without a change, or one for each expert, in a given number of slots."""
        run, first = super().start_of(slots, dtype)
        never = jnp.full((slots, self.memory), -1, jnp.int32)
        return PathValue(run.runlength, run.expert, run.runlength, run.runlength, never), first

    def expand(self, hypotheses: Hypotheses, initial: Any, dt: Array | None) -> Proposal:
        """Split each survivor: the first K slots go on, the others change, with K slots for each expert."""
        K, E = hypotheses.log_weight.size // self.futures, self.starts
        log_weight, best = jax.lax.top_k(hypotheses.log_weight, K)
        old = jax.tree.map(lambda leaf: leaf[best], hypotheses.aux)
        h = self._hazard(old, dt).astype(log_weight.dtype)
        log_reset = log_weight + jnp.log(h)
        change = jnp.tile(self._merged(log_reset, old.count) if self.merge else log_reset, E)
        now = old.steps + 1
        stay = PathValue(old.runlength + 1, old.expert, old.count, now, old.times)
        times = jnp.concatenate([now[:, None], old.times[:, :-1]], axis=1)
        changed = PathValue(jnp.zeros_like(old.runlength), old.expert, old.count + 1, now, times)
        aux = jax.tree.map(lambda a, b: jnp.concatenate([a, *[b] * E]), stay, changed)
        if self.inner is not None:
            inner, log_prior = self.inner.start(log_weight.dtype)
            aux = with_fields(aux, expert=jnp.concatenate([old.expert, jnp.repeat(inner.expert, K)]))
            change = change + jnp.repeat(log_prior, K)
        belief = jax.tree.map(lambda leaf: leaf[jnp.tile(best, self.futures)], hypotheses.belief)
        stays, rounded = going_on(log_weight, jnp.log1p(-h))
        weight = jnp.concatenate([stays, change])
        if self.keep is None:  # inside a jit C cannot grow: with all slots in use the less probable half is dropped
            weight = normalised(weight)
        rounded = None if rounded is None else jnp.concatenate([rounded, jnp.zeros_like(change)])
        log_reset = jnp.concatenate([log_reset, jnp.full_like(change, -jnp.inf)])
        return Proposal(Hypotheses(belief, aux, weight), jnp.arange(weight.size) >= K, log_reset, rounded)

    def _hazard(self, old: PathValue, dt: Array | None) -> Array:
        if not isinstance(self.hazard, tuple):
            return self.hazard(old.runlength, dt)
        if dt is not None:
            raise ValueError("step(dt=...): RLCC counts steps, not time; leave dt out.")
        a, b = (jnp.asarray(part) for part in self.hazard)
        return (a + old.count.astype(a.dtype)) / (a + b + old.steps.astype(a.dtype))

    @staticmethod
    def _merged(log_reset: Array, count: Array) -> Array:
        """Sum of the resets with the same count, at the first of them; the others get weight 0."""
        alive = log_reset > -jnp.inf
        equal, slot = count[:, None] == count[None, :], jnp.arange(count.size)
        first = ~jnp.any(equal & alive[None, :] & (slot[None, :] < slot[:, None]), axis=1)
        total = logsumexp(jnp.where(equal, log_reset[None, :], -jnp.inf), axis=1)
        return jnp.where(first & alive, total, -jnp.inf)


def _check_settings(name: str, keep: Any, capacity: Any, experts: Any, memory: Any = 1) -> None:
    if keep is not None:
        checks.whole(f"{name}[K]", keep, least=1, hint=f"It is the number of hypotheses kept; {name}[inf] keeps all.")
    checks.whole(f"{name}(capacity=...)", capacity, least=2, hint="It is the initial number of slots.")
    checks.whole(f"{name}(memory=...)", memory, least=1, hint="It is how many changes a path remembers.")
    check_experts(f"{name}(experts=...)", experts)


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
    _check_settings("RL", keep, capacity, experts)
    return RunLength(hazard(hazard_of), experts, keep, capacity)


def change_times(
    hazard_of: Any, *, keep: Any = None, memory: Any = 16, capacity: Any = 64, experts: Any = None
) -> Branching:
    """Paths of change times: CPT[K] (Fearnhead and Liu).

    Args:
        hazard_of: As for `run_length`; a law of segment lengths from `filtax.auxiliary.hazards` is usual.
        keep: How many paths survive a step; all 2^t by default, which only short streams can afford.
        memory: How many of the latest changes a path remembers.
        capacity: Slots to begin with when all are kept.
        experts: `filtax.auxiliary.experts(...)`, for CPT/ME.

    >>> change_times(0.1, keep=4).cardinality(3)
    8
    """
    _check_settings("CPT", keep, capacity, experts, memory)
    return Branching(hazard(hazard_of), experts, keep, capacity, memory, name="CPT")


def change_locations(hazard_of: Any, *, keep: Any = None, memory: Any = 16, capacity: Any = 64) -> Branching:
    """Whether each datum was a change: CPL[K], with s_t = 1 for a change (Li 2021).

    >>> change_locations(0.1, keep=4).name
    'CPL'
    """
    _check_settings("CPL", keep, capacity, None, memory)
    return Branching(hazard(hazard_of), None, keep, capacity, memory, name="CPL")


def run_length_count(
    a: Any = 1.0, b: Any = 99.0, *, keep: Any = None, memory: Any = 1, capacity: Any = 64
) -> Branching:
    """Run length and number of changes, with a hazard that is learned: RLCC[K], Beta(a, b) prior (Wilson 2010).

    Args:
        a: Number of changes in the prior, above 0.
        b: Number of steps without a change in the prior, above 0.
        keep: How many hypotheses survive a step; all by default.
        memory: How many of the latest changes a hypothesis remembers.
        capacity: Slots to begin with when all are kept.

    >>> run_length_count(keep=4).cardinality(3)
    7
    """
    checks.positive("RLCC(a=...)", a, hint="It is the number of changes in the prior.")
    checks.positive("RLCC(b=...)", b, hint="It is the number of steps without a change in the prior.")
    _check_settings("RLCC", keep, capacity, None, memory)
    return Branching((a, b), None, keep, capacity, memory, merge=True, name="RLCC")
