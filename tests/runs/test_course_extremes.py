"""Series that are legal and hard: no watch of slow changes may end a run on them, or take its own echo for a change."""

import numpy as np
import pytest

from filtax.runs.course import Course
from filtax.runs.differing import differing
from filtax.runs.lasting import Elder, begun, evidence, faded, learned, newborn, pattern
from filtax.segmentation import find_period
from filtax.segmentation._segments import neighbour_correlation

N = 2400
T = np.arange(N)
CYCLES = {(24, 168): N, (7,): 500, (): N}  # and rows
NOISE = np.random.default_rng(0).normal(size=N)
SERIES = {
    "zeros": 0.0 * T,
    "constant": np.full(N, 3.0),
    "line": 1.0 * T,
    "cube": 1.0 * T**3,
    "growth": np.exp(T / 60),
    "decay": np.exp(-T / 3.0),
    "large": 1e300 * np.sin(T),
    "tiny": 1e-300 * np.sin(T),
    "denormal": 1e-310 * np.sin(T),
    "two": 1.0 * (T % 7 < 3),
    "one": 1.0 * (T == 700),
    "first": np.where(T == 0, 1e15, np.sin(T)),
    "first day": np.where(T < 24, 1e300, np.sin(T)),
    "first 30": np.where(T < 30, 1e6, NOISE),
}


def told_of(y, cycles, cell=None):
    with np.errstate(all="raise", under="ignore"):
        return Course(0.001, cycles).look(np.zeros(len(y), int), T[: len(y)] if cell is None else cell, y, [])


@pytest.mark.parametrize("name", SERIES)
def test_what_never_changes_is_told_of_by_none(name):
    """Growth and decay ended with a singular matrix; a first reading of 1e15 was a change after 75 days."""
    assert [told_of(SERIES[name][:rows], cycles) for cycles, rows in CYCLES.items()] == [[], [], []]


def test_a_step_is_told_of_whatever_its_size():
    for size in (1.0, 1e100):
        [(row, _, since)] = told_of(size * (T[:500] >= 400), (7,))
        assert row - since == 400
    week = 1.0 * (T[:600] // 24 % 7 < 5)  # levels that hold for days, of which the watch knows no cycle
    assert len(told_of(week, (7,))) > 3


def test_growth_that_outgrows_its_unit_a_million_million_times_is_no_change():
    assert told_of(np.exp(T[:1800] / 60), (7,)) == []


@pytest.mark.parametrize("day", [2, 9, 13])
def test_a_day_of_errors_among_the_first_is_none(day):
    for seed in range(5):
        y = 20.0 + np.random.default_rng(seed).normal(size=1300)
        y[24 * day] += 1e6
        assert told_of(y, (24, 168)) == []


@pytest.mark.parametrize("before", [1e-310, 1.0, 1e308])
@pytest.mark.parametrize("after", [1.0, 1e308])
def test_from_next_to_nothing_to_the_largest_numbers_all_stays_finite(before, after):
    y = np.where(T < 200, before, after) * np.where(T % 2, 1.5, -1.5) * (1.0 + 0.01 * NOISE)
    watch = Course(0.001, (7,))
    with np.errstate(over="ignore"):
        watch.look(np.zeros(400, int), T[:400], y[:400], [])
    assert not any(np.isinf(array).any() for array in watch.arrays)
    assert np.isfinite(watch.plain.unit).all() or before == after == 1e308  # held in a smaller unit by a run
    assert all(np.isfinite(array).all() for array in watch.plain.arrays[3:])


@pytest.mark.parametrize("gap", [1000, 10**6, 10**15])
def test_a_gap_of_any_length_is_no_change(gap):
    for cycles, rows in (((24, 168), N), ((7,), 300)):
        for part in (0.1, 0.6):
            t = T[:rows]
            assert told_of(NOISE[:rows], cycles, np.where(t < part * rows, t, t + gap)) == []


def test_the_odds_and_the_start_do_not_depend_on_a_gap_before_all_of_it():
    number = np.arange(40)
    far = np.where(number < 10, number, number + 10**15)
    z, starts = np.where(number < 30, 0.0, 2.0), np.arange(28, 38)
    waves = pattern(number, 7)
    assert np.isfinite(evidence(far, z, np.arange(38), waves)).all()
    np.testing.assert_allclose(evidence(far, z, starts, waves), evidence(number, z, starts, waves), rtol=1e-9)
    assert begun(far, NOISE[:40] + 9.0 * z, starts, waves) == 30


def test_lags_that_feed_themselves_stay_within_what_came():
    """An average over a gross error made them grow a hundredfold a day, to 1e86, while the readings stood at 20."""
    y = 20.0 + np.random.default_rng(72).normal(size=N)
    y[[48, 72]] -= 1e4
    watch = Course(0.001, (24, 168))
    for day in np.split(T, N // 24):
        watch.look(np.zeros(24, int), day, y[day], [])
        learned_of = watch.plain.blocks[0, 3, np.isfinite(watch.plain.blocks[0, 3])]
        assert np.all(np.abs(learned_of - 20.0) < 3.0 * 1e4 / 24)


def test_columns_that_are_copies_of_each_other_leave_a_belief_that_is_only_less_certain():
    x = np.array([1.0, 2.0, 1e9, 1e9])
    elder = Elder(np.zeros(4), 60.0 * np.outer(x, x), 20.0, 10.0)  # of rank one
    later, value, off = learned(faded(elder), x, 0.5, 3.0)
    assert np.isfinite([value, off, later.rate, *later.mean, *later.precision.ravel()]).all()
    assert abs(off) < 3.0


def test_of_a_series_that_was_read_once_a_cycle_the_period_is_none():
    """The columns of its cycle are copies of the constant."""
    y = np.full(24 * 300, np.nan)
    y[::24] = NOISE[:300]
    assert find_period(y) is None


def test_noise_that_has_faded_to_nothing_is_that_of_rounding():
    """After 85,000 blocks that are all the same it was 0, and the error in units of it no number."""
    elder = faded(Elder(np.zeros(4), np.eye(4), 1.0, 5e-324))
    assert np.isfinite(learned(elder, np.ones(4), 1.0, 3.0)[2])
    assert np.isfinite(learned(faded(newborn(4, 2.0, 0.0)), np.ones(4), 1.0, 3.0)[2])


@pytest.mark.parametrize("unit", [1e-300, 1e-160, 1.0, 1e160, 1e300])
def test_neighbours_and_segments_are_alike_in_any_unit(unit):
    y = np.where(T < 1200, 0.0, 5.0) + np.sin(2 * np.pi * T / 24) * (1 + (T >= 1200)) + 0.1 * NOISE
    one, other = differing(y, 0, 1200, N, 24.0), differing(unit * y, 0, 1200, N, 24.0)
    assert list(one) == list(other) == ["level", "cycle"]
    np.testing.assert_allclose(other["level"], unit * np.array(one["level"]), rtol=1e-6)
    assert neighbour_correlation(unit * y, [1200], 24.0) == pytest.approx(neighbour_correlation(y, [1200], 24.0))
    assert differing(0.0 * y, 0, 1200, N, 24.0) == {}
    assert neighbour_correlation(np.full(9, np.nan), []) == 0.0
