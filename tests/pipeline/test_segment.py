"""A series that is segmented: the folder it leaves, what is said of it, and how it goes on after a crash."""

import json

import numpy as np
import pyarrow.parquet
import pytest

from command import filtax, sentence
from filtax.pipeline import _segments
from tables import write

pytestmark = pytest.mark.x64
FILES = ("config.toml", "events.jsonl", "metrics.json", "predictions.parquet", "report.html")
ASKED = ("--target", "load", "--time", "when")


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("home")
    y = np.random.default_rng(1).normal(20.0, 1.0, size=220) + np.where(np.arange(220) < 160, 0.0, 8.0)
    text = write(folder / "k<w.csv", y)
    lines = (folder / "k<w.csv").read_text().splitlines(keepends=True)
    lines[8] = lines[8].split(",")[0] + ",much\n"
    (folder / "k<w.csv").write_text("".join(lines))
    assert text
    return folder


@pytest.fixture(scope="module")
def done(home):
    return filtax("segment", "k<w.csv", *ASKED, "--out", "out/cut", home=home)


def test_one_change_is_one_segment_more_and_one_alarm(done, home):
    """The oracle is how the series was made; row 8 cannot be read, so that rows count one less than lines."""
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["rows"], told["rejected"], told["missing"], told["period"]) == (219, 1, 0, None)
    assert [(part["row"], part["line"], part["rows"]) for part in told["segments"]] == [(1, 2, 159), (160, 162, 60)]
    rows = pyarrow.parquet.read_table(home / "out/cut/predictions.parquet").to_pydict()
    means = [np.mean(rows["load"][:159]), np.mean(rows["load"][159:])]
    np.testing.assert_allclose([part["mean"] for part in told["segments"]], means)
    np.testing.assert_allclose(rows["level"], np.repeat(means, [159, 60]))
    assert rows["segment"] == [1] * 159 + [2] * 60
    assert told["outliers"] == told["segments"][0]["differs"].get("level", []) == []
    np.testing.assert_allclose(told["segments"][1]["differs"]["level"], means, rtol=0.1)
    [alarm] = told["alarms"]
    assert alarm["change"] == alarm["began"]["row"] == 160
    assert 164 <= alarm["row"] <= 175
    assert told["segments"][1]["time"] == "2024-01-07T16:00:00"


def test_the_folder_is_that_of_a_run(done, home):
    root = home / "out/cut"
    assert {path.name for path in root.iterdir()} == {*FILES, "checkpoint"}
    events = [json.loads(line)["event"] for line in (root / "events.jsonl").read_text().splitlines()]
    assert events == ["rejected", "change", "segment", "segment"]
    words = json.loads((root / "metrics.json").read_text())["words"]
    assert words.startswith("load changed 1 time, with row 160 (line 162).")
    assert done.stderr.splitlines()[-2:] == [words, "Report: out/cut/report.html"]
    page = (root / "report.html").read_text()
    assert (page.count("<svg"), page.count('class="mark"')) == (2, 1)
    assert "k<w" not in page


def test_other_commands_read_it_or_say_why_not(done, home):
    before = {name: (home / "out/cut" / name).read_bytes() for name in FILES}
    (home / "out/cut/report.html").unlink()
    for command in ("report", "resume"):
        assert filtax(command, "out/cut", home=home).stdout == done.stdout
    assert {name: (home / "out/cut" / name).read_bytes() for name in FILES} == before
    for command in ("compare", "predict"):
        assert "was segmented, and no forecasts" in sentence(filtax(command, "out/cut", home=home), 2)
    assert "add --resume" in sentence(
        filtax("run", "--config", "out/cut/config.toml", "--out", "out/cut", home=home), 2
    )
    said = sentence(filtax("segment", "k<w.csv", *ASKED, "--on-error", "stop", home=home), 2)
    assert "k<w.csv:9:" in said


@pytest.mark.parametrize(
    ("at", "words", "then"),
    [
        ("open_source", "before a row was learned: there is nothing to go on from.", None),
        ("_segment", "before a checkpoint was written. To start again: filtax resume r", "resume"),
        ("write_whole", "the report is not written. To write it: filtax report r", "report"),
    ],
)
def test_an_interrupt_leaves_nothing_half_written_and_it_goes_on(at, words, then, done, home, tmp_path, monkeypatch):
    """With a file that has grown in between."""
    whole = (home / "k<w.csv").read_text()
    part = "".join(whole.splitlines(keepends=True)[:110]) if then == "resume" else whole
    (tmp_path / "k<w.csv").write_text(part)

    def stop(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(_segments, at, stop)
        left = filtax("segment", "k<w.csv", *ASKED, "--out", "r", home=tmp_path)
    assert (left.returncode, left.stdout) == (130, "")
    assert left.stderr.strip().endswith(words)
    assert not list(tmp_path.rglob("*.partial"))
    (tmp_path / "k<w.csv").write_text(whole)
    asked = (then, "r") if then else ("segment", "k<w.csv", *ASKED, "--out", "r")
    again = filtax(*asked, home=tmp_path)
    assert (again.returncode, again.stdout) == (0, done.stdout), again.stderr
    (tmp_path / "k<w.csv").write_text(whole.replace("00:00,2", "00:00,3", 1))
    assert "has changed since it was read" in sentence(filtax("resume", "r", home=tmp_path), 3)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("y\n1\n", "1 reading; it takes 2 to 20000"),
        ("y\n" + "NA\n" * 9, "is empty in all rows"),
        ("y\na\nb\n", "holds no numbers"),
        ("y\n" + "1\n" * 20_001, "more than 20000 readings"),
    ],
)
def test_what_cannot_be_segmented_is_refused(text, words, tmp_path):
    (tmp_path / "t.csv").write_text(text)
    assert words in sentence(filtax("segment", "t.csv", "--target", "y", home=tmp_path), 2)
    assert not (tmp_path / "out/segment-t/config.toml").exists()


def test_neighbours_that_are_correlated_are_said_to_be(tmp_path):
    y, rng = [0.0], np.random.default_rng(4)
    for noise in rng.normal(size=399).tolist():
        y.append(0.8 * y[-1] + noise)
    (tmp_path / "t.csv").write_text("y\n" + "".join(f"{value!r}\n" for value in y))
    done = filtax("segment", "t.csv", "--target", "y", home=tmp_path)
    assert 0.25 < json.loads(done.stdout)["correlation"] < 0.8
    assert "use `filtax run`" in done.stderr


def test_gross_errors_are_no_alarms(home):
    """The alarms are those of the same readings without the two errors."""
    y = np.random.default_rng(3).normal(size=400) + np.repeat([0.0, 6.0], 200)
    y[[150, 320]] = 60.0
    (home / "gross.csv").write_text("load\n" + "".join(f"{each}\n" for each in y))
    told = json.loads(filtax("segment", "gross.csv", "--target", "load", "--out", "out/gross", home=home).stdout)
    assert [each["row"] for each in told["outliers"]] == [151, 321]
    assert [alarm["began"]["row"] for alarm in told["alarms"]] == [201]
