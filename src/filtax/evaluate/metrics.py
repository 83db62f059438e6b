"""The metrics: a loss for each step, and how the losses of many steps become one number.

A metric is a value, so every view (rolling, expanding, by hour of the day) applies to every metric, the user's own
included. What is missing is not scored. Several outputs count as the mean over those that came.

Thesis: experiment:prequential; RMedSE is the score of the robust filters' experiments.
"""

import functools
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from filtax.checks import nearest, numeric
from filtax.evaluate.arrays import Numbers, Values, by_row, namespaced, settle
from filtax.evaluate.forecast import Forecast
from filtax.evaluate.scores import absolute_error, brier_score, correct, squared_error
from filtax.evaluate.statistics import mean, median, unevenness

__all__ = [
    "Metric",
    "accuracy",
    "brier",
    "coverage",
    "crps",
    "log_score",
    "mae",
    "metric",
    "per_horizon",
    "pit",
    "rmedse",
    "rmse",
]


def _as_it_is(value: Values) -> Values:
    return value


@dataclass(frozen=True)
class Metric:
    """A loss per step and its summary; call it for the number, or `losses` for each step's share.

    Attributes:
        name: Heading of its column.
        per_step: From (forecast, y) to losses of the shape (T,) or (T, O); NaN is not scored.
        statistic: From losses and weights (None: all alike) to one number: `mean`, `median` or your own.
        finish: Applied to that number, such as a square root.
        lower_is_better: None when neither is: a coverage should be close to its level.

    Example:
        >>> import numpy as np
        >>> from filtax.evaluate import Metric
        >>> bias = Metric("bias", lambda forecast, y: forecast.mean - y, lower_is_better=None)
        >>> bias(np.array([1.0, 2.0]), np.array([0.0, 0.0])).item()
        1.5
    """

    name: str
    per_step: Callable[[Forecast, Values], Values]
    statistic: Callable[[Values, Values | None], Values] = mean
    finish: Callable[[Values], Values] = _as_it_is
    lower_is_better: bool | None = True

    def losses(self, forecast: Forecast | Numbers, y: Numbers) -> Values:
        """Loss of each step, (T,); NaN where nothing came.

        >>> import numpy as np
        >>> from filtax.evaluate import rmse
        >>> rmse.losses(np.array([1.0, 1.0]), np.array([3.0, np.nan]))
        array([ 4., nan])
        """
        forecast = forecast if isinstance(forecast, Forecast) else Forecast(self._rows("forecast", forecast))
        y = self._rows("y", y)
        if len(forecast.mean) != len(y):
            raise ValueError(
                f"{self.name}: {len(forecast.mean)} forecasts but {len(y)} values; row t must pair with row t."
            )
        xp, loss, y = namespaced(self.per_step(forecast, y), y)
        scored = xp.any(xp.isfinite(by_row(xp, y)), axis=1)
        if forecast.made is not None:
            scored = scored & forecast.made
        return xp.where(scored, mean(by_row(xp, loss).T), math.nan)

    def _rows(self, name: str, values: Numbers) -> Values:
        values = namespaced(numeric(f"{self.name}: {name}", values))[1]
        if values.ndim == 0:
            raise ValueError(f"{self.name}: {name} must have a leading axis T, got a single number; give [number].")
        return values

    def aggregate(self, losses: Numbers, weights: Numbers | None = None) -> Values:
        """Turn losses into the metric; NaN when none is scored.

        >>> from filtax.evaluate import rmse
        >>> rmse.aggregate([4.0, float("nan"), 4.0]).item()
        2.0
        """
        losses = namespaced(numeric(f"{self.name}: losses", losses))[1]
        if weights is not None and np.shape(weights) != losses.shape:
            raise ValueError(
                f"{self.name}: weights of shape {np.shape(weights)} but losses of {losses.shape}; give one for each."
            )
        return self.finish(self.statistic(losses, weights))

    def __call__(self, forecast: Forecast | Numbers, y: Numbers) -> Values:
        """Score T forecasts."""
        return self.aggregate(self.losses(forecast, y))


def coverage(level: float | int = 0.9) -> Metric:
    """Share of values inside the central interval that should hold `level` of them.

    Example:
        >>> import numpy as np
        >>> from filtax.evaluate import Forecast, coverage
        >>> coverage(0.9)(Forecast(np.zeros(2), var=np.ones(2)), np.array([1.0, 3.0])).item()
        0.5
    """
    if not (isinstance(level, int | float | np.number) and 0.0 < level < 1.0):
        raise ValueError(f"coverage(level={level!r}) must lie strictly between 0 and 1; for 90 % give 0.9.")
    return Metric(f"coverage({level:g})", functools.partial(_covered, level=level), lower_is_better=None)


