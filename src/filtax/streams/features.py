"""Features of an hourly series: the calendar as harmonics, and past readings as lags. Nothing looks ahead.

Row t of every feature depends on the time t and on readings before t only. Readings that are missing or absurd are
filled before they serve as lags, so one lost hour never spoils the rows that look back at it. Plain numpy, float64.
"""

from collections.abc import Sequence

import numpy as np

__all__ = ["fill", "harmonics", "hourly_features", "lagged"]


def fill(y: np.ndarray, period: int = 24, window: int = 168, gate: float = 4.0) -> np.ndarray:
    """Replace missing and absurd readings by the (filled) reading of one period before.

    A reading is absurd when it is further than `gate` robust deviations (1.4826 times the median absolute deviation)
    from the median of the last `window` raw readings. It is judged by readings before it alone, and raw ones, so that
    a lasting change of level passes for good after half a window at the latest. Before the first period is over, the
    last filled reading stands in, and 0 before the first reading; the gate opens with the second period.

    Args:
        y: Readings in time order, NaN where missing.
        period: Steps of one cycle.
        window: Steps that the gate looks back.
        gate: Width of the gate; `inf` keeps every reading that is finite.

    Returns:
        A series without gaps; entry t depends on y[: t + 1] only.

    Example:
        >>> import numpy as np
        >>> from filtax.streams import fill
        >>> fill(np.array([1.0, 2.0, np.nan, 2.1]), period=2)
        array([1. , 2. , 1. , 2.1])
    """
    y = np.asarray(y, np.float64)
    trusted = np.isfinite(y) & ~_absurd(y, period, window, gate)
    filled = np.where(trusted, y, 0.0)
    for t in np.flatnonzero(~trusted):
        if t >= period:
            filled[t] = filled[t - period]
        elif t > 0:
            filled[t] = filled[t - 1]
    return filled


def lagged(values: np.ndarray, lags: Sequence[int]) -> np.ndarray:
    """Stack past values: column j of row t is `values[t - lags[j]]`.

    Until the series is old enough for a lag, its column repeats that of the next shorter one; the shortest starts with
    the first value, and row 0, which has no past, is 0.

    Args:
        values: A series without gaps, as `fill` gives it.
        lags: How many steps to look back, each at least 1.

    Returns:
        Shape (T, number of lags).

    Example:
        >>> import numpy as np
        >>> from filtax.streams import lagged
        >>> lagged(np.array([1.0, 2.0, 3.0, 4.0]), (1, 3))
        array([[0., 0.],
               [1., 1.],
               [2., 2.],
               [3., 1.]])
    """
    if any(lag < 1 for lag in lags):
        raise ValueError(f"lagged(lags=...) must be 1 or more, got {tuple(lags)}; a smaller one would look ahead.")
    values = np.asarray(values, np.float64)
    columns = {}
    column = np.full(len(values), values[0])
    column[0] = 0.0
    for lag in sorted(lags):
        column = column.copy()
        column[lag:] = values[:-lag]
        columns[lag] = column
    return np.stack([columns[lag] for lag in lags], axis=1) if columns else np.empty((len(values), 0))


def harmonics(time: np.ndarray, period: int, orders: int) -> np.ndarray:
    """Cosines and sines of the calendar: cos and sin of 2 pi k t / period for k = 1, ..., orders.

    Args:
        time: Hours as `datetime64`, or whole numbers.
        period: Hours of one cycle: 24 for the day, 168 for the week.
        orders: How many multiples of the base frequency; more give sharper shapes.

    Returns:
        Shape (T, 2 * orders): cosine and sine of each order in turn.

    Example:
        >>> import numpy as np
        >>> from filtax.streams import harmonics
        >>> harmonics(np.array([0, 6, 12]), period=24, orders=1).round(6) + 0.0
        array([[ 1.,  0.],
               [ 0.,  1.],
               [-1.,  0.]])
    """
    if np.issubdtype(np.asarray(time).dtype, np.datetime64):
        time = time.astype("datetime64[h]").astype(np.int64)
    angle = 2.0 * np.pi * np.outer(np.mod(time, period) / period, np.arange(1, orders + 1))
    return np.stack([np.cos(angle), np.sin(angle)], axis=-1).reshape(len(angle), 2 * orders)


def hourly_features(
    time: np.ndarray, y: np.ndarray, lags: Sequence[int] = (24, 168), daily: int = 3, weekly: int = 3
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Build the regressors of an hourly load: a constant, daily and weekly harmonics, and filled lags.

    Args:
        time: Hours as `datetime64`.
        y: Readings, NaN where missing; row t sees only those before t.
        lags: Hours to look back; the same hour yesterday and last week by default.
        daily: Harmonics of the day.
        weekly: Harmonics of the week.

    Returns:
        The features, shape (T, D), all finite, and their names.

    Example:
        >>> import numpy as np
        >>> from filtax.streams import hourly_features
        >>> hours = np.datetime64("2024-01-01T00") + np.arange(48)
        >>> X, names = hourly_features(hours, np.ones(48), lags=(24,), daily=1, weekly=0)
        >>> X.shape, names
        ((48, 4), ('constant', 'day cos 1', 'day sin 1', 'lag 24'))
    """
    if len(time) != len(y):
        raise ValueError(
            f"hourly_features: {len(time)} times but {len(y)} readings; each hour needs both, NaN included."
        )
    columns = [np.ones((len(y), 1)), harmonics(time, 24, daily), harmonics(time, 168, weekly), lagged(fill(y), lags)]
    names = ["constant"]
    for cycle, orders in (("day", daily), ("week", weekly)):
        names += [f"{cycle} {wave} {k}" for k in range(1, orders + 1) for wave in ("cos", "sin")]
    return np.concatenate(columns, axis=1), (*names, *(f"lag {lag}" for lag in lags))


def _absurd(y: np.ndarray, period: int, window: int, gate: float) -> np.ndarray:
    """Readings outside the gate; False where there is no history, or where the past did not move at all."""
    absurd = np.zeros(len(y), bool)
    if not np.isfinite(gate):
        return absurd
    known = np.where(np.isfinite(y), y, np.nan)
    for t in range(period, len(y)):
        past = known[max(0, t - window) : t]
        past = past[~np.isnan(past)]
        if past.size >= period // 2:
            median = np.median(past)
            spread = 1.4826 * np.median(np.abs(past - median))
            absurd[t] = spread > 0 and abs(y[t] - median) > gate * spread
    return absurd
