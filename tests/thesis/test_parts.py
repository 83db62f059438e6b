"""Parts of a run: what is handed on is the same, computed or found; what is not whole is computed again."""

import dataclasses

import numpy as np
import pytest

from filtax.tuning import Log, Uniform
from thesis import Experiment, Result, keep, reproduce, runner
from thesis.findings import keeping


@dataclasses.dataclass(frozen=True)
class Setting:
    scale: float = 2.0


class Long:
    """An experiment of three parts that counts what it computes, and is interrupted in one of them, if any."""

    def __init__(self, interrupted=None, fixed=None, scale=2.0):
        self.interrupted, self.computed = interrupted, []
        sizes = {"quick": Setting(scale), "full": Setting(7 * scale)}
        self.experiment = Experiment("ridge", "", sizes, self.run, {}, fixed=fixed or {})

    def part(self, setting, seed, i):
        if i == self.interrupted:
            raise KeyboardInterrupt
        self.computed.append(i)
        drawn = np.random.default_rng((seed, i)).normal(size=3) * setting.scale
        return {"drawn": drawn, "mean": drawn.mean(), "of": (i, "part", None, float("nan"))}

    def run(self, setting, seed, advance):
        found = [keep(f"part {i}", lambda i=i: self.part(setting, seed, i)) for i in range(3)]
        numbers = {"means": [one["mean"] for one in found], "of": [one["of"][:3] for one in found]}
        return Result(numbers, {f"drawn {i}": one["drawn"] for i, one in enumerate(found)})


def run(long, out, size="full", seed=0):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "find", lambda name: long.experiment)
        return reproduce(["ridge"], size, seed, out)[0]


def arrays(finding):
    with np.load(finding.folder / "arrays.npz") as file:
        return {name: file[name].tolist() for name in file.files}


@pytest.fixture
def broken_off(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        run(Long(interrupted=1), tmp_path)
    assert len(list((tmp_path / "full" / "ridge" / "parts").iterdir())) == 1
    return tmp_path


def test_what_was_interrupted_goes_on_after_its_last_part_and_finds_the_same(broken_off, tmp_path_factory):
    again, at_once = Long(), Long()
    found = run(again, broken_off)
    whole = run(at_once, tmp_path_factory.mktemp("whole"))
    assert again.computed == [1, 2]
    assert at_once.computed == [0, 1, 2]
    assert found["numbers"] == whole["numbers"]
    assert arrays(found) == arrays(whole)
    assert found["digest"] == whole["digest"]
    assert not (found.folder / "parts").exists()


@pytest.mark.parametrize(
    ("long", "asked"),
    [
        (Long(scale=3.0), {}),
        (Long(), {"seed": 1}),
        (Long(), {"size": "quick"}),
        (Long(fixed={"q": Log(1.0, 2.0)}), {}),
    ],
    ids=["setting", "seed", "size", "range"],
)
def test_parts_of_another_result_are_not_used(broken_off, long, asked):
    run(long, broken_off, **asked)
    assert long.computed == [0, 1, 2]


def test_a_part_is_handed_on_alike_computed_or_found(tmp_path):
    made = {
        "a": np.arange(3, dtype="int8"),
        "b": [(1, np.float64(0.1)), {"array": None, "of": True}],
        "c": float("inf"),
    }
    said = []
    for _ in range(2):
        with keeping(tmp_path, "0"):
            said.append(keep("made", lambda: made if not said else pytest.fail("computed again")))
    alone = keep("made", lambda: made)
    for one in (*said, alone):
        assert one["a"].dtype == np.int8
        assert one["a"].tolist() == [0, 1, 2]
        assert one["b"] == [[1, 0.1], {"array": None, "of": True}]
        assert one["c"] == float("inf")


# What the digest covers ----------------------------------------------------------------------------------------------


def test_a_changed_range_is_another_run(tmp_path):
    first, wider = (Long(fixed={"spaces": {"q": Log(1e-3, high)}}) for high in (1.0, 10.0))
    uniform = Long(fixed={"spaces": {"q": Uniform(1e-3, 10.0)}})
    for long in (first, wider, uniform):
        assert run(long, tmp_path)["fixed"] == {"spaces": {"q": repr(long.experiment.fixed["spaces"]["q"])}}
        assert long.computed == [0, 1, 2]
    assert run(uniform, tmp_path)["seconds"] >= 0
    assert uniform.computed == [0, 1, 2]
