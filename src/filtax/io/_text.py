r"""Bytes of a text file into blocks of whole lines, each with its place; and which texts are numbers.

A line ends with \n, \r\n or \r. A line longer than the limit is skipped as it is read, so the memory needed does not
depend on it. Offsets count uncompressed bytes, without a byte order mark.

One rule holds for numbers in every text format, so that no number is changed silently. A number is an optional sign,
decimal digits 0-9 with at most one point, and an optional exponent; blanks around it are ignored. Everything else is
text: thousands separators, decimal commas, hexadecimal, digits of other scripts, booleans, infinities. A number is read
as the nearest 64-bit one; what would become infinite or zero that way is refused.
"""

import gzip
import hashlib
import os
import re
import sys
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from filtax.io._errors import InputError, RowError

BLOCK = 1 << 20  # bytes read at a time
LIMIT = 1 << 20  # bytes of the longest line
_LINES = 1 << 15  # lines of a block: each may leave a record of why it was rejected
_BOM = b"\xef\xbb\xbf"

_MISSING = {"", "na", "n/a", "nan", "null", "none"}  # in any case
_CHARACTERS = "0123456789.eE+- \t"  # of which nearly all numbers are made
_NUMERAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_WITH_COMMA = re.compile(r"[+-]?[0-9]+,[0-9]+")
_GROUPED = re.compile(r"[+-]?[0-9]{1,3}(?:[_ '\u00a0][0-9]{3})+(?:\.[0-9]+)?")


def is_missing(text: str) -> bool:
    """Whether a text stands for a missing value in a column of numbers."""
    return text.strip(" \t").lower() in _MISSING


def number(text: str) -> float:
    """Read a number, NaN where it is missing; raise `RowError` (column 0) with the reason otherwise."""
    bare = text.strip(" \t")
    if _NUMERAL.fullmatch(bare) is None:
        if bare.lower() in _MISSING:
            return float("nan")
        raise RowError(0, f"{show(text)} is not a number{_advice(bare)}")
    value = float(bare)
    if value in (float("inf"), float("-inf")):
        raise RowError(0, f"{show(text)} is too large for a 64-bit number")
    if value == 0.0 and re.search("[1-9]", re.split("[eE]", bare)[0]):
        raise RowError(0, f"{show(text)} is too small for a 64-bit number")
    return value


def read_numbers(texts: Sequence[str]) -> tuple[np.ndarray, dict[int, str]]:
    """Read a column of numbers, NaN where one is missing; and the reason for each text that is none."""
    found, doubtful, faults = np.full(len(texts), np.nan), list(range(len(texts))), {}
    plain = [text or "nan" for text in texts]
    if "".join(texts).strip(_CHARACTERS):
        plain = ["nan" if is_missing(text) else text if not text.strip(_CHARACTERS) else "" for text in texts]
    try:  # there are no other characters, so that Python reads no more than is allowed
        found = np.array(list(map(float, plain)))
        doubtful = np.flatnonzero(np.isinf(found) | (found == 0.0)).tolist()
    except ValueError:
        pass
    for i in doubtful:
        try:
            found[i] = number(texts[i])
        except RowError as fault:
            faults[i] = fault.reason
    return found, faults


def _advice(bare: str) -> str:
    if _WITH_COMMA.fullmatch(bare):
        return "; write decimals with a point"
    if _GROUPED.fullmatch(bare):
        return "; write it without marks between the thousands"
    return " that is finite" if bare.lower().lstrip("+-") in ("inf", "infinity") else ""


def show(text: str) -> str:
    """Quote a text for a message: printable, and short."""
    return repr(text if len(text) <= 40 else text[:39] + "…") if text.isprintable() else ascii(text[:40])


def shown(name: str) -> str:
    """A name for a message, without quotes: printable, and short."""
    return show(name)[1:-1]


def decode(line: bytes, limit: int) -> str:
    """Turn the bytes of a line into text; raise `RowError` where it is too long, at a NUL, and where it is no UTF-8."""
    if len(line) > limit:
        raise RowError(limit + 1, f"the line is longer than {limit} bytes")
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        column = len(line[: error.start].decode()) + 1
        raise RowError(column, f"byte 0x{line[error.start]:02x} is not UTF-8") from None
    if "\0" in text:
        raise RowError(text.index("\0") + 1, "there is a NUL character")
    return text


State = tuple[int, int, int]  # of a file: size, time of the last change, inode


