"""Changes in a stream of readings, while it comes."""

import math
from collections.abc import Mapping
from itertools import repeat
from typing import Any

import numpy as np

from filtax import _validation as checks
from filtax.estimators import _frames as frames
from filtax.estimators._parameters import Estimator, one_at_a_time
from filtax.estimators.classifier import Chances
from filtax.segmentation import Settings
from filtax.segmentation._live import Live, Memory

__all__ = ["Segmenter"]

READING = "reading"  # the name of a number without one


class Segmenter(Estimator):
    """Changes of one or several readings that change together, found while they come.

    The alarms of `filtax.segmentation.detect` without a cycle, one reading at a time and in bounded memory: in each
    segment a line and a noise of its own, and the posterior of where the present segment began. A reading far from its
    forecast is an outlier and not learned from, unless more than two come in a row.

    Args:
        threshold: Probability of a new segment at which to give an alarm; `filtax.segmentation.calibrate` finds one for
            a rate of false alarms.
        hazard: Probability of a change at a reading.
        least: Readings that a new segment must hold before an alarm.
        warmup: Readings that give the unit of the stream; no alarm comes before, and only gross errors are outliers.
        keep: Hypotheses kept about the start of the present segment.
        false_alarms: Probability that a good reading is an outlier; above 0.001 one that is not rarer than 0.001 is
            learned from all the same. 0 learns from every reading.

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
            x: A number, or several by name; None or NaN where missing. The names of the first reading stay.
            y: The reading where x is None or empty: `learn_one({}, error)` follows the errors of another model.
        """
        x = x if isinstance(x, Mapping) else {READING: x}
        begun = self.__sklearn_is_fitted__()
        empty = not x or (len(x) == 1 and x.get(READING, 0.0) is None)
        if empty and y is not None and (not begun or self._names == [READING]):
            x = {READING: y}
        if not x and not begun:
            raise ValueError(
                "Segmenter.learn_one: x is {} and there is no y; give {name: number}, or the reading as y."
            )
        names = self._names if begun else sorted(x, key=repr)
        row = np.array([_number(name, x.get(name)) for name in names])
        if not begun:
            self._begin(names)
        self._live.read(row)

    @one_at_a_time
    def learn_many(self, X: Any, y: Any = None) -> None:
        """Take many readings, as `learn_one` does with each: a data frame, or a sequence of dicts or numbers."""
        if isinstance(X, frames.Arrow):
            X = frames.frame_of(X).records()
        for x, own in zip(X, repeat(None) if y is None else y, strict=y is not None):
            self.learn_one(x, own)

    def predict_one(self, x: Any = None, with_dist: bool = False) -> Any:
        """The segment that the next reading is in, counted from 0, or the `Chances` of all; x is not looked at."""
        if with_dist:
            return Chances(self.predict_proba_one(x))
        return len(self.changes_) if self.__sklearn_is_fitted__() else 0

    def predict_proba_one(self, x: Any = None) -> dict[int, float]:
        """The probability of each segment that the next reading may be in; x is not looked at.

        With k the present segment and p the probability of one that has had no alarm yet, {k: 1 - p, k + 1: p}. With
        the reading that gives the alarm, p is that of the segment k it begins, and it is {k - 1: 1 - p, k: p}.

        >>> Segmenter().predict_proba_one()
        {0: 1.0}
        """
        if not self.__sklearn_is_fitted__():
            return {0: 1.0}
        before = len(self.changes_) - int(self._live.memory.declared)
        return {before: 1.0 - self.change_probability_, before + 1: self.change_probability_}

    @one_at_a_time
    def fit(self, X: Any, y: Any = None) -> "Segmenter":
        """Forget everything, then take the rows of an array (T, O) as readings."""
        self._forget("_live")
        return self.partial_fit(X)

    @one_at_a_time
    def partial_fit(self, X: Any, y: Any = None) -> "Segmenter":
        """Go on with the rows of an array (T, O) as readings."""
        table = self._table(X)
        if not self.__sklearn_is_fitted__():
            self._begin(list(vars(self).get("feature_names_in_", range(table.shape[1]))))
        for row in table:
            self._live.read(row)
        return self

    def fit_predict(self, X: Any, y: Any = None) -> np.ndarray:
        """Forget everything, then the segment of each row of an array (T, O), counted from 0, as known at the end.

        There is no `predict(X)`: the segment of a reading depends on all that came before it.
        """
        return self.fit(X).labels_

    def __sklearn_is_fitted__(self) -> bool:
        """Whether anything was read."""
        return "_live" in vars(self)

    @property
    def t_(self) -> int:
        """Readings so far."""
        return self._known("t_").t

    @property
    def changes_(self) -> list[int]:
        """Where each segment but the first began, as indices of readings."""
        return self._known("changes_").changes

    @property
    def labels_(self) -> np.ndarray:
        """The segment of each reading so far, (T,), counted from 0, as known now."""
        memory = self._known("labels_")
        return np.searchsorted(memory.changes, np.arange(memory.t), side="right")

    @property
    def alarm_(self) -> str | None:
        """What the last reading was: None if it was as expected, else "outlier", "change" or "missing"."""
        return self._known("alarm_").alarm

    @property
    def change_probability_(self) -> float:
        """Probability that a segment began after the last change; with an alarm, that of the change it declares."""
        return 1.0 / (1.0 + math.exp(-max(self._known("change_probability_").log_odds, -700.0)))

    @property
    def runlength_(self) -> int:
        """Most probable number of readings since the present segment began."""
        memory = self._known("runlength_")
        return memory.t - 1 - memory.start

    @property
    def trust_(self) -> float:
        """1.0 for a reading that was learned from, 0.0 for one that is missing or too far from its forecast."""
        return float(self._known("trust_").learned)

    def _known(self, name: str) -> Memory:
        if not self.__sklearn_is_fitted__():
            raise AttributeError(f"nothing was read yet: Segmenter has no {name} before the first reading.")
        return self._live.memory

    def _begin(self, names: list) -> None:
        checks.share("threshold", self.threshold, hint="It is the probability of a new segment that gives an alarm.")
        checks.whole("warmup", self.warmup, least=2, hint="It is a number of readings.")
        checks.share("false_alarms", self.false_alarms, hint="It is a probability for each reading.")
        checks.whole("least", self.least, least=1, hint="It is a number of readings.")
        own = {name: getattr(self, name) for name in ("threshold", "least", "warmup", "false_alarms")}
        self._live = Live(Settings(hazard=self.hazard, noise=0.5, keep=self.keep), len(names), **own)
        self._names = names

    def _table(self, X: Any) -> np.ndarray:
        """A table or an array as an array (T, O), with the columns of the first one."""
        table = np.column_stack(self._fitted(X).columns).astype(np.float64)
        if np.isinf(table).any():
            raise ValueError("Input X contains infinity or a value too large for dtype('float64').")
        return table

    def _state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Everything learned: plain values, and arrays."""
        if not self.__sklearn_is_fitted__():
            return {}, {}
        return {"names": self._names, "memory": self._live.settings(), **self._columns()}, self._live.arrays()

    def _resume(self, note: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        if note:
            super()._resume(note, arrays)
            self._begin(list(note["names"]))
            self._live.resume(note["memory"], dict(arrays))


def _number(name: Any, value: Any) -> float:
    try:
        return math.nan if value is None else float(value)
    except (TypeError, ValueError):
        raise ValueError(
            f"Segmenter.learn_one: the reading {name!r:.40} is {value!r:.40}, which is no number; give a number, None "
            "where it is missing, or several by name as {name: number}."
        ) from None
