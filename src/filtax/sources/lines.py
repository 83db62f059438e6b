r"""Bytes into blocks of whole lines, with the place of each block: file, first line, byte offset, digest so far.

A line ends with \n, \r\n or \r. No line may be longer than a limit; a longer one is skipped as it is read, so the
memory needed does not depend on it. What is compressed is counted as it reads uncompressed.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from filtax.sources.bytestream import BLOCK
from filtax.sources.rejected import InputError, Rejected

__all__ = ["LIMIT", "Block", "Lines", "too_long"]

LIMIT = 1 << 20  # bytes of the longest line
MOST = 1 << 15  # lines of a block: each may leave a record of why it was left out


@dataclass
class Block:
    r"""Whole lines: the bytes, where they begin, and the lines that were too long to be kept.

    >>> Block(b"1,2\n3,4\n", line=2, offset=4, hasher=hashlib.sha256()).count()
    2
    """

    data: bytes
    line: int
    offset: int
    hasher: Any  # of all bytes of the file before this block
    rejected: list[Rejected] = field(default_factory=list)

    def count(self) -> int:
        """Count the lines."""
        ends = self.data.count(b"\n")
        if b"\r" in self.data:
            ends += self.data.count(b"\r") - self.data.count(b"\r\n")
        return ends + (not self.data.endswith((b"\n", b"\r")) if self.data else 0)

    def digest(self, offset: int) -> str:
        """Return the sha256 of the file up to an offset inside this block."""
        hasher = self.hasher.copy()
        hasher.update(self.data[: offset - self.offset])
        return hasher.hexdigest()

    def tail(self, start: int, lines: int) -> "Block":
        """Drop the first `start` bytes, which hold that many lines."""
        hasher = self.hasher.copy()
        hasher.update(self.data[:start])
        return Block(self.data[start:], self.line + lines, self.offset + start, hasher, self.rejected)


class Lines:
    r"""Iterate over the blocks of a byte stream; a line is handed on as soon as it is there.

    >>> import io
    >>> [block.data for block in Lines(io.BytesIO(b"a,b\n1,2\n3"), "t.csv")]
    [b'a,b\n1,2\n', b'3']
    """

    def __init__(self, stream: Any, file: str, *, block: int = BLOCK, limit: int = LIMIT) -> None:
        self.file, self.limit, self.line, self.offset = file, limit, 1, 0
        self._stream, self._size, self._carry = stream, block, b""
        self._hasher = hashlib.sha256()

    def skip(self, offset: int, line: int, digest: str) -> None:
        """Go on behind a position that was reached before; refuse if what stands before it is no longer the same."""
        left = offset
        while left and (data := self._stream.read1(min(left, self._size))):
            self._hasher.update(data)
            left -= len(data)
        if left or self._hasher.hexdigest() != digest:
            raise InputError(
                f"{self.file} has changed since it was read up to line {line - 1}: what stands before is no longer the "
                "same. Start anew, or bring the old file back."
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
        if self._carry and not getattr(self._stream, "cut", None):  # half a line of a damaged file is no row
            yield from self._blocks(self._carry)

    def _blocks(self, data: bytes) -> Iterator[Block]:
        ends = np.flatnonzero(np.frombuffer(data, np.uint8) == (10 if b"\n" in data else 13)) + 1
        for start, end in pairwise(dict.fromkeys([0, *ends[MOST - 1 :: MOST].tolist(), len(data)])):
            yield self._block(data[start:end])

    def _block(self, data: bytes) -> Block:
        block = Block(data, self.line, self.offset, self._hasher.copy())
        self._hasher.update(data)
        self.offset += len(data)
        self.line += block.count()
        return block

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


def too_long(limit: int) -> str:
    """Word the refusal of a line.

    >>> too_long(100)
    'the line is longer than 100 bytes'
    """
    return f"the line is longer than {limit} bytes"


def _first_end(data: bytes) -> int:
    r"""Where the first line ends; 0 where it does not, or where a \r may still be followed by \n."""
    feed, back = data.find(b"\n"), data.find(b"\r", 0, len(data) - 1)
    if feed < 0 and back < 0:
        return 0
    if back >= 0 and (feed < 0 or back < feed - 1):
        return back + 1
    return feed + 1
