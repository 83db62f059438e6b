"""Estimators that were written once and never again: an older layout is read, the present one too.

`python tests/estimators/test_golden.py FOLDER` wrote them. Format 1 had no elder beside the champion; in formats 1
and 2 slots doubled as names appeared; from format 4 on the first rows are kept, and from format 5 on how narrow
forecasts have been.
"""

import sys
from pathlib import Path

import jax
import numpy as np
import pytest

from filtax.beliefs import SquareRoot
from filtax.estimators import Classifier, Fleet, Regressor, Segmenter, load, save
from filtax.estimators.memory import TOLD

GOLDEN = Path(__file__).parent / "golden"
X = {"a": 3.0, "b": "u"}
NARROW = -len(TOLD) - 2  # its place in a memory


def stream(start, stop):
    for t in range(start, stop):
        yield {"a": float(t % 7), "b": "u" if t % 3 else "v"}, 3.0 * (t % 7) + (t % 3) * 0.5 + 0.25 * ((t * 37) % 11)


def taught(model, start, stop):
    for x, y in stream(start, stop):
        model.learn_one(x, y if isinstance(model, Regressor) else "high" if y > 10.0 else "low")
    return model


def held(model, vector=None):
    """All that an estimator remembers; of a root its square, as any root of a covariance will do."""
    memory = model._engine().layout.unpack(model._vector if vector is None else vector)
    rooted = lambda part: isinstance(part, SquareRoot)
    squared = lambda part: (part.mean, part.root @ np.swapaxes(part.root, -1, -2)) if rooted(part) else part
    leaves = jax.tree.leaves(jax.tree.map(squared, memory, is_leaf=rooted))
    return np.concatenate([np.ravel(leaf).astype(float) for leaf in leaves])


def said(model):
    return model.predict_one(X) if isinstance(model, Regressor) else model.predict_proba_one(X)["high"]


@pytest.mark.parametrize("form", ["format-1", "format-2"])
@pytest.mark.parametrize(
    ("kind", "number"),
    [(Regressor, 11.07084592290212), pytest.param(Classifier, 0.7010545024476198, marks=pytest.mark.nightly)],
)
def test_golden_estimators_are_read_and_go_on(kind, number, form):
    """The numbers were said by the program that wrote the files."""
    model, manifest = load(GOLDEN / form / kind.__name__.lower())
    assert manifest["source"] == {"row": 120}
    assert model._size[0] == 3  # as it was written
    assert repr(model) == repr(kind())  # 255 slots were the default, and 31 are
    np.testing.assert_allclose(said(model), number, rtol=1e-12)
    whole = taught(kind(), 0, 150)
    taught(model, 120, 150)
    assert model.alarm_ is None
    np.testing.assert_allclose(said(model), said(whole), rtol=1e-9)  # slots that nothing fills change no forecast


@pytest.mark.parametrize("form", ["format-1", "format-2", "format-3", "format-5"])
def test_golden_classifiers_know_their_labels(form):
    model, manifest = load(GOLDEN / form / "classifier")
    assert (model._labels, manifest["source"]) == (["low", "high"], {"row": 120})


def test_a_golden_estimator_keeps_its_slots():
    """It has learned the same rows as the others, with a slot to spare."""
    model, _ = load(GOLDEN / "format-3/regressor")
    assert (model._size, model._table.capacity, model.capacity) == ((4, 0), 4, 4)
    np.testing.assert_allclose(model.predict_one(X), 11.07084592290212, rtol=1e-9)
    assert load(GOLDEN / "format-5/regressor")[0].predict_one(X) == pytest.approx(11.07084592290212, rel=1e-9)
    classifier, _ = load(GOLDEN / "format-3/classifier")
    assert (classifier._size, classifier._labels) == ((4, 4), ["low", "high"])


def young(start, stop, model=None):
    model = Regressor("NIG(shape=2)+C-Static", capacity=4) if model is None else model
    for t, (x, y) in enumerate(stream(start, stop), start):
        model.learn_one(x, -9999.0 if t == 3 else y)
    return model


@pytest.mark.parametrize("form", ["format-4", "format-5"])
def test_a_golden_estimator_that_is_young_still_knows_its_first_rows(form):
    """It was saved with the datum that showed an error among them."""
    model, _ = load(GOLDEN / form / "young")
    assert (model.alarm_, model.outliers_, model._size) == ("outlier", (2,), (4, 0))
    learned, whole = young(6, 20, model), young(0, 20)
    vector = learned._vector.copy()
    if form == "format-4":
        vector[NARROW] = whole._vector[NARROW]  # of its first data it was not kept
    np.testing.assert_allclose(held(learned, vector), held(whole), rtol=1e-9, atol=1e-12)


def readings(start, stop):
    for t in range(start, stop):
        jump = 9.0 if t >= 28 else 500.0 if t in (16, 17) else 0.0
        yield {"a": (t * 37 % 11) / 5.0 + jump, "b": (t * 23 % 7) / 3.0 - jump}


def watched(start, stop, model=None):
    model = Segmenter(warmup=12, keep=5, least=3) if model is None else model
    for x in readings(start, stop):
        model.learn_one(x)
    return model


def test_a_golden_segmenter_goes_on_from_the_middle_of_a_doubt():
    model, manifest = load(GOLDEN / "format-5/segmenter")
    assert (manifest["source"], model.t_, model.alarm_, model.trust_) == ({"row": 18}, 18, "outlier", 0.0)
    assert len(model._vigil.doubted) == 2
    found, whole = (watched(start, 40, model) for start, model in ((18, model), (0, None)))
    assert found.changes_ == whole.changes_ == [30]  # as the program that wrote it
    np.testing.assert_allclose(found._vigil.state, whole._vigil.state, rtol=1e-9, atol=1e-12)


def fleet_of(start, stop, fleet=None):
    fleet = Fleet(Regressor("NIG(shape=2)+C-Static", capacity=4), capacity=3) if fleet is None else fleet
    for t in range(start, stop):
        fleet.learn_one("ab"[t % 3 == 0], {"a": float(t % 7)}, 3.0 * (t % 7) + (t % 3) * 0.5)
    return fleet


def test_a_golden_fleet_is_read_and_goes_on():
    fleet, manifest = load(GOLDEN / "format-5/fleet")
    assert (manifest["source"], fleet.keys(), fleet.capacity, fleet.idle(2)) == ({"row": 60}, ["b", "a"], 3, ["b"])
    said = [fleet.predict_one(key, {"a": 3.0}) for key in "ab"]
    np.testing.assert_allclose(said, [9.749470311228311, 8.999768159789799], rtol=1e-12)
    found, whole = fleet_of(60, 70, fleet), fleet_of(0, 70)
    for key in "ab":
        np.testing.assert_allclose(held(found.member(key)), held(whole.member(key)), rtol=1e-9, atol=1e-12)


if __name__ == "__main__":
    save(Path(sys.argv[1]) / "segmenter", watched(0, 18), source={"row": 18})
    save(Path(sys.argv[1]) / "fleet", fleet_of(0, 60), source={"row": 60})
    save(Path(sys.argv[1]) / "young", young(0, 6), source={"row": 6})
    for kind in (Regressor, Classifier):
        save(Path(sys.argv[1]) / kind.__name__.lower(), taught(kind(capacity=4), 0, 120), source={"row": 120})
