"""Decisions that wait for their reward, and what became of others, both bounded; and a bandit as plain arrays."""

import hashlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array


class PendingDecisions:
    """Decisions by their numbers: those that wait, with arm and context, and the fates of the last ones that ended.

    >>> pending = PendingDecisions(limit=1)
    >>> pending.add(0, "a", None)
    >>> pending.end(0, "learned"), pending.fate(0), pending.fate(7)
    ('learned', 'repeated', 'forgotten')
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.waiting: dict[int, tuple[Any, Any]] = {}
        self.fates: dict[int, str] = {}

    def add(self, id: int, arm: Any, x: Any) -> None:
        """Let a decision wait."""
        self.waiting[id] = (arm, x)

    def drop_arm(self, arm: Any) -> None:
        """Remove an arm: its decisions wait on, but for no arm, also if an arm of that name is added later."""
        self.waiting = {id: (None if own == arm else own, x) for id, (own, x) in self.waiting.items()}

    def overdue(self) -> int | None:
        """The oldest decision, if more wait than the limit allows."""
        return next(iter(self.waiting)) if len(self.waiting) > self.limit else None

    def end(self, id: int, fate: str) -> str:
        """Let a decision wait no longer; the oldest fates beyond the limit are forgotten."""
        del self.waiting[id]
        self.fates[id] = fate
        while len(self.fates) > self.limit:
            del self.fates[next(iter(self.fates))]
        return fate

    def fate(self, id: int) -> str:
        """What `Bandit.update` returns for a decision that waits no longer."""
        fate = self.fates.get(id, "forgotten")
        return "repeated" if fate == "learned" else fate

    def plain(self) -> dict[str, Any]:
        """All but the contexts, for JSON."""
        return {
            "limit": self.limit,
            "waiting": [[id, arm] for id, (arm, _) in self.waiting.items()],
            "fates": [[id, fate] for id, fate in self.fates.items()],
        }

    def restore(self, plain: dict[str, Any], contexts: list[Any]) -> None:
        """Take over the output of `plain`, and a context or None for each decision that waits."""
        self.waiting = {int(id): (arm, x) for (id, arm), x in zip(plain["waiting"], contexts, strict=True)}
        self.fates = {int(id): fate for id, fate in plain["fates"]}


def to_arrays(prefix: str, tree: Any) -> dict[str, np.ndarray]:
    """Return the leaves of a pytree as numpy arrays by their paths; a random key as its words.

    >>> to_arrays("state", {"mean": jnp.zeros(1)})
    {"state['mean']": array([0.])}
    """
    paths = jax.tree_util.tree_flatten_with_path(tree)[0]
    arrays = {}
    for path, leaf in paths:
        leaf = jax.random.key_data(leaf) if _is_key(leaf) else leaf
        arrays[f"{prefix}{jax.tree_util.keystr(path)}"] = np.asarray(leaf)
    return arrays


def from_arrays(prefix: str, arrays: dict[str, np.ndarray], like: Any) -> Any:
    """Undo `to_arrays`, for a pytree of the structure of `like`.

    >>> from_arrays("state", {"state['mean']": np.ones(1)}, {"mean": jnp.zeros(1)})
    {'mean': Array([1.], dtype=float64)}
    """
    paths, structure = jax.tree_util.tree_flatten_with_path(like)
    leaves = []
    for path, old in paths:
        array = jnp.asarray(arrays[f"{prefix}{jax.tree_util.keystr(path)}"])
        leaves.append(jax.random.wrap_key_data(array) if _is_key(old) else array)
    return jax.tree.unflatten(structure, leaves)


def _is_key(leaf: Array) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def fingerprints(method: Any, policy: Any) -> dict[str, str]:
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
