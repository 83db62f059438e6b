"""A bandit to put to work: pull an arm, hear of its reward later, keep learning.

Each decision is one tick of time for all arms. The tick passes when the decision is settled: by its reward, or, when
more decisions wait than `pending` allows, by giving up the oldest. So late rewards come in any order, and arms that
are not pulled go on ageing.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from filtax import boundary, checks
from filtax.bandits import kernels
from filtax.bandits.policies import policy_named
from filtax.bandits.rounds import stack
from filtax.bandits.usual import usual
from filtax.growth import grown
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
        cov: How wide it starts.
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
        arms: Sequence[Any],
        method: Any = None,
        policy: Any = None,
        *,
        mean: Any = None,
        cov: Any = 1.0,
        params: Any = None,
        shared: bool = False,
        pending: int = 10_000,
        key: Any = None,
    ) -> None:
        checks.whole("Bandit(pending=...)", pending, least=1)
        if isinstance(arms, str):
            raise ValueError(f"Bandit(arms={arms!r:.40}) must be a list of arms, not one text.")
        self.arms: list[Any] = []
        for arm in arms:
            self._check_new(arm)
            self.arms.append(arm)
        if not self.arms:
            raise ValueError("Bandit(arms=[]): there is nothing to choose; give one arm or more.")
        start = {"mean": mean, "cov": cov, "params": params, "key": key}
        if method is None:
            method, usually = usual()
            start = {"params": None, "key": key, **usually} if mean is None else start
        policy = policy_named(policy or "ts") if policy is None or isinstance(policy, str) else policy
        self.method, self.policy, self.shared = method, policy, bool(shared)
        self.limit, self.made = int(pending), 0
        self._fresh: State = method.init(**start)
        self._state = self._fresh if shared else stack([self._fresh] * len(self.arms))
        self._waiting: dict[int, tuple[Any, Any]] = {}
        self._fates: dict[int, str] = {}
        self._shape: tuple[int, ...] | None = None

    @property
    def pending(self) -> int:
        """How many decisions wait for their reward."""
        return len(self._waiting)

    def pull(self, context: Any = None, *, key: Array) -> Decision:
        """Choose an arm.

        Args:
            context: What the model takes as x; None if it takes none.
            key: Random key; the same key, context and history give the same decision.

        Returns:
            The arm, the number under which to report its reward, and the probability it was chosen with.
        """
        x = self._context(context)
        t = jnp.asarray(self.made, jnp.int32)
        arm, probability = kernels.decide(self.method, self.policy, self._state, x, key, t, shared=self.shared)
        decision = Decision(self.arms[int(arm)], self.made, float(probability))
        self._shape = None if x is None else x.shape
        self._waiting[decision.id] = (decision.arm, x)
        self.made += 1
        while len(self._waiting) > self.limit:
            self._settle(next(iter(self._waiting)), "expired")
            self._pass()
        return decision

    def probabilities(self, context: Any = None, *, key: Array) -> dict[Any, float]:
        """The probability of each arm to be chosen now; the key serves those that must be estimated."""
        x = self._context(context)
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
        if id not in self._waiting:
            fate = self._fates.get(id, "forgotten")
            return "repeated" if fate == "learned" else fate
        value = self._reward(reward)
        arm, x = self._waiting[id]
        if arm not in self.arms:
            self._settle(id, "removed")
            self._pass()
            return "removed"
        at = jnp.asarray(self.arms.index(arm), jnp.int32)
        state, ok = kernels.learn(self.method, self._roomy(), x, at, value, shared=self.shared)
        if not ok:
            raise ValueError(
                f"update({id}, {reward!r}): the method cannot take this reward; report one that its likelihood allows."
            )
        self._state = state
        return self._settle(id, "learned")

    def wait(self) -> None:
        """Let one tick of time pass without a decision."""
        self._pass()

    def add(self, arm: Any) -> None:
        """Add an arm that nothing is known of. A shared model must already have an output for it."""
        self._check_new(arm)
        if not self.shared:
            slots = self._state.bank.log_weight.shape[-1]
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

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Everything the bandit knows, as named numpy arrays and as plain data that JSON can hold.

        >>> arrays, plain = Bandit(["a", "b"]).state()
        >>> plain["arms"], plain["made"]
        (['a', 'b'], 0)
        """
        arrays = kernels.named("state", self._state) | kernels.named("fresh", self._fresh)
        waiting = list(self._waiting.items())
        for at, (_, (_, x)) in enumerate(waiting):
            if x is not None:
                arrays[f"context[{at}]"] = np.asarray(x)
        plain = {
            "arms": list(self.arms),
            "made": self.made,
            "limit": self.limit,
            "shared": self.shared,
            "method": self.method.name,
            "shape": None if self._shape is None else list(self._shape),
            "waiting": [[id, arm] for id, (arm, _) in waiting],
            "fates": [[id, fate] for id, fate in self._fates.items()],
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
        self._state = kernels.unnamed("state", arrays, self._state)
        self._fresh = kernels.unnamed("fresh", arrays, self._fresh)
        contexts = [arrays.get(f"context[{at}]") for at in range(len(plain["waiting"]))]
        self._recall(plain, [None if x is None else jnp.asarray(x) for x in contexts])

    def _recall(self, plain: dict[str, Any], contexts: list[Any]) -> None:
        """Take up the decisions that wait, and what became of others."""
        self.made = int(plain["made"])
        self._shape = None if plain["shape"] is None else tuple(plain["shape"])
        self._waiting = {int(id): (arm, x) for (id, arm), x in zip(plain["waiting"], contexts, strict=True)}
        self._fates = {int(id): fate for id, fate in plain["fates"]}

    def _check_new(self, arm: Any) -> None:
        if isinstance(arm, bool) or not isinstance(arm, str | int):
            raise ValueError(f"arm {arm!r:.40} must be a text or a whole number, so that it can be written down.")
        if arm in self.arms:
            raise ValueError(f"arm {arm!r} is there already; give every arm a name of its own.")

    def _context(self, context: Any) -> Any:
        (x,) = boundary.arrays(context=context)
        if x is None:
            return None
        x = jnp.asarray(x)
        checks.finite("pull(context=...)", x)
        if self._shape is not None and x.shape != self._shape:
            raise ValueError(
                f"pull: the context has shape {x.shape} but those before had {self._shape}; give the same features."
            )
        first = jax.tree.map(lambda leaf: leaf if self.shared else leaf[0], self._state.initial)
        model = self.method.model.bind(self._state.layout)
        outputs, wanted = model.outputs(first.mean, x), len(self.arms) if self.shared else 1
        if outputs != wanted:
            raise ValueError(
                f"pull: for a context of shape {x.shape} the model predicts {outputs} rewards, expected {wanted}"
                f"{', one for each arm' if self.shared else ''}; give a context that fits mean=... of the bandit."
            )
        return x

    def _reward(self, reward: Any) -> Array:
        try:
            value = float(reward)
        except (TypeError, ValueError):
            raise ValueError(f"update: the reward must be a number, got {reward!r:.40}.") from None
        if not math.isfinite(value):
            raise ValueError(
                f"update: the reward is {value}; report a finite number. The decision goes on waiting for one."
            )
        return jnp.asarray(value, self._state.strain.dtype)

    def _settle(self, id: int, fate: str) -> str:
        del self._waiting[id]
        self._fates[id] = fate
        while len(self._fates) > self.limit:
            del self._fates[next(iter(self._fates))]
        return fate

    def _pass(self) -> None:
        self._state = kernels.age(self.method, self._roomy(), shared=self.shared)

    def _roomy(self) -> State:
        """The state with room for one more tick, where all hypotheses are kept."""
        if self.method.auxiliary.room(0) is None:
            return self._state
        wanted = self.method.auxiliary.room(int(np.max(self._state.t - self._state.began)))
        if self.shared or wanted <= self._state.bank.log_weight.shape[-1]:
            return grown(self.method, self._state, wanted) if self.shared else self._state
        return jax.vmap(lambda state: grown(self.method, state, wanted))(self._state)
