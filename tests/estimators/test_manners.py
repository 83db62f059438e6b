"""River's and scikit-learn's own checks, and the parameters of an estimator."""

import os
import stat
import subprocess
import sys
import warnings

import numpy as np
import pytest
import river.base
import river.compose
from river.checks import yield_checks
from sklearn.base import clone as sklearn_clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

from filtax.estimators import Classifier, Regressor, Segmenter


@pytest.mark.parametrize("kind", [Regressor, Classifier])
def test_river(kind):
    done = set()
    for check in yield_checks(kind()):
        check(kind())
        done.add(check.__name__)
    assert {"check_learn_many_matches_learn_one", "check_pickling", "check_shuffle_features_no_impact"} <= done
    assert isinstance(kind(), vars(river.base)[kind.__name__])


@pytest.mark.parametrize("kind", [Regressor, Classifier, pytest.param(Segmenter, marks=pytest.mark.nightly)])
def test_sklearn(kind):
    """All checks but that of an array interface that is switched off here, which scikit-learn itself skips."""
    done, failed = 0, []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says that the estimator is none of its own
        for estimator, check in estimator_checks_generator(kind(), mark=None):
            name = getattr(check, "func", check).__name__
            if name != "check_array_api_input":
                try:
                    check(estimator)
                    done += 1
                except Exception as problem:
                    failed.append((name, repr(problem)[:300]))
    assert failed == []
    assert done >= 39


def test_pipelines_and_searches():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3))
    y = X @ [1.0, 2.0, 3.0] + 0.1 * rng.normal(size=90)
    search = GridSearchCV(make_pipeline(StandardScaler(), Regressor()), {"regressor__level": [0.8, 0.9]}, cv=2)
    assert search.fit(X, y).best_score_ > 0.5
    model = river.compose.Select("a") | Regressor()
    for t in range(70):
        model.learn_one({"a": float(t % 5), "b": -7.0 * t}, 3.0 * (t % 5))
    assert abs(model.predict_one({"a": 2.0, "b": 1.0}) - 6.0) < 1.0


def test_parameters():
    model = Regressor(level=0.5)
    assert repr(model) == "Regressor(level=0.5)"
    assert sklearn_clone(model).get_params() == model.get_params() == model.clone().get_params()
    assert model.clone({"level": 0.6}).level == 0.6
    with pytest.raises(ValueError, match='Did you mean "level"'):
        model.set_params(levle=1.0)
    with pytest.raises(ValueError, match="not a mutable attribute"):
        model.mutate({"level": 0.7})


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"method": 3}, "method must be the name of a filter"),
        ({"false_alarms": 0.0}, "false_alarms must lie between 0 and 1, got 0.0"),
        ({"capacity": 2}, "capacity must be a whole number of at least 3"),
        ({"capacity": 10**12}, "capacity must be a whole number of at most 1000, got 1000000000000"),
        ({"level": 1.5}, "level must lie between 0 and 1, got 1.5"),
        ({"pending": -1}, "pending must be a whole number of at least 0"),
    ],
)
def test_odd_parameters_are_refused_at_the_first_row(given, match):
    with pytest.raises(ValueError, match=match):
        Regressor(**given).learn_one({"a": 1.0}, 2.0)


def test_programs_are_kept_in_a_folder_of_the_users_own(tmp_path):
    code = "import filtax as fx; fx.Regressor().learn_one({'x': 1.0}, 1.0)"
    kept = {name: value for name, value in os.environ.items() if name != "JAX_COMPILATION_CACHE_DIR"}
    subprocess.run([sys.executable, "-c", code], env={**kept, "XDG_CACHE_HOME": str(tmp_path)}, check=True)
    assert stat.S_IMODE((tmp_path / "filtax" / "jax").stat().st_mode) == 0o700
