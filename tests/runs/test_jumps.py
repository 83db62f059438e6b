"""Levels that jump and stay, against a rule that looks at the whole series; and the demo's shift, all defaults."""

import json

import numpy as np
import pytest

from filtax.cli import _example as demo
from filtax.runs import Config, carry_on, open_run, scores
from filtax.runs.jumps import Jumps
from filtax.streams import hourly_load

RATE, AFTER = 0.001, 10


def jumps_in(y, forecast, tail, season):
    """The oracle: for each odd row, in order, the ten readings behind it, all of them at hand."""
    gained = y - np.concatenate([np.full(season, np.nan), y])[: len(y)] if season else y
    judged = np.cumsum(np.isfinite(tail))
    found, free = [], 0
    for t in np.flatnonzero((tail < RATE**2) & (judged > 50)):
        before = gained[max(0, t - 5) : t]
        if t < free or np.isnan(before).all():
            continue
        off = y[t] - forecast[t]
        behind = [r for r in range(t + 1, len(y)) if np.isfinite(gained[r])]
        old = [r for r in behind if (gained[r] - np.nanmedian(before) - off / 2) * np.sign(off) <= 0]
        last = behind[AFTER - 1] if len(behind) >= AFTER else len(y)
        second = old[1] if len(old) > 1 else len(y)
        if last < second:
            found.append((last, "change", last - t))
        free = min(last, second)
    return found


@pytest.mark.parametrize("season", [0, 7])
def test_jumps_that_stay_are_found_and_errors_are_not(season):
    rng = np.random.default_rng(0)
    t = np.arange(1500)
    level = np.cumsum(np.where(np.isin(t, [3, 300, 700, 1100]), rng.choice([-9.0, 9.0], 1500), 0.0))
    y = level + (np.sin(2 * np.pi * t / season) if season else 0.0) + 0.3 * rng.normal(size=1500)
    y[rng.choice(1500, 30, replace=False)] += 50.0
    y[rng.choice(1500, 60, replace=False)] = np.nan
    forecast = level - np.where(np.isin(t, [3, 300, 700, 1100]), np.diff(level, prepend=0.0), 0.0)
    tail = np.where(np.isfinite(y), np.where(np.abs(y - forecast) > 4.0, 1e-8, 0.5), np.nan)
    want = jumps_in(y, forecast, tail, 2 * season)  # two weeks, as one is shorter than ten rows
    assert 2 <= len(want) <= 3
    assert {row - since for row, _, since in want} <= {300, 700, 1100}
    slot = np.zeros(1500, int)
    assert Jumps(RATE, season).look(slot, y, forecast, tail, []) == want

    cut, got = Jumps(RATE, season), []  # two series side by side, in pieces, by way of a checkpoint
    both = np.repeat(np.arange(1500), 2)
    for rows in np.split(np.arange(3000), [1, 2, 611, 1402, 1403]):
        cut.make_room(2)
        pick = both[rows]
        got += [
            (int(rows[row]), since) for row, _, since in cut.look(rows % 2, y[pick], forecast[pick], tail[pick], [])
        ]
        kept, cut = [array.copy() for array in cut.arrays], Jumps(RATE, season)
        cut.restore(kept)
    assert sorted(got) == sorted((2 * row + k, since) for row, _, since in want for k in (0, 1))


def test_one_alarm_is_enough():
    y, tail = np.repeat([1.0, 5.0], [60, 20]), np.where(np.arange(80) == 60, 1e-9, 0.5)
    assert Jumps(RATE, 0).look(np.zeros(80, int), y, np.ones(80), tail, []) == [(70, "change", 10)]
    assert Jumps(RATE, 0).look(np.zeros(80, int), y, np.ones(80), tail, [(65, 4)]) == []


@pytest.mark.x64
def test_the_demo_is_told_of_its_shift_and_its_intervals_hold(tmp_path):
    """Nine gross errors and one shift: one change, at the shift, and 90 % inside within two points."""
    stream = hourly_load(4368, key=0)
    source = demo.write_readings(stream, tmp_path / "demo.csv")
    carry_on(Config(str(source), "load", time="time"), tmp_path / "run")
    events = [json.loads(line) for line in (tmp_path / "run" / "events.jsonl").read_text().splitlines()]
    changes = [event for event in events if event["event"] == "change"]
    assert [event["began"] - 1 for event in changes] == list(stream.changes)
    assert changes[0]["row"] - changes[0]["began"] == AFTER
    assert abs(scores(open_run(tmp_path / "run"))["coverage"] - 0.9) < 0.02


@pytest.mark.x64
@pytest.mark.parametrize("size", [15.0, -40.0])
def test_a_large_jump_is_told_though_the_forecast_reckons_with_changes(size, tmp_path):
    rng = np.random.default_rng(0)
    y = 50.0 + 5.0 * np.sin(2 * np.pi * np.arange(500) / 24) + rng.normal(size=500)
    y[350:] += size
    hours = np.datetime64("2024-01-01T00:00") + 60 * np.arange(500)
    rows = "".join(f"{when},{value!r}\n" for when, value in zip(hours, y.tolist(), strict=True))
    (tmp_path / "t.csv").write_text("when,load\n" + rows)
    carry_on(Config(str(tmp_path / "t.csv"), "load", time="when", block=128), tmp_path / "run")
    told = [event for event in open_run(tmp_path / "run").events() if event["event"] == "change"]
    assert [event["began"] for event in told] == [351]


@pytest.mark.x64
def test_a_change_of_one_series_of_many_began_at_a_row_of_its_own(tmp_path):
    """Two series in one table, row by row in turn."""
    rng = np.random.default_rng(0)
    y = 50.0 + 5.0 * np.sin(2 * np.pi * np.arange(500) / 24) + rng.normal(size=500)
    y[350:] += 15.0
    hours = np.datetime64("2024-01-01T00:00") + 60 * np.arange(500)
    rows = [f"{when},{value!r},a\n{when},1,b\n" for when, value in zip(hours, y.tolist(), strict=True)]
    (tmp_path / "t.csv").write_text("when,load,site\n" + "".join(rows))
    carry_on(Config(str(tmp_path / "t.csv"), "load", time="when", key="site", block=128), tmp_path / "run")
    told = [event for event in open_run(tmp_path / "run").events() if event["event"] == "change"]
    assert [(event["key"], event["began"]) for event in told if event["key"] == "a"] == [("a", 2 * 350 + 1)]


@pytest.mark.x64
def test_a_gross_error_leaves_the_next_interval_as_wide_as_it_was(tmp_path):
    """A method that began anew at it would know nothing: the interval was four hundred times as wide."""
    rng = np.random.default_rng(0)
    y = 50.0 + 5.0 * np.sin(2 * np.pi * np.arange(500) / 24) + rng.normal(size=500)
    y[400] = -9999.0
    hours = np.datetime64("2024-01-01T00:00") + 60 * np.arange(500)
    rows = "".join(f"{when},{value!r}\n" for when, value in zip(hours, y.tolist(), strict=True))
    (tmp_path / "t.csv").write_text("when,load\n" + rows)
    carry_on(Config(str(tmp_path / "t.csv"), "load", time="when", block=128), tmp_path / "run")
    wide = np.concatenate([part["upper"] - part["lower"] for part in open_run(tmp_path / "run").records()])
    assert np.max(wide[401:411]) < 1.5 * np.median(wide[380:400])
    assert [event["row"] for event in open_run(tmp_path / "run").events() if event["event"] == "distrusted"].count(
        401
    ) == 1
