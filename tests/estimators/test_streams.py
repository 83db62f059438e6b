"""Regressors on streams: against least squares, and under everything a stream may do."""

import copy
import math
import pickle
import sys
import threading

import jax
import numpy as np
import pytest

from filtax import io as store
from filtax.estimators import Classifier, Fleet, Regressor, load, save

STATIC = "NIG(shape=2)+C-Static"


def stream(length, seed=0, noise=0.1):
    rng = np.random.default_rng(seed)
    X = rng.normal([5.0, -300.0], [2.0, 40.0], size=(length, 2))
    y = 7.0 + 3.0 * X[:, 0] - 0.1 * X[:, 1] + noise * rng.normal(size=length)
    return [{"a": a, "b": b} for a, b in X.tolist()], y


def taught(model, rows, y):
    for x, target in zip(rows, y, strict=True):
        model.learn_one(x, target)
    return model


@pytest.fixture(scope="module")
def regressor():
    return taught(Regressor(), *stream(60))


def twin(model):
    return copy.deepcopy(model)


def test_with_a_vague_prior_it_is_least_squares():
    """The units that move all the time do not show: an outside answer in raw numbers."""
    rows, y = stream(40, noise=2.0)
    model = taught(Regressor(method=STATIC, prior=1e9, false_alarms=1e-12), rows, y)
    A = np.array([[1.0, row["a"], row["b"]] for row in rows])
    want = np.linalg.lstsq(A, y, rcond=None)[0]
    for x in ({"a": 1.0, "b": -280.0}, {"a": 9.0, "b": -400.0}):
        np.testing.assert_allclose(model.predict_one(x), want @ [1.0, x["a"], x["b"]], rtol=1e-6)


def test_an_outlier_is_told_of_and_does_not_matter(regressor):
    model, x = twin(regressor), {"a": 5.0, "b": -300.0}
    before = model.predict_one(x)
    model.learn_one(x, 1e9)
    assert (model.alarm_, model.trust_) == ("outlier", 0.0)
    assert math.isclose(model.predict_one(x), before, rel_tol=1e-3)
    model.learn_one(x, math.inf)
    assert model.alarm_ == "outlier"
    model.learn_one(x, before)
    assert model.alarm_ is None
    assert model.trust_ > 0.9


def test_what_is_missing_is_told_of_and_does_not_matter(regressor):
    model, x = twin(regressor), {"a": 5.0, "b": -300.0}
    before = model.predict_one(x)
    for y in (None, math.nan):
        model.learn_one(x, y)
        assert model.alarm_ == "missing"
    assert math.isclose(model.predict_one(x), before, rel_tol=1e-3)
    model.learn_one({"a": None, "b": math.nan}, before)  # features may be missing as well
    assert math.isfinite(model.predict_one({}))


def test_a_change_is_told_of_and_followed(regressor):
    model = twin(regressor)
    rows, y = stream(40, seed=3)
    told = []
    for x, target in zip(rows, 100.0 - 2.0 * y, strict=True):
        model.learn_one(x, target)
        told.append(model.alarm_)
    assert told.index("change") <= 4
    assert told.count("change") == 1
    assert model.runlength_ >= 34
    errors = [abs(model.predict_one(x) - (100.0 - 2.0 * target)) for x, target in zip(rows, y, strict=True)]
    assert np.median(errors) < 1.0


def test_false_alarms_are_as_rare_as_chosen():
    """5120 good data at a rate of 1 %: outliers within a 99.9 % binomial band, changes at most as often as promised."""
    model = Regressor(method=STATIC, false_alarms=0.01)
    rows, y = stream(5120, seed=8, noise=7.0)
    model._begin()
    X = np.array([[row["a"], row["b"]] for row in rows])
    keys = model._table.columns(["a", "b"])
    model._table.admit(keys)
    model._make_room()
    _, told = model._engine().learn(model._vector, model._extended(model._rows(keys, X), model._targets(y.tolist())))
    tail, alarm = told[:, 2], told[:, 6]
    assert 30 <= (tail < 0.01).sum() <= 76
    assert (alarm == 2).sum() <= 51
    np.testing.assert_array_equal(alarm == 1, (tail < 0.01) & (alarm != 2))


def test_forecasts_are_calibrated():
    model, rows, y = taught(Regressor(), *stream(60, noise=2.0)), *stream(100, seed=9, noise=2.0)
    inside = 0
    for x, target in zip(rows, y, strict=True):
        low, high = model.predict_interval_one(x)
        inside += low <= target <= high
        model.learn_one(x, target)
    assert 80 <= inside <= 98  # 99.9 % of the time, if the level 0.9 is meant
    law = model.predict_one(rows[0], with_dist=True)
    assert law.interval(0.9, model._engine().stretch(model._vector)) == model.predict_interval_one(rows[0])
    assert math.isclose(law.mean, model.predict_one(rows[0]))
    assert math.isclose(law.cdf(law.interval(0.5)[0]), 0.25, abs_tol=1e-9)
    assert math.isclose(law.sigma, law.var**0.5)


