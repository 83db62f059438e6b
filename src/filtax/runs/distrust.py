"""The rows that a run did not trust: the most surprising ones, with what was read and what was expected."""

import heapq
import math
from collections.abc import Iterator
from typing import Any

from filtax.runs.fan import Fan
from filtax.runs.listing import listing
from filtax.runs.results import Run

__all__ = ["distrusted_rows", "most_surprising"]

NAMES = ("line", "time", "key", "reading", "forecast", "probability", "trust")
TITLES = {"key": "series", "probability": "its probability"}


def most_surprising(run: Run, most: int) -> list[dict[str, Any]]:
    """The events of the rows that were least probable, the least first; with reading, forecast and trust.

    Of those whose probability is too small for a number, the furthest from their forecast, by its interval, come first.
    """
    return [event for *_, event in heapq.nsmallest(most, _ranked(run), key=lambda entry: entry[:3])]


def distrusted_rows(run: Run, most: int) -> str:
    """A section of the report: how many there are, and a table of the most surprising ones."""
    count = run.note["progress"]["distrusted"]
    if not count:
        return "<p>None.</p>"
    shown = most_surprising(run, most)
    which = f"the {len(shown)} most surprising ones; all are in events.jsonl" if count > most else "all of them"
    table = listing(shown, NAMES, most, TITLES)
    ahead = " The forecast is the one of a step ahead, by which they were found." if _mark(run) else ""
    return f"<p>{count:,} in all. Here are {which}, the least probable first.{ahead}</p>{table}"


def _ranked(run: Run) -> Iterator[tuple[float, float, int, dict[str, Any]]]:
    """Each event with what its row holds; before it probability, how near it is, and row, which give it its place."""
    by_row = lambda each: each["row"]  # noqa: E731
    events = heapq.merge(_told(run, late=False), sorted(_told(run, late=True), key=by_row), key=by_row)
    event, row, mark = next(events, None), 0, _mark(run)
    for part in run.records():
        while event is not None and event["row"] <= row + len(part):
            own = part[event["row"] - 1 - row]
            told = {"reading": own["y"].item(), "forecast": own[f"forecast{mark}"].item(), "trust": own["trust"].item()}
            near = 0.0
            if run.config.task == "classify":
                labels = run.note["labels"]
                told |= {name: labels[int(told[name])] for name in ("reading", "forecast")}
            else:
                width = own[f"upper{mark}"].item() - own[f"lower{mark}"].item()
                near = -abs(told["reading"] - told["forecast"]) / width if width > 0.0 else -math.inf
            yield event["probability"], near, event["row"], {**event, **told}
            event = next(events, None)
        row += len(part)


def _told(run: Run, late: bool) -> Iterator[dict[str, Any]]:
    """Those that were told of at once, in the order of rows, or those of the first rows, known in hindsight: few."""
    return (each for each in run.events() if each["event"] == "distrusted" and ("known" in each) == late)


def _mark(run: Run) -> str:
    """What marks the forecast by which a row was judged: where a run looks far ahead, that of its nearest step."""
    return f"_{run.stream.plan.steps[0]}" if isinstance(run.stream, Fan) else ""
