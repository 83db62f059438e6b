"""Estimators that were written once and never again: an older layout is read, the present one too.

`python tests/estimators/test_golden.py FOLDER` wrote them. Format 1 had no elder beside the champion; in formats 1
and 2 slots doubled as names appeared; from format 4 on the first rows are kept.
"""

import sys
from pathlib import Path

import numpy as np
import pytest

from filtax.estimators import Classifier, Regressor, load, save

GOLDEN = Path(__file__).parent / "golden"
X = {"a": 3.0, "b": "u"}


def stream(start, stop):
    for t in range(start, stop):
        yield {"a": float(t % 7), "b": "u" if t % 3 else "v"}, 3.0 * (t % 7) + (t % 3) * 0.5 + 0.25 * ((t * 37) % 11)


def taught(model, start, stop):
    for x, y in stream(start, stop):
        model.learn_one(x, y if isinstance(model, Regressor) else "high" if y > 10.0 else "low")
    return model


@pytest.mark.parametrize("form", ["format-1", "format-2"])
def test_golden_estimators_are_read_and_go_on(form):
    """The numbers were said by the program that wrote the files."""
    regressor, manifest = load(GOLDEN / form / "regressor")
    classifier, _ = load(GOLDEN / form / "classifier")
    assert manifest["source"] == {"row": 120}
    assert regressor._size == (3, 0)  # as it was written
    assert repr(regressor) == repr(Regressor())  # 255 slots were the default, and 31 are
    np.testing.assert_allclose(regressor.predict_one(X), 11.07084592290212, rtol=1e-12)
    np.testing.assert_allclose(classifier.predict_proba_one(X)["high"], 0.7010545024476198, rtol=1e-12)
    for model in (regressor, classifier):
        whole = taught(type(model)(), 0, 150)
        taught(model, 120, 150)
        assert model.alarm_ is None
        look = "predict_one" if isinstance(model, Regressor) else "predict_proba_one"
        found = [getattr(one, look)(X) for one in (model, whole)]
        found = found if look == "predict_one" else [chances["high"] for chances in found]
        np.testing.assert_allclose(*found, rtol=1e-9)  # slots that nothing fills change no forecast


def test_a_golden_estimator_keeps_its_slots():
    """It has learned the same rows as the others, with a slot to spare."""
    model, _ = load(GOLDEN / "format-3/regressor")
    assert (model._size, model._table.capacity, model.capacity) == ((4, 0), 4, 4)
    np.testing.assert_allclose(model.predict_one(X), 11.07084592290212, rtol=1e-9)
    classifier, _ = load(GOLDEN / "format-3/classifier")
    assert (classifier._size, classifier._labels) == ((4, 4), ["low", "high"])


def young(start, stop, model=None):
    model = Regressor("NIG(shape=2)+C-Static", capacity=4) if model is None else model
    for t, (x, y) in enumerate(stream(start, stop), start):
        model.learn_one(x, -9999.0 if t == 3 else y)
    return model


def test_a_golden_estimator_that_is_young_still_knows_its_first_rows():
    """It was saved with the datum that showed an error among them."""
    model, _ = load(GOLDEN / "format-4/young")
    assert (model.alarm_, model.outliers_, model._size) == ("outlier", (2,), (4, 0))
    np.testing.assert_allclose(young(6, 20, model)._vector, young(0, 20)._vector, rtol=1e-9, atol=1e-12)


if __name__ == "__main__":
    save(Path(sys.argv[1]) / "young", young(0, 6), source={"row": 6})
    for kind in (Regressor, Classifier):
        save(Path(sys.argv[1]) / kind.__name__.lower(), taught(kind(capacity=4), 0, 120), source={"row": 120})
