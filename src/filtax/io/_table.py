"""Open a user's table and read it in chunks: the same rows from every format, and where each of them stood.

The names of a source become files, and their first bytes say which format they have.
"""

import difflib
import glob
import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from filtax.io._arrow import ParquetFile
from filtax.io._clock import Order, latest_times
from filtax.io._errors import InputError, Rejected
from filtax.io._layout import Layout, Raw, Request, has_all
from filtax.io._rows import read_text
from filtax.io._text import BLOCK, LIMIT, ByteStream, show

NO_TARGET = "there is no target"
FORMATS = ("csv", "tsv", "json", "parquet")
_SUFFIXES = {".tsv": "tsv", ".tab": "tsv", ".csv": "csv", ".txt": "csv", ".jsonl": "json", ".ndjson": "json"}
_FOREIGN = {
    b"PK\x03\x04": "is a zip archive or a spreadsheet; unpack it, or save the sheet as CSV",
    b"\xff\xfe": "is UTF-16; save it as UTF-8",
    b"\xfe\xff": "is UTF-16; save it as UTF-8",
    b"BZh": "is packed with bzip2; unpack it, or pack it with gzip",
    b"\xfd7zXZ": "is packed with xz; unpack it, or pack it with gzip",
    b"\x28\xb5\x2f\xfd": "is packed with zstd; unpack it, or pack it with gzip",
}


