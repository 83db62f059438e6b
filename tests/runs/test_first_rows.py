"""Before anything is known nothing is said: no forecast before the first reading, no interval before an error."""

import csv
import io

import numpy as np
import pyarrow.parquet
import pytest

from command import filtax
from filtax.streams import Season, TimedFeatures

pytestmark = pytest.mark.x64
H, ROWS = 2, 40


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """Two series, two steps ahead: what was printed, and the folder of the run."""
    home = tmp_path_factory.mktemp("first")
    y = 7.0 + np.random.default_rng(0).normal(size=(ROWS, 2))
    rows = [f"{t},{'ab'[k]},{float(y[t, k])!r}\n" for t in range(ROWS) for k in range(2)]
    (home / "t.csv").write_text("t,who,y\n" + "".join(rows))
    asked = ("--target", "y", "--time", "t", "--key", "who", "--horizon", H, "--method", "LG+C-Static")
    ended = filtax("run", "t.csv", *asked, "--block", 128, "--print", "--out", "run", home=home)
    assert ended.returncode == 0, ended.stderr
    return list(csv.DictReader(io.StringIO(ended.stdout))), home / "run", y


def test_what_is_not_known_is_an_empty_field(told):
    printed, _, y = told
    for k, who in enumerate("ab"):
        own = [row for row in printed if row["key"] == who]
        assert [row["forecast"] for row in own[:H]] == [""] * H
        assert [float(row["forecast"]) for row in own[H : 2 * H]] == y[:H, k].tolist()
        edges = [(row["lower"], row["upper"]) for row in own]
        assert edges[: 2 * H] == [("", "")] * (2 * H)
        assert all(float(low) < float(high) for low, high in edges[2 * H :])


def test_what_is_not_known_is_null_in_the_table_and_in_the_figures_of_the_report(told):
    printed, root, _ = told
    table = pyarrow.parquet.read_table(root / "predictions.parquet")
    for name in ("forecast", "lower", "upper"):
        want = [None if row[name] == "" else float(row[name]) for row in printed]
        assert table[name].to_pylist() == want, name
    assert '"forecast":[null,null,' in (root / "report.html").read_text()


def test_a_run_of_one_row_says_nothing_and_scores_nothing(tmp_path):
    (tmp_path / "t.csv").write_text("t,y\n1,5\n")
    ended = filtax("run", "t.csv", "--target", "y", "--time", "t", "--method", "LG+C-Static", "--print", home=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines()[1] == "2,1.0,,,,5.0"
    assert "nan" not in (tmp_path / "out" / "t" / "metrics.json").read_text().lower()


def test_features_are_finite_before_the_unit_is_known():
    maker = TimedFeatures(Season.named("hourly"))
    time = np.datetime64("2024-01-01T00") + np.arange(5)
    _, made = maker.make(maker.init(), time, np.array([np.nan, 3.0, np.nan, 4.0, 4.5]))
    assert np.isfinite(made.X).all()
    np.testing.assert_array_equal(made.base, [np.nan, np.nan, 3.0, 3.0, 4.0])
    np.testing.assert_array_equal(made.scale, [np.nan, np.nan, np.nan, np.nan, 1.0])
