"""A week that grows with the level takes its course; what changes in it is told of, in whichever unit one counts."""

import numpy as np
import pytest

from filtax.runs.course import Course

DAYS = np.arange(2000)
WEEKS = np.array([[1.0, 1.05, 1.1, 1.05, 1.0, 0.6, 0.5], [1.0, 1.05, 1.1, 1.05, 1.0, 0.9, 0.9]])


def growing(seed, rate=0.001, noise=0.02, apart=0.0, at=None):
    """A weekly shape times growth by a rate a day; from a day on another shape."""
    t = DAYS if at is None else DAYS[: at + 100]
    week = np.where(t < (len(t) if at is None else at), WEEKS[0, t % 7], WEEKS[1, t % 7])
    rng = np.random.default_rng(seed)
    return 100.0 * week * np.exp(rate * t + noise * rng.normal(size=len(t))) + apart * rng.normal(size=len(t))


def told_of(y, cycles=(7,)):
    return Course(0.001, cycles).look(np.zeros(len(y), int), np.arange(len(y)), y, [])


@pytest.mark.parametrize(("rate", "noise", "apart"), [(0.001, 0.02, 0.0), (0.001, 0.0, 2.0), (0.0033, 0.02, 0.0)])
def test_a_week_that_grows_with_the_level_is_no_change(rate, noise, apart):
    """Before, six to seven changes in each; with noise that does not grow with it some twenty."""
    assert told_of(growing(0, rate, noise, apart)[:1200]) == []


@pytest.mark.nightly
@pytest.mark.parametrize(("rate", "noise", "apart"), [(0.001, 0.02, 0.0), (0.001, 0.0, 2.0), (0.0033, 0.02, 0.0)])
def test_weeks_that_grow_for_years(rate, noise, apart):
    assert [told_of(growing(seed, rate, noise, apart)) for seed in range(8)] == [[]] * 8


def test_a_week_that_becomes_another_one_is_told_of_while_it_grows():
    for seed in range(2):
        [(row, _, since)] = told_of(growing(seed, at=400))
        assert row <= 400 + 50
        assert abs(row - since - 400) <= 7


def test_what_falls_below_zero_is_watched_as_it_is():
    """A bend of days that were positive, and are not any more; blocks without a logarithm say nothing against it."""
    t = np.arange(300)
    y = 20.0 - 0.6 * np.maximum(t - 150, 0) + 0.5 * np.random.default_rng(0).normal(size=300)
    [(row, _, since)] = told_of(y)
    assert abs(row - since - 150) <= 7
    y[140] = -1.0
    zero = np.zeros(300, int)
    assert told_of(y) == Course(0.001, (7,), growth=False).look(zero, t, y, [])


def test_of_runs_of_before_only_the_readings_are_watched():
    y, zero = growing(0)[:700], np.zeros(700, int)
    before, now = Course(0.001, (7,), growth=False), Course(0.001, (7,))
    assert len(before.look(zero, DAYS[:700], y, [])) == 2
    assert now.look(zero, DAYS[:700], y, []) == []
    assert (len(before.arrays), len(now.arrays)) == (7, 13)
