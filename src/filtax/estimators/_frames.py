"""Tables and targets of any library as numpy columns, refused in sentences that scikit-learn expects."""

import math
import sys
from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from filtax.io import columns as columns_of


@runtime_checkable
class Arrow(Protocol):
    """A table of polars, pyarrow, DuckDB or another library that speaks Arrow."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The table as a stream of batches."""


class Frame(NamedTuple):
    """A table: names, columns (T,) of float64 with NaN or of objects, whether it came with names, and pandas' index."""

    names: list[Hashable]
    columns: list[np.ndarray]
    named: bool = False
    index: Any = None

    def __len__(self) -> int:
        return len(self.columns[0])

    def cut(self, rows: Any) -> "Frame":
        """Some rows of all columns."""
        return Frame(self.names, [column[rows] for column in self.columns])

    def records(self) -> list[dict]:
        """The rows as dicts."""
        rows = zip(*(column.tolist() for column in self.columns), strict=True)
        return [dict(zip(self.names, row, strict=True)) for row in rows]


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, masked, or what pandas writes for it; pandas is not imported for that.

    >>> import pandas as pd
    >>> [is_missing(value) for value in (None, math.nan, np.ma.masked, pd.NA, pd.NaT, 0.0, "")]
    [True, True, True, True, True, False, False]
    """
    if value is None or type(value).__name__ in ("NAType", "NaTType", "MaskedConstant"):
        return True
    return isinstance(value, float) and math.isnan(value)


def are_dicts(X: Any) -> bool:
    """Whether rows are given as a sequence of dicts."""
    return isinstance(X, list | tuple) and len(X) > 0 and isinstance(X[0], Mapping)


def frame_of(X: Any) -> Frame:
    """A table of any library, or an array (T, M) whose columns are called 0, 1, ..."""
    frame = X if isinstance(X, Frame) else _read(X)
    if not frame.columns or not len(frame):
        raise ValueError("X holds no sample(s) or no feature(s); a minimum of 1 is required.")
    if len(set(frame.names)) < len(frame.names):
        raise ValueError("X has two columns of one name; rename one of them.")
    for name, column in zip(frame.names, frame.columns, strict=True):
        if column.dtype.kind == "f" and np.isinf(column).any():
            raise ValueError(f"Input X contains infinity or a value too large for dtype('float64'), in {name!r:.40}.")
        if column.dtype.kind not in "fO":
            raise ValueError(f"Complex data not supported, nor {column.dtype}: in {name!r:.40} give numbers or texts.")
    return frame


def wrapped(values: np.ndarray, index: Any, columns: list | None = None) -> Any:
    """Answers for rows: an array as it is, or what pandas makes of it where the rows came from pandas."""
    if index is None:
        return values
    import pandas as pd

    return pd.Series(values.tolist(), index) if columns is None else pd.DataFrame(values, index, columns)


def numbers(y: Any, length: int) -> np.ndarray:
    """Targets (T,) float64, NaN where missing.

    >>> numbers([1, None], 2).tolist()
    [1.0, nan]
    """
    array = _target(y, length)
    if array.dtype.kind not in "biuf":
        array = np.array([number(value) for value in array.tolist()])
    array = array.astype(np.float64)
    if np.isinf(array).any():
        raise ValueError("Input y contains infinity or a value too large for dtype('float64').")
    return array


def number(y: Any) -> float:
    """One target, NaN where it is missing."""
    try:
        value = math.nan if is_missing(y) else float(y)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"y is {y!r:.40}; give a number, or None where it is missing.") from None
    if math.isinf(value):
        raise ValueError("y is infinite; give a finite number, or None where it is missing.")
    return value


def labels(y: Any, length: int) -> list:
    """Targets of texts, numbers or truth values as a list.

    >>> labels(["a", 1, None], 3)
    ['a', 1, None]
    """
    return _target(y, length).tolist()


def _read(X: Any) -> Frame:
    pandas, sparse = sys.modules.get("pandas"), sys.modules.get("scipy.sparse")
    if sparse and sparse.issparse(X):
        raise TypeError("Sparse data was passed, but dense data is required; use X.toarray().")
    if are_dicts(X):
        names = list(dict.fromkeys(name for x in X for name in x))
        return Frame(names, [np.fromiter((x.get(name) for x in X), object, len(X)) for name in names])
    if pandas and isinstance(X, pandas.DataFrame):
        columns = [_column(X.iloc[:, at].to_numpy()) for at in range(X.shape[1])]
        return Frame(list(X.columns), columns, True, X.index)
    if isinstance(X, Mapping):
        return Frame(list(X), list(columns_of({str(at): own for at, own in enumerate(X.values())}).values()), True)
    if isinstance(X, Arrow):
        table = columns_of(X)
        return Frame(list(table), list(table.values()), True)
    array = _array(X)
    if array.ndim != 2:
        raise ValueError(f"Expected 2D array, got {array.ndim}D array instead. Reshape your data to (rows, columns).")
    if 0 in array.shape:
        kind = "sample" if array.shape[0] == 0 else "feature"
        raise ValueError(f"Found array with 0 {kind}(s) (shape={array.shape}) while a minimum of 1 is required.")
    return Frame(list(range(array.shape[1])), [_column(array[:, at]) for at in range(array.shape[1])])


def _array(values: Any) -> np.ndarray:
    """An array as it is, with NaN or None where it is masked; lists of numbers and texts stay what they are."""
    if isinstance(values, np.ma.MaskedArray):
        number = values.dtype.kind in "biuf"
        return np.ma.filled(values.astype(float if number else object), np.nan if number else None)
    array = np.asarray(values)
    return np.asarray(values, object) if array.dtype.kind in "US" and isinstance(values, list | tuple) else array


def _column(values: np.ndarray) -> np.ndarray:
    """Numbers as float64, texts as objects."""
    kind = values.dtype.kind
    return values.astype(np.float64) if kind in "biuf" else values.astype(object) if kind in "US" else values


def _target(y: Any, length: int) -> np.ndarray:
    if y is None:
        raise ValueError("The estimator requires y to be passed, but the target y is None.")
    array = np.asarray(y, object) if isinstance(y, list | tuple) else _array(y)
    if array.ndim == 2 and array.shape[1] == 1 and "sklearn" in sys.modules:
        from sklearn.utils import column_or_1d

        array = column_or_1d(array, warn=True)
    if array.dtype.kind == "c":
        raise ValueError("Complex data not supported: give real numbers as y.")
    if array.ndim != 1:
        raise ValueError(f"y should be a 1d array, got an array of shape {array.shape} instead.")
    if len(array) != length:
        raise ValueError(f"Found input variables with inconsistent numbers of samples: [{length}, {len(array)}]")
    return array
