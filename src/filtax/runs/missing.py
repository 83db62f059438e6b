"""What a run says of the steps that its clock has and its table has not."""

import heapq
import html
from typing import Any

from filtax.runs.listing import listing
from filtax.runs.results import Run
from filtax.runs.wording import counted

__all__ = ["missing_in_words", "missing_steps"]

_STEPS = {"secondly": "second", "minutely": "minute", "hourly": "hour", "daily": "day", "weekly": "week"}
_STEPS |= {"monthly": "month", "quarterly": "quarter", "yearly": "year"}


def missing_in_words(run: Run) -> str:
    """How many steps are missing, and where the most; empty where none is."""
    progress = run.note["progress"]
    if not progress.get("missing"):
        return ""
    first, word = _longest(run, 1)[0], _word(run)
    of = f" of {first['key']}" if "key" in first else ""
    place = f"before {first['time'].replace('T', ' ')}{of} (line {first['line']})"
    what = f"{counted(progress['missing'], word)} {'is' if progress['missing'] == 1 else 'are'} missing"
    if progress["gaps"] == 1:
        return f"{what}, {place}."
    return f"{what} in {progress['gaps']} gaps, the longest of {counted(first['missing'], word)} {place}."


def missing_steps(run: Run, most: int) -> str:
    """A section of the report: the sentence, and the longest gaps; empty where the clock is not regular."""
    if not run.stream.plan.regular:
        return ""
    words = missing_in_words(run)
    if not words:
        return "<p>None.</p>"
    titles = {"time": "before", "key": "series", "missing": f"{_word(run)}s missing"}
    listed = listing(_longest(run, most), ("missing", "time", "line", "key"), most, titles)
    more = "<p>The longest ones; all are in events.jsonl.</p>" if run.note["progress"]["gaps"] > most else ""
    return f"<p>{html.escape(words)}</p>{listed}{more}"


def _longest(run: Run, most: int) -> list[dict[str, Any]]:
    gaps = (event for event in run.events() if event["event"] == "gap")
    return heapq.nsmallest(most, gaps, key=lambda event: (-event["missing"], event["row"]))


def _word(run: Run) -> str:
    season = run.stream.plan.season
    return "step" if season is None else _STEPS.get(season.name, "step")
