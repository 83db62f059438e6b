"""CSV and TSV, a block at a time, by pyarrow: for blocks that it reads exactly as the careful reader would.

The checks below see to that. What pyarrow is more lenient about (a stray quote, a NaN with a sign, an overflow, a
vanishing number, a row that a quote has swallowed) sends the whole block to the careful reader, which decides.
"""

import re
from functools import lru_cache
from typing import Any

import numpy as np

from filtax.sources.layout import Layout
from filtax.sources.lines import Block
from filtax.sources.numerals import MISSING
from filtax.sources.raw import Raw
from filtax.sources.separated import Header

__all__ = ["fast"]

SMALL = 1 << 12  # bytes below which a block is read with care at once
_VANISHING = [re.compile(mark + rb"-[0-9]{3}") for mark in (b"e", b"E")]  # 1e-400 is not 0
_ZEROS = b"0" * 200  # neither is this many of them before a digit, with an exponent of two digits


def fast(block: Block, header: Header, layout: Layout, limit: int) -> Raw | None:
    r"""Read a block, or return None where it takes more care.

    >>> import hashlib
    >>> layout = Layout("a", None, None, ("a", "b"), {"a": "number", "b": "number"})
    >>> data = b"1,2\n" * 2000
    >>> fast(Block(data, 2, 4, hashlib.sha256()), Header(("a", "b"), ","), layout, 100).numbers.shape
    (2000, 2)
    >>> fast(Block(data + b'1,"2"3\n', 2, 4, hashlib.sha256()), Header(("a", "b"), ","), layout, 100)
    """
    data = block.data
    if len(data) < SMALL or block.rejected or not _is_regular(data, header.separator.encode()):
        return None
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == 10) + 1
    if not data.endswith(b"\n"):
        ends = np.append(ends, len(data))
    if np.diff(ends, prepend=0).max() > limit:
        return None
    table = _parse(data, header, layout)
    if table is None or table.num_rows != len(ends):  # a line was blank, or swallowed by a quote
        return None
    numbers = np.empty((len(ends), len(layout.numbers)))
    missing = 0
    for j, name in enumerate(layout.numbers):
        column = table[str(header.index(name))]
        missing += column.null_count
        numbers[:, j] = column.to_numpy()
    if np.count_nonzero(~np.isfinite(numbers)) != missing:  # an infinity, or a NaN that is not spelled as one
        return None
    texts = {name: _texts(table[str(header.index(name))], name == layout.time) for name in layout.words}
    lines = block.line + np.arange(len(ends))
    return Raw(numbers, texts, lines, block.offset + ends, digest=block.digest)


def _is_regular(data: bytes, separator: bytes) -> bool:
    if b"\0" in data or (b"\r" in data and data.count(b"\r") != data.count(b"\r\n")):
        return False
    if data.startswith(b"\xef\xbb\xbf"):  # pyarrow would drop it, wherever in the file the block begins
        return False
    if not data.isascii():
        try:
            data.decode()
        except UnicodeDecodeError:
            return False
    if _ZEROS in data or any(pattern.search(data) for pattern in _VANISHING):
        return False
    if b'"' not in data:
        return True
    quotes = data.count(b'"')
    opening = data.count(separator + b'"') + data.count(b'\n"') + data.startswith(b'"')
    closing = sum(data.count(b'"' + mark) for mark in (separator, b"\n", b"\r\n")) + data.endswith(b'"')
    return opening == closing and opening + closing == quotes


@lru_cache(maxsize=8)
def _options(names: int, numbers: tuple[int, ...], coded: tuple[int, ...], plain: tuple[int, ...]) -> Any:
    import pyarrow as pa
    from pyarrow import csv

    types = {str(i): pa.float64() for i in numbers}
    types |= {str(i): pa.dictionary(pa.int32(), pa.string()) for i in coded}
    types |= {str(i): pa.string() for i in plain}
    return [str(i) for i in range(names)], csv.ConvertOptions(
        column_types=types, include_columns=list(types), null_values=list(MISSING), strings_can_be_null=False
    )


def _parse(data: bytes, header: Header, layout: Layout) -> Any:
    import pyarrow as pa
    from pyarrow import csv

    numbers = tuple(header.index(name) for name in layout.numbers)
    plain = tuple(header.index(name) for name in (layout.time,) if name)
    coded = tuple(header.index(name) for name in layout.words if name != layout.time)
    names, convert = _options(len(header.names), numbers, coded, plain)
    try:
        return csv.read_csv(
            pa.py_buffer(data),
            read_options=csv.ReadOptions(column_names=names, use_threads=False, block_size=len(data) + 1),
            parse_options=csv.ParseOptions(delimiter=header.separator),
            convert_options=convert,
        )
    except pa.ArrowException:
        return None


def _texts(column: Any, plain: bool) -> np.ndarray:
    """A text column as an array of str; equal texts share one object."""
    if plain:
        return column.to_numpy()
    whole = column.combine_chunks()
    whole = whole.chunk(0) if hasattr(whole, "chunk") else whole
    return np.asarray(whole.dictionary.to_numpy(zero_copy_only=False))[whole.indices.to_numpy(zero_copy_only=False)]
