"""`filtax predict`: what it says is what the run would have said next, and nothing is touched."""

import csv
import io

import numpy as np
import pyarrow.parquet
import pytest

from command import filtax, sentence
from filtax.runs import Config, carry_on, open_run
from filtax.runs.predictions import write_predictions

pytestmark = pytest.mark.x64
HOURS = np.datetime64("2024-01-01T00:00") + 60 * np.arange(400)


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


def snapshot(root):
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in root.rglob("*") if path.is_file()}


def timed(path, rows, target=True, start=0):
    y = 50.0 + 5.0 * np.sin(2 * np.pi * np.arange(400) / 24) + np.random.default_rng(0).normal(size=400)
    text = [f"{HOURS[t]},{float(y[t])!r}\n" if target else f"{HOURS[t]}\n" for t in range(start, rows)]
    path.write_text(("when,load\n" if target else "when\n") + "".join(text))


def columns(path, rows, head="x,day,y", start=0, words=None):
    rng = np.random.default_rng(1)
    x, day = rng.normal(size=400), rng.integers(0, 3, 400)
    y = 3.0 + 2.0 * x + day
    told = y.tolist() if words is None else [words[int(v > 4.0)] for v in y]
    values = {"x": x.tolist(), "day": ["abc"[d] for d in day], "y": told}
    names = head.split(",")
    path.write_text(
        head + "\n" + "".join(",".join(str(values[n][t]) for n in names) + "\n" for t in range(start, rows))
    )
    return x, day, y


@pytest.mark.parametrize("horizon", [1, 3])
def test_the_next_row_is_what_a_longer_run_says_of_it(horizon, tmp_path):
    timed(tmp_path / "old.csv", 300)
    asked = {"time": "when", "method": "LG+C-Static", "horizon": horizon, "block": 128}
    carry_on(Config(str(tmp_path / "old.csv"), "load", **asked), tmp_path / "run")
    before = snapshot(tmp_path / "run")
    timed(tmp_path / "all.csv", 310)
    timed(tmp_path / "future.csv", 310, target=False, start=300)
    known = filtax("predict", "run", "all.csv", home=tmp_path)
    blind = filtax("predict", "run", "future.csv", home=tmp_path)
    assert (known.returncode, blind.returncode) == (0, 0), known.stderr + blind.stderr
    assert snapshot(tmp_path / "run") == before
    assert "300 were not behind the end of the run" in known.stderr
    assert f"looks {horizon} step{'s' if horizon > 1 else ''} ahead" in blind.stderr
    known, blind = rows_of(known.stdout), rows_of(blind.stdout)
    assert [row["line"] for row in known] == [str(line) for line in range(302, 312)]
    assert [bool(row["forecast"]) for row in blind] == [True] * horizon + [False] * (10 - horizon)
    carry_on(Config(str(tmp_path / "all.csv"), "load", **asked), tmp_path / "whole")
    records = np.concatenate(list(open_run(tmp_path / "whole").records()))[300:]
    for name in ("forecast", "lower", "upper"):
        near = records[name if horizon == 1 else f"{name}_1"][0]
        for told in (known[0], blind[0]):
            np.testing.assert_allclose(float(told[name]), near, rtol=1e-11)
    assert "load" in known[0]
    assert "load" not in blind[0]


def test_columns_without_a_clock_by_least_squares(tmp_path):
    """The target is exact, so what was learned is the formula itself; the order of columns does not matter."""
    columns(tmp_path / "old.csv", 300)
    config = Config(str(tmp_path / "old.csv"), "y", method="LG+C-Static", prior=1e6, block=128)
    carry_on(config, tmp_path / "run")
    _, _, y = columns(tmp_path / "new.csv", 330, head="day,x", start=300)
    ended = filtax("predict", "run", "new.csv", "--out", "told/new.parquet", home=tmp_path)
    assert (ended.returncode, ended.stdout) == (0, ""), ended.stderr
    table = pyarrow.parquet.read_table(tmp_path / "told" / "new.parquet")
    assert table.column_names == ["line", "forecast", "lower", "upper"]
    np.testing.assert_allclose(table["forecast"].to_numpy(), y[300:330], rtol=1e-3)
    assert [path.name for path in (tmp_path / "told").iterdir()] == ["new.parquet"]
    piped = filtax("predict", "run", "-", home=tmp_path, given=(tmp_path / "new.csv").read_text())
    np.testing.assert_array_equal([float(row["forecast"]) for row in rows_of(piped.stdout)], table["forecast"])


