"""Baselines: forecasts that cost nothing; a method that loses to them is not worth its price.

Each looks at past values only: the forecast of row t uses rows up to t - 1 - delay. Missing rows are skipped; the last
value observed is carried on.

Numbers. A baseline has a spread too, learned from its own past errors, so that it is scored as a method is: with n past
errors of mean square v, a Student-t of n degrees of freedom and squared scale v. That is the predictive distribution of
the next error under Jeffreys' prior; it begins with the third error.

Labels. A baseline gives probabilities too. They start at one in C and follow the counts of the past, one for each class
to begin with (Laplace's rule of succession): for the last class, how often it was repeated; for the majority class, the
share of each class.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from jaxtyping import Int, Shaped

from filtax import _validation as checks
from filtax.evaluate._forecast import QUIET, Forecast, Numbers, by_row

_ERRORS = 3  # errors before there is a spread: with fewer its variance is infinite
_FAINT = 1e-9  # below this, a difference of two probabilities has lost its digits


@dataclass(frozen=True)
class Baseline:
    """A forecast of a stream from its own past.

    Attributes:
        name: Its line in the table.
        rule: From y, (T,) or (T, O), NaN or infinite where missing, the delay, and whether only whole numbers can come,
            to T forecasts. That of row t may use rows up to t - 1 - delay.

    Example:
        >>> import numpy as np
        >>> from filtax.evaluate import Baseline, Forecast
        >>> zero = Baseline("zero", lambda y, delay, whole: Forecast(np.zeros_like(y)))
        >>> zero([1.0, 1.0]).mean
        array([0., 0.])
    """

    name: str
    rule: Callable[[np.ndarray, int, bool], Forecast]

    @QUIET
    def __call__(self, y: Numbers, *, delay: int = 0, whole: bool = False) -> Forecast:
        """Forecast every row of y from the rows before it.

        Args:
            y: Values or labels, (T,) or (T, O), NaN or infinite where missing.
            delay: Steps that a value comes late: 0 if it is known before the next forecast.
            whole: True if only whole numbers can come: each of them then has a probability, not a density.

        Returns:
            T forecasts; `made` and `spread` mark the rows that have one.
        """
        if isinstance(delay, bool) or not isinstance(delay, int | np.integer) or delay < 0:
            raise ValueError(
                f"{self.name}(delay={delay!r:.40}) must be a whole number of steps, 0 or more; 0 is known at the next "
                "step."
            )
        y = np.asarray(checks.numeric(f"{self.name}(y)", y), np.float64)
        if y.ndim == 0 or not len(y):
            raise ValueError(f"{self.name}(y) must have one or more rows, got shape {y.shape}; give (T,) or (T, O).")
        return self.rule(y, int(delay), whole)


def last_value() -> Baseline:
    """Forecast the last observed value.

    Example:
        >>> import numpy as np
        >>> from filtax.evaluate import last_value
        >>> last_value()(np.array([3.0, np.nan, 5.0, 6.0])).mean  # the first row has no forecast yet
        array([nan,  3.,  3.,  5.])
    """
    return Baseline("last-value", partial(_numbers, _last))


def running_mean() -> Baseline:
    """Forecast the mean of all observed values.

    Example:
        >>> import numpy as np
        >>> from filtax.evaluate import running_mean
        >>> running_mean()(np.array([3.0, 5.0, 9.0])).mean
        array([nan,  3.,  4.])
    """

    def rule(y: np.ndarray, delay: int) -> np.ndarray:
        return _delayed(np.nancumsum(y) / np.cumsum(np.isfinite(y)), delay, np.nan)

    return Baseline("running-mean", partial(_numbers, rule))


def seasonal_naive(period: int) -> Baseline:
    """Forecast the value at this time of the last season; the last value while that is unknown.

    Args:
        period: Steps in a season: 24 for hours in a day. Where the value is missing, or not known yet because of the
            delay, that of the season before is used.

    Example:
        >>> import numpy as np
        >>> from filtax.evaluate import seasonal_naive
        >>> seasonal_naive(2)(np.array([1.0, 9.0, 2.0, 8.0])).mean
        array([nan,  1.,  1.,  9.])
    """
    if isinstance(period, bool) or not isinstance(period, int | np.integer) or period < 1:
        raise ValueError(
            f"seasonal_naive(period={period!r}) must be 1 or more steps; for hourly data with a daily cycle give 24."
        )

    def rule(y: np.ndarray, delay: int) -> np.ndarray:
        rows = np.full(-(-len(y) // period) * period, -1)
        rows[: len(y)] = np.where(np.isfinite(y), np.arange(len(y)), -1)
        same_phase = np.maximum.accumulate(rows.reshape(-1, period), axis=0).ravel()[: len(y)]
        lag = -(-(delay + 1) // period) * period  # of the newest season whose value at this phase is known
        row = _delayed(same_phase, lag - 1, -1)
        return np.where(row >= 0, y[row], _last(y, delay))

    return Baseline(f"seasonal-naive({period})", partial(_numbers, rule))


def _numbers(rule: Callable, y: np.ndarray, delay: int, whole: bool) -> Forecast:
    """Forecast numbers by a rule from (y, delay), of one column, to (T,), with the spread of the past errors."""
    y = np.where(np.isfinite(y), y, np.nan)
    mean = np.apply_along_axis(rule, 0, y, delay)
    square = (y - mean) ** 2
    observed = np.isfinite(square)
    df = _delayed(np.cumsum(observed, axis=0), delay, 0).astype(np.float64)
    square = _delayed(np.cumsum(np.where(observed, square, 0.0), axis=0), delay, 0.0) / np.maximum(df, 1)
    made = np.isfinite(mean)
    spread = made & (df >= _ERRORS) & (square > 0)
    df, square = np.where(spread, df, np.nan), np.where(spread, square, np.nan)
    forecast = Forecast(
        mean=mean,
        var=square * df / (df - 2.0),
        scale=np.sqrt(square),
        df=df,
        made=_in_row(made, y),
        spread=_in_row(spread, y),
    )
    return _of_whole_numbers(forecast, y) if whole else forecast


def _last(y: np.ndarray, delay: int) -> np.ndarray:
    row = _last_row(y, delay)
    return np.where(row >= 0, y[row], np.nan)


def _in_row(ready: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Rows in which every observed value has its forecast."""
    return np.all(by_row(ready | np.isnan(y)), axis=1)


