"""Names to slots: features that come and go, numbers and texts, in rows of one length.

A number has a slot of its own. A text is a category: each (name, text) has a slot that is 1 where it is there. What is
absent, None or NaN leaves its slot empty. Slots are handed out as names appear, in the order of their text within one
datum, so that the order of a dict does not matter. When they run out, further names share the last ones by a checksum
of their text: memory stays bounded.
"""

import math
import zlib
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from filtax import checks

__all__ = ["SlotTable", "is_missing", "room_for"]

CATEGORY = math.inf  # how a row marks a category that is there
SHARED = 8  # one slot in so many is shared once the others are taken


def is_missing(value: Any) -> bool:
    """Whether nothing was given: None, NaN, or what pandas writes for it; pandas is not imported for that.

    >>> import pandas as pd
    >>> [is_missing(value) for value in (None, math.nan, pd.NA, pd.NaT, 0.0, "")]
    [True, True, True, True, False, False]
    """
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float) and math.isnan(value)


def room_for(names: int, capacity: int) -> int:
    """Slots to make room for: 3, 7, 15, ..., so that few sizes are ever compiled.

    >>> [room_for(names, 255) for names in (0, 3, 4, 30)]
    [3, 3, 7, 31]
    """
    slots = 3
    while slots < names:
        slots = 2 * slots + 1
    return min(slots, capacity)


class SlotTable:
    """Which name lies in which slot.

    >>> table = SlotTable(capacity=7)
    >>> table.row({"load": 2.0, "day": "monday"})[:2].tolist()
    [inf, 2.0]
    >>> table.row({"load": 3.0, "day": "sunday"}, learn=False)[:2].tolist()
    [nan, 3.0]
    """

    def __init__(self, capacity: int = 255):
        checks.whole("capacity", capacity, least=3, hint="It is the most slots that features may fill.")
        self.capacity = capacity
        self.slot: dict[tuple, int] = {}
        self.room = 0  # slots in a row now

    @property
    def own(self) -> int:
        """Slots that are handed out to one name each."""
        return self.capacity - max(1, self.capacity // SHARED)

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
        for key in new[: max(0, self.own - len(self.slot))]:
            self.slot[key] = len(self.slot)
        shared = len(self.slot) == self.own and any(key not in self.slot for key in new)
        wanted = self.capacity if shared else room_for(len(self.slot), self.capacity)
        self.room = max(self.room, wanted)

    def find(self, key: tuple) -> int | None:
        """The slot of a key, its own or a shared one; None for one that was never met."""
        at = self.slot.get(key)
        if at is None and self.room == self.capacity and len(self.slot) == self.own:
            return self.own + zlib.crc32(repr(key).encode()) % (self.capacity - self.own)
        return at

    def columns(self, names: Sequence[Hashable]) -> list[tuple]:
        """Keys of numeric columns."""
        return [("number", name) for name in names]


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
