"""Tables and targets of any library as numpy columns, refused in scikit-learn's words where they are wrong."""

import math
import sys
import warnings
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from filtax.io import columns as columns_of

FEW = 5  # names that a message lists


@runtime_checkable
class Arrow(Protocol):
    """A table of polars, pyarrow, DuckDB or another library that speaks Arrow."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The table as a stream of batches."""


class Frame(NamedTuple):
    """A table: names, columns (T,) of float64 with NaN or of objects, and the index if it came from pandas."""

    names: list[Hashable]
    columns: list[np.ndarray]
    index: Any = None
    named: bool = False

    def __len__(self) -> int:
        return len(self.columns[0]) if self.columns else 0

    def cut(self, rows: Any) -> list[np.ndarray]:
        """Some rows of all columns."""
        return [column[rows] for column in self.columns]

    def records(self) -> list[dict]:
        """The rows as dicts."""
        return [
            dict(zip(self.names, row, strict=True)) for row in zip(*map(np.ndarray.tolist, self.columns), strict=True)
        ]


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


def frame_of(owner: str, X: Any) -> Frame:
    """A table of any library, or an array (T, M) whose columns are called 0, 1, ..."""
    if isinstance(X, Frame):
        return X
    sparse = sys.modules.get("scipy.sparse")
    if sparse and sparse.issparse(X):
        raise TypeError(
            "Sparse data was passed, but dense data is required. Use '.toarray()' to convert to a dense numpy array."
        )
    pandas = sys.modules.get("pandas")
    if are_dicts(X):
        names = list(dict.fromkeys(name for x in X for name in x))
        found = Frame(names, [np.fromiter((x.get(name) for x in X), object, len(X)) for name in names])
    elif pandas and isinstance(X, pandas.DataFrame):
        found = Frame(list(X.columns), [_column(X.iloc[:, i].to_numpy()) for i in range(X.shape[1])], X.index, True)
    elif isinstance(X, Mapping):
        table = columns_of({str(at): values for at, values in enumerate(X.values())})
        found = Frame(list(X), list(table.values()), None, True)
    elif isinstance(X, Arrow):
        table = columns_of(X)
        found = Frame(list(table), list(table.values()), None, True)
    else:
        array = _matrix(X)
        columns = [_column(array[:, i]) for i in range(array.shape[1])] if array.ndim == 2 else []
        found = Frame(list(range(len(columns))), columns)
        _check_shape(owner, array)
    if not found.columns or not len(found):
        raise ValueError(f"Found array with 0 sample(s) or 0 feature(s) while a minimum of 1 is required by {owner}.")
    if len(set(found.names)) < len(found.names):
        raise ValueError("X has two columns of one name; rename one of them.")
    for name, column in zip(found.names, found.columns, strict=True):
        if column.dtype.kind == "f" and np.isinf(column).any():
            raise ValueError(f"Input X contains infinity or a value too large for dtype('float64'), in {name!r:.40}.")
        if column.dtype.kind not in "fO":
            raise ValueError(f"column {name!r:.40} of X holds {column.dtype}; give numbers or texts.")
    return found


def numbers(owner: str, y: Any, length: int) -> np.ndarray:
    """Targets (T,) float64, NaN where missing.

    >>> numbers("Regressor", [1, None], 2).tolist()
    [1.0, nan]
    """
    array = _target(owner, y, length)
    if array.dtype.kind == "O":
        array = np.array([number(value) for value in array.tolist()])
    elif array.dtype.kind not in "biuf":
        raise ValueError(f"y holds {array.dtype}; give numbers, and None where one is missing.")
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


def labels(owner: str, y: Any, length: int) -> list:
    """Targets of texts, numbers or truth values as a list, None where missing.

    >>> labels("Classifier", ["a", 1, None], 3)
    ['a', 1, None]
    """
    return [None if is_missing(label) else label for label in _target(owner, y, length).tolist()]


def check_discrete(labels: Sequence[Any]) -> None:
    """Refuse labels with a fraction, as scikit-learn asks of a classifier that is given a regression target."""
    if any(isinstance(label, float) and label != math.floor(label) for label in labels if not is_missing(label)):
        raise ValueError(
            "Unknown label type: continuous. Maybe you are trying to fit a classifier, which expects discrete classes "
            "on a regression target with continuous values."
        )


