"""A bandit to put to work: pull an arm, hear of its reward later, keep learning.

Each decision is one tick of time for all arms. The tick passes when the decision is settled: by its reward, or, when
more decisions wait than `pending` allows, by giving up the oldest. So late rewards come in any order, and arms that
are not pulled go on ageing.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from filtax import boundary, checks
from filtax.bandits import kernels
from filtax.bandits.border import (
    check_arm,
    check_key,
    check_method,
    check_outputs,
    check_pair,
    check_policy,
    finite_reward,
)
from filtax.bandits.ledger import Ledger
from filtax.bandits.rounds import furnish, stack
from filtax.bandits.usual import usual
from filtax.growth import grown, remembers
from filtax.models import Direct
from filtax.state import State

__all__ = ["Bandit", "Decision"]


class Decision(NamedTuple):
    """What was decided: the arm, the number to report its reward under, and the probability it was chosen with.

    >>> Decision("a", 0, 0.5).arm
    'a'
    """

    arm: Any
    id: int
    probability: float


class Bandit:
    """Arms, a method that learns their rewards, and a policy that chooses.

    Args:
        arms: Names, texts or whole numbers.
        method: From `filtax.method`; by default Beta arms for rewards 0 and 1 that relax towards their prior.
        policy: From this package, or its short name; Thompson sampling by default.
        mean: Where each belief starts, as for `method.init`.
        cov: How wide it starts; 1 if left out, and uniform for the default method.
        params: Instead of `mean`, a pytree.
        shared: False: every arm has a belief of its own, and sees the context. True: one belief, of a model with one
            output for each arm.
        pending: How many decisions may wait for their reward.
        key: For methods whose beliefs are drawn.

    `update` never loses a reward without saying so. It returns "learned"; "repeated" when this decision had its reward
    before; "expired" when it was given up; "removed" when its arm is gone; "forgotten" when it is too old to tell; and
    "unknown" when there was no such decision. Only "learned" changes what is believed of the arm.

    >>> bandit = Bandit(["a", "b"])
    >>> decision = bandit.pull(key=jax.random.key(0))
    >>> decision.probability
    0.5
    >>> bandit.update(decision.id, 1.0), bandit.update(decision.id, 1.0), bandit.update(7, 1.0)
    ('learned', 'repeated', 'unknown')
    """

    def __init__(
        self,
        arms: Any,
        method: Any = None,
        policy: Any = None,
        *,
        mean: Any = None,
        cov: Any = None,
        params: Any = None,
        shared: bool = False,
        pending: int = 10_000,
        key: Any = None,
    ) -> None:
        checks.whole("Bandit(pending=...)", pending, least=1)
        if isinstance(arms, str) or not isinstance(arms, Iterable):
            raise ValueError(f"Bandit(arms={arms!r:.40}) must be a list of arms, not one text or number.")
        self.arms: list[Any] = []
        for arm in arms:
            check_arm(arm, self.arms)
            self.arms.append(arm)
        if not self.arms:
            raise ValueError("Bandit(arms=[]): there is nothing to choose; give one arm or more.")
        usually = {"mean": None, "cov": 1.0}
        if method is None:
            method, usually = usual()
            usually["mean"] = np.full(len(self.arms), usually["mean"]) if shared else usually["mean"]
        check_method("Bandit", method)
        policy = check_policy("Bandit", "ts" if policy is None else policy)
        check_pair("Bandit", method, policy)
        mean = usually["mean"] if mean is None and params is None else mean
        start = {"mean": mean, "cov": usually["cov"] if cov is None else cov, "params": params, "key": key}
        self.method, self.policy, self.shared = method, policy, bool(shared)
        self.made = 0
        self._fresh: State = method.init(**start)
        self._state = self._fresh if shared else stack([self._fresh] * len(self.arms))
        self._ledger = Ledger(int(pending))
        self._shape: tuple[int, ...] | None = None
        self._dtype, self._furnished = "", not remembers(method)

    @property
    def pending(self) -> int:
        """How many decisions wait for their reward."""
        return len(self._ledger.waiting)

    def pull(self, context: Any = None, *, key: Any) -> Decision:
        """Choose an arm.

        Args:
            context: What the model takes as x; None if it takes none.
            key: Random key; the same key, context and history give the same decision.

        Returns:
            The arm, the number under which to report its reward, and the probability it was chosen with.
        """
        x = self._context(context)
        check_key("pull", key)
        self._furnish(x)
        t = jnp.asarray(self.made, jnp.int32)
        arm, probability = kernels.decide(self.method, self.policy, self._state, x, key, t, shared=self.shared)
        decision = Decision(self.arms[int(arm)], self.made, float(probability))
        self._shape, self._dtype = (None, "") if x is None else (x.shape, str(x.dtype))
        self._ledger.enter(decision.id, decision.arm, x)
        self.made += 1
        while (oldest := self._ledger.overdue()) is not None:
            self._ledger.settle(oldest, "expired")
            self._pass()
        return decision

    def probabilities(self, context: Any = None, *, key: Any) -> dict[Any, float]:
        """The probability of each arm to be chosen now; the key serves those that must be estimated."""
        x = self._context(context)
        check_key("probabilities", key)
        self._furnish(x)
        t = jnp.asarray(self.made, jnp.int32)
        chances = kernels.chances(self.method, self.policy, self._state, x, key, t, shared=self.shared)
        return dict(zip(self.arms, np.asarray(chances).tolist(), strict=True))

    def update(self, id: Any, reward: Any) -> str:
        """Report the reward of a decision, whenever it comes; the class says what is returned.

        A reward that is not a number, or not possible (0.5 for a binary one), is refused with a ValueError; the
        decision goes on waiting.
        """
        if not isinstance(id, int | np.integer) or isinstance(id, bool) or not 0 <= id < self.made:
            return "unknown"
        id = int(id)
        if id not in self._ledger.waiting:
            return self._ledger.fate(id)
        value = jnp.asarray(finite_reward(reward), self._state.conditioning_ratio.dtype)
        arm, x = self._ledger.waiting[id]
        if arm not in self.arms:
            self._pass()
            return self._ledger.settle(id, "removed")
        at = jnp.asarray(self.arms.index(arm), jnp.int32)
        state, ok = kernels.learn(self.method, self._roomy(), x, at, value, shared=self.shared)
        if not ok:
            raise ValueError(
                f"update({id}, {reward!r}): the method cannot take this reward; report one that its likelihood allows."
            )
        self._state = state
        return self._ledger.settle(id, "learned")

    def wait(self) -> None:
        """Let one tick of time pass without a decision; a method that remembers data must have seen a context."""
        if not self._furnished:
            raise ValueError(f"wait: {self.method.name} remembers data and has seen no context yet; pull first.")
        self._pass()

    def add(self, arm: Any) -> None:
        """Add an arm that nothing is known of. A shared model must already have an output for it."""
        check_arm(arm, self.arms)
        if not self.shared:
            slots = self._state.hypotheses.log_weight.shape[-1]
            fresh = grown(self.method, self._fresh, slots)
            self._state = jax.tree.map(lambda old, new: jnp.concatenate([old, new[None]]), self._state, fresh)
        self.arms.append(arm)

    def remove(self, arm: Any) -> None:
        """Remove an arm; what it had learned is forgotten, and rewards that come later are told as "removed"."""
        if arm not in self.arms:
            raise ValueError(f"remove({arm!r}): no such arm. {checks.nearest(str(arm), map(str, self.arms))}")
        if self.shared or len(self.arms) == 1:
            why = "the last arm" if len(self.arms) == 1 else "one output of a shared model"
            raise ValueError(f"remove({arm!r}): it is {why}, which cannot go; build another Bandit without it.")
        at = self.arms.index(arm)
        self._state = jax.tree.map(lambda leaf: jnp.concatenate([leaf[:at], leaf[at + 1 :]]), self._state)
        self.arms.remove(arm)
        self._ledger.forsake(arm)

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Everything the bandit knows, as named numpy arrays and as plain data that JSON can hold.

        >>> arrays, plain = Bandit(["a", "b"]).state()
        >>> plain["arms"], plain["made"]
        (['a', 'b'], 0)
        """
        arrays = kernels.named("state", self._state) | kernels.named("fresh", self._fresh)
        for at, (_, x) in enumerate(self._ledger.waiting.values()):
            if x is not None:
                arrays[f"context[{at}]"] = np.asarray(x)
        plain = {
            "arms": list(self.arms),
            "made": self.made,
            "shared": self.shared,
            "method": self.method.name,
            "shape": None if self._shape is None else list(self._shape),
            "dtype": self._dtype,
            **self._ledger.plain(),
        }
        return arrays, plain

    @classmethod
    def from_state(
        cls, arrays: dict[str, np.ndarray], plain: dict[str, Any], method: Any = None, policy: Any = None, **start: Any
    ) -> "Bandit":
        """Build the bandit that `state` told of, from the same method, policy and start; it goes on bit for bit.

        >>> Bandit.from_state(*Bandit(["a", "b"]).state()).arms
        ['a', 'b']
        """
        bandit = cls(plain["arms"], method, policy, shared=plain["shared"], pending=plain["limit"], **start)
        bandit._restore(arrays, plain)
        return bandit

    def _restore(self, arrays: dict[str, np.ndarray], plain: dict[str, Any]) -> None:
        if plain["method"] != self.method.name:
            raise ValueError(
                f"from_state: the state is of {plain['method']} but method=... is {self.method.name}; give the method "
                "that made it."
            )
        self.resemble(plain)
        self._state = kernels.unnamed("state", arrays, self._state)
        self._fresh = kernels.unnamed("fresh", arrays, self._fresh)
        contexts = [arrays.get(f"context[{at}]") for at in range(len(plain["waiting"]))]
        self._recall(plain, [None if x is None else jnp.asarray(x) for x in contexts])

    def resemble(self, plain: dict[str, Any]) -> None:
        """Take the form of a stored bandit: a method that remembers data has room for contexts such as it had."""
        if plain["made"]:
            self._furnish(None if plain["shape"] is None else jnp.zeros(plain["shape"], plain["dtype"] or None))

    def _recall(self, plain: dict[str, Any], contexts: list[Any]) -> None:
        """Take up the decisions that wait, and what became of others."""
        self.made = int(plain["made"])
        self._shape = None if plain["shape"] is None else tuple(plain["shape"])
        self._dtype = plain.get("dtype", "")
        self._ledger.recall(plain, contexts)

    def _context(self, context: Any) -> Any:
        (x,) = boundary.arrays(context=context)
        x = None if x is None else jnp.asarray(x)
        if x is not None:
            checks.finite("pull(context=...)", x, flags=True)
            if isinstance(self.method.model.predictor, Direct):
                raise ValueError(
                    f"pull(context=...): {self.method.name} looks at no context; leave it out, or give a method with "
                    "features, such as usual('binary', 3)."
                )
        shape = None if x is None else x.shape
        if self.made and shape != self._shape:
            before = "there was none before" if self._shape is None else f"those before had {self._shape}"
            raise ValueError(f"pull: the context has shape {shape} but {before}; give the same features.")
        check_outputs("pull", self.method, self._state, x, len(self.arms), shared=self.shared)
        return x

    def _furnish(self, x: Any) -> None:
        """Make room for contexts like x, where the method remembers data and has none yet."""
        give = lambda state: furnish(self.method, state, x, arms=len(self.arms) if self.shared else 1)  # noqa: E731
        if not self._furnished:
            self._state, self._fresh, self._furnished = give(self._state), give(self._fresh), True

    def _pass(self) -> None:
        x = None if self._shape is None else jnp.zeros(self._shape, self._dtype)
        self._state = kernels.age(self.method, self._roomy(), x, shared=self.shared)

    def _roomy(self) -> State:
        """The state with room for one more tick, where all hypotheses are kept."""
        if self.method.auxiliary.slots_needed(0) is None:
            return self._state
        wanted = self.method.auxiliary.slots_needed(int(np.max(self._state.t - self._state.began)))
        if self.shared or wanted <= self._state.hypotheses.log_weight.shape[-1]:
            return grown(self.method, self._state, wanted) if self.shared else self._state
        return jax.vmap(lambda state: grown(self.method, state, wanted))(self._state)
