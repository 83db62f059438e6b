"""The last line of a run: rows that were learned, rows without a target, rows left out; and tasks that are refused."""

import json
import re
from time import process_time

import numpy as np
import pytest

from command import filtax, sentence
from filtax.io import open_table
from filtax.runs import Config
from filtax.runs.blocks import blocks, picked

pytestmark = pytest.mark.x64
QUICK = ("--method", "LG+C-Static", "--block", 64, "--out", "run")


def test_rows_without_a_target_are_counted_apart(tmp_path):
    y = np.round(np.random.default_rng(0).normal(size=60), 3).astype(str)
    y[[4, 30, 31]] = ["", "NA", "nan"]
    y[50] = "oops"
    (tmp_path / "t.csv").write_text("t,y\n" + "".join(f"{t},{value}\n" for t, value in enumerate(y)))
    done = filtax("run", "t.csv", "--target", "y", "--time", "t", *QUICK, home=tmp_path)
    assert "\n56 rows learned, 3 without a target, 1 left out, " in done.stderr
    found = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert (found["rows"], found["blank"], found["rejected"]) == (59, 3, 1)
    assert "<b>3</b>without a target" in (tmp_path / "run" / "report.html").read_text()
    events = [json.loads(line) for line in (tmp_path / "run" / "events.jsonl").read_text().splitlines()]
    told = [
        [event[name] for name in ("file", "line", "column", "reason")] for event in events if event["event"] == "blank"
    ]
    assert told == [["t.csv", line, column, "there is no target"] for line, column in ((6, 3), (32, 4), (33, 4))]
    again = filtax("resume", "run", home=tmp_path)
    assert "56 rows learned, 3 without a target, 1 left out" in again.stderr
    assert "no checkpoint" not in again.stderr
    for manifest in (tmp_path / "run" / "checkpoint").glob("*.json"):
        manifest.unlink()
    anew = filtax("resume", "run", home=tmp_path)
    assert "There is no checkpoint in run: the run starts anew." in anew.stderr
    assert "56 rows learned, 3 without a target, 1 left out" in anew.stderr


@pytest.mark.parametrize(
    ("name", "text", "columns"),
    [
        ("t.csv", 'when,"a, b",y\r1,"é, x",\r2,"z",1\r3,"",NA\r', [10, 6]),
        ("t.tsv", "y\twhen\n\t1\n1\t2\nnan\t3\n", [1, 1]),
        ("t.jsonl", '{"when": 1, "y": null}\n{"when": 2, "y": 1}\n{"when": 3}\n', [13, 1]),
        ("v.jsonl", '{"s": "y", "y": null}\n{"y" : 2}\n{"s": "a", "\\u0079": null}\n', [12, 12]),
    ],
)
def test_the_place_of_a_target_that_is_missing(tmp_path, name, text, columns):
    """Characters from 1, whatever ends a line and however fields are written; the row, where it is not there."""
    (tmp_path / name).write_bytes(text.encode())
    cut = list(blocks(open_table(tmp_path / name, target="y", types={"y": "number"}), 2, [], eager=False))
    found = [(block, row) for block in cut for row in range(block.rows) if np.isnan(block.numbers["y"][row])]
    assert [block.place(row, "y") for block, row in found] == columns
    assert [picked(block, np.array([row])).place(0, "y") for block, row in found] == columns


@pytest.mark.parametrize("size", [3, 7, 40])
def test_a_place_in_blocks_of_several_chunks(tmp_path, size):
    """Every row has another one: whatever the source reads at a time, and a block holds."""
    rows = [f"{'x' * (1 + 7 * t % 11)},{'' if t % 3 else t}" for t in range(40)]
    for name, part in (("a.csv", rows[:17]), ("b.csv", rows[17:])):
        (tmp_path / name).write_text("x,y\n" + "\n".join(part) + "\n")
    table = open_table(tmp_path / "*.csv", target="y", types={"y": "number"}, block=64)
    found = [block.place(row, "y") for block in blocks(table, size, [], eager=False) for row in range(block.rows)]
    assert found == [row.index(",") + 2 for row in rows]


def test_a_place_is_found_without_a_look_through_the_block(tmp_path):
    """Lines that end in one of the two are not searched for the other: 60,000 places in a block of a megabyte."""
    for end in ("\n", "\r"):
        (tmp_path / "t.csv").write_text("x,y" + end + f"123456789012,{end}" * 60_000)
        [block] = blocks(open_table(tmp_path / "t.csv", target="y", block=2**20), 60_000, [], eager=False)
        began = process_time()
        assert {block.place(row, "y") for row in range(block.rows)} == {14}
        assert process_time() - began < 10.0


