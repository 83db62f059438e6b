"""The metrics: a loss for each step, and how the losses of many steps become one number.

A metric is a value, so every view (rolling, expanding, by hour of the day) applies to every metric, a user's own
included. What is missing is not scored. Several outputs count as the mean over those that came.

Thesis: experiment:prequential; RMedSE is the score of the robust filters' experiments.
"""

import functools
import math
import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from filtax._validation import nearest, numeric
from filtax.evaluate._forecast import Forecast
from filtax.evaluate._scores import (
    QUIET,
    Numbers,
    Values,
    absolute_error,
    brier_score,
    by_row,
    correct,
    masked_loss,
    namespaced,
    squared_error,
)

__all__ = [
    "Metric",
    "accuracy",
    "brier",
    "coverage",
    "crps",
    "log_score",
    "mae",
    "mean",
    "median",
    "metric",
    "pit",
    "rmedse",
    "rmse",
    "unevenness",
]


@QUIET
def mean(values: Numbers, weights: Numbers | None = None) -> Values:
    """Compute the mean over the first axis of what is not NaN; NaN if nothing is left.

    >>> mean([1.0, float("nan"), 3.0]).item(), mean([1.0, 3.0], weights=[3.0, 1.0]).item()
    (2.0, 1.5)
    """
    xp, values, weights = namespaced(values, 1.0 if weights is None else weights)
    observed = ~xp.isnan(values)
    share = xp.where(observed, weights, 0.0)
    total = xp.sum(share, axis=0)
    # a value without weight is dropped from the product, because infinity times zero is NaN
    summed = xp.sum(xp.where(share > 0, values, 0.0) * share, axis=0)
    return xp.where(total > 0, summed / xp.where(total > 0, total, 1.0), math.nan)


def median(values: Numbers, weights: Numbers | None = None) -> Values:
    """Compute the median of what is not NaN: half of the weight lies on each side. Of two candidates, their middle.

    >>> median([1.0, float("nan"), 5.0, 2.0]).item(), median([1.0, 2.0, 5.0], weights=[1.0, 1.0, 3.0]).item()
    (2.0, 5.0)
    """
    if weights is None:
        xp, values = namespaced(values)
        return xp.nanmedian(values) if xp is not np else _median(values[~np.isnan(values)])
    values, weights = _sorted(values, weights)
    if not values.size:
        return np.asarray(math.nan)
    upto = np.cumsum(weights)
    first = int(np.searchsorted(upto, 0.5 * upto[-1]))
    even = upto[first] == 0.5 * upto[-1] and first + 1 < values.size
    return np.asarray(0.5 * (values[first] + values[first + 1]) if even else values[first])


def unevenness(values: Numbers, weights: Numbers | None = None) -> Values:
    """Compute the Kolmogorov-Smirnov distance between the values and the uniform distribution on [0, 1].

    >>> unevenness([0.125, 0.375, 0.625, 0.875]).item(), unevenness([0.5, 0.5]).item()
    (0.125, 0.5)
    """
    values, weights = _sorted(values, weights)
    if not values.size:
        return np.asarray(math.nan)
    upto = np.cumsum(weights) / np.sum(weights)
    return np.asarray(max(np.max(upto - values), np.max(values - upto + weights / np.sum(weights))))


def _median(values: Values) -> Values:
    return np.asarray(np.median(values) if values.size else math.nan)


def _sorted(values: Numbers, weights: Numbers | None) -> tuple[np.ndarray, np.ndarray]:
    given = np.asarray(values, np.float64)
    shares = np.ones_like(given) if weights is None else np.asarray(weights, np.float64)
    kept = ~np.isnan(given) & (shares > 0)
    order = np.argsort(given[kept])
    return given[kept][order], shares[kept][order]


def _unchanged(value: Values) -> Values:
    return value


@dataclass(frozen=True)
class Metric:
    """A loss per step and its summary: call it for the summary, or `losses` for the steps.

    Attributes:
        name: Heading of its column.
        per_step: From (forecast, y) to losses of the shape (T,) or (T, O); NaN is not scored.
        statistic: From losses and weights (None: equal ones) to one number: `mean`, `median` or a function of your own.
        finish: Function applied to that number, such as a square root.
        lower_is_better: None if neither is better: a coverage should be close to its level.

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
    finish: Callable[[Values], Values] = _unchanged
    lower_is_better: bool | None = True

    def losses(self, forecast: Forecast | Numbers, y: Numbers) -> Values:
        """Compute the loss of each step, (T,); NaN where y is missing.

        >>> import numpy as np
        >>> from filtax.evaluate.metrics import rmse
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
        """Summarise losses; NaN if none is scored.

        >>> from filtax.evaluate.metrics import rmse
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
        """Compute the metric of T forecasts."""
        return self.aggregate(self.losses(forecast, y))


def coverage(level: float | int = 0.9) -> Metric:
    """Return the metric "share of values inside the central interval that should hold `level` of them".

    Example:
        >>> import numpy as np
        >>> from filtax.evaluate import Forecast
        >>> coverage(0.9)(Forecast(np.zeros(2), var=np.ones(2)), np.array([1.0, 3.0])).item()
        0.5
    """
    if not (isinstance(level, int | float | np.number) and 0.0 < level < 1.0):
        raise ValueError(f"coverage(level={level!r}) must lie strictly between 0 and 1; for 90 % give 0.9.")
    return Metric(f"coverage({level:g})", functools.partial(_covered, level=level), lower_is_better=None)


def metric(name: str | Metric) -> Metric:
    """Return the metric of a name; `coverage(0.5)` names one with a level.

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


def _crps(forecast: Forecast, y: Values) -> Values:
    _numeric("crps", forecast, y)
    return forecast.crps(y)


def _covered(forecast: Forecast, y: Values, level: float) -> Values:
    _numeric("coverage", forecast, y)
    xp, below, upto = namespaced(*forecast.position(y))
    tail = 0.5 * (1.0 - level)
    inside = (upto >= tail) & (below < 1.0 - tail)
    return xp.where(xp.isnan(upto), math.nan, inside.astype(upto.dtype))


def _pit(forecast: Forecast, y: Values) -> Values:
    _numeric("pit", forecast, y)
    below, upto = forecast.position(y)
    return 0.5 * (below + upto)


def _correct(forecast: Forecast, y: Values) -> Values:
    if forecast.label is None:
        return correct(forecast.mean, y)
    xp, label, y = namespaced(forecast.label, y)
    return masked_loss(xp, (label == y).astype(label.dtype), xp.isfinite(y))


def _brier(forecast: Forecast, y: Values) -> Values:
    return brier_score(forecast.mean, y)


def _square_root(value: Values) -> Values:
    xp, value = namespaced(value)
    return xp.asarray(xp.sqrt(value))


rmse = Metric("rmse", _squared, finish=_square_root)
rmedse = Metric("rmedse", _squared, statistic=median, finish=_square_root)
mae = Metric("mae", _absolute)
log_score = Metric("log_score", Forecast.log_score, lower_is_better=False)
crps = Metric("crps", _crps)
brier = Metric("brier", _brier)
accuracy = Metric("accuracy", _correct, lower_is_better=False)
pit = Metric("pit", _pit, statistic=unevenness, lower_is_better=None)

_CATALOGUE = {known.name: known for known in (rmse, mae, rmedse, log_score, crps, brier, accuracy, pit)}
