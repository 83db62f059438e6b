"""A series on a grid of steps, as far back as is needed: filled readings, and how far off the simplest forecast was."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

import numpy as np

__all__ = ["Cells", "Grid"]

FORGET = 0.995  # of the scale, at each reading
GATE = 20.0  # scales: a reading further off is absurd
CAP = 5.0  # scales: what a single reading adds to the scale at most
ENOUGH = 12  # readings before any so far off is called absurd
EARLY, WIDE = 5, 50.0  # before that: readings, and scales, as the scale is hardly known


class Cells(NamedTuple):
    """Rows on the grid: `place` of each row in the columns of `track` (filled value, scale, readings behind it).

    `absurd` says which rows hold a reading that was filled instead of believed.

    >>> Cells(np.array([[1.0, 2.0, 3.0]] * 3), np.array([2])).value(1)
    array([2.])
    """

    track: np.ndarray
    place: np.ndarray
    absurd: np.ndarray = np.zeros(0, bool)

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
        place = self.memory - 1 + np.cumsum(np.clip(steps, 0, self.memory))
        values, scales, counts = track = state["track"].tolist()  # lists: the loop below is over single numbers
        near, doubt = state["near"].tolist(), bool(state["doubt"])
        seasons, seasons_near = self._seasons(self.horizon), self._seasons(1)
        left = np.zeros(len(y), bool)
        for row, (to, reading) in enumerate(zip(place.tolist(), y.tolist(), strict=True)):
            for at in range(len(values), to + 1):
                values.append(_simplest(values, at, 1, seasons_near))
                scales.append(scales[-1])
                counts.append(counts[-1])
            off = abs(reading - values[to])
            far = (GATE if near[1] >= ENOUGH else WIDE) * near[0]
            back = abs(reading - values[to - 2]) <= far  # from an error that was believed
            known = near[1] >= ENOUGH or (near[1] >= EARLY and far > 0.0 and not back)
            absurd = known and off > far and _is_far(values, to, reading, far, seasons_near)
            if not math.isfinite(reading) or (absurd and not doubt):
                left[row] = absurd
                doubt = doubt or absurd
                continue
            doubt = False
            ahead = abs(reading - _simplest(values, to, self.horizon, seasons))
            values[to] = reading
            if off == off:
                near = _follow(off, *near)
                near[0] = _sober(values, to, 1, seasons_near, *near)
            if ahead == ahead:
                scales[to], counts[to] = _follow(ahead, scales[to], counts[to])
                scales[to] = _sober(values, to, self.horizon, seasons, scales[to], counts[to])
        last = np.maximum(numbers[-1], state["cell"]) if len(numbers) else state["cell"]
        new = np.array(track)
        kept = {"track": new[:, -self.memory :].copy(), "near": np.array(near)}
        return {**kept, "cell": np.array(last), "doubt": np.array(doubt)}, Cells(new, place, left)

    def outlook(self, cells: Cells) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The simplest forecast of each row, its scale, and how many readings the scale is made of.

        The forecast is NaN before the first reading is known, the scale before the first error is.
        """
        last = cells.value(self.horizon)
        change = np.full(len(last), np.nan)
        for season in self._seasons(self.horizon):
            told = cells.value(season) - cells.value(season + self.horizon)
            change = np.where(np.isnan(change), told, change)
        base = last + np.nan_to_num(change, nan=0.0)
        scale, count = cells.track[1:, cells.place - self.horizon]
        unit = np.where(count > 0.0, 1.0, np.nan)
        return base, np.where(scale > 0.0, np.maximum(scale, 1e-9 * np.abs(base)), unit), count

    def _seasons(self, horizon: int) -> list[int]:
        """Steps back to the repetitions whose change is known in time, the longest cycle first."""
        firsts = [cycle * -(-horizon // cycle) for cycle in reversed(self.cycles)]
        return [first for first in firsts if first > horizon]


def _simplest(values: list[float], at: int, horizon: int, seasons: list[int]) -> float:
    """The last reading that is known, plus the change of one season ago where that is known; NaN if nothing is."""
    last = values[at - horizon]
    for season in seasons:
        change = values[at - season] - values[at - season - horizon]
        if change == change:
            return last + change
    return last


def _is_far(values: list[float], at: int, reading: float, far: float, seasons: list[int]) -> bool:
    """Whether a reading is far from the last one too, and from what each season suggests: an old fault has echoes."""
    told = [0.0, *(values[at - season] - values[at - season - 1] for season in seasons)]
    return not any(abs(reading - values[at - 1] - change) <= far for change in told)


def _follow(off: float, scale: float, count: float) -> list[float]:
    """Mean size of the errors, of all at first and then of the latest; one counts for a few scales at most."""
    count += 1.0
    rate = max(1.0 - FORGET, 1.0 / count)
    capped = min(off, CAP * scale) if count > ENOUGH and scale > 0.0 else off
    return [scale + rate * (capped - scale), count]


def _sober(values: list[float], at: int, horizon: int, seasons: list[int], scale: float, count: float) -> float:
    """The scale; of the first readings at most so many of the latest errors: none of them could be called absurd yet.

    The median of three, as one error alone may be small by chance.
    """
    if not 3 <= count <= ENOUGH:
        return scale
    usual = median(abs(values[k] - _simplest(values, k, horizon, seasons)) for k in (at - 2, at - 1, at))
    return min(scale, GATE * usual) if usual > 0.0 else scale
