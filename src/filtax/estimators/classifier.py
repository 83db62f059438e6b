"""Predict a label from a stream."""

import math
import warnings
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from filtax.estimators import _frames as frames
from filtax.estimators._learner import Learner
from filtax.estimators._parameters import one_at_a_time
from filtax.forecasting import Labels


class Chances:
    """The distribution of the next label.

    Attributes:
        probabilities: Of each class met so far, by label; empty before any was met.

    >>> seen = Chances({"rain": 0.75, "sun": 0.25})
    >>> seen.mode, seen.prob("rain"), seen.prob("snow"), round(seen.entropy, 3)
    ('rain', 0.75, 0.0, 0.562)
    """

    def __init__(self, probabilities: Mapping[Any, float]):
        self.probabilities = dict(probabilities)

    @property
    def mode(self) -> Any:
        """The most probable label; None before any was met."""
        known = self.probabilities
        return max(known, key=lambda label: known[label]) if known else None

    @property
    def entropy(self) -> float:
        """How unsure it is, in nats."""
        return 0.0 - math.fsum(p * math.log(p) for p in self.probabilities.values() if p > 0.0)

    def prob(self, y: Any) -> float:
        """Probability of a label; 0 for one that was never met."""
        return self.probabilities.get(y, 0.0)

    def log_prob(self, y: Any) -> float:
        """Log probability of a label."""
        chance = self.prob(y)
        return math.log(chance) if chance > 0.0 else -math.inf

    def __repr__(self) -> str:
        shown = ", ".join(f"{label!r}: {chance:.3g}" for label, chance in self.probabilities.items())
        return f"Chances({{{shown}}})"


