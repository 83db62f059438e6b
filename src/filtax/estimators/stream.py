"""What all estimators of a target do with a stream: rows, memory, late labels, alarms, and the verbs for many rows."""

import math
from collections.abc import Hashable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from filtax import _validation as checks
from filtax.estimators import alarms, arrays
from filtax.estimators.beginning import Beginning
from filtax.estimators.engine import EXTRA, Engine, engine, grown
from filtax.estimators.features import SlotTable
from filtax.estimators.memory import TOLD
from filtax.estimators.params import Estimator, one_at_a_time
from filtax.estimators.pending import Pending
from filtax.estimators.stretch import deviation

__all__ = ["Learner", "records"]

WIDEST = 1e100  # prior variance: with this one a single datum is believed as it is


class Learner(Estimator):
    """A stream of features and a target. `Regressor` and `Classifier` say what a target is.

    >>> from filtax.estimators import Regressor
    >>> isinstance(Regressor(), Learner)
    True
    """

    method: str
    prior: float
    false_alarms: float
    capacity: int | None
    pending: int

    # one datum

    @one_at_a_time
    def learn_one(self, x: Mapping | None, y: Any, *, id: Hashable = None) -> None:
        """Learn from one datum.

        Args:
            x: Features by name: numbers, texts, None where missing. None for a datum that waits under `id`.
            y: The target; None or NaN where it is missing, which lets time pass and teaches nothing: a method that
                follows changes knows a little less afterwards, by its hazard; C-Static forecasts as before. An infinite
                number is an outlier, and teaches as little.
            id: Of a datum that `predict_one(x, id=...)` was asked about; a label for an id that does not wait (never
                asked about, given up, or labelled before) is counted in `late_` and teaches nothing.
        """
        self._begin()
        if x is None:
            if id is None:
                raise ValueError("learn_one(None, y): give the features x, or the id of a datum that was predicted.")
            x = self._pending.take(id)
            if x is None:
                return
        elif id is not None and self._pending.has(id):
            self._pending.take(id)
        row = self._table.row(x)
        self._learn(row[None], self._targets([y]))

    def _ask(self, x: Mapping, id: Hashable = None) -> np.ndarray:
        """One row to predict for; a datum with an id is remembered until its label comes."""
        if id is not None:
            self._begin()
            self._pending.put(id, x)
        if not self.__sklearn_is_fitted__():
            return np.full(0, np.nan)
        return self._table.row(x, learn=False)

    # many rows

    @one_at_a_time
    def learn_many(self, X: Any, y: Any) -> None:
        """Learn from many rows: exactly what `learn_one` would have learned from each in turn.

        Args:
            X: A data frame, or a sequence of dicts.
            y: As many targets.
        """
        self._begin()
        y = list(y)
        if len(X) != len(y):
            raise ValueError(f"learn_many: X has {len(X)} rows but y has {len(y)}; row t of each must belong together.")
        if hasattr(X, "columns") and all(getattr(kind, "kind", "O") in "fiub" for kind in X.dtypes):
            names = [name.item() if isinstance(name, np.generic) else name for name in X.columns]
            self._learn_table(names, _numbers(X), y)
            return
        rows = records(X) if hasattr(X, "columns") else list(X)
        for x, target in zip(rows, y, strict=True):
            self._learn(self._table.row(x)[None], self._targets([target]))

    def _learn_table(self, names: Sequence[Hashable], X: np.ndarray, y: list) -> None:
        """Rows of numbers: a name takes its slot at the first row that holds it, as it would one by one."""
        X = np.where(np.isfinite(X), X, np.nan)
        keys = self._table.columns(names)
        there = np.isfinite(X)
        first = np.where(there.any(axis=0), there.argmax(axis=0), len(X))
        new = [at for at, key in enumerate(keys) if key not in self._table.slot and first[at] < len(X)]
        cuts = sorted({0, *(int(first[at]) for at in new), len(X)})
        for start, end in pairwise(cuts):
            self._table.admit([keys[at] for at in new if first[at] == start])
            self._learn(self._rows(keys, X[start:end]), self._targets(y[start:end]))

    def _rows(self, keys: Sequence[tuple], X: np.ndarray) -> np.ndarray:
        rows = np.full((len(X), self._table.room), np.nan)
        for column, key in enumerate(keys):
            at = self._table.find(key)
            if at is not None:
                rows[:, at] = np.where(np.isnan(X[:, column]), rows[:, at], X[:, column])
        return rows

    # arrays

    def _fit_arrays(self, X: Any, y: Any, check: Any, first: bool) -> np.ndarray:
        """Check arrays by scikit-learn's rules; returns the target."""
        owner = type(self).__name__
        names, table = arrays.names_of(X), arrays.matrix(owner, X)
        target = check(owner, y, len(table))
        if first:
            self.n_features_in_ = table.shape[1]
            vars(self).pop("feature_names_in_", None)
            if names is not None:
                self.feature_names_in_ = names
        else:
            self._check_features(names, table.shape[1])
        self._begin()
        self._arrays = table
        return target

    def _check_features(self, names: np.ndarray | None, width: int) -> None:
        known, count = getattr(self, "feature_names_in_", None), getattr(self, "n_features_in_", width)
        arrays.same_features(type(self).__name__, known, count, names, width)

    def _names(self, width: int) -> list[Hashable]:
        known = getattr(self, "feature_names_in_", None)
        return list(range(width)) if known is None else list(known)

    def _rows_of(self, X: Any) -> np.ndarray:
        """Rows to predict for, of arrays."""
        if not self.__sklearn_is_fitted__():
            raise arrays.not_fitted(type(self).__name__)
        names, table = arrays.names_of(X), arrays.matrix(type(self).__name__, X)
        self._check_features(names, table.shape[1])
        return self._rows(self._table.columns(self._names(table.shape[1])), table)

    # what is remembered

    def _begin(self) -> None:
        """Start the stream, once; the parameters are checked here and not before."""
        if "_table" in vars(self):
            return
        checks.positive("false_alarms", self.false_alarms, hint="It is a probability for each datum.")
        checks.share("false_alarms", self.false_alarms, hint="It is a probability for each datum.")
        checks.positive("prior", self.prior, hint="It is the variance of the weights before any datum.")
        if not self.prior <= WIDEST:
            raise ValueError(f"prior must be at most {WIDEST:g}, got {self.prior!r:.40}: its products would overflow.")
        if not isinstance(self.method, str):
            raise ValueError(f"method must be a name such as {type(self)().method!r}, got {self.method!r:.60}.")
        table, pending = SlotTable(self.capacity), Pending(self.pending)
        self._table, self._pending, self._size = table, pending, (0, 0)
        self._first: Beginning | None = None

    def _forget(self) -> None:
        for name in (
            "_first",
            "_labels",
            "_pending",
            "_size",
            "_table",
            "_vector",
            "feature_names_in_",
            "n_features_in_",
        ):
            vars(self).pop(name, None)

    def _heads(self) -> int:
        return 0

    @property
    def _promised(self) -> tuple[float, float]:
        """Probability that intervals hold, and the normal deviation that goes with it; nobody asks labels for it."""
        return 0.9, deviation(0.9)

    def _engine(self) -> Engine:
        return engine(self.method, float(self.prior), *self._size)

    def _make_room(self) -> None:
        """Grow the memory to the slots and heads that are needed now."""
        wanted = (self._table.room, self._heads())
        if wanted == self._size:
            return
        new = engine(self.method, float(self.prior), *wanted)
        if "_vector" in vars(self):
            old = self._engine()
            self._vector = grown(old, new, self._vector)
        else:
            self._vector = new.fresh.copy()
        self._size = wanted

    def _learn(self, rows: np.ndarray, targets: np.ndarray) -> None:
        self._make_room()
        given = self._extended(rows, targets)
        done = self._begun(given)
        if done < len(given):
            self._vector = self._engine().learn(self._vector, given[done:])[0]

    def _begun(self, given: np.ndarray) -> int:
        """Learn those of some rows that belong to the beginning of the stream; how many there were."""
        done = 0
        while count := self._at_once(given[done:]):
            part = given[done : done + count]
            memory, told = self._engine().learn(self._vector, part)
            self._vector, done = self._looked_back(part, memory, told), done + count
        return done

    def _at_once(self, given: np.ndarray) -> int:
        """How many of some rows belong to the beginning and can be learned before one looks back."""
        count = 0 if self._first is None else self._first.at_once(given)
        if not count and len(given):
            self._first = None  # it is over
        return count

    def _looked_back(self, given: np.ndarray, memory: np.ndarray, told: np.ndarray) -> np.ndarray:
        """The memory behind some rows; one that has learned all rows anew, where these have shown errors."""
        assert self._first is not None
        if not self._first.take(given, told[:, TOLD.index("alarm")]):
            return memory
        kernels = self._engine()
        return self._first.alarmed(kernels.learn(kernels.fresh, self._first.learned())[0])

    def _extended(self, rows: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Rows as the kernels take them: features, target, and what belongs to them."""
        extra = np.empty((len(rows), 1 + EXTRA))
        extra[:, 0] = targets[:, 0]
        extra[:, 1], extra[:, 2] = -math.log(alarms.acted_on(self.false_alarms)), self.false_alarms
        extra[:, 3] = targets[:, 1]  # classes known before
        extra[:, 4:] = self._promised
        return np.concatenate([rows, extra], axis=1)

    def _targets(self, y: Sequence) -> np.ndarray:
        """Targets as numbers, and how many classes were known before each, (T, 2)."""
        raise TypeError("a Learner has no target of its own; use Regressor or Classifier.")

    @one_at_a_time
    def _told(self, name: str) -> float:
        if not self.__sklearn_is_fitted__():
            raise AttributeError(
                f"nothing was learned yet: {type(self).__name__} has no {name}_ before the first datum."
            )
        return self._engine().told(self._vector)[name]

    @property
    def alarm_(self) -> str | None:
        """What the last datum was: None if it was as expected, else "outlier", "change" or "missing"."""
        return alarms.NAMES[int(self._told("alarm"))]

    @property
    def trust_(self) -> float:
        """How far the last datum was believed, in [0, 1]."""
        return self._told("trust")

    @property
    def change_probability_(self) -> float:
        """Probability, as the filter sees it, that the process changed at the last datum."""
        return self._told("change_probability")

    @property
    def runlength_(self) -> int:
        """Data since the last change."""
        return int(self._told("runlength"))

    @property
    def late_(self) -> dict[str, int]:
        """Labels that came late: how many data wait, how many were given up, how many labels had no datum."""
        wait = self._pending if "_pending" in vars(self) else Pending(0)
        return {"waiting": len(wait), "given_up": wait.given_up, "unknown": wait.unknown}


def records(X: Any) -> list[dict]:
    """The rows of a data frame as dicts.

    >>> import pandas as pd
    >>> records(pd.DataFrame({"a": [1.0]}))
    [{'a': 1.0}]
    """
    names = list(X.columns)
    return [dict(zip(names, row, strict=True)) for row in X.itertuples(index=False)]


def _numbers(X: Any) -> np.ndarray:
    """The columns of a data frame as numbers, (T, M); a column of pandas' own types is NaN where it holds NA."""
    if all(isinstance(kind, np.dtype) for kind in X.dtypes):
        return np.asarray(X, np.float64)
    return X.to_numpy(np.float64, na_value=np.nan)
