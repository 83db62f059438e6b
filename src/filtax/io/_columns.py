"""A table in memory, of whatever library, as numpy arrays by name."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from filtax.io._parquet import floats, kind_of, microseconds

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
        return _of_arrow(name, pa.array(values, from_pandas=True))  # it tells what an array of objects holds
    except (pa.ArrowException, TypeError) as error:
        raise ValueError(f"columns: {name} holds neither numbers, text nor times: {error}.") from None


def _of_arrow(name: str, values: Any) -> np.ndarray:
    from pyarrow import types

    if types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if types.is_timestamp(values.type) or types.is_date(values.type):
        return _times(name, values.to_numpy(zero_copy_only=False))
    kind = kind_of(values.type)
    if kind is None:
        raise ValueError(f"columns: {name} holds neither numbers, text nor times, but {values.type}.")
    if kind == "number" or types.is_boolean(values.type):
        return floats(values)
    return np.array(values.to_pylist(), object)


def _times(name: str, given: np.ndarray) -> np.ndarray:
    times, beyond = microseconds(given)
    if beyond.any():
        raise ValueError(f"columns: {name} holds a time too far from 1970, in row {int(np.argmax(beyond))}.")
    return times
