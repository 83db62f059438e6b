"""Classifiers: against a logistic filter run by hand, and as if all classes had been there from the start."""

import jax.numpy as jnp
import numpy as np
import pytest

import filtax as fx
from filtax.estimators import Classifier


def taught(model, rows, y):
    for x, target in zip(rows, y, strict=True):
        model.learn_one(x, target)
    return model


def test_two_classes_are_one_logistic_filter():
    """Categories have no units, so that the rows can be written down: bias first, then the slots."""
    method = fx.method("LG+C-Static", model=fx.models.linear(likelihood=fx.models.bernoulli()))
    rng = np.random.default_rng(4)
    words, labels = rng.choice(["u", "v"], size=30).tolist(), (rng.random(30) < 0.6).tolist()
    words[:2], labels[:2] = ["u", "v"], [False, True]
    X = np.array([[1.0, word == "u", word == "v", 0.0] for word in words], float)
    state = method.init(mean=jnp.zeros(4), cov=4.0)
    state, _ = method.scan(state, X, np.asarray(labels, float), keep=())
    want = float(method.predict(state, X[0]).mean)
    model = taught(Classifier(method="LG+C-Static", prior=4.0, false_alarms=1e-9), [{"w": w} for w in words], labels)
    seen = model.predict_proba_one({"w": "u"})
    np.testing.assert_allclose([seen[True], seen[False]], [want, 1.0 - want], rtol=1e-9)


def test_a_class_may_appear_at_any_time():
    """The fifth class makes the heads double: it is as if they had been there."""
    rng = np.random.default_rng(2)
    labels = [t // 12 if t % 12 == 0 else int(rng.integers(0, t // 12 + 1)) for t in range(60)]
    quick = {"method": "LG+C-Static", "capacity": 3}
    rows = [{"a": 3.0 * label + 0.3 * rng.normal(), "b": rng.normal()} for label in labels]
    model, roomy = Classifier(**quick), Classifier(**quick)
    roomy._heads = lambda: 8
    taught(model, rows, labels)
    taught(roomy, rows, labels)
    assert model._size == roomy._size == (3, 8)
    seen, want = model.predict_proba_one(rows[-1]), roomy.predict_proba_one(rows[-1])
    assert sorted(seen) == [0, 1, 2, 3, 4]
    np.testing.assert_allclose(list(seen.values()), list(want.values()), rtol=1e-9)
    assert model.predict_one({"a": 12.0, "b": 0.0}) == 4


QUICK = {"method": "LG+C-Static"}


def test_labels_that_python_cannot_tell_apart_are_refused():
    model = taught(Classifier(**QUICK), [{"a": 0.0}, {"a": 1.0}], [1, 0])
    model.learn_one({"a": 1.0}, 1.0)  # one number, however it is written
    before = model._vector.copy()
    with pytest.raises(ValueError, match="the label True came after 1, and to Python the two are equal"):
        model.learn_one({"a": 1.0}, True)
    np.testing.assert_array_equal(model._vector, before)
    with pytest.warns(UserWarning, match="the label '1' came after 1: they are two classes"):
        model.learn_one({"a": 1.0}, "1")
    assert model.classes_.tolist() == ["1", 0, 1]
    assert model.classes_.dtype == object
    assert set(model.predict_proba_one({"a": 1.0})) == {0, 1, "1"}
    with pytest.raises(ValueError, match="mixes texts and other labels"):
        Classifier(**QUICK).fit([[0.0], [1.0]], [1, "1"])


def test_a_forecast_of_labels_is_a_distribution():
    model = Classifier(**QUICK)
    unmet = model.predict_one({"a": 1.0}, with_dist=True)
    assert (unmet.mode, unmet.prob("x"), unmet.entropy) == (None, 0.0, 0.0)
    taught(model, [{"a": float(t % 2)} for t in range(20)], ["even", "odd"] * 10)
    law = model.predict_one({"a": 1.0}, with_dist=True, id=3)
    assert law.probabilities == model.predict_proba_one({"a": 1.0})
    assert law.mode == model.predict_one({"a": 1.0}) == "odd"
    assert law.log_prob("odd") == np.log(law.prob("odd"))
    assert law.log_prob("none") == -np.inf
    np.testing.assert_allclose(law.entropy, -sum(p * np.log(p) for p in law.probabilities.values()))
    assert "odd" in repr(law)
    assert model.late_["waiting"] == 1


def test_what_pandas_calls_missing_is_missing():
    """Columns and labels of pandas' own types: one by one, in one piece, and as numbers with NaN; the same bits."""
    import pandas as pd

    columns = {"w": pd.array([None, 1, 2, None, 5], "Int64"), "b": pd.array([True, None, False, True, True], "boolean")}
    frame = pd.DataFrame({**columns, "z": np.arange(5.0)})
    y = pd.Series(["u", "v", pd.NA, "u", "v"], dtype="string")
    many, one, plain = (Classifier(**QUICK) for _ in range(3))
    many.learn_many(frame, y)
    for x, label in zip(frame.to_dict("records"), y, strict=True):
        one.learn_one(x, label)
    plain.learn_many(frame.astype("float64"), ["u", "v", None, "u", "v"])
    np.testing.assert_array_equal(many._vector, one._vector)
    np.testing.assert_array_equal(many._vector, plain._vector)
    one.learn_one({"w": pd.NA, "z": pd.NaT}, pd.NA)
    assert one.alarm_ == "missing"
    with pytest.raises(ValueError, match="Input X contains NaN"):
        many.partial_fit(frame, ["u"] * 5)