def test_without_features_a_season_is_still_a_baseline(tmp_path):
    y = 5.0 * np.sin(np.arange(96) * np.pi / 12.0) + np.random.default_rng(1).normal(size=96)
    hours = np.datetime64("2024-01-01T00") + np.arange(96)
    (tmp_path / "t.csv").write_text(
        "t,y\n" + "".join(f"{hour}:00,{value}\n" for hour, value in zip(hours, y, strict=True))
    )
    done = filtax("run", "t.csv", "--target", "y", "--time", "t", "--no-features", *QUICK, home=tmp_path)
    assert "seasonal-naive(24)" in done.stdout
    assert "loses to seasonal-naive(24) on mae" in done.stdout
    assert filtax("resume", "run", home=tmp_path).stdout == done.stdout


def test_labels_that_are_missing_are_no_labels_and_a_nameless_column_is_no_row(tmp_path):
    kinds = ["oak", "elm"] * 50
    kinds[7] = ""
    kinds[80] = "ash"  # behind the first block, which made room for two: an event of its own
    rows = "".join(f"{i % 3},,{kind}\n" for i, kind in enumerate(kinds))
    (tmp_path / "t.csv").write_text("a,,y\n" + rows)
    done = filtax("run", "t.csv", "--target", "y", *QUICK, home=tmp_path)
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in (tmp_path / "run" / "events.jsonl").read_text().splitlines()]
    assert [event["reason"] for event in events if event["event"] == "rejected"] == ["the column has no name"]
    assert [event["label"] for event in events if event["event"] == "unexpected label"] == ["ash"]
    assert "99 rows learned, 1 without a target, 0 left out" in done.stderr


def test_a_task_that_is_not_known_is_refused_with_all_that_are(tmp_path):
    (tmp_path / "t.csv").write_text("y\n1\n2\n")
    said = sentence(filtax("run", "t.csv", "--target", "y", "--task", "segmnt", home=tmp_path), 2)
    assert said.endswith("it must be one of auto, regress, classify, segment.")


def test_segment_as_a_task_refuses_what_it_does_not_use(tmp_path):
    (tmp_path / "t.csv").write_text("y\n" + "1\n2\n" * 30)
    asked = ("run", "t.csv", "--task", "segment")
    said = sentence(filtax(*asked, "--target", "y", "--horizon", 3, "--time", "y", "--delay", 1, home=tmp_path), 2)
    assert said.endswith("leave out --delay, --horizon.")
    assert "--target is missing" in sentence(filtax(*asked, home=tmp_path), 2)
    assert "leave it out" in sentence(filtax(*asked, "--target", "y", "--print", home=tmp_path), 2)
    said = sentence(filtax("tune", "t.csv", "--target", "y", "--task", "segment", home=tmp_path), 2)
    assert "use `filtax segment`" in said
    with pytest.raises(ValueError, match="leave out --features, --no-features"):
        Config("t.csv", "y", task="segment", features=("x",), made=False)


def test_a_run_that_stops_at_a_bad_row_says_how_it_goes_on(tmp_path):
    rows = [f"{t},{(t * 7) % 5}.5\n" for t in range(40)]
    (tmp_path / "t.csv").write_text("t,y\n" + "".join(rows[:30]) + "30,x\n")
    asked = ("run", "t.csv", "--target", "y", "--time", "t", "--on-bad", "stop", *QUICK)
    ended = filtax(*asked, home=tmp_path)
    said = ended.stderr.splitlines()[-1]
    assert ended.returncode == 2
    assert said.startswith("filtax: t.csv:32:4: y: 'x' is not a number.")
    assert said.endswith("to go on: filtax resume run.")
    (tmp_path / "t.csv").write_text("t,y\n" + "".join(rows))
    assert "40 rows learned, 0 left out" in filtax("resume", "run", home=tmp_path).stderr


