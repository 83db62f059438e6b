"""Estimators on streams: the numbers of a series, whatever way the rows come, and all that a stream may do."""

import copy
import math
import pickle
import sys
import threading

import jax
import numpy as np
import pytest

from filtax.estimators import Classifier, Regressor
from filtax.forecasting import Labels, Series
from filtax.monitoring import Monitor


def stream(length, seed=0, noise=0.1):
    rng = np.random.default_rng(seed)
    X = rng.normal([5.0, -300.0], [2.0, 40.0], size=(length, 2))
    y = 7.0 + 3.0 * X[:, 0] - 0.1 * X[:, 1] + noise * rng.normal(size=length)
    return [{"a": a, "b": b} for a, b in X.tolist()], y


def taught(model, rows, y):
    for x, target in zip(rows, y, strict=True):
        model.learn_one(x, target)
    return model


def labelled(y):
    return np.where(y > 52.0, "high", "low").tolist()


@pytest.fixture(scope="module")
def regressor():
    return taught(Regressor(), *stream(120))


def test_a_regressor_gives_the_numbers_of_a_series():
    """The same columns by hand: two of three, the third missing; and the alarms of a monitor of its own."""
    rows, y = stream(150)
    y[140] = 1e6
    model, series = taught(Regressor(), rows[:140], y[:140]), Series(known=3, season=1, miss=0.1)
    known = np.array([[row["a"], row["b"], np.nan] for row in rows])
    out = series.learn(y[:140], known=known[:140])
    ahead = series.predict(known[140:])
    law = model.predict_one(rows[140], with_dist=True)
    assert (law.mean, law.lower, law.upper) == tuple(
        float(part[0, 0]) for part in (ahead.forecast, ahead.lower, ahead.upper)
    )
    assert model.predict_interval_one(rows[141]) == (ahead.lower[1, 0], ahead.upper[1, 0])
    model.learn_one(rows[140], y[140])  # what was said of a row is what its monitor judges
    issued, said = series.learn_and_predict(y[140:141], known[140:141], known[141:142])
    assert law.mean == issued.forecast[0, 0]
    assert model.predict_one(rows[141]) == said.forecast[0, 0] == series.predict(known[141:142]).forecast[0, 0]
    monitor, every = Monitor(level=0.9, false_alarms=0.001), (out, issued)
    parts = [np.concatenate([vars(one)[name][:, 0] for one in every]) for name in ("forecast", "lower", "upper")]
    seen = monitor.learn(y[:141], *parts)
    assert model.runlength_ == int(seen.runlength[-1])
    assert model.change_probability_ == seen.change_probability[-1]


def test_a_classifier_gives_the_numbers_of_labels():
    rows, y = stream(100)
    model, labels = taught(Classifier(), rows, labelled(y)), Labels(known=3)
    known = np.array([[row["a"], row["b"], np.nan] for row in rows])
    names = list(dict.fromkeys(labelled(y)))
    labels.learn(np.array([names.index(label) for label in labelled(y)]), known=known)
    want = labels.predict(known[:1])[0]
    assert model.predict_proba_one(rows[0]) == dict(zip(names, (want / want.sum()).tolist(), strict=True))


def test_nothing_is_known_before_the_first_row():
    model = Regressor()
    assert (model.predict_one({"a": 1.0}), model.predict_interval_one({})) == (0.0, (-math.inf, math.inf))
    assert model.predict_many([{"a": 1.0}]).tolist() == [0.0]
    with pytest.raises(AttributeError, match="nothing was learned yet: Regressor has no alarm_"):
        _ = model.alarm_
    with pytest.raises(ValueError, match="not fitted yet"):
        model.predict([[1.0]])
    assert (Classifier().predict_one({"a": 1.0}), Classifier().predict_proba_one({})) == (None, {})
    assert taught(Regressor(), [{"a": 1.0}], [None]).predict_one({"a": 1.0}) == 0.0


