"""From what a user names to files, from their first bytes to a format, and from a file of text to rows."""

import difflib
import glob
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from filtax.io._errors import InputError, Rejected
from filtax.io._jsonl import place_of, read_objects, sample_objects
from filtax.io._layout import Layout, Raw, Request, choose, has_all
from filtax.io._separated import Header, fields, header_of, read_separated, sample_rows, start_of
from filtax.io._text import Block, ByteStream, Lines, decode, too_long

FORMATS = ("csv", "tsv", "json", "parquet")
NAMELESS = "the column has no name"
_BOM = b"\xef\xbb\xbf"
_SUFFIXES = {".tsv": "tsv", ".tab": "tsv", ".csv": "csv", ".txt": "csv", ".jsonl": "json", ".ndjson": "json"}
_FOREIGN = {
    b"PK\x03\x04": "is a zip archive or a spreadsheet; unpack it, or save the sheet as CSV",
    b"\xff\xfe": "is UTF-16; save it as UTF-8",
    b"\xfe\xff": "is UTF-16; save it as UTF-8",
    b"BZh": "is packed with bzip2; unpack it, or pack it with gzip",
    b"\xfd7zXZ": "is packed with xz; unpack it, or pack it with gzip",
    b"\x28\xb5\x2f\xfd": "is packed with zstd; unpack it, or pack it with gzip",
}


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
    body = head.removeprefix(_BOM).lstrip()
    if body.startswith(b"[") and suffix in (".json", ".jsonl", ".ndjson"):
        raise InputError(f"{file}:1:1: the file is one JSON list; write one object a line.")
    return _SUFFIXES.get(suffix, "json" if body.startswith(b"{") else "csv")


def read_text(
    stream: ByteStream,
    file: str,
    form: str,
    request: Request,
    *,
    layout: Layout | None = None,
    before: str = "",
    reached: tuple[int, int, str, bool] | None = None,
) -> Iterator[tuple[Layout, Raw]]:
    """Read the rows of a file of text, CSV or JSON lines.

    Args:
        stream: Its bytes.
        file: Its name, as the user wrote it.
        form: Its format.
        request: What was asked for.
        layout: The columns, where they are known from the file `before`.
        before: See there.
        reached: Offset, line and digest up to which it was read, and whether the last row had a line end.
    """
    lines = Lines(stream, file, block=request.block, limit=request.limit)
    header, notices = None, []
    if reached is not None:
        header = None if form == "json" else _header_again(file, form, request)
        lines.skip(*reached[:3])
    for block in lines:
        if reached is not None and block.offset == reached[0]:
            _check_whole_line(file, block, reached)
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
    if stream.cut and layout is None:
        raise InputError(f"{file}:1:1: {stream.cut}.")
    if stream.cut and layout is not None:
        yield layout, Raw.left_out(layout, Rejected(file, lines.line, 1, stream.cut), unended=True)
    if lines.offset == 0:
        raise InputError(f"{file} is empty; a table begins with a line that names its columns.")
    if layout is None:  # there is a header alone: refuse what it does not have
        choose(file, [name for name in header.names if name] if header else [], {}, request)


def _read(
    block: Block, header: Header | None, layout: Layout, file: str, request: Request, notices: list[Rejected]
) -> Raw:
    if header is None:
        raw = read_objects(block, layout, file, request.limit)
    else:
        raw = read_separated(block, header, layout, file, request.limit, request.quick)
    raw.rejected, raw.before = notices + raw.rejected, [0] * len(notices) + raw.before
    raw.place = partial(_place, block, header)
    raw.unended = bool(block.data) and not block.data.endswith((b"\n", b"\r"))
    return raw


def _place(block: Block, header: Header | None, offset: int, name: str) -> int:
    """Character where a column begins, in the row that ends at an offset."""
    text = decode(block.row(offset))
    return place_of(text, name) if header is None else start_of(text, header.separator, header.index(name))


def _take_header(file: str, block: Block, form: str, request: Request) -> tuple[Header, list[Rejected], Block]:
    """The header, the columns that are left out for want of a name, and the rest of the block."""
    first = block.data.splitlines(keepends=True)[0] if block.data else b""
    if block.rejected or len(first) > request.limit:
        raise InputError(f"{file}:1:{request.limit + 1}: the header cannot be read: {too_long(request.limit)}.")
    line = first.rstrip(b"\r\n")
    header = header_of(file, line, request.separator or ("\t" if form == "tsv" else None))
    cells = zip(header.names, fields(decode(line), header.separator), strict=True)
    notices = [Rejected(file, 1, at + 1, NAMELESS) for name, (at, _) in cells if not name]
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


def _check_whole_line(file: str, block: Block, reached: tuple[int, int, str, bool]) -> None:
    """The last row of a file may have had no line end; if text was added to it since, it was read too early."""
    _, line, _, complete = reached
    if not complete and not block.data.startswith((b"\n", b"\r")):
        raise InputError(
            f"{file} has changed since it was read: line {line - 1}, the last then, goes on. Start anew, or end "
            "files with a line end."
        )


def _decide(file: str, header: Header | None, block: Block, request: Request) -> Layout:
    if header is not None:
        names = [name for name in header.names if name]
        return choose(file, names, sample_rows(block, header, request.limit), request)
    sample = sample_objects(block, request.limit)
    if not sample:
        raise InputError(f"{file}:{block.line}:1: there is no JSON object in the first lines.")
    return choose(file, list(sample), sample, request)
