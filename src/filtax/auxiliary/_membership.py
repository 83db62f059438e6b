r"""(M.2) Which of the remembered data belong to the present regime: CPL with s = 1 for membership, and CPV.

For each of the last M data CPL says whether it belongs ($s \in \{0,1\}^M$), and CPV which share of it ($v \in
(0,1)^M$). Both are independent of those at the last step (Nassar 2022): $p(s_{1:t} \mid s_{1:t-1}) = p(s_{1:t})$, here
independent with probability `belong` for each datum. CPL[inf] holds all $2^M$ subsets, which is exact; CPL[1] and CPV
hold one, which (A.2) searches. With a `rate`, CPV is fixed: a datum of age a counts as $\text{rate}^a$ of one (Kurle
2019).

A datum that leaves the memory is forgotten, or, with `fold`, absorbed as far as it belonged.

Axes: C slots, M remembered data. Memory: M data in each slot. Cost: set by the prior, M updates for each hypothesis.
Thesis: sec:choice-weighting-function, CPL with retrospective membership; tab:auxv-time-complexity.
"""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import xlogy
from jaxtyping import Array, Float, PyTree

from filtax import _validation as checks
from filtax.beliefs import Memory
from filtax.protocols import Auxiliary, Hypotheses, Module, Proposal, over_hypotheses, static, with_fields

MOST = 14  # data of which all subsets can be held


class MembershipValue(Module):
    """How far each remembered datum belongs, the data themselves, and the belief that older ones were folded into."""

    member: Float[Array, "*C M"]
    memory: Any = None  # a Memory, once the shape of the data is known
    base: PyTree = None


class Membership(Auxiliary):
    """Subsets of the last M data: all of them (`keep` None) or one."""

    belong: Any
    rate: Any
    memory: int = static()
    fold: bool = static()
    keep: int | None = static()
    name: str = static()
    regimes_end = True
    subsets = True
    stores_data = True
    shown = {"belong": 0.5, "rate": None, "memory": 8, "fold": False}  # noqa: RUF012

    @property
    def values(self) -> str:
        """The set that psi lies in."""
        return "(0, 1)^t" if self.name == "CPV" else "{0, 1}^t"

    @property
    def slots(self) -> int:
        """One, or one for each subset."""
        return 2**self.memory if self.keep is None else 1

    def cardinality(self, t: int) -> int | float:
        """Possible values after t data, as far as they are remembered; a vector of shares has a continuum."""
        return math.inf if self.name == "CPV" else 2 ** min(t, self.memory)

    def start(self, dtype: Any) -> tuple[MembershipValue, Float[Array, " C"]]:
        """Nothing is remembered yet: of all subsets, the empty one."""
        if self.keep is not None:
            return MembershipValue(jnp.zeros((1, self.memory), dtype)), jnp.zeros(1, dtype)
        bits = (np.arange(self.slots)[:, None] >> np.arange(self.memory)[None, :]) & 1
        first = jnp.full(self.slots, -jnp.inf, dtype).at[0].set(0.0)
        return MembershipValue(jnp.asarray(bits, dtype)), first

    def allocate_memory(self, aux: MembershipValue, initial: PyTree, x: Any, width: int) -> MembershipValue:
        """Allocate the memory for data like x."""
        if aux.memory is not None:
            return aux
        x = x if x is None or not jnp.issubdtype(x.dtype, jnp.floating) else jnp.zeros(x.shape, initial.mean.dtype)

        def for_each(leaf: Array) -> Array:
            return jnp.broadcast_to(leaf, (aux.member.shape[0], *leaf.shape))

        memory = jax.tree.map(for_each, Memory.empty(self.memory, x, width, initial.mean.dtype))
        return MembershipValue(aux.member, memory, jax.tree.map(for_each, initial) if self.fold else None)

    def memory_shape(self, aux: MembershipValue) -> tuple[Array | None, int]:
        """The shapes of x and y that a memory holds."""
        X, Y = (None, 1) if aux.memory is None else (aux.memory.X, aux.memory.Y.shape[-1])
        return None if X is None else X[0, 0], Y

    def log_prior(self, member: Float[Array, "*C M"], known: Float[Array, "*C M"]) -> Float[Array, " *C"]:
        """Log probability of a subset, linear in shares between 0 and 1; -inf if a datum that is not known belongs."""
        p = jnp.asarray(self.belong, member.dtype)
        each_one = xlogy(member, p) + xlogy(1.0 - member, 1.0 - p)
        return jnp.sum(jnp.where(known > 0.0, each_one, jnp.where(member > 0.0, -jnp.inf, 0.0)), axis=-1)

    def expand(self, hypotheses: Hypotheses, initial: Any, dt: Array | None) -> Proposal:
        """All subsets with their prior weights, or the one that was found last; with a rate, shares by age."""
        aux, weight = hypotheses.aux, hypotheses.log_weight
        known = jnp.zeros_like(aux.member) if aux.memory is None else aux.memory.weight
        if self.keep is None:
            weight = self.log_prior(aux.member, known)
        elif self.rate is not None:
            ages = jnp.arange(1, self.memory + 1, dtype=weight.dtype)
            shares = jnp.asarray(self.rate, weight.dtype) ** ages
            aux = with_fields(aux, member=jnp.where(known > 0.0, shares, 0.0))
        is_new = jnp.zeros(weight.size, bool)
        return Proposal(Hypotheses(hypotheses.belief, aux, weight), is_new, jnp.full_like(weight, -jnp.inf))

    def store(self, aux: MembershipValue, x: Array | None, y: Array, mask: Array, relearn: Callable) -> MembershipValue:
        """Put the datum into the memory of every hypothesis; the newest belongs until the next search."""
        seen = jnp.any(mask)

        def one(aux: MembershipValue) -> MembershipValue:
            memory, base = aux.memory, aux.base
            if self.fold:
                old = jax.tree.map(lambda leaf: leaf[-1], memory)
                base = relearn(base, aux, old.X, old.Y, old.mask, jnp.where(old.weight > 0.0, aux.member[-1], 0.0))
            member = aux.member
            if self.keep is not None:
                member = jnp.concatenate([jnp.ones_like(member[:1]), member[:-1]])
            new = MembershipValue(member, memory.put(x, y, mask, jnp.ones_like(memory.weight[0])), base)
            return jax.tree.map(lambda now, then: jnp.where(seen, now, then), new, aux)

        return over_hypotheses(one, aux)

    def report(self, hypotheses: Hypotheses, age: Array) -> tuple[Array, Array]:
        """Probability that no remembered datum belongs, and how many do under the most probable hypothesis."""
        aux = hypotheses.aux
        known = jnp.zeros_like(aux.member) if aux.memory is None else aux.memory.weight
        member = jnp.where(known > 0.0, aux.member, 0.0)
        alone = jnp.sum(jnp.exp(hypotheses.log_weight) * jnp.prod(1.0 - member, axis=1))
        return alone, jnp.round(jnp.sum(member, axis=1))[jnp.argmax(hypotheses.log_weight)].astype(age.dtype)


