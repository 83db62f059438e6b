"""A fleet is separate estimators, and what is saved goes on bit for bit."""

import logging

import jax
import numpy as np
import pandas as pd
import pytest

from filtax import io
from filtax.estimators import Classifier, Fleet, Regressor, load, save


def events(length, seed=3):
    """Ragged arrivals of keys that appear over time, a feature and a text that one of them gets late."""
    rng = np.random.default_rng(seed)
    for t in range(length):
        key = ("a", 2, "c", 4.5)[int(rng.integers(0, 2 + t // (length // 3)))]
        x = {"x": rng.normal(), **({"late": 1.0, "c": "u"} if key == "a" and t > length // 2 else {})}
        yield key, x, 2.0 * x["x"] + 0.1 * rng.normal()


def target(kind, y):
    return y if kind is Regressor else "low" if y < 0.0 else "high"


@pytest.mark.parametrize("kind", [Regressor, Classifier])
def test_each_member_is_an_estimator_of_its_own(kind):
    one, many, alone = Fleet(kind(capacity=7)), Fleet(kind(capacity=7)), {}
    found = [(key, x, target(kind, y)) for key, x, y in events(400)]
    for key, x, y in found:
        one.learn_one(key, x, y)
        alone.setdefault(key, kind(capacity=7)).learn_one(x, y)
    for start in range(0, 400, 90):
        keys, X, y = zip(*found[start : start + 90], strict=True)
        many.learn_many(keys, X, y)
    for key, model in alone.items():
        for fleet in (one, many):
            assert fleet.predict_one(key, {"x": 1.0}) == model.predict_one({"x": 1.0})
            assert fleet.member(key).runlength_ == model.runlength_
    if kind is Regressor:
        assert one.predict_interval_one("a", {"x": 1.0}, 0.5) == alone["a"].predict_interval_one({"x": 1.0}, 0.5)
    else:
        assert one.predict_proba_one("a", {"x": 1.0}) == alone["a"].predict_proba_one({"x": 1.0})
        assert one.predict_proba_one("never met", {"x": 1.0}) == {}


def test_a_table_is_split_by_keys():
    rng = np.random.default_rng(0)
    keys, X, y = rng.integers(0, 3, size=120), rng.normal(size=(120, 2)), rng.normal(size=120)
    keys[5] = 9
    fleet = Fleet(Regressor())
    fleet.learn_many(pd.Series(keys), pd.DataFrame(X, columns=["u", "v"]), y)
    assert fleet.keys() == list(dict.fromkeys(keys.tolist()))
    for key in fleet.keys():
        alone = Regressor()
        for x, value in zip(X[keys == key].tolist(), y[keys == key], strict=True):
            alone.learn_one(dict(zip("uv", x, strict=True)), value)
        assert fleet.predict_one(key, {"u": 1.0, "v": 2.0}) == alone.predict_one({"u": 1.0, "v": 2.0})


def test_keys_come_rest_and_go():
    fleet = Fleet(Regressor(), capacity=3)
    fleet.learn_many(["a", "b", "c"], [{"x": 1.0}] * 3, [1.0] * 3)
    with pytest.raises(ValueError, match="no room for the key 'd'"):
        fleet.learn_one("d", {"x": 1.0}, 1.0)
    fleet.learn_one("a", {"x": 1.0}, 1.0)
    assert (fleet.idle(1), fleet.idle(2)) == (["b", "c"], ["b"])
    assert fleet.drop("b").predict_one({"x": 1.0}) > 0.9
    assert "b" not in fleet
    fleet.predict_one("d", {"x": 1.0}, id=7)
    fleet.learn_one("d", None, 5.0, id=7)
    assert (len(fleet), fleet.member("d").late_["waiting"]) == (3, 0)
    assert fleet.predict_one("d", {"x": 1.0}) > 4.9
    for key in (("a", [1]), float("nan")):
        with pytest.raises(ValueError, match="cannot be a key"):
            fleet.learn_one(key, {"x": 1.0}, 2.0)
    with pytest.raises(ValueError, match=r"2 keys and 1 rows|inconsistent numbers"):
        fleet.learn_many(["a", "c"], [{"x": 1.0}], [1.0, 2.0])
    with pytest.raises(ValueError, match="there is no such key"):
        fleet.drop("b")
    with pytest.raises(ValueError, match="must be a Regressor, Classifier or Segmenter"):
        Fleet(object())


def test_a_new_key_compiles_nothing(caplog):
    fleet, (rows, y) = Fleet(Regressor()), zip(*[(x, y) for _, x, y in events(150, seed=1)], strict=True)
    for key in "abc":
        with jax.log_compiles(key != "a"), caplog.at_level(logging.WARNING):
            for t in range(150):
                fleet.predict_one(key, {"x": rows[t]["x"]})
                fleet.learn_one(key, {"x": rows[t]["x"]}, y[t])
    assert fleet.member("c").alarm_ is None
    assert [record.getMessage()[:60] for record in caplog.records if "ompiling" in record.getMessage()] == []


def test_what_becomes_of_the_estimator_that_was_given_does_not_matter():
    given = Regressor(false_alarms=0.01)
    fleet = Fleet(given)
    given.set_params(false_alarms=0.5)
    fleet.learn_one("b", {"x": 1.0}, 2.0)
    assert fleet.member("b").false_alarms == 0.01


@pytest.mark.parametrize("kind", [Regressor, Classifier])
@pytest.mark.parametrize("cut", [0, 30, 250])
def test_an_estimator_that_is_resumed_goes_on_bit_for_bit(kind, cut, tmp_path):
    whole, model = kind(false_alarms=0.01, capacity=7), kind(false_alarms=0.01, capacity=7)
    found = [(x, target(kind, y)) for _, x, y in events(300)]
    for x, y in found:
        whole.learn_one(x, y)
    for x, y in found[:cut]:
        model.learn_one(x, y)
    model.predict_one({"x": 2.0}, id="waits")
    save(tmp_path, model, source={"row": cut})
    again, manifest = load(tmp_path)
    assert manifest["source"] == {"row": cut}
    assert again.get_params() == model.get_params()
    assert again.late_ == model.late_
    for x, y in found[cut:]:
        again.learn_one(x, y)
    rows = [x for x, _ in found]
    assert again.predict_many(rows).tolist() == whole.predict_many(rows).tolist()
    assert (again.alarm_, again.runlength_, again.change_probability_) == (
        whole.alarm_,
        whole.runlength_,
        whole.change_probability_,
    )


@pytest.mark.parametrize("kind", [Regressor, Classifier])
def test_a_fleet_that_is_resumed_goes_on_bit_for_bit(kind, tmp_path):
    whole, fleet = (Fleet(kind(capacity=7), capacity=50) for _ in range(2))
    found = [(key, x, target(kind, y)) for key, x, y in events(400)]
    for key, x, y in found:
        whole.learn_one(key, x, y)
    for key, x, y in found[:220]:
        fleet.learn_one(key, x, y)
    for key in range(10, 40):
        for each in (fleet, whole):
            each.learn_one(key, {"x": 1.0}, target(kind, 1.0))
    save(tmp_path, fleet)
    again, _ = load(tmp_path)
    assert again.keys() == fleet.keys()
    assert (again.capacity, again.idle(5), len(again)) == (50, fleet.idle(5), len(fleet))
    for key, x, y in found[220:]:
        again.learn_one(key, x, y)
    for key in fleet.keys():
        assert again.predict_one(key, {"x": 0.3}) == whole.predict_one(key, {"x": 0.3})


def test_what_cannot_be_kept_or_is_something_else_is_refused(tmp_path):
    fleet = Fleet(Regressor())
    fleet.learn_one(("a", 1), {"x": 1.0}, 1.0)
    model = Regressor()
    model.learn_one({("a", 1): 1.0}, 1.0)
    for each in (fleet, model):
        with pytest.raises(ValueError, match="cannot be stored"):
            save(tmp_path, each)
    with pytest.raises(ValueError, match="must be one of"):
        save(tmp_path, object())
    io.save(tmp_path, {"a": 1}, note={"kind": "os.system"})
    with pytest.raises(io.Foreign, match="no estimator"):
        load(tmp_path)
