"""Tables of a report: what happened, row by row. What users named is escaped."""

import html
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from filtax.runs.chart import short

__all__ = ["listing"]


def listing(rows: Iterable[Mapping[str, Any]], names: Sequence[str], most: int = 25, titles: Any = None) -> str:
    """A table of rows, the first ones if there are many; a column that all of them leave empty is left out.

    Args:
        rows: Entries by name.
        names: Columns, in order.
        most: Rows that are listed.
        titles: Name to heading, where that is another one.

    >>> listing([{"row": 3, "key": "", "time": "2024-01-01T05:00"}], ("row", "key", "time"))
    '<table><tr><th>row</th><th>time</th></tr><tr><td>3</td><td>2024-01-01 05:00</td></tr></table>'
    >>> listing([], ("row",))
    '<p>None.</p>'
    """
    found = list(islice(rows, most + 1))
    if not found:
        return "<p>None.</p>"
    names = [name for name in names if any(row.get(name, "") not in ("", None) for row in found)]
    head = "".join(f"<th>{html.escape((titles or {}).get(name, name))}</th>" for name in names)
    lines = ["".join(f"<td>{_cell(name, row.get(name, ''))}</td>" for name in names) for row in found[:most]]
    more = "" if len(found) <= most else "<p>The first ones; more are in events.jsonl.</p>"
    return f"<table><tr>{head}</tr>" + "".join(f"<tr>{line}</tr>" for line in lines) + f"</table>{more}"


def _cell(name: str, value: Any) -> str:
    if isinstance(value, float):
        return short(value)
    text = "-" if value is None else str(value)
    return html.escape(text.replace("T", " ") if name == "time" else text)  # a time is broken at the blank, if at all
