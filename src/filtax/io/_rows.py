"""The rows of a file of text: CSV and TSV, whose first line names the columns, and JSON lines.

A line is split into fields, and the fields of a column are then read together. A row is read whole or rejected with the
place and the reason. A quoted field ends on its line; a quote that is still open there spoils that row and no other. A
row of JSON lines is one object: what it does not name is missing there, and what nobody asked for is ignored.
"""

import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from filtax.io._errors import NAMELESS, InputError, Rejected, RowError
from filtax.io._layout import Layout, Raw, Request, choose, has_all
from filtax.io._text import Block, ByteStream, Lines, decode, number, read_numbers, show, shown

SEPARATORS = (",", ";", "\t", "|")
SAMPLE = 1000  # rows by which columns of numbers are found
_QUOTED = re.compile(r'"((?:[^"]|"")*)"')
_HALF = re.compile("[\ud800-\udfff]")  # of a pair of escapes that means a character; alone it cannot be written
_MARKS = re.compile(r'("(?:[^"\\]|\\.)*"[ \t]*:)|"(?:[^"\\]|\\.)*"|[{}\[\]]')  # names, other texts, and what nests
_NO_COLUMNS = Layout(None, None, None, (), {})
_NO_TEXT = "holds half of a surrogate pair, which is no text"


@dataclass(frozen=True)
class Header:
    """Names of the columns ("" where one has no name), and what separates them."""

    names: tuple[str, ...]
    separator: str


def read_text(
    stream: ByteStream,
    file: str,
    form: str,
    request: Request,
    *,
    layout: Layout | None = None,
    before: str = "",
    reached: tuple[int, int, str, bool] | None = None,
) -> Iterator[tuple[Layout, Raw]]:
    """Read the rows of a file of text, CSV or JSON lines.

    `layout` has the columns if they are known from the file `before`; `reached` the offset, line and digest up to which
    the file was read, and whether the last row had a line end.
    """
    lines = Lines(stream, file, block=request.block, limit=request.limit)
    header, notices, first = None, [], b"" if form == "json" else lines.first()
    if reached is not None:
        lines.skip(*reached[:3])
    if form != "json" and lines.offset:
        separator = request.separator or ("\t" if form == "tsv" else None)
        header, nameless = _header_of(file, first, separator, request.limit)
        if layout is not None:
            has_all(file, header.names, layout, before)
        if reached is None:
            notices = [Rejected(file, 1, column, NAMELESS) for column in nameless]
    for block in lines:
        if reached is not None and block.offset == reached[0]:
            _check_whole_line(file, block, reached)
        if layout is None and not any(0 < len(line.strip(b"\r\n")) <= request.limit for line in block.lines):
            notices += _read_block(block, header, _NO_COLUMNS, file, request.limit).rejected
            continue
        layout = layout or _decide(file, header, block, request)
        raw = _read_block(block, header, layout, file, request.limit)
        raw.rejected, notices = notices + raw.rejected, []
        yield layout, raw
    lines.check_unchanged(request.at(file))
    if stream.cut and layout is None:
        raise InputError(f"{file}:1:1: {stream.cut}.")
    if stream.cut and layout is not None:
        yield layout, Raw.empty(layout, Rejected(file, lines.line, 1, stream.cut), unended=True)
    if lines.offset == 0:
        raise InputError(f"{file} is empty; a table begins with a line that names its columns.")
    if layout is None:  # there is a header alone: refuse what it does not have
        choose(file, [name for name in header.names if name] if header else [], {}, request)


def _check_whole_line(file: str, block: Block, reached: tuple[int, int, str, bool]) -> None:
    """The last row of a file may have had no line end; if text was added to it since, it was read too early."""
    _, line, _, complete = reached
    if not complete and not block.lines[0].startswith((b"\n", b"\r")):
        raise InputError(
            f"{file} has changed since it was read: line {line - 1}, the last then, goes on. Start a new run, or end "
            "files with a line end."
        )


