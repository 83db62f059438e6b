import dataclasses
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep

import pytest

from thesis import (
    Experiment,
    Finding,
    Result,
    Table,
    find,
    findings,
    gather,
    holds_if,
    names,
    reproduce,
    runner,
)
from thesis.page import write_report

WITHOUT_FIGURES = ("catalogue",)  # a table of the thesis, not a figure
WITHOUT_CLAIMS = ("continual",)  # a task that the thesis names and has no experiment for


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    out = tmp_path_factory.mktemp("reproduce")
    return reproduce(["ridge"], out=out)[0]


@pytest.fixture
def mine(found, tmp_path):
    """The same in a folder that a test may spoil."""
    folder = tmp_path / found.folder.relative_to(found.folder.parents[1])
    return Finding(found.content, Path(shutil.copytree(found.folder, folder)))


def test_a_finding_is_used_again_and_a_damaged_one_is_found_again(found, monkeypatch):
    shares = []
    fail = dataclasses.replace(find("ridge"), run=lambda *_: pytest.fail("ran again"))
    monkeypatch.setattr(runner, "find", lambda name: fail)
    again = reproduce(["ridge"], out=found.folder.parents[1], told=lambda name, share: shares.append(share))[0]
    assert again.content == found.content
    assert shares == [1.0]
    monkeypatch.undo()
    path = found.folder / "result.json"
    whole = path.read_text()
    path.write_text(whole[: len(whole) // 2])
    assert reproduce(["ridge"], out=found.folder.parents[1])[0]["numbers"] == found["numbers"]


def test_lost_figures_are_drawn_again_and_lost_arrays_found_again(mine, tmp_path, monkeypatch):
    first = mine
    for file in ("recursive-ridge-params-and-rmse.png", "arrays.npz"):
        before = (first.folder / file).read_bytes()
        (first.folder / file).unlink()
        assert gather(tmp_path) == []
        with monkeypatch.context() as patch:
            if file != "arrays.npz":  # a figure takes no run
                drawn = dataclasses.replace(find("ridge"), run=lambda *_: pytest.fail("ran again"))
                patch.setattr(runner, "find", lambda name, drawn=drawn: drawn)
            (again,) = reproduce(["ridge"], out=tmp_path)
        assert again["numbers"] == first["numbers"]
        assert (first.folder / file).stat().st_size > len(before) // 2
        assert len(gather(tmp_path)) == 1


def test_a_changed_rule_is_decided_again_without_a_run(mine, tmp_path, monkeypatch):
    known, first = find("ridge"), mine
    strict = dataclasses.replace(known.claims[0], decide=lambda result: holds_if(result.numbers["rmse"] == 0, "not 0"))
    changed = dataclasses.replace(known, claims=(strict,), run=lambda *_: pytest.fail("ran again"))
    for module in (runner, findings):
        monkeypatch.setattr(module, "find", lambda name: changed)
    assert gather(tmp_path)[0]["claims"][0]["verdict"] == "does not hold"
    (again,) = reproduce(["ridge"], out=tmp_path)
    assert [first["claims"][0]["verdict"], again["claims"][0]["verdict"]] == ["holds", "does not hold"]
    assert json.loads((again.folder / "result.json").read_text()) == again.content
    broken = dataclasses.replace(strict, decide=lambda result: holds_if(result.numbers["not kept then"], ""))
    monkeypatch.setattr(runner, "find", lambda name: dataclasses.replace(known, claims=(broken,)))
    with pytest.raises(KeyError, match="not kept then"):  # it is run again; here the rule is at fault
        reproduce(["ridge"], out=tmp_path)


def test_another_seed_or_size_is_another_run(found):
    other = reproduce(["ridge"], seed=1, out=found.folder.parents[1])[0]
    assert other["digest"] != found["digest"]
    assert other["numbers"]["rmse"] != found["numbers"]["rmse"]


def test_several_processes_find_the_same_and_tell_of_each_step(found, tmp_path):
    told, alone = [], []
    reproduce(["ridge"], out=tmp_path / "alone", told=lambda name, share: alone.append((name, share)))
    (other,) = reproduce(["ridge"], out=tmp_path, jobs=2, told=lambda name, share: told.append((name, share)))
    assert other["numbers"] == found["numbers"]
    assert told == alone
    assert told[0] == ("ridge", 0.0)
    assert told[-1] == ("ridge", 1.0)


def test_the_page_escapes_what_it_is_told(found, tmp_path):
    words = "<script>alert(1)</script>"
    result = Result({}, tables=(Table(words, ("a",), [(words,)]),), notes=(words,))
    content = {**found.content, "tables": [vars(table) for table in result.tables], "notes": list(result.notes)}
    page = write_report([Finding(content, found.folder)], tmp_path / "report.html").read_text()
    assert "<script" not in page
    assert page.count("&lt;script&gt;") == 3
    assert "http" not in page


def test_every_experiment_is_named_as_it_is_listed_and_has_figures_and_claims():
    for name in names():
        experiment = find(name)
        assert experiment.name == name
        assert experiment.figures or name in WITHOUT_FIGURES
        assert experiment.claims or name in WITHOUT_CLAIMS


def test_a_quick_run_leaves_a_full_one_alone(tmp_path, monkeypatch):
    made = Experiment("ridge", "", find("ridge").sizes, lambda setting, seed, _: Result({"n": setting.test + seed}), {})
    monkeypatch.setattr(findings, "find", lambda name: made)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "find", lambda name: made)
        runs = [("full", 0), ("quick", 0), ("full", 1), ("quick", 1)]
        first = {run: reproduce(["ridge"], *run, out=tmp_path)[0] for run in runs}
        silent = Experiment("ridge", "", made.sizes, lambda *_: pytest.fail("ran again"), {})
        patch.setattr(runner, "find", lambda name: silent)
        again = {run: reproduce(["ridge"], *run, out=tmp_path)[0] for run in runs}
    assert {run: one.content for run, one in again.items()} == {run: one.content for run, one in first.items()}
    assert len({one["numbers"]["n"] for one in first.values()}) == 4
    assert [(one["size"], one["seed"]) for one in gather(tmp_path)] == [
        ("full", 0),
        ("full", 1),
        ("quick", 0),
        ("quick", 1),
    ]
    page = write_report(gather(tmp_path), tmp_path / "report.html").read_text()
    for size, seed in runs:
        assert page.count(f"{size.capitalize()} size, seed {seed}") == 3  # in the head, above the links, in the section
        assert page.count(f'id="ridge-{size}-{seed}"') == page.count(f'href="#ridge-{size}-{seed}"') == 1


def test_what_is_no_experiment_is_refused(tmp_path):
    with pytest.raises(ValueError, match="there is no experiment 'xyz'; there are ridge"):
        reproduce(["ridge", "xyz"], out=tmp_path)
    assert not any(tmp_path.iterdir())


KILLED = """
import os, signal
from multiprocessing import get_context
from thesis.runner import _end_with
from threading import Thread

def work(parent):
    Thread(target=_end_with, args=(parent,), daemon=True).start()
    import time
    time.sleep(60)

if __name__ == "__main__":
    worker = get_context("fork").Process(target=work, args=(os.getpid(),))
    worker.start()
    print(worker.pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="it looks for the process in /proc")
def test_a_process_ends_with_the_one_that_asked_for_it(tmp_path):
    (tmp_path / "killed.py").write_text(KILLED)
    paths = {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "killed.py"], cwd=tmp_path, env=paths, capture_output=True, text=True)
    worker, late = int(done.stdout), monotonic() + 20
    while Path(f"/proc/{worker}").exists() and Path(f"/proc/{worker}/stat").read_text().split()[2] != "Z":
        assert monotonic() < late, "it goes on"
        sleep(0.1)
