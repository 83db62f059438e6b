"""The streams of a fleet: `Learners` keep their memories in pools, `Segmenters` ask one kernel together.

Both have the same verbs: `learn` takes one event of each of some streams, `member` is the estimator of one, `drop`
takes one out, and `targets` and `asked` refuse what such an estimator cannot do. What an event brings is checked for
all streams of a round before any of them learns.
"""

import copy
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from filtax.estimators.engine import engine
from filtax.estimators.memory import TOLD
from filtax.estimators.reading import together
from filtax.estimators.segmenter import Segmenter
from filtax.estimators.stream import Learner

__all__ = ["Learners", "Segmenters", "crew"]

Event = tuple[Hashable, Any, Any]  # key, x, y


def crew(estimator: Any) -> "Learners | Segmenters":
    """No streams yet, of an estimator.

    >>> len(crew(Segmenter()).members)
    0
    """
    if not isinstance(estimator, Learner | Segmenter):
        given = type(estimator).__name__
        raise ValueError(f"Fleet(estimator=...) must be a Regressor, Classifier or Segmenter, got {given}.")
    own: Any = estimator.clone()  # what becomes of the one that was given is its owner's business
    return Learners(own) if isinstance(own, Learner) else Segmenters(own)


class Segmenters:
    """Streams of readings: each holds what it knows, and those of a round ask what their readings tell together.

    >>> streams = Segmenters(Segmenter())
    >>> streams.learn([("a", 1.0, None), ("b", {"volts": 2.0, "amperes": 3.0}, None)])
    >>> streams.member("b").t_
    1
    """

    def __init__(self, estimator: Segmenter):
        self.estimator = estimator
        self.members: dict[Hashable, Any] = {}

    def learn(self, events: list[Event]) -> None:
        """One reading of each of some streams."""
        known = self.members
        met: dict[Hashable, Any] = {key: known[key] if key in known else self.estimator.clone() for key, *_ in events}
        courses = [met[key]._course(x, y) for key, x, y in events]
        self.members |= met
        together(courses)

    def member(self, key: Hashable) -> Any:
        """The estimator of one stream: a copy."""
        return self.members[key].clone(include_attributes=True)

    def drop(self, key: Hashable) -> None:
        """Forget one stream."""
        del self.members[key]

    def targets(self, y: Sequence | None, events: int) -> list:
        """A target of each event: none is needed."""
        return [None] * events if y is None else list(y)

    def asked(self, verb: str, x: Any, id: Hashable = None) -> None:
        """Refuse a question that has no answer."""
        if id is not None:
            raise ValueError(f"Fleet.{verb}(id={id!r:.40}): a Segmenter waits for no label; leave id out.")


