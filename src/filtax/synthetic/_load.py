"""A synthetic hourly electricity load: cycles, drift, a level shift, missing hours and gross errors.

The load of a town of about 1 GW. Its daily shape and level drift slowly, weekends are lower, weather moves it for hours
at a time; at six tenths of the stream a large customer leaves for good. The meter adds a little noise, misses single
hours and once 30 hours in a row, and sometimes reads 0 or far too much.
"""

import jax
import numpy as np

from filtax import _validation as checks
from filtax.synthetic._stream import Stream, generator

DAY, WEEK = 24, 168
SHIFT = 0.6  # where the level shifts, as a share of the stream
OUTAGE = 0.4  # where the long outage begins
OUTAGE_HOURS = 30


def hourly_load(
    hours: int = 26 * WEEK,
    *,
    key: int | jax.Array,
    shift: float = -0.17,
    missing: float = 0.01,
    outliers: float = 0.002,
    lags: tuple[int, ...] = (24, 168),
) -> Stream:
    """Generate an hourly load in GW with a level shift, missing hours, gross errors, and its features.

    There are no faults in the first week. `truth` is the load itself, `y` the readings of the meter. X holds a
    constant, three harmonics of the day and of the week, and lagged readings; row t uses readings before t only. A lag
    whose reading is missing, or further than four robust deviations from the median of a week, is filled by that of
    the day before.

    Args:
        hours: Length T, two weeks or more.
        key: Whole number or JAX key.
        shift: Change of level, in GW, at `changes[0]`; 0 for none.
        missing: Share of single hours that the meter misses, besides the 30 hours in a row. 0 for neither.
        outliers: Share of hours with a gross error.
        lags: Past hours among the features.

    Returns:
        A stream with `time` in hours from a Monday at midnight.

    Example:
        >>> from filtax.synthetic import hourly_load
        >>> stream = hourly_load(1000, key=0)
        >>> stream.X.shape, stream.changes, int(stream.outliers.sum())
        ((1000, 15), (600,), 2)
        >>> str(stream.time[0]), float(stream.truth.mean().round(1))
        ('2024-01-01T00', 0.9)
    """
    checks.whole("hourly_load(hours=...)", hours, least=2 * WEEK, hint="That is two weeks.")
    for name, share in (("missing", missing), ("outliers", outliers)):
        if not 0.0 <= share <= 0.5:
            raise ValueError(f"hourly_load({name}=...) must lie in [0, 0.5], got {share}; it is a share of the hours.")
    if any(lag < 1 for lag in lags):
        raise ValueError(f"hourly_load(lags=...) must be 1 or more, got {tuple(lags)}; a smaller one would look ahead.")
    rng = generator(key)
    time = np.datetime64("2024-01-01T00") + np.arange(hours)
    change = int(SHIFT * hours)
    truth = _load(rng, hours)
    truth[change:] += shift
    y = truth + 0.006 * rng.normal(size=hours)
    _remove(rng, y, missing)
    wrong = _corrupt(rng, y, outliers)
    X, names = _features(time, y, lags)
    return Stream(time, X, y, truth, None, wrong, (change,) if shift else (), names)


def _load(rng: np.random.Generator, hours: int) -> np.ndarray:
    """The load without shift and meter: a level and a daily shape that walk, lower weekends, AR(1) weather."""
    t = np.arange(hours)
    level = 1.0 + 0.0007 * np.cumsum(rng.normal(size=hours))
    swing = 1.0 + 0.003 * np.cumsum(rng.normal(size=hours))
    day = -0.12 * np.cos(2.0 * np.pi * (t - 3) / DAY) - 0.05 * np.cos(4.0 * np.pi * (t - 1.5) / DAY)
    weekend = np.where(t // DAY % 7 >= 5, -0.09, 0.0)
    weather = np.zeros(hours)
    pushes = 0.008 * rng.normal(size=hours)
    for i in range(1, hours):
        weather[i] = 0.9 * weather[i - 1] + pushes[i]
    return level + swing * day + weekend + weather


def _remove(rng: np.random.Generator, y: np.ndarray, share: float) -> None:
    """Write NaN into y: single hours anywhere after the first week, and one long outage."""
    if share > 0.0:
        start = max(WEEK, int(OUTAGE * len(y)))
        y[start : start + OUTAGE_HOURS] = np.nan
        y[WEEK:][rng.random(len(y) - WEEK) < share] = np.nan


def _corrupt(rng: np.random.Generator, y: np.ndarray, share: float) -> np.ndarray:
    """Write gross errors into y, half of them zeros, half an excess; return a mask of them."""
    observed = WEEK + np.flatnonzero(np.isfinite(y[WEEK:]))
    where = rng.choice(observed, size=min(round(share * len(y)), len(observed)), replace=False)
    excess = rng.uniform(0.8, 1.6, size=len(where))
    dead = np.arange(len(where)) % 2 == 0
    y[where] = np.where(dead, 0.0, y[where] + excess)
    wrong = np.zeros(len(y), bool)
    wrong[where] = True
    return wrong


def _features(time: np.ndarray, y: np.ndarray, lags: tuple[int, ...]) -> tuple[np.ndarray, tuple[str, ...]]:
    """A constant, harmonics of the day and the week, and lags of the filled readings, (T, D), and their names."""
    hour, filled = time.astype(np.int64), _filled(y)
    names, columns = ["constant"], [np.ones(len(y))]
    for cycle, period in (("day", DAY), ("week", WEEK)):
        for k in (1, 2, 3):
            angle = 2.0 * np.pi * (np.mod(hour, period) / period * k)
            columns += [np.cos(angle), np.sin(angle)]
            names += [f"{cycle} cos {k}", f"{cycle} sin {k}"]
    past, column = {}, np.full(len(y), filled[0])
    column[0] = 0.0
    for lag in sorted(lags):  # a row too young for a lag has the next shorter one
        past[lag] = column = np.concatenate([column[:lag], filled[:-lag]])
    return np.stack([*columns, *(past[lag] for lag in lags)], axis=1), (*names, *(f"lag {lag}" for lag in lags))


def _filled(y: np.ndarray) -> np.ndarray:
    """Replace missing and absurd readings by the (filled) reading of the day before."""
    filled = np.where(np.isfinite(y), y, 0.0)
    for t in range(len(y)):
        if t >= DAY and (np.isnan(y[t]) or _is_absurd(y[t], y[max(0, t - WEEK) : t])):
            filled[t] = filled[t - DAY]
    return filled


def _is_absurd(reading: float, past: np.ndarray) -> bool:
    """Whether a reading is further than four robust deviations from the median of the raw readings before it."""
    past = past[~np.isnan(past)]
    if past.size < DAY // 2:
        return False
    median = np.median(past)
    deviation = 1.4826 * np.median(np.abs(past - median))
    return bool(deviation > 0 and abs(reading - median) > 4.0 * deviation)
