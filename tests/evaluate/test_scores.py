"""Scores of points, densities and classes against scipy.stats and scikit-learn; CRPS and PIT by their definition."""

import numpy as np
import pytest
import scipy.integrate
import scipy.stats
import sklearn.metrics

from filtax.evaluate import Forecast
from filtax.evaluate.metrics import accuracy, brier, coverage, crps, log_score, mae, pit, rmedse, rmse

RNG = np.random.default_rng(20)
MEAN, Y = RNG.normal(size=200), RNG.normal(size=200)
VAR, DF = RNG.gamma(2.0, size=200), RNG.uniform(0.5, 200.0, size=200)
LABELS = RNG.integers(0, 4, size=200)
PROBABILITIES = RNG.dirichlet(np.ones(4), size=200)
CASES = [(0.0, 1.0, 0.0), (1.0, 0.3, 1.2), (-2.0, 4.0, 5.0), (10.0, 0.01, 9.9)]


def student(mean, scale, df):
    return Forecast(*np.broadcast_arrays(*np.atleast_1d(mean, np.nan, scale, df)))


def test_point_errors_are_those_of_scikit_learn():
    np.testing.assert_allclose(rmse(MEAN, Y), sklearn.metrics.root_mean_squared_error(Y, MEAN), rtol=1e-12)
    np.testing.assert_allclose(mae(MEAN, Y), sklearn.metrics.mean_absolute_error(Y, MEAN), rtol=1e-12)
    np.testing.assert_allclose(rmedse(MEAN, Y) ** 2, np.median((Y - MEAN) ** 2), rtol=1e-12)


def test_log_densities_are_those_of_scipy():
    want = scipy.stats.norm(MEAN, np.sqrt(VAR)).logpdf(Y)
    np.testing.assert_allclose(log_score.losses(Forecast(MEAN, var=VAR), Y), want, rtol=1e-12)
    want = scipy.stats.t(DF, MEAN, np.sqrt(VAR)).logpdf(Y)
    np.testing.assert_allclose(log_score.losses(student(MEAN, np.sqrt(VAR), DF), Y), want, rtol=1e-11)


def test_class_scores_are_those_of_scikit_learn():
    forecast, lone, binary = Forecast(PROBABILITIES), Forecast(PROBABILITIES[:, 0]), LABELS % 2
    losses = sklearn.metrics.log_loss, sklearn.metrics.brier_score_loss, sklearn.metrics.accuracy_score
    found = -log_score(forecast, LABELS), brier(forecast, LABELS), accuracy(forecast, LABELS)
    want = losses[0](LABELS, PROBABILITIES), losses[1](LABELS, PROBABILITIES, scale_by_half=False)
    np.testing.assert_allclose(found, [*want, losses[2](LABELS, PROBABILITIES.argmax(axis=1))], rtol=1e-12)
    found = -log_score(lone, binary), brier(lone, binary), accuracy(lone, binary)
    want = losses[0](binary, lone.mean), losses[1](binary, lone.mean), losses[2](binary, lone.mean > 0.5)
    np.testing.assert_allclose(found, want, rtol=1e-12)


@pytest.mark.parametrize(
    ("chosen", "forecast", "worst"),
    [
        (rmse, Forecast, np.inf),
        (mae, Forecast, np.inf),
        (log_score, lambda m: Forecast(m, var=np.ones(5)), -np.inf),
        (log_score, lambda m: student(m, 1.0, 1.0), -np.inf),
        (log_score, Forecast, -np.inf),
        (brier, Forecast, np.inf),
        (accuracy, Forecast, 0.0),
        (crps, lambda m: Forecast(m, var=np.ones(5)), np.inf),
        (crps, lambda m: student(m, 1.0, 3.0), np.inf),
        (pit, lambda m: student(m, 1.0, 3.0), 0.0),
        (coverage(), lambda m: Forecast(m, var=np.ones(5)), 0.0),
    ],
)
def test_the_missing_is_not_scored_and_the_broken_scores_worst(chosen, forecast, worst):
    y = np.array([np.nan, np.inf, 1.0, 0.0, 1.0])
    got = chosen.losses(forecast(np.array([0.5, 0.5, np.nan, np.nan, 0.5])), y)
    assert np.isnan(got[:2]).all()
    assert got[2] == got[3] == worst
    assert np.isfinite(got[4])


