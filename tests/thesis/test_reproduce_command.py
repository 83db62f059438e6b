"""`filtax reproduce` as a person meets it: what is absent, what is interrupted, and what was lost."""

import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import pytest

from command import filtax, sentence
from thesis import experiment, find, runner


@pytest.fixture
def bare(monkeypatch, tmp_path):
    """A machine without data sets."""
    for name in ("FILTAX_DATA", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "empty"))
    return tmp_path


def test_what_has_no_data_is_skipped_before_the_others_run(bare):
    ended = filtax("reproduce", "ewma", "ridge", "uci-corrupted", home=bare)
    assert ended.returncode == 2
    first, second, *after = ended.stderr.splitlines()
    assert first.startswith("filtax: ewma is skipped: data set djia: ")
    assert "get it from" in first
    assert second.startswith("filtax: uci-corrupted is skipped: data set ")
    assert "So it is with " in second
    assert after[0].startswith("ridge: 100")
    assert "holds" in ended.stdout
    page = (bare / "out/reproduce/report.html").read_text()
    assert 'id="ridge-quick-0"' in page
    assert "ewma-quick" not in page


def test_where_nothing_can_run_a_sentence_is_all(bare):
    assert "ewma is skipped" in sentence(filtax("reproduce", "ewma", home=bare), 2)
    assert not (bare / "out/reproduce/report.html").exists()


@pytest.mark.parametrize(("error", "code"), [(KeyboardInterrupt, 130), (RuntimeError, 1)])
def test_what_was_done_before_an_end_is_in_the_report(bare, monkeypatch, error, code):
    def stop(*_):
        raise error

    stopped = dataclasses.replace(find("segments"), run=stop)
    monkeypatch.setattr(runner, "find", lambda name: stopped if name == "segments" else experiment.find(name))
    ended = filtax("reproduce", "ridge", "segments", home=bare)
    assert ended.returncode == code
    assert 'id="ridge-quick-0"' in (bare / "out/reproduce/report.html").read_text()
    assert "Report: " in ended.stderr


ROOT = Path(__file__).parents[2]
RUN = "import sys; from filtax.cli import run; sys.exit(run(['reproduce', *sys.argv[1:]]))"


@pytest.mark.parametrize(
    ("package", "folder", "code"),
    [("src/filtax", "elsewhere", 2), ("lib/site/filtax", ".", 2), ("lib/site/filtax", "lib", 1)],
    ids=["a clone", "an unpacked source distribution", "a wheel alone"],
)
def test_where_the_experiments_are_looked_for(tmp_path, package, folder, code):
    """Beside the source tree, else where Python finds them; where they are not, a sentence says how to get them."""
    for place, held in ((package, "src/filtax"), ("thesis", "thesis")):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).symlink_to(ROOT / held)
    (tmp_path / folder).mkdir(exist_ok=True)
    paths = {**os.environ, "PYTHONPATH": str((tmp_path / package).parent)}
    ended = subprocess.run(
        [sys.executable, "-c", RUN, "xyz"], cwd=tmp_path / folder, env=paths, capture_output=True, text=True
    )
    said = ended.stderr.strip()
    assert ("there is no experiment 'xyz'" in said, "get the repository" in said) == (code == 2, code == 1)
    assert ended.returncode == code
    assert "\n" not in said


def test_a_report_of_somebody_else_is_left_as_it_is(bare):
    (bare / "report.html").write_text("mine")
    assert "is there already" in sentence(filtax("reproduce", "ridge", "--out", ".", home=bare), 2)
    assert (bare / "report.html").read_text() == "mine"
