import dataclasses
import html
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
from thesis.findings import digest_of, folder_of
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


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_figures_that_were_cut_are_drawn_again(found, monkeypatch, ending):
    out, path = found.folder.parents[1], found.folder / f"recursive-ridge-params-and-rmse.{ending}"
    whole = path.read_bytes()
    for left in (0, 100, -1):  # the last one is the hardest to see, and is drawn again
        path.write_bytes(whole.rstrip()[:left])
        assert gather(out) == []
    drawn = dataclasses.replace(find("ridge"), run=lambda *_: pytest.fail("ran again"))
    monkeypatch.setattr(runner, "find", lambda name: drawn)
    reproduce(["ridge"], out=out)
    assert len(gather(out)) == 1
    assert path.read_bytes().rstrip()[-6:] == whole.rstrip()[-6:]
    assert path.stat().st_size > len(whole) // 2


def test_numbers_of_which_a_figure_cannot_be_drawn_any_more_are_found_again(mine, tmp_path, monkeypatch):
    known, label, first = find("ridge"), "fig:recursive-ridge-params-and-rmse", mine
    (first.folder / f"{label.removeprefix('fig:')}.svg").unlink()
    draw = lambda result: known.figures[label](Result(result.numbers, {"new": result.arrays["new"], **result.arrays}))
    run = lambda *given: (made := known.run(*given), Result(made.numbers, {**made.arrays, "new": made.arrays["rmse"]}))[
        1
    ]
    changed = dataclasses.replace(known, figures={label: draw}, run=run)
    monkeypatch.setattr(runner, "find", lambda name: changed)
    assert reproduce(["ridge"], out=tmp_path)[0]["numbers"] == first["numbers"]
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


def test_a_name_given_twice_is_run_once(tmp_path):
    told = []
    assert len(reproduce(["ridge", "ridge"], out=tmp_path, told=lambda *said: told.append(said))) == 1
    assert told.count(("ridge", 0.0)) == 1


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


def test_a_folder_holds_what_the_report_needs(found):
    files = {path.name for path in found.folder.iterdir()}
    name = "recursive-ridge-params-and-rmse"
    assert files == {"result.json", "arrays.npz", f"{name}.png", f"{name}.svg"}
    content = json.loads((found.folder / "result.json").read_text())
    assert {"seed", "setting", "versions", "seconds", "claims", "tables", "numbers"} <= set(content)


def test_the_page_escapes_what_it_is_told(found, tmp_path):
    words = "<script>alert(1)</script>"
    result = Result({}, tables=(Table(words, ("a",), [(words,)]),), notes=(words,))
    content = {**found.content, "tables": [vars(table) for table in result.tables], "notes": list(result.notes)}
    page = write_report([Finding(content, found.folder)], tmp_path / "report.html").read_text()
    assert "<script" not in page
    assert page.count("&lt;script&gt;") == 3
    assert "http" not in page


def test_the_page_shows_intervals_and_what_was_not_published(found, tmp_path):
    table = Table(
        "t", ("", "published", "ours", "95 %"), [("a", None, None, (0.25, 12345.0))], published=("published",)
    )
    content = {**found.content, "tables": [vars(table)], "notes": []}
    page = write_report([runner.Finding(content, found.folder)], tmp_path / "report.html").read_text()
    assert page.count("not published as a number") == 1
    assert "[0.25, 12,340]" in page


def test_the_page_gives_the_printed_form_beside_the_one_that_was_tested(found, tmp_path):
    page = write_report([found], tmp_path / "report.html").read_text()
    assert "tend to, and eventually match, the Ridge estimate</q> Tested: They are equal after every datum" in page
    assert found["claims"][0]["evidence"] in html.unescape(page)


def test_the_page_says_nothing_of_claims_where_there_are_none(found, tmp_path):
    bare = Finding({**found.content, "claims": []}, found.folder)
    page = write_report([bare], tmp_path / "report.html").read_text()
    assert "claims," not in page
    assert "the form tested" not in page
    assert "Nothing was found" not in page
    assert "Nothing was found" in write_report([], tmp_path / "empty.html").read_text()


def test_every_experiment_is_named_as_it_is_listed_and_has_figures_and_claims():
    for name in names():
        experiment = find(name)
        assert experiment.name == name
        assert experiment.figures or name in WITHOUT_FIGURES
        assert experiment.claims or name in WITHOUT_CLAIMS


def lay(out, found, name, size, seed, /, **change):
    folder = folder_of(out, name, size, seed)
    folder.mkdir(parents=True)
    content = {**found.content, "name": name, "size": size, "seed": seed, "digest": digest_of(find(name), size, seed)}
    (folder / "result.json").write_text(json.dumps(content | change))
    (folder / "arrays.npz").write_bytes((found.folder / "arrays.npz").read_bytes())


def test_what_lies_in_a_folder_is_gathered_in_order(found, tmp_path, monkeypatch):
    plain = {name: dataclasses.replace(find(name), figures={}, claims=()) for name in names()}
    monkeypatch.setattr(findings, "find", plain.__getitem__)
    lay(tmp_path, found, "ridge", "quick", 0)
    lay(tmp_path, found, "ewma", "full", 3)
    lay(tmp_path, found, "ewma", "full", 0)
    lay(tmp_path, found, "ridge", "full", 0)
    lay(tmp_path, found, "tracking", "full", 0, digest="of another setting")
    lay(tmp_path, found, "segments", "full", 0, seed="none")
    lay(tmp_path, found, "catalogue", "quick", 0)
    (tmp_path / "quick" / "catalogue" / "result.json").write_text("half a fil")
    (tmp_path / "quick" / "ridge").rename(tmp_path / "ridge")  # where it is not looked for
    lay(tmp_path, found, "ridge", "quick", 0)
    assert [(one["name"], one["size"], one["seed"]) for one in gather(tmp_path)] == [
        ("ridge", "full", 0),
        ("ewma", "full", 0),
        ("ewma", "full", 3),
        ("ridge", "quick", 0),
    ]


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


def test_what_fails_in_a_process_is_never_told_as_done(tmp_path, monkeypatch):
    monkeypatch.setenv("FILTAX_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    told = []
    with pytest.raises(FileNotFoundError, match="data set djia"):
        reproduce(["ewma"], out=tmp_path, jobs=2, told=lambda *said: told.append(said))
    assert told in ([], [("ewma", 0.0)])  # begun, perhaps; never done


def test_what_is_no_experiment_is_refused(tmp_path):
    with pytest.raises(ValueError, match="there is no experiment 'xyz'; there are ridge"):
        reproduce(["ridge", "xyz"], out=tmp_path)
    assert not any(tmp_path.iterdir())


def test_an_experiment_has_both_sizes():
    with pytest.raises(ValueError, match="quick and full"):
        Experiment("x", "", {"quick": None}, lambda *_: Result({}), {})


def test_arrays_that_json_cannot_hold_are_said(monkeypatch, tmp_path):
    odd = Experiment("ridge", "", find("ridge").sizes, lambda *_: Result({"a": object()}), {})
    monkeypatch.setattr(runner, "find", lambda name: odd)
    with pytest.raises(TypeError, match="object, which JSON does not"):
        reproduce(["ridge"], out=tmp_path)


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
