"""Tell when a stream of readings changed."""

import math
from collections.abc import Mapping
from itertools import repeat
from typing import Any

import numpy as np

from filtax import _validation as checks
from filtax.estimators import arrays
from filtax.estimators.features import is_missing
from filtax.estimators.forecast import Chances
from filtax.estimators.params import Estimator, one_at_a_time
from filtax.estimators.reading import Course, together
from filtax.estimators.vigil import Vigil
from filtax.segmentation import Settings

__all__ = ["Segmenter"]

READINGS = "reading"


class Segmenter(Estimator):
    """Changes of one or several readings that change together, told of while they come.

    The alarms of `filtax.segmentation.detect` without a cycle, one reading at a time and in bounded memory: in each
    segment a line and a noise of its own, and the posterior of where the present segment began. A reading that is odd
    is an outlier, and not learned from; if two more follow, or every third of late was odd, they are no errors, and
    are believed.

    Args:
        threshold: Probability of a new regime at which to give an alarm; `filtax.segmentation.calibrate` finds one for
            a chosen rate of false alarms.
        hazard: Probability of a change at a reading.
        least: Readings that a new regime must hold before it is told of.
        warmup: Readings that give the unit of the stream; no change is told of before they are there, and only gross
            errors are outliers, from the ninth reading on.
        keep: Hypotheses kept about the start of the present segment.
        false_alarms: Probability that a good reading is called an outlier; above 0.001 such a reading is learned from
            all the same, if it is no odder than 0.001 of good ones are. 0 believes every reading.

    >>> model = Segmenter()
    >>> for t in range(120):
    ...     model.learn_one({"volts": math.sin(37.0 * t) + (9.0 if t >= 80 else 0.0)})
    >>> model.changes_
    [80]
    """

    def __init__(
        self,
        threshold: Any = 0.99,
        hazard: Any = 0.01,
        least: Any = 5,
        warmup: Any = 30,
        keep: Any = 100,
        false_alarms: Any = 0.001,
    ):
        self.threshold = threshold
        self.hazard = hazard
        self.least = least
        self.warmup = warmup
        self.keep = keep
        self.false_alarms = false_alarms

    @one_at_a_time
    def learn_one(self, x: Any, y: Any = None) -> None:
        """Take one reading.

        Args:
            x: A number, or several by name; None or NaN where missing, and an infinite one is an outlier: neither is
                learned. The names of the first reading stay.
            y: The reading itself where x is None or empty, as in `learn_one({}, error)`, which watches a target or the
                errors of another model; not looked at otherwise.

        >>> model = Segmenter()
        >>> for t in range(120):
        ...     model.learn_one({}, math.sin(37.0 * t) + (9.0 if t >= 80 else 0.0))
        >>> model.changes_
        [80]
        """
        together([self._course(x, y)])

    @one_at_a_time
    def learn_many(self, X: Any, y: Any = None) -> None:
        """Take many readings, as `learn_one` does with each: a data frame, or a sequence of dicts or numbers."""
        rows = X.to_dict("records") if hasattr(X, "columns") else X
        for x, own in zip(rows, repeat(None) if y is None else y, strict=y is not None):
            self.learn_one(x, own)

    def predict_one(self, x: Any = None, with_dist: bool = False) -> Any:
        """The segment that the next reading is in, counted from 0, as far as is known.

        Args:
            x: Not looked at.
            with_dist: Return `Chances`, the probabilities of `predict_proba_one`.
        """
        if with_dist:
            return Chances(self.predict_proba_one(x))
        return len(self.changes_) if self.__sklearn_is_fitted__() else 0

    def predict_proba_one(self, x: Any = None) -> dict[int, float]:
        """The probability of each segment that the next reading may be in.

        With k the present segment and p the probability of a regime that was not told of yet, {k: 1 - p, k + 1: p}.
        With the reading that gives the alarm the regime has just been told of, and is k: {k - 1: 1 - p, k: p}.

        Args:
            x: Not looked at.

        >>> Segmenter().predict_proba_one()
        {0: 1.0}
        >>> model = Segmenter(keep=20)
        >>> for t in range(84):
        ...     model.learn_one(math.sin(37.0 * t) + (9.0 if t >= 80 else 0.0))
        >>> model.predict_one(), {k: round(p, 2) for k, p in model.predict_proba_one().items()}
        (0, {0: 1.0, 1: 0.0})
        """
        if not self.__sklearn_is_fitted__():
            return {0: 1.0}
        before = len(self.changes_) - int(self._told("new"))
        return {before: 1.0 - self.change_probability_, before + 1: self.change_probability_}

    @one_at_a_time
    def fit(self, X: Any, y: Any = None) -> "Segmenter":
        """Forget everything, then take the rows of an array (T, O) as readings."""
        for name in ("_names", "_vigil", "n_features_in_", "feature_names_in_"):
            vars(self).pop(name, None)
        return self.partial_fit(X)

    @one_at_a_time
    def partial_fit(self, X: Any, y: Any = None) -> "Segmenter":
        """Go on with the rows of an array (T, O) as readings."""
        owner = type(self).__name__
        names, table = arrays.names_of(X), arrays.matrix(owner, X)
        if "n_features_in_" not in vars(self):
            self.n_features_in_ = table.shape[1]
            if names is not None:
                self.feature_names_in_ = names
        known = getattr(self, "feature_names_in_", None)
        arrays.same_features(owner, known, self.n_features_in_, names, table.shape[1])
        if "_names" not in vars(self):
            self._begin(list(range(table.shape[1])) if known is None else list(known))
        for row in table:
            together([self._vigil.read(row)])
        return self

    def fit_predict(self, X: Any, y: Any = None) -> np.ndarray:
        """Forget everything, then the segment of each row of an array (T, O), counted from 0, as known at the end.

        There is no `predict(X)`, as scikit-learn's `DBSCAN` has none: the segment of a reading depends on all that came
        before it, so that rows of another array have none of their own.
        """
        return self.fit(X).labels_

    def _course(self, x: Any, y: Any) -> Course:
        """One reading, checked and ready to be learned; the first one says what its numbers are called."""
        x = x if isinstance(x, Mapping) else {READINGS: x}
        empty = not x or (len(x) == 1 and x.get(READINGS, 0.0) is None)
        if empty and y is not None and vars(self).get("_names", [READINGS]) == [READINGS]:
            x = {READINGS: y}
        if not x and not self.__sklearn_is_fitted__():
            raise ValueError(
                "Segmenter.learn_one: x is {} and there is no y; give {name: number}, or the reading as y."
            )
        names = self._names if self.__sklearn_is_fitted__() else sorted(x, key=repr)
        row = np.array([_number(name, x.get(name)) for name in names])
        if not self.__sklearn_is_fitted__():
            self._begin(names)
        return self._vigil.read(row)

    def _begin(self, names: list) -> None:
        checks.share("threshold", self.threshold, hint="It is the probability of a new regime that gives an alarm.")
        checks.whole("warmup", self.warmup, least=2, hint="It is a number of readings.")
        checks.share("false_alarms", self.false_alarms, hint="It is a probability for each reading.")
        checks.whole("least", self.least, least=1, hint="It is a number of readings.")
        self._vigil = Vigil(
            Settings(hazard=self.hazard, noise=0.5, keep=self.keep),
            len(names),
            threshold=self.threshold,
            least=self.least,
            warmup=self.warmup,
            false_alarms=self.false_alarms,
        )
        self._names = names

    def __sklearn_is_fitted__(self) -> bool:
        """Whether anything was read."""
        return "_names" in vars(self)

    def _watched(self, name: str) -> Vigil:
        if "_vigil" not in vars(self):
            raise AttributeError(f"nothing was read yet: Segmenter has no {name} before the first reading.")
        return self._vigil

    def _told(self, name: str) -> Any:
        return self._watched(name).last[name]

    @property
    def t_(self) -> int:
        """Readings so far."""
        return self._watched("t_").t

    @property
    def changes_(self) -> list[int]:
        """Where each segment but the first began, as indices of readings."""
        return self._watched("changes_").changes

    @property
    def labels_(self) -> np.ndarray:
        """The segment of each reading so far, (T,), counted from 0, as known now.

        >>> Segmenter(keep=5, warmup=4).fit([[0.0], [1.0], [0.0], [1.0], [0.5]]).labels_.tolist()
        [0, 0, 0, 0, 0]
        """
        watched = self._watched("labels_")
        return np.searchsorted(watched.changes, np.arange(watched.t), side="right")

    @property
    def alarm_(self) -> str | None:
        """What the last reading brought: None, "outlier", "change", or "missing"."""
        return self._told("alarm")

    @property
    def change_probability_(self) -> float:
        """Probability that a regime began after the last change that was told of.

        With the reading that gives an alarm, that of the regime it tells of.
        """
        return 1.0 / (1.0 + math.exp(-max(self._told("odds"), -700.0)))

    @property
    def runlength_(self) -> int:
        """Most probable number of readings since the present segment began."""
        return self.t_ - 1 - self._told("start")

    @property
    def trust_(self) -> float:
        """1.0 for a reading that was learned from, 0.0 for one that is missing or too odd."""
        return self._told("trust")


def _number(name: Any, value: Any) -> float:
    try:
        return math.nan if is_missing(value) else float(value)
    except (TypeError, ValueError):
        raise ValueError(
            f"Segmenter.learn_one: the reading {name!r:.40} is {value!r:.40}, which is no number; give a number, None "
            "where it is missing, or several by name as {name: number}."
        ) from None
