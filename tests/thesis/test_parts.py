"""Parts of a run: what is handed on is the same, computed or found; what is not whole is computed again."""

import ast
import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from filtax.tuning import Log, Uniform
from thesis import Experiment, Result, find, findings, keep, names, reproduce, runner
from thesis import uci_corrupted as uci
from thesis.findings import digest_of, folder_of, keeping

SOURCE = Path(findings.__file__).parent


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


def test_a_damaged_part_is_computed_again(broken_off):
    (path,) = (broken_off / "full" / "ridge" / "parts").iterdir()
    whole = path.read_bytes()
    at = whole.index(b"tree".decode().encode("utf-32-le"))
    for damaged in (b"", whole[: len(whole) // 2], b"not a file of arrays", whole[:at] + b"u" + whole[at + 1 :]):
        path.write_bytes(damaged)
        with keeping(path.parent, digest_of(Long().experiment, "full", 0)) as shelf:
            assert keep("part 0", lambda: "computed") == "computed"
            assert shelf.saved == 0
    path.write_bytes(whole)
    with keeping(path.parent, digest_of(Long().experiment, "full", 0)):
        assert keep("part 0", lambda: "computed") != "computed"


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


def test_seconds_of_a_part_are_counted_once_where_it_is_found(tmp_path, monkeypatch):
    clock = iter(np.cumsum([0.0, 1.0, 10.0, 1.0, 5.0, 1.0, 1.0, 1.0]))
    monkeypatch.setattr(findings.time, "perf_counter", lambda: float(next(clock)))
    with keeping(tmp_path, "0"):
        keep("inner", lambda: 1)  # 1 s
    with keeping(tmp_path, "0") as shelf:
        keep("outer", lambda: keep("inner", lambda: 2))  # 1 s, and 1 s of what is found
        assert shelf.saved == 1.0
    with keeping(tmp_path, "0") as shelf:
        assert keep("outer", lambda: 3) == 1
    assert shelf.saved == 2.0


def test_a_name_twice_and_what_no_file_keeps_are_refused(tmp_path):
    with keeping(tmp_path, "0"):
        keep("one", lambda: 1)
        with pytest.raises(ValueError, match="keep\\('one'\\) was called before"):
            keep("one", lambda: 2)
        with pytest.raises(TypeError, match="the key 1; name it in words"):
            keep("two", lambda: {1: 2})
        with pytest.raises(TypeError, match="holds object, which no file keeps"):
            keep("three", object)


# What the digest covers ----------------------------------------------------------------------------------------------


def test_a_changed_range_is_another_run(tmp_path):
    first, wider = (Long(fixed={"spaces": {"q": Log(1e-3, high)}}) for high in (1.0, 10.0))
    uniform = Long(fixed={"spaces": {"q": Uniform(1e-3, 10.0)}})
    for long in (first, wider, uniform):
        assert run(long, tmp_path)["fixed"] == {"spaces": {"q": repr(long.experiment.fixed["spaces"]["q"])}}
        assert long.computed == [0, 1, 2]
    assert run(uniform, tmp_path)["seconds"] >= 0
    assert uniform.computed == [0, 1, 2]


def test_the_ranges_of_the_corrupted_tables_are_in_their_digest():
    known = find("uci-corrupted")
    narrow = {**uci.SPACES, "EKF": {"p": Log(1e-3, 1.0)}}
    other = dataclasses.replace(known, fixed={**known.fixed, "spaces": narrow})
    assert digest_of(other, "full", 0) != digest_of(known, "full", 0)
    assert digest_of(dataclasses.replace(known), "full", 0) == digest_of(known, "full", 0)


def leaves(value):
    if isinstance(value, dict):
        return [leaf for one in value.values() for leaf in leaves(one)]
    return [leaf for one in value for leaf in leaves(one)] if isinstance(value, tuple | list) else [value]


def test_every_range_and_every_table_of_candidates_is_fixed_by_an_experiment():
    """Ranges stand at the top of a module, where they can be seen; each belongs to what some experiment holds fixed."""
    fixed = [value for name in names() for value in find(name).fixed.values()]
    ranges = {leaf for leaf in leaves(fixed) if isinstance(leaf, Uniform)}
    for path in SOURCE.glob("*.py"):
        tree = ast.parse(path.read_text())
        for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
            calls = [node.func for node in ast.walk(function) if isinstance(node, ast.Call)]
            made = {called.id for called in calls if isinstance(called, ast.Name)}
            assert not made & {"Log", "Uniform", "Whole"}, f"{path.name}: {function.name} has a range of its own"
        if path.stem in ("__init__", "page"):
            continue
        module = vars(__import__(f"thesis.{path.stem}", fromlist=["_"]))
        for name, value in module.items():
            if name == "__builtins__":  # a doctest leaves its last value there, which may hold itself
                continue
            assert {leaf for leaf in leaves(value) if isinstance(leaf, Uniform)} <= ranges, f"{path.name}: {name}"
            if name in ("SPACES", "GRIDS", "STORED", "TUNED") or (name == "PARTS" and isinstance(value, dict)):
                assert any(value is one for one in fixed), f"{path.name}: {name} is in no experiment's fixed"


def test_what_json_cannot_hold_is_not_fixed():
    with pytest.raises(TypeError, match="holds function; give numbers"):
        Experiment(
            "x", "", {"quick": Setting(), "full": Setting()}, lambda *_: Result({}), {}, fixed={"f": find}
        ).shared()


# A real one ----------------------------------------------------------------------------------------------------------


def test_the_corrupted_tables_go_on_where_they_were_interrupted(tmp_path, monkeypatch):
    rng, computed = np.random.default_rng(0), []
    table = rng.normal(size=(40, 2)), rng.normal(size=40)
    monkeypatch.setattr(uci, "_table", lambda name: table)
    monkeypatch.setattr(uci, "_times", lambda setting, *_: {method: [1.0] for method in uci.METHODS})

    def errors(setting, method, group, *_):
        if method == "OGD" and "OGD" not in computed:
            computed.append("OGD")
            raise KeyboardInterrupt
        computed.append(method)
        return [(name, law, [float(len(method))] * setting.trials) for name in group for law in uci.LAWS]

    monkeypatch.setattr(uci, "_errors", errors)
    with pytest.raises(KeyboardInterrupt):
        reproduce(["uci-corrupted"], out=tmp_path)
    assert (folder_of(tmp_path, "uci-corrupted", "quick", 0) / "parts").is_dir()
    (found,) = reproduce(["uci-corrupted"], out=tmp_path)
    assert computed == ["EKF", "EKF-B", "EKF-IW", "OGD", "OGD", "WoLF-IMQ", "WoLF-TMD"]
    assert {
        method: set(of) for method, of in found["numbers"]["rmedse"]["text"]["wine"].items() if method != uci.LAST
    } == {method: {float(len(method))} for method in uci.METHODS}
    assert json.loads((found.folder / "result.json").read_text())["fixed"]["spaces"]["EKF"] == {
        "p": "Log(low=0.001, high=100.0)"
    }
