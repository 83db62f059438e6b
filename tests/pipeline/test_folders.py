"""Folders of runs: what is left where nothing was begun, and a source that is relative to where the run began."""

import json
from pathlib import Path

import numpy as np
import pytest

from command import filtax, sentence

pytestmark = pytest.mark.x64
ASKED = ("--target", "y", "--task", "regress", "--block", 64)


@pytest.fixture
def home(tmp_path):
    (tmp_path / "t.csv").write_text(table(100))
    return tmp_path


def table(rows):
    x = np.random.default_rng(0).normal(size=rows).round(3)
    return "x,y\n" + "".join(f"{v},{2 * v + 0.1:.4f}\n" for v in x)


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "t.csv", "--target", "y", "--method", "NOPE"),
        ("run", "no.csv", "--target", "y"),
        ("run", "t.csv", "--target", "z"),
        ("segment", "no.csv", "--target", "y"),
    ],
)
def test_what_was_mistyped_leaves_no_folder(arguments, home):
    sentence(filtax(*arguments, "--out", "deep/run", home=home), 2)
    assert [each.name for each in home.iterdir()] == ["t.csv"]


@pytest.mark.parametrize("command", ["run", "segment", "tune"])
@pytest.mark.parametrize(
    "name",
    [
        "metrics.json",
        "report.html",
        "predictions.parquet",
        "events.jsonl",
        "tuned.toml",
        "checkpoint/model.pt",
        "a.txt",
    ],
)
def test_a_folder_of_somebody_else_is_left_as_it_is(command, name, home):
    """What was there, a symbolic link among it, was overwritten without a word."""
    (home / "kept").write_text("mine")
    (home / "out" / name).parent.mkdir(parents=True)
    (home / "out" / name).symlink_to(home / "kept")
    how = ("--method", "LG+C-ACI(q=0.1)") if command == "tune" else ()
    said = sentence(filtax(command, "t.csv", "--target", "y", *how, "--out", "out", home=home), 2)
    assert said.startswith("filtax: out holds files, such as ")
    assert said.endswith("and nothing that filtax began; name a folder that is empty or new.")
    left = [path.relative_to(home / "out") for path in (home / "out").rglob("*")]
    assert {*left} == {Path(name), *Path(name).parents} - {Path()}
    assert (home / "kept").read_text() == "mine"


def test_a_file_called_lock_and_what_a_linked_checkpoint_names_are_left_as_they_are(home):
    (home / "out/checkpoint").mkdir(parents=True)
    (home / "out/checkpoint/lock").write_text("precious")
    assert "is no lock of filtax" in sentence(filtax("run", "t.csv", *ASKED, "--out", "out", home=home), 2)
    assert (home / "out/checkpoint/lock").read_text() == "precious"
    (home / "other").mkdir()
    (home / "linked").mkdir()
    (home / "linked/checkpoint").symlink_to(home / "other")
    assert "remove the link" in sentence(filtax("run", "t.csv", *ASKED, "--out", "linked", home=home), 2)
    assert not any((home / "other").iterdir())


def test_a_run_writes_no_file_that_a_link_in_its_folder_names(home):
    """Of a file that is written whole the link is replaced; one that grows with the run is refused."""
    (home / "out").mkdir()
    (home / "out/.gitkeep").touch()
    assert filtax("run", "t.csv", *ASKED, "--out", "out", home=home).returncode == 0
    (home / "t.csv").write_text(table(150))
    kept = home / "kept"
    for name in ("metrics.json", "report.html", "predictions.parquet", "events.jsonl", "checkpoint/lock"):
        for link in (home / "out" / name, home / "out" / f"{name}.partial"):
            content = link.read_bytes() if link.exists() else b"mine"
            kept.write_bytes(content)
            link.unlink(missing_ok=True)
            link.symlink_to(kept)
            ended = filtax("resume", "out", home=home)
            assert kept.read_bytes() == content
            if link.name in ("events.jsonl", "lock"):
                assert "symbolic link" in sentence(ended, 4)
                link.unlink()
                link.write_bytes(content)
            else:
                assert ended.returncode == 0, ended.stderr


def test_a_run_that_was_killed_before_its_configuration_was_written_starts_again(home):
    (home / "run/checkpoint").mkdir(parents=True)
    (home / "run/checkpoint/lock").touch()
    (home / "run/config.toml.partial").write_text("source =")
    for command in ("resume", "report", "predict"):
        said = sentence(filtax(command, "run", home=home), 3)
        assert "before a row was learned; start it again with `filtax run SOURCE --target Y --out run`" in said
    ended = filtax("run", "t.csv", *ASKED, "--out", "run", "--resume", home=home)
    assert ended.returncode == 0, ended.stderr
    assert "100 rows learned" in ended.stderr
    assert "Name the folder of a run" in sentence(filtax("resume", "elsewhere", home=home), 3)


