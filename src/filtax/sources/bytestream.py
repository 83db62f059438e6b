"""Bytes of a file or of standard input, unpacked if they are gzip; what is there is handed on without waiting."""

import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["BLOCK", "ByteStream"]

BLOCK = 1 << 22  # bytes read at a time
_PACKED = 1 << 20  # compressed bytes read at a time


class ByteStream:
    """Read a file, or standard input for "-"; `head` shows the first bytes, `cut` why they ended too early.

    `packed` says whether they came as gzip.

    >>> import gzip, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "load.csv"  # packed, whatever its name says
    ...     _ = path.write_bytes(gzip.compress(b"a,b"))
    ...     stream = ByteStream(str(path))
    ...     stream.head, stream.read1(100), stream.read1(100), stream.cut
    ...     stream.close()
    (b'a,b', b'a,b', b'', None)
    """

    def __init__(self, file: str, block: int = BLOCK) -> None:
        self.cut: str | None = None
        self._raw: Any = sys.stdin.buffer if file == "-" else open(file, "rb")
        self.packed: bool = self._raw.peek(2)[:2] == b"\x1f\x8b"
        whole = file != "-" and Path(file).is_file()  # from a pipe, rows are wanted as they come
        self._read: Callable[[int], bytes] = self._raw.read if whole else self._raw.read1
        if self.packed:
            self._read = _Gunzip(self._read).read
        self._kept = self._next(block)
        self.head = self._kept[:512]

    def read1(self, size: int) -> bytes:
        """Return some bytes, at most `size`; none at the end."""
        if self._kept:
            data, self._kept = self._kept[:size], self._kept[size:]
            return data
        return self._next(size)

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
    """Unpack gzip, of several members if need be, as far as it goes."""

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
