"""The promise to a stranger: all defaults, a file and two names, on the post-Covid load."""

import os
from pathlib import Path

import numpy as np
import pytest

from filtax.runs import Config, carry_on, open_run

LOAD = Path(os.environ.get("FILTAX_DATA", "absent")) / "electricity_postcovid" / "actuals_2017_2020.csv.gz"
START = 100  # rows, left out as in the thesis


def unit(y, half_life=20.0):
    """Standard deviation of the readings before each row, exponentially weighted and without bias."""
    weight = 0.5 ** (np.arange(1000) / half_life)
    out = np.full(len(y), np.nan)
    for t in range(2, len(y)):
        past = y[max(0, t - 1000) : t][::-1]
        w = weight[: len(past)] / weight[: len(past)].sum()
        out[t] = np.sqrt(w @ (past - w @ past) ** 2 / (1.0 - w @ w))
    return out


@pytest.mark.nightly
@pytest.mark.x64
@pytest.mark.skipif(not LOAD.is_file(), reason="the load is not at hand: name the folder of data sets in FILTAX_DATA")
@pytest.mark.parametrize(
    ("H", "error", "rival"), [(1, 0.044, "naive-plus-change(24)"), (24, 0.19, "seasonal-naive(24)")]
)
def test_defaults_beat_the_baselines_with_honest_intervals(H, error, rival, tmp_path):
    carry_on(Config(str(LOAD), "load_kw", time="time", horizon=H), tmp_path)
    records = np.concatenate(list(open_run(tmp_path).records()))
    y = records["y"]
    scale = unit(y)
    own, other = (np.median((np.abs(records[name] - y) / scale)[START:]) for name in ("forecast", rival))
    assert own < min(error, other)
    assert 0.88 < np.mean(((records["lower"] <= y) & (y <= records["upper"]))[START:]) < 0.92
