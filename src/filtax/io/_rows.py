"""The rows of a block of lines: CSV and TSV by one of two readers that give the same rows, and JSON lines.

The careful reader takes a line at a time. Every row is read whole or rejected with the place and the reason. A quoted
field ends on its line; a quote that is still open there spoils that row and no other.

The fast reader is pyarrow's, for blocks that it reads exactly as the careful reader would. Where it is more lenient (a
stray quote, a NaN with a sign, an overflow, a vanishing number, a row that a quote has swallowed), a piece of the block
goes to the careful reader.

A row of JSON lines is one object. What it does not name is missing there; what nobody asked for is ignored.
"""

import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from filtax.io._errors import InputError, Rejected, RowError
from filtax.io._layout import Layout, Raw
from filtax.io._text import MISSING, Block, decode, number, show, shown

SEPARATORS = (",", ";", "\t", "|")
SMALL = 1 << 12  # bytes below which a block is read with care at once
PIECE = 1 << 16  # bytes of a piece of a block that holds something irregular
SAMPLE = 1000  # rows by which columns of numbers are found
_QUOTED = re.compile(r'"((?:[^"]|"")*)"')
_VANISHING = [re.compile(mark + rb"-[0-9]{3}") for mark in (b"e", b"E")]  # 1e-400 is not 0
_ZEROS = b"0" * 200  # neither is this many of them before a digit, with an exponent of two digits
_HALF = re.compile("[\ud800-\udfff]")  # of a pair of escapes that means a character; alone it cannot be written
_MARKS = re.compile(r'("(?:[^"\\]|\\.)*"[ \t]*:)|"(?:[^"\\]|\\.)*"|[{}\[\]]')  # names, other texts, and what nests
_NO_TEXT = "holds half of a surrogate pair, which is no text"

Row = tuple[list[float], list[Any]]  # its numbers and its texts


@dataclass(frozen=True)
class Header:
    """Names of the columns ("" where one has no name), and what separates them."""

    names: tuple[str, ...]
    separator: str

    def index(self, name: str) -> int:
        """Where a column is."""
        return self._places[name]

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names)}


def header_of(file: str, line: bytes, separator: str | None, limit: int) -> tuple[Header, list[int]]:
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


def sample_rows(block: Block, header: Header | None, limit: int) -> dict[str, list[Any]]:
    """Values of the first rows, by name; rows that cannot be read are skipped."""
    found: dict[str, list[Any]] = {name: [] for name in header.names} if header else {}
    for data in block.data.splitlines()[:SAMPLE]:
        try:
            if header is None:
                row = _object(data, limit) if data.strip() else {}
            else:
                cells = _split(decode(data, limit), header.separator)
                row = dict(zip(header.names, cells, strict=True)) if len(cells) == len(header.names) else {}
        except (RowError, _NamedError):
            continue
        for name, value in row.items():
            found.setdefault(name, []).append(value)
    return found


def read_block(
    block: Block, header: Header | None, layout: Layout, file: str, limit: int, quick: bool
) -> Iterator[tuple[Block, Raw]]:
    """Read the rows of a block, whole or in pieces; without a header, they are JSON lines.

    If it is `quick`, the fast reader tries the block, and then each piece of it, so that a bad row costs little.
    """
    if header is None:
        yield block, careful(block, _json_parser(layout, limit), layout, file)
        return
    raw = _fast(block, header, layout, limit) if quick else None
    if raw is not None:
        yield block, raw
        return
    parse = _csv_parser(header, layout, limit)
    for piece in block.split(size=PIECE) if quick and len(block.data) > PIECE else [block]:
        raw = _fast(piece, header, layout, limit) if piece is not block else None
        yield piece, careful(piece, parse, layout, file) if raw is None else raw


def place_of(text: str, header: Header | None, name: str) -> int:
    """Character, from 1, with which a column begins in a row; in JSON its name, and 1 if that is not there."""
    if header is not None:
        return _start_of(text, header.separator, header.index(name))
    depth = 0
    for mark in _MARKS.finditer(text):
        depth += (mark[0] in "{[") - (mark[0] in "}]")
        if depth == 1 and mark[1] and json.loads(mark[0].rstrip(": \t")) == name:
            return mark.start() + 1
    return 1


