"""What the rows of a block showed: which were not trusted, and changes of regime, of what surprises, of levels."""

from typing import Any

import numpy as np

from filtax.runs.bands import beyond, eased, gross, tails
from filtax.runs.course import bends
from filtax.runs.surprise import changes
from filtax.streams.levels import NEW, STAYS, USUAL

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
    usual: np.ndarray,
    cell: np.ndarray,
) -> list[tuple[int, str, Any]]:
    """Rows that were not trusted, and changes: of regime, of what keeps surprising, of levels, of their course.

    Args:
        stream: Of numbers (`filtax.runs.numbers`).
        slot: Series of each row, (B,).
        y: Readings, (B,).
        said: What was told of them; where labels come late, `pit` becomes that of the stretched forecast.
        stretch: How far their intervals are stretched, (B,).
        alarms: Rows since a change of regime, 0 where none was, (B,).
        alone: Where there is a scale, and nothing else vouches for y, (B,).
        again: Where the row before was absurd too, (B,).
        usual: `USUAL` where y is one of few values or levels that keep coming back, (B,): no error, and no level that
            is new; below 0 where its level is new (`filtax.streams.levels`).
        cell: Step of the grid that each row belongs to, (B,).
    """
    level, usual = np.nan_to_num(usual), usual == USUAL
    early = gross(said, y, stream.bands.level, stream.surprise.rate, alone)
    far = beyond(said, y, stream.bands.level) + 0.0 * said["pit"]
    if stream.late.delay:  # errors come in groups: no changes, and rows are judged by what intervals have held
        said["pit"] = eased(said["pit"], stretch)
        return stream.surprise.numbers(slot, 0.5 * far, False, alarms, early, None, usual)
    pit = said["pit"]
    if stream.plan.hourly:
        pit, far, alarms = _by_the_hour(stream, slot, cell, y, said, alarms)
    found = stream.surprise.numbers(slot, pit, True, alarms, early, again, usual)
    echo = np.zeros(len(y), bool)
    if stream.maker is not None:
        tail = np.fmin(tails(pit, stretch), far)
        echo = stream.moves.echoes(slot, cell, y, tail) if stream.plan.moves else echo
        found = _levels(stream, slot, y, said["forecast"], np.where(echo | usual, 1.0, tail), cell, found)
    if stream.plan.early:
        doubt = lambda row, since, *of: stream.moves.weekend(float(cell[row] - since), *of)  # noqa: E731
        found = [*found, *stream.early.look(slot, y, doubt if stream.plan.moves else None)]
    if stream.plan.bends:
        bent = bends(stream.course, cell, slot, {**said, "y": y}, echo, found)
        began = stream.moves.began if stream.plan.moves else lambda _, since: since
        found = [*found, *((row, kind, began(row, since)) for row, kind, since in bent)]
    return _switched(level, stream.surprise.rate, found) if stream.plan.levels else found


def _switched(level: np.ndarray, rate: float, found: list[tuple[int, str, Any]]) -> list[tuple[int, str, Any]]:
    """What was found, without changes at levels that are known and stay no longer than ever, and with levels that came.

    Args:
        level: What the levels of rows are, by `filtax.streams.levels`, (B,).
        rate: Below which the probability of a new level must lie.
        found: What was found otherwise.
    """
    kept = [event for event in found if event[1] != "change" or level[event[0]] != USUAL]
    named = {row for row, kind, _ in kept if kind == "distrusted"}
    for row in np.flatnonzero(level < 0.0).tolist():
        chance = -(level[row] - NEW if level[row] <= NEW else level[row])
        if chance < rate:
            kept += [] if row in named else [(row, "distrusted", float(chance))]
            kept += [(row, "change", STAYS - 1)] if level[row] <= NEW else []
    return kept


def _by_the_hour(
    stream: Any, slot: np.ndarray, cell: np.ndarray, y: np.ndarray, said: dict[str, np.ndarray], alarms: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where y fell, its probability by its interval, and alarms of the race: by what the hour was off by of late."""
    middle, ends = said["forecast"], {name: said[name] - said["forecast"] for name in ("lower", "upper")}
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        off = (y - middle) / np.where(y > middle, ends["upper"], -ends["lower"])
    factor = stream.hours.look(slot, cell, off + 0.0 * said["pit"])
    wider = {"forecast": middle, **{name: middle + factor * end for name, end in ends.items()}}
    far = beyond(wider, y, stream.bands.level) + 0.0 * said["pit"]
    # the tails of a forecast that learns its noise are heavy: of a gross error they say less than its distance does
    pit = np.where(factor == 1.0, said["pit"], np.where(said["pit"] < 0.5, 0.5 * far, 1.0 - 0.5 * far))
    odd = np.fmin(2.0 * np.minimum(pit, 1.0 - pit), far) < stream.surprise.rate**2
    return pit, far, stream.hours.kept(slot, cell, odd, alarms)


def _levels(
    stream: Any,
    slot: np.ndarray,
    y: np.ndarray,
    forecast: np.ndarray,
    tail: np.ndarray,
    cell: np.ndarray,
    found: list[tuple[int, str, Any]],
) -> list[tuple[int, str, Any]]:
    """What was found, and levels that jumped or moved; of what both tell in one row, the earlier start."""
    jumped = stream.jumps.look(slot, y, forecast, tail, changes(found))
    if not stream.plan.moves:
        return [*found, *jumped]
    moved = stream.moves.look(slot, cell, y, forecast, tail, changes(found), jumped)
    better = {row for row, _, _ in moved}
    return [*(event for event in found if event[1] != "change" or event[0] not in better), *moved]
