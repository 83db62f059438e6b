"""Forecasts of every step up to a horizon: each is that of a run of its own, none looks ahead, and bands hold."""

import csv
import io
from dataclasses import replace

import numpy as np
import pytest

from command import filtax, sentence
from filtax.evaluate import last_value, naive_plus_change, seasonal_naive
from filtax.runs import Config, carry_on, open_run
from filtax.runs.foretell import reach
from filtax.runs.nearer import nearer_steps
from filtax.runs.numbers import NumberStream
from filtax.runs.outlook import next_steps
from filtax.runs.outputs import write_outputs
from filtax.runs.plan import Plan
from filtax.runs.steps import by_step

pytestmark = pytest.mark.x64
ROWS, H = 500, 4
HOURS = np.datetime64("2024-01-01T00:00") + 60 * np.arange(ROWS + 20)
ASKED = {"time": "when", "method": "LG(form=covariance)+C-Static", "horizon": H, "block": 128, "every": 128}
ENDS = ("forecast", "lower", "upper")


def load(rows=ROWS + 20):
    t, noise = np.arange(rows), np.random.default_rng(0).normal(size=rows)
    for i in range(1, rows):
        noise[i] += 0.8 * noise[i - 1]  # so that what is near tells more
    return 50.0 + 5.0 * np.sin(2 * np.pi * t / 24) + noise


def write(path, y, start=0, target=True):
    rows = [f"{HOURS[i]},{y[i]!r}\n" if target else f"{HOURS[i]}\n" for i in range(start, len(y))]
    path.write_text(("when,load\n" if target else "when\n") + "".join(rows))
    return str(path)


def records_of(root):
    return np.concatenate(list(open_run(root).records()))


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fan")
    y = load()[:ROWS].tolist()
    carry_on(Config(write(folder / "t.csv", y), "load", **ASKED), folder / "run")
    return folder, np.array(y), records_of(folder / "run")


def told(ended):
    assert ended.returncode == 0, ended.stderr
    return list(csv.DictReader(io.StringIO(ended.stdout)))


def test_every_step_is_a_run_of_its_own(ran, tmp_path):
    """The stream of one horizon is held against the method's own verbs elsewhere."""
    folder, _, records = ran
    for h in (1, 3):
        carry_on(Config(str(folder / "t.csv"), "load", **{**ASKED, "horizon": h}), tmp_path / str(h))
        alone = records_of(tmp_path / str(h))
        for end in ENDS:
            np.testing.assert_allclose(records[f"{end}_{h}"], alone[end], rtol=1e-9, err_msg=f"{end}_{h}")


def test_nothing_younger_than_its_step_is_seen(ran, tmp_path):
    _, y, records = ran
    s = 400
    moved = y.copy()
    moved[s] += 3.0
    carry_on(Config(write(tmp_path / "t.csv", moved.tolist()), "load", **ASKED), tmp_path / "run")
    other = records_of(tmp_path / "run")
    for h, mark in ((1, "_1"), (2, "_2"), (3, "_3"), (H, "")):
        for end in ENDS:
            same = np.nan_to_num(records[end + mark]) == np.nan_to_num(other[end + mark])  # none before a reading
            assert same[: s + h].all()
            assert not same[s + h]


def test_near_steps_err_less_and_all_bands_hold(ran):
    folder, y, records = ran
    found = by_step(open_run(folder / "run"))
    assert [each["step"] for each in found] == [1, 2, 3, 4]
    errors = [each["mae"] for each in found]
    assert errors == sorted(errors)
    for each in found:
        mark = "" if each["step"] == H else f"_{each['step']}"
        late = each["step"] - 1
        rules = [rule(cycle) for cycle in (24, 168) for rule in (seasonal_naive, naive_plus_change)]
        rivals = {rule.name: rule(y, delay=late).mean for rule in (last_value(), *rules)}
        known = np.isfinite(np.stack([records["forecast" + mark], *rivals.values()])).all(axis=0)
        np.testing.assert_allclose(each["rows"], known.sum())
        np.testing.assert_allclose(each["mae"], np.abs(records["forecast" + mark] - y)[known].mean(), rtol=1e-12)
        np.testing.assert_allclose(each["rmse"], np.sqrt(np.square(records["forecast" + mark] - y)[known].mean()))
        for name, said in rivals.items():
            np.testing.assert_allclose(each["baselines"][name], np.abs(said - y)[known].mean(), rtol=1e-12)
        lower, upper = records["lower" + mark], records["upper" + mark]
        np.testing.assert_allclose(each["coverage"], np.mean(((lower <= y) & (y <= upper))[np.isfinite(lower)]))
        assert 0.87 < each["coverage"] < 0.93


def test_stopped_and_resumed_to_the_same_bytes(ran, tmp_path):
    folder, _, records = ran
    config = Config(str(folder / "t.csv"), "load", **ASKED)
    assert carry_on(config, tmp_path, stop=lambda: True).stopped
    carry_on(Config.read(tmp_path), tmp_path)
    assert records_of(tmp_path).tobytes() == records.tobytes()


