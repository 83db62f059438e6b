r"""The hourly load of the electricity experiment, made causal: what is forecast, from what, and what needs no model.

The target is $y_t = (\ell_t - m_{t-1}) / s_{t-1}$, with m and s the exponentially weighted mean and standard deviation
of the load $\ell$, half-life 20 hours, both known an hour before. It is forecast from the weather of the hour before,
each column divided by its own average of the same half-life.

Thesis: experiment:hour-ahead-forecasting.
"""

from typing import NamedTuple

import numpy as np

from filtax.streams import read_table

__all__ = ["Hours", "averages", "prepare", "read_hours"]

HALF_LIFE = 20.0
BURN = 100  # rows without which the averages begin
DAY = 24
WEATHER = ("pressure", "cloud_cover_pct", "humidity_pct", "temperature_c", "wind_direction_deg", "wind_speed_kmh")


class Hours(NamedTuple):
    """Rows in the order of time: when, inputs (T, 6), target (T,), load in MW (T,), and forecasts that need no model.

    >>> Hours(*[np.zeros(1)] * 6).y.shape
    (1,)
    """

    time: np.ndarray
    X: np.ndarray
    y: np.ndarray
    load: np.ndarray
    last: np.ndarray
    changed: np.ndarray


def read_hours(scaling: str = "mean") -> Hours:
    """Read the set and prepare it.

    >>> read_hours("median")
    Traceback (most recent call last):
    ValueError: read_hours(scaling='median') must be mean (the text) or sd (the published run).
    """
    if scaling not in ("mean", "sd"):
        raise ValueError(f"read_hours(scaling={scaling!r}) must be mean (the text) or sd (the published run).")
    table = read_table("electricity")
    weather = np.stack([table[name] for name in WEATHER], axis=1)
    return prepare(np.array(table["time"], "datetime64[h]"), table["load_kw"] / 1000.0, weather, scaling)


def prepare(time: np.ndarray, load: np.ndarray, weather: np.ndarray, scaling: str = "mean") -> Hours:
    """Make targets, inputs and baselines; nothing at a row comes from that hour or a later one.

    Args:
        time: Hours, (T,).
        load: (T,).
        weather: (T, 6).
        scaling: Divide a column by its average ("mean", the text) or by its standard deviation ("sd", what was run).

    Returns:
        The rows from the hundredth on. `last` forecasts the load of the hour before, `changed` adds to it the change of
        the same hour a day before; both are in the unit of the target.

    >>> steady = prepare(np.arange(200), 100.0 + np.arange(200.0) % 24, np.ones((200, 6)))
    >>> len(steady.y), bool(np.abs(steady.changed - steady.y).max() < 1e-12)
    (100, True)
    """
    mean, sd = averages(load[:, None], 0.5 ** (1.0 / HALF_LIFE))
    mean, sd = mean[:-1, 0], sd[:-1, 0]
    span = 1.0 - 2.0 / (HALF_LIFE + 1.0)  # the published run took 20 as a span
    size = averages(np.abs(weather), 0.5 ** (1.0 / HALF_LIFE))[0] if scaling == "mean" else averages(weather, span)[1]
    some = size > 1e-6 * np.abs(weather)  # a reading that stands still for days has a deviation of rounding errors
    X = np.where(some, weather / np.where(some, size, 1.0), 0.0)[:-1]
    move = np.full(len(load), np.nan)
    move[DAY + 1 :] = load[1:-DAY] - load[: -DAY - 1]
    unit = lambda value: ((value - mean) / sd)[BURN - 1 :]  # noqa: E731
    with np.errstate(divide="ignore", invalid="ignore"):
        y, last, changed = unit(load[1:]), unit(load[:-1]), unit(load[:-1] + move[1:])
    return Hours(time[BURN:], X[BURN - 1 :], y, load[BURN:], last, changed)


def averages(x: np.ndarray, keep: float) -> tuple[np.ndarray, np.ndarray]:
    """Exponentially weighted means and standard deviations of columns, the latter without bias; weights sum to one.

    Args:
        x: (T, M).
        keep: What a weight keeps in a step.

    Returns:
        Means and standard deviations after each row, (T, M) each; the first deviation is NaN.

    >>> averages(np.array([[1.0], [3.0]]), 1.0)[1][-1].round(4)
    array([1.4142])
    """
    total, squares, weight, weight2 = np.zeros(x.shape[1]), np.zeros(x.shape[1]), 0.0, 0.0
    mean, var = np.empty(x.shape), np.empty(x.shape)
    for t, row in enumerate(x):
        weight, weight2 = 1.0 + keep * weight, 1.0 + keep**2 * weight2
        step = row - total
        total = total + step / weight
        squares = keep * squares + step * (row - total)
        mean[t] = total
        var[t] = squares * weight / (weight**2 - weight2) if t else np.nan
    return mean, np.sqrt(var)
