"""The manners of river and of scikit-learn, by their own checks.

Every day with a method that compiles quickly; at night with the defaults.
"""

import warnings

import numpy as np
import pytest
import river.base
import river.compose
from river.checks import yield_checks
from sklearn.base import clone as sklearn_clone
from sklearn.utils.estimator_checks import estimator_checks_generator

from filtax.estimators import Classifier, Regressor, Segmenter

QUICK = {"method": "LG+C-Static"}
SLOW = ("check_bounded_memory_growth",)


def river_checks(model, left_out=()):
    done = []
    for check in yield_checks(model):
        if check.__name__ not in left_out:
            check(model.clone())
            done.append(check.__name__)
    return done


def sklearn_checks(model):
    """Run all; an array interface that is switched off here is the one thing scikit-learn itself skips."""
    done, failed = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says that the estimator is none of its own
        checks = list(estimator_checks_generator(model, mark=None))
    for estimator, check in checks:
        name = getattr(check, "func", check).__name__
        if name == "check_array_api_input":
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                check(estimator)
                done.append(name)
            except Exception as problem:
                failed.append((name, repr(problem)[:300]))
    assert not failed
    return done


def test_river_regressor():
    done = river_checks(Regressor(**QUICK))
    assert {"check_learn_many_matches_learn_one", "check_pickling", "check_shuffle_features_no_impact"} <= set(done)


@pytest.mark.nightly
def test_river_classifier():
    done = river_checks(Classifier(**QUICK), SLOW)
    assert {"check_predict_proba_one", "check_classifier_tracks_seen_labels"} <= set(done)


def test_sklearn_regressor():
    assert len(sklearn_checks(Regressor(**QUICK))) >= 45


@pytest.mark.nightly
def test_sklearn_classifier():
    assert len(sklearn_checks(Classifier(**QUICK))) >= 45


@pytest.mark.nightly
@pytest.mark.parametrize("kind", [Regressor, Classifier])
def test_defaults_have_manners_too(kind):
    river_checks(kind())
    sklearn_checks(kind())


@pytest.mark.nightly
def test_sklearn_segmenter():
    sklearn_checks(Segmenter(keep=20))


def test_pipelines_of_river_take_it():
    model = river.compose.Select("a") | Regressor(**QUICK)
    for t in range(20):
        model.learn_one({"a": float(t % 5), "b": -7.0 * t}, 3.0 * (t % 5))
    assert abs(model.predict_one({"a": 2.0, "b": 1.0}) - 6.0) < 0.1
    assert isinstance(Regressor(), river.base.Regressor)


def test_parameters():
    model = Regressor(level=0.5)
    assert repr(model) == "Regressor(level=0.5)"
    assert sklearn_clone(model).get_params() == model.get_params() == model.clone().get_params()
    assert model.clone({"level": 0.6}).level == 0.6
    with pytest.raises(ValueError, match='Did you mean "level"'):
        model.set_params(levle=1.0)
    with pytest.raises(ValueError, match="not a mutable attribute"):
        model.mutate({"level": 0.7})


def test_arrays_are_dicts_of_columns():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = X @ [1.0, 2.0, 3.0]
    arrays, dicts, wide = Regressor(**QUICK).fit(X, y), Regressor(**QUICK, capacity=7), Regressor(**QUICK)
    for x, target in zip(X, y, strict=True):
        for model in (dicts, wide):
            model.learn_one(dict(enumerate(x.tolist())), target)
    np.testing.assert_array_equal(arrays._vector, dicts._vector)  # three columns stay three: few slots are enough
    assert arrays._vector.size < wide._vector.size
    np.testing.assert_allclose(wide.predict_one(dict(enumerate(X[0]))), arrays.predict(X[:1])[0], rtol=1e-9)
    mean, std = arrays.predict(X[:5], return_std=True)
    law = dicts.predict_one(dict(enumerate(X[0].tolist())), with_dist=True)
    np.testing.assert_allclose([mean[0], std[0]], [law.mean, law.sigma])
    assert arrays.score(X, y) > 0.9


def test_what_is_masked_is_not_there():
    """In arrays it is refused as NaN is; one value or target is missing."""
    X, y = np.arange(12.0).reshape(6, 2), np.arange(6.0)
    hole = np.arange(6) == 3
    for kind in (Regressor, Classifier):
        model = kind(**QUICK)
        with pytest.raises(ValueError, match="Input X contains NaN"):
            model.fit(np.ma.array(X, mask=np.stack([hole, hole], axis=1)), y)
        with pytest.raises(ValueError, match="Input y contains NaN"):
            model.fit(X, np.ma.array(y, mask=hole))
        np.testing.assert_array_equal(model.fit(np.ma.array(X), np.ma.array(y)).predict(X), model.fit(X, y).predict(X))
    model = Regressor(**QUICK)
    model.learn_one({"a": np.ma.masked, "b": 1.0}, 1)
    assert model.alarm_ is None
    model.learn_one({"a": 1.0}, np.ma.masked)
    assert model.alarm_ == "missing"


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"prior": 1e308}, r"prior must be at most 1e\+100, got 1e\+308: its products would overflow"),
        ({"prior": np.inf}, "prior must be finite and above 0"),
        ({"capacity": 10**7}, "capacity must be a whole number of at most 10000, got 10000000"),
    ],
)
def test_parameters_that_no_computer_holds_are_refused(given, match):
    with pytest.raises(ValueError, match=match):
        Regressor(**QUICK | given).learn_one({"a": 1.0}, 1.0)
