"""A series on a grid of steps, as far back as is needed: filled readings, and how far off the simplest forecast was."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from filtax.streams.episode import Episode
from filtax.streams.gate import follow, is_absurd, simplest, sober

__all__ = ["Cells", "Grid"]

BACK = 2.0  # a reading that is right behind what was wrong says as little as a second absurd one


class Cells(NamedTuple):
    """Rows on the grid: `place` of each row in the columns of `track` (filled value, scale, readings behind it).

    `absurd` says which readings were too far off to learn from: the how manyth of them in a row, 0 for all others.

    >>> Cells(np.array([[1.0, 2.0, 3.0]] * 3), np.array([2])).value(1)
    array([2.])
    """

    track: np.ndarray
    place: np.ndarray
    absurd: np.ndarray = np.zeros(0)

    def value(self, back: int | np.ndarray) -> np.ndarray:
        """Filled reading so many steps before each row, (B,), or (B, K) for K numbers; NaN before the first."""
        return self.track[0, np.subtract.outer(self.place, back)]


@dataclass(frozen=True)
class Grid:
    """Keep `memory` steps of a series whose forecasts look `horizon` steps ahead.

    Attributes:
        horizon: Steps ahead.
        cycles: Lengths of the cycles, shortest first.
        memory: Steps that are kept.
        spared: Absurd readings in a row that may be errors; the next one is believed, as a level that moved. If more
            than one is spared, what is kept is rewritten when it shows what they were, and `extend` ends with that row.

    >>> grid = Grid(1, (), 4)
    >>> state, cells = grid.extend(grid.init(), np.array([7, 8, 10]), np.array([1.0, 2.0, 4.0]))
    >>> cells.value(1)
    array([nan, 1., 2.])
    """

    horizon: int
    cycles: tuple[int, ...]
    memory: int
    spared: int = 1

    def init(self) -> dict[str, np.ndarray]:
        """Nothing known: values NaN, no scale; `cell` is the last step on the grid, `doubt` whether it was absurd."""
        track = np.concatenate([np.full((1, self.memory), np.nan), np.zeros((2, self.memory))])
        more = Episode.none(self.memory) if self.spared > 1 else {}
        return {"track": track, "near": np.zeros(2), "cell": np.array(-(2**62)), "doubt": np.array(False), **more}

    def extend(
        self, state: Mapping[str, np.ndarray], numbers: np.ndarray, y: np.ndarray, usual: np.ndarray | None = None
    ) -> tuple[dict[str, np.ndarray], Cells]:
        """Put readings on the grid, in order; steps in between are filled; `usual` ones (B,) are never absurd.

        Returns:
            The state, and the rows that were put there: all, or those up to the first that had the past rewritten. What
            is said of them is what was known before it.
        """
        steps = np.diff(numbers, prepend=state["cell"]) if len(numbers) else np.empty(0, np.int64)
        place = self.memory - 1 + np.cumsum(np.clip(steps, 0, self.memory))
        values, scales, counts = track = state["track"].tolist()  # lists: the loop below is over single numbers
        near, doubt, seasons = state["near"].tolist(), bool(state["doubt"]), self._seasons(1)
        episode = Episode(state, self.spared) if self.spared > 1 else None
        left, taken, then = np.zeros(len(y)), len(y), None
        trusted = [False] * len(y) if usual is None else usual.tolist()
        for row, (to, reading, trust) in enumerate(zip(place.tolist(), y.tolist(), trusted, strict=True)):
            for at in range(len(values), to + 1):
                values.append(simplest(values, at, 1, seasons))
                scales.append(scales[-1])
                counts.append(counts[-1])
                if episode:
                    episode.pass_by(at, seasons)
            absurd = not trust and is_absurd(values, to, reading, near, seasons)
            if episode and absurd and episode.is_back(to, reading):
                then, absurd, left[row] = np.array(track), False, BACK
                near = episode.end(track, near)
            leaves = episode.leaves(to, reading, absurd) if episode else not math.isfinite(reading) or absurd > doubt
            if absurd:
                left[row] = episode.rank if episode else float(leaves)
            if leaves:
                doubt = doubt or absurd
                continue
            if episode and absurd:
                then = np.array(track)
                near = self._replay(track, near, episode, to)
            doubt = False
            near = self._learn(track, near, to, reading, trust)
            if then is not None:
                taken = row + 1
                break
        numbers, new = numbers[:taken], np.array(track)
        last = np.maximum(numbers[-1], state["cell"]) if len(numbers) else state["cell"]
        more = episode.arrays(self.memory) if episode else {}
        kept = {"track": new[:, -self.memory :].copy(), "near": np.array(near), **more}
        told = Cells(new if then is None else then, place[:taken], left[:taken])
        return {**kept, "cell": np.array(last), "doubt": np.array(doubt)}, told

    def _learn(
        self, track: list[list[float]], near: list[float], to: int, reading: float, usual: bool = False
    ) -> list[float]:
        """Believe a reading; the size of the errors of a step ahead."""
        values, scales, counts = track
        near_by, seasons = self._seasons(1), self._seasons(self.horizon)
        off, ahead = abs(reading - values[to]), abs(reading - simplest(values, to, self.horizon, seasons))
        values[to] = reading
        if off == off:
            near = follow(off, near[0], near[1], usual)
            near[0] = sober(values, to, 1, near_by, *near)
        if ahead == ahead:
            scales[to], counts[to] = follow(ahead, scales[to], counts[to], usual)
            scales[to] = sober(values, to, self.horizon, seasons, scales[to], counts[to])
        return near

    def _replay(self, track: list[list[float]], near: list[float], episode: Episode, to: int) -> list[float]:
        """Learn what was left out until now, and expect what comes behind it; the size of errors."""
        values, scales, counts = track
        first, seasons = episode.believe(values, [*near, scales[to], counts[to]]), self._seasons(1)
        back = max(seasons, default=0) + 2
        for at in range(max(first, to - self.memory + back, back), to + 1):  # what lies behind a long gap is forgotten
            values[at] = simplest(values, at, 1, seasons)
            scales[at], counts[at] = scales[at - 1], counts[at - 1]
            if at < to and math.isfinite(episode.raw[at]):
                near = self._learn(track, near, at, episode.raw[at])
        return near

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
