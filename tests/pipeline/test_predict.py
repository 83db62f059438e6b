"""`filtax predict`: what it says is what the run would have said next, and nothing in its folder is touched."""

import csv
import io

import numpy as np
import pyarrow.parquet
import pytest

from command import filtax, sentence
from filtax.forecasting import Series
from filtax.pipeline import Config, open_run, run_pipeline
from tables import HOURS, load, write

pytestmark = pytest.mark.x64


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


def snapshot(root):
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in root.rglob("*") if path.is_file()}


def blank(path, hours, **columns):
    """A table without a target."""
    write(path, np.full(len(hours), np.nan), hours, **columns)
    lines = [
        ",".join(cell for i, cell in enumerate(line.split(",")) if i != 1) for line in path.read_text().split("\n")
    ]
    path.write_text("\n".join(lines))


@pytest.mark.parametrize("asked", [{}, {"horizon": 3}, {"horizon": 3, "features": ("wind",)}, {"features": ("wind",)}])
def test_the_next_row_is_what_a_longer_run_says_of_it(asked, tmp_path):
    y, wind, H = load(0, 310), np.arange(310) % 5, asked.get("horizon", 1)
    write(tmp_path / "old.csv", y[:300], wind=wind[:300])
    config = Config(str(tmp_path / "old.csv"), "load", time="when", **asked)
    run_pipeline(config, tmp_path / "run")
    before = snapshot(tmp_path / "run")
    write(tmp_path / "all.csv", y, wind=wind)
    blank(tmp_path / "future.csv", HOURS[300:310], wind=wind[300:])
    known = filtax("predict", "run", "all.csv", home=tmp_path)
    blind = filtax("predict", "run", "future.csv", home=tmp_path)
    assert (known.returncode, blind.returncode) == (0, 0), known.stderr + blind.stderr
    assert snapshot(tmp_path / "run") == before
    assert "300 were not behind the end of the run" in known.stderr
    assert f"looks {H} step{'s' if H > 1 else ''} ahead" in blind.stderr
    known, blind = rows_of(known.stdout), rows_of(blind.stdout)
    assert [row["line"] for row in known] == [str(line) for line in range(302, 312)]
    assert [bool(row["forecast"]) for row in blind] == [True] * H + [False] * (10 - H)
    run_pipeline(Config(str(tmp_path / "all.csv"), "load", time="when", **asked), tmp_path / "whole")
    records = np.concatenate(list(open_run(tmp_path / "whole").records()))[300:]
    for name in ("forecast", "lower", "upper"):
        own = records[name if H == 1 else f"{name}_1"]
        np.testing.assert_array_equal([float(row[name]) for row in known], own)
        assert float(blind[0][name]) == own[0]
    assert "load" in known[0]
    assert "load" not in blind[0]


@pytest.mark.parametrize("H", [3, 60])
def test_without_a_table_the_next_steps_are_those_of_the_series(H, tmp_path):
    """Of a long horizon a step in between is forecast as the next longer one."""
    y = load(0, 300)
    config = Config(write(tmp_path / "old.csv", y), "load", time="when", horizon=H)
    run_pipeline(config, tmp_path / "run")
    told = rows_of(filtax("predict", "run", home=tmp_path).stdout)
    series = Series(config.steps)
    series.learn(y, HOURS[:300])
    blanks = series.learn(np.full(H, np.nan), HOURS[300 : 300 + H]).due
    for k in (1, 2, H - 1, H):
        column = np.searchsorted(config.steps, k)
        assert float(told[k - 1]["forecast"]) == blanks[k - 1, column, 0]
    assert told[-1]["step"] == str(H)
    assert told[-1]["when"] == str(HOURS[299 + H]) + ":00"


def test_a_row_behind_missing_hours_is_as_many_steps_away(tmp_path):
    y = load(0, 300)
    run_pipeline(Config(write(tmp_path / "old.csv", y), "load", time="when", horizon=5), tmp_path / "run")
    blank(tmp_path / "gap.csv", HOURS[[303]])
    [far] = rows_of(filtax("predict", "run", "gap.csv", home=tmp_path).stdout)
    near = rows_of(filtax("predict", "run", home=tmp_path).stdout)
    assert far["forecast"] == near[3]["forecast"]


def test_columns_without_a_clock_each_as_if_it_came_next(tmp_path):
    rng = np.random.default_rng(1)
    x, day = rng.normal(size=330), rng.integers(0, 3, 330)
    y = 3.0 + 2.0 * x + day
    table = lambda rows: "x,day,y\n" + "".join(f"{x[t]!r},{'abc'[day[t]]},{y[t]!r}\n" for t in rows)
    x, y = [*map(float, x)], [*map(float, y)]
    (tmp_path / "old.csv").write_text(table(range(300)))
    run_pipeline(Config(str(tmp_path / "old.csv"), "y"), tmp_path / "run")
    (tmp_path / "new.csv").write_text("day,x\n" + "".join(f"{'abc'[day[t]]},{x[t]!r}\n" for t in range(300, 330)))
    ended = filtax("predict", "run", "new.csv", "--out", "told/new.parquet", home=tmp_path)
    assert (ended.returncode, ended.stdout) == (0, ""), ended.stderr
    told = pyarrow.parquet.read_table(tmp_path / "told" / "new.parquet")
    assert told.column_names == ["line", "forecast", "lower", "upper"]
    assert [path.name for path in (tmp_path / "told").iterdir()] == ["new.parquet"]
    piped = filtax("predict", "run", "-", home=tmp_path, given=(tmp_path / "new.csv").read_text())
    np.testing.assert_array_equal([float(row["forecast"]) for row in rows_of(piped.stdout)], told["forecast"])
    (tmp_path / "one.csv").write_text(table(range(301)))
    run_pipeline(Config(str(tmp_path / "one.csv"), "y"), tmp_path / "one")
    records = np.concatenate(list(open_run(tmp_path / "one").records()))
    assert told["forecast"][0].as_py() == records["forecast"][300]


