"""A series cut into segments, looking back, and the alarms that could have been given as it came.

The whole series is in memory. A run that goes on reads it again, and segments it only where it has grown.
"""

import html
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from filtax import io as store
from filtax.io import Chunk
from filtax.io._files import write_whole
from filtax.pipeline._config import Config
from filtax.pipeline._figures import chart, short
from filtax.pipeline._folder import CHECKPOINT, FILES, hold, load_state, to_bytes
from filtax.pipeline._page import Written, cards_of, counted, html_of, listing
from filtax.pipeline._rows import KEPT, open_source
from filtax.pipeline._run import name_columns, write_table
from filtax.segmentation import detect, segment
from filtax.segmentation._segments import MUCH, differing, neighbour_correlation

LONGEST = 20_000  # readings; the posterior of the run length grows with their square
WAIT = 100  # readings before the first alarm: a cycle of up to fifty shows in them
MARGIN = 5  # readings by which the start that an alarm names may miss a change
LISTED = 200


@dataclass(eq=False)
class Segments:
    """The rows of a series, and what was found in them.

    Attributes:
        config: What was asked.
        columns: Line, number of the file, time (0 without one) and target of each row, (T,) each; once it is
            segmented, the probability that a segment begins there.
        files: Names of the files.
        rejected: The first rows that could not be read, as plain values; `count` of them in all.
        found: Changes, outliers, period, alarms and their starts, by row; None before.
    """

    config: Config
    columns: dict[str, np.ndarray] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)
    rejected: list[dict[str, Any]] = field(default_factory=list)
    count: int = 0
    found: dict[str, Any] | None = None


def segment_source(
    config: Config,
    root: Path,
    *,
    home: Path | None = None,
    tell: Callable[[str], object] | None = None,
    warn: Callable[[str], object] | None = None,
) -> Segments:
    """Read a series to its end and segment it; one that has not grown since it was segmented is not segmented again.

    Args:
        config: What to do, with the task "segment".
        root: Folder of the run.
        home: Folder of a relative source.
        tell: Called with a sentence before the long part.
        warn: Called with a sentence for each newer checkpoint that could not be used.
    """
    with hold(root) as folder:
        known = _restored(config, root, warn) if store.generations(folder) else None
        if known is None:
            config = replace(config, version=version("filtax"))
        elif config.source == "-":
            raise store.Damaged(f"{root}: a run on standard input cannot be resumed; name a file.")
        one = _read(config, home)
        if known is not None:
            _agree(known, one, root)
            if len(known.columns["y"]) == len(one.columns["y"]):
                one.columns, one.found = known.columns, known.found
                return one
        config.write(root)
        if tell is not None:
            tell(f"{len(one.columns['y'])} rows read; looking for changes ...")
        _segment(one)
        state = {name: value for name, value in vars(one).items() if name != "config"}
        stored, note = to_bytes([state, None]), {"rows": len(one.columns["y"])}
        store.save(folder, stored, config=config.to_json(), note=note, held=True)
        return one


def open_segments(root: Path, warn: Callable[[str], object] | None = None) -> Segments:
    """Open the folder of a series that was segmented; one that is not yet is refused in a sentence."""
    config = Config.read(root)
    if not store.generations(root / CHECKPOINT):
        raise ValueError(f"{root}: its series is not segmented yet; to go on: filtax resume {root}")
    return _restored(config, root, warn)


def write_segments(root: Path, one: Segments) -> tuple[dict[str, Any], Written]:
    """Write predictions.parquet, events.jsonl, metrics.json and report.html; what was found, and what to say of it."""
    y, columns = one.columns["y"], one.columns
    told = _told(one)
    parts, alarms = told["segments"], told["alarms"]
    words = _in_words(told)
    whole = {**told, "changes": len(parts) - 1, "done": True, "words": words}
    number = np.repeat(np.arange(len(parts)) + 1, [part["rows"] for part in parts])
    means = np.array([np.nan if part["mean"] is None else part["mean"] for part in parts])[number - 1]
    found = {"line": columns["line"]}
    found |= {"file": np.array(one.files, object)[columns["file"]]} if len(one.files) > 1 else {}
    found |= {"time": one.columns["time"]} if one.config.time else {}
    found |= {"y": y, "segment": number, "level": means, "change_probability": columns["probability"]}
    write_table([name_columns(one.config, found)], root / "predictions.parquet")
    events = [{"event": "rejected", **each} for each in one.rejected]
    events += [{"event": "outlier", **each} for each in told["outliers"]]
    events += [{"event": "change", **alarm, "began": alarm["began"]["row"]} for alarm in alarms]
    events += [{"event": "segment", **part} for part in parts]
    lines = "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in events)
    write_whole(root / FILES["events"], lines.encode("utf-8", "backslashreplace"))
    write_whole(root / "metrics.json", json.dumps(whole, indent=1).encode() + b"\n")
    write_whole(root / "report.html", _page(one, told, words, means))
    return told, Written("", words, "", root / "report.html")


