"""CSV and TSV, a block at a time, by one of two readers that give the same rows.

The careful reader goes row by row. Every row is taken whole or left out with the place and the reason. A quoted field
ends on its line; a quote that is still open there spoils that row and no other.

The fast reader is pyarrow's, for blocks that it reads exactly as the careful reader would. Where it is more lenient (a
stray quote, a NaN with a sign, an overflow, a vanishing number, a row that a quote has swallowed), the whole block goes
to the careful reader.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from filtax.io._errors import InputError, RowError
from filtax.io._layout import Layout, Raw, read_rows
from filtax.io._text import MISSING, Block, decode, number, show, shown, too_long

SEPARATORS = (",", ";", "\t", "|")
SMALL = 1 << 12  # bytes below which a block is read with care at once
_QUOTED = re.compile(r'"((?:[^"]|"")*)"')
_VANISHING = [re.compile(mark + rb"-[0-9]{3}") for mark in (b"e", b"E")]  # 1e-400 is not 0
_ZEROS = b"0" * 200  # neither is this many of them before a digit, with an exponent of two digits


@dataclass(frozen=True)
class Header:
    """Names of the columns ("" where one has no name), and what stands between them."""

    names: tuple[str, ...]
    separator: str

    def index(self, name: str) -> int:
        """Where a column stands."""
        return self._places[name]

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names)}


def header_of(file: str, line: bytes, separator: str | None) -> Header:
    """Read the first line: names, all different. Without a separator given, the most frequent of , ; tab | is it."""
    try:
        text = decode(line)
        if separator is None:
            separator = max(SEPARATORS, key=text.count)
        names = [name.strip() for name in split(text, separator)]
    except RowError as fault:
        raise InputError(f"{file}:1:{fault.column}: the header cannot be read: {fault.reason}.") from None
    seen: set[str] = set()
    for i, name in enumerate(names):
        if name and name in seen:
            column = start_of(text, separator, i)
            raise InputError(f"{file}:1:{column}: two columns are called {show(name)}; rename one of them.")
        seen.add(name)
    if not any(names):
        raise InputError(f"{file}:1:1: the first line is empty; it must name the columns.")
    if all(_reads_as_number(name) for name in names):
        raise InputError(f"{file}:1:1: the first line holds only numbers; it must name the columns.")
    return Header(tuple(names), separator)


def _reads_as_number(name: str) -> bool:
    try:
        return not math.isnan(number(name))
    except RowError:
        return False


def fields(text: str, separator: str) -> list[tuple[int, str]]:
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


def split(text: str, separator: str) -> list[str]:
    """Cut a line into its fields, without their quotes; raise `RowError` at a quote out of place."""
    return [field for _, field in fields(text, separator)] if '"' in text else text.split(separator)


def start_of(text: str, separator: str, index: int) -> int:
    """Character, counted from 1, where a field begins."""
    return fields(text, separator)[index][0] + 1


def sample_rows(block: Block, header: Header, limit: int, most: int = 1000) -> dict[str, Sequence[str]]:
    """Values of the first rows, by column; rows that cannot be read are passed over."""
    rows = []
    for data in block.data.splitlines()[:most]:
        try:
            row = split(decode(data), header.separator) if len(data) <= limit else []
        except RowError:
            continue
        if len(row) == len(header.names):
            rows.append(row)
    return dict(zip(header.names, zip(*rows, strict=True), strict=True)) if rows else {}


def read_separated(block: Block, header: Header, layout: Layout, file: str, limit: int, quick: bool) -> Raw:
    """Read a block, by the fast reader where it is `quick` and regular."""
    raw = fast(block, header, layout, limit) if quick else None
    return careful(block, header, layout, file, limit) if raw is None else raw


def careful(block: Block, header: Header, layout: Layout, file: str, limit: int) -> Raw:
    """Read a block row by row."""
    wanted = [(name, header.index(name)) for name in layout.numbers]
    words = [header.index(name) for name in layout.words]
    width, mark = len(header.names), header.separator
    plain = re.compile(rf"[0-9.+\-{re.escape(mark)}]*")  # no exponent: it can neither overflow nor vanish

    def parse(body: bytes) -> tuple[list[float], list[str]] | None:
        if not body:
            return None
        if len(body) > limit:
            raise RowError(limit + 1, too_long(limit))
        text = decode(body)
        cells = split(text, mark)
        if len(cells) != width:
            column = len(text) + 1 if len(cells) < width else start_of(text, mark, width)
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
                raise RowError(start_of(text, mark, i), f"{shown(name)}: {fault.reason}") from None
        return values

    return read_rows(block, layout, file, parse)


def fast(block: Block, header: Header, layout: Layout, limit: int) -> Raw | None:
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


@lru_cache(maxsize=8)
def _options(names: int, numbers: tuple[int, ...], coded: tuple[int, ...], plain: tuple[int, ...]) -> Any:
    import pyarrow as pa
    from pyarrow import csv

    types = {str(i): pa.float64() for i in numbers}
    types |= {str(i): pa.dictionary(pa.int32(), pa.string()) for i in coded}
    types |= {str(i): pa.string() for i in plain}
    return [str(i) for i in range(names)], csv.ConvertOptions(
        column_types=types, include_columns=list(types), null_values=list(MISSING), strings_can_be_null=False
    )


def _parse(data: bytes, header: Header, layout: Layout) -> Any:
    import pyarrow as pa
    from pyarrow import csv

    numbers = tuple(header.index(name) for name in layout.numbers)
    plain = tuple(header.index(name) for name in (layout.time,) if name)
    coded = tuple(header.index(name) for name in layout.words if name != layout.time)
    names, convert = _options(len(header.names), numbers, coded, plain)
    try:
        return csv.read_csv(
            pa.py_buffer(data),
            read_options=csv.ReadOptions(column_names=names, use_threads=False, block_size=len(data) + 1),
            parse_options=csv.ParseOptions(delimiter=header.separator),
            convert_options=convert,
        )
    except pa.ArrowException:
        return None


def _texts(column: Any, plain: bool) -> np.ndarray:
    """A text column as an array of str; equal texts share one object."""
    if plain:
        return column.to_numpy()
    whole = column.combine_chunks()
    return np.asarray(whole.dictionary.to_numpy(zero_copy_only=False))[whole.indices.to_numpy(zero_copy_only=False)]
