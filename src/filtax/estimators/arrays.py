"""Arrays as scikit-learn's users give them: checked by its rules and refused in its words, without importing it."""

import sys
import warnings
from typing import Any

import numpy as np

from filtax.estimators.features import is_missing

__all__ = ["labels_of", "matrix", "names_of", "not_fitted", "numbers_of", "same_features"]


def matrix(owner: str, X: Any) -> np.ndarray:
    """A table of finite numbers, (T, M) float64.

    >>> matrix("Regressor", [[1, 2]]).tolist()
    [[1.0, 2.0]]
    """
    if hasattr(X, "toarray") and hasattr(X, "nnz"):
        raise TypeError(
            "Sparse data was passed, but dense data is required. Use '.toarray()' to convert to a dense numpy array."
        )
    array = _without_na(_array(X))
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported\n{array}\n")
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
    array = array.astype(np.float64)
    _finite("X", array)
    return array


def numbers_of(owner: str, y: Any, length: int) -> np.ndarray:
    """A target of finite numbers, (T,) float64.

    >>> numbers_of("Regressor", [1, 2], 2).tolist()
    [1.0, 2.0]
    """
    array = _column(owner, y, length)
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported\n{array}\n")
    array = array.astype(np.float64)
    _finite("y", array)
    return array


def labels_of(owner: str, y: Any, length: int) -> np.ndarray:
    """A target of labels, (T,): texts, whole numbers, truth values.

    >>> labels_of("Classifier", ["a", "b"], 2).tolist()
    ['a', 'b']
    """
    if isinstance(y, list | tuple) and len({isinstance(label, str) for label in y}) > 1:
        raise ValueError("y mixes texts and other labels, of which an array would make texts; give labels of one type.")
    array = _column(owner, y, length)
    if array.dtype.kind == "f":
        _finite("y", array)
        if np.any(array != np.floor(array)):
            raise ValueError(
                "Unknown label type: continuous. Maybe you are trying to fit a classifier, which expects discrete "
                "classes on a regression target with continuous values."
            )
    return array


def names_of(X: Any) -> np.ndarray | None:
    """Column names of a table, where it has them and all are texts.

    >>> names_of(np.zeros((1, 2))) is None
    True
    """
    columns = getattr(X, "columns", None)
    if columns is None or not len(columns):
        return None
    names = list(columns)
    if all(isinstance(name, str) for name in names):
        return np.asarray(names, dtype=object)
    if any(isinstance(name, str) for name in names):
        raise TypeError(
            "Feature names are only supported if all input features have string names, but your input has "
            f"{sorted({type(name).__name__ for name in names})} as feature name / column name types."
        )
    return None


def same_features(owner: str, known: np.ndarray | None, count: int, names: np.ndarray | None, width: int) -> None:
    """Refuse columns other than those that were learned from.

    >>> same_features("Regressor", None, 2, None, 2)
    """
    if names is not None and known is None:
        warnings.warn(f"X has feature names, but {owner} was fitted without feature names", stacklevel=4)
    if names is None and known is not None:
        warnings.warn(f"X does not have valid feature names, but {owner} was fitted with feature names", stacklevel=4)
    if names is not None and known is not None and list(names) != list(known):
        raise ValueError(_differences(list(known), list(names)))
    if width != count:
        raise ValueError(f"X has {width} features, but {owner} is expecting {count} features as input.")


def not_fitted(owner: str) -> Exception:
    """What to raise when arrays are asked about before any were learned from.

    >>> str(not_fitted("Regressor"))
    'This Regressor instance is not fitted yet; call fit, partial_fit or learn_one first.'
    """
    kind = ValueError
    if "sklearn" in sys.modules:
        from sklearn.exceptions import NotFittedError

        kind = NotFittedError
    return kind(f"This {owner} instance is not fitted yet; call fit, partial_fit or learn_one first.")


def _differences(known: list, names: list) -> str:
    message = "The feature names should match those that were passed during fit.\n"
    new, gone = sorted(set(names) - set(known)), sorted(set(known) - set(names))
    for title, found in (
        ("Feature names unseen at fit time:", new),
        ("Feature names seen at fit time, yet now missing:", gone),
    ):
        if found:
            message += title + "\n" + "".join(f"- {name}\n" for name in found[:5])
    return message if new or gone else message + "Feature names must be in the same order as they were in fit.\n"


def _column(owner: str, y: Any, length: int) -> np.ndarray:
    if y is None:
        raise ValueError(f"{owner} requires y to be passed, but the target y is None.")
    array = _array(y)
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
    if array.ndim != 1:
        raise ValueError(f"y should be a 1d array, got an array of shape {array.shape} instead.")
    if array.dtype.kind == "O" and any(is_missing(value) for value in array):
        raise ValueError("Input y contains NaN.")
    if len(array) != length:
        raise ValueError(f"Found input variables with inconsistent numbers of samples: [{length}, {len(array)}]")
    return array


def _array(values: Any) -> np.ndarray:
    """What was given as an array; what is masked is None there."""
    return np.array(values.tolist(), object) if np.ma.is_masked(values) else np.asarray(values)


def _without_na(array: np.ndarray) -> np.ndarray:
    if array.dtype.kind != "O":
        return array
    filled = [np.nan if is_missing(value) else value for value in array.ravel().tolist()]
    return np.array(filled, dtype=object).reshape(array.shape)


def _finite(name: str, array: np.ndarray) -> None:
    if np.isnan(array).any():
        raise ValueError(f"Input {name} contains NaN.")
    if np.isinf(array).any():
        raise ValueError(f"Input {name} contains infinity or a value too large for dtype('float64').")
