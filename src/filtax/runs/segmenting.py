"""A column of a table cut into segments: what was found, in the lines and times of the user."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from filtax.runs.large import power_of
from filtax.segmentation import Alarms, Segmentation, detect
from filtax.segmentation import segment as cut
from filtax.sources import open_table

__all__ = ["Segmented", "draw", "segmented"]

LONGEST = 20_000  # readings; the posterior of the run length grows with their square


@dataclass(frozen=True, eq=False)
class Segmented:
    """A series, its segments and its alarms.

    Attributes:
        y: Readings; very large ones by a power of two, which the title tells.
        found: The segments, looking back.
        alarms: What could have been told at the time.
        told: All of it as plain values.
        title: Name of the series.
    """

    y: np.ndarray
    found: Segmentation
    alarms: Alarms
    told: dict[str, Any]
    title: str


def segmented(source: str, target: str, time: str | None = None) -> Segmented:
    """Read a column and cut it.

    Args:
        source: As for `open_table`.
        target: The column.
        time: Column of times, to tell when a segment began.

    Returns:
        The segments and alarms; a row of the table is meant by its line.
    """
    chunks = [chunk for chunk in open_table(source, target=target, time=time, features=[]) if len(chunk)]
    if not chunks or target in chunks[0].texts:
        raise ValueError(f"segment: the target {target} holds no numbers; name a column of numbers.")
    y = np.concatenate([chunk.column(target) for chunk in chunks])
    if not 2 <= len(y) <= LONGEST:
        raise ValueError(
            f"segment: {len(y)} readings; it takes 2 to {LONGEST}. Average them over longer steps, or use "
            "`filtax run`, which tells of changes as they come."
        )
    power = power_of(y, 1.0)
    y = np.ldexp(y, -power)
    line = np.concatenate([chunk.line for chunk in chunks])
    times = [chunk.time for chunk in chunks if chunk.time is not None]
    moment = np.concatenate(times) if times else None
    found, alarms = cut(y), detect(y)

    def place(row: int) -> dict[str, Any]:
        when = {} if moment is None else {"time": str(moment[row]).removesuffix(".000000")}
        return {"row": row + 1, "line": int(line[row]), **when}

    starts = [0, *found.changes]
    ends = [*found.changes, len(y)]
    segments = [
        {
            **place(start),
            "rows": end - start,
            "mean": _mean(y[start:end], power),
            "probability": float(found.probability[start]),
        }
        for start, end in zip(starts, ends, strict=True)
    ]
    told = {
        "source": source,
        "target": target,
        "rows": len(y),
        "period": None if found.period is None else float(found.period),
        "segments": segments,
        "alarms": [{**place(at), "began": place(first)} for at, first in zip(alarms.times, alarms.starts, strict=True)],
    }
    return Segmented(y, found, alarms, told, f"{target}, in units of {2.0**power:.4g}" if power else target)


def draw(series: Segmented, path: Path) -> Path:
    """Draw the series, its segments and its alarms."""
    from filtax.report import draw_segments

    return draw_segments(series.y, series.found, path, alarms=series.alarms, title=series.title)


def _mean(values: np.ndarray, power: int) -> float | None:
    seen = values[np.isfinite(values)]
    return float(np.ldexp(seen.mean(), power)) if seen.size else None
