"""Parquet: rows are counted from 1 and stand in the place of lines; the types are those of the file."""

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from filtax.sources.layout import Layout, choose
from filtax.sources.numerals import show
from filtax.sources.raw import Raw
from filtax.sources.rejected import InputError, Rejected

__all__ = ["ParquetFile"]

ROWS = 16384  # rows read at a time


class ParquetFile:
    """A Parquet file and its columns, opened without reading the rows.

    >>> import pathlib, tempfile
    >>> import pyarrow as pa, pyarrow.parquet as pq
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = str(pathlib.Path(folder) / "t.parquet")
    ...     pq.write_table(pa.table({"a": [1.0, None]}), path)
    ...     file = ParquetFile(path)
    ...     next(file.read(Layout("a", None, None, ("a",), {"a": "number"}))).numbers.tolist()
    [[1.0], [nan]]
    """

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

    def kinds(self) -> dict[str, str]:
        """Tell numbers from text by the types of the columns; a column of another type has no kind."""
        import pyarrow.types as types

        kinds = {}
        for field in self._handle.schema_arrow:
            kind = field.type.value_type if types.is_dictionary(field.type) else field.type
            if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_null(kind):
                kinds[field.name] = "number"
            elif types.is_string(kind) or types.is_large_string(kind) or types.is_boolean(kind):
                kinds[field.name] = "text"
        return kinds

    def choose(self, asked: Mapping[str, Any], types: Mapping[str, str]) -> Layout:
        """Find the asked columns; their kinds are those of the file, and columns of other kinds are no features."""
        kinds = self.kinds()
        named = {asked["target"], asked["time"], asked["key"], *(asked["features"] or ())}
        names = [name for name in self.names if name in kinds or name in named]
        layout = choose(self.file, names, {}, asked, {**{n: kinds[n] for n in names if n in kinds}, **types})
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
            reject = Rejected(self.file, row + 1, 1, f"the rest of the file cannot be read: {_first_line(error)}")
            rest = Raw.empty(layout.numbers, layout.words)
            rest.rejected, rest.before = [reject], [0]
            yield rest

    def _raw(self, batch: Any, layout: Layout, row: int) -> Raw:
        import pyarrow as pa

        numbers = np.empty((batch.num_rows, len(layout.numbers)))
        for j, name in enumerate(layout.numbers):
            column = batch.column(name)
            if pa.types.is_decimal(column.type):  # by its digits, as in a CSV file: Arrow is off by a bit at times
                column = column.cast(pa.string())
            numbers[:, j] = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
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
            raw.drop(keep, {i: self._left_out(row + 1 + i, *fault) for i, fault in faults.items()})
        return raw

    def _left_out(self, row: int, name: str, reason: str) -> Rejected:
        return Rejected(self.file, row, self.place(0, name), f"{show(name)[1:-1]}: {reason}")


def _plain(column: Any) -> tuple[np.ndarray, np.ndarray]:
    """Calendar times in microseconds, everything else as objects; and which times lie beyond 64 bits of them."""
    import pyarrow.types as types

    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if not (types.is_timestamp(column.type) or types.is_date(column.type)):
        return np.array(column.to_pylist(), object), np.zeros(len(column), bool)
    given = column.to_numpy(zero_copy_only=False)
    times = given.astype("datetime64[us]")  # what does not fit comes out as another time
    return times, ~np.isnat(given) & (times.astype("datetime64[s]") != given.astype("datetime64[s]"))


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def _first_line(error: BaseException) -> str:
    text = str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
    return text[:120]
