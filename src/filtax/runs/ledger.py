"""What a run writes as it goes: a record of each row, a line for each event. After a crash both are cut back.

Records have one length, events are lines of JSON; a checkpoint says how many of each it knows of, and a run that goes
on cuts off what lies behind. So a row is neither lost nor written twice, whenever the process ended. It also holds the
checksum (CRC-32) of each, so that what was changed on disk is refused and not reported.
"""

import errno
import json
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from filtax.io import Damaged
from filtax.io._files import open_no_link, unwritten

__all__ = ["EVENTS", "RECORDS", "Ledger", "read_events", "read_records", "record_type"]

EVENTS, RECORDS = "events.jsonl", "checkpoint/rows.bin"
STEP = 1 << 20  # bytes read at once to check them
SCAN = 1 << 14  # rows read at once to find those of a series
CHANGED = "its checksum does not agree: it was changed on disk; start anew in another folder"


def record_type(names: Sequence[str], clock: bool) -> np.dtype:
    """The type of a record: line, file, series and time of a row, then what is told of it.

    >>> record_type(["y"], clock=True).names
    ('line', 'file', 'series', 'time', 'y')
    """
    head = [("line", "<i8"), ("file", "<i4"), ("series", "<i4"), ("time", "<i8" if clock else "<f8")]
    return np.dtype(head + [(name, "<f8") for name in names])