def membership(*, belong: Any = 0.5, memory: Any = 8, keep: Any = None, fold: Any = False) -> Membership:
    """Which of the last data belong to the regime: CPL[inf] for all subsets, CPL[1] for the best one (Nassar 2022).

    Args:
        belong: Probability, before the datum, that a remembered one belongs; 1 makes all of them belong.
        memory: How many data are remembered; all subsets of more than 14 are too many.
        keep: 1 for the best subset, found by `filtax.weighting.retrospective`; all by default.
        fold: Absorb a datum that leaves the memory, instead of forgetting it.

    >>> import filtax as fx
    >>> fx.method("LG+CPL[1](memory=4)-Sub", model=fx.models.linear(noise=1.0)).name
    'LG+CPL[1](memory=4)-Sub'
    """
    checks.share("CPL(belong=...)", belong, hint="It is the probability that a remembered datum belongs.")
    checks.whole("CPL(memory=...)", memory, least=1, hint="It is the number of data remembered.")
    checks.flag("CPL(fold=...)", fold)
    if keep not in (None, 1):
        raise ValueError(f"CPL[{keep}]-Sub: memberships are found again at each datum; write CPL[1] or CPL[inf].")
    if keep is None and memory > MOST:
        raise ValueError(f"CPL[inf](memory={memory}) would hold 2^{memory} subsets; give at most {MOST}, or CPL[1].")
    return Membership(belong, None, memory, bool(fold), keep, "CPL")


def membership_vector(*, belong: Any = 0.5, memory: Any = 8, rate: Any = None, fold: Any = False) -> Membership:
    """How much each of the last data belongs to the regime: CPV.

    Args:
        belong: Share, before the datum, with which a remembered one is expected to belong.
        memory: How many data are remembered.
        rate: In [0, 1]: without a search, a datum of age a counts as rate^a (Kurle 2019).
        fold: Absorb a datum that leaves the memory, instead of forgetting it.

    >>> membership_vector(memory=4).cardinality(3)
    inf
    """
    checks.share("CPV(belong=...)", belong, hint="It is the share of a remembered datum that belongs.")
    checks.whole("CPV(memory=...)", memory, least=1, hint="It is the number of data remembered.")
    checks.flag("CPV(fold=...)", fold)
    if rate is not None:
        checks.share("CPV(rate=...)", rate, hint="A datum of age a counts as rate^a.")
    return Membership(belong, rate, memory, bool(fold), 1, "CPV")
