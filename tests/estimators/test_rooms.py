"""When room for features or series doubles, each kernel is compiled once for the new size, and next to nothing else."""

import logging
from collections import Counter

import jax
import numpy as np
import pytest

from filtax.estimators import Regressor
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


def test_new_features_compile_each_kernel_once_for_a_doubling(compiled):
    """Before, each doubling compiled 11 or 12 programs: the memory was built by JAX, operation by operation."""
    model, rng = Regressor(method="LG+C-Static", prior=0.37), np.random.default_rng(0)
    found = {}
    for features in (2, 3, 4, 7, 8):
        before = len(compiled)
        for _ in range(3):
            x = {f"f{i}": float(value) for i, value in enumerate(rng.normal(size=features))}
            model.learn_one(x, sum(x.values()))
            model.predict_one(x)
        found[features] = Counter(compiled[before:])
    assert found[3] == found[7] == Counter()
    for features in (4, 8):
        kernels = found[features].pop("jit(<lambda>)")  # learn and predict
        assert kernels == 2
        assert set(found[features]) <= {"jit(broadcast_in_dim)"}
        assert found[features].total() <= 2


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
