"""Thousands of streams by key, each with an estimator of its own."""

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np

from filtax import _validation as checks
from filtax.estimators import _frames as frames
from filtax.estimators._learner import Learner
from filtax.estimators._parameters import Estimator, one_at_a_time

WIDE = 16  # rows of one key in a table from which on they are learned as a table


class Fleet(Estimator):
    """Many streams, each with an estimator of its own, which is made when its key is first met.

    Programs are compiled once for all keys of the same features. A key costs the memory of its estimator; `idle` says
    which keys rest, and `drop` takes one out.

    Args:
        estimator: A `Regressor`, `Classifier` or `Segmenter` that says how; it is copied.
        capacity: Most keys; a further one is refused.

    >>> from filtax.estimators import Regressor
    >>> fleet = Fleet(Regressor(), capacity=100)
    >>> for t in range(60):
    ...     x = {"t": (t * t % 11) / 2.0}
    ...     fleet.learn_many(["a", "b"], [x, x], [2.0 * x["t"], -3.0 * x["t"]])
    >>> round(fleet.predict_one("a", {"t": 4.0})), round(fleet.predict_one("b", {"t": 4.0}))
    (8, -12)
    """

    def __init__(self, estimator: Any, capacity: Any = 10_000):
        checks.whole("Fleet(capacity=...)", capacity, least=1, hint="It is the most keys to hold.")
        if not isinstance(estimator, Estimator) or isinstance(estimator, Fleet):
            given = type(estimator).__name__
            raise ValueError(f"Fleet(estimator=...) must be a Regressor, Classifier or Segmenter, got {given}.")
        self.estimator, self.capacity = estimator.clone(), capacity
        self._members: dict[Hashable, Any] = {}
        self._last: dict[Hashable, int] = {}  # event of each key
        self._events = 0

    def __len__(self) -> int:
        return len(self._members)

    def __contains__(self, key: Hashable) -> bool:
        return self._checked(key) in self._members

    def keys(self) -> list[Hashable]:
        """The keys that were met."""
        return list(self._members)

    @one_at_a_time
    def learn_one(self, key: Hashable, x: Any, y: Any = None, **how: Any) -> None:
        """Learn from one event of one stream, as `learn_one` of its estimator does."""
        member = self._met(key)
        member.learn_one(x, y, **how)
        self._members[key] = member  # what is refused leaves no key
        self._events += 1
        self._last[key] = self._events

    @one_at_a_time
    def learn_many(self, keys: Iterable, X: Any, y: Any = None) -> None:
        """Learn from events of any streams, each stream's in their order.

        Args:
            keys: Whose event each is.
            X: The rows: a table, an array, or a sequence of dicts (of numbers or dicts for a `Segmenter`).
            y: Target of each; a `Segmenter` needs none.
        """
        if y is None and isinstance(self.estimator, Learner):
            raise ValueError(
                f"learn_many: a {type(self.estimator).__name__} learns from y; give a target with each row."
            )
        keys = [*keys] if isinstance(keys, list | tuple) else list(np.asarray(keys).tolist())
        rows = isinstance(X, list | tuple) and not (isinstance(self.estimator, Learner) and not frames.are_dicts(X))
        table: Any = list(X) if rows else frames.frame_of(X)
        y = [None] * len(keys) if y is None else frames.labels(y, len(keys))
        if not len(keys) == len(table) == len(y):
            raise ValueError(f"learn_many: {len(keys)} keys and {len(table)} rows must belong together.")
        places: dict[Hashable, list[int]] = {}
        for at, key in enumerate(keys):
            places.setdefault(self._checked(key), []).append(at)
        new = [key for key in places if key not in self._members]
        if len(self) + len(new) > self.capacity:
            raise self._full(new[-1])
        for key, at in places.items():
            member = self._met(key)
            self._learn(member, table, at, [y[i] for i in at])
            self._members[key] = member
            self._last[key] = self._events + at[-1] + 1
        self._events += len(keys)

    def predict_one(self, key: Hashable, x: Any = None, **how: Any) -> Any:
        """Forecast for one stream, as `predict_one` of its estimator does."""
        return self._asked(key, how.get("id")).predict_one(x, **how)

    def predict_proba_one(self, key: Hashable, x: Any = None, **how: Any) -> dict[Any, float]:
        """The probability of each class that one stream has met, or of each segment it may be in."""
        return self._asked(key, how.get("id")).predict_proba_one(x, **how)

    def predict_interval_one(self, key: Hashable, x: Any, level: float | None = None) -> tuple[float, float]:
        """The central interval that holds the next y of one stream, of a fleet of Regressors."""
        return self.member(key).predict_interval_one(x, level)

    def member(self, key: Hashable) -> Any:
        """The estimator of one stream, itself and not a copy; one that has learned nothing for a key never met."""
        return self._members[key] if key in self else type(self.estimator)(**self.estimator.get_params())

    def idle(self, events: int) -> list[Hashable]:
        """Keys that none of the last `events` events of the fleet was for, the longest resting first."""
        found = [key for key, last in self._last.items() if self._events - last >= events]
        return sorted(found, key=self._last.__getitem__)

    @one_at_a_time
    def drop(self, key: Hashable) -> Any:
        """Take one stream out of the fleet; returns its estimator."""
        if key not in self:
            raise ValueError(f"Fleet.drop({key!r:.40}): there is no such key.")
        del self._last[key]
        return self._members.pop(key)

    def _met(self, key: Hashable) -> Any:
        """The estimator of a key, a fresh one if the key is new."""
        if key not in self and len(self) >= self.capacity:
            raise self._full(key)
        return self.member(key)

    @one_at_a_time
    def _asked(self, key: Hashable, id: Hashable) -> Any:
        """The estimator of a key; one that is to remember a row stays."""
        member = self.member(key) if id is None else self._met(key)
        if id is not None:
            self._members[key] = member
            self._last.setdefault(key, self._events)
        return member

    def _learn(self, member: Any, table: Any, at: list[int], y: list) -> None:
        part = [table[i] for i in at] if isinstance(table, list) else table.cut(at)
        if isinstance(part, frames.Frame) and isinstance(member, Learner) and len(at) >= WIDE:
            member.learn_many(part, y)
            return
        for x, own in zip(part.records() if isinstance(part, frames.Frame) else part, y, strict=True):
            member.learn_one(x, own)

    def _checked(self, key: Any) -> Hashable:
        """Refuse what would not be found again: a list, or a number that is not equal to itself."""
        try:
            hash(key)
        except TypeError:
            key = float("nan")
        if key != key:
            raise ValueError(
                f"Fleet: {key!r:.40} cannot be a key; keys come first, and are texts, numbers or the like."
            )
        return key

    def _full(self, key: Hashable) -> ValueError:
        return ValueError(
            f"Fleet(capacity={self.capacity}): there is no room for the key {key!r:.40}; drop(key) those that "
            "idle(events) names, or make a larger fleet."
        )