def _told(one: Segments) -> dict[str, Any]:
    """The segments, gross errors and alarms as plain values; a row is named by its number, file, line and time."""
    assert one.found is not None
    y, changes, period = one.columns["y"].copy(), one.found["changes"], one.found["period"]
    missing, outliers = int(np.isnan(y).sum()), one.found.get("outliers", [])
    y[outliers] = np.nan
    differs = [{}, *differing(y, changes, period)]
    parts = [
        {
            **_place(one, a),
            "rows": b - a,
            "mean": _mean(y[a:b]),
            "probability": float(one.columns["probability"][a]) if a else None,
            "differs": what,
        }
        for (a, b), what in zip(pairwise([0, *changes, len(y)]), differs, strict=True)
    ]
    alarms = [
        {**_place(one, at), "began": _place(one, start), "change": _nearest(start, changes)}
        for at, start in zip(one.found["alarms"], one.found["starts"], strict=True)
    ]
    told: dict[str, Any] = {"source": one.config.source, "target": one.config.target, "rows": len(y)}
    told |= {"rejected": one.count, "missing": missing, "period": period}
    told |= {"correlation": neighbour_correlation(y, changes, period), "segments": parts, "alarms": alarms}
    return {**told, "outliers": [_place(one, row) for row in outliers]}


def _segment(one: Segments) -> None:
    y = one.columns["y"]
    found = segment(y)
    good = y.copy()
    good[found.outliers] = np.nan
    alarms = detect(good, warmup=WAIT)
    period = None if found.period is None else float(found.period)
    one.columns["probability"] = np.asarray(found.probability, float)
    one.found = {"changes": found.changes, "period": period, "alarms": alarms.times, "starts": alarms.starts}
    one.found["outliers"] = found.outliers


def _restored(config: Config, root: Path, warn: Callable[[str], object] | None) -> Segments:
    return Segments(config, **load_state(root / CHECKPOINT, config, warn)[0])


def _agree(known: Segments, one: Segments, root: Path) -> None:
    """Refuse a series whose first rows are not those that were segmented before."""
    T = len(known.columns["y"])
    pairs = ((known.columns[name], each[:T]) for name, each in one.columns.items())
    if known.files != one.files[: len(known.files)] or not all(np.array_equal(a, b, equal_nan=True) for a, b in pairs):
        raise store.Damaged(
            f"{one.config.source} has changed since it was read: the run in {root} cannot go on; bring it back, or "
            "start in another folder."
        )


def _read(config: Config, home: Path | None) -> Segments:
    """The rows of a series."""
    one, parts, rows = Segments(config), list[dict[str, np.ndarray]](), 0
    for chunk in open_source(config, home, features=[]):
        one.files += [chunk.file] if chunk.file not in one.files else []
        one.rejected += [row.to_json() for row in chunk.rejected[: KEPT - len(one.rejected)]]
        one.count += sum(not row.is_column for row in chunk.rejected)
        rows += len(chunk)
        if len(chunk) and rows <= LONGEST:
            parts.append(_columns(one, chunk))
    if not 2 <= rows <= LONGEST:
        count = f"more than {LONGEST} readings" if rows > LONGEST else counted(rows, "reading")
        raise ValueError(
            f"segment: {count}; it takes 2 to {LONGEST}. Average them over longer steps, or use `filtax run`, which "
            "finds changes as they come."
        )
    one.columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    if not np.isfinite(one.columns["y"]).any():
        raise ValueError(f"segment: the target {config.target} is empty in all rows; name another column.")
    return one


