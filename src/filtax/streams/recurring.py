"""Values that keep coming back: of a target that takes few of them, such as on and off, a rare one is no error.

Where most readings are the same as the one before, the usual error is all but nothing, and each that differs is far
off by it. So the latest values are counted, in a table of `ROOM` with forgetting (Misra and Gries 1982: a value that
finds no room takes one from all others, so that what is measured leaves nothing in it). A reading is usual if nearly
all of the latest ones are in the table, and its value has come at least twice before, apart from each other. One that
is further from all others than these are apart, by far, is a code for a fault, however often it comes; of two values
neither is.
"""

import math
from collections.abc import Mapping

import numpy as np

__all__ = ["Recurring"]

ROOM = 8  # values
KEPT = 1.0 - 1.0 / 500.0  # of what was counted, at each reading
MOST = 0.9  # share of the readings that few values make up
TWICE = 1.5  # visits, some of them half forgotten
APART = 20.0  # spans of all others


class Recurring:
    """What is counted of one series; a value that stays has come once.

    >>> recurring = Recurring(Recurring.none())
    >>> [recurring.look(value) for value in (0.0, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 9.0)]
    [False, False, False, False, True, True, True, False]
    """

    def __init__(self, state: Mapping[str, np.ndarray]) -> None:
        self.readings, self.last = state["recurred"].tolist()
        rows = state["recurring"].T.tolist()
        self.table = {value: (weight, visits) for value, weight, visits in rows if value == value}

    @staticmethod
    def none() -> dict[str, np.ndarray]:
        """Nothing counted."""
        return {"recurring": np.full((3, ROOM), np.nan), "recurred": np.array([0.0, np.nan])}

    def arrays(self) -> dict[str, np.ndarray]:
        """All of it, for a checkpoint."""
        table = np.full((3, ROOM), np.nan)
        for at, (value, counted) in enumerate(self.table.items()):
            table[:, at] = value, *counted
        return {"recurring": table, "recurred": np.array([self.readings, self.last])}

    def look(self, reading: float) -> bool:
        """Whether a reading is usual by those before it; then it is counted."""
        if not math.isfinite(reading):
            return False
        usual = self._is_usual(reading)
        self.readings = KEPT * self.readings + 1.0
        table = {value: (KEPT * weight, KEPT * visits) for value, (weight, visits) in self.table.items()}
        if reading in table or len(table) < ROOM:
            weight, visits = table.get(reading, (0.0, 0.0))
            table[reading] = weight + 1.0, visits + float(reading != self.last)
        else:
            table = {value: (weight - 1.0, visits) for value, (weight, visits) in table.items() if weight > 1.0}
        self.table, self.last = table, reading
        return usual

    def _is_usual(self, reading: float) -> bool:
        if self.table.get(reading, (0.0, 0.0))[1] < TWICE:
            return False
        if sum(weight for weight, _ in self.table.values()) < MOST * self.readings:
            return False
        others = [value for value, (_, visits) in self.table.items() if value != reading and visits >= TWICE]
        low, high = min(others, default=reading), max(others, default=reading)
        far = APART * (high - low) if len(others) > 1 else math.inf
        return low - far <= reading <= high + far
