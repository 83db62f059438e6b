"""Predict a number from a stream."""

import math
from collections.abc import Hashable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from jaxtyping import Float

from filtax.estimators import _frames as frames
from filtax.estimators._frames import own_columns
from filtax.estimators._learner import Learner
from filtax.estimators._parameters import one_at_a_time
from filtax.forecasting import Series, standard

UNKNOWN = (0.0, -math.inf, math.inf)
STANDARD = NormalDist()


@dataclass(frozen=True)
class Forecast:
    """The distribution of the next y: its interval, with the tails of a Gaussian beyond it.

    Each side of the forecast holds half of the probability; its Gaussian has the width that the interval says.

    Attributes:
        mean: The forecast.
        lower, upper: The interval that holds y with probability `level`.
        level: Probability of the interval.

    >>> seen = Forecast(3.0, 1.0, 5.0, 0.9)
    >>> seen.interval(0.9), seen.cdf(3.0), round(seen.sigma, 3)
    ((1.0, 5.0), 0.5, 1.216)
    """

    mean: float
    lower: float
    upper: float
    level: float

    @property
    def sigma(self) -> float:
        """Standard deviation of y, the mean of the two sides."""
        return 0.5 * (self.upper - self.lower) / deviation(self.level)

    @property
    def var(self) -> float:
        """Variance of y."""
        return self.sigma**2

    def interval(self, level: float = 0.9) -> tuple[float, float]:
        """The central interval that holds y with probability `level`."""
        ratio = deviation(level) / deviation(self.level)
        return self.mean - ratio * (self.mean - self.lower), self.mean + ratio * (self.upper - self.mean)

    def cdf(self, y: float) -> float:
        """Probability that y is at most this."""
        return STANDARD.cdf((y - self.mean) / self._side(y))

    def log_prob(self, y: float) -> float:
        """Log density at y."""
        sigma = self._side(y)
        return -0.5 * ((y - self.mean) / sigma) ** 2 - math.log(sigma) - 0.5 * math.log(2.0 * math.pi)

    def _side(self, y: float) -> float:
        width = self.mean - self.lower if y < self.mean else self.upper - self.mean
        return max(width / deviation(self.level), 1e-300)


