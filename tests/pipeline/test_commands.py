"""The commands as a person meets them: what is printed, where, how they exit, what they leave."""

from pathlib import Path

import numpy as np
import pytest

from command import filtax, sentence
from filtax import io as store

pytestmark = pytest.mark.x64


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("home")
    rng = np.random.default_rng(0)
    y = 50.0 + 5.0 * np.sin(2 * np.pi * np.arange(300) / 24) + rng.normal(size=300)
    hours = np.datetime64("2024-01-01T00:00") + 60 * np.arange(300)
    text = "when,load\n" + "".join(f"{h},{v:.4f}\n" for h, v in zip(hours, y, strict=True))
    (folder / "load.csv").write_text(text)
    return folder


@pytest.fixture(scope="module")
def done(home):
    return filtax("run", "load.csv", "--target", "load", "--time", "when", home=home)


def test_run_prints_a_table_a_verdict_and_where_the_report_is(done, home):
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["mae", "median", "rmse", "us/row"]
    assert [line.split()[0] for line in lines[1:4]] == [
        "filtax",
        "last-value",
        "seasonal-naive(24)",
    ]
    assert lines[-1].startswith("filtax ")
    assert "300 rows learned, 0 rejected" in done.stderr
    assert done.stderr.splitlines()[-1] == "Report: out/load/report.html"
    kept = {path.name for path in (home / "out" / "load").iterdir()}
    assert kept == {"config.toml", "predictions.parquet", "events.jsonl", "metrics.json", "checkpoint", "report.html"}


def test_a_run_is_not_overwritten_and_a_finished_one_resumes_to_the_same(done, home):
    said = sentence(filtax("run", "load.csv", "--target", "load", "--out", "out/load", home=home), 2)
    assert "--resume" in said
    before = (home / "out/load/predictions.parquet").read_bytes()
    again = filtax("run", "load.csv", "--target", "load", "--time", "when", "--out", "out/load", "--resume", home=home)
    assert (again.returncode, again.stdout) == (0, done.stdout.replace(done.stdout.split()[8], again.stdout.split()[8]))
    assert (home / "out/load/predictions.parquet").read_bytes() == before
    other = filtax("run", "load.csv", "--target", "when", "--out", "out/load", "--resume", home=home)
    assert "target" in sentence(other, 2)


def test_busy_is_4_changed_and_damaged_are_3(done, home):
    with store.lock(home / "out/load/checkpoint"):
        assert "is being written by process" in sentence(filtax("resume", "out/load", home=home), 4)
    text = (home / "load.csv").read_text()
    (home / "load.csv").write_text(text.replace("00:00,5", "00:00,6", 1))
    assert "has changed since it was read" in sentence(filtax("resume", "out/load", home=home), 3)
    (home / "load.csv").write_text(text)
    assert "holds no run" in sentence(filtax("report", "nowhere", home=home), 3)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nowhere.csv", "--target", "y"), "nowhere.csv"),
        (("load.csv", "--target", "laod"), "Did you mean 'load'"),
        (("load.csv", "--target", "load", "--horizon", "3"), "--time"),
        (("load.csv", "--target", "load", "--method", "LG+C-Statik"), "Static"),
        (("load.csv", "--target", "load", "--features", "load"), "--features load: it is the target"),
    ],
)
def test_what_cannot_be_read_is_2(arguments, words, home):
    assert words in sentence(filtax("run", *arguments, "--out", "out/bad", home=home), 2)


