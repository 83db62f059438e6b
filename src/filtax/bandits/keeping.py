"""Bandits on disk: beliefs and waiting contexts as arrays, arms, decisions and fates as JSON beside them.

A method and a policy are values of the program, not of the file: whoever loads gives them again, and others than those
that were saved are refused, since the bandit would not go on as it did.
"""

import hashlib
from typing import Any

import jax
import numpy as np

from filtax import store
from filtax.bandits.bandit import Bandit
from filtax.bandits.rounds import stack
from filtax.growth import grown

__all__ = ["load", "save"]


def save(folder: Any, bandit: Bandit, *, source: Any = None, held: bool = False) -> int:
    """Write a bandit as the next generation of a folder of checkpoints.

    Args:
        folder: As for `filtax.store.save`.
        bandit: The bandit, with decisions that wait or without.
        source: Position in a source of rewards, as JSON.
        held: Whether the caller holds the folder's lock.

    Returns:
        The number of the generation.

    >>> import tempfile
    >>> bandit = Bandit(["a", "b"])
    >>> decision = bandit.pull(key=jax.random.key(0))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = save(folder, bandit)
    ...     same, _ = load(folder)
    >>> same.pending, same.update(decision.id, 1.0)
    (1, 'learned')
    """
    _, plain = bandit.state()
    contexts = [x for _, x in bandit._ledger.waiting.values() if x is not None]
    note = {
        "kind": "Bandit",
        "bandit": plain,
        "slots": int(bandit._state.hypotheses.log_weight.shape[-1]),
        "contexts": [[str(x.dtype), list(x.shape)] for x in contexts],
        "made by": _makers(bandit),
    }
    tree = {"state": bandit._state, "fresh": bandit._fresh, "contexts": contexts}
    return store.save(folder, tree, note=note, source=source, held=held)


def load(folder: Any, method: Any = None, policy: Any = None, **start: Any) -> tuple[Bandit, dict]:
    """Read the newest sound generation that `save` wrote.

    Args:
        folder: As for `save`.
        method: That of the bandit, as it was given to it.
        policy: The same.
        start: How its beliefs start, as for `Bandit`: `mean` and `cov`, or `params`; they give the shapes.

    Returns:
        The bandit, which goes on bit for bit as the one that was saved, and the manifest with `source`.

    >>> load("no/such/folder")
    Traceback (most recent call last):
    filtax.store.errors.Missing: no/such/folder holds no checkpoint; ...
    """
    built: list[Bandit] = []

    def like(manifest: dict) -> dict:
        bandit, tree = _like(manifest["note"], method, policy, start)
        built.append(bandit)
        return tree

    tree, manifest = store.load(folder, like)
    bandit, plain = built[-1], manifest["note"]["bandit"]
    bandit._state, bandit._fresh = tree["state"], tree["fresh"]
    bandit._recall(plain, tree["contexts"] or [None] * len(plain["waiting"]))
    return bandit, manifest


def _like(note: Any, method: Any, policy: Any, start: dict) -> tuple[Bandit, dict]:
    """A fresh bandit of what the note says, and the tree that its arrays must fit."""
    if not isinstance(note, dict) or note.get("kind") != "Bandit":
        raise store.Foreign("it holds no bandit")
    plain = note["bandit"]
    bandit = Bandit(plain["arms"], method, policy, shared=plain["shared"], pending=plain["limit"], **start)
    for part, now in _makers(bandit).items():
        if note["made by"][part] != now:
            raise store.Foreign(f"it was saved with the {part} {note['made by'][part]}, not {now}; give the same one")
    bandit.resemble(plain)
    roomy = (
        grown(bandit.method, bandit._fresh, note["slots"]) if bandit.method.auxiliary.slots_needed(0) else bandit._fresh
    )
    state = roomy if plain["shared"] else stack([roomy] * len(plain["arms"]))
    contexts = [jax.numpy.zeros(shape, dtype) for dtype, shape in note["contexts"]]
    return bandit, {"state": state, "fresh": bandit._fresh, "contexts": contexts}


def _makers(bandit: Bandit) -> dict[str, str]:
    """What must be the same again: names of method and policy, and the numbers inside of them that no name shows."""
    method, policy = bandit.method, bandit.policy
    settings = str(jax.tree.structure(policy))  # that of a method names functions by where they lie in memory
    return {
        "method": f"{method.name} ({_numbers(method)})",
        "policy": f"{type(policy).__name__} ({_numbers(policy, settings)})",
    }


def _numbers(tree: Any, settings: str = "") -> str:
    leaves = jax.tree.leaves(tree)
    said = hashlib.sha256(settings.encode())
    for leaf in leaves:
        said.update(np.asarray(leaf, np.float64).tobytes())
    return said.hexdigest()[:8]
