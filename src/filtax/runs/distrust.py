"""The rows that a run did not trust: the most surprising ones, with what was read and what was expected."""

import heapq
from typing import Any

import numpy as np

from filtax.runs.fan import Fan
from filtax.runs.listing import listing
from filtax.runs.results import Run

__all__ = ["distrusted_rows", "most_surprising"]

NAMES = ("line", "time", "key", "reading", "forecast", "probability", "trust")
TITLES = {"key": "series", "probability": "its probability"}


def most_surprising(run: Run, most: int) -> list[dict[str, Any]]:
    """The events of the rows that were least probable, the least first; with reading, forecast and trust."""
    events = (event for event in run.events() if event["event"] == "distrusted")
    found = heapq.nsmallest(most, events, key=lambda event: (event["probability"], event["row"]))
    wanted = {event["row"] - 1: {} for event in found}
    labels = run.note.get("labels")
    names = {"reading": "y", "forecast": _forecast(run), "trust": "trust"}
    row = 0
    for part in run.records():
        for at in [at for at in wanted if row <= at < row + len(part)]:
            for name, column in names.items():
                value = float(part[column][at - row])
                wanted[at][name] = _label(labels, value) if labels and name != "trust" else value
        row += len(part)
    return [{**event, **wanted[event["row"] - 1]} for event in found]


def distrusted_rows(run: Run, most: int) -> str:
    """A section of the report: how many there are, and a table of the most surprising ones."""
    count = run.note["progress"]["distrusted"]
    if not count:
        return "<p>None.</p>"
    shown = most_surprising(run, most)
    which = f"the {len(shown)} most surprising ones; all are in events.jsonl" if count > most else "all of them"
    table = listing(shown, NAMES, most, TITLES)
    ahead = (
        " The forecast is the one of a step ahead, by which they were found." if _forecast(run) != "forecast" else ""
    )
    return f"<p>{count:,} in all. Here are {which}, the least probable first.{ahead}</p>{table}"


def _forecast(run: Run) -> str:
    """The forecast by which a row was judged: where a run looks far ahead, that of its nearest step."""
    return f"forecast_{run.stream.plan.steps[0]}" if isinstance(run.stream, Fan) else "forecast"


def _label(labels: list[str], value: float) -> str:
    return labels[int(value)] if np.isfinite(value) else ""
