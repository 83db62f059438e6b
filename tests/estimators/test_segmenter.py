"""A segmenter fed one reading at a time: against the alarms for the whole series."""

import copy
import pickle

import numpy as np
import pytest

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


def told(model, y):
    """Alarm and trust at each reading that had an alarm."""
    found = {}
    for t, value in enumerate(y):
        model.learn_one(value)
        if model.alarm_:
            found[t] = (model.alarm_, model.trust_)
    return found


@pytest.mark.parametrize("size", [6.0, 1e6])
def test_an_outlier_is_no_change_and_a_change_is_no_outlier(size):
    """It is not learned from; two in a row are outliers, and what stays is a change."""
    y = np.random.default_rng(1).normal(size=140)
    y[50] += size
    y[[70, 71]] -= size
    y[110:] += size
    model = Segmenter(keep=30)
    errors = dict.fromkeys((50, 70, 71, 110, 111), ("outlier", 0.0))
    assert told(model, y) == {**errors, 114: ("change", 1.0)}
    assert model.changes_ == [110]


@pytest.mark.parametrize("at", [8, 15, 28, 29])
def test_among_the_first_readings_an_outlier_is_no_change_and_a_level_that_moves_is_one(at):
    y, one, other = np.random.default_rng(at).normal(size=60), Segmenter(keep=30), Segmenter(keep=30)
    row = np.arange(60)
    assert told(one, y + 1000.0 * (row == at)) == {at: ("outlier", 0.0)}
    assert one.changes_ == []
    other.learn_many(y + 1000.0 * (row >= at))
    assert other.changes_ == [at]


def test_heavy_tails_among_the_first_readings_are_no_outliers():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        for y in (rng.standard_t(3, size=29), rng.lognormal(size=29), np.repeat([0.0, 5.0], [20, 9])):
            assert told(Segmenter(), y) == {}


def test_who_believes_every_reading_believes_the_first_ones():
    model = Segmenter(keep=30, false_alarms=0.0)
    model.learn_many([*np.random.default_rng(0).normal(size=20), 1000.0])
    assert model.alarm_ is None


def test_readings_that_are_odd_all_the_time_are_believed():
    """A noise that is four times what it was is a change, although no three readings in a row need be odd."""
    y = np.random.default_rng(82).normal(size=200) * np.repeat([1.0, 4.0], [150, 50])
    changes = [t for t, (alarm, _) in told(Segmenter(keep=30), y).items() if alarm == "change"]
    assert changes
    assert 150 <= changes[0] < 185


def test_a_target_is_watched_where_there_are_no_features():
    """As river's drift detectors watch errors: x is empty or None, and y is the reading; else y is not looked at."""
    rng = np.random.default_rng(2)
    y = np.r_[rng.normal(size=60), rng.normal(9.0, 1.0, size=40)]
    plain, empty, none, many, named = (Segmenter(keep=20) for _ in range(5))
    for value in y.tolist():
        plain.learn_one(value)
        empty.learn_one({}, value)
        none.learn_one(None, value)
        named.learn_one({"volts": value}, -value)
    many.learn_many([{}] * len(y), y)
    assert plain.changes_
    assert empty.changes_ == none.changes_ == many.changes_ == named.changes_ == plain.changes_
    empty.learn_one({})
    named.learn_one({}, 3.0)  # its reading is called volts, and there is none
    assert (empty.alarm_, named.alarm_) == ("missing", "missing")


def test_nothing_at_all_is_refused_in_a_sentence():
    with pytest.raises(ValueError, match=r"x is \{\} and there is no y; give \{name: number\}, or the reading as y"):
        Segmenter().learn_one({})


def test_a_forecast_is_the_segment_and_how_probable_each_is():
    """With the reading that declares a change, the probability is that of its segment and not of a further one."""
    model = Segmenter(keep=30)
    assert model.predict_one(with_dist=True).probabilities == model.predict_proba_one() == {0: 1.0}
    told = []
    for value in [*np.random.default_rng(1).normal(size=70), *np.random.default_rng(2).normal(9.0, 1.0, size=30)]:
        model.learn_one(value)
        seen, p, k = model.predict_one({"x": 1.0}, with_dist=True), model.change_probability_, model.predict_one()
        before = k - 1 if model.alarm_ == "change" else k
        assert seen.probabilities == model.predict_proba_one({"x": 1.0}) == {before: 1.0 - p, before + 1: p}
        told += [seen.prob(1)] if model.alarm_ == "change" else []
    assert (model.predict_one(), model.t_) == (1, 100)
    assert len(told) == 1
    assert told[0] > model.threshold


def test_a_change_that_is_found_behind_the_warm_up_is_no_further_one():
    """It is declared while the first readings are learned, and others of the same segment follow at once."""
    y = np.random.default_rng(15).normal(size=30)
    y[15:] += 1000.0
    model = Segmenter(keep=30)
    model.learn_many(y)
    assert (model.alarm_, model.predict_one(), model.predict_one(with_dist=True).mode) == ("change", 1, 1)
    assert model.predict_proba_one() == {1: 1.0 - model.change_probability_, 2: model.change_probability_}
    assert model.predict_proba_one()[1] > 0.9


def test_labels_are_the_segments_of_all_readings_as_known_now():
    rng = np.random.default_rng(0)
    y = np.r_[rng.normal(size=60), rng.normal(9.0, 1.0, size=40)]
    model = Segmenter(keep=30)
    with pytest.raises(
        AttributeError, match=r"nothing was read yet: Segmenter has no labels_ before the first reading"
    ):
        _ = model.labels_
    for t, value in enumerate(y):
        model.learn_one(value)
        assert model.labels_.shape == (t + 1,)
        assert model.labels_[-1] == model.predict_one()
    assert model.labels_.tolist() == [0] * 60 + [1] * 40
    assert model.fit_predict(y[:, None]).tolist() == model.labels_.tolist()
    assert not hasattr(model, "predict")


def test_what_is_no_number_is_refused_and_nothing_begins():
    model = Segmenter()
    with pytest.raises(ValueError, match=r"the reading 'volts' is 'high', which is no number; give a number, None"):
        model.learn_one({"volts": "high"})
    with pytest.raises(ValueError, match=r"the reading 'reading' is array\(\[1., 2.\]\), which is no number"):
        model.learn_one(np.array([1.0, 2.0]))
    model.learn_one({"amperes": 1.0})
    assert (model._names, model.t_) == (["amperes"], 1)


def test_parameters_that_change_during_a_stream_count_from_the_next_fit_on():
    y = np.r_[np.random.default_rng(3).normal(size=40), np.random.default_rng(4).normal(9.0, 1.0, size=20)]
    model = Segmenter(keep=30)
    model.learn_many(y[:35])
    model.set_params(threshold=1.0)  # no alarm at all
    model.learn_many(y[35:])
    assert model.changes_ == [40]
    assert model.fit(y[:, None]).changes_ == []


def test_a_copy_goes_on_with_the_same_bits():
    """In doubt about an outlier, and while the unit is not known yet."""
    y = np.random.default_rng(0).normal(size=90)
    y[40:] += 9.0
    for cut in (10, 41, 42, 60):
        model = Segmenter(keep=20)
        model.learn_many(y[:cut])
        twins = [model, copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
        for twin in twins:
            twin.learn_many(y[cut:])
        assert len({(twin.change_probability_, *twin.changes_) for twin in twins}) == 1
        assert model.changes_ == [40]
