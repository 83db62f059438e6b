"""Tables, targets and dicts of any library as numpy columns, refused in sentences that scikit-learn expects.

A number has a column, and a text has an indicator column for each of its values. The first `FIRST` rows decide the
width: the least of `SIZES` that has a column for each name. Names that come when all columns are taken share the last
ones by a checksum, so that memory stays bounded.
"""

import math
import sys
import warnings
import zlib
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from filtax import _validation as checks
from filtax.io import columns as columns_of

FIRST = 64  # rows that decide the width
SIZES = (0, 3, 9, 15, 31, 63, 127, 255)
SHARED = 8  # one column in so many is kept for names that come when the others are taken
MOST = 1000  # columns; a filter has the square of them

Key = tuple[Hashable, str | None]  # a name, and the value of a text


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


class Features:
    """Which name lies in which column.

    Args:
        capacity: Width of the rows; None lets the first rows decide.

    >>> features = Features()
    >>> features.row({"load": 2.0, "day": "monday"})
    [1.0, 2.0, nan]
    >>> features.row({"load": 3.0, "day": "sunday"}, learn=False)
    [0.0, 3.0, nan]
    """

    def __init__(self, capacity: int | None = None):
        if capacity is not None:
            hint = "It is the number of columns for features; None lets the first rows decide."
            checks.whole("capacity", capacity, least=3, most=MOST, hint=hint)
        self.column: dict[Key, int] = {}
        self.numbers: dict[Hashable, int] = {}  # the same for numbers alone, which are looked up most
        self.growing, self.warned = capacity is None, False
        self._set_width(capacity or 0)

    def row(self, x: Any, *, learn: bool = True) -> list[float]:
        """One row; `learn` gives columns to new names, which are passed over without."""
        if not isinstance(x, Mapping):
            raise TypeError(f"x is {x!r:.60}; give a dict of names to values, or use the verbs for arrays.")
        row, others = self.blank.copy(), []
        find = self.numbers.get
        for name, value in x.items():
            at = find(name)
            if at is not None and type(value) is float and value - value == 0.0:
                row[at] = value
            else:
                others.append((name, value))
        if not others:
            return row
        found = [entry for name, value in others if (entry := _entry(name, value)) is not None]
        new = [key for key, _ in found if key not in self.column] if learn else []
        if new and self.admit(sorted(new, key=repr)):
            return self.row(x)
        for key, value in found:
            at = self._place(key)
            if at is not None:
                row[at] = value if row[at] != row[at] or key in self.column else max(row[at], value)
        return row

    def table(self, frame: Frame, *, learn: bool = True) -> Float[np.ndarray, "T W"]:
        """Rows of a table: those that `row` makes of each."""
        pairs = zip(frame.names, frame.columns, strict=True)
        found = [column for name, values in pairs for column in _columns_of(name, values)]
        new = sorted((there[0], repr(key), key) for key, there, _ in found if key not in self.column and len(there))
        first = {key: at for at, _, key in new} if learn else {}
        if first:
            self.admit(first)
        table = np.tile(self.blank, (len(frame), 1))
        for key, start in first.items():
            if key in self.column:
                table[:start, self.column[key]] = np.nan  # an indicator has no value before it appears
        for key, there, values in found:
            at = self._place(key)
            if at is not None:
                table[there, at] = values if key in self.column else np.fmax(table[there, at], values)
        return table

    def admit(self, keys: Iterable[Key]) -> bool:
        """Give columns to new names, in their order; whether there was one for any."""
        before = len(self.column)
        for key in keys:
            if self.growing and len(self.column) == own_columns(self.width) and self.width < SIZES[-1]:
                self._set_width(next(size for size in SIZES if size > self.width))
            if len(self.column) < own_columns(self.width):
                self.put(key, len(self.column))
            elif not self.warned:
                self.warned, shared = True, self.width - own_columns(self.width)
                fate = f"share {shared} columns" if shared else "are not used"
                warnings.warn(
                    f"capacity={self.width}: the feature {key[0]!r:.40} and all further ones {fate}, as the first "
                    f"{FIRST} rows left no other column; give a larger capacity.",
                    stacklevel=5,
                )
        return len(self.column) > before

    def put(self, key: Key, at: int) -> None:
        """Give a column to a name."""
        self.column[key] = at
        if key[1] is None:
            self.numbers[key[0]] = at
        else:
            self.blank[at] = 0.0

    def settings(self) -> dict[str, Any]:
        """What `restore` needs; names are in the order of their columns."""
        names = [list(key) for key in self.column]
        return {"names": names, "width": self.width, "growing": self.growing, "warned": self.warned}

    def restore(self, settings: Mapping[str, Any]) -> None:
        """Go on with the columns of others."""
        self.growing, self.warned = settings["growing"], settings["warned"]
        self._set_width(settings["width"])
        for at, (name, text) in enumerate(settings["names"]):
            self.put((name, text), at)

    def _set_width(self, width: int) -> None:
        self.width, self.blank = width, [math.nan] * width
        for (_, text), at in self.column.items():
            self.blank[at] = math.nan if text is None else 0.0

    def _place(self, key: Key) -> int | None:
        """The column of a name, its own or a shared one; None for a name that has none yet."""
        at, own = self.column.get(key), own_columns(self.width)
        if at is None and own and self.warned and len(self.column) == own:
            return own + zlib.crc32(repr(key).encode()) % (self.width - own)
        return at


def own_columns(width: int) -> int:
    """Columns that are given to one name each."""
    return width - max(1, width // SHARED) if width else 0


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


def _entry(name: Hashable, value: Any) -> tuple[Key, float] | None:
    """What one feature puts into a row; nothing if it is missing."""
    if type(value) is float and value - value == 0.0:
        return (name, None), value
    if isinstance(value, str):
        return (name, str(value)), 1.0
    if is_missing(value):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(
            f"feature {name!r:.40} is {value!r:.40}; the argument must be a string for a category, a number, or None "
            "where it is missing."
        ) from None
    if math.isinf(number):
        raise ValueError(f"feature {name!r:.40} is {number}; give a finite number, or None where it is missing.")
    return ((name, None), number) if number == number else None


def _columns_of(name: Hashable, values: np.ndarray) -> list[tuple[Key, np.ndarray, Any]]:
    """The columns that one column of a table becomes: key, rows where it is there, and its values there."""
    if values.dtype.kind == "f":
        there = np.flatnonzero(~np.isnan(values))
        return [((name, None), there, values[there])]
    rows: dict[Key, tuple[list[int], list[float]]] = {}
    for at, value in enumerate(values.tolist()):
        entry = _entry(name, value)
        if entry is not None:
            places, numbers = rows.setdefault(entry[0], ([], []))
            places.append(at)
            numbers.append(entry[1])
    return [(key, np.array(places), np.array(numbers)) for key, (places, numbers) in rows.items()]
