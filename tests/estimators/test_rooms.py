"""Features come and go and nothing is compiled; where room for series doubles, one program is."""

import logging
from collections import Counter

import jax
import numpy as np
import pytest

from filtax.estimators import Classifier, Fleet, Regressor
from filtax.runs import Config, carry_on


@pytest.fixture
def compiled():
    """Names of the programs that JAX compiles from here on."""
    names, loggers = [], [logging.getLogger(name) for name in ("jax._src.interpreters.pxla", "jax._src.dispatch")]

    class Listener(logging.Handler):
        def emit(self, record):
            words = record.getMessage().split()
            names.extend(words[1:2] if words[:1] == ["Compiling"] else [])

    listener = Listener()
    with jax.log_compiles():
        for each in loggers:
            each.addHandler(listener)
        yield names
        for each in loggers:
            each.removeHandler(listener)


def datum(names, t):
    """Numbers and a text that come, go and return."""
    return {name: f"word {t % 3}" if name == "text" else float((t * (i + 2)) % 7) for i, name in enumerate(names)}


COURSE = ("ab", "ab", "abc", "c", [*"abc", "text"], ["text", "d"], "ab", "e", [], "abcdefgh")


@pytest.mark.parametrize(
    ("kind", "given"), [(Regressor, {"capacity": 16}), (Classifier, {"capacity": 16}), (Regressor, {})]
)
def test_nothing_is_compiled_when_a_name_appears_disappears_or_returns(compiled, kind, given):
    method = "LG+C-Static"
    model, fleet = kind(method=method, **given), Fleet(kind(method=method, **given), capacity=4)
    many = kind(method=method, **given)
    for t, names in enumerate(COURSE * 2):
        x = datum(names, t)
        model.predict_one(x, with_dist=True)
        model.predict_one(x)
        model.learn_one(x, t % 2)
        fleet.learn_many(["a", "b"], [x, datum("ab", t)], [t % 2, 1])
        fleet.predict_one("a", x)
        many.learn_many([x, datum("a", t)], [t % 2, 1])
        if t == 1:
            compiled.clear()
    assert compiled == []
    assert model._size[0] == given.get("capacity", 31)


def test_nothing_is_compiled_when_a_label_appears_that_there_is_room_for(compiled):
    """Four heads, of which one is for a class that was never met, are full with the fourth label."""
    given = {"method": "LG+C-Static", "capacity": 4}
    roomy, usual = Classifier(classes=7, **given), Classifier(**given)
    for t in range(14):
        roomy.learn_one({"a": float(t % 7)}, f"label {t % 7}")
        roomy.predict_one({"a": 1.0})
        if t == 0:
            compiled.clear()
    assert compiled == []
    assert (roomy._size, len(roomy.classes_)) == ((4, 8), 7)
    for t in range(14):
        usual.learn_one({"a": float(t % 7)}, f"label {t % 7}")
    assert usual._size == roomy._size
    want = roomy.predict_proba_one({"a": 3.0})
    for label, chance in usual.predict_proba_one({"a": 3.0}).items():
        np.testing.assert_allclose(chance, want[label], rtol=1e-12)  # heads that no class uses change nothing
    with pytest.raises(ValueError, match="classes must be a whole number of at least 2, got 1"):
        Classifier(classes=1).learn_one({"a": 1.0}, "label")


def test_nothing_is_compiled_when_a_column_appears(compiled):
    """Frames of numbers, where a column begins in the midst of a chunk, and arrays wider than the default."""
    import pandas as pd

    model, wide = Regressor(method="LG+C-Static", capacity=16), Regressor(method="LG+C-Static")
    X = np.random.default_rng(0).normal(size=(300, 3))
    wide.partial_fit(np.ones((2, 40)), [1.0, 2.0])
    for t, names in enumerate(["ab", "ab", "abc", "c", "bad"]):
        frame = pd.DataFrame(X[:, : len(names)], columns=list(names))
        frame.iloc[:7, -1] = np.nan
        model.learn_many(frame, X.sum(axis=1))
        model.predict_many(frame)
        wide.partial_fit(np.full((3, 40), float(t)), [1.0, 2.0, 3.0])
        if t == 1:
            compiled.clear()
    assert compiled == []
    assert (model._size, wide._size) == ((16, 0), (63, 0))


@pytest.mark.x64
def test_new_series_compile_one_program_for_a_doubling(compiled, tmp_path):
    """Before, each doubling compiled 16: seven broadcasts, seven concatenations, the loop, and a mean."""
    lines = [f"{t},s{k},{(t * t) % 7}.5\n" for t in range(80) for k in range(1 + t // 10)]
    (tmp_path / "t.csv").write_text("t,key,y\n" + "".join(lines))
    found, before = {}, [0]

    def tell(progress, block, told, stream):
        found.setdefault(stream.slots, Counter()).update(compiled[before[0] :])
        before[0] = len(compiled)

    asked = Config(str(tmp_path / "t.csv"), "y", time="t", key="key", method="LG+C-Static", block=32)
    carry_on(asked, tmp_path / "run", tell=tell)
    assert sorted(found) == [2, 4, 8]
    for slots in (4, 8):
        assert found[slots] - Counter(["jit(_mean)"]) == Counter(["jit(_series)"])
    assert sum(found.values(), Counter())["jit(_mean)"] == 1  # whatever the number of series