class Classifier(Learner):
    """Classification by a bank of competing filters; new classes may appear at any time.

    The verbs are those of `Regressor`, with `predict_proba_one`, `predict_proba_many` and `predict_proba`. A label is a
    text, a number or a truth value. 1 and 1.0 are one label; 1 and "1" are two, with a warning; True and 1, which no
    dict can hold apart, are refused together. The numbers are those of `filtax.forecasting.Labels`.

    Args:
        method: Name of a filter for a logistic model, in the grammar of `filtax.method`, in place of the standard ones.
        false_alarms: Probability that a good row is called an outlier.
        capacity: Columns for features, as for `Regressor`.
        pending: Rows that may wait for a late label.

    >>> model = Classifier()
    >>> for t in range(80):
    ...     model.learn_one({"a": float(t % 6)}, "high" if t % 6 > 2 else "low")
    >>> model.predict_one({"a": 5.0}), model.predict_proba_one({"a": 0.0})["low"] > 0.8
    ('high', True)
    """

    kind = "Classifier"

    def __init__(self, method: Any = None, false_alarms: Any = 0.001, capacity: Any = None, pending: Any = 1000):
        self.method = method
        self.false_alarms = false_alarms
        self.capacity = capacity
        self.pending = pending

    @property
    def classes_(self) -> np.ndarray:
        """The classes met so far, sorted; the order of the columns of `predict_proba`."""
        if "_labels" not in vars(self):
            raise AttributeError("nothing was learned yet: Classifier has no classes_ before the first label.")
        labels = self._known()
        array = np.array(labels)
        return array if array.tolist() == labels else np.array(labels, object)  # an array of texts would make them one

    @property
    def _multiclass(self) -> bool:
        return True

    def predict_one(self, x: Any, with_dist: bool = False, *, id: Hashable = None) -> Any:
        """The most probable label; None before any was met.

        Args:
            x: Features by name.
            with_dist: Return the distribution, with `.mode`, `.prob(y)`, `.log_prob(y)` and `.entropy`.
            id: Remember x until its label comes with `learn_one(None, y, id=id)`.
        """
        law = Chances(self.predict_proba_one(x, id=id))
        return law if with_dist else law.mode

    @one_at_a_time
    def predict_proba_one(self, x: Any, *, id: Hashable = None) -> dict[Any, float]:
        """The probability of each class met so far, given that it is one of these; empty before any was met.

        The probabilities add up to 1, so that a class is certain while it is the only one. A run of `filtax run`, and
        `filtax.forecasting.Labels`, keep a part for classes never met.

        Args:
            x: Features by name.
            id: Remember x until its label comes with `learn_one(None, y, id=id)`.
        """
        row = self._ask(x, id)
        return {} if row is None else dict(zip(self._known(), self._shares(row)[0].tolist(), strict=True))

    @one_at_a_time
    def predict_proba_many(self, X: Any) -> Any:
        """Probabilities of the classes for each row: an array (T, C) as `predict_proba`, or a frame of pandas."""
        frame = frames.frame_of(X)
        fitted = self.__sklearn_is_fitted__()
        shares = self._shares(self._table(frame)) if fitted else np.zeros((len(frame), 0))
        return frames.wrapped(shares, frame.index, self._known() if fitted else [])

    @one_at_a_time
    def predict_many(self, X: Any) -> Any:
        """The most probable label for each row: an array of objects, or a series of pandas if X is of pandas."""
        frame = frames.frame_of(X)
        found = np.full(len(frame), None)
        if self.__sklearn_is_fitted__() and self._known():
            found[:] = [self._known()[at] for at in np.argmax(self._shares(self._table(frame)), axis=1)]
        return frames.wrapped(found, frame.index)

    @one_at_a_time
    def partial_fit(self, X: Any, y: Any, classes: Any = None):
        """Go on learning from the rows of a table or an array, in their order.

        Args:
            X: (T, M).
            y: (T,) labels.
            classes: All classes that may come, where `predict_proba` is to have a column for each from the start.
        """
        self._begin()
        if classes is not None:
            self._declared += [label for label in np.asarray(classes).tolist() if label not in self._known()]
        return self._fit(X, y)

    @one_at_a_time
    def predict(self, X: Any) -> np.ndarray:
        """The most probable label for the rows of a table or an array."""
        best = np.argmax(self.predict_proba(X), axis=1)
        return self.classes_[best]

    @one_at_a_time
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities (T, C), columns in the order of `classes_`."""
        return self._shares(self._rows_of(X))

    def score(self, X: Any, y: Any) -> float:
        """Share of labels that are predicted right."""
        found = self.predict(X).tolist()
        return float(np.mean([a == b for a, b in zip(found, frames.labels(y, len(found)), strict=True)]))

    def _fit(self, X: Any, y: Any, whole: bool = False):
        labels = [] if y is None else np.ravel(np.asarray(y)).tolist()
        if any(isinstance(label, float) and label % 1.0 > 0.0 for label in labels):
            raise ValueError("Unknown label type: continuous numbers; give classes, or use a Regressor.")
        return super()._fit(X, y, whole)

    def _begin(self) -> None:
        super()._begin()
        if "_labels" not in vars(self):
            self._labels: dict[Any, int] = {}  # and their codes
            self._declared: list = []  # that were announced

    def _known(self) -> list:
        """The classes met, and those announced and not met, sorted."""
        known = [*self._labels, *(label for label in self._declared if label not in self._labels)]
        try:
            return sorted(known)
        except TypeError:  # labels of several types have no order but that of their text
            return sorted(known, key=repr)

    def _shares(self, table: np.ndarray) -> np.ndarray:
        """Probabilities of `_known()`; those announced and not met share what is for a class never met."""
        met, known = self._settle(table), self._known()
        absent = len(known) - len(self._labels)
        rest = np.clip(1.0 - met.sum(axis=1), 0.0, 1.0) / max(absent, 1)
        columns = [met[:, self._labels[label]] if label in self._labels else rest for label in known]
        shares = np.reshape(columns, (len(known), len(table))).T
        return shares / np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)

    def _checked(self, y: Any) -> Any:
        label = y.item() if isinstance(y, np.generic) else y
        if frames.is_missing(label):
            return None
        try:
            code = self._labels.get(label)
        except TypeError:
            raise ValueError(f"y must be a label, got {y!r:.40}; give a text, a number or a truth value.") from None
        if isinstance(label, float) and label - label != 0.0:
            raise ValueError("Input y contains infinity or a value too large for dtype('float64').")
        if code is not None and isinstance(label, bool | int | float):
            known = next(known for known in self._labels if known == label)
            if isinstance(known, bool) != isinstance(label, bool):
                raise ValueError(
                    f"the label {label!r:.40} came after {known!r:.40}, and to Python the two are equal; give labels "
                    "of one type, such as texts."
                )
        return label

    def _code(self, target: Any) -> float:
        """The code of a label; a new one becomes a class."""
        if target is None:
            return np.nan
        if target not in self._labels:
            alike = [known for known in self._labels if str(known) == str(target)]
            if alike:
                warnings.warn(
                    f"the label {target!r:.40} came after {alike[0]!r:.40}: they are two classes; give labels of one "
                    "type if they are meant to be one.",
                    stacklevel=5,
                )
            self._labels[target] = len(self._labels)
        return float(self._labels[target])

    def _codes(self, y: Any, length: int) -> np.ndarray:
        return np.array([self._code(self._checked(label)) for label in frames.labels(y, length)], float)

    def _new(self, width: int, saved: tuple[dict, dict] | None = None) -> Labels:
        return Labels(known=width, method=self.method) if saved is None else Labels.restore(*saved)

    def _advance(self, rows: np.ndarray, y: np.ndarray, asked: np.ndarray | None) -> tuple[tuple[np.ndarray, ...], Any]:
        out = self._driver.learn(_whole(y), known=rows)
        return (out.probability,), None if asked is None else self._driver.predict(asked)

    def _judge(self, y: np.ndarray, *issued: np.ndarray) -> Any:
        return self._monitor.learn_labels(_whole(y), *issued)

    def _state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        note, arrays = super()._state()
        return {**note, "labels": list(self._labels), "declared": list(self._declared)}, arrays

    def _resume(self, note: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        super()._resume(note, arrays)
        self._labels = {label: code for code, label in enumerate(note["labels"])}
        self._declared = list(note["declared"])


def _whole(y: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(y), -1.0, y).astype(int)
