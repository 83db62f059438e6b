"""Parquet: rows are counted from 1 and stand in the place of lines; the types are those of the file."""

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from filtax.io._errors import InputError, Rejected
from filtax.io._layout import Layout, Raw, Request, choose
from filtax.io._text import show

ROWS = 16384  # rows read at a time


class ParquetFile:
    """A Parquet file and its columns, opened without reading the rows."""

    def __init__(self, file: str, at: str | None = None) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        self.file, self._at = file, at or file
        try:
            self._handle = parquet.ParquetFile(self._at, page_checksum_verification=True)
            self.names = tuple(self._handle.schema_arrow.names)
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise InputError(f"{file}:1:1: not a Parquet file that can be read: {_first_line(error)}.") from None
        self._digest: str | None = None
        self._places: dict[str, int] = {}
        for i, name in enumerate(self.names):
            if self._places.setdefault(name, i) < i:
                raise InputError(f"{file}:1:{i + 1}: two columns are called {show(name)}; rename one of them.")

    def choose(self, request: Request) -> Layout:
        """Find the asked columns; their kinds are those of the file, and columns of other kinds are no features."""
        kinds = {field.name: kind for field in self._handle.schema_arrow if (kind := kind_of(field.type))}
        named = {request.target, request.time, request.key, *(request.features or ())}
        names = [name for name in self.names if name in kinds or name in named]
        types = {**{name: kinds[name] for name in names if name in kinds}, **request.types}
        layout = choose(self.file, names, {}, replace(request, types=types))
        for name in layout.columns:
            if name not in kinds:
                place = self.place(0, name)
                raise InputError(f"{self.file}:1:{place}: column {show(name)} holds neither numbers nor text.")
        return layout

    def place(self, offset: int, name: str) -> int:
        """Number of a column, from 1; the same in every row."""
        return self._places[name] + 1

    def digest(self, offset: int) -> str:
        """Return the sha256 of the whole file: what was read of it cannot be told apart."""
        if self._digest is None:
            with Path(self._at).open("rb") as stream:
                self._digest = hashlib.file_digest(stream, "sha256").hexdigest()
        return self._digest

    def read(self, layout: Layout, start: int = 0) -> Iterator[Raw]:
        """Read the rows, from row number `start` on."""
        import pyarrow as pa

        row = 0
        try:
            for batch in self._handle.iter_batches(batch_size=ROWS, columns=list(layout.wanted)):
                if row + batch.num_rows > start:
                    skipped = max(start - row, 0)
                    yield self._raw(batch.slice(skipped), layout, row + skipped)
                row += batch.num_rows
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            reason = f"the rest of the file cannot be read: {_first_line(error)}"
            yield Raw.left_out(layout, Rejected(self.file, row + 1, 1, reason))

    def _raw(self, batch: Any, layout: Layout, row: int) -> Raw:
        numbers = np.empty((batch.num_rows, len(layout.numbers)))
        for j, name in enumerate(layout.numbers):
            numbers[:, j] = floats(batch.column(name))
        texts, moments, faults = {}, None, {}
        for name in layout.words:
            values, beyond = _plain(batch.column(name))
            faults |= dict.fromkeys(np.flatnonzero(beyond).tolist(), (name, "the time is too far from 1970"))
            if name == layout.time:
                moments = values
            else:
                texts[name] = np.array([_word(value) for value in values.tolist()] or [], object)
        lines = row + 1 + np.arange(batch.num_rows)
        raw = Raw(numbers, texts, lines, lines.copy(), digest=self.digest, place=self.place, moments=moments)
        infinite = np.isinf(raw.numbers)
        for i in np.flatnonzero(infinite.any(axis=1)).tolist():
            faults[i] = (layout.numbers[int(np.argmax(infinite[i]))], "the number is infinite")
        if faults:
            keep = ~np.isin(np.arange(len(lines)), list(faults))
            raw.drop(keep, {i: raw.record(self.file, i, *fault) for i, fault in faults.items()})
        return raw


def kind_of(kind: Any) -> str | None:
    """What a column of an Arrow type holds: "number", "text", or None if it is neither."""
    from pyarrow import types

    kind = kind.value_type if types.is_dictionary(kind) else kind
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_null(kind):
        return "number"
    text = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
    return "text" if text or types.is_boolean(kind) else None


def floats(column: Any) -> np.ndarray:
    """An Arrow array of numbers as float64, NaN for null."""
    import pyarrow as pa

    if pa.types.is_decimal(column.type):  # by its digits, as in a CSV file: Arrow is off by a bit at times
        column = column.cast(pa.string())
    return column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)


def microseconds(given: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Times of any unit in microseconds; and which lie beyond 64 bits of them."""
    times = given.astype("datetime64[us]")  # what does not fit comes out as another time
    return times, ~np.isnat(given) & (times.astype("datetime64[s]") != given.astype("datetime64[s]"))


def _plain(column: Any) -> tuple[np.ndarray, np.ndarray]:
    """Calendar times in microseconds, everything else as objects; and which times lie beyond 64 bits of them."""
    from pyarrow import types

    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if types.is_timestamp(column.type) or types.is_date(column.type):
        return microseconds(column.to_numpy(zero_copy_only=False))
    return np.array(column.to_pylist(), object), np.zeros(len(column), bool)


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def _first_line(error: BaseException) -> str:
    text = str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
    return text[:120]
