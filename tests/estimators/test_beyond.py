"""A reading beyond all bounds: an outlier that nothing is learned from, however large, and the same one for all."""

import math

import numpy as np
import pytest

from filtax.estimators import Regressor, Segmenter

HUGE = (1e30, 1e155, 1e200, -1.7e308, math.inf, -math.inf)
X = np.random.default_rng(0).normal(size=60)


def regressor(rows=60):
    model = Regressor()
    for t in range(rows):
        model.learn_one({"a": X[t]}, 2.0 * X[t] + 0.1 * math.sin(37.0 * t))
    return model


def segmenter(rows=60):
    model = Segmenter()
    for t in range(rows):
        model.learn_one(X[t])
    return model


@pytest.mark.filterwarnings("error")
def test_a_regressor_forecasts_bit_for_bit_as_if_nothing_had_come():
    """What is learned from it is what is learned from no target at all: the features, and that time has passed."""
    blank = regressor()
    blank.learn_one({"a": 0.3}, None)
    assert blank.alarm_ == "missing"
    for y in HUGE:
        model = regressor()
        length = model.runlength_
        model.learn_one({"a": 0.3}, y)
        assert (model.alarm_, model.trust_, model.runlength_) == ("outlier", 0.0, length + 1)
        assert model.change_probability_ < 0.01
        seen, want = (each.predict_one({"a": 1.0}, with_dist=True) for each in (model, blank))
        assert (seen.mean, seen.var) == (want.mean, want.var)


def test_infinity_is_an_outlier_from_the_first_datum_on_and_no_evidence_of_a_change():
    early, blank = Regressor(), Regressor()
    for y in (1.0, math.inf, 2.0):
        early.learn_one({"a": 1.0}, y)
        blank.learn_one({"a": 1.0}, None if math.isinf(y) else y)
        assert (early.alarm_ == "outlier") == math.isinf(y)
    assert early.predict_one({"a": 1.0}) == blank.predict_one({"a": 1.0})
    model = regressor()
    for _ in range(20):
        model.learn_one({"a": 0.3}, math.inf)
        assert model.alarm_ == "outlier"


@pytest.mark.filterwarnings("error")
def test_a_segmenter_has_the_same_rule():
    blank = segmenter()
    blank.learn_one(None)
    blank.learn_one(0.5)
    for y in HUGE:
        model = segmenter()
        model.learn_one(y)
        assert (model.alarm_, model.trust_) == ("outlier", 0.0)
        model.learn_one(0.5)
        assert (model.alarm_, model.change_probability_) == (None, blank.change_probability_)
    young = Segmenter()
    young.learn_one(math.inf)
    assert young.alarm_ == "outlier"
