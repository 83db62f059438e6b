"""What a run says of single rows and missing steps, and that its verdicts agree with each other."""

import json
import re
import shutil

import numpy as np
import pytest

from command import filtax
from filtax.runs import open_run
from filtax.runs.digest import digest
from filtax.runs.distrust import most_surprising
from filtax.runs.page import _changes
from filtax.runs.results import Run
from filtax.runs.steps import in_words

pytestmark = pytest.mark.x64
METHOD = "WoLF-MD(c=4)+NIG(form=covariance)+C-Static"


def write(path, y, skip=(), start="2024-01-01T00:00"):
    when = np.datetime64(start) + 60 * np.arange(len(y))
    kept = [t for t in range(len(y)) if t not in skip]
    path.write_text("when,load\n" + "".join(f"{when[t]},{y[t]:.4f}\n" for t in kept))


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Forty gross errors, the last the worst; five hours missing in one place and one in another."""
    folder = tmp_path_factory.mktemp("told")
    t = np.arange(900)
    y = 50.0 + 5.0 * np.sin(2 * np.pi * t / 24) + np.random.default_rng(0).normal(size=900)
    y[100:900:20] += 30.0 + t[100:900:20] / 10.0
    write(folder / "load.csv", y, skip=(205, 411, 412, 413, 414, 415))
    asked = ("--target", "load", "--time", "when", "--method", METHOD, "--out", "run")
    ended = filtax("run", "load.csv", *asked, home=folder)
    assert ended.returncode == 0, ended.stderr
    return folder, ended


def test_the_most_surprising_rows_are_listed_with_what_was_read_and_expected(home):
    folder, _ = home
    run = open_run(folder / "run")
    events = [event for event in run.events() if event["event"] == "distrusted"]
    shown = most_surprising(run, 25)
    assert len(events) > 25
    assert len(shown) == 25
    assert [e["probability"] for e in shown] == sorted(event["probability"] for event in events)[:25]
    worst = {"2024-02-06T16:00:00", "2024-02-05T20:00:00", "2024-02-05T00:00:00"}  # of 40, and each of another hour
    assert {event["time"] for event in shown[:2]} < worst
    assert shown[0]["time"] == "2024-02-06T16:00:00"
    records = np.concatenate(list(run.records()))
    for event in shown:
        own = records[event["row"] - 1]
        assert (event["line"], event["reading"]) == (own["line"], own["y"])
        assert (event["forecast"], event["trust"]) == (own["forecast"], own["trust"])
    page = (folder / "run/report.html").read_text()
    assert f"{len(events)} in all. Here are the 25 most surprising ones" in page
    for head in ("line", "time", "reading", "forecast", "its probability", "trust"):
        assert f"<th>{head}</th>" in page


def test_missing_hours_are_counted_and_placed(home):
    folder, ended = home
    words = "6 hours are missing in 2 gaps, the longest of 5 hours before 2024-01-18 08:00:00 (line 412)."
    assert "6 steps missing" in ended.stderr
    assert words in ended.stderr
    assert words in (folder / "run/report.html").read_text()
    metrics = json.loads((folder / "run/metrics.json").read_text())
    assert (metrics["missing"], metrics["gaps"]) == (6, 2)
    gaps = [event for event in open_run(folder / "run").events() if event["event"] == "gap"]
    assert [(event["row"], event["line"], event["missing"]) for event in gaps] == [(206, 207, 1), (411, 412, 5)]


@pytest.mark.parametrize("block", [32, 2048])
def test_gaps_are_those_of_each_series_however_rows_are_cut(block, tmp_path):
    rows = []
    for t in range(60):
        rows += [(t, "a")] * (t not in (20, 21)) + [(t, "b")] * (t >= 5 and t not in (41, 42, 43))
    when = np.datetime64("2024-01-01T00:00") + 60 * np.arange(60)
    (tmp_path / "t.csv").write_text("when,key,y\n" + "".join(f"{when[t]},{k},{(t * t) % 7}.5\n" for t, k in rows))
    asked = ("--target", "y", "--time", "when", "--key", "key", "--method", "LG+C-Static", "--block", block)
    ended = filtax("run", "t.csv", *asked, "--out", "run", home=tmp_path)
    assert ended.returncode == 0, ended.stderr
    gaps = [event for event in open_run(tmp_path / "run").events() if event["event"] == "gap"]
    assert [(event["key"], event["missing"], event["time"][8:13]) for event in gaps] == [
        ("a", 2, "01T22"),
        ("b", 3, "02T20"),
    ]
    assert "5 hours are missing in 2 gaps, the longest of 3 hours before 2024-01-02 20:00:00 of b" in ended.stderr


def test_trading_days_have_no_gaps(tmp_path):
    days = np.arange("2024-01-01", "2024-06-01", dtype="datetime64[D]")
    days = days[np.is_busday(days)]
    (tmp_path / "t.csv").write_text("day,y\n" + "".join(f"{d},{i % 7}.5\n" for i, d in enumerate(days)))
    ended = filtax("run", "t.csv", "--target", "y", "--time", "day", "--method", "LG+C-Static", home=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert "missing" not in ended.stderr


def test_the_words_about_steps_name_what_they_compare():
    """Beside "loses on median" nothing may claim to be better than every baseline by itself."""
    near = {"step": 1, "mae": 1.0, "coverage": 0.9, "baselines": {"last-value": 2.0}}
    assert in_words([near, {**near, "step": 2}]).endswith("; mae below that of every baseline at every step.")
    assert in_words([near, {**near, "step": 2, "mae": 2.0}]).endswith("; mae not below that of last-value at step 2.")


def test_of_runs_that_share_the_first_place_none_is_called_best_alone(home):
    folder, _ = home
    shutil.copytree(folder / "run", folder / "b")
    third = ("--method", "LG+C-ACI(q=1.0)", "--out", "c")
    assert filtax("run", "load.csv", "--target", "load", "--time", "when", *third, home=folder).returncode == 0
    two, three = (filtax("compare", *runs, home=folder).stdout for runs in (("run", "b"), ("c", "run", "b")))
    assert "run and b are equal on mae, median and rmse" in two
    assert "Best" not in two
    assert "Best on mae: run and b (" in three


def test_labels_that_surprised_are_listed_by_their_names(tmp_path):
    x = np.linspace(-3.0, 3.0, 400)[np.random.default_rng(0).permutation(400)]
    kind = np.where(x > 0.0, "yes", "no")
    kind[np.argmax(x)] = "no"
    six = ",".join(f"x{i}" for i in range(6))  # the same six times over, so that the forecasts are very sure
    rows = (f"{','.join([f'{a:.4f}'] * 6)},{b}\n" for a, b in zip(x, kind, strict=True))
    (tmp_path / "t.csv").write_text(f"{six},kind\n{''.join(rows)}")
    ended = filtax("run", "t.csv", "--target", "kind", "--method", "LG+C-Static", "--out", "run", home=tmp_path)
    assert ended.returncode == 0, ended.stderr
    shown = most_surprising(open_run(tmp_path / "run"), 5)
    assert [(event["line"], event["reading"], event["forecast"]) for event in shown[:1]] == [
        (np.argmax(x) + 2, "no", "yes")
    ]


def test_the_report_lists_the_latest_changes_and_says_of_how_many(home, monkeypatch):
    run = open_run(home[0] / "run")
    told, when = digest(run), "2024-01-02T00:00:00"
    for count, first in ((25, 1), (31, 7), (260, 236)):
        events = [{"event": "change", "row": row, "time": when} for row in range(1, count + 1)]
        monkeypatch.setattr(Run, "events", lambda self, events=events: iter(events))
        run.note["progress"]["changes"] = count
        text = _changes(run, told)
        rows = [int(row) for row in re.findall(r"<tr><td>(\d+)</td>", text)]
        assert rows == list(range(first, count + 1))
        assert (f"The latest 25 of {count}; all are in events.jsonl." in text) == (count > 25)
        assert "a trend that bends" in text