class Learners:
    """Streams of a Regressor or Classifier. Those of one size share a pool; one that grows moves to another.

    >>> from filtax.estimators import Regressor
    >>> streams = Learners(Regressor("LG+C-Static", capacity=3))
    >>> streams.learn([("a", {"x": 1.0}, 2.0), ("b", {"x": 1.0}, 3.0)])
    >>> list(streams.pools)
    [(3, 0)]
    """

    def __init__(self, estimator: Learner):
        self.estimator = estimator
        self.members: dict[Hashable, Any] = {}
        self.pools: dict[tuple[int, int], _Pool] = {}

    def learn(self, events: list[Event]) -> None:
        """One event of each of some streams."""
        rows = self._checked(events)
        waiting: dict[tuple[int, int], list[tuple[Hashable, np.ndarray]]] = {}
        young: list[tuple[Hashable, np.ndarray]] = []
        for key, member, row, target in rows:
            self._place(key, member)
            given = member._extended(row[None], target)
            waiting.setdefault(member._size, []).append((key, given[0]))
            if member._at_once(given):
                young.append((key, given))
        for size, found in waiting.items():
            self.pools[size].learn(found)
        for key, given in young:
            member, pool = self.members[key], self.pools[self.members[key]._size]
            memory = pool.get(key)
            pool.set(key, member._looked_back(given, memory, memory[None, -len(TOLD) :]))

    def member(self, key: Hashable) -> Any:
        """The estimator of one stream: a copy."""
        member = self.members[key]
        twin: Any = member.clone(include_attributes=True)
        twin._vector = self.pools[member._size].get(key)
        return twin

    def drop(self, key: Hashable) -> None:
        """Forget one stream."""
        self.pools[self.members.pop(key)._size].remove(key)

    def targets(self, y: Sequence | None, events: int) -> list:
        """A target of each event."""
        if y is None:
            own = type(self.estimator).__name__
            raise ValueError(f"Fleet: a {own} learns from y; give a target with each x, None where it is missing.")
        return list(y)

    def asked(self, verb: str, x: Any, id: Hashable = None) -> None:
        """Refuse a question that has no answer."""
        own = type(self.estimator).__name__
        if id is not None:
            raise ValueError(
                f"Fleet.{verb}(id={id!r:.40}): a fleet remembers no x, so no id is taken; learn x and y "
                f"together when y is there, or keep a {own} of one's own for late labels."
            )
        if x is None:
            raise ValueError(f"Fleet.{verb}: a {own} forecasts from features; give x as {{name: value}}.")

    def put(self, key: Hashable, member: Any, memory: np.ndarray) -> None:
        """Let a stream be one of these."""
        if member._size not in self.pools:
            self.pools[member._size] = _Pool(engine(member.method, float(member.prior), *member._size))
        self.pools[member._size].put(key, memory)
        self.members[key] = member

    def _checked(self, events: list[Event]) -> list[tuple[Hashable, Any, np.ndarray, np.ndarray]]:
        """Each event as numbers. Names and classes that are new are noted; if one event is refused, none was."""
        rows, noted = [], []
        try:
            for key, x, y in events:
                member = self._met(key)
                noted.append((member, _notes(member)))
                rows.append((key, member, member._table.row(x), member._targets([y])))
        except BaseException:
            for member, before in noted:
                vars(member).update(before)
            raise
        return rows

    def _met(self, key: Hashable) -> Any:
        if key in self.members:
            return self.members[key]
        member: Any = self.estimator.clone()
        member._begin()
        return member

    def _place(self, key: Hashable, member: Any) -> None:
        """Put a stream where its size belongs."""
        before = member._size
        if before in self.pools and (member._table.room, member._heads()) == before:
            return
        if before in self.pools:
            member._vector = self.pools[before].get(key)
            self.pools[before].remove(key)
        member._make_room()
        self.put(key, member, vars(member).pop("_vector"))


def _notes(member: Any) -> dict[str, Any]:
    """Names and classes that a member knows, as they are now."""
    table = copy.copy(member._table)
    table.slot = dict(table.slot)
    return {"_table": table, **({"_labels": list(member._labels)} if "_labels" in vars(member) else {})}


class _Pool:
    """Memories of one size: a matrix, and which row is whose."""

    def __init__(self, kernels: Any):
        self.kernels = kernels
        self.matrix = np.empty((8, kernels.fresh.size))
        self.row: dict[Hashable, int] = {}
        self.free = list(range(8))

    def put(self, key: Hashable, vector: np.ndarray) -> None:
        if not self.free:
            rows = len(self.matrix)
            self.matrix = np.concatenate([self.matrix, np.empty_like(self.matrix)])
            self.free = list(range(rows, 2 * rows))
        self.row[key] = self.free.pop()
        self.set(key, vector)

    def set(self, key: Hashable, vector: np.ndarray) -> None:
        self.matrix[self.row[key]] = vector

    def get(self, key: Hashable) -> np.ndarray:
        return self.matrix[self.row[key]].copy()

    def remove(self, key: Hashable) -> None:
        self.free.append(self.row.pop(key))

    def learn(self, events: list[tuple[Hashable, np.ndarray]]) -> None:
        """One row for each of some streams."""
        at = [self.row[key] for key, _ in events]
        self.matrix[at] = self.kernels.learn_each(self.matrix[at], np.stack([row for _, row in events]))