class Regressor(Learner):
    """Regression by a bank of competing filters: it follows change, withstands outliers, and says how sure it is.

    The verbs are river's for dicts (`learn_one`, `predict_one`, `learn_many`, `predict_many`) and scikit-learn's for
    arrays and tables (`fit`, `partial_fit`, `predict`, `score`). Features may come and go, and texts are categories.
    The numbers are those of `filtax.forecasting.Series` and `filtax.monitoring.Monitor`. Threads may share one.

    Args:
        season: Rows of a season; 1 for none, None to detect one in the first rows.
        method: Name of a filter, in the grammar of `filtax.method`, in place of the standard filters.
        level: Probability that the intervals hold.
        false_alarms: Probability that a good row is called an outlier.
        capacity: Columns for features; a text takes one for each of its values. Names that come when all are taken
            share the last ones, with a warning. None lets the first 64 rows decide.
        pending: Rows that may wait for a late label.

    >>> model = Regressor()
    >>> for t in range(80):
    ...     model.learn_one({"load": float(t % 7)}, 3.0 * (t % 7) + 20.0)
    >>> round(model.predict_one({"load": 5.0}))
    35
    >>> model.learn_one({"load": 5.0}, 1e6)
    >>> model.alarm_
    'outlier'
    """

    kind = "Regressor"

    def __init__(
        self,
        season: Any = 1,
        method: Any = None,
        level: Any = 0.9,
        false_alarms: Any = 0.001,
        capacity: Any = None,
        pending: Any = 1000,
    ):
        self.season = season
        self.method = method
        self.level = level
        self.false_alarms = false_alarms
        self.capacity = capacity
        self.pending = pending

    @one_at_a_time
    def predict_one(self, x: Any, with_dist: bool = False, *, id: Hashable = None) -> Any:
        """Forecast y for one row; nothing that was learned changes.

        Args:
            x: Features by name.
            with_dist: Return the distribution, with `.mean`, `.var`, `.interval(0.9)`, `.cdf(y)` and `.log_prob(y)`.
            id: Remember x until its label comes with `learn_one(None, y, id=id)`.

        Returns:
            The forecast, 0.0 before anything was learned; or the distribution.
        """
        law = self._law(self._ask(x, id))
        return law if with_dist else law.mean

    @one_at_a_time
    def predict_interval_one(self, x: Any, level: float | None = None) -> tuple[float, float]:
        """The central interval that holds y with probability `level`, the estimator's own if not given.

        The widths of other levels follow from that of the own one as those of a Gaussian do. Without bounds before
        the first error is known.
        """
        law = self._law(self._ask(x))
        return (law.lower, law.upper) if level is None else law.interval(level)

    @one_at_a_time
    def predict_many(self, X: Any) -> Any:
        """Forecast y for each row of what `learn_many` takes: an array, or a series of pandas if X is of pandas."""
        frame = frames.frame_of(X)
        fitted = self.__sklearn_is_fitted__()
        means = self._forecasts(self._table(frame))[0] if fitted else np.zeros(len(frame))
        return frames.wrapped(means, frame.index)

    @one_at_a_time
    def partial_fit(self, X: Any, y: Any):
        """Go on learning from the rows of a table or an array, in their order; equals `learn_one` on each."""
        return self._fit(X, y)

    @one_at_a_time
    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Forecast y for the rows of a table or an array, from what is known now.

        Args:
            X: (T, M).
            return_std: Return standard deviations of y, too.

        Returns:
            (T,) forecasts, and (T,) standard deviations if asked for.
        """
        mean, lower, upper = self._forecasts(self._rows_of(X))
        return (mean, 0.5 * (upper - lower) / deviation(self.level)) if return_std else mean

    def score(self, X: Any, y: Any) -> float:
        """Share of the variance of y that the forecasts explain, R²."""
        forecast = self.predict(X)
        y = frames.numbers(y, len(forecast))
        total = float(np.nansum((y - np.nanmean(y)) ** 2))
        rest = float(np.nansum((y - forecast) ** 2))
        return 1.0 - rest / total if total > 0.0 else float(rest == 0.0)

    def _law(self, row: np.ndarray | None) -> Forecast:
        mean, lower, upper = UNKNOWN if row is None else self._forecasts(row)[:, 0].tolist()
        return Forecast(mean, lower, upper, self.level)

    def _forecasts(self, table: np.ndarray) -> Float[np.ndarray, "3 T"]:
        """Forecasts and intervals; 0 without bounds where nothing is known yet."""
        out = self._settle(table)
        said = np.stack([out.forecast[:, 0], out.lower[:, 0], out.upper[:, 0]])
        return np.where(np.isnan(said), np.array(UNKNOWN)[:, None], said)

    def _checked(self, y: Any) -> float:
        return frames.number(y)

    def _codes(self, y: Any, length: int) -> np.ndarray:
        return frames.numbers(y, length)

    def _new(self, width: int, saved: tuple[dict, dict] | None = None) -> Series:
        # the experts are those for the columns that names of their own may have, so that spare ones change nothing
        experts, miss = None if self.method else standard(own_columns(width)), round(1.0 - self.level, 12)
        if saved is not None:
            return Series.restore(*saved, experts)
        return Series(known=width, season=self.season, experts=experts, miss=miss, method=self.method)

    def _advance(self, rows: np.ndarray, y: np.ndarray, asked: np.ndarray | None) -> tuple[tuple[np.ndarray, ...], Any]:
        if asked is None:
            out, said = self._driver.learn(y, known=rows), None
        else:
            out, said = self._driver.learn_and_predict(y, rows, asked)
        return (out.forecast[:, 0], out.lower[:, 0], out.upper[:, 0]), said

    def _judge(self, y: np.ndarray, *issued: np.ndarray) -> Any:
        return self._monitor.learn(y, *issued)


def deviation(level: float) -> float:
    """Standard deviations to either side within which a Gaussian holds `level`."""
    if not 0.0 < level < 1.0:
        raise ValueError(f"level={level!r} must lie strictly between 0 and 1; for 90 % give 0.9.")
    return STANDARD.inv_cdf(0.5 * (1.0 + level))