def test_a_run_that_most_rows_teach_nothing_says_so_and_one_has_a_folder_of_its_own(tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n" + "".join(f"{t},{'' if t else 1}\n" for t in range(40)))
    done = filtax("run", "t.csv", "--target", "y", "--task", "regress", *QUICK, home=tmp_path)
    assert "Most rows have no target, and taught nothing: is it the column that you meant?" in done.stderr
    for out in ("", ".", tmp_path):
        refused = filtax("run", "t.csv", "--target", "x", "--out", out, home=tmp_path)
        assert "name a folder of its own" in sentence(refused, 2)
    never = filtax("run", "t.csv", "--target", "x", "--every", 0, home=tmp_path)
    assert "--every 0: it must be 1 or more rows" in sentence(never, 2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "t.csv"]


HUGE = ("99999999999", "9223372036854775808", "1" + "0" * 400)
RUN = ("run", "t.csv", "--target", "y")
TIMED = (*RUN, "--time", "t")


@pytest.mark.parametrize(
    ("asked", "most"),
    [
        ((*TIMED, "--horizon"), "10000 steps"),
        ((*RUN, "--delay"), "1000000 rows"),
        ((*TIMED, "--delay"), "1000000 rows"),
        ((*RUN, "--block"), "1000000 rows"),
        ((*RUN, "--every"), "1000000000000 rows"),
        (("tune", *TIMED[1:], "--horizon"), "10000 steps"),
        (("tune", *RUN[1:], "--delay"), "1000000 rows"),
        (("tune", *RUN[1:], "--budget"), "1000000"),
        (("tune", *RUN[1:], "--seed"), "4294967295"),
        (("demo", "--hours"), "1000000"),
        (("reproduce", "ridge", "--jobs"), "256"),
    ],
)
def test_a_number_that_no_memory_holds_is_refused_in_a_sentence(asked, most, tmp_path):
    """It ended in a MemoryError of 745 GiB, an OverflowError or a TypeError."""
    for number in HUGE[most.startswith("1000000000000") :]:
        said = sentence(filtax(*asked, number, home=tmp_path), 2)
        assert asked[-1] in said
        assert re.search(rf"(at most|less than or equal to) {most}\b", said)
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("command", [("demo",), ("bandit", "log.csv"), ("reproduce", "ridge")])
def test_a_seed_is_a_number_of_64_bits(command, tmp_path):
    for number in HUGE[1:]:
        assert "'--seed'" in sentence(filtax(*command, "--seed", number, home=tmp_path), 2)


@pytest.mark.parametrize("entry", ["prior = nan", "prior = inf", "prior = 0.0", "prior = -1.0", "prior = 1e300"])
def test_a_prior_in_a_file_must_be_a_variance(entry, tmp_path):
    (tmp_path / "c.toml").write_text(f"source = 't.csv'\ntarget = 'y'\n{entry}\n")
    said = sentence(filtax("run", "--config", "c.toml", home=tmp_path), 2)
    assert "must lie above 0 and at most at 1e100" in said


@pytest.mark.parametrize("before", [0, 30])
def test_many_bad_rows_are_counted_and_the_first_thousand_are_told(before, tmp_path):
    """They were held until a row was learned; where the table has grown they are counted once."""
    rows = ["x,y\n", *[f"{t % 7},{3 * (t % 7)}\n" for t in range(before)]]
    (tmp_path / "t.csv").write_text("".join([*rows, *70_000 * ["bad\n"], "1,3\n", *40_000 * ["1,?\n"]]))
    run = ("t.csv", "--target", "y", "--out", "out")
    seen = []
    for command in (("run", *run, "--method", "LG+C-Static"), ("resume", "out")):
        ended = filtax(*command, home=tmp_path)
        assert ended.returncode == 0, ended.stderr
        assert "110000 left out" in ended.stderr
        seen.append(json.loads((tmp_path / "out/metrics.json").read_text())["rows"])
        events = [json.loads(line) for line in (tmp_path / "out/events.jsonl").read_text().splitlines()]
        told = [event["line"] for event in events if event["event"] == "rejected"]
        assert told[:1000] == list(range(before + 2, before + 1002))
        assert told == sorted(set(told))
        if command[0] == "run":
            assert f"The first that was left out: t.csv:{before + 2}:4: 1 field" in ended.stderr
        with open(tmp_path / "t.csv", "a") as file:
            file.writelines(f"{t % 7},{3 * (t % 7)}\n" for t in range(60))
    assert seen == [before + 1, before + 61]
    ended = filtax("predict", "out", "t.csv", home=tmp_path)
    assert "110000 could not be read" in ended.stderr


def test_many_bad_rows_of_a_series_that_is_cut(tmp_path):
    """A checkpoint held them all; one that is too large cannot be read."""
    good = [f"{t % 7}\n" for t in range(40)]
    (tmp_path / "t.csv").write_text("".join(["y\n", *good, *9000 * ["x,x\n"], *good, *3000 * ["x,x\n"]]))
    for command in (("segment", "t.csv", "--target", "y", "--out", "out"), ("resume", "out")):
        ended = filtax(*command, home=tmp_path)
        assert ended.returncode == 0, ended.stderr
        assert json.loads(ended.stdout)["left_out"] == 12_000
        manifest = json.loads(max((tmp_path / "out/checkpoint").glob("*.json")).read_text())
        assert [each["line"] for each in manifest["note"]["rejected"]] == list(range(42, 1042))
        with open(tmp_path / "t.csv", "a") as file:
            file.writelines(good)
