"""From what a user names to files, from their first bytes to a format, and from a file of text to rows."""

import difflib
import glob
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from filtax.io._errors import InputError, Rejected
from filtax.io._layout import Layout, Raw, Request, choose, has_all
from filtax.io._rows import Header, header_of, place_of, read_block, sample_rows
from filtax.io._text import Block, ByteStream, Lines, decode

NAMELESS = "the column has no name"
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

    `layout` has the columns if they are known from the file `before`; `reached` the offset, line and digest up to which
    the file was read, and whether the last row had a line end.
    """
    lines = Lines(stream, file, block=request.block, limit=request.limit)
    header, notices, first = None, [], b"" if form == "json" else lines.first()
    if reached is not None:
        lines.skip(*reached[:3])
    if form != "json" and lines.offset:
        separator = request.separator or ("\t" if form == "tsv" else None)
        header, nameless = header_of(file, first, separator, request.limit)
        if layout is not None:
            has_all(file, header.names, layout, before)
        if reached is None:
            notices = [Rejected(file, 1, column, NAMELESS) for column in nameless]
    for block in lines:
        if reached is not None and block.offset == reached[0]:
            _check_whole_line(file, block, reached)
        if not block.rejected and not (block.data[:1024].strip(b"\r\n") or block.data.strip(b"\r\n")):
            continue
        if layout is None and not block.data:
            notices += block.rejected
            continue
        layout = layout or _decide(file, header, block, request)
        for piece, raw in read_block(block, header, layout, file, request.limit, request.quick):
            raw.rejected, raw.before, notices = notices + raw.rejected, [0] * len(notices) + raw.before, []
            raw.place = partial(_place, piece, header, request.limit)
            raw.unended = bool(piece.data) and not piece.data.endswith((b"\n", b"\r"))
            yield layout, raw
    if stream.cut and layout is None:
        raise InputError(f"{file}:1:1: {stream.cut}.")
    if stream.cut and layout is not None:
        yield layout, Raw.empty(layout, Rejected(file, lines.line, 1, stream.cut), unended=True)
    if lines.offset == 0:
        raise InputError(f"{file} is empty; a table begins with a line that names its columns.")
    if layout is None:  # there is a header alone: refuse what it does not have
        choose(file, [name for name in header.names if name] if header else [], {}, request)


def _place(block: Block, header: Header | None, limit: int, offset: int, name: str) -> int:
    """Character where a column begins, in the row that ends at an offset."""
    return place_of(decode(block.row(offset), limit), header, name)


def _check_whole_line(file: str, block: Block, reached: tuple[int, int, str, bool]) -> None:
    """The last row of a file may have had no line end; if text was added to it since, it was read too early."""
    _, line, _, complete = reached
    if not complete and not block.data.startswith((b"\n", b"\r")):
        raise InputError(
            f"{file} has changed since it was read: line {line - 1}, the last then, goes on. Start a new run, or end "
            "files with a line end."
        )


def _decide(file: str, header: Header | None, block: Block, request: Request) -> Layout:
    sample = sample_rows(block, header, request.limit)
    if not sample:
        raise InputError(f"{file}:{block.line}:1: there is no JSON object in the first lines.")
    return choose(file, [name for name in sample if name or header is None], sample, request)
