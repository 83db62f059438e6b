"""A metric over time: in a moving window, since the start, with fading weights, and by the calendar.

A view takes the losses of each step and the metric they belong to (its name will do; a plain mean if none is given) and
applies the metric's own summary to parts of the stream: a rolling RMSE is the root of a mean, a rolling RMedSE that of
a median. NaN is not scored. Cost: O(T) for means, whatever the window; others summarise every window.
"""

import bisect
import math
import warnings
from collections.abc import Callable, Hashable, Iterator
from datetime import datetime
from typing import Any

import numpy as np
from jaxtyping import Float

from filtax._validation import numeric
from filtax.evaluate._scores import QUIET, Numbers
from filtax.evaluate.metrics import Metric, mean, median
from filtax.evaluate.metrics import metric as find

PLAIN = Metric("mean", lambda forecast, y: forecast.mean)


_FAINT = 1e-12  # a loss with this share of the newest weight is dropped from a fading median


@QUIET
def rolling(losses: Numbers, window: int, metric: str | Metric = PLAIN, *, minimum: int = 1) -> Float[np.ndarray, " T"]:
    """Summarise the last `window` steps, at each step.

    Args:
        losses: Loss of each step, (T,), NaN where nothing was scored.
        window: Number of steps, scored or not; at the start there are fewer.
        metric: What the losses belong to.
        minimum: Scored steps that a window must hold; with fewer the view is NaN.

    Example:
        >>> from filtax.evaluate import rolling
        >>> rolling([1.0, 3.0, 5.0], window=2)
        array([1., 2., 4.])
        >>> rolling([9.0, 16.0], window=1, metric="rmse")
        array([3., 4.])
    """
    losses, metric = one_per_step(losses), find(metric)
    if not all(isinstance(number, int | np.integer) and number >= 1 for number in (window, minimum)):
        raise ValueError(f"rolling(window={window!r}, minimum={minimum!r}) must both be 1 or more steps.")
    count = _window_sum((~np.isnan(losses)).astype(np.float64), window)
    if metric.statistic is mean:
        values = _over(
            _window_sum(np.nan_to_num(losses, nan=0.0, posinf=np.inf, neginf=-np.inf), window), count, metric
        )
    else:
        values = _each(metric, ((losses[max(0, t + 1 - window) : t + 1], None) for t in range(losses.size)))
    return np.where(count >= minimum, values, math.nan)


@QUIET
def expanding(losses: Numbers, metric: str | Metric = PLAIN) -> Float[np.ndarray, " T"]:
    """Summarise all steps so far, at each step; the last value is the metric of the whole stream.

    Example:
        >>> from filtax.evaluate import expanding
        >>> expanding([1.0, 3.0, float("nan"), 5.0])
        array([1., 2., 2., 3.])
    """
    losses, metric = one_per_step(losses), find(metric)
    if metric.statistic is mean:
        return _over(np.nancumsum(losses), np.cumsum(~np.isnan(losses)), metric)
    if metric.statistic is median:
        return np.asarray(metric.finish(_running_median(losses)))
    return _each(metric, ((losses[: t + 1], None) for t in range(losses.size)))


