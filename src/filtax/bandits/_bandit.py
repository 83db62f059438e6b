"""A bandit for applications: pull an arm, report its reward later, in any order.

Each decision is one time step for all arms. The step passes when the decision ends: by its reward, or, when more
decisions wait than `pending` allows, because it is the oldest and expires. Arms that are not pulled go on ageing.
"""

import hashlib
from collections.abc import Iterable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from filtax import _validation as checks
from filtax import io
from filtax.bandits import step
from filtax.bandits._validation import check_arm, check_outputs, checked_policy, finite_reward
from filtax.methods._parse import method as method_named
from filtax.models import Direct, bernoulli, linear
from filtax.state import State, stores_data

RATE = 0.999  # share of the learned information that one step keeps


def default_method(rewards: str = "binary", features: int = 0, *, rate: float = RATE) -> tuple[Any, dict]:
    """Build a method for separate arms, whose beliefs relax towards their prior (OU), and the arguments of its `init`.

    Args:
        rewards: "binary" (0 or 1), or "number", with a noise of variance 1.
        features: Width of the context; 0 for none. A constant feature is not added.
        rate: Share of the learned information that one step keeps.

    >>> default_method("binary")[0].name
    'Cj+C-OU(rate=0.999)'
    """
    if rewards not in ("binary", "number"):
        raise ValueError(f'default_method(rewards={rewards!r}) must be "binary" or "number".')
    checks.whole("default_method(features=...)", features)
    if rewards == "binary" and not features:
        return method_named(f"Cj+C-OU(rate={rate})", model=bernoulli()), {"mean": 0.5, "cov": 1.0 / 12.0}
    model = linear(likelihood=bernoulli()) if rewards == "binary" else linear(noise=1.0)
    return method_named(f"LG+C-OU(rate={rate})", model=model), {"mean": np.zeros(max(features, 1)), "cov": 1.0}


class Decision(NamedTuple):
    """A decision: the arm, the number to report its reward under, and the probability it was chosen with.

    >>> Decision("a", 0, 0.5).arm
    'a'
    """

    arm: Any
    id: int
    probability: float