@dataclass(frozen=True)
class Position:
    """How far a source has been read: the place behind a row, as plain values for a checkpoint.

    Attributes:
        files: Files read so far, the current one last; each with its size in bytes where it was read to the end.
        offset: Bytes of the current file behind the row (uncompressed); for Parquet, rows.
        line: The next line.
        digest: sha256 of the current file up to the offset; for Parquet, of the whole file.
        rows: Rows returned so far.
        layout: The columns and their kinds.
        latest: Time of the latest row, or of the latest row of each key.
        complete: Whether the row had a line end; one without may have grown since.

    Example:
        >>> import json
        >>> from filtax.io import Position
        >>> place = Position([["load.csv", None]], 1024, 33, "9f86d0", 31, {}, {})
        >>> Position.from_json(json.loads(json.dumps(place.to_json()))) == place
        True
    """

    files: list[list[Any]]
    offset: int
    line: int
    digest: str
    rows: int
    layout: dict[str, Any]
    latest: dict[str, Any] = field(default_factory=dict)
    complete: bool = True

    def to_json(self) -> dict[str, Any]:
        """Return the position as plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> "Position":
        """Read it back; refuse what is not one."""
        try:
            return cls(**plain)
        except TypeError:
            raise ValueError(f"Position.from_json: not a position in a source: {str(dict(plain))[:80]}.") from None


@dataclass(frozen=True, eq=False)
class Chunk:
    r"""Rows that came together; possibly none, where all were rejected.

    Attributes:
        numbers: Columns of numbers, shape (T, number of columns), NaN where missing.
        names: Their names.
        texts: Columns of text by name, each an array of T `str`, "" where missing.
        time: `datetime64[us]`, float64 for plain numbers, or None.
        key: T `str`, or None.
        line: Line of each row in its file.
        file: The file, as named.
        rejected: Rejected rows, in order.

    Example:
        >>> import pathlib, tempfile
        >>> from filtax.io import open_table
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder) / "t.csv"
        ...     _ = path.write_text("load,wind\n1,2\n3,NA\n")
        ...     [chunk] = open_table(path, target="load")
        >>> len(chunk), chunk.column("wind"), chunk.line
        (2, array([ 2., nan]), array([2, 3]))
    """

    numbers: np.ndarray
    names: tuple[str, ...]
    texts: Mapping[str, np.ndarray]
    time: np.ndarray | None
    key: np.ndarray | None
    line: np.ndarray
    file: str
    rejected: tuple[Rejected, ...]
    raw: Raw = field(repr=False)
    first: int = 0  # rows before this chunk
    latest: Mapping[str, Any] = field(default_factory=dict, repr=False)  # times before this chunk

    def __len__(self) -> int:
        return len(self.line)

    def column(self, name: str) -> np.ndarray:
        """Return one column, of numbers or of text."""
        return self.texts[name] if name in self.texts else self.numbers[:, self.names.index(name)]


class Table:
    r"""An open table: iterate over its chunks, once. Made by `open_table`.

    Attributes:
        layout: The columns that are read, and their kinds.
        rows: Rows returned so far.

    Example:
        >>> import pathlib, tempfile
        >>> from filtax.io import open_table
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder) / "t.csv"
        ...     _ = path.write_text("load\n1\n2\n3\n")
        ...     table = open_table(path, target="load")
        ...     [chunk] = table
        ...     place = table.position(chunk, 1)  # behind the second row
        ...     [rest] = open_table(path, target="load", start=place)
        >>> table.rows, place.line, rest.column("load")
        (3, 4, array([3.]))
    """

    def __init__(self, files: list[str], request: Request, on_error: str, start: Position | None) -> None:
        self._files, self._request, self._on_error, self._start = files, request, on_error, start
        self.layout: Layout | None = Layout.from_json(start.layout) if start else None
        self.rows = start.rows if start else 0
        self._order = Order(start.latest if start else {})
        self._raws = self._read_all()
        self._first = next(self._raws, None)  # so that a source that cannot be read is refused when it is opened
        if self._first is None and start is None:
            raise InputError(f"{files[-1]}: there is a header and not one row below it.")

    def close(self) -> None:
        """Close the file; a table that was read to its end has done so itself."""
        self._first = None
        self._raws.close()

    def __iter__(self) -> Iterator[Chunk]:
        try:
            while self._first is not None:
                file, raw = self._first
                chunk = self._finish(file, raw)
                self.rows += len(chunk)
                if len(chunk) or chunk.rejected:
                    yield chunk
                if chunk.rejected and self._on_error == "stop":
                    raise InputError(f"{chunk.rejected[0]}. {_what_to_do(chunk.rejected[0])}")
                self._first = next(self._raws, None)
        finally:
            self.close()

    def position(self, chunk: Chunk, row: int = -1) -> Position:
        """Say how far the source was read with a row of the chunk, to go on behind it: `open_table(..., start=...)`."""
        assert self.layout is not None
        row = range(len(chunk))[row] if len(chunk) else -1
        if row < 0:
            raise ValueError("Table.position: the chunk has no rows; keep the position of the one before.")
        raw, offset = chunk.raw, int(chunk.raw.offset[row])
        here = self._files.index(chunk.file)
        sizes = [[file, Path(self._request.at(file)).stat().st_size] for file in self._files[:here]]
        latest = latest_times(chunk.latest, chunk.time, chunk.key, row + 1)
        return Position(
            files=[*sizes, [chunk.file, None]],
            offset=offset,
            line=int(chunk.line[row]) + 1,
            digest=raw.digest(offset),
            rows=chunk.first + row + 1,
            layout=self.layout.to_json(),
            latest=latest,
            complete=not raw.unended,
        )

    def _read_all(self) -> Generator[tuple[str, Raw]]:
        begin = len(self._start.files) - 1 if self._start else 0
        if self._start:
            _check_files(self._files, self._start.files, self._request)
        for i, file in enumerate(self._files[begin:], begin):
            start = self._start if i == begin else None
            stream = ByteStream(file, self._request.at(file), self._request.block)
            try:
                for layout, raw in self._read_file(file, stream, start, self._files[i - 1] if i else ""):
                    self.layout = layout
                    yield file, raw
            finally:
                stream.close()

    def _read_file(
        self, file: str, stream: ByteStream, start: Position | None, before: str
    ) -> Iterator[tuple[Layout, Raw]]:
        form = format_of(file, stream.head, self._request.format)
        if form != "parquet":
            reached = (start.offset, start.line, start.digest, start.complete) if start else None
            yield from read_text(stream, file, form, self._request, layout=self.layout, before=before, reached=reached)
            return
        if file == "-":
            raise InputError("-: Parquet cannot be read from standard input; name the file.")
        if stream.packed:
            raise InputError(f"{file}:1:1: the Parquet file is packed with gzip; unpack it first, as with gunzip.")
        source = ParquetFile(file, self._request.at(file))
        if start and source.digest != start.digest:
            raise InputError(f"{file} has changed since it was read. Start a new run, or bring the old file back.")
        layout = self.layout or source.choose(self._request)
        has_all(file, source.names, layout, before)
        for raw in source.read(layout, start.offset if start else 0):
            yield layout, raw

    def _finish(self, file: str, raw: Raw) -> Chunk:
        """Read the times, reject rows that are out of order, and cut at the first fault if the run is to stop."""
        assert self.layout is not None
        before = dict(self._order.latest)
        if self._on_error == "stop":
            _reject_blank(file, raw, self.layout)
        time, self.layout = self._order.apply(file, raw, self.layout)
        if self._on_error == "stop":
            raw.stop()
            time = None if time is None else time[: len(raw.line)]
        key = raw.texts.get(self.layout.key) if self.layout.key else None
        texts = {name: raw.texts[name] for name in self.layout.texts if name in raw.texts}
        parts = (raw.numbers, self.layout.numbers, texts, time, key, raw.line, file, tuple(raw.rejected))
        return Chunk(*parts, raw, self.rows, before)


def open_table(
    source: str | Path,
    *,
    target: str | None = None,
    time: str | None = None,
    features: Sequence[str] | None = None,
    key: str | None = None,
    on_error: str = "reject",
    types: Mapping[str, str] | None = None,
    perhaps: Sequence[str] = (),
    start: Position | None = None,
    format: str | None = None,
    separator: str | None = None,
    line_limit: int = LIMIT,
    block: int = BLOCK,
    folder: str | Path | None = None,
) -> Table:
    r"""Open CSV, TSV, JSON lines or Parquet, packed with gzip or not; a pattern of files; or "-", standard input.

    Args:
        source: What to read. Files of a pattern follow one another in the order of their names.
        target: Column that is to be learned.
        time: Column of times; they must grow from row to row (of each key).
        features: Columns to learn from; all others by default.
        key: Column that separates one series from another.
        on_error: "reject" skips bad rows and returns a record of each; "stop" raises at the first, and at the first row
            without a target too, which is returned otherwise.
        types: "number" or "text", for columns that the first rows would show wrongly.
        perhaps: More columns that are read if they are there.
        start: Where an earlier reading ended; go on with the next row.
        format: One of csv, tsv, json, parquet; found from the content and the name otherwise.
        separator: Between the fields of a line; found from the header otherwise.
        line_limit: Bytes of the longest line that is read.
        block: Bytes that are read at a time.
        folder: Where a relative source lies; the working folder by default.

    Returns:
        The table, to be iterated over once. Memory does not grow with the number of rows.

    Raises:
        InputError: In one sentence, if the source cannot be read; or at the first bad row if `on_error` says so.

    Example:
        >>> import pathlib, tempfile
        >>> from filtax.io import open_table
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder) / "t.csv"
        ...     _ = path.write_text("when,load\n2024-01-01,1.5\n2024-01-02,x\n")
        ...     [chunk] = open_table(path, target="load", time="when", types={"load": "number"})
        >>> chunk.column("load"), str(chunk.time[0])[:10], chunk.rejected[0].reason
        (array([1.5]), '2024-01-01', "load: 'x' is not a number")
    """
    if on_error not in ("reject", "stop"):
        raise InputError(f"open_table(on_error=...) must be reject or stop, got {on_error!r:.40}.")
    if format is not None and format not in FORMATS:
        raise InputError(f"open_table(format=...) must be one of {', '.join(FORMATS)}, got {format!r:.40}.")
    if separator is not None and (len(separator) != 1 or separator in '"\r\n' or not separator.isascii()):
        raise InputError(f"open_table(separator=...) must be one ASCII character and no quote, got {separator!r:.40}.")
    if isinstance(features, str):
        raise InputError(f"open_table(features=...) must be a list of columns, got the text {show(features)}.")
    where = "" if folder is None else str(folder)
    files = expand(source, where)
    if start is not None and files == ["-"]:
        raise InputError("-: standard input cannot be read on from a position; name the file.")
    asked = (target, time, key, None if features is None else list(features), perhaps, dict(types or {}))
    return Table(files, Request(*asked, separator, format, block, line_limit, where), on_error, start)


def expand(source: str | Path, folder: str = "") -> list[str]:
    """List the files of a source: one, those of a pattern in the order of their names (2 before 10), or "-".

    Relative names are looked for in the folder, and stay as they are.
    """
    name = str(source)
    if name == "-":
        return [name]
    if not name or "\0" in name:
        raise InputError(f"the source {name!r:.40} is not the name of a file, a pattern, or - for standard input.")
    path = Path(folder, name)
    if path.is_dir():
        raise InputError(f'{name} is a folder; name a file, or a pattern such as "{path / "*.csv"}".')
    if path.exists():
        return [name]
    if not glob.has_magic(name):
        beside = [each.name for each in path.parent.iterdir()] if path.parent.is_dir() else []
        close = difflib.get_close_matches(path.name, beside, 1)
        raise InputError(f"{name} does not exist.{f' Did you mean {path.parent / close[0]}?' if close else ''}")
    found = glob.glob(name, recursive=True, root_dir=folder or None)
    files = [each for each in found if Path(folder, each).is_file()]
    if not files:
        raise InputError(f"{name}: no file fits this pattern.")
    return sorted(files, key=_natural)


def _natural(name: str) -> list[tuple[int, int, str]]:
    parts = re.split(r"([0-9]+)", name)
    return [(0, int(part), part) if part.isdecimal() else (1, 0, part) for part in parts]


def format_of(file: str, head: bytes, wanted: str | None = None) -> str:
    """Tell the format by the first bytes, then by the name; refuse what is no table."""
    if wanted is not None:
        return wanted
    if head.startswith(b"PAR1"):
        return "parquet"
    for magic, trouble in _FOREIGN.items():
        if head.startswith(magic):
            raise InputError(f"{file}:1:1: the file {trouble}.")
    at = head.split(b"\n", 1)[0].find(b"\0")
    if at >= 0:
        raise InputError(f"{file}:1:{at + 1}: there is a NUL; this looks like a binary file, not like a table.")
    suffix = Path(file.removesuffix(".gz")).suffix.lower()
    if suffix in (".parquet", ".pq"):
        raise InputError(f"{file}:1:1: not a Parquet file: it does not begin with PAR1.")
    body = head.lstrip()
    if body.startswith(b"[") and suffix in (".json", ".jsonl", ".ndjson"):
        raise InputError(f"{file}:1:1: the file is one JSON list; write one object a line.")
    return _SUFFIXES.get(suffix, "json" if body.startswith(b"{") else "csv")


def _check_files(files: list[str], read: list[list[Any]], request: Request) -> None:
    for i, (name, size) in enumerate(read):
        if i >= len(files) or files[i] != name:
            raise InputError(f"{name} was read before, and is no longer file {i + 1} of the source. Start a new run.")
        if size is not None and Path(request.at(name)).stat().st_size != size:
            raise InputError(f"{name} has changed since it was read: it had {size} bytes. Start a new run.")


def _reject_blank(file: str, raw: Raw, layout: Layout) -> None:
    """Reject the first row without a target, where reading ends; nothing if there is no target, as in a forecast."""
    target = layout.target
    if target is None or not len(raw.line):
        return
    text = layout.kinds[target] == "text"
    blank = raw.texts[target] == "" if text else np.isnan(raw.numbers[:, layout.numbers.index(target)])
    if blank.any():
        raw.reject(file, {int(np.argmax(blank)): (target, NO_TARGET)})


def _what_to_do(fault: Rejected) -> str:
    """How to go on where reading ended."""
    if fault.reason.endswith(f": {NO_TARGET}"):
        return "Fill it in, or have such rows kept and not learned (a run forecasts them): --on-error reject."
    return "Repair it, or have bad rows rejected and counted: --on-error reject."
