"""Where nothing changes and nothing is wrong, alarms come as often as was asked for."""

import numpy as np
import pytest

from filtax.estimators import Classifier, Regressor, Segmenter, load, save
from filtax.estimators.memory import TOLD

ALARM, TRUST = TOLD.index("alarm"), TOLD.index("trust")
BEGUN = 200  # the noise is known


def told_of(model, X, y, begun=BEGUN):
    model._begin()
    keys = model._table.columns(list(range(X.shape[1])))
    model._table.admit(keys)
    targets = model._targets(list(y))
    model._make_room()
    return model._engine().learn(model._vector, model._extended(model._rows(keys, X), targets))[1][begun:]


@pytest.mark.parametrize("signal", [1.0, 0.0])
@pytest.mark.parametrize(("rate", "streams"), [(0.001, 12), (0.01, 4), (0.05, 4), (0.1, 4)])
def test_a_regressor_keeps_to_the_rate(rate, streams, signal):
    """Data that are told of are learned from: without them the noise seemed smaller and smaller.

    Where features explain nothing WoLF, whose c is in units of y, finds the noise too small: it was 2.5 in 1000.
    """
    rng = np.random.default_rng(300)
    shown = []
    for _ in range(streams):
        X = rng.normal(size=(2048, 3))
        y = signal * (X @ [1.0, -2.0, 0.5]) + rng.normal(size=2048)
        shown.append(told_of(Regressor(false_alarms=rate, capacity=4), X, y))
    told = np.concatenate(shown)
    chance = 2.5 * np.sqrt(rate / len(told))
    assert 0.9 * rate - chance < np.mean(told[:, ALARM] > 0) < 1.2 * rate + chance
    assert np.mean(told[:, ALARM] == 2) < 0.001
    assert np.mean(told[:, TRUST] == 0.0) < 0.003


@pytest.mark.parametrize("signal", [1.0, 0.0])
def test_a_regressor_keeps_to_the_rate_from_the_start(signal):
    """Of the fifth to the sixtieth datum it once called 8 to 25 of 1000 outliers."""
    rng, told = np.random.default_rng(305), []
    for _ in range(100):
        X = rng.normal(size=(60, 3))
        y = signal * (X @ [1.0, -2.0, 0.5]) + rng.normal(size=60)
        told.append(told_of(Regressor(capacity=4), X, y, begun=0))
    assert np.mean(np.concatenate(told)[:, ALARM] > 0) < 0.003


@pytest.mark.parametrize("share", [0.05, 0.2])
def test_features_that_are_missing_make_no_outliers(share):
    """A forecast knows that they may lie a scale off: once 5 to 7 of 1000 were outliers, and 75 to 80 % inside."""
    rng, told, inside = np.random.default_rng(306), [], []
    for _ in range(6):
        X, gaps = rng.normal(size=(2048, 3)), rng.random((2048, 3)) < share
        y = X @ [1.0, -2.0, 0.5] + rng.normal(size=2048)
        told.append(told_of(Regressor(capacity=4), np.where(gaps, np.nan, X), y))
        z = (y[BEGUN:] - told[-1][:, TOLD.index("mean")]) / np.sqrt(told[-1][:, TOLD.index("var")])
        inside.append(np.abs(z[gaps[BEGUN:].any(axis=1)]) < 1.645)
    assert np.mean(np.concatenate(told)[:, ALARM] > 0) < 0.0015
    assert 0.88 < np.mean(np.concatenate(inside)) < 0.96


def test_what_is_forecast_knows_of_gaps_as_what_is_told():
    """A feature that is missing is worth its weight times its scale; the variance of a Student t has a little more."""
    rng, model = np.random.default_rng(307), Regressor(capacity=4)
    rows = rng.normal(size=(200, 2))
    for a, b in rows:
        model.learn_one({"a": a, "b": b}, a - 3.0 * b + 0.1 * rng.normal())
    whole, gap = (model.predict_one(x, with_dist=True) for x in ({"a": 0.0, "b": 0.0}, {"a": 0.0}))
    scale = np.sqrt(gap.var - whole.var)
    assert 0.98 < scale / (3.0 * np.std(rows[:, 1])) < 1.1
    assert gap.mean == pytest.approx(model.predict_one({"a": 0.0, "b": np.mean(rows[:, 1])}), abs=0.02)
    low, high = model.predict_interval_one({"a": 0.0})
    narrow = model.predict_interval_one({"a": 0.0, "b": 0.0})
    assert 0.8 < (high - low) / (2 * 1.645 * scale) < 1.1
    assert narrow[1] - narrow[0] < 0.5


def test_features_that_go_together_widen_a_forecast_no_further_than_y_goes():
    """Their weights are large and cancel: once a forecast without them was forty times as wide as y."""
    rng, model = np.random.default_rng(308), Regressor(capacity=4)
    y = []
    for _ in range(400):
        p = rng.normal()
        q = p + 0.02 * rng.normal()
        y.append(50.0 * (q - p) + 0.05 * rng.normal())
        model.learn_one({"p": p, "q": q}, y[-1])
    assert 0.9 < np.sqrt(model.predict_one({}, with_dist=True).var) / np.std(y) < 1.6


def test_many_outliers_do_not_hide_the_next():
    """What is called an outlier does not tell how wide forecasts should be."""
    rng = np.random.default_rng(304)
    X, bad = rng.normal(size=(2048, 3)), rng.random(2048) < 0.05
    y = X @ [1.0, -2.0, 0.5] + rng.normal(size=2048) + np.where(bad, 6.0 * rng.choice([-1, 1], 2048), 0.0)
    told = told_of(Regressor(capacity=4), X, y)
    assert np.mean(told[bad[BEGUN:], ALARM] == 1) > 0.8


@pytest.mark.parametrize(("rate", "slope"), [(0.05, 2.0), (0.1, 0.5)])
def test_a_classifier_stays_below_the_rate(rate, slope):
    rng = np.random.default_rng(301)
    X = rng.normal(size=(1500, 3))
    y = rng.random(1500) < 1.0 / (1.0 + np.exp(-slope * (X @ [1.0, -2.0, 0.5])))
    told = told_of(Classifier(false_alarms=rate, capacity=4), X, y.tolist())
    assert np.mean(told[:, ALARM] > 0) < rate
    assert np.mean(told[:, ALARM] == 2) < 0.002


@pytest.mark.parametrize("width", [1, 4])
def test_a_segmenter_keeps_to_the_rate_however_many_readings_change_together(width):
    rng = np.random.default_rng(302)
    model, told = Segmenter(false_alarms=0.05, keep=20), []
    for row in rng.normal(size=(1000, width)):
        model.learn_one({f"r{i}": value for i, value in enumerate(row)})
        told.append(model.alarm_)
    assert 0.03 < np.mean([alarm is not None for alarm in told[60:]]) < 0.075
    assert model.changes_ == []


def test_a_segmenter_learns_from_an_outlier_that_is_not_too_odd(tmp_path):
    rng = np.random.default_rng(303)
    model, trust = Segmenter(false_alarms=0.2, keep=20), {}
    for value in [*rng.normal(size=80), 2.0, 0.0, 20.0]:
        model.learn_one(value)
        trust[value] = (model.alarm_, model.trust_)
        if value == 2.0:
            save(tmp_path, model)
            assert load(tmp_path)[0].trust_ == 1.0
    assert trust[2.0] == ("outlier", 1.0)
    assert trust[20.0] == ("outlier", 0.0)