def careful(block: Block, parse: Callable[[bytes], Row | None], layout: Layout, file: str) -> Raw:
    """Read a block row by row; `parse` gives numbers and texts of a line, None of a blank one, or raises `RowError`."""
    rows, lines, ends = [], [], []
    rejected, before = list(block.rejected), [0] * len(block.rejected)
    offset = block.offset
    for line, data in enumerate(block.data.splitlines(keepends=True), block.line):
        offset += len(data)
        try:
            row = parse(data.rstrip(b"\r\n"))
        except RowError as fault:
            rejected.append(Rejected(file, line, fault.column, fault.reason))
            before.append(len(rows))
            continue
        if row is not None:
            rows.append(row)
            lines.append(line)
            ends.append(offset)
    numbers = np.array([row[0] for row in rows], np.float64).reshape(len(rows), len(layout.numbers))
    texts = {name: np.empty(len(rows), object) for name in layout.words}
    for j, name in enumerate(layout.words):
        texts[name][:] = [row[1][j] for row in rows]
    where = (np.array(values, np.int64) for values in (lines, ends))
    return Raw(numbers, texts, *where, rejected=rejected, before=before, digest=block.digest)


def _csv_parser(header: Header, layout: Layout, limit: int) -> Callable[[bytes], Row | None]:
    wanted = [(name, header.index(name)) for name in layout.numbers]
    words = [header.index(name) for name in layout.words]
    width, mark = len(header.names), header.separator
    plain = re.compile(rf"[0-9.+\-{re.escape(mark)}]*")  # no exponent: it can neither overflow nor vanish

    def parse(body: bytes) -> Row | None:
        if not body:
            return None
        text = decode(body, limit)
        cells = _split(text, mark)
        if len(cells) != width:
            column = len(text) + 1 if len(cells) < width else _start_of(text, mark, width)
            count = f"{len(cells)} field{'s' if len(cells) != 1 else ''}"
            raise RowError(column, f"{count} where the header has {width}")
        return numbers(text, cells), [cells[i] for i in words]

    def numbers(text: str, cells: list[str]) -> list[float]:
        if len(text) < 300 and plain.fullmatch(text):
            try:
                return [float(cells[i]) for _, i in wanted]
            except ValueError:
                pass
        values = []
        for name, i in wanted:
            try:
                values.append(number(cells[i]))
            except RowError as fault:
                raise RowError(_start_of(text, mark, i), f"{shown(name)}: {fault.reason}") from None
        return values

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


def _start_of(text: str, separator: str, index: int) -> int:
    return _fields(text, separator)[index][0] + 1


def _reads_as_number(name: str) -> bool:
    try:
        return not math.isnan(number(name))
    except RowError:
        return False


def _fast(block: Block, header: Header, layout: Layout, limit: int) -> Raw | None:
    """Read a block by pyarrow, or return None where it takes more care."""
    data = block.data
    if len(data) < SMALL or block.rejected or not _is_regular(data, header.separator.encode()):
        return None
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == 10) + 1
    if not data.endswith(b"\n"):
        ends = np.append(ends, len(data))
    if np.diff(ends, prepend=0).max() > limit:
        return None
    table = _parse(data, header, layout)
    if table is None or table.num_rows != len(ends):  # a line was blank, or swallowed by a quote
        return None
    numbers = np.empty((len(ends), len(layout.numbers)))
    missing = 0
    for j, name in enumerate(layout.numbers):
        column = table[str(header.index(name))]
        missing += column.null_count
        numbers[:, j] = column.to_numpy()
    if np.count_nonzero(~np.isfinite(numbers)) != missing:  # an infinity, or a NaN that is not spelled as one
        return None
    texts = {name: _texts(table[str(header.index(name))], name == layout.time) for name in layout.words}
    lines = block.line + np.arange(len(ends))
    return Raw(numbers, texts, lines, block.offset + ends, digest=block.digest)


def _is_regular(data: bytes, separator: bytes) -> bool:
    if b"\0" in data or (b"\r" in data and data.count(b"\r") != data.count(b"\r\n")):
        return False
    if data.startswith(b"\xef\xbb\xbf"):  # pyarrow would drop it, wherever in the file the block begins
        return False
    if not data.isascii():
        try:
            data.decode()
        except UnicodeDecodeError:
            return False
    if _ZEROS in data or any(pattern.search(data) for pattern in _VANISHING):
        return False
    quotes = data.count(b'"')
    if not quotes:
        return True
    opening = data.count(separator + b'"') + data.count(b'\n"') + data.startswith(b'"')
    closing = sum(data.count(b'"' + mark) for mark in (separator, b"\n", b"\r\n")) + data.endswith(b'"')
    return opening == closing and opening + closing == quotes


