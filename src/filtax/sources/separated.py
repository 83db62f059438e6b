"""CSV and TSV, row by row: slow and certain. Every row is taken whole or left out with the place and the reason.

A quoted field ends on its line; a quote that is still open there spoils that row and no other. The fast reader takes
the blocks that it reads in exactly the same way, see `filtax.sources.fast`.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from filtax.sources.layout import Layout
from filtax.sources.lines import Block, too_long
from filtax.sources.numerals import number, show
from filtax.sources.raw import Raw
from filtax.sources.rejected import InputError, Rejected, RowError

__all__ = ["Header", "careful", "decode", "fields", "header_of", "split", "start_of"]

SEPARATORS = (",", ";", "\t", "|")
_QUOTED = re.compile(r'"((?:[^"]|"")*)"')


@dataclass(frozen=True)
class Header:
    """Names of the columns ("" where one has no name), and what stands between them.

    >>> Header(("a", "b"), ",").index("b")
    1
    """

    names: tuple[str, ...]
    separator: str

    def index(self, name: str) -> int:
        """Where a column stands."""
        return self._places[name]

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names)}


class _Parsed(NamedTuple):
    numbers: list[float]
    texts: list[str]


def header_of(file: str, line: bytes, separator: str | None) -> Header:
    """Read the first line: names, all different. Without a separator given, the most frequent of , ; tab | is it.

    >>> header_of("t.csv", b"time;load", None)
    Header(names=('time', 'load'), separator=';')
    """
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


def decode(line: bytes) -> str:
    """Turn the bytes of a line into text; raise `RowError` at a NUL and where it is not UTF-8.

    >>> decode(b"a,b")
    'a,b'
    """
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        column = len(line[: error.start].decode()) + 1
        raise RowError(column, f"byte 0x{line[error.start]:02x} is not UTF-8") from None
    if "\0" in text:
        raise RowError(text.index("\0") + 1, "there is a NUL character")
    return text


def split(text: str, separator: str) -> list[str]:
    """Cut a line into its fields, without their quotes; raise `RowError` at a quote out of place.

    >>> split('1,"a, b",3', ",")
    ['1', 'a, b', '3']
    """
    if '"' not in text:
        return text.split(separator)
    return [field for _, field in fields(text, separator)]


def start_of(text: str, separator: str, index: int) -> int:
    """Character, counted from 1, where a field begins.

    >>> start_of('1,"a, b",3', ",", 2)
    10
    """
    return fields(text, separator)[index][0] + 1


def careful(block: Block, header: Header, layout: Layout, file: str, limit: int) -> Raw:
    r"""Read a block row by row.

    >>> import hashlib
    >>> layout = Layout("a", None, None, ("a", "b"), {"a": "number", "b": "number"})
    >>> block = Block(b"1,2\n3\n5,x\n", 2, 4, hashlib.sha256())
    >>> raw = careful(block, Header(("a", "b"), ","), layout, "t.csv", 100)
    >>> raw.numbers.tolist(), [str(each) for each in raw.rejected]
    ([[1.0, 2.0]], ['t.csv:3:2: 1 field where the header has 2', "t.csv:4:3: b: 'x' is not a number"])
    """
    reader = _RowReader(header, layout, limit)
    rows, lines, ends = [], [], []
    rejected, before = list(block.rejected), [0] * len(block.rejected)
    offset = block.offset
    for line, data in enumerate(block.data.splitlines(keepends=True), block.line):
        offset += len(data)
        body = data.rstrip(b"\r\n")
        if not body:
            continue
        try:
            rows.append(reader.read(body))
        except RowError as fault:
            rejected.append(Rejected(file, line, fault.column, fault.reason))
            before.append(len(rows))
        else:
            lines.append(line)
            ends.append(offset)
    numbers = np.array([row.numbers for row in rows], np.float64).reshape(len(rows), len(layout.numbers))
    columns = {name: np.empty(len(rows), object) for name in layout.words}
    for j, name in enumerate(layout.words):
        columns[name][:] = [row.texts[j] for row in rows]
    where = (np.array(values, np.int64) for values in (lines, ends))
    return Raw(numbers, columns, *where, rejected=rejected, before=before, digest=block.digest)


class _RowReader:
    """One row at a time; a row of plain numbers takes the short way."""

    def __init__(self, header: Header, layout: Layout, limit: int) -> None:
        self._header, self._limit = header, limit
        self._numbers = [(name, header.index(name)) for name in layout.numbers]
        self._texts = [header.index(name) for name in layout.words]
        mark = re.escape(header.separator)
        self._plain = re.compile(rf"[0-9.+\-{mark}]*")  # no exponent: it can neither overflow nor vanish

    def read(self, body: bytes) -> _Parsed:
        if len(body) > self._limit:
            raise RowError(self._limit + 1, too_long(self._limit))
        text = decode(body)
        fields = split(text, self._header.separator)
        width = len(self._header.names)
        if len(fields) != width:
            column = len(text) + 1 if len(fields) < width else start_of(text, self._header.separator, width)
            count = f"{len(fields)} field{'s' if len(fields) != 1 else ''}"
            raise RowError(column, f"{count} where the header has {width}")
        return _Parsed(self._values(text, fields), [fields[i] for i in self._texts])

    def _values(self, text: str, fields: Sequence[str]) -> list[float]:
        if len(text) < 300 and self._plain.fullmatch(text):
            try:
                return [float(fields[i]) for _, i in self._numbers]
            except ValueError:
                pass
        values = []
        for name, i in self._numbers:
            try:
                values.append(number(fields[i]))
            except RowError as fault:
                column = start_of(text, self._header.separator, i)
                raise RowError(column, f"{show(name)[1:-1]}: {fault.reason}") from None
        return values


def fields(text: str, separator: str) -> list[tuple[int, str]]:
    """The fields of a line, without their quotes, each with the place where it begins, counted from 0.

    >>> fields('1,"a, b",3', ",")
    [(0, '1'), (2, 'a, b'), (9, '3')]
    """
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


def _reads_as_number(name: str) -> bool:
    try:
        return not math.isnan(number(name))
    except RowError:
        return False