def check_same(owner: str, known: Any, count: int, frame: Frame) -> None:
    """Refuse columns other than those that were learned from."""
    names = texts_of(frame)
    if names is not None and known is None:
        warnings.warn(f"X has feature names, but {owner} was fitted without feature names", stacklevel=4)
    if names is None and known is not None:
        warnings.warn(f"X does not have valid feature names, but {owner} was fitted with feature names", stacklevel=4)
    if names is not None and known is not None and names != list(known):
        raise ValueError(_differences(list(known), names))
    if len(frame.names) != count:
        raise ValueError(f"X has {len(frame.names)} features, but {owner} is expecting {count} features as input.")


def texts_of(frame: Frame) -> list[str] | None:
    """Names of the columns, where the table has names and all are texts."""
    texts = [name for name in frame.names if isinstance(name, str)]
    if frame.named and 0 < len(texts) < len(frame.names):
        kinds = sorted({type(name).__name__ for name in frame.names})
        raise TypeError(
            "Feature names are only supported if all input features have string names, but your input has "
            f"{kinds} as feature name / column name types."
        )
    return texts if frame.named and texts else None


def unfitted(owner: str) -> Exception:
    """What to raise when arrays are asked about before any were learned from."""
    kind = ValueError
    if "sklearn" in sys.modules:
        from sklearn.exceptions import NotFittedError

        kind = NotFittedError
    return kind(f"This {owner} instance is not fitted yet; call fit, partial_fit or learn_one first.")


def _matrix(X: Any) -> np.ndarray:
    """An array as it is, with NaN or None where it is masked; lists of numbers and texts stay what they are."""
    if isinstance(X, np.ma.MaskedArray):
        number = X.dtype.kind in "biuf"
        return np.ma.filled(X.astype(float if number else object), np.nan if number else None)
    array = np.asarray(X)
    return np.asarray(X, object) if array.dtype.kind in "US" and not isinstance(X, np.ndarray) else array


def _column(values: np.ndarray) -> np.ndarray:
    """Numbers as float64; texts and whatever else as objects."""
    if values.dtype.kind in "biuf":
        return values.astype(np.float64)
    if values.dtype.kind == "c":
        raise ValueError(f"Complex data not supported\n{values}\n")
    return values.astype(object) if values.dtype.kind in "US" else values


def _check_shape(owner: str, array: np.ndarray) -> None:
    if array.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {array.ndim}D array instead:\narray={array}.\nReshape your data either using "
            "array.reshape(-1, 1) if your data has a single feature or array.reshape(1, -1) if it contains a single "
            "sample."
        )
    for count, kind in zip(array.shape, ("sample", "feature"), strict=True):
        if count == 0:
            raise ValueError(
                f"Found array with 0 {kind}(s) (shape={array.shape}) while a minimum of 1 is required by {owner}."
            )


def _target(owner: str, y: Any, length: int) -> np.ndarray:
    if y is None:
        raise ValueError(f"{owner} requires y to be passed, but the target y is None.")
    array = np.asarray(y, object) if isinstance(y, list | tuple) else _matrix(y)
    if array.ndim == 2 and array.shape[1] == 1:
        category: Any = UserWarning
        if "sklearn" in sys.modules:
            from sklearn.exceptions import DataConversionWarning

            category = DataConversionWarning
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected. Please change the shape of y to (n_samples, ), "
            "for example using ravel().",
            category,
            stacklevel=4,
        )
        array = array[:, 0]
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported\n{array}\n")
    if array.ndim != 1:
        raise ValueError(f"y should be a 1d array, got an array of shape {array.shape} instead.")
    if len(array) != length:
        raise ValueError(f"Found input variables with inconsistent numbers of samples: [{length}, {len(array)}]")
    return array


def _differences(known: list, names: list) -> str:
    message = "The feature names should match those that were passed during fit.\n"
    new, gone = sorted(set(names) - set(known)), sorted(set(known) - set(names))
    for title, found in (
        ("Feature names unseen at fit time:", new),
        ("Feature names seen at fit time, yet now missing:", gone),
    ):
        if found:
            message += title + "\n" + "".join(f"- {name}\n" for name in found[:FEW])
    return message if new or gone else message + "Feature names must be in the same order as they were in fit.\n"