def test_a_label_that_had_no_probability_has_the_worst_log_score():
    forecast = Forecast(np.array([[0.0, 1.0], [0.0, 1.0]]))
    np.testing.assert_array_equal(log_score.losses(forecast, np.array([0, 7])), [-np.inf, -np.inf])


def integrated(distribution, y):
    """∫ F² below y and ∫ (1 - F)² above it."""
    below = scipy.integrate.quad(lambda z: distribution.cdf(z) ** 2, -np.inf, y, epsabs=1e-12, epsrel=1e-11, limit=400)
    above = scipy.integrate.quad(lambda z: distribution.sf(z) ** 2, y, np.inf, epsabs=1e-12, epsrel=1e-11, limit=400)
    return below[0] + above[0]


@pytest.mark.parametrize(("mean", "scale", "y"), CASES)
def test_gaussian_crps_is_the_integral_of_its_definition(mean, scale, y):
    got = crps(Forecast(np.array([mean]), var=np.array([scale**2])), np.array([y]))
    np.testing.assert_allclose(got, integrated(scipy.stats.norm(mean, scale), y), rtol=1e-8)


@pytest.mark.parametrize("df", [1.5, 2.0, 3.0, 30.0, 500.0])
@pytest.mark.parametrize(("mean", "scale", "y"), CASES)
def test_student_crps_is_the_integral_of_its_definition(mean, scale, y, df):
    got = crps(student(mean, scale, df), np.array([y]))
    np.testing.assert_allclose(got, integrated(scipy.stats.t(df, mean, scale), y), rtol=1e-7)


def test_limits_of_the_crps():
    """Infinite without a mean, Gaussian with many degrees of freedom, the absolute error without spread."""
    one, y = np.ones(1), np.full(1, 3.0)
    assert crps(student(1.0, 1.0, 1.0), y) == np.inf
    np.testing.assert_allclose(crps(student(1.0, 1.0, 1e9), y), crps(Forecast(one, var=one), y), rtol=1e-7)
    np.testing.assert_allclose(crps.losses(Forecast(np.ones(2), var=np.array([0.0, 1e-30])), np.full(2, 3.0)), 2.0)


def test_pit_is_the_distribution_function():
    y = np.linspace(-6, 6, 25)
    got = pit.losses(Forecast(np.full(25, 1.0), var=np.full(25, 4.0)), y)
    np.testing.assert_allclose(got, scipy.stats.norm(1, 2).cdf(y), rtol=1e-10)
    for df in (2.0, 3.5, 50.0, 1e6):
        got = pit.losses(student(np.full(25, 1.0), 2.0, df), y)
        np.testing.assert_allclose(got, scipy.stats.t(df, 1, 2).cdf(y), atol=1e-13)


def test_pit_of_a_right_forecast_is_uniform_and_of_a_wrong_one_is_not():
    """Kolmogorov-Smirnov at T = 4000: 0.031 is passed by chance once in a thousand."""
    y = np.random.default_rng(0).normal(size=4000)
    right, narrow = Forecast(np.zeros(4000), var=np.ones(4000)), Forecast(np.zeros(4000), var=np.full(4000, 0.7))
    got = float(pit(right, y))
    assert got < 0.031 < float(pit(narrow, y))
    np.testing.assert_allclose(got, scipy.stats.kstest(pit.losses(right, y), "uniform").statistic, rtol=1e-12)


@pytest.mark.parametrize("level", [0.5, 0.9])
def test_coverage_counts_values_inside_the_interval(level):
    rng = np.random.default_rng(2)
    y, mean, scale, df = rng.normal(size=300), rng.normal(size=300), rng.gamma(2.0, size=300), rng.uniform(3, 30, 300)
    low, high = scipy.stats.t(df, mean, scale).interval(level)
    np.testing.assert_array_equal(coverage(level).losses(student(mean, scale, df), y), (low <= y) & (y <= high))
    low, high = scipy.stats.norm(mean, scale).interval(level)
    np.testing.assert_array_equal(coverage(level).losses(Forecast(mean, scale**2), y), (low <= y) & (y <= high))


def test_coverage_of_counts_includes_the_ends_of_the_interval():
    y, poisson = np.arange(10.0), scipy.stats.poisson(3.0)
    forecast = Forecast(np.full(10, 3.0), below=poisson.cdf(y - 1), upto=poisson.cdf(y))
    low, high = poisson.interval(0.9)
    np.testing.assert_array_equal(coverage(0.9).losses(forecast, y), (low <= y) & (y <= high))
