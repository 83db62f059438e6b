"""The content of a file of a data set: tables, arrays and images, and a digest of the numbers in them.

A table that is made again from its origin has its numbers written otherwise, and is compressed otherwise; the numbers
are the same. So a table is recognised by its columns, in order, and by the float64 of its cells; arrays by names,
dtypes and numbers.
"""

import csv
import gzip
import hashlib
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from filtax.datasets._registry import File

UNREADABLE = (OSError, EOFError, IndexError, TypeError, ValueError, csv.Error, struct.error, zlib.error, BadZipFile)


def read_file(path: Path, file: str) -> dict[str, np.ndarray]:
    """Read a table by columns, float64 or text; arrays by name; images as one array without a name.

    Args:
        path: Where the file is.
        file: Its name in the registry, which tells its form: `.csv.gz`, `.npz`, or `-ubyte.gz` (IDX).
    """
    if file.endswith(".npz"):
        with np.load(path, allow_pickle=False) as arrays:
            return dict(arrays)
    if file.endswith("-ubyte.gz"):
        data = gzip.decompress(path.read_bytes())
        start = 4 + 4 * data[3]  # behind the length of each axis
        return {"": np.frombuffer(data, np.uint8, offset=start).reshape(struct.unpack(f">{data[3]}I", data[4:start]))}
    with gzip.open(path, "rt", newline="", encoding="utf-8") as opened:
        rows = csv.reader(opened)
        head = next(rows, [])
        return dict(zip(head, map(_column, zip(*rows, strict=True)), strict=True))


def damage(path: Path, file: str, wanted: File) -> str:
    """Return what is wrong with a file, in words; empty if it is whole."""
    with path.open("rb") as opened:
        digest = hashlib.file_digest(opened, "sha256").hexdigest()
    if digest == wanted.sha256:
        return ""
    wrong = f"its sha256 is {digest}, not {wanted.sha256}"
    if not wanted.numbers:
        return wrong
    try:
        content = read_file(path, file)
    except UNREADABLE:
        return wrong
    if numbers_digest(content, ordered=file.endswith(".csv.gz")) == wanted.numbers:
        return ""
    return f"{wrong}, and {_difference(content, wanted, file)}"


def numbers_digest(content: Mapping[str, np.ndarray], ordered: bool = True) -> str:
    """Return the sha256 of names, dtypes and numbers; -0.0 counts as 0.0, and every NaN as the same.

    Args:
        content: Columns or arrays by name.
        ordered: Whether their order counts, as it does in a table.
    """
    total = hashlib.sha256()
    for name in content if ordered else sorted(content):
        values = np.asarray(content[name])
        is_text = values.dtype.kind == "U"
        total.update(f"{name}\n{'text' if is_text else values.dtype.str} {values.shape}\n".encode())
        if is_text:
            total.update("\n".join(values.tolist()).encode())
        else:
            plain = np.where(np.isnan(values), np.nan, values + 0.0) if values.dtype.kind == "f" else values
            total.update(np.ascontiguousarray(plain, values.dtype).tobytes())
    return total.hexdigest()


def _difference(content: Mapping[str, np.ndarray], wanted: File, file: str) -> str:
    names = tuple(wanted.columns.split()) or ("",)
    lacks, more = ([n for n in a if n not in b] for a, b in ((names, content), (content, names)))
    if lacks or more:
        return " and ".join([*(f"it lacks {n}" for n in lacks[:3]), *(f"it has {n} more" for n in more[:3])])
    if file.endswith(".csv.gz") and tuple(content) != names:
        return f"its columns are not in the order {', '.join(names)}"
    count = len(next(iter(content.values())))
    if wanted.rows not in (0, count):
        return f"it has {count} rows, not {wanted.rows}"
    return "its numbers differ" if file.endswith(".csv.gz") else "its numbers or dtypes differ"


def _column(cells: tuple[str, ...]) -> np.ndarray:
    """One column: float64 where all cells are numbers or empty (NaN), else text."""
    try:
        return np.array([float(cell) if cell else np.nan for cell in cells])
    except ValueError:
        return np.array(cells)
