"""What the rows of a block showed: which were not trusted, and changes of regime, of what surprises, of levels."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from filtax.runs.bands import beyond, eased, gross, tails

__all__ = ["changes", "verdicts"]


def verdicts(
    stream: Any,
    slot: np.ndarray,
    y: np.ndarray,
    said: dict[str, np.ndarray],
    stretch: np.ndarray,
    alarms: np.ndarray,
    alone: np.ndarray,
    again: np.ndarray,
    cell: np.ndarray,
) -> list[tuple[int, str, Any]]:
    """Rows that were not trusted, and changes: of regime, of what keeps surprising, of levels that jumped.

    Args:
        stream: Of numbers (`filtax.runs.numbers`).
        slot: Series of each row, (B,).
        y: Readings, (B,).
        said: What was told of them; where labels come late, `pit` becomes that of the stretched forecast.
        stretch: How far their intervals are stretched, (B,).
        alarms: Rows since a change of regime, 0 where none was, (B,).
        alone: Where there is a scale, and nothing else vouches for y, (B,).
        again: Where the row before was absurd too, (B,).
        cell: Step of the grid that each row belongs to, (B,).
    """
    early = gross(said, y, stream.bands.level, stream.surprise.rate, alone)
    far = beyond(said, y, stream.bands.level) + 0.0 * said["pit"]
    if stream.late.delay:  # errors come in groups: no changes, and rows are judged by what intervals have held
        said["pit"] = eased(said["pit"], stretch)
        return stream.surprise.numbers(slot, 0.5 * far, False, alarms, early)
    found = stream.surprise.numbers(slot, said["pit"], True, alarms, early, again)
    if stream.maker is None:
        return found
    tail = np.fmin(tails(said["pit"], stretch), far)
    if not stream.plan.moves:
        return [*found, *stream.jumps.look(slot, y, said["forecast"], tail, changes(found))]
    tail = stream.moves.sober(slot, cell, y, tail)
    jumped = stream.jumps.look(slot, y, said["forecast"], tail, changes(found))
    moved = stream.moves.look(slot, cell, y, said["forecast"], tail, changes(found), jumped)
    better = {row for row, _, _ in moved}
    return [*(event for event in found if event[1] != "change" or event[0] not in better), *moved]


def changes(found: Iterable[tuple[int, str, Any]]) -> list[tuple[int, Any]]:
    """Rows at which a change was told of, and from how many rows before.

    >>> changes([(3, "distrusted", 1e-4), (5, "change", 5)])
    [(5, 5)]
    """
    return [(row, value) for row, kind, value in found if kind == "change"]
