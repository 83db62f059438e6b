"""Timed features at work on the post-Covid load: errors in the thesis's unit, below the baselines, honest intervals."""

import jax.numpy as jnp
import numpy as np
import pytest

import filtax as fx
from filtax.evaluate import prequential
from filtax.sources import open_table
from filtax.streams import Season, TimedFeatures
from paths import DATA

START = 100  # rows, left out as in the thesis


def unit(y: np.ndarray, half_life: float = 20.0) -> np.ndarray:
    """Standard deviation of the readings before each row, exponentially weighted, as pandas defines it."""
    keep = 0.5 ** (1.0 / half_life)
    out, total, squares, mean, scatter = np.full(len(y), np.nan), 0.0, 0.0, 0.0, 0.0
    for t, value in enumerate(y):
        if squares and total**2 > squares:
            out[t] = np.sqrt(scatter / total * total**2 / (total**2 - squares))
        total, squares, scatter = keep * total + 1.0, keep**2 * squares + 1.0, keep * scatter
        moved = value - mean
        mean += moved / total
        scatter += moved * (value - mean)
    return out


@pytest.mark.nightly
@pytest.mark.x64
@pytest.mark.parametrize(
    ("H", "name", "error"),
    [(1, "WoLF-Huber(c=2.5)+NIG+RL[1]-OUPR(hazard=0.001)", 0.033), (24, "WoLF-Huber(c=2.5)+NIG+C-Static", 0.155)],
)
def test_the_load_is_forecast_better_than_by_the_baselines(H, name, error):
    path = DATA / "electricity_postcovid" / "actuals_2017_2020.csv.gz"
    chunks = list(open_table(path, target="load_kw", time="time", features=[]))
    y, time = (
        np.concatenate([part for part in parts])
        for parts in zip(*((c.numbers[:, 0], c.time) for c in chunks), strict=True)
    )
    maker = TimedFeatures(Season.of(time), horizon=H)
    _, rows = maker.make(maker.init(), time, y)
    method = fx.method(name, model=fx.models.linear(noise=1.0))
    start = method.init(mean=jnp.zeros(rows.X.shape[1]), cov=0.1)
    report = prequential(
        method, start, rows.X, rows.target, metrics=("coverage(0.9)",), baselines=(), delay=H - 1, chunk=3989
    )
    [forecast] = report.runs[method.name].forecasts
    said, lower, upper = (rows.restore(np.asarray(part)) for part in (forecast.mean, forecast.lower, forecast.upper))
    scale = unit(y)

    def median(forecast):
        return np.median((np.abs(y - forecast) / scale)[START:])

    assert median(said) < error
    assert 0.88 < np.mean((lower <= y) & (y <= upper), where=np.arange(len(y)) >= START) < 0.92
    day = np.arange(len(y)) - max(H, 24)
    assert median(said) < median(np.where(day >= 0, y[day], np.nan)[: len(y)])
