"""Data that wait for their label, by id: a bounded number of them, the oldest given up first."""

from collections import OrderedDict
from collections.abc import Hashable, Mapping
from typing import Any

from filtax import _validation as checks

__all__ = ["Pending"]


class Pending:
    """What was asked about and is not known yet.

    Attributes:
        given_up: Data that were given up because too many waited.
        unknown: Labels that came for an id that does not wait: never asked about, given up, or labelled before.

    >>> wait = Pending(most=1)
    >>> wait.put("a", {"x": 1.0})
    >>> wait.put("b", {"x": 2.0})
    >>> wait.take("a"), wait.take("b"), wait.given_up, wait.unknown
    (None, {'x': 2.0}, 1, 1)
    """

    def __init__(self, most: int):
        checks.whole("pending", most, least=0, hint="It is how many data may wait for a label.")
        self.most, self.given_up, self.unknown = most, 0, 0
        self._waiting: OrderedDict[Hashable, dict] = OrderedDict()

    def __len__(self) -> int:
        return len(self._waiting)

    def has(self, id: Hashable) -> bool:
        """Whether a datum waits under an id."""
        return id in self._waiting

    def items(self) -> list[tuple[Hashable, dict]]:
        """Ids and data that wait, the oldest first."""
        return list(self._waiting.items())

    def put(self, id: Hashable, x: Mapping) -> None:
        """Let a datum wait; one that waits under the same id already is replaced."""
        self._waiting.pop(id, None)
        self._waiting[id] = dict(x)
        while len(self._waiting) > self.most:
            self._waiting.popitem(last=False)
            self.given_up += 1

    def take(self, id: Hashable) -> Any:
        """The datum that waited under an id, which then waits no longer; None if there is none, which is counted."""
        found = self._waiting.pop(id, None)
        self.unknown += found is None
        return found
