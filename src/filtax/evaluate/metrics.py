"""The metrics: a loss for each step, and how the losses of many steps become one number.

What is missing is not scored. Several outputs count as the mean over those that came.

Thesis: experiment:prequential; RMedSE is the score of the robust filters' experiments.
"""

import functools
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from filtax._validation import nearest, numeric, whole
from filtax.evaluate._forecast import QUIET, Forecast, Numbers, by_row, class_probabilities, observed, one_hot

__all__ = [
    "Metric",
    "accuracy",
    "brier",
    "coverage",
    "crps",
    "log_score",
    "mae",
    "metric",
    "pit",
    "rmedse",
    "rmse",
    "rolling",
]


@dataclass(frozen=True)
class Metric:
    """A loss per step and its summary: call it for the summary, or `losses` for the steps.

    Attributes:
        name: Heading of its column.
        per_step: From (forecast, y) to losses of the shape (T,) or (T, O); NaN is not scored.
        statistic: From the losses that are scored, one or more of them, to a number, such as their mean.
        lower_is_better: None if neither is better: a coverage should be close to its level.

    Example:
        >>> import numpy as np
        >>> from filtax.evaluate import Metric
        >>> bias = Metric("bias", lambda forecast, y: forecast.mean - y, lower_is_better=None)
        >>> bias(np.array([1.0, 2.0]), np.array([0.0, 0.0])).item()
        1.5
    """

    name: str
    per_step: Callable[[Forecast, np.ndarray], np.ndarray]
    statistic: Callable[[np.ndarray], Any] = np.mean
    lower_is_better: bool | None = True

    @QUIET
    def losses(self, forecast: Forecast | Numbers, y: Numbers) -> Float[np.ndarray, " T"]:
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
        loss = by_row(np.asarray(self.per_step(forecast, y), np.float64))
        scored = np.any(np.isfinite(by_row(y)), axis=1)
        if forecast.made is not None:
            scored = scored & forecast.made
        return np.where(scored, np.nansum(loss, axis=1) / np.sum(~np.isnan(loss), axis=1), math.nan)

    def _rows(self, name: str, values: Numbers) -> np.ndarray:
        values = np.asarray(numeric(f"{self.name}: {name}", values), np.float64)
        if values.ndim == 0:
            raise ValueError(f"{self.name}: {name} must have a leading axis T, got a single number; give [number].")
        return values

    @QUIET
    def aggregate(self, losses: Numbers) -> np.float64:
        """Summarise losses; NaN if none is scored.

        >>> from filtax.evaluate.metrics import rmse
        >>> rmse.aggregate([4.0, float("nan"), 4.0]).item()
        2.0
        """
        losses = np.asarray(numeric(f"{self.name}: losses", losses), np.float64)
        scored = losses[~np.isnan(losses)]
        return np.float64(self.statistic(scored) if scored.size else math.nan)

    def __call__(self, forecast: Forecast | Numbers, y: Numbers) -> np.float64:
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


def rolling(losses: Numbers, window: int, chosen: str | Metric = "mae") -> Float[np.ndarray, " T"]:
    """Summarise the last `window` steps, at each step; NaN where none of them was scored.

    Args:
        losses: Loss of each step, (T,), NaN where nothing was scored.
        window: Number of steps, scored or not; at the start there are fewer.
        chosen: The metric that they belong to; by default a plain mean is taken.

    Example:
        >>> from filtax.evaluate import rolling
        >>> rolling([1.0, 3.0, 5.0], window=2)
        array([1., 2., 4.])
        >>> rolling([9.0, 16.0], window=1, chosen="rmse")
        array([3., 4.])
    """
    losses, chosen = np.asarray(numeric("losses", losses), np.float64), metric(chosen)
    if losses.ndim != 1:
        raise ValueError(f"rolling(losses=...) must be one loss per step, shape (T,), but got {losses.shape}.")
    whole("rolling(window=...)", window, least=1, hint="It is a number of steps.")
    return np.array([chosen.aggregate(losses[max(0, t - window) : t]) for t in range(1, losses.size + 1)])


def _root_mean(losses: np.ndarray) -> float:
    return math.sqrt(np.mean(losses))


def _root_median(losses: np.ndarray) -> float:
    return math.sqrt(np.median(losses))


def _unevenness(losses: np.ndarray) -> float:
    """Kolmogorov-Smirnov distance between the losses and the uniform distribution on [0, 1]."""
    steps, ordered = np.arange(losses.size + 1) / losses.size, np.sort(losses)
    return max(np.max(steps[1:] - ordered), np.max(ordered - steps[:-1]))


def _numeric(name: str, forecast: Forecast, y: np.ndarray) -> None:
    if forecast.mean.shape != y.shape:
        raise ValueError(
            f"{name} compares numbers, but the forecast has shape {forecast.mean.shape} and y {y.shape}; for class "
            "probabilities use accuracy, brier or log_score."
        )


def _squared(forecast: Forecast, y: np.ndarray) -> np.ndarray:
    _numeric("a squared error", forecast, y)
    return observed((y - forecast.mean) ** 2, y)


def _absolute(forecast: Forecast, y: np.ndarray) -> np.ndarray:
    _numeric("an absolute error", forecast, y)
    return observed(np.abs(y - forecast.mean), y)


def _crps(forecast: Forecast, y: np.ndarray) -> np.ndarray:
    _numeric("crps", forecast, y)
    return forecast.crps(y)


def _covered(forecast: Forecast, y: np.ndarray, level: float) -> np.ndarray:
    _numeric("coverage", forecast, y)
    below, upto = forecast.position(y)
    tail = 0.5 * (1.0 - level)
    return np.where(np.isnan(upto), math.nan, (upto >= tail) & (below < 1.0 - tail))


def _pit(forecast: Forecast, y: np.ndarray) -> np.ndarray:
    _numeric("pit", forecast, y)
    below, upto = forecast.position(y)
    return 0.5 * (below + upto)


def _correct(forecast: Forecast, y: np.ndarray) -> np.ndarray:
    """1 where the predicted class was observed, else 0; of equally probable classes the first is predicted."""
    if forecast.label is not None:
        return observed(forecast.label == y, y)
    probabilities = class_probabilities(forecast.mean, y)
    known = ~np.any(np.isnan(probabilities), axis=-1)
    return observed((np.argmax(probabilities, axis=-1) == y) & known, y)


def _brier(forecast: Forecast, y: np.ndarray) -> np.ndarray:
    """The sum over classes of (p - one-hot)², between 0 and 2; (p - y)² for the probability of label 1 against 0."""
    probabilities = class_probabilities(forecast.mean, y)
    distance = (probabilities - one_hot(probabilities, y)) ** 2
    return observed(np.sum(distance, axis=-1) if forecast.mean.ndim > y.ndim else distance[..., 1], y)


rmse = Metric("rmse", _squared, statistic=_root_mean)
rmedse = Metric("rmedse", _squared, statistic=_root_median)
mae = Metric("mae", _absolute)
log_score = Metric("log_score", Forecast.log_score, lower_is_better=False)
crps = Metric("crps", _crps)
brier = Metric("brier", _brier)
accuracy = Metric("accuracy", _correct, lower_is_better=False)
pit = Metric("pit", _pit, statistic=_unevenness, lower_is_better=None)

_CATALOGUE = {known.name: known for known in (rmse, mae, rmedse, log_score, crps, brier, accuracy, pit)}