@pytest.mark.parametrize("kind", [Regressor, Classifier])
def test_rows_one_by_one_in_tables_and_in_arrays_give_the_same_bits(kind):
    """A column that appears, gaps, texts and a missing target, with forecasts asked for in between or not."""
    rows, y = stream(200, seed=5)
    rows = [{**x, "c": 1.0} if t > 30 else x for t, x in enumerate(rows)]
    rows = [{**x, "day": ("sunday", "monday", None)[t % 3]} if t > 100 else x for t, x in enumerate(rows)]
    for t in range(0, 200, 7):
        rows[t]["b"] = math.nan
    y = y.tolist() if kind is Regressor else labelled(y)
    y[50] = y[150] = None
    one, asked, many, dicts, parts = (kind() for _ in range(5))
    for x, target in zip(rows, y, strict=True):
        one.learn_one(x, target)
        asked.predict_one(x)
        asked.learn_one(x, target)
    columns = {name: [x.get(name) for x in rows] for name in ("a", "b", "c", "day")}
    many.learn_many(columns, y)
    dicts.learn_many(rows, y)
    for at in (slice(0, 10), slice(10, 11), slice(11, 90), slice(90, 200)):
        parts.learn_many({name: values[at] for name, values in columns.items()}, y[at])
    want = one.predict_many(rows).tolist(), one.alarm_, one.runlength_
    for model in (asked, many, dicts, parts):
        assert (model.predict_many(rows).tolist(), model.alarm_, model.runlength_) == want
    assert one.predict_many(rows).tolist() == [one.predict_one(x) for x in rows]


def test_fit_is_learn_one():
    rows, y = stream(100)
    X = np.array([[row["a"], row["b"]] for row in rows])
    one = taught(Regressor(), [dict(enumerate(x)) for x in X.tolist()], y)
    fitted = Regressor().fit(X, y)
    mean, std = fitted.predict(X[:9], return_std=True)
    laws = [one.predict_one(dict(enumerate(x)), with_dist=True) for x in X[:9].tolist()]
    assert mean.tolist() == [law.mean for law in laws]
    np.testing.assert_allclose(std, [law.sigma for law in laws])
    assert fitted.score(X, y) > 0.9
    again = Regressor().fit(X[:60], y[:60]).partial_fit(X[60:], y[60:])
    assert again.predict(X).tolist() == fitted.predict(X).tolist() == fitted.fit(X, y).predict(X).tolist()


def test_alarms(regressor):
    model, x = copy.deepcopy(regressor), {"a": 5.0, "b": -300.0}
    before = model.predict_one(x)
    for y, alarm in ((before, None), (None, "missing"), (math.nan, "missing"), (1e9, "outlier")):
        model.learn_one(x, y)
        assert model.alarm_ == alarm
    model.learn_one({"a": None, "b": math.nan}, before)  # features may be missing, too
    assert math.isfinite(model.predict_one({}))


def test_labels_may_come_late(regressor):
    prompt, late = copy.deepcopy(regressor), copy.deepcopy(regressor)
    rows, y = stream(10, seed=7)
    forecasts = [late.predict_one(x, id=t) for t, x in enumerate(rows)]
    assert late.late_ == {"waiting": 10, "given_up": 0, "unknown": 0}
    with pytest.raises(ValueError, match="y is 'high'"):
        late.learn_one(None, "high", id=0)  # it goes on waiting
    for t, (x, target) in enumerate(zip(rows, y, strict=True)):
        late.learn_one(None, target, id=t)
        prompt.learn_one(x, target)
    assert forecasts[0] == regressor.predict_one(rows[0])
    assert late.predict_many(rows).tolist() == prompt.predict_many(rows).tolist()
    late.learn_one(None, 1.0, id=0)  # a second label for the same id
    late.learn_one(None, 1.0, id="never")
    assert late.late_ == {"waiting": 0, "given_up": 0, "unknown": 2}
    few = Regressor(pending=2)
    for id in "abc":
        few.predict_one({"a": 1.0}, id=id)
    assert few.late_ == {"waiting": 2, "given_up": 1, "unknown": 0}
    with pytest.raises(ValueError, match="give the features x, or the id"):
        late.learn_one(None, 1.0)


def test_predicting_changes_nothing(regressor):
    before = pickle.dumps(regressor)
    for ask in (regressor.predict_one, regressor.predict_interval_one):
        ask({"a": 1.0, "new": 2.0, "word": "text"})
    regressor.predict_many([{"other": 3.0}])
    assert pickle.dumps(regressor) == before


