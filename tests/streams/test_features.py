"""Features: what they are at each row, and that no row sees its own reading or a later one."""

import numpy as np
import pytest

from filtax.streams import fill, harmonics, hourly_features, hourly_load, lagged

HOURS = np.datetime64("2024-01-01T00") + np.arange(24 * 21)


def cycle(seed: int = 0) -> np.ndarray:
    t = np.arange(len(HOURS))
    return 1.0 + 0.2 * np.cos(2 * np.pi * t / 24) + 0.01 * np.random.default_rng(seed).normal(size=len(t))


def test_good_readings_are_left_alone():
    np.testing.assert_array_equal(fill(cycle()), cycle())


def test_a_gap_repeats_the_day_before_over_several_days():
    y = cycle()
    y[200:260] = np.nan
    want = cycle()
    want[200:224] = want[176:200]
    want[224:248] = want[176:200]
    want[248:260] = want[176:188]
    np.testing.assert_array_equal(fill(y), want)


@pytest.mark.parametrize("wrong", [0.0, 2.5, -50.0, 1e30, np.inf, -np.inf])
def test_absurd_readings_are_treated_as_missing(wrong):
    y, gap = cycle(), cycle()
    y[300], gap[300] = wrong, np.nan
    np.testing.assert_array_equal(fill(y), fill(gap))


def test_a_reading_does_not_judge_itself():
    """Beside 1.0 and 1.1 alone, 1.5 is absurd; were it counted among them, it would pass."""
    np.testing.assert_array_equal(fill(np.array([1.0, 1.1, 1.5]), period=2, window=2), [1.0, 1.1, 1.0])


def test_the_gate_counts_standard_deviations():
    """Of 0, 1, 2, 3, 4 the median is 2 and the median distance from it 1: four deviations reach to 2 + 4 x 1.4826."""
    past = [0.0, 1.0, 2.0, 3.0, 4.0]
    for last, taken in ((7.9, True), (8.0, False), (-3.9, True), (-4.0, False)):
        assert (fill(np.array([*past, last]), period=2, window=5)[-1] == last) == taken


def test_without_a_gate_every_finite_reading_stays():
    y = cycle()
    y[300] = 50.0
    np.testing.assert_array_equal(fill(y, gate=np.inf), y)


def test_a_lasting_change_of_level_is_believed_within_half_a_window():
    y = cycle()
    y[250:] += 5.0
    filled = fill(y)
    assert filled[250] < 2.0  # at first it looks like a fault
    np.testing.assert_array_equal(filled[250 + 84 :], y[250 + 84 :])


def test_the_first_day_is_filled_with_what_is_known():
    y = np.array([np.nan, 3.0, np.nan, 4.0, np.nan])
    np.testing.assert_array_equal(fill(y, period=4), [0.0, 3.0, 3.0, 4.0, 0.0])


def test_a_series_that_never_moved_has_no_gate():
    """Its median absolute deviation is 0; the first movement must not be refused for ever."""
    y = np.ones(100)
    y[60:] = 2.0
    np.testing.assert_array_equal(fill(y), y)


def test_lags_look_back_by_their_number():
    values = np.random.default_rng(0).normal(size=50)
    columns = lagged(values, (7, 2))
    np.testing.assert_array_equal(columns[7:, 0], values[:-7])
    np.testing.assert_array_equal(columns[2:, 1], values[:-2])


def test_a_lag_longer_than_the_series_repeats_the_next_shorter():
    values = np.arange(1.0, 7.0)
    columns = lagged(values, (2, 100))
    np.testing.assert_array_equal(columns[:, 0], [0.0, 1.0, 1.0, 2.0, 3.0, 4.0])
    np.testing.assert_array_equal(columns[:, 1], columns[:, 0])


def test_harmonics_follow_the_clock():
    """At 06:00 the first daily sine is at its top; a week later all are where they were."""
    X = harmonics(HOURS, 24, 2)
    np.testing.assert_allclose(X[6], [0.0, 1.0, -1.0, 0.0], atol=1e-12)
    weekly = harmonics(HOURS, 168, 3)
    np.testing.assert_allclose(weekly[168:336], weekly[:168], atol=1e-12)
    np.testing.assert_allclose(weekly[:168].T @ weekly[:168], 84.0 * np.eye(6), atol=1e-9)


def test_columns_and_names_agree():
    y = cycle()
    X, names = hourly_features(HOURS, y, lags=(1, 24), daily=2, weekly=1)
    assert X.shape == (len(y), len(names)) == (len(y), 1 + 4 + 2 + 2)
    np.testing.assert_array_equal(X[:, names.index("constant")], 1.0)
    np.testing.assert_array_equal(X[1:, names.index("lag 1")], y[:-1])
    np.testing.assert_allclose(X[:, names.index("day sin 2")], np.sin(4 * np.pi * np.arange(len(y)) / 24), atol=1e-9)


@pytest.mark.parametrize("later", [np.nan, 0.0, 1e30, 1.1])
def test_no_row_depends_on_its_own_reading_or_a_later_one(later):
    stream = hourly_load(800, key=3, lags=(1, 2, 24, 168))
    X, _ = hourly_features(stream.time, stream.y, (1, 2, 24, 168))
    np.testing.assert_array_equal(X, stream.X)
    for t in (0, 1, 23, 170, 333, 500, 799):
        y = stream.y.copy()
        y[t:] = later
        changed, _ = hourly_features(stream.time, y, (1, 2, 24, 168))
        np.testing.assert_array_equal(changed[: t + 1], X[: t + 1])


def test_a_row_does_depend_on_the_reading_before():
    y = cycle()
    X, names = hourly_features(HOURS, y, lags=(1,))
    y[399] += 0.01
    assert hourly_features(HOURS, y, lags=(1,))[0][400, names.index("lag 1")] != X[400, names.index("lag 1")]


def test_every_feature_is_finite_whatever_is_missing():
    y = cycle()
    y[np.random.default_rng(0).random(len(y)) < 0.5] = np.nan
    for readings in (y, np.full(len(y), np.nan)):
        assert np.isfinite(hourly_features(HOURS, readings)[0]).all()


def test_bad_arguments_are_refused_in_a_sentence():
    with pytest.raises(ValueError, match="look ahead"):
        lagged(np.ones(3), (0,))
    with pytest.raises(ValueError, match="3 times but 4 readings"):
        hourly_features(HOURS[:3], np.ones(4))
