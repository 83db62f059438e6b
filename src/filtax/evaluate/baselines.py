"""Forecasts of numbers that cost nothing; a method that loses to them is not worth its price.

Each looks at past values only: the forecast of row t uses rows up to t - 1 - delay. Missing rows are stepped over, the
last value seen is carried. And each has a spread, learned from its own past errors, so that it is scored as a method
is: with n past errors of mean square v, a Student-t of n degrees of freedom and squared scale v. That is what n errors
tell of the next when nothing was known before (Jeffreys' prior); it begins with the third error.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from filtax.evaluate.arrays import QUIET, Numbers
from filtax.evaluate.calibration import pit_student_t
from filtax.evaluate.forecast import Forecast
from filtax.evaluate.past import known, last_seen, stream
from filtax.evaluate.scores import log_density_student_t

__all__ = ["Baseline", "last_value", "naive_plus_change", "running_mean", "seasonal_naive"]

_ERRORS = 3  # errors before there is a spread: with fewer its variance is infinite
_FAINT = 1e-9  # below this, a difference of two probabilities has lost its digits


@dataclass(frozen=True)
class Baseline:
    """A rule that forecasts numbers from their own past.

    Attributes:
        name: Its line in the table.
        rule: From y, (T,), NaN where missing, and the delay, to a forecast of each row, NaN where there is none yet.
            Row t may use rows up to t - 1 - delay.

    Example:
        >>> import numpy as np
        >>> from filtax.evaluate import Baseline
        >>> zero = Baseline("zero", lambda y, delay: np.zeros(len(y)))
        >>> zero(np.array([1.0, 1.0])).mean
        array([0., 0.])
    """

    name: str
    rule: Callable[[np.ndarray, int], np.ndarray]

    @QUIET
    def __call__(self, y: Numbers, *, delay: int = 0, whole: bool = False) -> Forecast:
        """Forecast every row of y from the rows before it.

        Args:
            y: Values, (T,) or (T, O), NaN or infinite where missing.
            delay: Steps that a value comes late: 0 if it is known before the next forecast.
            whole: True if only whole numbers can come: each of them then has a probability, not a density.

        Returns:
            T forecasts; `made` and `spread` tell from which row on there is one.
        """
        y = stream(self.name, y, delay)
        y = np.where(np.isfinite(y), y, np.nan)
        columns = [self._column(column, delay) for column in y.reshape(len(y), -1).T]
        mean, df, square = (np.stack(parts, axis=-1).reshape(y.shape) for parts in zip(*columns, strict=True))
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

    def _column(self, y: np.ndarray, delay: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Forecast, number of past errors, and their mean square."""
        mean = np.asarray(self.rule(y, delay), np.float64)
        square = (y - mean) ** 2
        seen = np.isfinite(square)
        count = known(np.cumsum(seen), delay, 0)
        total = known(np.cumsum(np.where(seen, square, 0.0)), delay, 0.0)
        return mean, count.astype(np.float64), total / np.maximum(count, 1)


def last_value() -> Baseline:
    """Say again what was seen last.

    Example:
        >>> import numpy as np
        >>> from filtax.evaluate import last_value
        >>> last_value()(np.array([3.0, np.nan, 5.0, 6.0])).mean  # the first row has no forecast yet
        array([nan,  3.,  3.,  5.])
    """
    return Baseline("last-value", _last)


def running_mean() -> Baseline:
    """Say the mean of all that was seen.

    Example:
        >>> import numpy as np
        >>> from filtax.evaluate import running_mean
        >>> running_mean()(np.array([3.0, 5.0, 9.0])).mean
        array([nan,  3.,  4.])
    """

    def rule(y: np.ndarray, delay: int) -> np.ndarray:
        count = known(np.cumsum(np.isfinite(y)), delay, 0)
        return np.where(count > 0, known(np.nancumsum(y), delay, 0.0) / np.maximum(count, 1), np.nan)

    return Baseline("running-mean", rule)


def seasonal_naive(period: int) -> Baseline:
    """Say what was seen at this time of the last season; the last value while that is unknown.

    Args:
        period: Steps in a season: 24 for hours in a day. A missing value gives way to the season before it; so does one
            that the delay still hides.

    Example:
        >>> import numpy as np
        >>> from filtax.evaluate import seasonal_naive
        >>> seasonal_naive(2)(np.array([1.0, 9.0, 2.0, 8.0])).mean
        array([nan,  1.,  1.,  9.])
    """
    _check_period("seasonal_naive", period)

    def rule(y: np.ndarray, delay: int) -> np.ndarray:
        rows = np.full(-(-len(y) // period) * period, -1)
        rows[: len(y)] = np.where(np.isfinite(y), np.arange(len(y)), -1)
        same_phase = np.maximum.accumulate(rows.reshape(-1, period), axis=0).ravel()[: len(y)]
        row = known(same_phase, _season(period, delay) - 1, -1)
        return np.where(row >= 0, y[row], _last(y, delay))

    return Baseline(f"seasonal-naive({period})", rule)


def naive_plus_change(period: int) -> Baseline:
    """Say the last value plus the change that followed it one season ago; without the change while that is unknown.

    With nothing missing and no delay: y[t-1] + (y[t-period] - y[t-period-1]).

    Args:
        period: Steps in a season: 24 for yesterday's change from hour to hour.

    Example:
        >>> import numpy as np
        >>> from filtax.evaluate import naive_plus_change
        >>> naive_plus_change(2)(np.array([1.0, 9.0, 2.0, 10.0])).mean
        array([nan,  1.,  9., 10.])
    """
    _check_period("naive_plus_change", period)

    def rule(y: np.ndarray, delay: int) -> np.ndarray:
        last, lag = last_seen(y, delay), _season(period, delay)
        to, since = (np.maximum(row - lag, 0) for row in (np.arange(len(y)), last))
        change = np.where(last >= lag, y[to] - y[since], np.nan)
        return _last(y, delay) + np.where(np.isfinite(change), change, 0.0)

    return Baseline(f"naive-plus-change({period})", rule)


def _last(y: np.ndarray, delay: int) -> np.ndarray:
    row = last_seen(y, delay)
    return np.where(row >= 0, y[row], np.nan)


def _season(period: int, delay: int) -> int:
    """Lag of the newest season whose value at this phase is known."""
    return -(-(delay + 1) // period) * period


def _check_period(name: str, period: int) -> None:
    if isinstance(period, bool) or not isinstance(period, int | np.integer) or period < 1:
        raise ValueError(
            f"{name}(period={period!r}) must be 1 or more steps; for hourly data with a daily cycle give 24."
        )


def _in_row(ready: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Rows in which every value that came has its forecast."""
    return np.all((ready | np.isnan(y)).reshape(len(y), -1), axis=1)


def _of_whole_numbers(forecast: Forecast, y: np.ndarray) -> Forecast:
    """Give each whole number the probability of the unit around it."""
    scale, df = forecast.scale, forecast.df
    below, upto = (np.asarray(pit_student_t(forecast.mean, scale, df, y + side)) for side in (-0.5, 0.5))
    mass = upto - below
    density = np.asarray(log_density_student_t(forecast.mean, scale, df, y))
    score = np.where(mass > _FAINT, np.log(np.maximum(mass, _FAINT)), density)
    return replace(forecast, below=below, upto=upto, log_prob=np.nansum(score.reshape(len(y), -1), axis=1))
