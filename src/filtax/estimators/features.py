"""Names to slots: features that come and go, numbers and texts, in rows of one length.

A number has a slot of its own. A text is a category: each (name, text) has a slot that is 1 where it is there. What is
absent, None or NaN leaves its slot empty. Slots are handed out as names appear, in the order of their text within one
datum, so that the order of a dict does not matter. All slots are there from the first datum on, so that nothing is
compiled anew when a name appears. When they run out, further names share the last ones by a checksum of their text:
memory stays bounded.
"""

import math
import warnings
import zlib
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from filtax import _validation as checks

__all__ = ["SIZES", "SlotTable", "hashable", "is_missing"]

CATEGORY = math.inf  # how a row marks a category that is there
SHARED = 8  # one slot in so many is shared once the others are taken
SIZES = (31, 63, 127, 255)  # capacities that the first datum chooses from where none is given; the bias is one more
MOST = 10_000  # slots: a belief has the square of it
NARROW = (3, 7, 15)  # those that an array chooses from as well, whose columns stay


def is_missing(value: Any) -> bool:
    """Whether nothing was given: None, NaN, masked, or what pandas writes for it; pandas is not imported for that.

    >>> import pandas as pd
    >>> [is_missing(value) for value in (None, math.nan, np.ma.masked, pd.NA, pd.NaT, 0.0, "")]
    [True, True, True, True, True, False, False]
    """
    if value is None or type(value).__name__ in ("NAType", "NaTType", "MaskedConstant"):
        return True
    return isinstance(value, float) and math.isnan(value)


def hashable(value: Any) -> bool:
    """Whether a value, with all that is in it, can be looked up.

    >>> hashable(("a", 1)), hashable(("a", [1]))
    (True, False)
    """
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _own(capacity: int) -> int:
    """Slots that are handed out to one name each."""
    return capacity - max(1, capacity // SHARED)


def _least(sizes: Sequence[int], names: int) -> int:
    return next((size for size in sizes if names <= _own(size)), sizes[-1])


class SlotTable:
    """Which name lies in which slot.

    Args:
        capacity: Slots in a row. None lets the first datum choose the least of `SIZES` that has a slot for each name.

    >>> table = SlotTable(capacity=7)
    >>> table.row({"load": 2.0, "day": "monday"}).tolist()
    [inf, 2.0, nan, nan, nan, nan, nan]
    >>> table.row({"load": 3.0, "day": "sunday"}, learn=False)[:2].tolist()
    [nan, 3.0]
    """

    def __init__(self, capacity: int | None = None):
        if capacity is not None:
            hint = "It is the number of slots that features may fill; None lets the first datum choose."
            checks.whole("capacity", capacity, least=3, most=MOST, hint=hint)
        self.capacity = capacity
        self.slot: dict[tuple, int] = {}
        self.room = 0  # slots in a row now: none before the first datum, then all
        self._warned = False

    def settle(self, columns: int) -> None:
        """Choose the least capacity with a slot for each of so many columns, where none is given: they stay the same.

        >>> table = SlotTable()
        >>> table.settle(5)
        >>> table.capacity
        7
        """
        if self.capacity is None:
            self.capacity = _least((*NARROW, *SIZES), columns)

    @property
    def own(self) -> int:
        """Slots that are handed out to one name each."""
        return _own(self.capacity or SIZES[0])

    def row(self, x: Any, *, learn: bool = True) -> np.ndarray:
        """One datum as a row of `room` numbers; `learn` lets new names take slots.

        Args:
            x: Names to numbers, texts or None.
            learn: False leaves the table as it is; what is not known is left out.
        """
        if not hasattr(x, "items"):
            raise TypeError(f"x is {x!r:.60}; give a dict of names to values, or use the verbs for arrays.")
        found = [(key, value) for name, value in x.items() for key, value in _entry(name, value)]
        if learn:
            self.admit([key for key, _ in found])
        row = np.full(self.room, np.nan)
        for key, value in found:
            at = self.find(key)
            if at is not None:
                row[at] = value
        return row

    def admit(self, keys: Sequence[tuple]) -> None:
        """Hand out slots to those keys that have none."""
        new = sorted((key for key in keys if key not in self.slot), key=repr)
        if self.capacity is None:
            self.capacity = _least(SIZES, len(new))
        for key in new[: max(0, self.own - len(self.slot))]:
            self.slot[key] = len(self.slot)
        shared = [key for key in new if key not in self.slot]
        self.room = self._wanted(bool(shared)) if self.room else self.capacity
        if shared and not self._warned:
            self._warned = True
            warnings.warn(
                f"capacity={self.capacity}: {self.own} names have a slot of their own; {_told(shared[0])} and all "
                f"further ones share the last {self.capacity - self.own}; give a larger capacity to keep them apart.",
                stacklevel=5,
            )

    def _wanted(self, shared: bool) -> int:
        """Slots in a row; one that was kept when slots doubled with the names (3, 7, 15, ...) goes on doing so."""
        room, capacity = self.room, self.capacity or 0
        while room < capacity and (shared or room < len(self.slot)):
            room = min(2 * room + 1, capacity)
        return room

    def find(self, key: tuple) -> int | None:
        """The slot of a key, its own or a shared one; None for one that was never met."""
        at, capacity = self.slot.get(key), self.capacity
        if at is None and capacity is not None and self.room == capacity and len(self.slot) == self.own:
            return self.own + zlib.crc32(repr(key).encode()) % (capacity - self.own)
        return at

    def columns(self, names: Sequence[Hashable]) -> list[tuple]:
        """Keys of numeric columns."""
        return [("number", name) for name in names]


def _told(key: tuple) -> str:
    """A key as a reader knows it.

    >>> _told(("number", "load")), _told(("category", "day", "monday"))
    ("'load'", "'day' = 'monday'")
    """
    return " = ".join(f"{part!r:.40}" for part in key[1:])


def _entry(name: Hashable, value: Any) -> list[tuple[tuple, float]]:
    """What one feature puts into a row; nothing if it is missing."""
    if type(value) is float:
        return [(("number", name), value)] if math.isfinite(value) else []
    if is_missing(value):
        return []
    if isinstance(value, str):
        return [(("category", name, str(value)), CATEGORY)]
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            f"feature {name!r:.40} is {value!r:.40}; give a number, a text for a category, or None where it is missing."
        ) from None
    return [(("number", name), number)] if math.isfinite(number) else []