@pytest.mark.parametrize(
    ("x", "y", "match"),
    [
        ({"a": math.inf}, 1.0, "feature 'a' is inf; give a finite number"),
        ({"a": [1.0]}, 1.0, "feature 'a' is .*; the argument must be a string for a category, a number"),
        ({"a": 10**400}, 1.0, "feature 'a' is"),
        (3.0, 1.0, "give a dict of names to values"),
        ({"a": 1.0}, "high", "y is 'high'; give a number, or None"),
        ({"a": 1.0, "b": 2.0, "new": 3.0, "newer": 4.0}, "high", "y is 'high'; give a number, or None"),
        ({"a": 1.0}, math.inf, "y is infinite; give a finite number"),
        ({"a": 1.0}, [1.0, 2.0], "y is"),
    ],
)
def test_an_odd_row_is_refused_and_leaves_no_trace(regressor, x, y, match):
    model = copy.deepcopy(regressor)
    with pytest.raises((TypeError, ValueError), match=match):
        model.learn_one(x, y)
    assert pickle.dumps(model) == pickle.dumps(regressor)


@pytest.mark.parametrize(("x", "y"), [({"a": math.inf}, "new"), ({"a": 1.0, "new": 1.0}, ["no label"])])
def test_an_odd_row_gives_a_classifier_no_class_and_no_column(x, y):
    model = Classifier()
    for row in range(10):
        model.learn_one({"a": float(row)}, "even" if row % 2 else "odd")
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match=r"inf|must be a label"):
        model.learn_one(x, y)
    assert pickle.dumps(model) == before


def test_float32_elsewhere_does_not_matter(regressor):
    models = []
    for switched in (False, True):
        with jax.enable_x64(switched):
            models.append(taught(copy.deepcopy(regressor), *stream(3, seed=12)).predict_one({"a": 1.0}))
    assert models[0] == models[1]


def test_threads_may_share_an_estimator(regressor):
    """Each row is learned once: 200 equal ones from four threads are 200 from one. Copies have locks of their own."""
    x, model, alone, failed = {"a": 9.0, "b": -250.0}, copy.deepcopy(regressor), copy.deepcopy(regressor), []

    def learn():
        try:
            for _ in range(50):
                model.learn_one(x, 70.0)
                model.predict_one(x)
        except Exception as problem:
            failed.append(problem)

    often = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=learn) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(often)
    assert not failed
    taught(alone, [x] * 200, [70.0] * 200)
    for one in (model, copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert one.predict_one({"a": 1.0, "b": 0.0}) == alone.predict_one({"a": 1.0, "b": 0.0})
        one.learn_one({"a": 1.0}, 1)


def test_classes_may_appear_and_labels_that_python_cannot_tell_apart_are_refused():
    model = taught(Classifier(), [{"a": 0.0}, {"a": 1.0}] * 40, [1, 0] * 40)
    model.learn_one({"a": 1.0}, 1.0)  # one number, however it is written
    with pytest.raises(ValueError, match="the label True came after 1, and to Python the two are equal"):
        model.learn_one({"a": 1.0}, True)
    with pytest.raises(ValueError, match="y must be a label"):
        model.learn_one({"a": 1.0}, [1])
    with pytest.warns(UserWarning, match="the label '1' came after 1: they are two classes"):
        model.learn_one({"a": 1.0}, "1")
    assert model.classes_.tolist() == ["1", 0, 1]
    law = model.predict_one({"a": 1.0}, with_dist=True)
    assert law.probabilities == model.predict_proba_one({"a": 1.0})
    assert law.mode == model.predict_one({"a": 1.0}) == 0
    np.testing.assert_allclose(sum(law.probabilities.values()), 1.0)


def test_announced_classes_have_columns_before_they_are_met():
    X = np.arange(8.0)[:, None]
    model = Classifier().partial_fit(X, [0, 1] * 4, classes=[0, 1, 2])
    assert model.classes_.tolist() == [0, 1, 2]
    shares = model.predict_proba(X)
    assert shares.shape == (8, 3)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert np.all(shares[:, 2] < shares[:, :2].max(axis=1))
