"""Arrow: tables in memory as numpy arrays by name, and Parquet files, whose rows are counted from 1 like lines."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from filtax.io._errors import InputError, Rejected
from filtax.io._layout import Layout, Raw, Request, choose
from filtax.io._text import is_touched, show, state_of

ROWS = 16384  # rows read at a time
_KNOWN = "an object with __arrow_c_stream__ (pandas, polars, pyarrow, DuckDB), a dict of arrays, or a numpy array"


def columns(table: Any, names: Sequence[str] | None = None) -> dict[str, np.ndarray]:
    """Take the columns of a table as numpy arrays, all of one length T.

    Args:
        table: A frame of pandas or polars, a table of pyarrow, a relation of DuckDB, or anything else with
            `__arrow_c_stream__`; a dict of arrays by name; or a numpy array of shape (T,) or (T, D).
        names: Names of the columns of a numpy array; "x0", "x1", ... if not given. Of any other table, the columns to
            take, in this order.

    Returns:
        Numbers and booleans as float64 with NaN for null, text as an object array of `str` with None for null, and
        times and dates as `datetime64[us]` (in UTC if they carry a zone) with NaT for null.

    Raises:
        ValueError: In one sentence, where a column is of another kind, is not there, or is not as long as the first.

    Example:
        >>> import numpy as np, pyarrow as pa
        >>> from filtax.io import columns
        >>> columns(pa.table({"load": [1, None], "site": ["a", None]}))
        {'load': array([ 1., nan]), 'site': array(['a', None], dtype=object)}
        >>> columns(np.eye(2, dtype=int), names=["a", "b"])["b"]
        array([0., 1.])
    """
    if isinstance(table, np.ndarray):
        table, names = _named(table, names), None
    if isinstance(table, Mapping):
        given = {str(name): _of_numpy(str(name), values) for name, values in table.items()}
    else:
        given = _of_frame(table)
    if names is not None:
        if absent := [name for name in names if name not in given]:
            raise ValueError(f"columns: there is no column {absent[0]!r}; there are {', '.join(given)}.")
        given = {name: given[name] for name in names}
    lengths = {name: len(values) for name, values in given.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"columns: all columns must be equally long, got {lengths}.")
    return given


class ParquetFile:
    """A Parquet file and its columns, opened without reading the rows."""

    def __init__(self, file: str, path: str) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        self.file, self._path, self._state = file, path, state_of(path)
        try:
            self._handle = parquet.ParquetFile(path, page_checksum_verification=True)
            self.names = tuple(self._handle.schema_arrow.names)
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise InputError(f"{file}:1:1: not a Parquet file that can be read: {_first_line(error)}.") from None
        self._places: dict[str, int] = {}
        for i, name in enumerate(self.names):
            if self._places.setdefault(name, i) < i:
                raise InputError(f"{file}:1:{i + 1}: two columns are called {show(name)}; rename one of them.")

    def choose(self, request: Request) -> Layout:
        """Find the asked columns; their kinds are those of the file, and columns of other kinds are no features."""
        kinds = {field.name: kind for field in self._handle.schema_arrow if (kind := _kind(field.type))}
        named = {request.target, request.time, request.key, *(request.features or ())}
        names = [name for name in self.names if name in kinds or name in named]
        types = {**{name: kinds[name] for name in names if name in kinds}, **request.types}
        layout = choose(self.file, names, {}, replace(request, types=types))
        for name in layout.columns:
            if name not in kinds:
                place = self._place(1, name)
                raise InputError(f"{self.file}:1:{place}: column {show(name)} holds neither numbers nor text.")
        return layout

    @cached_property
    def digest(self) -> str:
        """The sha256 of the whole file, since a part that was read cannot be separated from the rest."""
        with Path(self._path).open("rb") as stream:
            found = hashlib.file_digest(stream, "sha256").hexdigest()
        self._refuse_changed()
        return found

    def read(self, layout: Layout, start: int = 0) -> Iterator[Raw]:
        """Read the rows, from row number `start` on."""
        import pyarrow as pa

        row, fault = 0, None
        try:
            for batch in self._handle.iter_batches(batch_size=ROWS, columns=list(layout.wanted)):
                if row + batch.num_rows > start:
                    skipped = max(start - row, 0)
                    yield self._raw(batch.slice(skipped), layout, row + skipped)
                row += batch.num_rows
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            reason = f"the rest of the file cannot be read: {_first_line(error)}"
            fault = Raw.empty(layout, Rejected(self.file, row + 1, 1, reason))
        self._refuse_changed()
        if fault:
            yield fault

    def _refuse_changed(self) -> None:
        if is_touched(self._path, self._state):
            raise InputError(
                f"{self.file} was changed while it was read. Start a new run once it is complete, or bring the old "
                "file back."
            )

    def _raw(self, batch: Any, layout: Layout, row: int) -> Raw:
        numbers = np.empty((batch.num_rows, len(layout.numbers)))
        for j, name in enumerate(layout.numbers):
            numbers[:, j] = _floats(batch.column(name))
        texts, moments, faults = {}, None, {}
        for name in layout.words:
            column = _decoded(batch.column(name))
            if _is_time(column.type):
                values, beyond = _microseconds(column.to_numpy(zero_copy_only=False))
                faults |= dict.fromkeys(np.flatnonzero(beyond).tolist(), (name, "the time is too far from 1970"))
                if name == layout.time:
                    moments = values
                    continue
            texts[name] = np.array([_word(value) for value in column.to_pylist()], object)
        line = row + 1 + np.arange(batch.num_rows)
        where = (line, line.copy(), lambda offset: self.digest, self._place)
        raw = Raw(numbers, texts, *where, moments=moments)
        infinite = np.isinf(numbers)
        for i in np.flatnonzero(infinite.any(axis=1)).tolist():
            faults[i] = (layout.numbers[int(np.argmax(infinite[i]))], "the number is infinite")
        raw.reject(self.file, faults)
        return raw

    def _place(self, line: int, name: str) -> int:
        """Number of a column, from 1; the same in every row."""
        return self._places[name] + 1


def _named(array: np.ndarray, names: Sequence[str] | None) -> dict[str, np.ndarray]:
    if array.ndim not in (1, 2):
        raise ValueError(f"columns: an array must be of shape (T,) or (T, D), got {array.shape}.")
    array = array[:, None] if array.ndim == 1 else array
    names = [f"x{i}" for i in range(array.shape[1])] if names is None else list(names)
    if len(set(names)) < len(names) or len(names) != array.shape[1]:
        raise ValueError(f"columns: give {array.shape[1]} different names for an array of shape {array.shape}.")
    return {name: array[:, i] for i, name in enumerate(names)}


def _of_frame(frame: Any) -> dict[str, np.ndarray]:
    import pyarrow as pa

    try:
        table = pa.table(frame)
    except (TypeError, ValueError):
        raise ValueError(f"columns: got a {type(frame).__name__}; give {_KNOWN}.") from None
    if len(set(table.column_names)) < table.num_columns:
        raise ValueError("columns: two columns have one name; rename one of them.")
    parts = zip(table.column_names, table.columns, strict=True)
    return {name: _of_arrow(name, values.combine_chunks()) for name, values in parts}


def _of_numpy(name: str, given: Any) -> np.ndarray:
    values = np.asarray(given)
    if values.dtype.kind == "U":
        values = np.asarray(given, object)  # a list of texts and numbers is no list of texts
    if values.ndim != 1:
        raise ValueError(f"columns: {name} has shape {values.shape}; each column must be of shape (T,).")
    if values.dtype.kind in "biuf":
        return values.astype(np.float64)
    if values.dtype.kind == "M":
        return _times(name, values)
    import pyarrow as pa

    try:
        return _of_arrow(name, pa.array(values, from_pandas=True))  # it finds out what an array of objects holds
    except (pa.ArrowException, TypeError) as error:
        raise ValueError(f"columns: {name} holds neither numbers, text nor times: {error}.") from None


def _of_arrow(name: str, column: Any) -> np.ndarray:
    from pyarrow import types

    column = _decoded(column)
    if _is_time(column.type):
        return _times(name, column.to_numpy(zero_copy_only=False))
    kind = _kind(column.type)
    if kind is None:
        raise ValueError(f"columns: {name} holds neither numbers, text nor times, but {column.type}.")
    if kind == "number" or types.is_boolean(column.type):
        return _floats(column)
    return np.array(column.to_pylist(), object)


def _times(name: str, given: np.ndarray) -> np.ndarray:
    times, beyond = _microseconds(given)
    if beyond.any():
        raise ValueError(f"columns: {name} holds a time too far from 1970, in row {int(np.argmax(beyond))}.")
    return times


def _decoded(column: Any) -> Any:
    from pyarrow import types

    return column.dictionary_decode() if types.is_dictionary(column.type) else column


def _is_time(kind: Any) -> bool:
    from pyarrow import types

    return types.is_timestamp(kind) or types.is_date(kind)


def _kind(kind: Any) -> str | None:
    """What a column of an Arrow type holds: "number", "text", or None if it is neither."""
    from pyarrow import types

    kind = kind.value_type if types.is_dictionary(kind) else kind
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_null(kind):
        return "number"
    text = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
    return "text" if text or types.is_boolean(kind) else None


def _floats(column: Any) -> np.ndarray:
    """An Arrow array of numbers as float64, NaN for null."""
    import pyarrow as pa

    if pa.types.is_decimal(column.type):  # by its digits, as in a CSV file: Arrow is off by a bit at times
        column = column.cast(pa.string())
    return column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)


def _microseconds(given: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Times of any unit in microseconds; and which lie beyond 64 bits of them."""
    times = given.astype("datetime64[us]")  # what does not fit comes out as another time
    return times, ~np.isnat(given) & (times.astype("datetime64[s]") != given.astype("datetime64[s]"))


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def _first_line(error: BaseException) -> str:
    text = str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
    return text[:120]
