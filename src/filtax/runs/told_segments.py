"""What there is to say of a series that was cut: plain values, words, events, and the table of its rows."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from filtax.io._files import write_whole
from filtax.runs.alike import correlation, warning
from filtax.runs.chart import short
from filtax.runs.differing import differing
from filtax.runs.foresight import write_table
from filtax.runs.large import power_of
from filtax.runs.ledger import EVENTS
from filtax.runs.results import METRICS
from filtax.runs.segmenting import Segments

__all__ = ["as_json", "in_words", "level_of", "told_of", "write_rows", "write_told"]

NAMED = 8  # changes that are named in a sentence


def told_of(found: Segments) -> dict[str, Any]:
    """The segments and the alarms as plain values; a row is meant by its number and its line."""
    cut = found.cut
    assert cut is not None
    starts, ends = [0, *cut.changes], [*cut.changes, found.rows]
    segments = [
        {
            **_place(found, start),
            "rows": end - start,
            "mean": _mean(found, start, end),
            "probability": float(cut.probability[start]) if start else None,
            "differs": _differs(found, before, start, end) if start else None,
        }
        for before, start, end in zip([0, *starts], starts, ends, strict=False)
    ]
    alarms = [
        {
            **_place(found, at),
            "began": _place(found, first),
            "change": None if which is None else cut.changes[which] + 1,
        }
        for at, first, which in zip(cut.times, cut.starts, cut.meant, strict=True)
    ]
    head = {"source": found.config.source, "target": found.config.target, "rows": found.rows, "period": cut.period}
    y = found.columns["y"]
    head |= {"left_out": found.left_out, "missing": int(np.isnan(y).sum())}
    head |= {"correlation": correlation(np.ldexp(y, -power_of(y, 1.0)), cut)}
    return {**head, "distrusted": [_place(found, row) for row in cut.alone], "segments": segments, "alarms": alarms}


def as_json(told: dict[str, Any]) -> str:
    r"""The same as JSON that people can read, too: a line for each entry, and for each item of a list.

    >>> print(as_json({"rows": 2, "segments": [{"row": 1}], "alarms": []}))
    {
     "rows": 2,
     "segments": [
      {"row": 1}
     ],
     "alarms": []
    }
    """
    plain = lambda value: json.dumps(value, ensure_ascii=False, allow_nan=False)  # noqa: E731
    entries = []
    for name, value in told.items():
        many = isinstance(value, list) and value
        items = "[\n" + ",\n".join(f"  {plain(each)}" for each in value) + "\n ]" if many else plain(value)
        entries.append(f" {plain(name)}: {items}")
    return "{\n" + ",\n".join(entries) + "\n}"


def in_words(told: dict[str, Any]) -> str:
    """What was found, in a few sentences.

    >>> told = {"target": "y", "rows": 9, "segments": [{"row": 1}], "alarms": [], "distrusted": [{}], "period": None}
    >>> in_words({**told, "correlation": 0.0})
    'y did not change in 9 rows. 1 reading that stands alone was not trusted.'
    """
    target, segments, alarms = told["target"], told["segments"], told["alarms"]
    later = segments[1:]
    sentences = [f"{target} did not change in {told['rows']} rows."]
    if len(later) == 1:
        sentences = [f"{target} changed once, with {_named(later[0])}: {_became(segments[0], later[0])}."]
    elif later:
        named = "; ".join(_named(each) for each in later[:NAMED])
        more = f"; and {len(later) - NAMED} more" if len(later) > NAMED else ""
        sentences = [f"{target} changed {len(later)} times, with {named}{more}."]
    if told["period"] is not None:
        turned = len(later) == 1 and "cycle" in later[0]["differs"]
        sentences.append(f"It has a cycle of {short(told['period'])} rows{'' if turned else ', which is no change'}.")
    right = [each for each in alarms if each["change"] is not None]
    wrong = len(alarms) - len(right)
    if right:
        given = ", ".join(str(each["row"]) for each in right[:NAMED]) + (", ..." if len(right) > NAMED else "")
        sentences.append(f"As the rows came, this could have been told at row{_s(right)} {given}.")
    elif later:
        sentences.append("As the rows came, no alarm would have told of it.")
    if wrong:
        what = "one alarm more would have been given" if wrong == 1 else f"{wrong} alarms more would have been given"
        sentences.append(f"Looking back there was no change where {what}.")
    apart = len(told["distrusted"])
    if apart:
        stand = "reading that stands alone was" if apart == 1 else "readings that stand alone were"
        sentences.append(f"{apart} {stand} not trusted.")
    return " ".join([*sentences, *filter(None, [warning(told)])])


def level_of(found: Segments) -> tuple[np.ndarray, np.ndarray]:
    """Number of the segment of each row, from 1 on, and the mean of that segment, (T,) each."""
    assert found.cut is not None
    bounds = [0, *found.cut.changes, found.rows]
    number = np.repeat(np.arange(1, len(bounds)), np.diff(bounds))
    means = [_mean(found, start, end) for start, end in pairwise(bounds)]
    return number, np.array([np.nan if mean is None else mean for mean in means])[number - 1]


def write_told(found: Segments, told: dict[str, Any], words: str) -> None:
    """Write metrics.json, and events.jsonl in the words of other runs; `segment` is what looking back found."""
    whole = {**told, "changes": len(told["segments"]) - 1, "done": True, "words": words}
    write_whole(found.root / METRICS, as_json(whole).encode("utf-8", "backslashreplace") + b"\n")
    file = lambda each: {"file": found.files[int(found.columns["file"][each["row"] - 1])]}  # noqa: E731
    order = ("file", "line", "column", "reason")  # a checkpoint sorts them
    events = [{"event": "rejected", **{name: each[name] for name in order}} for each in found.rejected]
    events += [{"event": "distrusted", **file(each), **each} for each in told["distrusted"]]
    events += [{"event": "change", **file(each), **each, "began": each["began"]["row"]} for each in told["alarms"]]
    events += [{"event": "segment", **file(each), **each} for each in told["segments"]]
    lines = "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in events)
    write_whole(found.root / EVENTS, lines.encode("utf-8", "backslashreplace"))


def write_rows(found: Segments) -> Path:
    """Write predictions.parquet (CSV without pyarrow): each row with its segment and the mean of that."""
    cut, columns = found.cut, found.columns
    assert cut is not None
    number, level = level_of(found)
    rows: dict[str, Any] = {"line": columns["line"]}
    if len(found.files) > 1:
        rows["file"] = np.array(found.files, object)[columns["file"]]
    if found.time is not None:
        rows[found.config.time or "time"] = found.time
    trust = np.ones(found.rows)
    trust[cut.alone] = 0.0
    name = found.config.target
    own = {"segment": number, "level": level, "change_probability": cut.probability, "trust": trust}
    while name in rows or name in own:
        name += "_"
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        path = found.root / "predictions.csv"
    else:
        path = found.root / "predictions.parquet"
    write_table([{**rows, name: columns["y"], **own}], path)
    return path


def _place(found: Segments, row: int) -> dict[str, Any]:
    files = {"file": found.files[int(found.columns["file"][row])]} if len(found.files) > 1 else {}
    when = {} if found.time is None else {"time": str(found.time[row]).removesuffix(".000000")}
    return {"row": row + 1, **files, "line": int(found.columns["line"][row]), **when}


def _mean(found: Segments, start: int, end: int) -> float | None:
    """Of the readings that are trusted; None where there are none."""
    assert found.cut is not None
    y = found.columns["y"][start:end].copy()
    y[[row - start for row in found.cut.alone if start <= row < end]] = np.nan
    seen, power = y[np.isfinite(y)], power_of(y, 1.0)
    return float(np.ldexp(np.ldexp(seen, -power).mean(), power)) if seen.size else None


def _differs(found: Segments, before: int, start: int, end: int) -> dict[str, Any]:
    """In what a segment differs from the one before, in the unit of the readings."""
    assert found.cut is not None
    y = found.columns["y"].copy()
    y[found.cut.alone] = np.nan
    power = power_of(y, 1.0)
    differs = differing(np.ldexp(y, -power), before, start, end, found.cut.period)
    large = {name: [float(np.ldexp(each, power)) for each in differs[name]] for name in differs if name != "cycle"}
    return {**differs, **large}


def _became(before: dict[str, Any], one: dict[str, Any]) -> str:
    """What changed, in words; the mean where nothing else is certain."""
    differs = one["differs"]
    words = [f"its mean was {_number(before)} and is {_number(one)}"] if "level" in differs or not differs else []
    if "slope" in differs:
        was, now = differs["slope"]
        words.append(f"its slope was {short(was)} a row and is {short(now)}")
    if "cycle" in differs:
        words.append(f"its cycle {differs['cycle']}")
    return ", and ".join(words)


def _named(segment: dict[str, Any]) -> str:
    when = f", {segment['time'].replace('T', ' ')}" if "time" in segment else ""
    return f"row {segment['row']} (line {segment['line']}{when})"


def _number(segment: dict[str, Any]) -> str:
    return "unknown" if segment["mean"] is None else short(segment["mean"])


def _s(many: list[Any]) -> str:
    return "" if len(many) == 1 else "s"
