"""Segmenter and Fleet on disk: what is loaded goes on as what was saved, bit for bit, wherever it was cut."""

import math

import numpy as np
import pytest

from filtax import io as store
from filtax.estimators import Classifier, Fleet, Regressor, Segmenter, load, save

RNG = np.random.default_rng(0)
READINGS = RNG.normal(size=(90, 2)) + np.where(np.arange(90) < 50, 0.0, 6.0)[:, None]
READINGS[[3, 40]] = np.nan


def read(model, rows):
    told = []
    for a, b in rows.tolist():
        model.learn_one({"a": a, "b": b})
        told.append((model.alarm_, model.change_probability_, model.runlength_, model.predict_one()))
    return told


@pytest.mark.parametrize("cut", [0, 7, 30, 51, 60])
def test_a_segmenter_goes_on_bit_for_bit(cut, tmp_path):
    """Before the first reading, while its unit is not known, right after, in doubt, and behind a change."""
    settings = {"warmup": 20, "keep": 10, "least": 3}
    whole, model = Segmenter(**settings), Segmenter(**settings)
    want = read(whole, READINGS)
    read(model, READINGS[:cut])
    save(tmp_path, model, source={"row": cut})
    again, manifest = load(tmp_path)
    assert manifest["source"] == {"row": cut}
    assert again.get_params() == model.get_params()
    assert read(again, READINGS[cut:]) == want[cut:]
    assert again.changes_ == whole.changes_
    assert again.changes_[0] in range(48, 53)
    assert again.t_ == 90


def test_a_segmenter_of_arrays_keeps_their_names(tmp_path):
    model = Segmenter(warmup=20, keep=10).fit(READINGS[4:40])
    save(tmp_path, model)
    again, _ = load(tmp_path)
    assert again.n_features_in_ == 2
    with pytest.raises(ValueError, match="3 features"):
        again.partial_fit(np.zeros((1, 3)))
    assert math.isclose(again.change_probability_, model.change_probability_, rel_tol=0.0)


def events(start, stop):
    """Ragged arrivals of keys that appear over time, with a feature that one of them gets late."""
    for t in range(start, stop):
        key = ("a", 2, True)[t % 3 if t < 40 else t % 2]
        x = {"x" if key == "a" else "z": math.sin(t), **({"late": 1.0 * (t % 5)} if t > 25 and key == "a" else {})}
        yield key, x, 2.0 * math.sin(t) + 0.1 * (t % 7)


@pytest.mark.parametrize("kind", [Regressor, pytest.param(Classifier, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("cut", [30])
def test_a_fleet_goes_on_bit_for_bit(kind, cut, tmp_path):
    aim = (lambda y: y) if kind is Regressor else (lambda y: "low" if y < 0.0 else "high")
    whole, fleet = Fleet(kind(), capacity=5), Fleet(kind(), capacity=5)
    for key, x, y in events(0, 60):
        whole.learn_one(key, x, aim(y))
    for key, x, y in events(0, cut):
        fleet.learn_one(key, x, aim(y))
    save(tmp_path, fleet)
    again, _ = load(tmp_path)
    assert again.keys() == fleet.keys()
    for key, x, y in events(cut, 60):
        again.learn_one(key, x, aim(y))
    assert (again.capacity, again.idle(5), len(again)) == (5, whole.idle(5), len(whole))
    how = "predict_one" if kind is Regressor else "predict_proba_one"
    for key in whole.keys():
        mine, theirs = (getattr(each.member(key), how)({"x": 0.3, "z": 0.2, "late": 2.0}) for each in (again, whole))
        assert mine == theirs
    with pytest.raises(ValueError, match="no room"):
        again.learn_many(["p", "q", "r"], [{}] * 3, [aim(1.0)] * 3)


def test_streams_that_are_alike_are_told_of_once(tmp_path):
    """The manifest of a fleet does not grow by the names of features for each key."""
    sizes = []
    for name in ("x", "x" * 1000):
        fleet = Fleet(Regressor())
        for key in range(20):
            fleet.learn_one(key, {name: 1.0}, 1.0)
        save(tmp_path / name[:9], fleet)
        sizes.append((tmp_path / name[:9] / "000001.json").stat().st_size)
        assert load(tmp_path / name[:9])[0].keys() == list(range(20))
    assert sizes[1] - sizes[0] < 1100


def test_what_cannot_be_kept_or_is_something_else_is_refused(tmp_path):
    fleet = Fleet(Regressor())
    fleet.learn_one(("a", 1), {"x": 1.0}, 1.0)
    with pytest.raises(ValueError, match="cannot be stored"):
        save(tmp_path, fleet)
    with pytest.raises(ValueError, match="must be one of"):
        save(tmp_path, object())
    store.save(tmp_path, {"a": 1}, note={"kind": "os.system"})
    with pytest.raises(store.Foreign, match="no estimator"):
        load(tmp_path)