def test_measured_numbers_written_with_a_comma_are_no_labels(home):
    rows = [f"{i};{i // 7},{i % 7}\n" for i in range(100)]
    (home / "comma.csv").write_text("x;y\n" + "".join(rows))
    said = sentence(filtax("run", "comma.csv", "--target", "y", "--out", "out/comma", home=home), 2)
    assert "takes 100 values in the first 100 rows" in said
    assert "such as '0,0'" in said
    assert "1.5, not 1,5" in said
    (home / "names.csv").write_text("x,y\n" + "".join(f"{i},name{i}\n" for i in range(100)))
    said = sentence(filtax("run", "names.csv", "--target", "y", "--out", "out/names", home=home), 2)
    assert "--task classify" in said
    assert "1,5" not in said
    asked = ("--target", "y", "--task", "classify", "--out", "out/names")
    assert filtax("run", "names.csv", *asked, home=home).returncode == 0


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("rows", "unit"), [(1, 1.0), (40, 1e150)])
def test_a_run_of_one_row_and_one_of_huge_numbers_are_reported_in_peace(rows, unit, home):
    (home / f"{rows}.csv").write_text("x,y\n" + "".join(f"{i % 5},{(i % 7 - 3.5) * unit!r}\n" for i in range(rows)))
    done = filtax("run", f"{rows}.csv", "--target", "y", "--task", "regress", home=home)
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr


def test_standard_input_is_read_and_each_forecast_printed(done, home):
    text = (home / "load.csv").read_text()
    ended = filtax("run", "-", "--target", "load", "--time", "when", "--print", home=home, given=text)
    assert ended.returncode == 0, ended.stderr
    rows = ended.stdout.splitlines()
    assert rows[0] == "line,time,forecast,lower,upper,y"
    assert len(rows) == 301
    assert rows[1].startswith("2,2024-01-01T00:00")
    assert "seasonal-naive" in ended.stderr


def test_a_short_stream_is_learned(done, home):
    rows = (home / "load.csv").read_text().splitlines(keepends=True)[:13]
    asked = ("run", "-", "--target", "load", "--time", "when", "--print", "--delay", 12, "--out", "out/short")
    ended = filtax(*asked, home=home, given="".join(rows))
    assert ended.returncode == 0, ended.stderr
    assert len(ended.stdout.splitlines()) == 13
    assert "The first 50 rows of standard input are waited for" in ended.stderr.splitlines()[0]
    assert "12 rows learned" in ended.stderr


def test_who_interrupts_a_short_stream_is_given_what_has_come(home, monkeypatch):
    """As behind `tail -f`: the rows are there, and the end does not come."""
    from filtax.io import Table

    chunks = Table.__iter__

    def waiting(table):
        yield from chunks(table)
        raise KeyboardInterrupt

    monkeypatch.setattr(Table, "__iter__", waiting)
    text = "".join((home / "load.csv").read_text().splitlines(keepends=True)[:13])
    asked = ("run", "-", "--target", "load", "--time", "when", "--print", "--out", "out/cut-short")
    ended = filtax(*asked, home=home, given=text)
    assert (ended.returncode, len(ended.stdout.splitlines())) == (130, 13)
    assert ended.stderr.splitlines()[-1] == "Stopped. To write its report: filtax report out/cut-short"


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="a folder in which none can be made")
def test_a_folder_that_cannot_be_made_is_4(done, home):
    for asked in (("run", "load.csv", "--target", "load"), ("segment", "load.csv", "--target", "load")):
        said = sentence(filtax(*asked, "--out", "/proc/xx", home=home), 4)
        assert "cannot be made: name another folder" in said
    ended = filtax("predict", "out/load", "--out", "/proc/xx/next.csv", home=home)
    assert ended.returncode == 4, ended.stderr


def test_compare_and_report_read_what_is_there(done, home):
    ended = filtax("compare", "out/load", "out/load", home=home)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines()[0].split()[:3] == ["run", "method", "rows"]
    assert "out/load and out/load are equal on mae" in ended.stdout
    assert "Best" not in ended.stdout
    (home / "out/load/report.html").unlink()
    assert filtax("report", "out/load", home=home).returncode == 0
    assert (home / "out/load/report.html").exists()


@pytest.mark.nightly
def test_doctor_is_well(home):
    ended = filtax("doctor", home=home)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "self-test" in ended.stdout
    assert "BAD" not in ended.stdout