def test_labels_have_probabilities(tmp_path):
    rng = np.random.default_rng(1)
    rows = [f"{a:.3f},{'yes' if a > 0 else 'no'}\n" for a in rng.normal(size=300)]
    (tmp_path / "old.csv").write_text("x,y\n" + "".join(rows))
    run_pipeline(Config(str(tmp_path / "old.csv"), "y"), tmp_path / "run")
    for row in rows_of(filtax("predict", "run", "old.csv", home=tmp_path).stdout):
        chances = {word: float(row[f"p({word})"]) for word in ("yes", "no")}
        assert max(chances, key=chances.get) == row["forecast"]
        assert 0.0 < 1.0 - sum(chances.values()) < 0.1  # what is left is the chance of a label never met


def test_each_series_and_none_that_was_never_met(tmp_path):
    both = np.stack([load(2, 200), 3.0 * load(3, 200)], axis=1).ravel()
    source = write(tmp_path / "old.csv", both, np.repeat(HOURS, 2), who=["a", "b"] * 200)
    run_pipeline(Config(source, "load", time="when", key="who"), tmp_path / "run")
    blank(tmp_path / "new.csv", np.repeat(HOURS[200:201], 3), who=["b", "c", "a"])
    ended = filtax("predict", "run", "new.csv", home=tmp_path)
    told = {row["who"]: row["forecast"] for row in rows_of(ended.stdout)}
    assert list(told) == ["b", "c", "a"]
    assert told["c"] == ""
    assert {row["who"]: row["forecast"] for row in rows_of(filtax("predict", "run", home=tmp_path).stdout)} == {
        name: told[name] for name in "ab"
    }
    assert "1 of them without a forecast" in ended.stderr


def test_what_cannot_be_used_is_said_in_a_sentence(tmp_path):
    (tmp_path / "old.csv").write_text("x,day,y\n" + "".join(f"{t % 7},{'abc'[t % 3]},{t % 5}.5\n" for t in range(100)))
    run_pipeline(Config(str(tmp_path / "old.csv"), "y"), tmp_path / "run")
    (tmp_path / "bad.csv").write_text("x\n1\n")
    (tmp_path / "text.csv").write_text("x,day\nq,a\n")
    assert "no column 'day'" in sentence(filtax("predict", "run", "bad.csv", home=tmp_path), 2)
    assert "text.csv:2:1" in sentence(filtax("predict", "run", "text.csv", home=tmp_path), 2)
    assert "not known of the next rows" in sentence(filtax("predict", "run", home=tmp_path), 2)
    assert "holds no run" in sentence(filtax("predict", "nowhere", "bad.csv", home=tmp_path), 3)
    assert "bad.csv" in sentence(filtax("predict", "run", "old.csv", "--out", "bad.csv/file.csv", home=tmp_path), 4)


@pytest.mark.parametrize("out", ["none.parquet", "none.csv", None])
def test_where_no_row_can_be_forecast_nothing_is_written(out, tmp_path):
    run_pipeline(Config(write(tmp_path / "old.csv", load(0, 100)), "load", time="when"), tmp_path / "run")
    where = () if out is None else ("--out", out)
    said = sentence(filtax("predict", "run", "old.csv", *where, home=tmp_path), 2)
    assert "all 100 rows lie before the end of the run" in said
    (tmp_path / "bad.csv").write_text("when\nsoon\n")
    assert "bad.csv:2:1" in sentence(filtax("predict", "run", "bad.csv", *where, home=tmp_path), 2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.csv", "old.csv", "run"]


def test_a_formula_among_the_labels_is_shown_and_not_computed(tmp_path):
    """Spreadsheets run what a cell of CSV begins with = or @; -1 is a label like any other."""
    texts = ["=cmd|' /C calc'!A0", "-1", "@sum", "+1e5", "-1+2", "plain"]
    rows = [f'{t % 5},"{texts[t % 6]}"\n' for t in range(120)]
    (tmp_path / "t.csv").write_text("x,=y\n" + "".join(rows))
    printed = filtax("run", "t.csv", "--out", "out", "--print", "--target", "=y", "--features", "x", home=tmp_path)
    assert printed.returncode == 0, printed.stderr
    told = filtax("predict", "out", "t.csv", home=tmp_path)
    for text in (printed.stdout, told.stdout):
        cells = {cell for row in csv.reader(io.StringIO(text)) for cell in row}
        assert {f"'{texts[0]}", "-1", "'@sum", "+1e5", "'-1+2", "plain"} <= cells
        assert not {texts[0], "@sum", "-1+2", "=y"} & cells
