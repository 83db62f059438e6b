"""Changes that no single row shows: the odds against dense algebra, the power and the false alarms, the lockdown."""

import csv
import gzip
import math

import numpy as np
import pytest
import scipy.stats

from filtax.runs import Config, carry_on, open_run
from filtax.runs.course import Course
from filtax.runs.lasting import LINE, MEMORY, SIZE, Elder, evidence, faded, learned, newborn, pattern
from thesis_load import LOAD

RATE = 0.001
WEEK = (24, 168)


def bent(seed, rows=2000, at=1000, cycle=0.0):
    """A line that rises by 0.01 an hour and falls by 0.02 from a row on."""
    t = np.arange(rows)
    y = 0.01 * t - 0.03 * np.maximum(t - at, 0) + cycle * np.sin(2 * np.pi * t / 24)
    return y + np.random.default_rng(seed).normal(size=rows)


def followed(rng, rows, memory):
    noise, y = rng.normal(size=rows), np.zeros(rows)
    for t in range(1, rows):
        y[t] = memory * y[t - 1] + noise[t]
    return y


def stationary(kind, seed, rows):
    rng, t = np.random.default_rng(seed), np.arange(rows)
    day = 5.0 * np.sin(2 * np.pi * t / 24)
    free = np.repeat(rng.random(rows // 24 + 1) < 0.03, 24)[:rows]
    made = {
        "noise": lambda: rng.normal(size=rows),
        "line": lambda: 0.01 * t + day + rng.normal(size=rows),
        "memory": lambda: day + followed(rng, rows, 0.98),
        "walk": lambda: np.cumsum(rng.normal(size=rows)),
        "heavy": lambda: day + rng.standard_t(3, size=rows),
        "holidays": lambda: day - 6.0 * ((t // 24) % 7 >= 5) - 10.0 * free + followed(rng, rows, 0.9),
    }
    return made[kind]()


def told_of(y, cycles=WEEK):
    return Course(RATE, cycles).look(np.zeros(len(y), int), np.arange(len(y)), y, [])


@pytest.mark.parametrize("cycle", [0, 7])
def test_the_odds_are_those_of_two_normal_laws(cycle):
    rng = np.random.default_rng(1)
    number = np.cumsum(rng.integers(1, 3, size=25))
    z, starts = rng.normal(size=25), np.array([0, 3, 11, 22])
    got = evidence(number, z, starts, pattern(number, cycle))
    for start, odds in zip(starts, got, strict=True):
        line = np.stack([np.ones(25), (number - number[start]) / LINE], axis=1)
        ways = [line, np.concatenate([line, pattern(number, cycle)], axis=1)]
        gains = []
        for columns in ways:
            D, own = columns[start:], z[start:]
            law = scipy.stats.multivariate_normal(np.zeros(len(own)), np.eye(len(own)) + SIZE**2 * D @ D.T)
            gains.append(law.logpdf(own) - scipy.stats.norm.logpdf(own).sum())
        np.testing.assert_allclose(odds, np.logaddexp(*gains) - math.log(2.0), rtol=1e-9, atol=1e-9)


def test_the_elder_is_a_regression_and_its_errors_are_normal():
    """The oracle: the batch posterior, and Student's law of the next value."""
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(40, 3)), rng.normal(size=40)
    elder = newborn(3)
    for k in range(40):
        precision = newborn(3).precision + X[:k].T @ X[:k]
        mean = np.linalg.solve(precision, X[:k].T @ y[:k])
        shape = 1.0 + k / 2
        rate = newborn(3).rate + 0.5 * (y[:k] @ y[:k] - mean @ precision @ mean)
        scale = math.sqrt(rate / shape * (1.0 + X[k] @ np.linalg.solve(precision, X[k])))
        elder, value, z = learned(elder, X[k], y[k], 9.0)
        law = scipy.stats.t(2.0 * shape, X[k] @ mean, scale)
        assert value == y[k]
        assert z == pytest.approx(scipy.stats.norm.ppf(law.cdf(y[k])), abs=0.03)
    far, value, z = learned(elder, X[0], 1e300, 2.0)
    assert z == 2.0
    assert np.isfinite([value, far.rate, *far.mean]).all()
    assert learned(elder, X[0], value, 2.1)[2] == pytest.approx(2.0)


def test_of_what_fades_only_level_and_line_become_less_certain():
    """The oracle: their covariance grows by a factor, and what is known of the rest given them stays."""
    X = np.random.default_rng(3).normal(size=(60, 5))
    elder = Elder(np.arange(5.0), X.T @ X, 9.0, 1e-12)  # so little noise that a newborn knows nothing of them
    later, rest = faded(elder), [2, 3, 4]
    cov, wider = np.linalg.inv(elder.precision), np.linalg.inv(later.precision)
    np.testing.assert_allclose(wider[:2, :2] * (1.0 - 1.0 / MEMORY), cov[:2, :2], rtol=1e-9)
    np.testing.assert_array_equal(later.precision[rest], elder.precision[rest])
    np.testing.assert_array_equal(later.mean, elder.mean)
    assert later.rate / later.shape == pytest.approx(elder.rate / elder.shape)
    assert 8.0 < later.shape < 9.0


@pytest.mark.parametrize("slope", [0.05, 0.1, 0.5, -0.1])
def test_a_strong_bend_is_told_once_and_its_day_is_named(slope):
    """A belief in the old unit took the new line for impossible, and a month later told of a change that was none."""
    t = np.arange(24 * 110)
    for seed in range(10):
        y = slope * np.maximum(t - 1200, 0) + 5.0 * np.sin(2 * np.pi * t / 24)
        [(row, _, since)] = told_of(y + np.random.default_rng(seed).normal(size=t.size))
        assert 1200 < row <= 1200 + 7 * 24
        assert abs(row - since - 1200) <= 24


@pytest.mark.parametrize("size", [5.0, 20.0])
def test_the_day_of_a_jump_is_named(size):
    t = np.arange(24 * 60)
    for seed in range(5):
        [(row, _, since)] = told_of(size * (t >= 1200) + np.random.default_rng(seed).normal(size=t.size))
        assert row - since == 1200


@pytest.mark.parametrize("size", [3.0, 10.0])
def test_the_day_of_a_jump_at_noon_is_named(size):
    """A day that lies between the levels belongs to neither: before, up to a week too early was named for it."""
    t = np.arange(24 * 70)
    for seed in range(10):
        [(row, _, since)] = told_of(size * (t >= 1500) + np.random.default_rng(seed).normal(size=t.size))
        assert abs(row - since - 1500) <= 24


def test_seasons_and_growth_by_percents_are_no_changes():
    for seed in range(2):
        rng, t, day = np.random.default_rng(seed), np.arange(24 * 730), np.arange(1500)
        year = 10.0 * np.sin(2 * np.pi * t / 8766) + 5.0 * np.sin(2 * np.pi * t / 24)
        assert told_of(year + rng.normal(size=t.size)) == []
        assert told_of(10.0 * np.sin(2 * np.pi * day / 365.25) + rng.normal(size=1500), (7,)) == []
        assert told_of(100.0 * np.exp(day / 300) * np.exp(0.02 * rng.normal(size=1500)), (7,)) == []


@pytest.mark.parametrize("cycle", [0.0, 5.0])
def test_a_trend_that_bends_is_told_once_within_a_week(cycle):
    for seed in range(20):
        [(row, _, since)] = told_of(bent(seed, cycle=cycle))
        assert 1000 < row <= 1000 + 7 * 24
        assert abs(row - since - 1000) <= 3 * 24


@pytest.mark.parametrize("kind", ["noise", "line", "memory", "walk", "heavy", "holidays"])
def test_what_takes_its_course_is_not_told_of(kind):
    assert sum(len(told_of(stationary(kind, seed, 24 * 120))) for seed in range(20)) == 0


def test_in_pieces_and_by_way_of_a_checkpoint_it_tells_the_same():
    y = bent(0)
    y[np.random.default_rng(0).choice(2000, 200, replace=False)] = np.nan
    [(row, _, since)] = told_of(y)
    cut, got = Course(RATE, WEEK), []
    cut.make_room(2)
    for rows in np.split(np.arange(4000), [1, 2, 611, 1402, 2111, 2310]):  # two series, row by row in turn
        got += [(int(rows[at]), n) for at, _, n in cut.look(rows % 2, rows // 2, y[rows // 2], [])]
        kept, cut = [array.copy() for array in cut.arrays], Course(RATE, WEEK)
        cut.restore(kept)
    assert got == [(2 * row, since), (2 * row + 1, since)]
    whole = Course(RATE, WEEK)
    whole.look(np.zeros(2000, int), np.arange(2000), y, [])
    for one, both in zip(whole.arrays, cut.arrays, strict=True):
        np.testing.assert_array_equal(one[0], both[1])


def test_a_line_that_runs_far_away_from_its_first_unit_is_learned():
    """Lags that are copies of each other but for a millionth: a covariance would lose its sign."""
    t = np.arange(1500.0)
    for size in (1.0, 1e6):
        y = size * (t + 0.001 * np.random.default_rng(0).normal(size=1500))
        assert told_of(y, (7,)) == []
    assert told_of(np.full(1500, 3.0), (7,)) == []


def test_one_alarm_is_enough_and_the_next_change_is_told_too():
    y, slot, cell = bent(0), np.zeros(2000, int), np.arange(2000)
    assert Course(RATE, WEEK).look(slot, cell, y, [(1010, 9)]) == []
    assert len(Course(RATE, WEEK).look(slot, cell, y, [(900, 9)])) == 1
    long = bent(0, rows=4000)
    long[2600:] += 0.05 * np.arange(1400)
    assert len(told_of(long)) == 2


@pytest.mark.x64
def test_a_run_tells_of_a_trend_that_bends(tmp_path):
    """All defaults; the forecast itself follows, and no row of it surprises."""
    hours = np.datetime64("2024-01-01T00:00") + 60 * np.arange(1300)
    rows = [f"{when},{value!r}\n" for when, value in zip(hours, bent(1, 1300, cycle=5.0).tolist(), strict=True)]
    (tmp_path / "t.csv").write_text("when,load\n" + "".join(rows))
    carry_on(Config(str(tmp_path / "t.csv"), "load", time="when", block=4096), tmp_path / "run")
    [told] = [event for event in open_run(tmp_path / "run").events() if event["event"] == "change"]
    assert 1000 < told["row"] <= 1168
    assert abs(told["began"] - 1001) <= 3 * 24


@pytest.mark.skipif(not LOAD.is_file(), reason="the load is not at hand: name the folder of data sets in FILTAX_DATA")
def test_the_lockdown_is_the_one_change_of_course_of_four_years():
    with gzip.open(LOAD, "rt") as lines:
        rows = [(row["time"], float(row["load_kw"])) for row in csv.DictReader(lines)]
    time = np.array([when for when, _ in rows], "datetime64[h]")
    cell, y = time.astype(np.int64), np.array([value for _, value in rows])
    [(row, _, since)] = Course(RATE, WEEK).look(np.zeros(len(y), int), cell, y, [])
    assert np.datetime64("2020-03-10") <= time[row] <= np.datetime64("2020-03-25")
    assert np.datetime64("2020-03-05") <= time[row - since] <= np.datetime64("2020-03-16")


@pytest.mark.parametrize("moved", [300, 600])
def test_a_level_that_moved_while_the_watch_learned_is_not_told_of_again(moved):
    """Learned as one line across both levels, it was told of weeks later, with the first block that may be named."""
    t, zero = np.arange(24 * 110), np.zeros(24 * 110, int)
    y = np.random.default_rng(moved).normal(size=t.size) + 30.0 * (t >= moved)
    assert [kind for _, kind, _ in Course(0.001, (24, 168)).look(zero, t, y, [])] == ["change"]
    assert Course(0.001, (24, 168)).look(zero, t, y, [(moved + 10, 10)]) == []
    later = y + 30.0 * (t >= 24 * 95)  # another change is
    [(row, _, since)] = Course(0.001, (24, 168)).look(zero, t, later, [(moved + 10, 10)])
    assert abs(row - since - 24 * 95) <= 24
