"""Absurd readings in a row: errors, or a level that moved; and a level that came back, as errors do at last.

A few may be errors: they are left out until more have come than are spared, and then they are believed, all of them, as
a level that moved. Where a level has moved so of late the second is believed. What the series would have been without
it goes on beside it for `LASTS` steps. If a reading comes back to that, what was believed is forgotten, so that no row
looks back at it; unless that has happened within `LASTS` steps, as what comes and goes is a pattern to be learned.
"""

import math
from collections.abc import Mapping

import numpy as np

from filtax.streams.gate import reach, simplest

__all__ = ["LASTS", "Episode"]

LASTS = 200  # steps: as long as the scale remembers


class Episode:
    """What is doubted and what was believed of late, beside the values of a grid.

    Attributes:
        count: Absurd readings in a row.
        other: What the series would have been without what was believed; None where nothing was.

    >>> episode, values = Episode(Episode.none(4), spared=2), [5.0, 5.0, 5.0, 5.0]
    >>> [episode.leaves(3, reading, True) for reading in (900.0, 901.0, 902.0)]
    [True, True, False]
    """

    def __init__(self, state: Mapping[str, np.ndarray], spared: int) -> None:
        self.spared = spared
        self.raw, other = state["raw"].tolist(), state["other"].tolist()
        self.other: list[float] | None = other if any(value == value for value in other) else None
        size = len(self.raw)
        first, start, self.count, self.moved, self.rest, *self.calm = state["episode"].tolist()
        self.first, self.start = int(size - first), int(size - start)  # places on the grid

    @staticmethod
    def none(memory: int) -> dict[str, np.ndarray]:
        """Nothing doubted."""
        empty = np.full(memory, np.nan)
        return {"raw": empty, "other": empty, "episode": np.array([0.0, 0.0, 0.0, LASTS + 1, LASTS + 1, *[0.0] * 4])}

    def arrays(self, memory: int) -> dict[str, np.ndarray]:
        """All of it, for a checkpoint."""
        size = len(self.raw)
        backs = [size - self.first, size - self.start]
        other = np.full(memory, np.nan) if self.other is None else np.array(self.other[-memory:])
        episode = np.array([*backs, self.count, self.moved, self.rest, *self.calm], np.float64)
        return {"raw": np.array(self.raw[-memory:]), "other": other, "episode": episode}

    def pass_by(self, at: int, seasons: list[int]) -> None:
        """One more step."""
        self.raw.append(np.nan)
        self.moved, self.rest = min(self.moved + 1.0, LASTS + 1.0), min(self.rest + 1.0, LASTS + 1.0)
        if self.other is not None:
            self.other.append(simplest(self.other, at, 1, seasons))
            self.other = self.other if at - self.start <= LASTS else None

    def leaves(self, to: int, reading: float, absurd: bool) -> bool:
        """Whether a reading is left out; one that is finite is remembered."""
        finite = math.isfinite(reading)
        if finite:
            self.raw[to] = reading
        if not absurd:
            self.count = 0.0 if finite else self.count
            return not finite
        if self.count == 0.0:
            self.first = to
        left = not finite or self.count < (1 if self.moved <= LASTS else self.spared)
        self.count += 1.0
        return left

    @property
    def rank(self) -> float:
        """The how manyth absurd reading in a row the last one was; behind one that was believed none is the first."""
        return self.count + float(self.other is not None)

    def believe(self, values: list[float], calm: list[float]) -> int:
        """Take what was left out for a level; the first step that is to be learned anew."""
        if self.other is None:
            self.other, self.start, self.calm = values.copy(), self.first, calm
        self.moved, self.count = 0.0, 0.0
        return self.first

    def is_back(self, to: int, reading: float) -> bool:
        """Whether a reading is what was expected without what was believed."""
        return self.other is not None and abs(reading - self.other[to]) <= reach(self.calm[:2])

    def end(self, track: list[list[float]], near: list[float]) -> list[float]:
        """Forget what was believed, in the track of a grid; the size of errors."""
        other, self.other, self.count = self.other, None, 0.0
        assert other is not None
        if self.rest <= LASTS:
            return near
        values, scales, counts = track
        values[:] = other
        for at in range(max(self.start, 0), len(values)):
            scales[at], counts[at] = self.calm[2:]
        self.moved, self.rest = LASTS + 1.0, 0.0
        return self.calm[:2]