def test_what_comes_next_is_what_a_longer_run_says_of_it(ran, tmp_path):
    folder, _, _ = ran
    y = load()[: ROWS + H].tolist()
    carry_on(Config(write(tmp_path / "long.csv", y), "load", **ASKED), tmp_path / "long")
    records = records_of(tmp_path / "long")[ROWS:]
    run = open_run(folder / "run")
    said, again = next_steps(run), next_steps(run)
    assert said["step"].tolist() == [1, 2, 3, 4]
    np.testing.assert_array_equal(said["when"], HOURS[ROWS : ROWS + H].astype("datetime64[us]"))
    write(tmp_path / "future.csv", y, start=ROWS, target=False)
    rows = told(filtax("predict", str(folder / "run"), "future.csv", home=tmp_path))
    alone = told(filtax("predict", str(folder / "run"), home=tmp_path))
    for end in ENDS:
        want = [records[end + ("" if h == H else f"_{h}")][h - 1] for h in range(1, H + 1)]
        np.testing.assert_allclose(said[end], want, rtol=1e-9)
        np.testing.assert_array_equal(said[end], again[end])
        np.testing.assert_array_equal(said[end], [float(row[end]) for row in rows])
        np.testing.assert_array_equal(said[end], [float(row[end]) for row in alone])


def test_a_target_in_the_table_brings_the_later_rows_nearer(ran, tmp_path):
    folder, _, _ = ran
    y = load()[: ROWS + 3].tolist()
    write(tmp_path / "known.csv", y, start=ROWS)
    rows = told(filtax("predict", str(folder / "run"), "known.csv", home=tmp_path))
    carry_on(Config(write(tmp_path / "long.csv", y), "load", **{**ASKED, "horizon": 1}), tmp_path / "long")
    np.testing.assert_allclose(float(rows[0]["forecast"]), records_of(tmp_path / "long")["forecast"][ROWS], rtol=1e-9)
    learned = records_of(tmp_path / "long")["forecast"][ROWS + 2]  # by which the rows in between were learned, too
    np.testing.assert_allclose(float(rows[2]["forecast"]), learned, atol=0.05)


@pytest.mark.nightly
def test_a_long_horizon_has_steps_at_a_distance(tmp_path):
    horizon = 60
    assert len(nearer_steps(horizon)) < 48
    missing = min(set(range(1, horizon)) - set(nearer_steps(horizon)))
    path = write(tmp_path / "t.csv", load()[:260].tolist())
    carry_on(Config(path, "load", **{**ASKED, "horizon": horizon}), tmp_path / "run")
    run = open_run(tmp_path / "run")
    said = next_steps(run)
    assert said["step"].tolist() == list(range(1, horizon + 1))
    assert np.isfinite(said["forecast"]).all()
    longer = min(step for step in nearer_steps(horizon) if step > missing)
    assert isinstance(run.stream, NumberStream)
    steps = reach(run.stream)
    assert steps[np.searchsorted(steps, missing)] == longer


def test_what_is_left_tells_of_steps(ran, tmp_path):
    folder, _, _ = ran
    written = write_outputs(folder / "run")
    assert "Step 1 to 4: mae" in written.about
    page = written.report.read_text()
    assert "What comes next" in page
    assert "Step by step" in page


def test_a_plan_of_before_has_one_step(ran):
    folder, _, _ = ran
    plain = open_run(folder / "run").stream.plan.to_json()
    assert Plan.from_json(plain).steps == (1, 2, 3)
    assert Plan.from_json({name: value for name, value in plain.items() if name != "steps"}).steps == ()
    assert "near" not in replace(Config("t.csv", "y"), horizon=1).to_json()


@pytest.mark.nightly
def test_by_itself_the_first_step_looks_for_changes(tmp_path):
    y = load()[:ROWS]
    y[350:] += 40.0
    source = write(tmp_path / "t.csv", y.tolist())
    asked = {"time": "when", "block": 128}
    done = [carry_on(Config(source, "load", horizon=h, **asked), tmp_path / str(h)) for h in (1, 2)]
    assert done[0].changes == done[1].changes >= 1
    assert done[0].distrusted == done[1].distrusted
    one, two = (records_of(tmp_path / str(h)) for h in (1, 2))
    np.testing.assert_allclose(two["change_probability"], one["change_probability"], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(two["forecast_1"], one["forecast"], rtol=1e-9)


def test_without_times_the_next_rows_are_asked_for(tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n" + "".join(f"{i % 7},{2 * (i % 7) + 0.5}\n" for i in range(60)))
    carry_on(Config(str(tmp_path / "t.csv"), "y", method="LG+C-Static", block=64), tmp_path / "run")
    assert "give a table" in sentence(filtax("predict", "run", home=tmp_path), 2)
