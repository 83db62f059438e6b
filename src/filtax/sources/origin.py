"""From what a user names to files, and from their names and first bytes to a format. What cannot be read is refused."""

import difflib
import glob
import re
from pathlib import Path

from filtax.sources.rejected import InputError

__all__ = ["FORMATS", "expand", "format_of"]

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

    >>> expand("-")
    ['-']
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


def format_of(file: str, head: bytes, wanted: str | None = None) -> str:
    """Tell the format by the first bytes, then by the name: "csv", "tsv", "json" or "parquet".

    >>> format_of("load.csv.gz", b"time,load"), format_of("-", b'{"load": 1}'), format_of("x", b"PAR1...")
    ('csv', 'json', 'parquet')
    """
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
    body = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if body.startswith(b"[") and suffix in (".json", ".jsonl", ".ndjson"):
        raise InputError(f"{file}:1:1: the file is one JSON list; write one object a line.")
    return _SUFFIXES.get(suffix, "json" if body.startswith(b"{") else "csv")


def _natural(name: str) -> list[tuple[int, int, str]]:
    parts = re.split(r"([0-9]+)", name)
    return [(0, int(part), part) if part.isdecimal() else (1, 0, part) for part in parts]