@pytest.mark.parametrize("source", ["t.csv", "t*.csv"])
def test_a_relative_source_is_found_from_anywhere(source, home):
    """Learned on to its new end, with the names that it had, and refused in a sentence where it is gone."""
    assert filtax("run", source, *ASKED, "--out", "out/run", home=home).returncode == 0
    (home / "t.csv").write_text(table(150))
    (home / "away").mkdir()
    ended = filtax("resume", "../out/run", home=home / "away")
    assert ended.returncode == 0, ended.stderr
    assert "150 rows learned" in ended.stderr
    (home / "whole").mkdir()
    (home / "whole/t.csv").write_text(table(150))
    assert filtax("run", source, *ASKED, "--out", "run", home=home / "whole").returncode == 0
    for name in ("predictions.parquet", "events.jsonl", "checkpoint/rows.bin"):
        assert (home / "out/run" / name).read_bytes() == (home / "whole/run" / name).read_bytes()
    (home / "t.csv").rename(home / "away/t.csv")
    assert filtax("resume", "../out/run", home=home / "away").returncode == 0  # whoever moved it goes there
    (home / "away/t.csv").unlink()
    said = sentence(filtax("resume", "../out/run", home=home / "away"), 3)
    assert f"its source, {source}, is neither in .., where the run began, nor here" in said


def test_a_run_is_resumed_through_links(home):
    """Its source lies where the run began, not where a link to its folder does; a folder may have two names."""
    (home / "deep/er/away").mkdir(parents=True)
    (home / "link").symlink_to(home / "deep/er")
    assert filtax("run", "t.csv", *ASKED, "--out", "link/run", home=home).returncode == 0
    (home / "deep/other").symlink_to(home / "link/run")
    for rows, name in ((150, "../run"), (200, "../../../link/run"), (250, "../../other")):
        (home / "t.csv").write_text(table(rows))
        ended = filtax("resume", name, home=home / "deep/er/away")
        assert f"{rows} rows learned" in ended.stderr, ended.stderr


def test_a_series_to_be_cut_is_found_too_and_its_last_line_read_again(home):
    lines = ["y\n", *(f"{v:.3f}\n" for v in np.sin(37.0 * np.arange(60)))]
    rejected = lambda: json.loads((home / "cut/metrics.json").read_text())["rejected"]
    (home / "s.csv").write_text("".join(lines[:50]) + "8.5,")
    assert filtax("segment", "s.csv", "--target", "y", "--out", "cut", home=home).returncode == 0
    assert rejected() == 1
    (home / "s.csv").write_text("".join(lines))
    (home / "away").mkdir()
    ended = filtax("resume", "../cut", home=home / "away")
    assert "60 rows read" in ended.stderr
    assert rejected() == 0


def test_a_line_that_was_not_complete_is_no_longer_rejected_when_it_is(home):
    whole = table(120)
    (home / "t.csv").write_text(whole[: whole.index("\n", 1200) + 4])
    first = filtax("run", "t.csv", *ASKED, "--out", "run", home=home)
    assert "1 rejected" in first.stderr
    assert "1 field where the header has 2" in (home / "run/report.html").read_text()
    (home / "t.csv").write_text(whole)
    ended = filtax("resume", "run", home=home)
    assert "120 rows learned, 0 rejected" in ended.stderr
    assert "rejected" not in (home / "run/events.jsonl").read_text()
    assert "1 field where the header has 2" not in (home / "run/report.html").read_text()
    assert "120 rows learned, 0 rejected" in filtax("resume", "run", home=home).stderr


def test_forecasts_are_written_in_a_form_that_their_name_says(home):
    for name, what in (("told.xls", "ends with .xls"), ("told", "has no ending")):
        said = sentence(filtax("predict", "run", "t.csv", "--out", name, home=home), 2)
        assert what in said
        assert ".csv or .parquet" in said


def test_a_configuration_alone_does_not_make_files_ours(home):
    filtax("run", "t.csv", *ASKED, "--out", "run", home=home)
    (home / "copy").mkdir()
    (home / "copy" / "config.toml").write_bytes((home / "run" / "config.toml").read_bytes())
    (home / "copy" / "metrics.json").write_text("mine")
    said = sentence(filtax("run", "t.csv", *ASKED, "--out", "copy", "--resume", home=home), 2)
    assert said.startswith("filtax: copy holds metrics.json and no checkpoint")
    assert (home / "copy" / "metrics.json").read_text() == "mine"


def test_forecasts_never_replace_the_table_or_a_file_of_the_run(home):
    filtax("run", "t.csv", *ASKED, "--out", "run", home=home)
    before = (home / "t.csv").read_bytes()
    for out in ("t.csv", "run/other.csv"):
        sentence(filtax("predict", "run", "t.csv", "--out", out, home=home), 2)
    assert (home / "t.csv").read_bytes() == before


def test_a_demo_touches_no_file_that_no_demo_left(home):
    (home / "out").mkdir()
    (home / "out" / "demo.png").symlink_to(home / "t.csv")
    sentence(filtax("demo", "--hours", "336", "--out", "out", home=home), 2)
    (home / "out" / "demo.png").unlink()
    for _ in range(2):
        assert filtax("demo", "--hours", "336", "--out", "out", home=home).returncode == 0
    (home / "out" / "demo" / "notes.txt").write_text("mine")
    sentence(filtax("demo", "--hours", "336", "--out", "out", home=home), 2)
    assert (home / "out" / "demo" / "notes.txt").read_text() == "mine"