class Ledger:
    """The two files of a run, open for writing at the place where they were left.

    >>> import tempfile
    >>> kind = record_type(["y"], clock=False)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Path(folder, "checkpoint").mkdir()
    ...     ledger = Ledger(Path(folder), kind, 0, 0)
    ...     ledger.append(np.zeros(3, kind))
    ...     kept = ledger.flush()
    ...     ledger.append(np.zeros(5, kind))
    ...     ledger.close()  # as if the process had ended here
    ...     Ledger(Path(folder), kind, *kept).close()
    ...     Path(folder, RECORDS).stat().st_size // kind.itemsize
    3
    """

    def __init__(self, root: Path, kind: np.dtype, rows: int, events: int, sums: Sequence[int] | None = None) -> None:
        self.kind = kind
        of_records, of_events = sums or (None, None)
        self._records, of_records = _open_at(root / RECORDS, rows * kind.itemsize, of_records)
        try:
            self._events, of_events = _open_at(root / EVENTS, events, of_events)
        except BaseException:
            self._records.close()
            raise
        self.rows, self.sums = rows, [of_records, of_events]

    def append(self, records: np.ndarray) -> None:
        """Write the records of some rows."""
        content = records.astype(self.kind, copy=False).tobytes()
        with _named(self._records, len(content)):
            self._records.write(content)
        self.rows, self.sums[0] = self.rows + len(records), zlib.crc32(content, self.sums[0])

    def tell(self, event: Mapping[str, Any]) -> None:
        """Write an event."""
        line = json.dumps(event, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"
        with _named(self._events, len(line)):
            self._events.write(line)
        self.sums[1] = zlib.crc32(line, self.sums[1])

    def earlier(self, row: int, back: int) -> int:
        """Number of the row so many rows of its own series before another; of its first one where there are fewer.

        Args:
            row: Number of a row that was appended, from 1.
            back: How many rows, at least 0.

        >>> import tempfile
        >>> kind = np.dtype([("series", "i4")])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Path(folder, "checkpoint").mkdir()
        ...     ledger = Ledger(Path(folder), kind, 0, 0)
        ...     ledger.append(np.array([7, 8, 7, 8, 8, 7], kind))
        ...     found = [ledger.earlier(6, back) for back in (0, 1, 2, 3)]
        ...     ledger.close()
        >>> found
        [6, 3, 1, 1]
        """
        place, mine = self._records.tell(), self._series(row - 1, row)[0]
        own: list[int] = []
        for end in range(row, 0, -SCAN):
            start = max(0, end - SCAN)
            own += (start + 1 + np.flatnonzero(self._series(start, end) == mine)[::-1]).tolist()
            if len(own) > back:
                break
        self._records.seek(place)
        return own[min(back, len(own) - 1)]

    def record(self, row: int) -> Any:
        """What was appended of a row; its number is from 1."""
        place = self._records.tell()
        [own] = self._read(row - 1, row)
        self._records.seek(place)
        return own

    def _series(self, start: int, end: int) -> np.ndarray:
        return self._read(start, end)["series"]

    def _read(self, start: int, end: int) -> np.ndarray:
        self._records.seek(start * self.kind.itemsize)
        return np.frombuffer(self._records.read((end - start) * self.kind.itemsize), self.kind)

    def flush(self) -> tuple[int, int]:
        """See to it that all is on disk; how many rows, and how many bytes of events."""
        for file in (self._records, self._events):
            with _named(file):
                file.flush()
                os.fsync(file.fileno())
        return self.rows, self._events.tell()

    def close(self) -> None:
        """Close the files. What was not flushed is not counted on by any checkpoint, and may be lost."""
        for file in (self._records, self._events):
            with suppress(OSError):
                file.close()


@contextmanager
def _named(file: Any, added: int = 0) -> Iterator[None]:
    whole = file.tell() + added
    try:
        yield
    except OSError as problem:
        grown = problem.errno == errno.EFBIG  # then it is the file that is too large, not what was to be added
        needed = f"at least {whole}" if grown else added or None
        raise unwritten(file.name, problem, needed, "then resume the run, which is intact") from problem


def _open_at(path: Path, size: int, told: int | None) -> tuple[Any, int]:
    """A file to be written on behind its first bytes, and their checksum."""
    try:
        file = open(path, "r+b" if path.exists() else "w+b", opener=open_no_link)
    except OSError as problem:
        raise unwritten(path, problem) from problem
    if os.fstat(file.fileno()).st_size < size:
        file.close()
        raise Damaged(f"{path} is shorter than its checkpoint says ({size} bytes); start anew in another folder.")
    found = _sum_of(file, size)
    if told is not None and found != told:
        file.close()
        raise Damaged(f"{path}: {CHANGED}.")
    file.truncate(size)
    file.seek(size)
    return file, found


def _sum_of(file: Any, size: int) -> int:
    """Checksum of the first bytes of a file that stands at its start."""
    found = 0
    for start in range(0, size, STEP):
        found = zlib.crc32(file.read(min(STEP, size - start)), found)
    return found


def read_records(
    root: Path, kind: np.dtype, rows: int, step: int = 65536, told: int | None = None
) -> Iterator[np.ndarray]:
    """Read records, some at a time; behind the last one, refuse them if their checksum is not the one told.

    >>> list(read_records(Path("nowhere"), record_type([], clock=False), 0))
    []
    """
    if not rows:
        return
    found = 0
    with open(root / RECORDS, "rb") as file:
        for start in range(0, rows, step):
            count = min(step, rows - start)
            content = file.read(count * kind.itemsize)
            if len(content) < count * kind.itemsize:
                raise Damaged(f"{root / RECORDS} is shorter than its checkpoint says; start anew in another folder.")
            found = zlib.crc32(content, found)
            yield np.frombuffer(content, kind)
    if told is not None and found != told:
        raise Damaged(f"{root / RECORDS}: {CHANGED}.")


def read_events(root: Path, size: int, told: int | None = None) -> Iterator[dict[str, Any]]:
    """Read the events of a run, as far as its checkpoint knows of them; behind that may lie half a line.

    >>> list(read_events(Path("nowhere"), 0))
    []
    """
    path = root / EVENTS
    if not size:
        return
    with open(path, "rb") as lines:
        if told is not None and _sum_of(lines, size) != told:
            raise Damaged(f"{path}: {CHANGED}.")
        lines.seek(0)
        while lines.tell() < size:
            try:
                yield json.loads(lines.readline())
            except ValueError:
                raise Damaged(f"{path} holds a line that is no event; resume the run, or start anew.") from None
