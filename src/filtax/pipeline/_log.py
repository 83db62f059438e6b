"""Files that grow with a run, and are cut back to what a checkpoint counts on.

A mark (length, CRC-32) of each file is in the checkpoint. A run that goes on cuts off what lies behind, so that a row
is neither lost nor written twice; what was changed on disk is refused.
"""

import errno
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filtax.io import Damaged
from filtax.io._files import open_no_link, unwritten

STEP = 1 << 20  # bytes read at once
Mark = list[int]  # length and CRC-32


class Log:
    """A file that grows, open at the place where it was left.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "rows.bin")
    ...     log = Log(path, [0, 0])
    ...     log.append(b"one")
    ...     mark = log.flush()
    ...     log.append(b"and more")
    ...     log.close()  # as if the process had ended here
    ...     Log(path, mark).close()
    ...     path.read_bytes()
    b'one'
    """

    def __init__(self, path: Path, mark: Mark) -> None:
        self.path, (self.size, self.sum) = path, mark
        try:
            self._file = open(path, "r+b" if path.exists() else "w+b", opener=open_no_link)
        except OSError as problem:
            raise unwritten(path, problem) from problem
        try:
            check(path, mark)
        except BaseException:
            self.close()
            raise
        self._file.truncate(self.size)
        self._file.seek(self.size)

    def append(self, content: bytes) -> None:
        """Write more."""
        with self._named(len(content)):
            self._file.write(content)
        self.size, self.sum = self.size + len(content), zlib.crc32(content, self.sum)

    def flush(self) -> Mark:
        """Put all on disk, and return the mark of what is there."""
        with self._named():
            self._file.flush()
            os.fsync(self._file.fileno())
        return [self.size, self.sum]

    def close(self) -> None:
        """Close the file; what was not flushed may be lost, and no checkpoint counts on it."""
        with suppress(OSError):
            self._file.close()

    @contextmanager
    def _named(self, added: int = 0) -> Iterator[None]:
        try:
            yield
        except OSError as problem:
            grown = problem.errno == errno.EFBIG  # then the file is too large, not what was to be added
            waiting = self.size + added - os.fstat(self._file.fileno()).st_size
            needed = f"at least {self.size + added}" if grown else max(waiting, 1)
            raise unwritten(self.path, problem, needed, "then resume the run, which is intact") from problem


def check(path: Path, mark: Mark) -> None:
    """Refuse a file whose first bytes are not those of its mark."""
    size, wanted = mark
    if not size:
        return
    if not path.is_file() or path.stat().st_size < size:
        raise Damaged(f"{path} is shorter than its checkpoint says ({size} bytes); start in another folder.")
    found = 0
    with open(path, "rb") as file:
        for start in range(0, size, STEP):
            found = zlib.crc32(file.read(min(STEP, size - start)), found)
    if found != wanted:
        raise Damaged(
            f"{path}: its checksum does not agree: it was changed on disk; bring it back, or start in another folder."
        )
