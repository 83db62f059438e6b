"""Thousands of streams by key, in one state: one compiled call learns from one event of each.

Streams of one size share a matrix with a row for each; a stream that needs more heads for its classes moves to the next
size. Events of one batch are taken in rounds: the first of each key, then the second of each that has one, and so on.
So arrivals may be ragged, keys may appear at any time, and a key that rests costs nothing.

Axes: B streams in a round, N numbers in a memory. Cost of a round: that of B steps in one call.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from filtax import checks
from filtax.estimators.engine import engine
from filtax.estimators.memory import TOLD
from filtax.estimators.stream import Learner

__all__ = ["Fleet"]


class Fleet:
    """Many streams, each with an estimator of its own: they learn exactly what separate estimators would.

    Args:
        estimator: A `Regressor` or `Classifier` that says how; it is not changed.
        capacity: Most keys; a further one is refused, and `drop` makes room.

    >>> from filtax.estimators import Regressor
    >>> fleet = Fleet(Regressor(), capacity=100)
    >>> for t in range(20):
    ...     fleet.learn_many(["a", "b"], [{"t": float(t)}, {"t": float(t)}], [2.0 * t, -3.0 * t])
    >>> round(fleet.predict_one("a", {"t": 20.0})), round(fleet.predict_one("b", {"t": 20.0}))
    (40, -60)
    """

    def __init__(self, estimator: Learner, capacity: int = 10_000):
        if not isinstance(estimator, Learner):
            raise ValueError(f"Fleet(estimator=...) must be a Regressor or Classifier, got {type(estimator).__name__}.")
        checks.whole("Fleet(capacity=...)", capacity, least=1, hint="It is the most keys to hold.")
        self.estimator, self.capacity = estimator, capacity
        self._members: dict[Hashable, Learner] = {}
        self._last: dict[Hashable, int] = {}
        self._pools: dict[tuple[int, int], _Pool] = {}
        self._events = 0

    def __len__(self) -> int:
        return len(self._members)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._members

    def keys(self) -> list[Hashable]:
        """The keys that were met."""
        return list(self._members)

    def learn_one(self, key: Hashable, x: Mapping, y: Any) -> None:
        """Learn from one event of one stream."""
        self.learn_many([key], [x], [y])

    def learn_many(self, keys: Iterable[Hashable], X: Sequence[Mapping], y: Sequence) -> None:
        """Learn from events of any streams, each stream's in their order.

        Args:
            keys: Whose event each is.
            X: Features of each, by name.
            y: Target of each.
        """
        keys, X, y = list(keys), list(X), list(y)
        if not len(keys) == len(X) == len(y):
            raise ValueError(f"learn_many: {len(keys)} keys, {len(X)} rows and {len(y)} targets must belong together.")
        new = [key for key in dict.fromkeys(keys) if key not in self._members]
        if len(self._members) + len(new) > self.capacity:
            raise ValueError(
                f"Fleet(capacity={self.capacity}): there is no room for the key {new[-1]!r:.40}; drop(key) those that "
                "idle(events) names, or make a larger fleet."
            )
        rounds: dict[Hashable, int] = {}
        turns: list[list[int]] = []
        for at, key in enumerate(keys):
            turn = rounds[key] = rounds.get(key, -1) + 1
            turns += [[]] if turn == len(turns) else []
            turns[turn].append(at)
        for turn in turns:
            self._round([(keys[at], X[at], y[at]) for at in turn])

    def predict_one(self, key: Hashable, x: Mapping, **how: Any) -> Any:
        """Forecast for one stream, as its estimator's `predict_one` does; a key that was never met knows nothing."""
        if how.get("id") is not None:
            raise ValueError(
                f"Fleet.predict_one(id={how['id']!r:.40}): a fleet remembers no x, so no id is taken; learn x and y "
                f"together when y is there, or keep a {type(self.estimator).__name__} of one's own for late labels."
            )
        return self.member(key).predict_one(x, **how)

    def predict_proba_one(self, key: Hashable, x: Mapping) -> dict[Any, float]:
        """The probability of each class that one stream has met, of a fleet of Classifiers.

        >>> from filtax.estimators import Classifier
        >>> fleet = Fleet(Classifier(), capacity=100)
        >>> for t in range(40):
        ...     fleet.learn_many(["a", "b"], [{"t": float(t % 2)}] * 2, ["odd" if t % 2 else "even", "same"])
        >>> fleet.predict_proba_one("a", {"t": 1.0})["odd"] > 0.9, fleet.predict_proba_one("b", {"t": 1.0})
        (True, {'same': 1.0})
        """
        return self._able(key, "predict_proba_one", "Classifier")(x)

    def predict_interval_one(self, key: Hashable, x: Mapping, level: float | None = None) -> tuple[float, float]:
        """The central interval that holds the y of one stream with probability `level`, of a fleet of Regressors.

        >>> from filtax.estimators import Regressor
        >>> fleet = Fleet(Regressor(), capacity=100)
        >>> for t in range(40):
        ...     fleet.learn_many(["a", "b"], [{"t": float(t)}] * 2, [t + 0.5 * (-1) ** t, 9.0 * t])
        >>> low, high = fleet.predict_interval_one("a", {"t": 40.0})
        >>> 39.0 < low < 40.0 < high < 41.0
        True
        """
        return self._able(key, "predict_interval_one", "Regressor")(x, level)

    def member(self, key: Hashable) -> Any:
        """The estimator of one stream, as it stands now: a copy, with all the verbs and attributes of its own."""
        if key not in self._members:
            return self.estimator.clone()
        member = self._members[key]
        twin: Any = member.clone(include_attributes=True)
        twin._vector = self._pools[member._size].get(key)
        return twin

    def idle(self, events: int) -> list[Hashable]:
        """Keys that none of the last `events` events of the fleet was for, the longest resting first."""
        found = [key for key, last in self._last.items() if self._events - last >= events]
        return sorted(found, key=lambda key: self._last[key])

    def drop(self, key: Hashable) -> Any:
        """Take one stream out of the fleet; returns its estimator."""
        if key not in self._members:
            raise ValueError(f"Fleet.drop({key!r:.40}): there is no such key.")
        member = self.member(key)
        self._pools[member._size].remove(key)
        del self._members[key], self._last[key]
        return member

    def _able(self, key: Hashable, verb: str, kind: str) -> Any:
        """A verb of the estimator of one stream, which not every kind of estimator has."""
        if not hasattr(self.estimator, verb):
            own = type(self.estimator).__name__
            raise ValueError(f"Fleet.{verb}: these are streams of a {own}; it is a verb of a Fleet({kind}()).")
        return getattr(self.member(key), verb)

    def _round(self, events: list[tuple[Hashable, Mapping, Any]]) -> None:
        """One event of each of some streams."""
        waiting: dict[tuple[int, int], list[tuple[Hashable, np.ndarray]]] = {}
        young: list[tuple[Hashable, np.ndarray]] = []
        for key, x, y in events:
            member = self._met(key)
            row, target = member._table.row(x), member._targets([y])
            self._place(key, member)
            given = member._extended(row[None], target)
            waiting.setdefault(member._size, []).append((key, given[0]))
            if member._at_once(given):
                young.append((key, given))
            self._events += 1
            self._last[key] = self._events
        for size, rows in waiting.items():
            self._pools[size].learn(rows)
        for key, given in young:
            member, pool = self._members[key], self._pools[self._members[key]._size]
            memory = pool.get(key)
            pool.set(key, member._looked_back(given, memory, memory[None, -len(TOLD) :]))

    def _met(self, key: Hashable) -> Learner:
        if key not in self._members:
            member: Any = self.estimator.clone()
            member._begin()
            self._members[key] = member
        return self._members[key]

    def _place(self, key: Hashable, member: Any) -> None:
        """Put a stream where its size belongs."""
        before = member._size
        if before in self._pools and (member._table.room, member._heads()) == before:
            return
        if before in self._pools:
            member._vector = self._pools[before].get(key)
            self._pools[before].remove(key)
        member._make_room()
        self._put(key, member, vars(member).pop("_vector"))

    def _put(self, key: Hashable, member: Any, memory: np.ndarray) -> None:
        if member._size not in self._pools:
            self._pools[member._size] = _Pool(engine(member.method, float(member.prior), *member._size))
        self._pools[member._size].put(key, memory)


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
