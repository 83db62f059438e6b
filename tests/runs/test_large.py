"""Numbers near the end of the range: a run must say of 1e307 y what it says of y, times 1e307, without a warning."""

import json
import warnings

import numpy as np
import pyarrow.parquet
import pytest

from command import filtax
from filtax.runs.chart import chart
from filtax.runs.large import Errors, power_of, released
from filtax.runs.rivals import Rivals

pytestmark = pytest.mark.x64
POWER = 1019  # 2**1019 is 5.6e306; of such a unit y up to 30 can be written
T = np.arange(120)
Y = 10.0 + 5.0 * np.cos(np.pi * T / 12) + np.random.default_rng(0).normal(size=T.size)
X = np.sign(Y - 10.0) * 16.0 + np.random.default_rng(1).normal(size=T.size)


def ran(home, columns, *options):
    """Scores and predictions of a run on columns; any warning is an error, and nothing may be infinite."""
    rows = zip(*(values.tolist() for values in columns.values()), strict=True)
    (home / "t.csv").write_text("\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows)]) + "\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ended = filtax("run", "t.csv", "--target", "y", "--block", 128, "--out", "run", *options, home=home)
    assert ended.returncode == 0, ended.stderr
    told = pyarrow.parquet.read_table(home / "run" / "predictions.parquet")
    for name in told.column_names:
        if told[name].type == "double":
            assert not np.isinf(told[name].to_numpy()).any(), name
    assert "Infinity" not in (home / "run" / "report.html").read_text()
    return json.loads((home / "run" / "metrics.json").read_text()), told


@pytest.mark.parametrize(
    ("options", "columns"),
    [(("--time", "t", "--horizon", "2"), {"t": T, "y": Y}), ((), {"x": X, "y": Y})],
    ids=["timed", "columns"],
)
def test_a_run_in_a_huge_unit_says_the_same(options, columns, tmp_path):
    for name in ("one", "huge"):
        (tmp_path / name).mkdir()
    options = ("--method", "NIG+C-Static", *options)
    plain, said = ran(tmp_path / "one", columns, *options)
    in_unit = {name: values if name == "t" else np.ldexp(values, POWER) for name, values in columns.items()}
    huge, told = ran(tmp_path / "huge", in_unit, *options)
    for name, line in plain["table"].items():
        for score, value in line.items():
            np.testing.assert_allclose(np.ldexp(huge["table"][name][score], -POWER), value, rtol=1e-9)
    assert huge["coverage"] == plain["coverage"]
    np.testing.assert_allclose(huge["log_score"], plain["log_score"] - POWER * np.log(2.0), rtol=1e-12)
    for name in ("y", "forecast", "lower", "upper", "last-value"):
        np.testing.assert_allclose(np.ldexp(told[name].to_numpy(), -POWER), said[name].to_numpy(), rtol=1e-9)


def test_labels_are_learned_from_huge_columns(tmp_path):
    label = np.array(["low", "high"], object)[(X > 0).astype(int)]
    found, _ = ran(tmp_path, {"x": np.ldexp(X, POWER), "y": label}, "--method", "LG+C-Static")
    assert found["table"]["LG+C-Static"]["accuracy"] > 0.9


@pytest.mark.parametrize("options", [("--time", "t"), ()], ids=["timed", "columns"])
@pytest.mark.parametrize("rows", [(0, 5), (80, 90)], ids=["early", "late"])
def test_a_few_huge_readings_spoil_nothing_but_themselves(rows, options, tmp_path):
    y = Y.copy()
    y[list(rows)] = 1.7e308, 1.7e308 if rows[0] else -1.7e308
    found, told = ran(tmp_path, {"t": T, "y": y}, "--method", "WoLF-Huber(c=2.5)+NIG+C-Static", *options)
    assert all(value is not None for line in found["table"].values() for value in line.values())
    np.testing.assert_array_equal(told["y"].to_numpy(), y)
    own = found["table"]["WoLF-Huber(c=2.5)+NIG+C-Static"]
    assert own["median"] < (6.0 if rows[0] or options else 1e200)  # without times, the first unit is made of them


def test_scores_of_any_size_are_those_of_longer_numbers():
    """The oracle has 15 bits of exponent, not 11."""
    rng = np.random.default_rng(2)
    said = np.tanh(rng.normal(size=(2, 50))) * np.array([[1.5e308], [1.0]])
    y = rng.normal(size=50)
    y[40:] = 1e307
    errors = Errors(2)
    for part in (slice(0, 20), slice(20, 40), slice(40, 50)):
        errors.add(said[:, part], y[part])
    large = Errors(1)
    for size in (3e125, 4e125):  # the second unit is another one
        large.add(np.array([[size]]), np.zeros(1))
    np.testing.assert_allclose([large.mean, large.root], [[3.5e125], [np.sqrt(12.5) * 1e125]], rtol=1e-14)
    off = np.abs(said.astype(np.longdouble) - y)
    np.testing.assert_allclose(errors.mean, off.mean(axis=1).astype(float), rtol=1e-14)
    np.testing.assert_allclose(errors.root, np.sqrt((off * off).mean(axis=1)).astype(float), rtol=1e-14)


@pytest.mark.nightly
def test_a_huge_series_is_cut_where_the_same_series_is(tmp_path):
    y = np.where(T < 70, 1.0, 9.0) + np.random.default_rng(3).normal(size=T.size)
    found = []
    for name, power in (("one", 0), ("huge", POWER + 1)):
        (tmp_path / f"{name}.csv").write_text("y\n" + "".join(f"{v}\n" for v in np.ldexp(y, power).tolist()))
        ended = filtax("segment", f"{name}.csv", "--target", "y", home=tmp_path)
        assert ended.returncode == 0, ended.stderr
        found.append([(each["row"], np.ldexp(each["mean"], -power)) for each in json.loads(ended.stdout)["segments"]])
    assert [row for row, _ in found[0]] == [1, 71]
    np.testing.assert_allclose(found[1], found[0], rtol=1e-12)


def test_the_running_mean_outlasts_huge_readings():
    rivals = Rivals(cycles=(), late=0)
    said = rivals.forecast(np.zeros(5, int), np.array([1.7e308, 1.7e308, -1.7e308, -1.7e308, 1.0]))[:, -1]
    assert np.isfinite(said[1:]).all()
    assert said[4] == 0.0


def test_scores_of_small_errors_stay_beside_huge_ones():
    errors = Errors(2)
    errors.add(np.array([[1e300, 1e300], [2.0, 2.0]]), np.array([1.0, 3.0]))
    assert errors.root.tolist() == [1e300, 1.0]


def test_a_unit_is_taken_from_half_of_the_numbers():
    assert power_of(np.array([1.0, 2.0, 1e308])) == 0
    assert power_of(np.array([1.0, -1e308, 1e308])) == 1023
    assert power_of(np.array([np.nan, 0.0])) == 0
    assert released({"upper": np.array([np.inf, np.nan])}, 0)["upper"][0] == np.finfo(float).max


@pytest.mark.parametrize("values", [(1e307, 1e307), (-1.7e308, 1.7e308), (1e20, 1e20), (-1e300, -1e300)])
def test_a_figure_of_huge_numbers_is_drawn(values):
    drawn = chart(np.array(values), {"y": np.array(values)})
    assert "<path" in drawn
    assert not any(word in drawn.lower() for word in ("nan", "inf"))


def test_one_reading_whose_square_overflows_is_not_trusted_and_no_change(tmp_path):
    y = np.tile(X, 4) + np.random.default_rng(2).normal(size=480)
    y[[200, 300]] = 1e160, -1.7e308
    _, told = ran(tmp_path, {"x": np.tile(X, 4), "y": y})
    assert told["trust"].to_numpy()[[200, 300]].tolist() == [0.0, 0.0]
    events = [json.loads(line) for line in (tmp_path / "run" / "events.jsonl").read_text().splitlines()]
    assert [event["row"] for event in events if event["event"] == "distrusted"][:2] == [201, 301]
    assert not any(event["event"] == "change" for event in events)
    assert np.abs(told["forecast"].to_numpy()[50:] - np.tile(X, 4)[50:]).max() < 3.0