def test_predicting_changes_nothing(regressor):
    model = twin(regressor)
    before = model._vector.copy(), dict(model._table.slot)
    x = {"a": 1.0, "new": 2.0, "word": "text"}
    for _ in range(3):
        model.predict_one(x)
        model.predict_interval_one(x)
        model.predict_one(x, with_dist=True)
    np.testing.assert_array_equal(model._vector, before[0])
    assert model._table.slot == before[1]


def test_learn_many_is_learn_one():
    """Bit for bit, over a chunk that is compiled as a loop, with a column that appears and gaps."""
    import pandas as pd

    rows, y = stream(300, seed=5)
    frame = pd.DataFrame(rows)
    frame.loc[:100, "a"] = np.nan
    frame.loc[150:, "0"] = 1.5
    frame.loc[::7, "b"] = np.nan
    y[50] = np.nan
    one, many = Regressor(), Regressor()
    many.learn_many(frame, y)
    for x, target in zip(frame.to_dict("records"), y, strict=True):
        one.learn_one(x, target)
    np.testing.assert_array_equal(one._vector, many._vector)
    assert one._table.slot == many._table.slot
    assert [name for _, name in many._table.slot] == ["b", "a", "0"]


def test_an_estimator_of_when_slots_doubled_makes_room_and_keeps_what_was_learned():
    """Its names find what was learned, as if all slots had been there from the start."""
    rows, y = stream(30, seed=6)
    late = [{**row, "d1": 0.1 * t, "d2": "x"} for t, row in enumerate(rows)]
    old, now = Regressor(method=STATIC), Regressor(method=STATIC)
    old._begin()
    old._table.room, old._table.capacity = 3, 255
    taught(old, rows, y)
    taught(now, rows, y)
    assert (old._size, now._size) == ((3, 0), (31, 0))
    taught(old, late, y)
    taught(now, late, y)
    assert old._size == (7, 0)
    np.testing.assert_allclose(old.predict_one(late[3]), now.predict_one(late[3]), rtol=1e-9)


def test_a_feature_that_is_absurd_once_is_of_use_all_the_same():
    """Before, the errors were nearly five times as large: the unit of the slot was that of the absurd number."""
    (rows, y), errors = stream(80, noise=1.0), []
    for absurd in (False, True):
        model, given = Regressor(), [dict(x) for x in rows]
        given[10]["a"] = 1e8 if absurd else given[10]["a"]
        taught(model, given[:55], y[:55])
        errors.append([model.predict_one(x) - v for x, v in zip(rows[55:], y[55:], strict=True)])
    clean, got = np.linalg.norm(errors, axis=1)
    assert got < 1.5 * clean


def test_a_missing_y_lets_time_pass_and_teaches_nothing(regressor):
    """A method that does not forget forecasts as before; the usual one is nearer to its prior by its hazard."""
    x, (rows, y) = {"a": 9.0, "b": -250.0}, stream(60)
    usual, static = twin(regressor), taught(Regressor(method=STATIC), rows, y)
    before = usual.predict_one(x), static.predict_one(x)
    for model in (usual, static):
        for each in rows[:5]:
            model.learn_one(each, None)
            assert model.alarm_ == "missing"
    np.testing.assert_allclose(static.predict_one(x), before[1], rtol=1e-13)
    away = (usual.predict_one(x) - y.mean()) / (before[0] - y.mean())
    np.testing.assert_allclose(away, (1.0 - 0.0003) ** 5, rtol=1e-6)


def test_labels_may_come_late(regressor):
    prompt, late = twin(regressor), twin(regressor)
    rows, y = stream(10, seed=7)
    forecasts = [late.predict_one(x, id=t) for t, x in enumerate(rows)]
    assert late.late_["waiting"] == 10
    for t, (x, target) in enumerate(zip(rows, y, strict=True)):
        late.learn_one(None, target, id=t)
        prompt.learn_one(x, target)
    assert forecasts[0] == regressor.predict_one(rows[0])
    np.testing.assert_array_equal(prompt._vector, late._vector)
    late.learn_one(None, 1.0, id=0)  # a second label for the same id
    late.learn_one(None, 1.0, id="never")
    assert late.late_ == {"waiting": 0, "given_up": 0, "unknown": 2}
    np.testing.assert_array_equal(prompt._vector, late._vector)
    with pytest.raises(ValueError, match="give the features x, or the id"):
        late.learn_one(None, 1.0)