@QUIET
def ewma(losses: Numbers, span: float | int, metric: str | Metric = PLAIN) -> Float[np.ndarray, " T"]:
    r"""Summarise with weights that fall by the factor $1 - \alpha$ each step, $\alpha = 2 / (\text{span} + 1)$.

    The weights are those of a true weighted mean, $(1 - \alpha)^{\text{age}}$ over their sum, so the first steps are
    not biased towards zero. Unscored steps count as time.

    Args:
        losses: Loss of each step, (T,), NaN where nothing was scored.
        span: At least 1; a window of `span` steps has the same mean age.
        metric: What the losses belong to.

    Example:
        >>> from filtax.evaluate import ewma
        >>> ewma([0.0, 4.0], span=3)  # weights 1/2 and 1
        array([0.        , 2.66666667])
    """
    losses, metric = one_per_step(losses), find(metric)
    if not (isinstance(span, int | float | np.number) and span >= 1.0):
        raise ValueError(f"ewma(span={span!r}) must be 1 or more steps; a span of 1 keeps only the newest.")
    keep = 1.0 - 2.0 / (span + 1.0)
    if keep == 0.0:
        return _each(metric, ((losses[t : t + 1], None) for t in range(losses.size)))
    if metric.statistic is mean:
        return np.asarray(metric.finish(_fading_mean(losses, keep)))
    depth = math.ceil(math.log(_FAINT) / math.log(keep)) + 1
    weights = keep ** np.arange(min(depth, losses.size))[::-1]
    # up to the last scored step: a factor common to all weights changes nothing
    ends = np.maximum.accumulate(np.where(np.isnan(losses), 0, np.arange(1, losses.size + 1)))
    return _each(metric, ((losses[max(0, end - depth) : end], weights[-min(end, depth) :][:end]) for end in ends))


def one_per_step(losses: Numbers) -> Float[np.ndarray, " T"]:
    """Check the losses of one metric, and return them as an array.

    >>> one_per_step([1, 2])
    array([1., 2.])
    """
    losses = np.asarray(numeric("losses", losses), np.float64)
    if losses.ndim != 1:
        raise ValueError(
            f"a view takes one loss per step, shape (T,), but got {losses.shape}; take one metric at a time."
        )
    return losses


