r"""Bytes of a text file into blocks of whole lines, each with its place; and which texts are numbers.

A line ends with \n, \r\n or \r. A line longer than the limit is skipped as it is read, so the memory needed does not
depend on it. Offsets count uncompressed bytes, without a byte order mark.

One rule holds for numbers in every text format, so that no number is changed silently. A number is an optional sign,
decimal digits 0-9 with at most one point, and an optional exponent; blanks around it are ignored. Everything else is
text: thousands separators, decimal commas, hexadecimal, digits of other scripts, booleans, infinities. A number is read
as the nearest 64-bit one; what would become infinite or zero that way is refused.
"""

import hashlib
import re
import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from filtax.io._errors import InputError, Rejected, RowError

BLOCK = 1 << 22  # bytes read at a time
LIMIT = 1 << 20  # bytes of the longest line
_PACKED = 1 << 20  # compressed bytes read at a time
_LINES = 1 << 15  # lines of a block: each may leave a record of why it was rejected
_BOM = b"\xef\xbb\xbf"

MISSING = ("", "NA", "N/A", "nan", "NaN", "NAN", "null", "NULL", "None")  # and these in any other case
_MISSING = {text.lower() for text in MISSING}
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
        raise RowError(limit + 1, too_long(limit))
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        column = len(line[: error.start].decode()) + 1
        raise RowError(column, f"byte 0x{line[error.start]:02x} is not UTF-8") from None
    if "\0" in text:
        raise RowError(text.index("\0") + 1, "there is a NUL character")
    return text


def too_long(limit: int) -> str:
    """The reason why a long line is rejected."""
    return f"the line is longer than {limit} bytes"


class ByteStream:
    """Bytes of a file, or of standard input for "-", unpacked if they are gzip, without a byte order mark.

    `head` shows the first bytes, `packed` says whether they came as gzip, and `cut` why they ended too early.
    """

    def __init__(self, file: str, block: int = BLOCK) -> None:
        self.cut: str | None = None
        self._raw: Any = sys.stdin.buffer if file == "-" else open(file, "rb")
        self.packed: bool = self._raw.peek(2)[:2] == b"\x1f\x8b"
        whole = file != "-" and Path(file).is_file()  # from a pipe, rows are wanted as they come
        read: Callable[[int], bytes] = self._raw.read if whole else self._raw.read1
        self._read = _Gunzip(read).read if self.packed else read
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
        try:
            return self._read(size)
        except EOFError:
            self.cut = "the compressed data end too early; the file is not complete"
        except zlib.error:
            self.cut = "the compressed data are damaged from here on"
        return b""