def _parse(data: bytes, header: Header, layout: Layout) -> Any:
    import pyarrow as pa
    from pyarrow import csv

    places = [[header.index(name) for name in names] for names in (layout.numbers, layout.words)]
    time = -1 if layout.time is None else header.index(layout.time)
    names, convert = _options(len(header.names), *map(tuple, places), time)
    try:
        return csv.read_csv(
            pa.py_buffer(data),
            read_options=csv.ReadOptions(column_names=names, use_threads=False, block_size=len(data) + 1),
            parse_options=csv.ParseOptions(delimiter=header.separator),
            convert_options=convert,
        )
    except pa.ArrowException:
        return None


@lru_cache(maxsize=8)
def _options(count: int, numbers: tuple[int, ...], words: tuple[int, ...], time: int) -> tuple[list[str], Any]:
    import pyarrow as pa
    from pyarrow import csv

    coded = pa.dictionary(pa.int32(), pa.string())
    types = {str(i): pa.float64() for i in numbers} | {str(i): pa.string() if i == time else coded for i in words}
    return [str(i) for i in range(count)], csv.ConvertOptions(
        column_types=types, include_columns=list(types), null_values=list(MISSING), strings_can_be_null=False
    )


def _texts(column: Any, plain: bool) -> np.ndarray:
    """A text column as an array of str; equal texts share one object."""
    if plain:
        return column.to_numpy()
    whole = column.combine_chunks()
    return np.asarray(whole.dictionary.to_numpy(zero_copy_only=False))[whole.indices.to_numpy(zero_copy_only=False)]


class _NamedError(Exception):
    """Trouble with one name of a row; its place is looked up in the text."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(reason)
        self.name, self.reason = name, reason


def _json_parser(layout: Layout, limit: int) -> Callable[[bytes], Row | None]:
    def parse(body: bytes) -> Row | None:
        if not body.strip():
            return None
        try:
            row = _object(body, limit)
            numbers = [_number(row.get(name), name) for name in layout.numbers]
            return numbers, [_text(row.get(name), name, name == layout.time) for name in layout.words]
        except _NamedError as fault:
            raise RowError(place_of(decode(body, limit), None, fault.name), fault.reason) from None

    return parse


def _object(body: bytes, limit: int) -> dict[str, Any]:
    text = decode(body, limit)
    try:
        read = _not_vanishing if "e-" in text or "E-" in text or "0" * 200 in text else None
        # Whole numbers become floats as in every other format, and without Python's limit on the digits of an int.
        row = json.loads(text, object_pairs_hook=_unique, parse_int=float, parse_float=read)
    except json.JSONDecodeError as error:
        raise RowError(error.colno, f"not JSON: {error.msg[0].lower()}{error.msg[1:]}") from None
    except RecursionError:
        raise RowError(1, "not JSON that can be read: it is nested too deeply") from None
    if not isinstance(row, dict):
        raise RowError(1, 'a row must be a JSON object, such as {"load": 1.5}')
    return row


def _not_vanishing(text: str) -> float | str:
    """A number; as it is written where it would become 0, so that it is refused with its name if it is read."""
    try:
        return number(text)
    except RowError:
        return float(text) or text


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _NamedError(twice, f"{show(twice)} stands twice in the row")
    if _HALF.search("".join(row)):
        raise RowError(1, f"a name {_NO_TEXT}")
    return row


def _number(value: Any, name: str) -> float:
    if isinstance(value, float):
        if abs(value) == float("inf"):
            raise _NamedError(name, f"{shown(name)}: the number is infinite, or too large for 64 bits")
        return value
    if value is None:
        return float("nan")
    if not isinstance(value, str):
        raise _NamedError(name, f"{shown(name)}: {show(json.dumps(value))} is not a number")
    try:
        return number(value)
    except RowError as fault:
        raise _NamedError(name, f"{shown(name)}: {fault.reason}") from None


def _text(value: Any, name: str, is_time: bool) -> Any:
    if isinstance(value, str):
        if _HALF.search(value):
            raise _NamedError(name, f"{shown(name)}: {show(value)} {_NO_TEXT}")
        return value
    if value is None:
        return ""
    if isinstance(value, dict | list):
        raise _NamedError(name, f"{shown(name)}: {show(json.dumps(value))} is neither text nor a number")
    if is_time and isinstance(value, float):
        return value
    return json.dumps(int(value) if isinstance(value, float) and value.is_integer() else value)
