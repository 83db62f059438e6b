"""The promise to a stranger: all defaults, a file and two names, on the post-Covid load."""

import numpy as np
import pytest

from filtax.pipeline import Config, open_run, run_pipeline
from thesis_load import LOAD, START, unit


@pytest.mark.nightly
@pytest.mark.x64
@pytest.mark.skipif(not LOAD.is_file(), reason="the load is not at hand: name the folder of data sets in FILTAX_DATA")
@pytest.mark.parametrize(
    ("H", "error", "rival"), [(1, 0.044, "naive-plus-change(24)"), (24, 0.19, "seasonal-naive(24)")]
)
def test_defaults_beat_the_baselines_with_honest_intervals(H, error, rival, tmp_path):
    run_pipeline(Config(str(LOAD), "load_kw", time="time", horizon=H), tmp_path)
    records = np.concatenate(list(open_run(tmp_path).records()))
    y = records["y"]
    scale = unit(y)
    own, other = (np.median((np.abs(records[name] - y) / scale)[START:]) for name in ("forecast", rival))
    assert own < min(error, other)
    assert 0.88 < np.mean(((records["lower"] <= y) & (y <= records["upper"]))[START:]) < 0.92
