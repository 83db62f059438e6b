"""The period of a cycle is found, and nothing else is taken for a cycle."""

import numpy as np
import pytest

from filtax.segmentation import find_period
from filtax.segmentation._cycle import block_means, block_of, cycle_features

rng = np.random.default_rng(0)
t = np.arange(300)


@pytest.mark.parametrize("period", [7.0, 12.0, 30.5])
def test_a_cycle_is_found_in_noise_and_trend(period):
    y = np.cos(2 * np.pi * t / period) + 0.02 * t + 0.5 * rng.normal(size=300)
    y[::11] = np.nan
    assert find_period(y) == pytest.approx(period, rel=0.02)
    assert find_period(np.column_stack([y, 1e3 * y])) == pytest.approx(period, rel=0.02)


def test_the_period_stays_in_step_over_the_whole_series():
    """An error of a hundredth would be a third of a cycle out after 300 readings."""
    y = np.cos(2 * np.pi * t / 12.1) + 0.3 * rng.normal(size=300)
    assert abs(300 / find_period(y) - 300 / 12.1) < 0.03


@pytest.mark.parametrize("at", [200, 350, 500, 800])
def test_a_cycle_that_turns_round_keeps_its_length(at):
    """As a whole it cancels itself out: the spectrum has a hole at 1/24 and a hill on both sides."""
    hour = np.arange(1000)
    for seed in range(3):
        noise = np.random.default_rng(seed).normal(size=1000)
        y = 5.0 * np.sin(2 * np.pi * hour / 24 + np.pi * (hour >= at)) + noise
        assert find_period(y) == pytest.approx(24.0, abs=0.06)


@pytest.mark.nightly
def test_noise_walks_steps_and_trends_have_none():
    """At most one in twenty of series with a memory passes for a cycle."""
    noise = rng.normal(size=(40, 150))
    walks = np.cumsum(rng.normal(size=(40, 150)), axis=1)
    steps = rng.normal(size=(40, 150)) + np.repeat(rng.normal(scale=3.0, size=(40, 5)), 30, axis=1)
    assert sum(find_period(y) is not None for y in noise) == 0
    assert sum(find_period(y) is not None for y in walks) <= 2
    assert sum(find_period(y) is not None for y in steps) <= 2
    assert find_period(3.0 + 0.5 * t) is None
    assert find_period(np.ones(300)) is None


def test_too_few_cycles_are_none():
    y = np.cos(2 * np.pi * t / 60)
    assert find_period(y) is None
    assert find_period(y, cycles=4) == pytest.approx(60.0, rel=0.02)
    assert find_period(y[:10]) is None


def test_blocks_hold_a_cycle_in_six_readings_or_more():
    assert [block_of(p) for p in (None, 6.0, 11.9, 12.0, 106.2)] == [1, 1, 1, 2, 17]
    np.testing.assert_array_equal(block_means(np.arange(7.0)[:, None], 3)[:, 0], [1.0, 4.0])
    assert np.isnan(block_means(np.full((4, 1), np.nan), 2)).all()
    waves = cycle_features(24, 12.0)
    np.testing.assert_allclose(waves[:12], waves[12:], atol=1e-12)


def test_the_period_stays_in_step_far_behind_the_series():
    """Without noise, what 500 readings tell is less than a hundredth of a cycle out after 2000: no grid shows."""
    for period in (12.1, 24.3, 24.013):
        y = np.cos(2 * np.pi * np.arange(500) / period)
        assert abs(2000 / find_period(y) - 2000 / period) < 0.01


@pytest.mark.nightly
def test_few_turns_of_noise_walks_and_steps_are_no_cycle():
    """One that came round twice must explain nine tenths: at most one in forty young series with a memory does."""
    made = np.random.default_rng(3)
    walks = np.cumsum(made.normal(size=(40, 75)), axis=1)
    steps = 0.3 * made.normal(size=(40, 75)) + np.repeat(made.normal(scale=3.0, size=(40, 5)), 15, axis=1)
    for series in (made.normal(size=(40, 75)), walks, steps):
        assert sum(find_period(y, cycles=2, level=0.9) is not None for y in series) <= 1


def test_what_is_masked_is_no_reading():
    y = np.ma.array(np.sin(2 * np.pi * np.arange(240) / 12), mask=np.arange(240) % 50 == 7)
    y.data[y.mask] = 1e6
    assert find_period(y) == pytest.approx(12.0, abs=0.01)
