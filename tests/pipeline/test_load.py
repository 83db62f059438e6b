"""All defaults, a file and two names, on the post-Covid load."""

import numpy as np
import pytest

from filtax.pipeline import Config, open_run, run_pipeline
from filtax.pipeline._scores import scores
from thesis_load import LOAD, START, unit


@pytest.mark.nightly
@pytest.mark.x64
@pytest.mark.skipif(not LOAD.is_file(), reason="the load is not at hand: name the folder of data sets in FILTAX_DATA")
@pytest.mark.parametrize(("H", "error"), [(1, 0.032), (24, 0.13)])
def test_defaults_beat_the_baselines_with_honest_intervals(H, error, tmp_path):
    run_pipeline(Config(str(LOAD), "load_kw", time="time", horizon=H), tmp_path)
    records = np.concatenate(list(open_run(tmp_path).records()))
    y = records["y"]
    assert np.median((np.abs(records["forecast"] - y) / unit(y))[START:]) < error
    for step in scores(open_run(tmp_path)).steps:
        assert step["mae"] < min(step["baselines"].values())
        assert 0.88 < step["coverage"] < 0.92
