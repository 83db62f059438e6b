"""A metric by the calendar: when in the day, the week or the year a method is good."""

import warnings
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from filtax.evaluate.arrays import Numbers
from filtax.evaluate.metrics import Metric
from filtax.evaluate.metrics import metric as find
from filtax.evaluate.views import PLAIN, one_per_step

__all__ = ["by_calendar", "times"]


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
    """Dates as `numpy.datetime64`; refused if they are none, or if one is missing.

    >>> times("by_calendar", ["2020-03-06"]).dtype
    dtype('<M8[us]')
    """
    time = _by_the_clock(time)
    if np.asarray(time).dtype.kind in "fiubc":
        raise ValueError(f"{call}: time must be dates, got numbers; give np.array(time, 'datetime64[s]') for seconds.")
    try:
        # a unit is named for what is not an array yet: numpy would guess none for a missing time
        unit = "datetime64[us]" if getattr(time, "dtype", np.dtype("O")).kind != "M" else "datetime64"
        with warnings.catch_warnings(action="error"):  # of a text with a zone, which would be put into UTC
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
    """Times without their zones, as clocks there showed them: an array of pandas, or anything that holds datetimes."""
    own = getattr(time, "dt", time)  # a series of pandas, or its index
    if getattr(own, "tz", None) is not None:
        return np.asarray(own.tz_localize(None))
    if isinstance(time, np.ndarray) and time.dtype.kind != "O":
        return time
    if isinstance(time, list | tuple | np.ndarray) or getattr(time, "dtype", None) == np.object_:
        return [each.replace(tzinfo=None) if getattr(each, "tzinfo", None) is not None else each for each in time]
    return time


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