class Bandit:
    """Arms, a method that learns their rewards, and a policy that chooses among them.

    Args:
        arms: Names, texts or whole numbers.
        method: From `filtax.method`; by default Beta arms for rewards 0 and 1 that relax towards their prior.
        policy: From this package, or its short name; Thompson sampling by default.
        shared: False: every arm has a belief of its own, and sees the context. True: one belief, of a model with one
            output for each arm.
        pending: How many decisions may wait for their reward.
        start: Where each belief starts, as for `method.init`: `mean` or `params`, `cov` (1 by default) and, for methods
            whose beliefs are drawn, `key`. The default method starts from a uniform belief.

    `update` returns what became of a reward: "learned"; "repeated" if the decision had its reward before; "expired" if
    too many decisions waited and it was the oldest; "removed" if its arm was removed; "forgotten" if it ended too long
    ago; "unknown" if there was no such decision. Only "learned" changes the belief of the arm.

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
        shared: bool = False,
        pending: int = 10_000,
        **start: Any,
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
        default: dict[str, Any] = {"cov": 1.0}
        if method is None:
            method, default = default_method()
            default["mean"] = np.full(len(self.arms), default["mean"]) if shared else default["mean"]
        policy = checked_policy("Bandit", method, "ts" if policy is None else policy)
        self.method, self.policy, self.shared = method, policy, bool(shared)
        self.made = 0
        self._initial: State = method.init(**{**default, **start})
        self._state = self._initial if shared else step.stack([self._initial] * len(self.arms))
        self._limit = int(pending)
        self._waiting: dict[int, tuple[Any, Any]] = {}  # arm, None where it was removed, and context of each decision
        self._fates: dict[int, str] = {}  # what became of the last decisions that ended
        self._shape: tuple[int, ...] | None = None
        self._dtype, self._allocated = "", not stores_data(method)

    @property
    def pending(self) -> int:
        """How many decisions wait for their reward."""
        return len(self._waiting)

    def pull(self, context: Any = None, *, key: Any) -> Decision:
        """Choose an arm.

        Args:
            context: What the model takes as x; None if it takes none.
            key: Random key; the same key, context and history give the same decision.

        Returns:
            The arm, the number under which to report its reward, and the probability it was chosen with.
        """
        x = self._context(context)
        checks.key("pull(key=...)", key)
        self._allocate_memory(x)
        t = jnp.asarray(self.made, jnp.int32)
        arm, probability = step.decide(self.method, self.policy, self._state, x, key, t)
        decision = Decision(self.arms[int(arm)], self.made, float(probability))
        self._shape, self._dtype = (None, "") if x is None else (x.shape, str(x.dtype))
        self._waiting[decision.id] = (decision.arm, x)
        self.made += 1
        while len(self._waiting) > self._limit:
            self._end(next(iter(self._waiting)), "expired")
            self._pass()
        return decision

    def update(self, id: Any, reward: Any) -> str:
        """Report the reward of a decision, at any time; returns one of the words that the class lists.

        A reward that is not a number, or not possible (0.5 for a binary one), is refused with a ValueError; the
        decision goes on waiting.
        """
        if not isinstance(id, int | np.integer) or isinstance(id, bool) or not 0 <= id < self.made:
            return "unknown"
        id = int(id)
        if id not in self._waiting:
            fate = self._fates.get(id, "forgotten")
            return "repeated" if fate == "learned" else fate
        value = jnp.asarray(finite_reward(reward), self._state.conditioning_ratio.dtype)
        arm, x = self._waiting[id]
        if arm not in self.arms:
            self._pass()
            return self._end(id, "removed")
        at = jnp.asarray(self.arms.index(arm), jnp.int32)
        state, ok = _learn(self.method, self._with_slots(), x, at, value)
        if not ok:
            raise ValueError(
                f"update({id}, {reward!r}): the method cannot take this reward; report one that its likelihood allows."
            )
        self._state = state
        return self._end(id, "learned")

    def add(self, arm: Any) -> None:
        """Add an arm, with the initial belief. A shared model must already have an output for it."""
        check_arm(arm, self.arms)
        if not self.shared:
            slots = self._state.hypotheses.log_weight.shape[-1]
            fresh = step.with_all_slots(self.method, self._initial, slots)
            self._state = jax.tree.map(lambda old, new: jnp.concatenate([old, new[None]]), self._state, fresh)
        self.arms.append(arm)

    def remove(self, arm: Any) -> None:
        """Remove an arm and its belief; `update` returns "removed" for its later rewards."""
        if arm not in self.arms:
            raise ValueError(f"remove({arm!r}): no such arm. {checks.nearest(str(arm), map(str, self.arms))}")
        if self.shared or len(self.arms) == 1:
            why = "the last arm" if len(self.arms) == 1 else "one output of a shared model"
            raise ValueError(f"remove({arm!r}): it is {why}, which cannot go; build another Bandit without it.")
        at = self.arms.index(arm)
        self._state = jax.tree.map(lambda leaf: jnp.concatenate([leaf[:at], leaf[at + 1 :]]), self._state)
        self.arms.remove(arm)
        self._waiting = {id: (None if own == arm else own, x) for id, (own, x) in self._waiting.items()}

    def state(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the whole bandit as a pytree of arrays and as plain data that JSON can hold.

        >>> tree, plain = Bandit(["a", "b"]).state()
        >>> list(tree), plain["arms"], plain["made"]
        (['state', 'initial', 'contexts'], ['a', 'b'], 0)
        """
        contexts = [x for _, x in self._waiting.values()]
        plain = {
            "arms": list(self.arms),
            "made": self.made,
            "shared": self.shared,
            "slots": self._state.hypotheses.log_weight.shape[-1],
            "shape": None if self._shape is None else list(self._shape),
            "dtype": self._dtype,
            "limit": self._limit,
            "waiting": [[id, arm, None if x is None else str(x.dtype)] for id, (arm, x) in self._waiting.items()],
            "fates": [[id, fate] for id, fate in self._fates.items()],
            "made by": _fingerprints(self.method, self.policy),
        }
        return {"state": self._state, "initial": self._initial, "contexts": contexts}, plain

    @classmethod
    def from_state(
        cls, tree: dict[str, Any], plain: dict[str, Any], method: Any = None, policy: Any = None, **start: Any
    ) -> "Bandit":
        """Rebuild a bandit from its `state`, bit for bit, with the method, the policy and the start that it had.

        >>> Bandit.from_state(*Bandit(["a", "b"]).state()).arms
        ['a', 'b']
        """
        bandit = cls._like(plain, method, policy, **start)
        blank = bandit.state()[0]
        if jax.tree.structure(tree) != jax.tree.structure(blank) or [leaf.shape for leaf in jax.tree.leaves(tree)] != [
            leaf.shape for leaf in jax.tree.leaves(blank)
        ]:
            raise ValueError("its beliefs have other shapes; give the mean and the covariance that they started from.")
        bandit._state, bandit._initial = tree["state"], tree["initial"]
        waiting = zip(plain["waiting"], tree["contexts"], strict=True)
        bandit._waiting = {id: (arm, x) for (id, arm, _), x in waiting}
        return bandit

    @classmethod
    def _like(cls, plain: dict[str, Any], method: Any, policy: Any, **start: Any) -> "Bandit":
        """A bandit with the plain data of another one and arrays of the same shapes, but not their numbers."""
        bandit = cls(plain["arms"], method, policy, shared=plain["shared"], pending=plain["limit"], **start)
        for part, own in _fingerprints(bandit.method, bandit.policy).items():
            if plain["made by"][part] != own:
                raise ValueError(
                    f"it was saved with the {part} {plain['made by'][part]}, not {own}; give the same one."
                )
        bandit.made, bandit._dtype = int(plain["made"]), plain["dtype"]
        bandit._shape = None if plain["shape"] is None else tuple(plain["shape"])
        if bandit.made:
            bandit._allocate_memory(bandit._any_context())
        bandit._state = step.with_all_slots(bandit.method, bandit._state, plain["slots"])
        for id, arm, dtype in plain["waiting"]:
            bandit._waiting[id] = (arm, None if dtype is None else jnp.zeros(bandit._shape or (), dtype))
        bandit._fates = {int(id): fate for id, fate in plain["fates"]}
        return bandit

    def save(self, folder: Any, *, source: Any = None, held: bool = False) -> int:
        """Write the bandit as the next generation of a folder of checkpoints.

        Args:
            folder: As for `filtax.io.save`.
            source: Position in a source of rewards, as JSON.
            held: Whether the caller holds the folder's lock.

        Returns:
            The number of the generation.

        >>> import tempfile
        >>> bandit = Bandit(["a", "b"])
        >>> decision = bandit.pull(key=jax.random.key(0))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = bandit.save(folder)
        ...     same, _ = Bandit.load(folder)
        >>> same.pending, same.update(decision.id, 1.0)
        (1, 'learned')
        """
        tree, plain = self.state()
        return io.save(folder, tree, note={"kind": "Bandit", "bandit": plain}, source=source, held=held)

    @classmethod
    def load(cls, folder: Any, method: Any = None, policy: Any = None, **start: Any) -> tuple["Bandit", dict]:
        """Read the newest intact generation that `save` wrote.

        A method and a policy are values of the program, not of the file: they are given again, and others than those of
        the saved bandit are refused.

        Args:
            folder: As for `save`.
            method: The method of the bandit, as it was given to it.
            policy: Its policy, likewise.
            start: How its beliefs start, as for `Bandit`.

        Returns:
            The bandit, bit for bit as it was saved, and the manifest with `source`.

        >>> Bandit.load("no/such/folder")
        Traceback (most recent call last):
        filtax.io._errors.Missing: no/such/folder holds no checkpoint; ...
        """

        def like(manifest: dict) -> dict:
            note = manifest["note"]
            if not isinstance(note, dict) or note.get("kind") != "Bandit":
                raise io.Foreign("it holds no bandit")
            try:
                return cls._like(note["bandit"], method, policy, **start).state()[0]
            except ValueError as problem:
                raise io.Foreign(str(problem).rstrip(".")) from None

        tree, manifest = io.load(folder, like)
        return cls.from_state(tree, manifest["note"]["bandit"], method, policy, **start), manifest

    def _context(self, context: Any) -> Any:
        (x,) = checks.arrays(context=context)
        x = None if x is None else jnp.asarray(x)
        if x is not None:
            checks.finite("pull(context=...)", x, flags=True)
            if isinstance(self.method.model.predictor, Direct):
                raise ValueError(
                    f"pull(context=...): {self.method.name} takes no context; leave it out, or give a method with "
                    "features, such as default_method('binary', 3)."
                )
        shape = None if x is None else x.shape
        if self.made and shape != self._shape:
            before = "there was none before" if self._shape is None else f"those before had {self._shape}"
            raise ValueError(f"pull: the context has shape {shape} but {before}; give the same features.")
        check_outputs("pull", self.method, self._state, x, len(self.arms), shared=self.shared)
        return x

    def _allocate_memory(self, x: Any) -> None:
        """Allocate memory for contexts like x, if the method stores data and has seen none yet."""
        if not self._allocated:
            self._state = step.allocate_memory(self.method, self._state, x)
            self._initial = step.allocate_memory(self.method, self._initial, x)
            self._allocated = True

    def _end(self, id: int, fate: str) -> str:
        """Let a decision wait no longer; the oldest fates beyond the limit are forgotten."""
        del self._waiting[id]
        self._fates[id] = fate
        while len(self._fates) > self._limit:
            del self._fates[next(iter(self._fates))]
        return fate

    def _any_context(self) -> Any:
        return None if self._shape is None else jnp.zeros(self._shape, self._dtype)

    def _pass(self) -> None:
        self._state = _age(self.method, self._with_slots(), self._any_context())

    def _with_slots(self) -> State:
        """The state with slots for one more step, where all hypotheses are kept."""
        return step.allocate_slots(self.method, self._state, 1)


_learn = jax.jit(step.learn)
_age = jax.jit(step.age)


def _fingerprints(method: Any, policy: Any) -> dict[str, str]:
    """Identify a method and a policy by their names and by a digest of the numbers inside them."""
    settings = str(jax.tree.structure(policy))  # that of a method has functions, which print their address
    return {
        "method": f"{method.name} ({_digest(method)})",
        "policy": f"{type(policy).__name__} ({_digest(policy, settings)})",
    }


def _digest(tree: Any, settings: str = "") -> str:
    digest = hashlib.sha256(settings.encode())
    for leaf in jax.tree.leaves(tree):
        digest.update(np.asarray(leaf, np.float64).tobytes())
    return digest.hexdigest()[:8]
