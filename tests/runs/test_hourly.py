"""Hours that are zero by night and differ from day to day: mornings are no changes, and a level that moves is one."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from filtax.runs.blocks import Block
from filtax.runs.config import Config
from filtax.runs.hourly import LEAST, Hours
from filtax.runs.numbers import NumberStream
from filtax.runs.plan import decide
from filtax.runs.verdicts import _by_the_hour

CYCLES = (24, 168)


@pytest.fixture(scope="module")
def told():
    """What a run with all defaults tells of hours: changes as (row, began), and rows that are not trusted."""
    made = {}

    def learn(y):
        t = np.arange(len(y))
        rows = Block({"y": y}, {}, np.datetime64("2024-01-01", "h") + t, None, t, np.zeros(len(y)), [], None)
        if not made:
            plan = decide(Config("-", "y", time="t", block=1024), rows)
            made["plan"], made["learner"] = plan, NumberStream(plan).learner
        found = NumberStream(**made).learn(rows)[1]
        changes = [(row, row - value) for row, kind, value in found if kind == "change"]
        return changes, [row for row, kind, _ in found if kind == "distrusted"]

    return learn


def sun(seed, rows=3000):
    """A bump by day, the larger the clearer the day is, and clouds; clear days come in a row."""
    rng, t = np.random.default_rng(seed), np.arange(rows)
    clear = np.zeros(rows // 24 + 2)
    for day in range(1, len(clear)):
        clear[day] = 0.7 * clear[day - 1] + 0.3 * rng.normal()
    bump = np.maximum(np.sin(np.pi * (t % 24 - 6) / 12), 0.0)
    return 500.0 * bump * np.exp(clear[t // 24] - 0.2) * np.clip(1.0 + 0.1 * rng.normal(size=rows), 0.0, None)


@pytest.mark.x64
def test_mornings_are_no_changes_and_clear_days_no_errors(told):
    """Before, 6 changes, and 60 rows that were not trusted."""
    changes, odd = told(sun(0))
    assert len(changes) <= 1
    assert len(odd) <= 15


@pytest.mark.x64
def test_gross_errors_at_noon_are_named(told):
    """Hours that are off by much are judged by wider intervals, but not so wide that they hide what is absurd."""
    rng, t = np.random.default_rng(41), np.arange(2400)
    day = 90.0 * np.maximum(np.sin(np.pi * (t % 24 - 6) / 12), 0.0)
    y = day * (1.0 + 0.03 * rng.normal(size=100))[t // 24] * (1.0 + 0.05 * rng.normal(size=2400))
    wrong = {
        day * 24 + 12: value for day, value in zip(range(60, 90, 5), (-50.0, 0.0, 300.0, 1e3, -999.0, 5e3), strict=True)
    }
    y[list(wrong)] = list(wrong.values())
    _, odd = told(y)
    assert set(wrong) <= set(odd)
    assert len(odd) <= len(wrong) + 12  # five in a thousand


@pytest.mark.nightly
@pytest.mark.x64
def test_four_series_of_the_sun(told):
    """Before, 24 changes and 208 rows."""
    found = [told(sun(seed)) for seed in range(4)]
    assert sum(len(changes) for changes, _ in found) <= 8
    assert sum(len(odd) for _, odd in found) <= 45


@pytest.mark.x64
def test_a_level_that_moves_is_told_of_by_night_and_by_day(told):
    for at in (1226, 1236):
        y = sun(0, 1300)
        y[at:] += 1500.0
        assert [abs(began - at) <= 2 for _, began in told(y)[0] if began > 1000] == [True]


def test_an_hour_is_wider_only_where_that_is_no_chance():
    rng, cell = np.random.default_rng(0), np.arange(24 * 60)
    off = rng.normal(size=cell.size) / 1.645
    zero = np.zeros(cell.size, int)
    assert (Hours(0.9, CYCLES).look(zero, cell, off) > 1.0).mean() < 0.005
    wild = np.where((cell % 24 >= 8) & (cell % 24 < 18), 3.0 * off, off)
    factor = Hours(0.9, CYCLES).look(zero, cell, wild)[-24:]
    assert (factor[9:17] > 1.5).all()
    assert (factor[:7] == 1.0).all()
    off[700] = 1e300  # one error is no hour
    assert (Hours(0.9, CYCLES).look(zero, cell, off)[700:730] < LEAST).all()
    assert (Hours(0.9, (7,)).look(zero, cell, wild) == 1.0).all()


def test_an_alarm_that_began_at_such_an_hour_needs_an_odd_row():
    cell, zero = np.arange(24 * 20), np.zeros(24 * 20, int)
    off = np.where((cell % 24 >= 8) & (cell % 24 < 18), 1.5, 0.1)
    alarms, odd = np.zeros(cell.size), np.zeros(cell.size, bool)
    alarms[[250, 450]] = 10.0, 10.0  # from the hours 0 and 8 on
    watch = Hours(0.9, CYCLES)
    watch.look(zero, cell, off)
    assert np.flatnonzero(watch.kept(zero, cell, odd, alarms)).tolist() == [250]
    odd[439] = True
    assert np.flatnonzero(watch.kept(zero, cell, odd, alarms)).tolist() == [250, 450]


def test_in_pieces_and_side_by_side_it_is_the_same():
    rng, cell = np.random.default_rng(1), np.arange(400)
    off, zero, odd = np.abs(rng.normal(size=400)), np.zeros(400, int), rng.random(400) < 0.01
    alarms = np.where(np.arange(400) % 97 == 96, 20.0, 0.0)
    whole = Hours(0.9, CYCLES)
    factor, kept = whole.look(zero, cell, off), whole.kept(zero, cell, odd, alarms)
    cut, factors, keeps = Hours(0.9, CYCLES), [], []
    cut.make_room(2)
    for rows in np.split(np.arange(800), [1, 311, 602]):
        both = (rows % 2, cell[rows // 2])
        factors.append(cut.look(*both, off[rows // 2]))
        keeps.append(cut.kept(*both, odd[rows // 2], 0.0 * alarms[rows // 2]))
        arrays, cut = [array.copy() for array in cut.arrays], Hours(0.9, CYCLES)
        cut.restore(arrays)
    np.testing.assert_array_equal(np.concatenate(factors)[1::2], factor)
    np.testing.assert_array_equal(cut.means[1], whole.means[0])
    np.testing.assert_array_equal(cut.since, whole.since.repeat(2))
    assert not np.any(keeps[-1])
    assert set(kept.tolist()) <= {0.0, 20.0}


def test_a_row_is_judged_by_an_interval_that_is_wider_by_what_its_hour_was_off_by():
    """Errors of 3 with intervals of 1, one at an hour with errors twice as large: as one of 3 with an interval of 2."""
    hours = SimpleNamespace(look=lambda *_: np.array([1.0, 2.0, 2.0]), kept=lambda slot, cell, odd, alarms: odd)
    stream = SimpleNamespace(hours=hours, bands=SimpleNamespace(level=0.9), surprise=SimpleNamespace(rate=0.001))
    y, one = np.array([3.0, 3.0, -3.0]), np.ones(3)
    said = {"forecast": 0.0 * one, "lower": -one, "upper": one, "pit": np.array([0.99, 0.99, 0.01])}
    pit, far, _ = _by_the_hour(stream, np.zeros(3, int), np.zeros(3), y, said, np.zeros(3))
    unit = stats.t(10).ppf(0.95)
    want = 2.0 * stats.t(10).sf(unit * np.array([3.0, 1.5, 1.5]))
    np.testing.assert_allclose(far, want, rtol=1e-9)
    np.testing.assert_allclose(pit, [0.99, 1.0 - 0.5 * want[1], 0.5 * want[2]], rtol=1e-9)
