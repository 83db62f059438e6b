"""Timed features at work on the post-Covid load: errors in the thesis's unit, below the baselines, honest intervals."""

import jax.numpy as jnp
import numpy as np
import pytest

import filtax as fx
from filtax.evaluate import prequential
from filtax.io import open_table
from filtax.streams import Season, TimedFeatures
from thesis_load import LOAD, START, unit


@pytest.mark.nightly
@pytest.mark.x64
@pytest.mark.skipif(not LOAD.is_file(), reason="the load is not at hand: name the folder of data sets in FILTAX_DATA")
@pytest.mark.parametrize(
    ("H", "name", "error"),
    [(1, "WoLF-Huber(c=2.5)+NIG+RL[1]-OUPR(hazard=0.001)", 0.033), (24, "WoLF-Huber(c=2.5)+NIG+C-Static", 0.155)],
)
def test_the_load_is_forecast_better_than_by_the_baselines(H, name, error):
    chunks = list(open_table(LOAD, target="load_kw", time="time", features=[]))
    y = np.concatenate([chunk.numbers[:, 0] for chunk in chunks])
    maker = TimedFeatures(Season.of(chunks[0].time), horizon=H)
    _, rows = maker.make(maker.init(), np.concatenate([chunk.time for chunk in chunks]), y)
    method = fx.method(name, model=fx.models.linear(noise=1.0))
    start = method.init(mean=jnp.zeros(rows.X.shape[1]), cov=0.1)
    report = prequential(
        method, start, rows.X, rows.target, metrics=("coverage(0.9)",), baselines=(), delay=H - 1, chunk=3989
    )
    [run] = report.runs.values()
    forecast = run.forecasts[0]
    said, lower, upper = (rows.restore(np.asarray(u)) for u in (forecast.mean, forecast.lower, forecast.upper))
    scale = unit(y)

    def median(forecast):
        return np.median((np.abs(y - forecast) / scale)[START:])

    yesterday = np.roll(y, 24)  # the rows that wrap around lie before the start
    assert median(said) < error
    assert median(said) < median(yesterday if H == 24 else np.roll(y, 1) + yesterday - np.roll(y, 25))
    assert 0.88 < np.mean(((lower <= y) & (y <= upper))[START:]) < 0.92
