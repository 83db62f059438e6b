"""Predict a number from a stream."""

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from filtax.estimators import arrays
from filtax.estimators.beginning import Beginning
from filtax.estimators.features import SIZES, is_missing
from filtax.estimators.params import one_at_a_time
from filtax.estimators.stream import Learner, records
from filtax.estimators.stretch import deviation

__all__ = ["Regressor"]


class Regressor(Learner):
    """Regression that starts with the first datum, follows change, shrugs off outliers, and says how sure it is.

    The verbs of river for dicts (`learn_one`, `predict_one`, `learn_many`, `predict_many`), those of scikit-learn for
    arrays (`fit`, `partial_fit`, `predict`, `score`). Features may come and go; texts are categories; numbers are put
    into units as they come. The noise variance is learned. Forecasts are those of a Bayesian linear filter. Threads may
    share one: they wait for each other.

    Args:
        method: Name of a filter for a linear model, in the grammar of `filtax.method`.
        prior: Variance of the weights before any datum, in units of the noise and of the scaled features.
        false_alarms: Probability that a good datum is called an outlier. What is done about it stays at 0.001 where
            this is more: a datum that is not learned from, and a false alarm of a change, come at most so often.
        capacity: Slots for features, all there from the first datum on, so that a name may appear, disappear and
            return and nothing is compiled anew; a category fills one for each of its texts. Of C slots C // 8 are
            shared by all names that come once the others are taken, with a warning. None: 31, or 63, 127 or 255
            where the names of the first datum need them.
        level: Probability that the intervals hold.
        pending: Data that may wait for a late label.

    >>> model = Regressor()
    >>> for t in range(50):
    ...     model.learn_one({"t": float(t), "day": "sunday" if t % 7 == 0 else "other"}, 2.0 * t + 5.0 * (t % 7 == 0))
    >>> round(model.predict_one({"t": 50.0, "day": "other"}))
    100
    >>> model.learn_one({"t": 50.0, "day": "other"}, 1e6)
    >>> model.alarm_, model.trust_
    ('outlier', 0.0)
    """

    kind = "Regressor"

    def __init__(
        self,
        method: Any = "WoLF-IMQ(c=4)+NIG(shape=2, rate=0.2)+RL[1]-OUPR(hazard=0.0003)",
        prior: Any = 20.0,
        false_alarms: Any = 0.001,
        capacity: Any = None,
        level: Any = 0.9,
        pending: Any = 1000,
    ):
        self.method = method
        self.prior = prior
        self.false_alarms = false_alarms
        self.capacity = capacity
        self.level = level
        self.pending = pending

    @one_at_a_time
    def predict_one(self, x: Mapping, with_dist: bool = False, *, id: Hashable = None) -> Any:
        """Forecast y for one datum; nothing that was learned changes.

        Args:
            x: Features by name.
            with_dist: Return the forecast distribution instead of its mean.
            id: Remember x until its label comes with `learn_one(None, y, id=id)`.

        Returns:
            The mean, 0.0 before any datum; or a distribution with `.mean`, `.var`, `.interval(0.9)`, `.cdf(y)`,
            `.log_prob(y)`.
        """
        row = self._ask(x, id)
        if with_dist:
            return self._distribution(row)
        return float(self._engine().look(self._vector, row[None])[0, 0]) if row.size else 0.0

    @one_at_a_time
    def predict_interval_one(self, x: Mapping, level: float | None = None) -> tuple[float, float]:
        """The central interval that holds y with probability `level`, the estimator's own if left out.

        It is that of the forecast, stretched by what the intervals of the data so far have held.
        """
        row = self._ask(x)
        own = self._engine().stretch(self._vector) if row.size else 0.0
        return self._distribution(row).interval(self.level if level is None else level, own)

    @one_at_a_time
    def predict_many(self, X: Any) -> Any:
        """Forecast y for each row of a data frame, as `predict_one` does."""
        found = [self._ask(row) for row in records(X)]
        means = (
            self._engine().look(self._vector, np.stack(found))[:, 0] if found and found[0].size else np.zeros(len(X))
        )
        import pandas as pd

        return pd.Series(means, index=X.index)

    @one_at_a_time
    def fit(self, X: Any, y: Any) -> "Regressor":
        """Forget everything, then learn from the rows of arrays, in their order."""
        self._forget()
        return self.partial_fit(X, y)

    @one_at_a_time
    def partial_fit(self, X: Any, y: Any) -> "Regressor":
        """Go on learning from the rows of arrays, in their order; equals `learn_one` on each, with as many slots."""
        target = self._fit_arrays(X, y, arrays.numbers_of, "n_features_in_" not in vars(self))
        table = vars(self).pop("_arrays")
        self._table.settle(table.shape[1])
        self._learn_table(self._names(table.shape[1]), table, list(target))
        return self

    @one_at_a_time
    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Forecast y for the rows of an array, from what is known now.

        Args:
            X: (T, M).
            return_std: Return standard deviations of y, too.

        Returns:
            (T,) means, and (T,) standard deviations if asked for.
        """
        seen = self._engine().look(self._vector, self._rows_of(X)) if self.__sklearn_is_fitted__() else self._rows_of(X)
        return (seen[:, 0], np.sqrt(seen[:, 1])) if return_std else seen[:, 0]

    def score(self, X: Any, y: Any) -> float:
        """Share of the variance of y that the forecasts explain, R²."""
        forecast = self.predict(X)
        y = arrays.numbers_of(type(self).__name__, y, len(forecast))
        total = float(np.sum((y - y.mean()) ** 2))
        left = float(np.sum((y - forecast) ** 2))
        return 1.0 - left / total if total > 0.0 else float(left == 0.0)

    @property
    def outliers_(self) -> tuple[int, ...]:
        """How many data ago the outliers came that the last datum showed: 0 is itself; empty where `alarm_` is none.

        Among the first 24 data a gross error may be known only behind it, from the sixth on.
        """
        if self.alarm_ != "outlier":
            return ()
        if self._first is None or not self._first.back:
            return (0,)
        return (*self._first.back, 0) if self._first.odd else self._first.back

    @property
    def _promised(self) -> tuple[float, float]:
        return float(self.level), deviation(self.level)

    def _begin(self) -> None:
        new = "_table" not in vars(self)
        super()._begin()
        if new:
            self._first = Beginning()

    def _targets(self, y: Sequence) -> np.ndarray:
        targets = np.zeros((len(y), 2))
        for at, value in enumerate(y):
            try:
                targets[at, 0] = math.nan if is_missing(value) else float(value)
            except (TypeError, ValueError, OverflowError):
                raise ValueError(f"y is {value!r:.40}; give a number, or None where it is missing.") from None
        return targets

    def _distribution(self, row: np.ndarray) -> Any:
        from filtax.estimators.engine import engine

        if row.size:
            return self._engine().distribution(self._vector, row)
        slots = self.capacity or SIZES[0]  # as many as the first datum is likely to find
        blank = engine(self.method, float(self.prior), slots, 0)
        return blank.distribution(blank.fresh, np.full(slots, np.nan))