def _header_of(file: str, line: bytes, separator: str | None, limit: int) -> tuple[Header, list[int]]:
    """Read the first line: names, all different, and where the columns without one begin, counted from 1.

    Without a separator given, it is the most frequent of , ; tab |.
    """
    try:
        text = decode(line, limit)
        if separator is None:
            separator = max(SEPARATORS, key=text.count)
        cells = [(at + 1, name.strip()) for at, name in _fields(text, separator)]
    except RowError as fault:
        raise InputError(f"{file}:1:{fault.column}: the header cannot be read: {fault.reason}.") from None
    seen: set[str] = set()
    for column, name in cells:
        if name and name in seen:
            raise InputError(f"{file}:1:{column}: two columns are called {show(name)}; rename one of them.")
        seen.add(name)
    if seen == {""}:
        raise InputError(f"{file}:1:1: the first line is empty; it must name the columns.")
    if all(_reads_as_number(name) for name in seen):
        raise InputError(f"{file}:1:1: the first line holds only numbers; it must name the columns.")
    return Header(tuple(name for _, name in cells), separator), [column for column, name in cells if not name]


def _reads_as_number(name: str) -> bool:
    try:
        return not math.isnan(number(name))
    except RowError:
        return False


def _decide(file: str, header: Header | None, block: Block, request: Request) -> Layout:
    """Choose the columns by the values of the first rows; rows that cannot be read are skipped."""
    sample: dict[str, list[str]] = {name: [] for name in header.names} if header else {}
    for line in block.lines[:SAMPLE]:
        try:
            text = decode(line.rstrip(b"\r\n"), request.limit)
            if header is None:
                row = _object(text) if text.strip() else {}
            else:
                row = dict(zip(header.names, _split(text, header.separator), strict=True))
        except (RowError, ValueError):
            continue
        for name, value in row.items():
            sample.setdefault(name, []).append(_as_text(value))
    if not sample:
        raise InputError(f"{file}:{block.line}:1: there is no JSON object in the first lines.")
    return choose(file, [name for name in sample if name or header is None], sample, request)


def _read_block(block: Block, header: Header | None, layout: Layout, file: str, limit: int) -> Raw:
    """Read the rows of a block; without a header, they are JSON lines."""
    parse = partial(_json_row, wanted=layout.wanted) if header is None else _csv_parser(header, layout.wanted)
    cells, places, rejected = [], [], []  # the fields of one row behind those of another: a list for each is slower
    for i, line in enumerate(block.lines):
        try:
            body = line.rstrip(b"\r\n")
            row = parse(decode(body, limit)) if body else None
        except RowError as fault:
            rejected.append(Rejected(file, block.line + i, fault.column, fault.reason))
            continue
        if row is not None:
            cells += row
            places.append(i)
    columns = {name: cells[j :: len(layout.wanted)] for j, name in enumerate(layout.wanted)}
    numbers, faults, kept = np.empty((len(places), len(layout.numbers))), {}, np.array(places, np.int64)
    for j, name in enumerate(layout.numbers):
        numbers[:, j], wrong = read_numbers(columns[name])
        faults = {i: (name, reason) for i, reason in wrong.items()} | faults  # the first column of a row counts
    ends = block.offset + np.cumsum([len(line) for line in block.lines])

    def place(line: int, name: str) -> int:
        text = decode(block.lines[line - block.line].rstrip(b"\r\n"), limit)
        return _name_in(text, name) if header is None else _start_of(text, header, header.names.index(name))

    raw = Raw(
        numbers=numbers,
        texts={name: np.array(columns[name], object) for name in layout.words},
        line=block.line + kept,
        offset=ends[kept],
        digest=block.digest,
        place=place,
        rejected=rejected,
        unended=not block.lines[-1].endswith((b"\n", b"\r")),
    )
    raw.reject(file, faults)
    return raw


