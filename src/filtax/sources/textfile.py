"""One file of text, CSV or JSON lines, from its first bytes to rows: header, layout, then block by block."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from filtax.sources.bytestream import ByteStream
from filtax.sources.fast import fast
from filtax.sources.jsonl import place_of, read_objects, sample_objects
from filtax.sources.layout import Layout, choose, has_all
from filtax.sources.lines import Block, Lines, too_long
from filtax.sources.position import Position
from filtax.sources.raw import Raw
from filtax.sources.rejected import NAMELESS, InputError, Rejected, RowError
from filtax.sources.separated import Header, careful, decode, fields, header_of, split, start_of

__all__ = ["Request", "read_text"]

_SAMPLE = 1000  # rows that tell numbers from text
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Request:
    """What the user asked for, the same for all files.

    >>> Request({"target": "load"}, {}).limit
    1048576
    """

    asked: Mapping[str, Any]
    types: Mapping[str, str]
    separator: str | None = None
    format: str | None = None
    block: int = 1 << 22
    limit: int = 1 << 20
    quick: bool = True  # False: the careful reader alone
    folder: str = ""  # where relative names are looked for; the working folder

    def at(self, file: str) -> str:
        """Where a file is, as seen from the working folder.

        >>> Request({}, {}, folder="data").at("load.csv"), Request({}, {}).at("load.csv")
        ('data/load.csv', 'load.csv')
        """
        return str(Path(self.folder, file)) if self.folder and file != "-" else file


def read_text(
    stream: ByteStream,
    file: str,
    form: str,
    request: Request,
    layout: Layout | None,
    start: Position | None,
    before: str = "",
) -> Iterator[tuple[Layout, Raw]]:
    r"""Read the rows of a file of text; `before` is the file that the layout is known from.

    >>> import pathlib, tempfile
    >>> request = Request({"target": "a", "time": None, "key": None, "features": None}, {})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = str(pathlib.Path(folder) / "t.csv")
    ...     _ = pathlib.Path(path).write_text("a,b\n1,2\n")
    ...     stream = ByteStream(path)
    ...     [raw.numbers.tolist() for _, raw in read_text(stream, path, "csv", request, None, None)]
    ...     stream.close()
    [[[1.0, 2.0]]]
    """
    lines = Lines(stream, file, block=request.block, limit=request.limit)
    header, notices = None, []
    if start is not None:
        header = None if form == "json" else _header_again(file, form, request)
        lines.skip(start.offset, start.line, start.digest)
    for block in lines:
        if start is not None and block.offset == start.offset:
            _check_whole_line(file, block, start)
        if block.offset == 0 and block.data.startswith(_BOM):
            block = block.tail(len(_BOM), 0)
        if form != "json" and header is None:
            header, notices, block = _take_header(file, block, form, request)
            if layout is not None:
                has_all(file, header.names, layout, before)
        if block.rejected or block.data[:1024].strip(b"\r\n") or block.data.strip(b"\r\n"):
            if layout is None and not block.data:
                notices += block.rejected
                continue
            layout = layout or _decide(file, header, block, request)
            yield layout, _read(block, header, layout, file, request, notices)
            notices = []
    if stream.cut:
        yield _cut(file, stream.cut, lines, layout)
    if lines.offset == 0:
        raise InputError(f"{file} is empty; a table begins with a line that names its columns.")
    if layout is None:
        choose(file, [name for name in header.names if name] if header else [], {}, request.asked, request.types)


def _read(
    block: Block, header: Header | None, layout: Layout, file: str, request: Request, notices: list[Rejected]
) -> Raw:
    if header is None:
        raw = read_objects(block, layout, file, request.limit)
    else:
        quick = fast(block, header, layout, request.limit) if request.quick else None
        raw = careful(block, header, layout, file, request.limit) if quick is None else quick
    raw.rejected, raw.before = notices + raw.rejected, [0] * len(notices) + raw.before
    raw.place = partial(_place, block, header)
    raw.unended = bool(block.data) and not block.data.endswith((b"\n", b"\r"))
    return raw


def _place(block: Block, header: Header | None, offset: int, name: str) -> int:
    """Character where a column begins, in the row that ends at an offset."""
    end = offset - block.offset
    while end and block.data[end - 1] in b"\r\n":
        end -= 1
    text = decode(block.data[_begin(block.data, end) : end])
    if header is None:
        return place_of(text, name)
    return start_of(text, header.separator, header.index(name))


def _begin(data: bytes, end: int) -> int:
    """Where the line begins that ends there. Either line end may be in use: what is looked through grows as needed."""
    found, least, reach = -1, end, 256
    while found < 0 and least:
        least, reach = max(end - reach, 0), 4 * reach
        found = max(data.rfind(b"\n", least, end), data.rfind(b"\r", least, end))
    return found + 1


def _take_header(file: str, block: Block, form: str, request: Request) -> tuple[Header, list[Rejected], Block]:
    """The header, the columns that are left out for want of a name, and the rest of the block."""
    first = block.data.splitlines(keepends=True)[0] if block.data else b""
    if block.rejected or len(first) > request.limit:
        raise InputError(f"{file}:1:{request.limit + 1}: the header cannot be read: {too_long(request.limit)}.")
    line = first.rstrip(b"\r\n")
    header = header_of(file, line, request.separator or ("\t" if form == "tsv" else None))
    text = decode(line)
    notices = [
        Rejected(file, 1, at + 1, NAMELESS)
        for name, (at, _) in zip(header.names, fields(text, header.separator), strict=True)
        if not name
    ]
    return header, notices, block.tail(len(first), 1)


def _header_again(file: str, form: str, request: Request) -> Header:
    stream = ByteStream(request.at(file))
    try:
        for block in Lines(stream, file, block=request.block, limit=request.limit):
            block = block.tail(len(_BOM), 0) if block.data.startswith(_BOM) else block
            return _take_header(file, block, form, request)[0]
    finally:
        stream.close()
    raise InputError(f"{file} has changed since it was read: it is empty now.")


def _check_whole_line(file: str, block: Block, start: Position) -> None:
    """The last row of a file may have had no line end; if text was added to it since, it was read too early."""
    ended = start.complete or block.data.startswith((b"\n", b"\r"))
    if not ended:
        raise InputError(
            f"{file} has changed since it was read: line {start.line - 1}, the last then, goes on. Start anew, or end "
            "files with a line end."
        )


def _decide(file: str, header: Header | None, block: Block, request: Request) -> Layout:
    if header is None:
        sample = sample_objects(block, request.limit)
        if not sample:
            raise InputError(f"{file}:{block.line}:1: there is no JSON object in the first lines.")
        return choose(file, list(sample), sample, request.asked, request.types)
    rows = []
    for data in block.data.splitlines()[:_SAMPLE]:
        try:
            fields = split(decode(data), header.separator) if len(data) <= request.limit else []
        except RowError:
            continue
        if len(fields) == len(header.names):
            rows.append(fields)
    columns = zip(header.names, zip(*rows, strict=True), strict=True) if rows else ()
    names = [name for name in header.names if name]
    return choose(file, names, dict(columns), request.asked, request.types)


def _cut(file: str, reason: str, lines: Lines, layout: Layout | None) -> tuple[Layout, Raw]:
    if layout is None:
        raise InputError(f"{file}:1:1: {reason}.")
    raw = Raw.empty(layout.numbers, layout.words)
    raw.rejected, raw.before, raw.unended = [Rejected(file, lines.line, 1, reason)], [0], True
    return layout, raw