def test_an_estimator_that_is_resumed_goes_on_bit_for_bit(tmp_path, regressor):
    model = twin(regressor)
    model.predict_one({"a": 2.0, "b": -250.0}, id="waits")
    save(tmp_path, model, source={"row": 60})
    again, manifest = load(tmp_path)
    for one in (model, again):
        one.learn_one(None, 30.0, id="waits")
        taught(one, *stream(5, seed=11))
    np.testing.assert_array_equal(model._vector, again._vector)
    assert manifest["source"] == {"row": 60}
    assert repr(again) == repr(model)
    assert again._table.capacity == model._table.capacity == 31
    (tmp_path / "000001.safetensors").write_bytes(b"")
    with pytest.raises(store.Damaged, match="cut short"):
        load(tmp_path)
    store.save(tmp_path / "other", {"a": 1}, note="text")
    with pytest.raises(store.Foreign, match="holds no estimator"):
        load(tmp_path / "other")
    with pytest.raises(ValueError, match="cannot be stored"):
        save(tmp_path, taught(Regressor(), [{("a", 1): 1.0}], [1.0]))


def test_a_fleet_is_separate_estimators():
    """Ragged arrivals, new keys, a key that rests, features that appear, an outlier: the same bits."""
    rng = np.random.default_rng(3)
    fleet, alone = Fleet(Regressor(method=STATIC), capacity=5), {}
    for t in range(40):
        keys = [f"k{i}" for i in rng.integers(0, 4 if t < 20 else 5, size=rng.integers(1, 7))]
        keys = [key for key in keys if key != "k1" or t < 10]
        rows = [{"a": rng.normal(), **({"c": "u"} if key == "k2" and t > 30 else {})} for key in keys]
        y = [2.0 * row["a"] + int(key[1]) + (1e6 if t == 25 else 0.0) for key, row in zip(keys, rows, strict=True)]
        fleet.learn_many(keys, rows, y)
        for key, row, target in zip(keys, rows, y, strict=True):
            alone.setdefault(key, Regressor(method=STATIC)).learn_one(row, target)
    assert sorted(fleet.keys()) == sorted(alone)
    for key, model in alone.items():
        np.testing.assert_array_equal(fleet.member(key)._vector, model._vector)
        assert fleet.predict_one(key, {"a": 1.0}) == model.predict_one({"a": 1.0})
    assert fleet.idle(30)[0] == "k1"
    with pytest.raises(ValueError, match="no room for the key 'new'"):
        fleet.learn_one("new", {"a": 1.0}, 1.0)
    fleet.drop("k1")
    fleet.learn_one("new", {"a": 1.0}, 1.0)
    assert "new" in fleet
    assert "k1" not in fleet
    assert len(fleet) == 5
    for key in ("k2", "k0"):
        fleet.learn_one(key, {"a": 1.0}, 1.0)
    assert fleet.idle(0)[-3:] == ["new", "k2", "k0"]  # the longest resting first
    assert fleet.idle(2)[-1] == "new"
    assert "new" not in fleet.idle(3)


def test_float32_elsewhere_does_not_matter(regressor):
    with jax.enable_x64(False):
        model = twin(regressor)
        taught(model, *stream(3, seed=12))
    other = taught(twin(regressor), *stream(3, seed=12))
    np.testing.assert_array_equal(model._vector, other._vector)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "LG+RL[inf]-PR(hazard=0.1)"}, r"RL\[K\]"),
        ({"method": "EnKF(size=9)+C-Static"}, "draws at random"),
        ({"method": "CPV(memory=3)-Sub"}, "remembers data as they came"),
        ({"method": "OGD(rate=0.1)+C-Static"}, "remembers data as they came"),
        ({"method": 3}, "must be a name"),
        ({"false_alarms": 0.0}, "false_alarms"),
        ({"capacity": 2}, "capacity"),
        ({"prior": -1.0}, "prior"),
        ({"pending": -1}, "pending"),
    ],
)
def test_odd_settings_are_refused_at_the_first_datum(settings, message):
    with pytest.raises(ValueError, match=message):
        Regressor(**settings).learn_one({"a": 1.0}, 2.0)


def test_odd_targets_are_refused(regressor):
    with pytest.raises(ValueError, match="give a number, or None"):
        twin(regressor).learn_one({"a": 1.0}, "high")
    with pytest.raises(AttributeError, match="nothing was learned yet"):
        _ = Regressor().alarm_


@pytest.mark.parametrize("kind", [Regressor, Classifier])
def test_threads_may_share_an_estimator(kind):
    """A datum was lost where two learned at once, or a bare AssertionError came; copies have locks of their own."""
    model, failed = kind(method="LG+C-Static"), []

    def learn(seed):
        try:
            for t, a in enumerate(np.random.default_rng(seed).normal(size=25).tolist()):
                model.learn_one({"a": a, "t": float(t)}, round(abs(a)))
                model.predict_one({"a": a})
        except Exception as problem:
            failed.append(problem)

    often = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=learn, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(often)
    assert not failed
    for one in (model, copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert one._engine().layout.unpack(one._vector).inputs.count.max() == 100.0
        one.learn_one({"a": 1.0}, 1)
