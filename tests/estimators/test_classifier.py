"""Classifiers: against a logistic filter run by hand, and as if all classes had been there from the start."""

import jax.numpy as jnp
import numpy as np

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
    quick = {"method": "LG+C-Static"}
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