class ByteStream:
    """Bytes of a file, or of standard input for "-", unpacked if they are gzip, without a byte order mark.

    `head` shows the first bytes, `packed` says whether they came as gzip, `cut` why they ended too early, and `state`
    how the file was when it was opened. A file that becomes shorter while it is read is refused, before a part of a
    line could be taken for a row.
    """

    def __init__(self, file: str, path: str, block: int = BLOCK) -> None:
        self.cut: str | None = None
        self._file = file
        self._raw: Any = sys.stdin.buffer if path == "-" else open(path, "rb")
        self.packed: bool = self._raw.peek(2)[:2] == b"\x1f\x8b"
        whole = path != "-" and Path(path).is_file()
        self.state = state_of(self._raw.fileno()) if whole else None
        bytes_of: Any = gzip.GzipFile(fileobj=self._raw) if self.packed else self._raw
        self._read = bytes_of.read if whole and not self.packed else bytes_of.read1  # from a pipe, rows as they come
        self._kept = self._next(block)
        while _BOM.startswith(self._kept) and (more := self._next(block)):
            self._kept += more
        self._kept = self._kept.removeprefix(_BOM)
        self.head = self._kept[:512]

    def read1(self, size: int) -> bytes:
        """Return some bytes, at most `size`, without waiting for more; none at the end."""
        if self._kept:
            data, self._kept = self._kept[:size], self._kept[size:]
            return data
        return self._next(size)

    def put_back(self, data: bytes) -> None:
        """Have these bytes read next."""
        self._kept = data + self._kept

    def close(self) -> None:
        """Close the file; standard input stays open."""
        if self._raw is not sys.stdin.buffer:
            self._raw.close()

    def _next(self, size: int) -> bytes:
        data = b""
        try:
            data = self._read(size)
        except EOFError:
            self.cut = "the compressed data end too early; the file is not complete"
        except (zlib.error, gzip.BadGzipFile):
            self.cut = "the compressed data are damaged from here on"
        if self.state is not None and (left := os.fstat(self._raw.fileno()).st_size) < self.state[0]:
            raise InputError(
                f"{self._file} was cut short while it was read: it had {self.state[0]} bytes and has {left}. Bring "
                "the whole file back to go on, or start a new run."
            )
        return data


def state_of(file: int | str) -> State:
    """How a file is now; by its name, or open."""
    known = os.stat(file)
    return known.st_size, known.st_mtime_ns, known.st_ino


def is_touched(path: str, state: State) -> bool:
    """Whether a file was written to, or replaced, since it had that state; one that was removed was not."""
    return Path(path).exists() and state_of(path) != state


@dataclass
class Block:
    """Whole lines with their ends, the number of the first, where it begins, and a hasher of all bytes before it."""

    lines: list[bytes]
    line: int
    offset: int
    hasher: Any

    def digest(self, offset: int) -> str:
        """Return the sha256 of the file up to an offset inside this block."""
        hasher = self.hasher.copy()
        hasher.update(b"".join(self.lines)[: offset - self.offset])
        return hasher.hexdigest()


class Lines:
    """Iterate over the blocks of a byte stream; a line is returned as soon as it is there."""

    def __init__(self, stream: ByteStream, file: str, *, block: int = BLOCK, limit: int = LIMIT) -> None:
        self.file, self.limit, self.line, self.offset = file, limit, 1, 0
        self._stream, self._size = stream, block
        self._hasher = hashlib.sha256()

    def first(self) -> bytes:
        """Take the first line, without its end; of one that is too long, a part that is too long."""
        first, rest = b"", []
        while not rest and len(first) <= self.limit + 2 and (data := self._stream.read1(self._size)):
            first, *rest = _split(first + data)
        if self._stream.cut and not rest:
            return b""
        self._stream.put_back(b"".join(rest))
        self._advance(first)
        self.line += 1
        return first.rstrip(b"\r\n")

    def skip(self, offset: int, line: int, digest: str) -> None:
        """Go on behind a position that was reached before; refuse if what stands before it is no longer the same."""
        left = offset - self.offset
        while left > 0 and (data := self._stream.read1(min(left, self._size))):
            self._hasher.update(data)
            left -= len(data)
        if left or self._hasher.hexdigest() != digest:
            raise InputError(
                f"{self.file} has changed since it was read up to line {line - 1}: what stands before is no longer the "
                "same. Start a new run, or bring the old file back."
            )
        self.offset, self.line = offset, line

    def check_unchanged(self, path: str) -> None:
        """Refuse a file of which what was read is no longer the same; one that has grown is sound."""
        if self._stream.state and is_touched(path, self._stream.state):
            again = ByteStream(self.file, path, self._size)
            try:
                Lines(again, self.file, block=self._size).skip(self.offset, self.line, self._hasher.hexdigest())
            finally:
                again.close()

    def __iter__(self) -> Iterator[Block]:
        begun = b""
        while data := self._stream.read1(self._size):
            *whole, begun = _split(begun + data)
            yield from self._blocks(whole)
            if len(begun) - begun.endswith(b"\r") > self.limit:
                yield Block([begun[: self.limit + 1]], self.line, self.offset, self._hasher.copy())
                self._skip_line(begun)
                begun = b""
        if begun and not self._stream.cut:  # half a line of a damaged file is no row
            yield from self._blocks([begun])

    def _blocks(self, lines: list[bytes]) -> Iterator[Block]:
        for i in range(0, len(lines), _LINES):
            block = Block(lines[i : i + _LINES], self.line, self.offset, self._hasher.copy())
            self._advance(b"".join(block.lines))
            self.line += len(block.lines)
            yield block

    def _skip_line(self, line: bytes) -> None:
        """Read on to the end of a line that is too long, and keep none of it."""
        rest: list[bytes] = []
        while not rest:
            kept = b"\r" if line.endswith(b"\r") else b""  # a \n may follow
            self._advance(line[: len(line) - len(kept)])
            line = kept
            if not (data := self._stream.read1(self._size)):
                break
            line, *rest = _split(kept + data)
        self._advance(line)
        self.line += 1
        self._stream.put_back(b"".join(rest))

    def _advance(self, data: bytes) -> None:
        self._hasher.update(data)
        self.offset += len(data)


def _split(data: bytes) -> list[bytes]:
    r"""Lines with their ends; the last one, perhaps empty, may go on: a \r that ends it may be followed by \n."""
    lines = data.splitlines(keepends=True)
    return [*lines, b""] if not data or data.endswith(b"\n") else lines