def _csv_parser(header: Header, wanted: tuple[str, ...]) -> Callable[[str], list[str]]:
    """A function from a line to the fields of the columns that are wanted."""
    width, mark = len(header.names), header.separator
    places = {name: i for i, name in enumerate(header.names)}
    indices = [places[name] for name in wanted]

    def parse(text: str) -> list[str]:
        cells = _split(text, mark)
        if len(cells) != width:
            column = len(text) + 1 if len(cells) < width else _start_of(text, header, width)
            count = f"{len(cells)} field{'s' if len(cells) != 1 else ''}"
            raise RowError(column, f"{count} where the header has {width}")
        return [cells[i] for i in indices]

    return parse


def _fields(text: str, separator: str) -> list[tuple[int, str]]:
    """The fields of a line, without their quotes, each with the place where it begins, counted from 0."""
    found, at = [], 0
    while True:
        if text.startswith('"', at):
            quoted = _QUOTED.match(text, at)
            if quoted is None:
                raise RowError(at + 1, "a quote is not closed on its line")
            end = quoted.end()
            if end < len(text) and not text.startswith(separator, end):
                raise RowError(end + 1, "something follows a closing quote")
            field = quoted[1].replace('""', '"')
        else:
            end = text.find(separator, at)
            end = len(text) if end < 0 else end
            field = text[at:end]
            if '"' in field:
                raise RowError(at + field.index('"') + 1, "a quote stands inside a field that does not begin with one")
        found.append((at, field))
        if end >= len(text):
            return found
        at = end + len(separator)


def _split(text: str, separator: str) -> list[str]:
    return [field for _, field in _fields(text, separator)] if '"' in text else text.split(separator)


def _start_of(text: str, header: Header, index: int) -> int:
    return _fields(text, header.separator)[index][0] + 1


def _json_row(text: str, wanted: tuple[str, ...]) -> list[str] | None:
    """The values of an object as texts; None of a blank line."""
    if not text.strip():
        return None
    row, found = _object(text), []
    for name in wanted:
        value = row.get(name)
        if isinstance(value, dict | list):
            reason = f"{'a list' if isinstance(value, list) else 'an object'} is neither text nor a number"
        elif isinstance(value, str) and _HALF.search(value):
            reason = f"{show(value)} {_NO_TEXT}"
        else:
            found.append(_as_text(value))
            continue
        raise RowError(_name_in(text, name), f"{shown(name)}: {reason}")
    return found


def _object(text: str) -> dict[str, Any]:
    """Read an object, in which numbers stay as they are written: one rule reads them in all formats."""
    try:
        row = json.loads(text, object_pairs_hook=_unique, parse_int=str, parse_float=str, parse_constant=str)
    except json.JSONDecodeError as error:
        raise RowError(error.colno, f"not JSON: {error.msg[0].lower()}{error.msg[1:]}") from None
    except KeyError as twice:
        raise RowError(_name_in(text, twice.args[0]), f"{show(twice.args[0])} stands twice in the row") from None
    except RecursionError:
        raise RowError(1, "not JSON that can be read: it is nested too deeply") from None
    if not isinstance(row, dict):
        raise RowError(1, 'a row must be a JSON object, such as {"load": 1.5}')
    if _HALF.search("".join(row)):
        raise RowError(1, f"a name {_NO_TEXT}")
    return row


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) < len(pairs):
        names = [name for name, _ in pairs]
        raise KeyError(next(name for name in names if names.count(name) > 1))
    return row


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value)


def _name_in(text: str, name: str) -> int:
    """Character, from 1, with which a name of an object begins; 1 if it is not there."""
    depth = 0
    for mark in _MARKS.finditer(text):
        depth += (mark[0] in "{[") - (mark[0] in "}]")
        if depth == 1 and mark[1] and json.loads(mark[0].rstrip(": \t")) == name:
            return mark.start() + 1
    return 1
