"""Verdicts on made-up trials; intervals against those of scipy, and against how often they hold what they should."""

import numpy as np
import pytest
from scipy import stats

from thesis.statistics import about, below, block_draws, of_mean, of_median, of_series

rng = np.random.default_rng(0)
BASE = rng.standard_normal(200)


@pytest.mark.parametrize(
    ("shift", "text"), [(-0.5, "holds"), (0.5, "does not hold"), (0.0, "not decided at this size")]
)
def test_below_is_paired(shift, text):
    # the spread of the trials is ten times the shift: only the pairing shows it
    a = 5 * BASE + shift + 0.3 * rng.standard_normal(200)
    assert below(a, 5 * BASE).text == text


def test_below_with_a_ratio():
    a, b = np.full(20, 0.6), np.ones(20)
    assert below(a, b, ratio=0.65).text == "holds"
    assert below(a, b, ratio=0.55).text == "does not hold"


@pytest.mark.parametrize(
    ("shift", "tie", "text"),
    [
        (0.0, None, "not decided at this size"),
        (0.0, 0.1, "does not hold"),
        (0.0, 0.001, "not decided at this size"),
        (-0.05, 0.1, "holds"),  # below by less than the margin, but below
        (0.5, 0.1, "does not hold"),
        (-0.5, 0.1, "holds"),
    ],
)
def test_a_tie_is_not_below(shift, tie, text):
    b = 3 + BASE
    a = b + shift + 0.05 * np.random.default_rng(5).standard_normal(200)
    verdict = below(a, b, tie=tie)
    assert verdict.text == text
    assert ("alike within 10 %" in verdict.evidence) == (text == "does not hold" and shift == 0)


def test_a_diverged_trial_never_helps():
    a, b = np.ones(20), np.full(20, 2.0)
    a[:15] = np.nan
    assert below(a, b).text == "does not hold"


@pytest.mark.parametrize(
    ("shift", "text"), [(0.0, "holds"), (0.05, "holds"), (0.2, "does not hold"), (-0.2, "does not hold")]
)
def test_about_has_a_margin(shift, text):
    b = 1 + 0.01 * BASE
    assert about(b + shift, b, margin=0.1).text == text
    assert about(10 * (b + shift), 10 * b, margin=1.0, relative=False).text == text


def test_about_is_not_decided_by_few_noisy_trials():
    assert about(BASE[:6], np.ones(6), margin=0.5).text == "not decided at this size"


@pytest.mark.parametrize("n", [6, 7, 9, 20, 57, 500, 1200])
def test_medians_lie_between_the_trials_that_scipy_names(n):
    values = rng.standard_cauchy(n)
    np.testing.assert_allclose(of_median(values), stats.quantile_test(values).confidence_interval())


def test_fewer_than_six_trials_have_no_interval_of_a_median():
    assert [of_median(np.arange(float(n))) is None for n in range(7)] == [True] * 6 + [False]


def test_a_trial_that_diverged_is_the_largest():
    assert of_median([1.0, 2.0, 3.0, 4.0, 5.0, np.nan]) == (1.0, np.inf)
    assert of_mean([1.0, np.nan, 2.0]) is None
    assert of_mean([1.0]) is None


@pytest.mark.parametrize("n", [2, 3, 20])
def test_means_are_those_of_student(n):
    values = rng.gamma(3.0, size=n)
    np.testing.assert_allclose(of_mean(values), stats.ttest_1samp(values, 0.0).confidence_interval(), rtol=1e-10)


def test_blocks_follow_each_other_round_in_a_circle():
    places = block_draws(11, 4, draws=500)
    assert places.shape == (500, 11)
    for block in (places[:, :4], places[:, 4:8], places[:, 8:]):
        assert (np.diff(block, axis=1) % 11 == 1).all()
    counts = np.bincount(places.ravel(), minlength=11)
    assert np.abs(counts / counts.mean() - 1).max() < 0.15  # every place as often: no edge counts less
    assert len({tuple(row) for row in places}) > 400


def test_blocks_know_of_neighbours_that_resemble_each_other():
    """The mean of an autoregression: its standard error is 1 / (1 - 0.8) of that of what is new in each step."""
    hits = {1: 0, 40: 0}
    for _ in range(60):
        new = rng.normal(size=800)
        series = np.zeros(800)
        for t in range(1, 800):
            series[t] = 0.8 * series[t - 1] + new[t]
        for block in hits:
            low, high = of_series(series, block, np.mean)
            hits[block] += low < 0 < high
    assert hits[40] >= 50 > 45 > hits[1]


def test_the_median_of_a_series_is_drawn_in_blocks():
    values = rng.gamma(2.0, size=30)
    drawn = [np.median(values[places]) for places in block_draws(30, 7)]
    np.testing.assert_allclose(of_series(values, 7), np.quantile(drawn, (0.025, 0.975)))
    assert of_series(values[:13], 7) is None
