"""A fleet answers for each of its streams what an estimator of its own would."""

import numpy as np
import pytest

from filtax.estimators import Classifier, Fleet, Regressor


def test_probabilities_are_those_of_separate_classifiers():
    rng = np.random.default_rng(11)
    fleet, alone = Fleet(Classifier(capacity=4)), {key: Classifier(capacity=4) for key in "ab"}
    assert fleet.predict_proba_one("never met", {"x": 1.0}) == {}
    for _ in range(30):
        x = {"x": rng.normal()}
        for key, sign in (("a", 1.0), ("b", -1.0)):
            label = "up" if sign * x["x"] + 0.5 * rng.normal() > 0.0 else "down"
            fleet.learn_one(key, x, label)
            alone[key].learn_one(x, label)
    for key, model in alone.items():
        found = fleet.predict_proba_one(key, {"x": 0.7})
        assert found == model.predict_proba_one({"x": 0.7})
        assert max(found, key=lambda label: found[label]) == {"a": "up", "b": "down"}[key]
    with pytest.raises(ValueError, match=r"predict_interval_one: these are streams of a Classifier"):
        fleet.predict_interval_one("a", {"x": 0.7})


def test_intervals_are_those_of_separate_regressors():
    rng = np.random.default_rng(12)
    fleet, alone = Fleet(Regressor(capacity=4)), {key: Regressor(capacity=4) for key in "ab"}
    for _ in range(30):
        x = {"x": rng.normal()}
        for key, slope in (("a", 2.0), ("b", -5.0)):
            y = slope * x["x"] + rng.normal()
            fleet.learn_one(key, x, y)
            alone[key].learn_one(x, y)
    for key, model in alone.items():
        assert fleet.predict_interval_one(key, {"x": 0.7}) == model.predict_interval_one({"x": 0.7})
        assert fleet.predict_interval_one(key, {"x": 0.7}, 0.5) == model.predict_interval_one({"x": 0.7}, 0.5)
    with pytest.raises(ValueError, match=r"predict_proba_one: these are streams of a Regressor"):
        fleet.predict_proba_one("a", {"x": 0.7})


@pytest.mark.parametrize("estimator", [Regressor(), Classifier()])
def test_an_id_is_refused_as_a_fleet_would_lose_it(estimator):
    fleet = Fleet(estimator)
    fleet.learn_one("a", {"x": 1.0}, 2)
    with pytest.raises(ValueError, match=r"predict_one\(id='late'\): .* learn x and y together .* of one's own"):
        fleet.predict_one("a", {"x": 1.0}, id="late")
    assert fleet.predict_one("a", {"x": 1.0}, id=None) == fleet.predict_one("a", {"x": 1.0})


def test_a_round_that_is_refused_leaves_no_trace():
    """Of its first events neither: their labels and features were once known without having been learned."""
    fleet = Fleet(Classifier(classes=3))
    fleet.learn_many(["p", "r"], [{"a": 1.0}] * 2, ["x", "x"])
    for label in "cde":
        for wrong in (None, {"a": [1.0]}):
            with pytest.raises((TypeError, ValueError)):
                fleet.learn_many(["p", "q"], [{"a": 1.0, label: 2.0}, wrong], [label, "x"])
    assert fleet.keys() == ["p", "r"]
    fleet.learn_many(["p", "r"], [{"a": 2.0}] * 2, ["y", "y"])
    assert fleet.predict_proba_one("p", {"a": 1.0}) == fleet.predict_proba_one("r", {"a": 1.0})
    assert fleet.member("p")._table.slot == fleet.member("r")._table.slot


def test_what_becomes_of_the_estimator_that_was_given_does_not_matter():
    given = Regressor(false_alarms=0.01)
    fleet = Fleet(given)
    fleet.learn_one("a", {"x": 1.0}, 2.0)
    given.set_params(false_alarms=0.5)
    fleet.learn_one("b", {"x": 1.0}, 2.0)
    assert [fleet.member(key).false_alarms for key in "ab"] == [0.01, 0.01]


@pytest.mark.parametrize("key", [("a", [1]), float("nan")])
def test_what_cannot_be_found_again_is_no_key(key):
    fleet = Fleet(Regressor())
    for call in (lambda: fleet.learn_one(key, {"x": 1.0}, 2.0), lambda: fleet.predict_one(key, {"x": 1.0})):
        with pytest.raises(ValueError, match="cannot be a key; keys come first, and are texts, numbers or the like"):
            call()
    with pytest.raises(ValueError, match=r"learn_many: X is 1\.0; give a row for each key, or use learn_one"):
        fleet.learn_many(["a"], 1.0, [2.0])


@pytest.mark.parametrize("label", [[1], ("a", [1]), {"a": 1}])
def test_what_cannot_be_a_label_is_refused_before_it_is_one(label):
    model = Classifier()
    for at in range(10):
        model.learn_one({"a": float(at)}, "ab"[at % 2])
    before = model.predict_proba_one({"a": 1.0})
    with pytest.raises(ValueError, match="y must be a label, got"):
        model.learn_one({"a": 1.0}, label)
    assert model.predict_proba_one({"a": 1.0}) == before
