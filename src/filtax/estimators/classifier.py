"""Predict a label from a stream."""

import warnings
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from filtax import _validation as checks
from filtax.estimators import arrays
from filtax.estimators.features import hashable, is_missing
from filtax.estimators.forecast import Chances
from filtax.estimators.params import one_at_a_time
from filtax.estimators.stream import Learner, records

__all__ = ["Classifier"]


class Classifier(Learner):
    r"""Classification that starts with the first label; new classes may appear at any time.

    Each class has a filter of its own for "this class or another", $p_c$; probabilities are $p_c / \sum_k p_k$ over the
    classes met so far. For two classes that is logistic regression exactly. A class that was never met has learned from
    every datum that it was not this one: so it is ready when it appears, and nothing starts anew.

    A label is a text, a number or a truth value. 1 and 1.0 are one label; 1 and "1" are two, which a warning says; True
    and 1, which no dict of Python can hold apart, are refused.

    Args:
        method: Name of a filter for a logistic model, in the grammar of `filtax.method`.
        prior: Variance of the weights before any datum, in units of the scaled features.
        false_alarms: Labels with less than this probability are called outliers; good ones are at most this often, and
            the less often the more labels are likely. What is done about it stays at 0.001 where this is more: a
            label that is not learned from, and a false alarm of a change, come at most so often.
        capacity: Slots for features, all there from the first datum on, so that a name may appear, disappear and
            return and nothing is compiled anew; a category fills one for each of its texts. Of C slots C // 8 are
            shared by all names that come once the others are taken, with a warning. None: 31, or 63, 127 or 255
            where the names of the first datum need them.
        pending: Data that may wait for a late label.
        classes: Classes that there is room for from the first datum on: while no more appear, nothing is compiled anew.
            There is a filter for each, whether it was met or not, so that room for many costs time. None: room for 3.
            Where more appear room doubles (7, 15, 31, ...), and one set of programs is compiled for each size.

    >>> model = Classifier()
    >>> for t in range(60):
    ...     model.learn_one({"a": float(t % 6)}, "high" if t % 6 > 2 else "low")
    >>> model.predict_one({"a": 5.0}), model.predict_proba_one({"a": 0.0})["low"] > 0.9
    ('high', True)
    """

    kind = "Classifier"

    def __init__(
        self,
        method: Any = "LG+RL[1]-OUPR(hazard=0.001)",
        prior: Any = 10.0,
        false_alarms: Any = 0.001,
        capacity: Any = None,
        pending: Any = 1000,
        classes: Any = None,
    ):
        self.method = method
        self.prior = prior
        self.false_alarms = false_alarms
        self.capacity = capacity
        self.pending = pending
        self.classes = classes

    @property
    def classes_(self) -> np.ndarray:
        """The classes met so far, sorted; the order of the columns of `predict_proba`."""
        if "_labels" not in vars(self):
            raise AttributeError("nothing was learned yet: Classifier has no classes_ before the first label.")
        labels = self._order()
        kinds = {type(label) for label in labels} - {int, float}
        apart = len(kinds) + any(type(label) in (int, float) for label in labels) > 1
        return np.array(labels, dtype=object if apart else None)  # an array of one type would make them one

    @property
    def _multiclass(self) -> bool:
        return True

    def predict_one(self, x: Mapping, with_dist: bool = False, *, id: Hashable = None) -> Any:
        """The most probable label; None before any was met.

        Args:
            x: Features by name.
            with_dist: Return the forecast distribution instead: `.mode`, `.prob(y)`, `.log_prob(y)`, `.entropy`.
            id: Remember x until its label comes with `learn_one(None, y, id=id)`.
        """
        law = Chances(self.predict_proba_one(x, id=id))
        return law if with_dist else law.mode

    @one_at_a_time
    def predict_proba_one(self, x: Mapping, *, id: Hashable = None) -> dict[Any, float]:
        """The probability of each class met so far; empty before any was met.

        Args:
            x: Features by name.
            id: Remember x until its label comes with `learn_one(None, y, id=id)`.
        """
        row = self._ask(x, id)
        if not row.size or not self._labels:
            return {}
        return dict(zip(self._labels, self._shares(row[None])[0].tolist(), strict=True))

    def predict_proba_many(self, X: Any) -> Any:
        """The probability of each class for each row of a data frame."""
        import pandas as pd

        rows = [self.predict_proba_one(x) for x in records(X)]
        return pd.DataFrame(rows, index=X.index)

    def predict_many(self, X: Any) -> Any:
        """The most probable label for each row of a data frame."""
        import pandas as pd

        rows = [self.predict_one(x) for x in records(X)]
        return pd.Series(rows, index=X.index)

    @one_at_a_time
    def fit(self, X: Any, y: Any) -> "Classifier":
        """Forget everything, then learn from the rows of arrays, in their order."""
        self._forget()
        return self.partial_fit(X, y)

    @one_at_a_time
    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> "Classifier":
        """Go on learning from the rows of arrays, in their order.

        Args:
            X: (T, M).
            y: (T,) labels.
            classes: All classes that may come, where `predict_proba` is to have a column for each from the start.
        """
        target = self._fit_arrays(X, y, arrays.labels_of, "n_features_in_" not in vars(self))
        table = vars(self).pop("_arrays")
        for label in sorted(set(np.asarray([] if classes is None else classes).tolist()) - set(self._labels)):
            self._class(label)
        self._table.settle(table.shape[1])
        self._learn_table(self._names(table.shape[1]), table, target.tolist())
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The most probable label for the rows of an array."""
        chances = self.predict_proba(X)
        return self.classes_[np.argmax(chances, axis=1)]

    @one_at_a_time
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities (T, C), columns in the order of `classes_`."""
        rows = self._rows_of(X)
        shares = self._shares(rows)
        return shares[:, [self._labels.index(label) for label in self._order()]]

    def score(self, X: Any, y: Any) -> float:
        """Share of labels that are predicted right."""
        found = self.predict(X)
        return float(np.mean(found == arrays.labels_of(type(self).__name__, y, len(found))))

    def _begin(self) -> None:
        if self.classes is not None:
            checks.whole("classes", self.classes, least=2, hint="It is the number of classes to keep room for.")
        super()._begin()
        if "_labels" not in vars(self):
            self._labels: list = []

    def _order(self) -> list:
        try:
            return sorted(self._labels)
        except TypeError:  # labels of several types have no order but that of their text
            return sorted(self._labels, key=repr)

    def _heads(self) -> int:
        """Heads, of which at least one is for a class that was never met: 4, 8, 16, ..."""
        heads = 4
        while heads < max(len(self._labels), self.classes or 0) + 1:
            heads *= 2
        return heads

    def _shares(self, rows: np.ndarray) -> np.ndarray:
        chances = self._engine().look(self._vector, rows)[:, : len(self._labels)]
        chances = np.maximum(chances, 1e-300)
        return chances / chances.sum(axis=1, keepdims=True)

    def _targets(self, y: Sequence) -> np.ndarray:
        """Index of each label, and how many classes were known before it; a new label becomes a class."""
        targets = np.zeros((len(y), 2))
        for at, label in enumerate(y):
            targets[at, 1] = len(self._labels)
            label = label.item() if isinstance(label, np.generic) else label
            targets[at, 0] = np.nan if is_missing(label) else self._class(label)
        return targets

    def _class(self, label: Any) -> int:
        """The number of a label; a new one becomes a class."""
        if not hashable(label):
            raise ValueError(f"y must be a label, got {label!r:.40}; give a text, a number or a truth value.")
        if label in self._labels:
            at = self._labels.index(label)
            known = self._labels[at]
            if isinstance(known, bool) != isinstance(label, bool):
                raise ValueError(
                    f"the label {label!r:.40} came after {known!r:.40}, and to Python the two are equal; give labels "
                    "of one type, such as texts."
                )
            return at
        alike = [known for known in self._labels if str(known) == str(label)]
        if alike:
            warnings.warn(
                f"the label {label!r:.40} came after {alike[0]!r:.40}: they are two classes; give labels of one type "
                "if they are meant to be one.",
                stacklevel=5,
            )
        self._labels.append(label)
        return len(self._labels) - 1
