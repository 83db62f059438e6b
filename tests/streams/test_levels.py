"""Levels that keep coming back, with noise: known for what they are, and nothing that is measured has any."""

import numpy as np
import pytest

from filtax.streams.levels import LONG, NEW, USUAL, Levels


def looked(values, cuts=(), cycles=(), cells=None):
    found, state = [], Levels.none(cycles)
    cells = np.arange(len(values)) if cells is None else cells
    for part, at in zip(np.split(np.asarray(values, float), cuts), np.split(cells, cuts), strict=True):
        levels = Levels(state, cycles)
        found += [levels.look(*row) for row in zip(part.tolist(), at.tolist(), strict=True)]
        state = levels.arrays()
    return np.array(found)


def device(seed, rows=3000, rate=0.05, noise=0.02):
    rng = np.random.default_rng(seed)
    return 5.0 * (np.cumsum(rng.random(rows) < rate) % 2) + noise * rng.normal(size=rows)


@pytest.mark.parametrize("noise", [0.0, 0.02, 0.1])
@pytest.mark.parametrize("rate", [0.01, 0.05, 0.3])
def test_both_levels_of_a_device_are_usual_and_none_is_new(noise, rate):
    told = looked(device(1, rate=rate, noise=noise))[500:]
    assert np.mean(told > 0.0) > 0.99
    assert np.sum(told <= NEW) == 0


def test_a_slow_switch_is_known_though_its_levels_stay_for_hundreds_of_readings():
    assert np.mean(looked(np.tile(np.repeat([0.0, 1.0], 400), 6))[2000:] > 0.0) == 1.0


def by(phi, noise):
    level, found = 0.0, []
    for value in noise.tolist():
        level = phi * level + value
        found.append(level)
    return np.array(found)


@pytest.mark.parametrize("seed", range(3))
def test_what_is_measured_has_no_levels(seed):
    rng, t = np.random.default_rng(seed), np.arange(4000)
    noise, wave = rng.normal(size=4000), np.sin(2.0 * np.pi * t / 24)
    series = [noise, noise.cumsum(), by(0.95, noise), by(0.99, noise), wave, wave + 0.05 * noise]
    series += [
        rng.standard_t(2, size=4000),
        rng.standard_cauchy(size=4000),
        np.maximum(wave, 0.0) * (1.0 + 0.1 * noise),
    ]
    series += [np.where(rng.random(4000) < 0.05, -999.0, noise)]  # a code among it is no level either
    for y in series:
        assert not looked(y).any()


@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_a_level_that_never_was_is_new_once_and_then_one_of_them(noise):
    y = device(2, noise=noise)
    y[2500:2540] = 2.5
    told = looked(y)
    assert np.flatnonzero(told <= NEW).tolist() == [2509]
    assert np.all((told[2500:2509] < 0.0) & (told[2500:2509] > -0.001))
    assert not np.any(told[1000:2500] < 0.0)
    for start in (2500, 2700, 2800):
        y[start : start + 40] = 2.5 + noise * np.random.default_rng(start).normal(size=40)
    assert np.all(looked(y)[2815:2840] > 0.0)


def test_a_visit_ten_times_as_long_as_the_others_is_told_apart():
    y = device(3, rate=0.2)
    y[2500:] = 0.02 * np.random.default_rng(9).normal(size=500)
    told = looked(y)
    assert np.all(told[2499:2510] == USUAL)
    assert np.all(told[2600:] == LONG)


def test_in_pieces_it_is_the_same_and_what_is_missing_or_huge_does_no_harm():
    y = device(4, rows=400)
    y[[50, 51, 200]] = np.nan, np.inf, 1e300
    np.testing.assert_array_equal(looked(y, cuts=[1, 7, 200, 399]), looked(y))
    assert np.all(np.isfinite(looked([1e300, -1e300] * 20)))


def by_the_clock(rows, seed=5):
    t = np.arange(rows)
    return 5.0 * ((t % 24 >= 8) & (t % 24 < 18)) + 0.02 * np.random.default_rng(seed).normal(size=rows)


def test_what_keeps_to_the_clock_is_not_usual_even_just_after_it_stopped_and_with_rows_left_out():
    y = by_the_clock(1000)
    y[888:] = y[0:112] * (y[0:112] < 2.0)
    assert not np.any(looked(y, cycles=(24, 168))[150:912] > 0.0)
    assert np.mean(looked(y)[150:888] > 0.0) > 0.99
    cells = np.delete(np.arange(1000), np.random.default_rng(6).choice(1000, 100, replace=False))
    assert not np.any(looked(y[cells], cycles=(24, 168), cells=cells)[200:790] > 0.0)


@pytest.mark.parametrize("rate", [0.01, 0.05, 0.3])
def test_what_switches_at_random_is_usual_beside_cycles_too(rate):
    y = device(7, rate=rate)
    told = looked(y, cycles=(24, 168))
    assert np.mean(told[700:] > 0.0) > 0.99
    np.testing.assert_array_equal(looked(y, cuts=[1, 30, 200, 2999], cycles=(24, 168)), told)


def test_levels_that_all_moved_are_new_together():
    rng = np.random.default_rng(8)
    y = rng.choice([19.0, 20.0, 21.0], size=3000, p=[0.2, 0.6, 0.2])
    y[2500:] += 2.0
    told = looked(y)
    assert np.sum(told <= NEW) == 1
    assert 2509 <= np.flatnonzero(told <= NEW)[0] <= 2530
    assert np.mean(told[2600:] > 0.0) > 0.9
