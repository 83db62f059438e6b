"""A segmenter fed one reading at a time: against the alarms for the whole series."""

import numpy as np

import filtax as fx
from filtax.estimators import Segmenter


def test_a_segmenter_gives_the_alarms_of_detect():
    rng = np.random.default_rng(0)
    y = np.r_[rng.normal(size=60), rng.normal(9.0, 1.0, size=40)]
    y[20] = np.nan
    model, times = Segmenter(keep=30), []
    for t, value in enumerate(y):
        model.learn_one({"volts": value})
        assert (model.alarm_ == "missing") == (t == 20)
        times += [t] if model.alarm_ == "change" else []
    want = fx.segmentation.detect(y, settings=fx.segmentation.Settings(noise=0.5, keep=30), period=None)
    assert (times, model.changes_) == (want.times, want.starts)
    assert model.runlength_ == 99 - model.changes_[0]
    assert 0.0 <= model.change_probability_ <= 1.0
    assert model.predict_one() == 1
