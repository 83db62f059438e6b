"""An hourly electricity load, generated: cycles, drift, a level shift, a meter that fails and a meter that lies.

The load of a town of about 1 GW. Its daily shape and level wander slowly, weekends are quieter, weather pushes it for
hours at a time; six tenths of the way through, a large customer leaves for good. The meter adds a little noise, is
silent for single hours and once for more than a day, and now and then writes down 0 or a wild excess.
"""

import jax
import numpy as np

from filtax.streams.features import hourly_features
from filtax.streams.synthetic import Stream, generator

__all__ = ["hourly_load"]

WEEK = 168
SHIFT = 0.6  # where the level shifts, as a share of the stream
OUTAGE = 0.4  # where the long silence begins
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
    """Generate an hourly load in GW with everything that goes wrong in practice, and its features.

    The faults spare the first week, as a start would be watched. `truth` is the load itself, `y` what the meter wrote;
    X comes from `hourly_features` and sees only what the meter wrote in earlier hours.

    Args:
        hours: Length T, two weeks or more.
        key: Whole number or JAX key.
        shift: Change of level, in GW, at `changes[0]`; 0 for none.
        missing: Share of single hours that the meter misses; it is silent for 30 hours besides. 0 for neither.
        outliers: Share of hours with a gross error.
        lags: Past hours among the features.

    Returns:
        A stream with `time` in hours from a Monday at midnight.

    Example:
        >>> from filtax.streams import hourly_load
        >>> stream = hourly_load(1000, key=0)
        >>> stream.X.shape, stream.changes, int(stream.outliers.sum())
        ((1000, 15), (600,), 2)
        >>> str(stream.time[0]), float(stream.truth.mean().round(1))
        ('2024-01-01T00', 0.9)
    """
    if hours < 2 * WEEK:
        raise ValueError(f"hourly_load(hours=...) must be {2 * WEEK} (two weeks) or more, got {hours}.")
    for name, share in (("missing", missing), ("outliers", outliers)):
        if not 0.0 <= share <= 0.5:
            raise ValueError(f"hourly_load({name}=...) must lie in [0, 0.5], got {share}; it is a share of the hours.")
    rng = generator(key)
    time = np.datetime64("2024-01-01T00") + np.arange(hours)
    change = int(SHIFT * hours)
    truth = _load(rng, hours)
    truth[change:] += shift
    y = truth + 0.006 * rng.normal(size=hours)
    _fall_silent(rng, y, missing)
    wrong = _lie(rng, y, outliers)
    X, names = hourly_features(time, y, lags)
    return Stream(time, X, y, truth, None, wrong, (change,) if shift else (), names)


def _load(rng: np.random.Generator, hours: int) -> np.ndarray:
    """The load without shift or meter: a level and a daily shape that walk, quieter weekends, weather."""
    t = np.arange(hours)
    level = 1.0 + 0.0007 * np.cumsum(rng.normal(size=hours))
    swing = 1.0 + 0.003 * np.cumsum(rng.normal(size=hours))
    day = -0.12 * np.cos(2.0 * np.pi * (t - 3) / 24) - 0.05 * np.cos(4.0 * np.pi * (t - 1.5) / 24)
    weekend = np.where(t // 24 % 7 >= 5, -0.09, 0.0)
    weather = np.zeros(hours)
    pushes = 0.008 * rng.normal(size=hours)
    for i in range(1, hours):
        weather[i] = 0.9 * weather[i - 1] + pushes[i]
    return level + swing * day + weekend + weather


def _fall_silent(rng: np.random.Generator, y: np.ndarray, share: float) -> None:
    """Write NaN into y: single hours anywhere after the first week, and one long silence."""
    if share > 0.0:
        start = max(WEEK, int(OUTAGE * len(y)))
        y[start : start + OUTAGE_HOURS] = np.nan
        y[WEEK:][rng.random(len(y) - WEEK) < share] = np.nan


def _lie(rng: np.random.Generator, y: np.ndarray, share: float) -> np.ndarray:
    """Write gross errors into y, half of them zeros, half an excess; say where."""
    count = round(share * len(y))
    written = WEEK + np.flatnonzero(np.isfinite(y[WEEK:]))
    where = rng.choice(written, size=min(count, len(written)), replace=False)
    excess = rng.uniform(0.8, 1.6, size=len(where))
    dead = np.arange(len(where)) % 2 == 0
    y[where] = np.where(dead, 0.0, y[where] + excess)
    wrong = np.zeros(len(y), bool)
    wrong[where] = True
    return wrong
