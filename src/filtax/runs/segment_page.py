"""The report of a series that was cut: one page, as that of other runs. What users named is escaped."""

import html
import shlex
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from filtax.io._files import write_whole
from filtax.report.page import page
from filtax.runs.chart import chart
from filtax.runs.config import CONFIG
from filtax.runs.listing import listing
from filtax.runs.segmenting import Segments
from filtax.runs.style import CSS, SCRIPT
from filtax.runs.told_segments import in_words, level_of, told_of, write_rows, write_told

__all__ = ["Shown", "write_segments"]

POINTS = 600  # that are drawn of a series; of a longer one, means of stretches
LISTED = 200  # rows of a table


class Shown(NamedTuple):
    """What was written, and what there is to say.

    >>> Shown({}, "", Path("report.html")).report.name
    'report.html'
    """

    told: dict[str, Any]
    words: str
    report: Path


def write_segments(found: Segments) -> Shown:
    """Write predictions.parquet, events.jsonl, metrics.json and report.html of a series that was cut."""
    told = told_of(found)
    words = in_words(told)
    write_rows(found)
    write_told(found, told, words)
    title = f"{found.config.target} of {Path(found.config.source).name}"
    sections = [
        ("In short", _summary(told, words)),
        ("The series and its segments", _series(found, told)),
        (
            "The segments",
            listing(told["segments"], ("row", "file", "line", "time", "rows", "mean", "probability"), LISTED),
        ),
        ("How probable a change is", _probability(found)),
        ("Alarms as the rows came", _alarms(found, told)),
        ("Rows that were not trusted", listing(told["distrusted"], ("row", "file", "line", "time"), LISTED)),
        ("Rows that were left out", listing(found.rejected, ("file", "line", "column", "reason"), LISTED)),
        ("How to repeat it", _repeat(found)),
    ]
    body = "".join(f"<section><h2>{html.escape(name)}</h2>{text}</section>" for name, text in sections)
    text = page(title, CSS, f"<h1>{html.escape(title)}</h1>{body}<script>{SCRIPT}</script>")
    path = found.root / "report.html"
    write_whole(path, text.encode("utf-8", "backslashreplace"))
    return Shown(told, words, path)


def _summary(told: dict[str, Any], words: str) -> str:
    alarms, parts = len(told["alarms"]), len(told["segments"])
    cards = [
        (f"{told['rows']:,}", "rows"),
        (str(parts), "segment" if parts == 1 else "segments"),
        (str(alarms), "alarm" if alarms == 1 else "alarms"),
        *([(f"{told['missing']:,}", "without a reading")] if told["missing"] else []),
        (f"{told['left_out']:,}", "left out"),
        (f"{len(told['distrusted']):,}", "not trusted"),
    ]
    shown = "".join(f"<div><b>{value}</b>{name}</div>" for value, name in cards)
    return f'<div class="cards">{shown}</div><p class="words">{html.escape(words)}</p>'


def _series(found: Segments, told: dict[str, Any]) -> str:
    x, (y, level) = _thinned(found, found.columns["y"], level_of(found)[1])
    low, high = _edges(found)
    marks = [
        (_at(found, each["row"] - 1), f"row {each['row']}, {each.get('time', '')}") for each in told["segments"][1:]
    ]
    lines = {"mean of the segment": level, found.config.target: y}
    drawn = chart(x, lines, timed=found.clock == "local", band=(low, high), marks=marks[:LISTED])
    few = "" if found.rows <= POINTS else " Averages of stretches of rows; the band spans the readings of each."
    return f"{drawn}<p>Lines across: a segment begins.{few}</p>"


def _probability(found: Segments) -> str:
    assert found.cut is not None
    at = _stretch(found)
    highest = np.zeros(int(at[-1]) + 1)
    np.maximum.at(highest, at, found.cut.probability)
    x, _ = _thinned(found)
    drawn = chart(x, {"probability": highest}, timed=found.clock == "local", floor=0.0, ceiling=1.0)
    return (
        f"{drawn}<p>That a segment begins with a row, all rows known. A change whose place is not clear is spread over "
        "its neighbours: it is told where they sum up to more than one half.</p>"
    )


def _alarms(found: Segments, told: dict[str, Any]) -> str:
    rows = [
        {
            "row": each["row"],
            "line": each["line"],
            "time": each.get("time", ""),
            "began with row": each["began"]["row"],
            "looking back": "no change" if each["change"] is None else f"change with row {each['change']}",
        }
        for each in told["alarms"]
    ]
    names = ("row", "line", "time", "began with row", "looking back")
    listed = listing(rows, names, LISTED)
    return f"<p>What could have been told at the time, when nothing was known of later rows.</p>{listed}"


def _repeat(found: Segments) -> str:
    c = found.config
    words = ["filtax", "segment", c.source, "--target", c.target, *(["--time", c.time] if c.time else [])]
    text = (found.root / CONFIG).read_text(encoding="utf-8", errors="replace")
    command = shlex.join([*words, "--on-bad", c.on_bad])
    return f"<pre>{html.escape(command)}</pre><p>config.toml:</p><pre>{html.escape(text)}</pre>"


def _stretch(found: Segments) -> np.ndarray:
    """The stretch that each row belongs to, (T,)."""
    return np.arange(found.rows) * min(POINTS, found.rows) // found.rows


def _thinned(found: Segments, *columns: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
    """Where stretches end, and the means of columns over them; NaN where nothing was seen."""
    at = _stretch(found)
    x = np.zeros(int(at[-1]) + 1)
    x[at] = [_at(found, row) for row in range(found.rows)]
    means = []
    for values in columns:
        seen = np.isfinite(values)
        with np.errstate(invalid="ignore", divide="ignore"):
            count = np.bincount(at[seen], minlength=len(x))
            share = np.bincount(at[seen], values[seen] / np.maximum(count, 1)[at[seen]], minlength=len(x))
            means.append(np.where(count > 0, share, np.nan))
    return x, means


def _edges(found: Segments) -> tuple[np.ndarray, np.ndarray]:
    at, y = _stretch(found), found.columns["y"]
    low, high = np.full(int(at[-1]) + 1, np.inf), np.full(int(at[-1]) + 1, -np.inf)
    np.fmin.at(low, at, np.where(np.isfinite(y), y, np.inf))
    np.fmax.at(high, at, np.where(np.isfinite(y), y, -np.inf))
    return low, high


def _at(found: Segments, row: int) -> float:
    return float(found.columns["time"][row]) if found.clock else row + 1.0
