"""(M.2) Hypotheses that split in two at every step: change times CPT, change locations CPL, run length and count RLCC.

2K slots hold at most K survivors; each becomes a hypothesis that goes on and one that changes. CPT and CPL remember the
whole path, so no hypotheses are merged, and after t data there are 2^t of them; RLCC knows the run length and the
number of changes, and merges resets with equal counts (errata E17). The unknown hazard of RLCC has a Beta prior, so
that after c changes in t steps it is (a + c) / (a + b + t) (Wilson 2010).

With E experts inside (`CPT/ME`) any of them may hold after a change: each survivor becomes 1 + E hypotheses, and after
t data there are E (1 + E)^t of them.

Axes: C = 2K slots, M remembered changes. Cost: 2K updates a step and one sort.
Thesis: eq:transition-cpl-independent, eq:transition-rl-markov (errata E16, E17).
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax.nn import logsumexp
from jaxtyping import Array, Float, Int

from filtax import _validation as checks
from filtax.auxiliary._experts import check_experts
from filtax.auxiliary.hazards import going_on, hazard
from filtax.linalg import argleast
from filtax.numerics import normalised
from filtax.protocols import Auxiliary, Hypotheses, Proposal, RunLengthValue, static


class PathValue(RunLengthValue):
    """The path of a hypothesis: besides its run length and expert, how often it changed in how many steps, and when.

    `times` holds the steps of the latest changes, newest first, -1 where there was none; a regime that begins with
    datum t (counted from 1) has time t.

    >>> PathValue(jnp.array([0]), None, jnp.array([1]), jnp.array([5]), jnp.array([[5]])).count.tolist()
    [1]
    """

    count: Int[Array, " *C"]
    steps: Int[Array, " *C"]
    times: Int[Array, "*C M"]


class Branching(Auxiliary):
    """K survivors, each of which goes on or changes; `merge` adds up resets with equal counts of changes.

    >>> change_locations(0.1, keep=8).slots
    16
    """

    hazard: Any
    merge: bool = static()
    name: str = static()
    keep: int | None = static(default=None)
    capacity: int = static(default=64)
    memory: int = static(default=16)
    inner: Any = None
    regimes_end = True
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
        return 2 if self.inner is None else 1 + self.inner.slots

    @property
    def slots(self) -> int:
        """Initial slots: one for each future of each survivor, or of each expert before the first datum."""
        survivors = -(-self.capacity // self.futures) if self.keep is None else max(self.keep, self.futures - 1)
        return self.futures * survivors

    def slots_needed(self, t: int) -> int | None:
        """Slots needed for the step after t; None when survivors are bounded."""
        return None if self.keep is not None else self.futures * self.cardinality(t)

    def cardinality(self, t: int) -> int:
        """Possible values after t data."""
        if self.merge:
            return 1 + t * (t + 1) // 2
        return (self.futures - 1) * self.futures**t

    def start(self, dtype: Any) -> tuple[PathValue, Float[Array, " C"]]:
        """One path without a change, or one for each expert."""
        return self.start_of(self.slots, dtype)

    def start_of(self, slots: int, dtype: Any) -> tuple[PathValue, Float[Array, " C"]]:
        """The same in a given number of slots."""
        zeros = jnp.zeros(slots, jnp.int32)
        times = jnp.full((slots, self.memory), -1, jnp.int32)
        first = jnp.full(slots, -jnp.inf, dtype)
        if self.inner is None:
            return PathValue(zeros, None, zeros, zeros, times), first.at[0].set(0.0)
        inner, log_prior = self.inner.start(dtype)
        E = self.inner.slots
        return PathValue(zeros, zeros.at[:E].set(inner.expert), zeros, zeros, times), first.at[:E].set(log_prior)

    def expand(self, hypotheses: Hypotheses, initial: Any, dt: Array | None) -> Proposal:
        """Split each survivor: the first K slots go on, the others change, with K slots for each expert."""
        K, E = hypotheses.log_weight.size // self.futures, self.futures - 1
        log_weight, best = jax.lax.top_k(hypotheses.log_weight, K)
        old = jax.tree.map(lambda leaf: leaf[best], hypotheses.aux)
        h = self._hazard(old, dt).astype(log_weight.dtype)
        log_reset = log_weight + jnp.log(h)
        change = self._merged(log_reset, old.count) if self.merge else log_reset
        now = old.steps + 1
        stay = PathValue(old.runlength + 1, old.expert, old.count, now, old.times)
        times = jnp.concatenate([now[:, None], old.times[:, :-1]], axis=1)
        changed = PathValue(jnp.zeros_like(old.runlength), old.expert, old.count + 1, now, times)
        aux = jax.tree.map(lambda a, b: jnp.concatenate([a, *[b] * E]), stay, changed)
        change = jnp.tile(change, E)
        if self.inner is not None:
            inner, log_prior = self.inner.start(log_weight.dtype)
            expert = jnp.concatenate([old.expert, jnp.repeat(inner.expert, K)])
            aux = PathValue(aux.runlength, expert, aux.count, aux.steps, aux.times)
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
        equal = count[:, None] == count[None, :]
        alive = log_reset > -jnp.inf
        first = ~jnp.any(
            equal & alive[None, :] & (jnp.arange(count.size)[None, :] < jnp.arange(count.size)[:, None]), 1
        )
        total = logsumexp(jnp.where(equal, log_reset[None, :], -jnp.inf), axis=1)
        return jnp.where(first & alive, total, -jnp.inf)

    def report(self, hypotheses: Hypotheses, age: Array) -> tuple[Array, Array]:
        """Probability that a regime began with this datum, and the run length of the most probable hypothesis."""
        change = jnp.sum(jnp.where(hypotheses.aux.runlength == 0, jnp.exp(hypotheses.log_weight), 0.0))
        return change, hypotheses.aux.runlength[argleast(-hypotheses.log_weight)]


def _build(name: str, law: Any, merge: bool, keep: Any, memory: Any, capacity: Any, experts: Any = None) -> Branching:
    if keep is not None:
        checks.whole(f"{name}[K]", keep, least=1, hint=f"It is the number of hypotheses kept; {name}[inf] keeps all.")
    checks.whole(f"{name}(memory=...)", memory, least=1, hint="It is how many changes a path remembers.")
    checks.whole(f"{name}(capacity=...)", capacity, least=2, hint="It is the number of slots to begin with.")
    check_experts(f"{name}(experts=...)", experts)
    return Branching(law, merge, name, keep, capacity, memory, experts)


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
    return _build("CPT", hazard(hazard_of), False, keep, memory, capacity, experts)


def change_locations(hazard_of: Any, *, keep: Any = None, memory: Any = 16, capacity: Any = 64) -> Branching:
    """Whether each datum was a change: CPL[K], with s_t = 1 for a change (Li 2021).

    >>> change_locations(0.1, keep=4).name
    'CPL'
    """
    return _build("CPL", hazard(hazard_of), False, keep, memory, capacity)


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
    return _build("RLCC", (a, b), True, keep, memory, capacity)
