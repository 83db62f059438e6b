"""What is in a file of a data set, whatever its bytes: tables and arrays, and a digest of the numbers in them.

Who makes a table anew from its origin writes numbers in another way, and compresses them in another; the numbers are
the same. So a table is known by its columns, in their order, and by what float64 makes of its cells; arrays by their
names, dtypes and numbers.
"""

import csv
import gzip
import hashlib
import zlib
from collections.abc import Mapping
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from filtax.streams.forms import FORMS, Form

__all__ = ["described", "digest_of_numbers", "read_file", "strangeness"]


def read_file(path: Path, file: str = "") -> dict[str, np.ndarray]:
    r"""A `.csv.gz` by columns, float64 where all cells are numbers or empty (NaN), else text; a `.npz` by arrays.

    Args:
        path: The file.
        file: What it is to be called, if it has another name as long as it is not known to be whole.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "t.csv.gz"
    ...     _ = path.write_bytes(gzip.compress(b"a,b\n1,x\n,y\n"))
    ...     read_file(path)
    {'a': array([ 1., nan]), 'b': array(['x', 'y'], dtype='<U1')}
    """
    if (file or path.name).endswith(".npz"):
        with np.load(path, allow_pickle=False) as arrays:
            return dict(arrays)
    with gzip.open(path, "rt", newline="", encoding="utf-8") as opened:
        rows = csv.reader(opened)
        head = next(rows)
        return dict(zip(head, map(_column, zip(*rows, strict=True)), strict=True))


def digest_of_numbers(columns: Mapping[str, np.ndarray], ordered: bool = True) -> str:
    """sha256 of names, dtypes and numbers; -0.0 is 0.0, and every NaN the same.

    Args:
        columns: By name.
        ordered: Whether their order counts, as it does in a table.

    >>> given = {"a": np.array([0.0, np.nan])}, {"a": np.array([-0.0, -np.nan])}, {"b": np.array([0.0, np.nan])}
    >>> len({digest_of_numbers(each) for each in given})
    2
    """
    total = hashlib.sha256()
    for name in columns if ordered else sorted(columns):
        values = np.asarray(columns[name])
        text = values.dtype.kind == "U"
        total.update(f"{name}\n{'text' if text else values.dtype.str} {values.shape}\n".encode())
        if text:
            total.update("\n".join(values.tolist()).encode())
        else:
            plain = np.where(np.isnan(values), np.nan, values + 0.0) if values.dtype.kind == "f" else values
            total.update(np.ascontiguousarray(plain, values.dtype).tobytes())
    return total.hexdigest()


def described(file: str) -> str:
    """What a table or arrays hold, in words, to make them anew; "" of other files.

    >>> described("well_log.csv.gz")
    '4050 rows under the columns nmr, the first row 1.3353060e+05'
    """
    form = FORMS.get(file)
    if form is None:
        return ""
    if file.endswith(".npz"):
        return f"arrays {form.first}"
    return f"{form.rows} rows under the columns {','.join(form.columns)}, the first row {form.first}"


def strangeness(path: Path, file: str) -> str | None:
    """What sets the content of a file apart from what it should be, in words; "" if nothing does.

    None if the file has no form that is known, or cannot be read.

    >>> strangeness(Path("nowhere"), "tcpd/annotations.json") is None
    True
    """
    form = FORMS.get(file)
    if form is None:
        return None
    try:
        columns = read_file(path, file)
    except (OSError, EOFError, TypeError, ValueError, StopIteration, zlib.error, BadZipFile, csv.Error):
        return None
    if digest_of_numbers(columns, file.endswith(".gz")) == form.digest:
        return ""
    return _difference(columns, form, "numbers" if file.endswith(".gz") else "numbers or dtypes")


def _difference(columns: Mapping[str, np.ndarray], form: Form, numbers: str) -> str:
    lacks, more = ([n for n in a if n not in b] for a, b in ((form.columns, columns), (columns, form.columns)))
    if lacks or more:
        return " and ".join([*(f"it lacks {n}" for n in lacks[:3]), *(f"it has {n} more" for n in more[:3])])
    if numbers == "numbers" and tuple(columns) != form.columns:
        return f"its columns are not in the order {', '.join(form.columns)}"
    count = len(next(iter(columns.values())))
    return f"its {numbers} are others" if count == form.rows else f"it has {count} rows, not {form.rows}"


def _column(cells: tuple[str, ...]) -> np.ndarray:
    try:
        return np.array([float(cell) if cell else np.nan for cell in cells])
    except ValueError:
        return np.array(cells)
