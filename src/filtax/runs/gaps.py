"""Steps of a regular clock that no row has: which rows they are missing before."""

from typing import Any

import numpy as np

from filtax.runs.blocks import Block
from filtax.streams import Season

__all__ = ["gaps_before", "is_regular"]

REGULAR = 0.9  # share of neighbours one step apart from which on a missing step is a gap; trading days have 0.8


def is_regular(season: Season, time: np.ndarray) -> bool:
    """Whether the rows of one series lie on a clock, so that a step without a row is one that is missing.

    >>> is_regular(Season.named("daily"), np.array(["2024-01-01", "2024-01-02", "2024-01-03"], "M8[D]"))
    True
    >>> is_regular(Season.named("daily"), np.array(["2024-01-01", "2024-01-02", "2024-01-05"], "M8[D]"))
    False
    """
    if len(time) < 3:
        return False
    steps = np.diff(season.cells(time, float(season.phase(time[:1])[0])))
    return bool(np.mean(steps == 1) >= REGULAR)


def gaps_before(stream: Any, block: Block) -> list[tuple[int, str, int]]:
    """The rows of a block before which steps are missing, as events: (row, "gap", steps).

    Args:
        stream: What was learned before these rows; its grids tell where each series stands.
        block: The rows.
    """
    season = stream.plan.season
    if not stream.plan.regular or season is None or block.time is None:
        return []
    keys = np.full(block.rows, "") if block.key is None else block.key.astype(str)
    found = []
    for key in np.unique(keys).tolist():
        rows = np.flatnonzero(keys == key)
        time, slot = block.time[rows], stream.keys.get(key)
        phase, last = (np.nan, 0) if slot is None else (float(stream.grids[slot][name]) for name in ("phase", "cell"))
        begun = not np.isnan(phase)
        cells = season.cells(time, phase if begun else float(season.phase(time[:1])[0]))
        missing = np.diff(cells, prepend=int(last) if begun else cells[0] - 1) - 1
        found += [(int(rows[i]), "gap", int(missing[i])) for i in np.flatnonzero(missing > 0)]
    return found