def metric(name: str | Metric) -> Metric:
    """Find a metric by its name; `coverage(0.5)` names one with a level.

    Example:
        >>> from filtax.evaluate import metric
        >>> metric("coverage").name
        'coverage(0.9)'
    """
    if isinstance(name, Metric):
        return name
    if not isinstance(name, str):
        raise ValueError(f'a metric is a name such as "rmse", or a Metric, got {name!r:.40}.')
    level = re.fullmatch(r"coverage(?:\((?:level=)?([0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?)\))?", name)
    if level:
        return coverage(float(level[1] or 0.9))
    if name not in _CATALOGUE:
        raise ValueError(f'no metric is called "{name}". {nearest(name, [*_CATALOGUE, "coverage"])}')
    return _CATALOGUE[name]


def per_horizon(chosen: str | Metric, forecasts: Sequence[Forecast], y: Numbers) -> np.ndarray:
    """Score the forecasts made one step ahead, two steps ahead and so on; y is the same for all.

    Args:
        chosen: A metric or its name.
        forecasts: For each horizon the forecasts of rows 0..T-1; `made` tells where there was none yet.
        y: The values, shape (T,) or (T, O).

    Example:
        >>> import numpy as np
        >>> from filtax.evaluate import Forecast, per_horizon
        >>> y, one = np.array([0.0, 1.0, 2.0]), np.ones(3)
        >>> ahead = [Forecast(y - h, var=one) for h in (1.0, 2.0)]
        >>> per_horizon("coverage(0.9)", ahead, y)
        array([1., 0.])
    """
    if not isinstance(forecasts, list | tuple):
        raise ValueError(f"per_horizon: forecasts must be a list of Forecast, one a horizon, got {forecasts!r:.40}.")
    chosen, y = metric(chosen), np.asarray(y, np.float64)
    return np.array([float(chosen(forecast, y)) for forecast in forecasts])


def _numeric(name: str, forecast: Forecast, y: Values) -> None:
    if forecast.mean.shape != y.shape:
        raise ValueError(
            f"{name} compares numbers, but the forecast has shape {forecast.mean.shape} and y {y.shape}; for class "
            "probabilities use accuracy, brier or log_score."
        )


def _squared(forecast: Forecast, y: Values) -> Values:
    _numeric("a squared error", forecast, y)
    return squared_error(forecast.mean, y)


def _absolute(forecast: Forecast, y: Values) -> Values:
    _numeric("an absolute error", forecast, y)
    return absolute_error(forecast.mean, y)


def _ranked(forecast: Forecast, y: Values) -> Values:
    _numeric("crps", forecast, y)
    return forecast.crps(y)


def _covered(forecast: Forecast, y: Values, level: float) -> Values:
    _numeric("coverage", forecast, y)
    xp, below, upto = namespaced(*forecast.position(y))
    tail = 0.5 * (1.0 - level)
    inside = (upto >= tail) & (below < 1.0 - tail)
    return xp.where(xp.isnan(upto), math.nan, inside.astype(upto.dtype))


def _place(forecast: Forecast, y: Values) -> Values:
    _numeric("pit", forecast, y)
    below, upto = forecast.position(y)
    return 0.5 * (below + upto)


def _named(forecast: Forecast, y: Values) -> Values:
    if forecast.label is None:
        return correct(forecast.mean, y)
    xp, label, y = namespaced(forecast.label, y)
    return settle(xp, (label == y).astype(label.dtype), xp.isfinite(y))


def _square_root(value: Values) -> Values:
    xp, value = namespaced(value)
    return xp.asarray(xp.sqrt(value))


rmse = Metric("rmse", _squared, finish=_square_root)
rmedse = Metric("rmedse", _squared, statistic=median, finish=_square_root)
mae = Metric("mae", _absolute)
log_score = Metric("log_score", Forecast.log_score, lower_is_better=False)
crps = Metric("crps", _ranked)
brier = Metric("brier", lambda forecast, y: brier_score(forecast.mean, y))
accuracy = Metric("accuracy", _named, lower_is_better=False)
pit = Metric("pit", _place, statistic=unevenness, lower_is_better=None)

_CATALOGUE = {known.name: known for known in (rmse, mae, rmedse, log_score, crps, brier, accuracy, pit)}