def _window_sum(values: np.ndarray, window: int) -> np.ndarray:
    """Sum of each `window` values, in O(T), with additions only.

    The values are cut into blocks as long as the window; a window is the end of one block and the start of the next. A
    difference of running sums would be shorter, but one huge loss would spoil the digits of every later window.
    """
    window = min(window, max(values.size, 1))
    blocks = -(-(values.size + window - 1) // window)
    padded = np.zeros(blocks * window)
    padded[window - 1 : window - 1 + values.size] = values
    table = padded.reshape(blocks, window)
    upto = np.cumsum(table, axis=1).ravel()
    onward = np.cumsum(table[:, ::-1], axis=1)[:, ::-1].ravel()
    start = np.arange(values.size)
    return np.where(start % window == 0, 0.0, onward[start]) + upto[start + window - 1]


def _fading_mean(values: np.ndarray, keep: float) -> np.ndarray:
    """Mean in which every value loses 1 - keep of its weight at each later step; NaN adds nothing.

    It is updated as a mean, not as two sums, which would underflow in a long gap.
    """
    held, weight, means = math.nan, 0.0, []
    for value in values.tolist():
        weight *= keep
        if value == value:
            held = (weight * held + value) / (weight + 1.0) if weight else value
            weight += 1.0
        means.append(held)
    return np.array(means)


def _running_median(values: np.ndarray) -> np.ndarray:
    """Median of all so far, from a list that is kept in order."""
    ordered: list[float] = []
    medians = []
    for value in values.tolist():
        if value == value:
            bisect.insort(ordered, value)
        n = len(ordered)
        medians.append(0.5 * (ordered[(n - 1) // 2] + ordered[n // 2]) if n else math.nan)
    return np.array(medians)


def _over(sums: np.ndarray, counts: np.ndarray, metric: Metric) -> np.ndarray:
    values = np.divide(sums, counts, out=np.full(sums.shape, math.nan), where=counts > 0)
    return np.asarray(metric.finish(values))


def _each(metric: Metric, parts: Iterator[tuple[np.ndarray, np.ndarray | None]]) -> np.ndarray:
    return np.array([float(metric.aggregate(losses, weights)) for losses, weights in parts])


def by_calendar(
    losses: Numbers, time: Any, bucket: str | Callable[[np.ndarray], Numbers], metric: str | Metric = PLAIN
) -> dict[Hashable, float]:
    """Summarise the steps of each hour of the day, weekday, month, or any other bucket, in the order of the buckets.

    Args:
        losses: Loss of each step, (T,), NaN where nothing was scored.
        time: When each step was, as `numpy.datetime64` or what converts to it; of times with a zone, by its clock.
        bucket: "hour" (0-23), "weekday" (0 is Monday) or "month" (1-12) go round; a numpy unit ("h", "D", "W", "M",
            "Y") cuts time into periods, weeks from Monday; or your own function from times to buckets.
        metric: What the losses belong to.

    Example:
        >>> from filtax.evaluate import by_calendar
        >>> by_calendar([1.0, 2.0, 3.0], ["2020-03-06T23", "2020-03-07T00", "2020-03-07T23"], "hour")
        {0: 2.0, 23: 2.0}
        >>> by_calendar([1.0, 2.0, 3.0], ["2020-03-06", "2020-03-07", "2020-04-07"], "M")
        {'2020-03': 1.5, '2020-04': 3.0}
    """
    losses, metric = one_per_step(losses), find(metric)
    time = times("by_calendar", time)
    if time.shape != losses.shape:
        raise ValueError(f"by_calendar: {losses.size} losses but {time.size} times; row t must pair with row t.")
    if not losses.size:
        return {}
    keys, places, counts = np.unique(_buckets(time, bucket), return_inverse=True, return_counts=True)
    parts = np.split(losses[np.argsort(places, kind="stable")], np.cumsum(counts)[:-1])
    return {key: float(metric.aggregate(part)) for key, part in zip(keys.tolist(), parts, strict=True)}


def times(call: str, time: Any) -> np.ndarray:
    """Convert dates to `numpy.datetime64`; an error if one is missing or no date.

    >>> times("by_calendar", ["2020-03-06"]).dtype
    dtype('<M8[us]')
    """
    time = _by_the_clock(time)
    if np.asarray(time).dtype.kind in "fiubc":
        raise ValueError(f"{call}: time must be dates, got numbers; give np.array(time, 'datetime64[s]') for seconds.")
    try:
        # only an array of dates has a unit; numpy would find none in a list whose first time is missing
        unit = "datetime64" if isinstance(time, np.ndarray) and time.dtype.kind == "M" else "datetime64[us]"
        with warnings.catch_warnings(action="error"):  # for a text with a zone, which numpy would convert to UTC
            time = np.asarray(time, unit)
    except (TypeError, ValueError, Warning) as error:
        raise ValueError(
            f"{call}: time must be numpy.datetime64 or dates that convert to it, got {time!r:.40}; convert it first."
        ) from error
    if np.isnat(time).any():
        row = int(np.argmax(np.isnat(time)))
        raise ValueError(f"{call}: the time of row {row} is missing (NaT); give every row a time.")
    return time


def _by_the_clock(time: Any) -> Any:
    """Times without their zones, as local clocks showed them: from pandas, or anything that holds datetimes."""
    array = np.asarray(time)
    if array.dtype.kind != "O":
        return array
    return [each.replace(tzinfo=None) if isinstance(each, datetime) else each for each in array]


def _buckets(time: np.ndarray, bucket: str | Callable[[np.ndarray], Numbers]) -> np.ndarray:
    if not isinstance(bucket, str):
        return np.asarray(bucket(time))
    day = time.astype("datetime64[D]")
    weekday = (day.astype(np.int64) + 3) % 7  # day 0 was a Thursday
    match bucket:
        case "hour":
            return (time.astype("datetime64[h]") - day.astype("datetime64[h]")).astype(np.int64)
        case "weekday":
            return weekday
        case "month":
            return time.astype("datetime64[M]").astype(np.int64) % 12 + 1
        case "W":
            return np.datetime_as_string(day - weekday.astype("timedelta64[D]"))
    try:
        return np.datetime_as_string(time.astype(f"datetime64[{bucket}]"))
    except TypeError as error:
        raise ValueError(
            f"by_calendar(bucket={bucket!r}) is not a bucket; use hour, weekday, month, "
            "a numpy unit (h, D, W, M, Y) or a function."
        ) from error
