"""Many series in one table: each is learned as if it were alone."""

import json
import re

import numpy as np
import pyarrow.parquet
import pytest

from command import filtax

pytestmark = pytest.mark.x64


def written(path, rows):
    path.write_text("time,who,color,y\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))


def test_a_key_with_texts_and_a_clock_of_its_own_is_as_alone(tmp_path):
    rng = np.random.default_rng(0)
    hours = np.datetime64("2024-01-01T00:00") + np.arange(300) * np.timedelta64(60, "m")
    days = np.datetime64("2024-01-01T00:00") + np.arange(100) * np.timedelta64(1440, "m")
    tables = {}
    for who, times, first in (("a", hours, 0), ("b", days, 20)):
        colors = rng.integers(8, size=len(times)) + first
        tables[who] = [(t, who, f"c{c}", f"{c % 8 + rng.normal():.3f}") for t, c in zip(times, colors, strict=True)]
    written(tmp_path / "both.csv", [*tables["a"], *tables["b"]])
    written(tmp_path / "b.csv", tables["b"])
    how = ("--target", "y", "--time", "time", "--features", "color")
    assert filtax("run", "both.csv", *how, "--key", "who", "--out", "both", home=tmp_path).returncode == 0
    assert filtax("run", "b.csv", *how, "--out", "b", home=tmp_path).returncode == 0
    both, alone = (pyarrow.parquet.read_table(tmp_path / name / "predictions.parquet") for name in ("both", "b"))
    for name in ("forecast", "lower", "upper"):
        np.testing.assert_array_equal(
            np.array(both[name][300:].to_pylist(), float), np.array(alone[name].to_pylist(), float)
        )
    events = [json.loads(line)["event"] for line in (tmp_path / "both" / "events.jsonl").read_text().splitlines()]
    assert "gap" not in events
    written(tmp_path / "next.csv", [("2024-04-10T00:00", "b", "c21", "")])
    said = filtax("predict", "both", "next.csv", home=tmp_path).stdout.splitlines()[1].split(",")
    own = filtax("predict", "b", "next.csv", home=tmp_path).stdout.splitlines()[1].split(",")
    assert said[-3:] == own[-3:]
    assert float(said[-3]) == pytest.approx(5.0, abs=3.0)


def test_the_report_shows_the_best_the_median_and_the_worst_key(tmp_path):
    """The oracle is how the series were made: their noise is that of their keys."""
    noise, rng = {"c": 3.0, "a": 1.0, "e": 5.0, "b": 2.0, "d": 4.0}, np.random.default_rng(0)
    hours = np.datetime64("2024-01-01T00:00") + np.arange(120) * np.timedelta64(60, "m")
    written(tmp_path / "t.csv", [(t, k, "", f"{s * rng.normal():.3f}") for t in hours for k, s in noise.items()])
    done = filtax("run", "t.csv", "--target", "y", "--time", "time", "--key", "who", home=tmp_path)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "out/t/report.html").read_text()
    table = re.search(r"over the keys</h2><table>(.*?)</table>", page)[1]
    cells = [re.findall(r"<td>(.*?)</td>", row) for row in table.split("<tr>")[2:]]
    assert [row[:2] for row in cells] == [["best", "a"], ["median", "c"], ["worst", "e"]]
    rows = pyarrow.parquet.read_table(tmp_path / "out/t/predictions.parquet").to_pydict()
    errors = np.abs(np.array(rows["forecast"], float) - np.array(rows["y"]))
    for _, key, count, mae, *_ in cells:
        own = np.array(rows["who"]) == key
        assert int(count) < own.sum() == 120
        assert float(mae) == pytest.approx(np.nanmean(errors[own][-int(count) :]), abs=0.02)
    assert [f"{key}, the {what} key" in page for what, key, *_ in cells] == [True] * 3