@pytest.mark.parametrize("words", [("no", "yes"), ("no", "yes", "perhaps")])
def test_labels_have_probabilities(words, tmp_path):
    columns(tmp_path / "old.csv", 300, words=words)
    if len(words) == 3:
        with open(tmp_path / "old.csv", "a") as file:
            file.write("0.0,a,perhaps\n" * 3)
    carry_on(Config(str(tmp_path / "old.csv"), "y", method="LG+C-Static", block=512), tmp_path / "run")
    _, _, y = columns(tmp_path / "new.csv", 330, head="x,day", start=300)
    told = rows_of(filtax("predict", "run", "new.csv", home=tmp_path).stdout)
    assert np.mean([row["forecast"] == words[int(v > 4.0)] for row, v in zip(told, y[300:], strict=False)]) > 0.8
    for row in told:
        chances = {word: float(row[f"p({word})"]) for word in words}
        assert max(chances, key=chances.get) == row["forecast"]
        assert 0.0 < 1.0 - sum(chances.values()) < 2e-4  # what is left is the chance of a label never met


def test_each_series_and_none_that_was_never_met(tmp_path):
    y = 50.0 + np.random.default_rng(2).normal(size=(200, 2))
    lines = [f"{HOURS[t]},{key},{float(v)!r}\n" for t in range(200) for key, v in zip("ab", y[t], strict=True)]
    (tmp_path / "old.csv").write_text("when,who,load\n" + "".join(lines))
    asked = Config(str(tmp_path / "old.csv"), "load", time="when", key="who", method="LG+C-Static", block=128)
    carry_on(asked, tmp_path / "run")
    (tmp_path / "new.csv").write_text("when,who\n" + "".join(f"{HOURS[200]},{key}\n" for key in "bca"))
    ended = filtax("predict", "run", "new.csv", home=tmp_path)
    told = {row["who"]: row["forecast"] for row in rows_of(ended.stdout)}
    assert told["c"] == ""
    assert told["a"] != told["b"] != ""
    assert "1 of them without a forecast" in ended.stderr


def test_what_cannot_be_used_is_said_in_a_sentence(tmp_path):
    columns(tmp_path / "old.csv", 100)
    carry_on(Config(str(tmp_path / "old.csv"), "y", method="LG+C-Static", block=128), tmp_path / "run")
    (tmp_path / "bad.csv").write_text("x\n1\n")
    (tmp_path / "text.csv").write_text("x,day\nq,a\n")
    assert "no column 'day'" in sentence(filtax("predict", "run", "bad.csv", home=tmp_path), 2)
    assert "text.csv:2:1" in sentence(filtax("predict", "run", "text.csv", home=tmp_path), 2)
    assert "holds no run" in sentence(filtax("predict", "nowhere", "bad.csv", home=tmp_path), 3)
    ended = filtax("predict", "run", "old.csv", "--out", "bad.csv/file.csv", home=tmp_path)
    assert "bad.csv" in sentence(ended, 4)


@pytest.mark.parametrize("out", ["none.parquet", "none.csv", None])
def test_where_no_row_can_be_forecast_nothing_is_written(out, tmp_path):
    timed(tmp_path / "old.csv", 100)
    carry_on(Config(str(tmp_path / "old.csv"), "load", time="when", method="LG+C-Static", block=128), tmp_path / "run")
    where = () if out is None else ("--out", out)
    said = sentence(filtax("predict", "run", "old.csv", *where, home=tmp_path), 2)
    assert "all 100 rows lie before the end of the run" in said
    (tmp_path / "bad.csv").write_text("when\nsoon\n")
    assert "bad.csv:2:1" in sentence(filtax("predict", "run", "bad.csv", *where, home=tmp_path), 2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.csv", "old.csv", "run"]


@pytest.mark.parametrize(
    "asked", [("=y", "--features", "x"), ("x", "--task", "regress", "--key", "=y", "--features", "x2")]
)
def test_a_formula_among_the_labels_or_keys_is_shown_and_not_computed(asked, tmp_path):
    """Spreadsheets run what a cell of CSV begins with = or @; -1 is a label like any other."""
    texts = ["=cmd|' /C calc'!A0", "-1", "@sum", "+1e5", "-1+2", "plain"]
    rows = [f'{t % 6},{t % 5},"{texts[t % 6]}"\n' for t in range(120)]
    (tmp_path / "t.csv").write_text("x,x2,=y\n" + "".join(rows))
    printed = filtax("run", "t.csv", "--out", "out", "--print", "--target", *asked, home=tmp_path)
    assert printed.returncode == 0, printed.stderr
    told = filtax("predict", "out", "t.csv", home=tmp_path)
    write_predictions(open_run(tmp_path / "out"), "csv")
    for text in (printed.stdout, told.stdout, (tmp_path / "out/predictions.csv").read_text()):
        cells = {cell for row in csv.reader(io.StringIO(text)) for cell in row}
        assert {f"'{texts[0]}", "-1", "'@sum", "+1e5", "'-1+2", "plain"} <= cells
        assert not {texts[0], "@sum", "-1+2", "=y"} & cells
    assert "'=y" in told.stdout.splitlines()[0].split(",")