def _of_whole_numbers(forecast: Forecast, y: np.ndarray) -> Forecast:
    """Give each whole number the probability of the unit interval around it."""
    below, upto = (forecast.position(y + side)[1] for side in (-0.5, 0.5))
    mass = upto - below
    score = np.where(mass > _FAINT, np.log(np.maximum(mass, _FAINT)), forecast.log_density(y))
    return replace(forecast, below=below, upto=upto, log_prob=np.nansum(by_row(score), axis=1))


def last_class(classes: int | None = None) -> Baseline:
    """Forecast the last observed label.

    Args:
        classes: Number of classes; None if labels are 0 or 1 and a forecast is the probability of 1.

    Example:
        >>> import numpy as np
        >>> from filtax.evaluate import last_class
        >>> forecast = last_class(classes=3)(np.array([2, 2, 0]))
        >>> forecast.label, forecast.mean[2]  # the last label was repeated once
        (array([nan,  2.,  2.]), array([0.25, 0.25, 0.5 ]))
    """

    def rule(y: np.ndarray, classes: int, delay: int) -> tuple[np.ndarray, np.ndarray]:
        label = _last(y, delay)
        tried = np.isfinite(y) & np.isfinite(label)
        tries, hits = (_delayed(np.cumsum(event), delay, 0) for event in (tried, tried & (y == label)))
        again = ((hits + 1.0) / (tries + classes))[:, None]
        return label, np.where(np.arange(classes) == label[:, None], again, (1.0 - again) / (classes - 1))

    return Baseline("last-class", partial(_labels, rule, _checked("last_class", classes)))


def majority_class(classes: int | None = None) -> Baseline:
    """Forecast the most frequent label so far; the smaller one of a tie.

    Args:
        classes: Number of classes; None if labels are 0 or 1 and a forecast is the probability of 1.

    Example:
        >>> import numpy as np
        >>> from filtax.evaluate import majority_class
        >>> forecast = majority_class(classes=2)(np.array([1, 1, 0]))
        >>> forecast.label, forecast.mean[2]
        (array([nan,  1.,  1.]), array([0.25, 0.75]))
    """

    def rule(y: np.ndarray, classes: int, delay: int) -> tuple[np.ndarray, np.ndarray]:
        counts = _delayed(np.cumsum(y[:, None] == np.arange(classes), axis=0), delay, 0)
        total = np.sum(counts, axis=1)
        label = np.where(total > 0, np.argmax(counts, axis=1), np.nan)
        return label, (counts + 1.0) / (total + classes)[:, None]

    return Baseline("majority-class", partial(_labels, rule, _checked("majority_class", classes)))


def _checked(name: str, classes: int | None) -> int | None:
    if classes is not None and (not isinstance(classes, int | np.integer) or classes < 2):
        raise ValueError(f"{name}(classes={classes!r:.40}) must be 2 or more, or None for labels 0 and 1.")
    return classes


def _labels(rule: Callable, classes: int | None, y: np.ndarray, delay: int, whole: bool) -> Forecast:
    """Forecast labels 0..C-1 by a rule from (y, C, delay), of one column, to labels (T,) and probabilities (T, C).

    Any other value counts as missing. Without `classes` the mean is the probability of label 1 against 0.
    """
    if classes is not None and y.ndim != 1:
        raise ValueError(f"a baseline of {classes} classes takes labels of shape (T,), but y has shape {y.shape}.")
    y = np.where((y == np.floor(y)) & (y >= 0) & (y < (classes or 2)), y, np.nan)
    columns = [rule(column, classes or 2, delay) for column in by_row(y).T]
    label = np.stack([predicted for predicted, _ in columns], axis=-1).reshape(y.shape)
    mean = columns[0][1]
    if classes is None:
        mean = np.stack([probability[:, 1] for _, probability in columns], axis=-1).reshape(y.shape)
    return Forecast(mean=mean, label=label, made=_in_row(np.isfinite(label), y))


def _delayed(values: Shaped[np.ndarray, "T *O"], delay: int, before: float | int) -> Shaped[np.ndarray, "T *O"]:
    """Shift running values to the rows that may use them: row t gets that of row t - 1 - delay, or `before`."""
    late = min(delay + 1, len(values))
    return np.concatenate([np.full_like(values[:late], before), values[: len(values) - late]])


def _last_row(y: Shaped[np.ndarray, " T"], delay: int) -> Int[np.ndarray, " T"]:
    """Find the row of the last value that each row may use; -1 if there is none."""
    return _delayed(np.maximum.accumulate(np.where(np.isfinite(y), np.arange(len(y)), -1)), delay, -1)