def _columns(one: Segments, chunk: Chunk) -> dict[str, np.ndarray]:
    if one.config.target in chunk.texts:
        raise ValueError(f"segment: the target {one.config.target} holds no numbers; name a column of numbers.")
    times = np.zeros(len(chunk)) if chunk.time is None else chunk.time
    file = np.full(len(chunk), one.files.index(chunk.file))
    y = np.array(chunk.column(one.config.target), float)
    return {"line": chunk.line.astype(np.int64), "file": file, "time": times, "y": y}


def _place(one: Segments, row: int) -> dict[str, Any]:
    when = {"time": str(one.columns["time"][row]).removesuffix(".000000")} if one.config.time else {}
    return {
        "row": row + 1,
        "file": one.files[int(one.columns["file"][row])],
        "line": int(one.columns["line"][row]),
        **when,
    }


def _mean(y: np.ndarray) -> float | None:
    return float(np.nanmean(y)) if np.isfinite(y).any() else None


def _nearest(start: int, changes: list[int]) -> int | None:
    """The row of the change that an alarm is of; None where, looking back, there was none."""
    near = [change for change in changes if abs(change - start) <= MARGIN]
    return min(near, key=lambda change: abs(change - start)) + 1 if near else None


def _in_words(told: dict[str, Any]) -> str:
    target, later, alarms = told["target"], told["segments"][1:], told["alarms"]
    names = ", ".join(f"row {part['row']} (line {part['line']})" for part in later[:8]) + (", ..." if later[8:] else "")
    words = f"{target} changed {counted(len(later), 'time')}, with {names}." if later else ""
    words = words or f"{target} did not change in {counted(told['rows'], 'row')}."
    words += "".join(f" At row {part['row']}: {_in_what(part)}." for part in later[:8] if part["differs"])
    if told["outliers"]:
        words += f" {counted(len(told['outliers']), 'gross error')} omitted."
    if told["period"] is not None:
        words += f" It has a cycle of {short(told['period'])} rows."
    right = sum(each["change"] is not None for each in alarms)
    words += f" As the rows came, {counted(len(alarms), 'alarm')} could have been given, {right} of them near a change."
    if told["correlation"] > max(MUCH, 4.0 / np.sqrt(told["rows"])) and (later or alarms):
        words += (
            f" Neighbouring rows are correlated within segments too ({told['correlation']:.2f}), so too much may be "
            "taken for a change: average rows over longer steps, or use `filtax run`."
        )
    return words


def _in_what(part: dict[str, Any]) -> str:
    return ", ".join(f"{name} {short(a)} to {short(b)}" for name, (a, b) in part["differs"].items())


def _page(one: Segments, told: dict[str, Any], words: str, means: np.ndarray) -> bytes:
    x = one.columns["time"].astype(float) if one.config.time else np.arange(len(means)) + 1.0
    timed = one.columns["time"].dtype.kind == "M"
    marks = [(float(x[part["row"] - 1]), f"row {part['row']}") for part in told["segments"][1 : LISTED + 1]]
    lines = {"mean of the segment": means, one.config.target: one.columns["y"]}
    names = ("row", "file", "line", "time", "rows", "mean", "probability", "differs")
    segments = [{**part, "differs": _in_what(part)} for part in told["segments"][:LISTED]]
    alarms = [{**alarm, "began with row": alarm["began"]["row"]} for alarm in told["alarms"][:LISTED]]
    cards = [(f"{told[name]:,}", name) for name in ("rows", "rejected", "missing")]
    cards += [(str(len(told["outliers"])), "gross errors")] if told["outliers"] else []
    cards += [(str(len(told["segments"])), "segments"), (str(len(told["alarms"])), "alarms")]
    chance = chart(x, {"probability": one.columns["probability"]}, timed=timed, floor=0.0, ceiling=1.0)
    rejected = listing(one.rejected[:LISTED], ("file", "line", "column", "reason")) if one.rejected else ""
    sections = [
        ("In short", f'{cards_of(cards)}<p class="words">{html.escape(words)}</p>'),
        ("The series and its segments", chart(x, lines, timed=timed, marks=marks)),
        ("The segments", listing(segments, names)),
        ("Probability that a segment begins", chance),
        (
            "Alarms as the rows came",
            listing(alarms, ("row", "line", "time", "began with row", "change")) if alarms else "<p>None.</p>",
        ),
        ("Rows that could not be read", rejected),
    ]
    return html_of(f"{one.config.target} of {Path(one.config.source).name}", sections)