class _Gunzip:
    """Unpack gzip, of several members if need be, up to where it is damaged; `gzip` would drop what it has read."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self._more, self._packed = read, b""
        self._engine = zlib.decompressobj(31)

    def read(self, size: int) -> bytes:
        while True:
            if self._engine.eof:
                self._packed = self._engine.unused_data.lstrip(b"\0") or self._more(_PACKED)
                if not self._packed:
                    return b""
                self._engine = zlib.decompressobj(31)
            self._packed = self._packed or self._more(_PACKED)
            ended = not self._packed
            data = self._engine.decompress(self._packed, size)  # with no more to unpack, what it still holds
            if ended and not data:
                raise EOFError
            self._packed = self._engine.unconsumed_tail
            if data:
                return data


@dataclass
class Block:
    """Whole lines: the bytes, where they begin, and records of the lines that were too long to be kept."""

    data: bytes
    line: int
    offset: int
    hasher: Any  # of all bytes of the file before this block
    rejected: list[Rejected] = field(default_factory=list)

    def split(self, *, lines: int = 1, size: int = 0) -> Iterator["Block"]:
        """Cut at line ends into blocks of at least that many lines and bytes each; the hasher moves on to their end."""
        ends = np.flatnonzero(np.frombuffer(self.data, np.uint8) == (10 if b"\n" in self.data else 13)) + 1
        if size:
            found = np.searchsorted(ends, np.arange(size, len(self.data), size))
            ends = ends[found[found < len(ends)]]
        line = self.line
        for start, end in pairwise(dict.fromkeys([0, *ends[lines - 1 :: lines].tolist(), len(self.data)])):
            data = self.data[start:end]
            block = Block(data, line, self.offset + start, self.hasher.copy())
            line += _count(data)
            self.hasher.update(data)
            yield block

    def digest(self, offset: int) -> str:
        """Return the sha256 of the file up to an offset inside this block."""
        hasher = self.hasher.copy()
        hasher.update(self.data[: offset - self.offset])
        return hasher.hexdigest()

    def row(self, offset: int) -> bytes:
        """The line that ends at an offset, without its end. Either line end may be in use."""
        end = offset - self.offset
        while end and self.data[end - 1] in b"\r\n":
            end -= 1
        found, least, reach = -1, end, 256
        while found < 0 and least:  # the part that is searched grows as needed
            least, reach = max(end - reach, 0), 4 * reach
            found = max(self.data.rfind(b"\n", least, end), self.data.rfind(b"\r", least, end))
        return self.data[found + 1 : end]


class Lines:
    """Iterate over the blocks of a byte stream; a line is returned as soon as it is there."""

    def __init__(self, stream: ByteStream, file: str, *, block: int = BLOCK, limit: int = LIMIT) -> None:
        self.file, self.limit, self.line, self.offset = file, limit, 1, 0
        self._stream, self._size, self._carry = stream, block, b""
        self._hasher = hashlib.sha256()

    def first(self) -> bytes:
        """Take the first line, without its end; of one that is too long, a part that is too long."""
        data = b""
        while (
            not (end := _first_end(data)) and len(data) <= self.limit + 2 and (more := self._stream.read1(self._size))
        ):
            data += more
        end = end or (0 if self._stream.cut else len(data))
        self._stream.put_back(data[end:])
        self._advance(data[:end])
        self.line += 1
        return data[:end].rstrip(b"\r\n")

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

    def __iter__(self) -> Iterator[Block]:
        while data := self._stream.read1(self._size):
            buffer = self._carry + data
            end = max(buffer.rfind(b"\n"), buffer.rfind(b"\r", 0, len(buffer) - 1)) + 1
            if end:
                self._carry = b""
                yield from self._blocks(buffer[:end])
            self._carry = buffer[end:]
            if len(self._carry) - self._carry.endswith(b"\r") > self.limit:
                yield self._skip_line()
        if self._carry and not self._stream.cut:  # half a line of a damaged file is no row
            yield from self._blocks(self._carry)

    def _blocks(self, data: bytes) -> Iterator[Block]:
        for block in Block(data, self.line, self.offset, self._hasher).split(lines=_LINES):
            self.offset += len(block.data)
            self.line += _count(block.data)
            yield block

    def _skip_line(self) -> Block:
        """Read on to the end of a line that is too long, and keep none of it."""
        reject = Rejected(self.file, self.line, self.limit + 1, too_long(self.limit))
        skipped = Block(b"", self.line, self.offset, self._hasher.copy(), [reject])
        data, more = self._carry, b"?"
        while not (end := _first_end(data)) and more:
            kept = b"\r" if data.endswith(b"\r") else b""  # a \n may follow
            self._advance(data[: len(data) - len(kept)])
            more = self._stream.read1(self._size)
            data = kept + more
        end = end or len(data)
        self._advance(data[:end])
        self._carry = data[end:]
        self.line += 1
        return skipped

    def _advance(self, data: bytes) -> None:
        self._hasher.update(data)
        self.offset += len(data)


def _count(data: bytes) -> int:
    """How many lines there are."""
    ends = data.count(b"\n")
    if b"\r" in data:
        ends += data.count(b"\r") - data.count(b"\r\n")
    return ends + (bool(data) and not data.endswith((b"\n", b"\r")))


def _first_end(data: bytes) -> int:
    r"""Where the first line ends; 0 where it does not, or where a \r may still be followed by \n."""
    feed, back = data.find(b"\n"), data.find(b"\r", 0, len(data) - 1)
    if feed < 0 and back < 0:
        return 0
    if back >= 0 and (feed < 0 or back < feed - 1):
        return back + 1
    return feed + 1
