"""A series on a grid of steps, as far back as is needed: filled readings, and how far off the simplest forecast was."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

__all__ = ["Cells", "Grid"]

FORGET = 0.995  # of the scale, at each reading
GATE = 20.0  # scales: a reading further off is absurd
CAP = 5.0  # scales: what a single reading adds to the scale at most
ENOUGH = 12  # readings before any is called absurd


class Cells(NamedTuple):
    """Rows on the grid: `place` of each row in the columns of `track` (filled value, scale, readings behind it).

    >>> Cells(np.array([[1.0, 2.0, 3.0]] * 3), np.array([2])).value(1)
    array([2.])
    """

    track: np.ndarray
    place: np.ndarray

    def value(self, back: int) -> np.ndarray:
        """Filled reading so many steps before each row; NaN before the first."""
        return self.track[0, self.place - back]


@dataclass(frozen=True)
class Grid:
    """Keep `memory` steps of a series whose forecasts look `horizon` steps ahead.

    >>> grid = Grid(1, (), 4)
    >>> state, cells = grid.extend(grid.init(), np.array([7, 8, 10]), np.array([1.0, 2.0, 4.0]))
    >>> cells.value(1)
    array([nan, 1., 2.])
    """

    horizon: int
    cycles: tuple[int, ...]
    memory: int

    def init(self) -> dict[str, np.ndarray]:
        """Nothing known: values NaN, no scale; `cell` is the last step on the grid, `doubt` whether it was absurd."""
        track = np.concatenate([np.full((1, self.memory), np.nan), np.zeros((2, self.memory))])
        return {"track": track, "near": np.zeros(2), "cell": np.array(-(2**62)), "doubt": np.array(False)}

    def extend(
        self, state: Mapping[str, np.ndarray], numbers: np.ndarray, y: np.ndarray
    ) -> tuple[dict[str, np.ndarray], Cells]:
        """Put readings on the grid, in order; steps in between are filled."""
        steps = np.diff(numbers, prepend=state["cell"]) if len(numbers) else np.empty(0, np.int64)
        steps = np.clip(steps, 0, self.memory)
        place = self.memory - 1 + np.cumsum(steps)
        track = np.full((3, self.memory + int(steps.sum())), np.nan)
        track[:, : self.memory] = state["track"]
        near, doubt = state["near"].tolist(), bool(state["doubt"])
        at = self.memory - 1
        for to, reading in zip(place.tolist(), y.tolist(), strict=True):
            while at < to:
                at += 1
                track[0, at], track[1:, at] = self._next(track[0], at, 1), track[1:, at - 1]
            near, doubt = self._put(track, at, reading, near, doubt)
        last = state["cell"] if not len(numbers) else np.maximum(numbers[-1], state["cell"])
        new = {"track": track[:, at + 1 - self.memory : at + 1].copy(), "near": np.array(near)}
        return {**new, "cell": np.array(last), "doubt": np.array(doubt)}, Cells(track, place)

    def outlook(self, cells: Cells) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The simplest forecast of each row, its scale, and how many readings the scale is made of."""
        last = np.nan_to_num(cells.value(self.horizon), nan=0.0)
        change = np.full(len(last), np.nan)
        for season in self._seasons(self.horizon):
            told = cells.value(season) - cells.value(season + self.horizon)
            change = np.where(np.isnan(change), told, change)
        base = last + np.nan_to_num(change, nan=0.0)
        scale, count = cells.track[1:, cells.place - self.horizon]
        return base, np.where(scale > 0.0, np.maximum(scale, 1e-9 * np.abs(base)), 1.0), count

    def _put(
        self, track: np.ndarray, at: int, reading: float, near: list[float], doubt: bool
    ) -> tuple[list[float], bool]:
        """Judge a reading by its nearest forecast; if it is believed, let it stand and learn the scales from it."""
        if not np.isfinite(reading):
            return near, doubt
        off = abs(reading - track[0, at])
        if near[1] >= ENOUGH and off > GATE * near[0] and not doubt:
            return near, True
        ahead = self._next(track[0], at, self.horizon)
        track[0, at] = reading
        if np.isfinite(off):
            near = _follow(off, *near)
        if np.isfinite(ahead):
            track[1:, at] = _follow(abs(reading - ahead), *track[1:, at].tolist())
        return near, False

    def _next(self, values: np.ndarray, at: int, horizon: int) -> float:
        """The simplest forecast of one step, from readings `horizon` before it and older; NaN if there are none."""
        last = values[at - horizon]
        for season in self._seasons(horizon):
            change = values[at - season] - values[at - season - horizon]
            if change == change:
                return last + change
        return last

    def _seasons(self, horizon: int) -> list[int]:
        """Steps back to the repetitions whose change is known in time, the longest cycle first."""
        firsts = [cycle * -(-horizon // cycle) for cycle in reversed(self.cycles)]
        return [first for first in firsts if first > horizon]


def _follow(off: float, scale: float, count: float) -> list[float]:
    """Mean size of the errors, of all at first and then of the latest; one counts for a few scales at most."""
    count += 1.0
    rate = max(1.0 - FORGET, 1.0 / count)
    capped = min(off, CAP * scale) if count > ENOUGH and scale > 0.0 else off
    return [scale + rate * (capped - scale), count]
