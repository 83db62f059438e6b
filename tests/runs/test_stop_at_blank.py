"""`--on-bad stop` ends a run at a row without a target, keeps the rows before it, and goes on when it is filled in."""

import json

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from command import filtax, sentence
from filtax.io import InputError
from filtax.runs import Config, carry_on, open_run

pytestmark = pytest.mark.x64
ROWS = 90
FORMS = {
    "numbers": ({}, lambda t: f"{np.sin(t):.4f}"),
    "labels": ({"task": "classify"}, lambda t: ("ash", "oak")[t % 3 == 0]),
    "late": ({"delay": 4}, lambda t: f"{np.sin(t):.4f}"),
    "timed": ({"time": "t"}, lambda t: f"{np.sin(t):.4f}"),
    "series": ({"key": "k", "time": "t"}, lambda t: f"{np.sin(t):.4f}"),
}


def table(value, blank=()):
    rows = [f"{t},{'ab'[t % 2]},{(t * 5) % 7},{'' if t in blank else value(t)}\n" for t in range(ROWS)]
    return "t,k,x,y\n" + "".join(rows)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("block", [32, 128])
def test_a_run_stops_at_a_row_without_a_target_and_goes_on_bit_for_bit(tmp_path, form, block):
    given, value = FORMS[form]
    path = tmp_path / "t.csv"
    config = Config(str(path), "y", **{"task": "regress", **given}, method="LG+C-Static", on_bad="stop", block=block)
    path.write_text(table(value, blank=(70, 80)))
    with pytest.raises(InputError, match=r"t\.csv:72:8: y: there is no target\. Fill it in, or .* --on-bad reject\.$"):
        carry_on(config, tmp_path / "run")
    assert open_run(tmp_path / "run").rows == 70
    path.write_text(table(value))
    assert carry_on(Config.read(tmp_path / "run"), tmp_path / "run").rows == ROWS
    carry_on(config, tmp_path / "whole")
    parted, whole = (np.concatenate(list(open_run(tmp_path / name).records())) for name in ("run", "whole"))
    assert parted.tobytes() == whole.tobytes()


def test_rows_that_have_no_target_yet_end_a_run_that_stops_and_are_forecast_else(tmp_path):
    (tmp_path / "t.csv").write_text(table(FORMS["numbers"][1], blank=range(80, ROWS)))
    asked = ("run", "t.csv", "--target", "y", "--features", "x", "--method", "LG+C-Static", "--block", 64)
    stopped = filtax(*asked, "--on-bad", "stop", "--out", "stopped", home=tmp_path)
    assert stopped.returncode == 2
    assert stopped.stderr.splitlines()[-1] == (
        "filtax: t.csv:82:8: y: there is no target. Fill it in, or have such rows kept and not learned (a run "
        "forecasts them): --on-bad reject. The rows before it are kept; to go on: filtax resume stopped."
    )
    again = filtax("resume", "stopped", home=tmp_path)
    assert again.returncode == 2
    assert "t.csv:82:8: y: there is no target." in again.stderr.splitlines()[-1]
    done = filtax(*asked, "--out", "run", home=tmp_path)
    assert "80 rows learned, 10 without a target, 0 left out" in done.stderr
    events = [json.loads(line) for line in (tmp_path / "run" / "events.jsonl").read_text().splitlines()]
    assert [event["line"] for event in events if event["event"] == "blank"] == list(range(82, 92))
    assert np.isfinite(np.concatenate(list(open_run(tmp_path / "run").records()))["forecast"][80:]).all()
    # a forecast needs no target, and what cannot be read ends it
    (tmp_path / "next.csv").write_text("x,y\n1,\n2,\n")
    told = filtax("predict", "run", "next.csv", "--on-bad", "stop", home=tmp_path)
    assert (told.returncode, len(told.stdout.splitlines())) == (0, 3)
    (tmp_path / "next.csv").write_text("x,y\n1,\nlots,\n")
    ended = filtax("predict", "run", "next.csv", "--on-bad", "stop", home=tmp_path)
    assert (ended.returncode, len(ended.stdout.splitlines())) == (2, 2)
    assert "next.csv:3:1: x: 'lots' is not a number" in ended.stderr


def test_a_series_that_is_cut_stops_too(tmp_path):
    (tmp_path / "t.csv").write_text(table(FORMS["numbers"][1], blank=(40,)))
    asked = ("segment", "t.csv", "--target", "y")
    assert "t.csv:42:8: y: there is no target." in sentence(filtax(*asked, "--on-bad", "stop", home=tmp_path), 2)
    assert filtax(*asked, home=tmp_path).returncode == 0


def test_a_parquet_is_not_promised_to_go_on(tmp_path):
    """It is written anew when it is repaired: a run that has read the one before refuses to go on with it."""
    y = [None if t == 80 else float(np.sin(t)) for t in range(ROWS)]
    rows = pyarrow.table({"x": [float(t % 7) for t in range(ROWS)], "y": y})
    pyarrow.parquet.write_table(rows, tmp_path / "t.parquet")
    asked = ("run", "t.parquet", "--target", "y", "--method", "LG+C-Static", "--block", 64)
    said = sentence(filtax(*asked, "--on-bad", "stop", "--out", "stopped", home=tmp_path), 2)
    assert said.endswith("a repaired Parquet is read anew; of these rows: filtax report stopped.")
