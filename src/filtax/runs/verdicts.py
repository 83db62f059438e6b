"""What the rows of a block showed: which were not trusted, and changes of regime, of what surprises, of levels."""

from typing import Any

import numpy as np

from filtax.runs.bands import beyond, eased, gross, tails

__all__ = ["verdicts"]


def verdicts(
    stream: Any,
    slot: np.ndarray,
    y: np.ndarray,
    said: dict[str, np.ndarray],
    stretch: np.ndarray,
    alarms: np.ndarray,
    alone: np.ndarray,
    again: np.ndarray,
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
    """
    early = gross(said, y, stream.bands.level, stream.surprise.rate, alone)
    far = beyond(said, y, stream.bands.level) + 0.0 * said["pit"]
    if stream.late.delay:  # errors come in groups: no changes, and rows are judged by what intervals have held
        said["pit"] = eased(said["pit"], stretch)
        return stream.surprise.numbers(slot, 0.5 * far, False, alarms, early)
    found = stream.surprise.numbers(slot, said["pit"], True, alarms, early, again)
    if stream.maker is None:
        return found
    told = [(row, value) for row, kind, value in found if kind == "change"]
    tail = np.fmin(tails(said["pit"], stretch), far)
    return [*found, *stream.jumps.look(slot, y, said["forecast"], tail, told)]
