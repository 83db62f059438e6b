"""Thousands of streams by key, in one state: one compiled call learns from one event of each.

Events of one batch are taken in rounds: the first of each key, then the second of each that has one, and so on. So
arrivals may be ragged, keys may appear at any time, and a key that rests costs nothing. How the streams of a round
learn together is up to their crew: see `filtax.estimators.crews`.

Axes: B streams in a round. Cost of a round: that of B steps in one call.
"""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from filtax import _validation as checks
from filtax.estimators.crews import crew
from filtax.estimators.features import hashable
from filtax.estimators.stream import records

__all__ = ["Fleet"]


class Fleet:
    """Many streams, each with an estimator of its own: they learn exactly what separate estimators would.

    Args:
        estimator: A `Regressor`, `Classifier` or `Segmenter` that says how; it is not changed.
        capacity: Most keys; a further one is refused, and `drop` makes room.

    >>> from filtax.estimators import Regressor
    >>> fleet = Fleet(Regressor(), capacity=100)
    >>> for t in range(20):
    ...     fleet.learn_many(["a", "b"], [{"t": float(t)}, {"t": float(t)}], [2.0 * t, -3.0 * t])
    >>> round(fleet.predict_one("a", {"t": 20.0})), round(fleet.predict_one("b", {"t": 20.0}))
    (40, -60)

    Streams of readings need no y:

    >>> from filtax.estimators import Segmenter
    >>> fleet = Fleet(Segmenter(keep=20))
    >>> for t in range(60):
    ...     wave = (37 * t % 11) / 5.0
    ...     fleet.learn_many(["still", "moved"], [wave, wave + (9.0 if t >= 40 else 0.0)])
    >>> fleet.member("still").changes_, fleet.member("moved").changes_, fleet.predict_one("moved")
    ([], [40], 1)
    """

    def __init__(self, estimator: Any, capacity: int = 10_000):
        checks.whole("Fleet(capacity=...)", capacity, least=1, hint="It is the most keys to hold.")
        self._crew = crew(estimator)
        self.estimator, self.capacity = self._crew.estimator, capacity
        self._last: dict[Hashable, int] = {}
        self._events = 0

    def __len__(self) -> int:
        return len(self._crew.members)

    def __contains__(self, key: Hashable) -> bool:
        _check(key)
        return key in self._crew.members

    def keys(self) -> list[Hashable]:
        """The keys that were met."""
        return list(self._crew.members)

    def learn_one(self, key: Hashable, x: Any, y: Any = ...) -> None:
        """Learn from one event of one stream; y may be left out where it is a stream of readings."""
        self.learn_many([key], [x], None if y is ... else [y])

    def learn_many(self, keys: Iterable, X: Any, y: Sequence | None = None) -> None:
        """Learn from events of any streams, each stream's in their order.

        Args:
            keys: Whose event each is.
            X: Of each its features by name, or its reading: a sequence, or a data frame.
            y: Target of each; a `Segmenter` needs none.
        """
        if not isinstance(X, Iterable):
            raise ValueError(f"learn_many: X is {X!r:.40}; give a row for each key, or use learn_one.")
        keys, X = list(keys), records(X) if hasattr(X, "columns") else list(X)
        y = self._crew.targets(y, len(keys))
        if not len(keys) == len(X) == len(y):
            raise ValueError(f"learn_many: {len(keys)} keys, {len(X)} rows and {len(y)} targets must belong together.")
        for key in keys:
            _check(key)
        new = [key for key in dict.fromkeys(keys) if key not in self]
        if len(self) + len(new) > self.capacity:
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
            self._crew.learn([(keys[at], X[at], y[at]) for at in turn])
            for at in turn:
                self._events += 1
                self._last[keys[at]] = self._events

    def predict_one(self, key: Hashable, x: Any = None, **how: Any) -> Any:
        """Forecast for one stream, as its estimator's `predict_one` does; a key that was never met knows nothing."""
        self._crew.asked("predict_one", x, how.get("id"))
        return self.member(key).predict_one(x, **how)

    def predict_proba_one(self, key: Hashable, x: Any = None) -> dict[Any, float]:
        """The probability of each class that one stream has met, or of each segment it may be in.

        >>> from filtax.estimators import Classifier
        >>> fleet = Fleet(Classifier(), capacity=100)
        >>> for t in range(40):
        ...     fleet.learn_many(["a", "b"], [{"t": float(t % 2)}] * 2, ["odd" if t % 2 else "even", "same"])
        >>> fleet.predict_proba_one("a", {"t": 1.0})["odd"] > 0.9, fleet.predict_proba_one("b", {"t": 1.0})
        (True, {'same': 1.0})
        """
        return self._able(key, "predict_proba_one", "Classifier", x)(x)

    def predict_interval_one(self, key: Hashable, x: Any, level: float | None = None) -> tuple[float, float]:
        """The central interval that holds the y of one stream with probability `level`, of a fleet of Regressors.

        >>> from filtax.estimators import Regressor
        >>> fleet = Fleet(Regressor(), capacity=100)
        >>> for t in range(40):
        ...     fleet.learn_many(["a", "b"], [{"t": float(t)}] * 2, [t + 0.5 * (-1) ** t, 9.0 * t])
        >>> low, high = fleet.predict_interval_one("a", {"t": 40.0})
        >>> 39.0 < low < 40.0 < high < 41.0
        True
        """
        return self._able(key, "predict_interval_one", "Regressor", x)(x, level)

    def member(self, key: Hashable) -> Any:
        """The estimator of one stream, as it stands now: a copy, with all the verbs and attributes of its own."""
        return self._crew.member(key) if key in self else self.estimator.clone()

    def idle(self, events: int) -> list[Hashable]:
        """Keys that none of the last `events` events of the fleet was for, the longest resting first."""
        found = [key for key, last in self._last.items() if self._events - last >= events]
        return sorted(found, key=lambda key: self._last[key])

    def drop(self, key: Hashable) -> Any:
        """Take one stream out of the fleet; returns its estimator."""
        if key not in self:
            raise ValueError(f"Fleet.drop({key!r:.40}): there is no such key.")
        member = self.member(key)
        self._crew.drop(key)
        del self._last[key]
        return member

    def _able(self, key: Hashable, verb: str, kind: str, x: Any) -> Any:
        """A verb of the estimator of one stream, which not every kind of estimator has."""
        if not hasattr(self.estimator, verb):
            own = type(self.estimator).__name__
            raise ValueError(f"Fleet.{verb}: these are streams of a {own}; it is a verb of a Fleet({kind}()).")
        self._crew.asked(verb, x)
        return getattr(self.member(key), verb)


def _check(key: Any) -> None:
    """Refuse what would not be found again: a list, or a number that is not equal to itself."""
    if not hashable(key) or key != key:
        raise ValueError(f"Fleet: {key!r:.40} cannot be a key; keys come first, and are texts, numbers or the like.")
