"""Scores of points, densities and classes against scipy.stats and scikit-learn; CRPS and PIT by their definition."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.stats
import sklearn.metrics

from filtax.evaluate import Forecast
from filtax.evaluate._scores import (
    absolute_error,
    brier_score,
    correct,
    crps_gaussian,
    crps_points,
    crps_student_t,
    log_density_gaussian,
    log_density_student_t,
    log_gamma_step,
    log_probability,
    pit_gaussian,
    pit_points,
    pit_student_t,
    squared_error,
)
from filtax.evaluate.metrics import accuracy, brier, coverage, crps, log_score, mae, pit, rmedse, rmse

PIT_TOL = {"float32": 2e-6, "float64": 1e-13}
RNG = np.random.default_rng(20)
MEAN, Y = RNG.normal(size=200), RNG.normal(size=200)
VAR, DF = RNG.gamma(2.0, size=200), RNG.uniform(0.5, 200.0, size=200)
LABELS = RNG.integers(0, 4, size=200)
PROBABILITIES = RNG.dirichlet(np.ones(4), size=200)


def test_point_errors_are_those_of_scikit_learn():
    np.testing.assert_allclose(rmse(MEAN, Y), sklearn.metrics.root_mean_squared_error(Y, MEAN), rtol=1e-12)
    np.testing.assert_allclose(mae(MEAN, Y), sklearn.metrics.mean_absolute_error(Y, MEAN), rtol=1e-12)
    np.testing.assert_allclose(rmedse(MEAN, Y), sklearn.metrics.median_absolute_error(Y, MEAN), rtol=1e-2)
    np.testing.assert_allclose(rmedse(MEAN, Y) ** 2, np.median((Y - MEAN) ** 2), rtol=1e-12)


def test_log_densities_are_those_of_scipy():
    want = scipy.stats.norm(MEAN, np.sqrt(VAR)).logpdf(Y)
    np.testing.assert_allclose(log_density_gaussian(MEAN, VAR, Y), want, rtol=1e-12)
    want = scipy.stats.t(DF, MEAN, np.sqrt(VAR)).logpdf(Y)
    np.testing.assert_allclose(log_density_student_t(MEAN, np.sqrt(VAR), DF, Y), want, rtol=1e-11)


def test_class_scores_are_those_of_scikit_learn():
    forecast = Forecast(PROBABILITIES)
    np.testing.assert_allclose(
        -log_score(forecast, LABELS), sklearn.metrics.log_loss(LABELS, PROBABILITIES), rtol=1e-12
    )
    want = sklearn.metrics.brier_score_loss(LABELS, PROBABILITIES, scale_by_half=False)
    np.testing.assert_allclose(brier(forecast, LABELS), want, rtol=1e-12)
    want = sklearn.metrics.accuracy_score(LABELS, PROBABILITIES.argmax(axis=1))
    np.testing.assert_allclose(accuracy(forecast, LABELS), want, rtol=1e-12)


def test_binary_scores_are_those_of_scikit_learn():
    p, y = PROBABILITIES[:, 0], LABELS % 2
    np.testing.assert_allclose(-log_score(Forecast(p), y), sklearn.metrics.log_loss(y, p), rtol=1e-12)
    np.testing.assert_allclose(brier(Forecast(p), y), sklearn.metrics.brier_score_loss(y, p), rtol=1e-12)
    np.testing.assert_allclose(accuracy(Forecast(p), y), sklearn.metrics.accuracy_score(y, p > 0.5), rtol=1e-12)


@pytest.mark.parametrize(
    ("score", "worst"),
    [
        (lambda m, y: squared_error(m, y), np.inf),
        (lambda m, y: absolute_error(m, y), np.inf),
        (lambda m, y: log_density_gaussian(m, np.ones_like(m), y), -np.inf),
        (lambda m, y: log_density_student_t(m, np.ones_like(m), np.ones_like(m), y), -np.inf),
        (lambda m, y: log_probability(m, y), -np.inf),
        (lambda m, y: brier_score(m, y), np.inf),
        (lambda m, y: correct(m, y), 0.0),
    ],
)
def test_the_missing_is_not_scored_and_the_broken_scores_worst(score, worst):
    got = score(np.array([0.5, 0.5, np.nan, np.nan, 0.5]), np.array([np.nan, np.inf, 1.0, 0.0, 1.0]))
    assert np.isnan(got[:2]).all()
    assert got[2] == got[3] == worst
    assert np.isfinite(got[4])


def test_a_label_that_had_no_probability_has_the_worst_log_score():
    np.testing.assert_array_equal(log_probability(np.array([[0.0, 1.0]]), np.array([0])), [-np.inf])
    np.testing.assert_array_equal(log_probability(np.array([[0.0, 1.0]]), np.array([7])), [-np.inf])


def test_jax_arrays_give_the_same_and_a_finite_gradient_around_what_is_missing():
    y = jnp.asarray(Y).at[3].set(jnp.nan)
    mean, var = jnp.asarray(MEAN), jnp.asarray(VAR)

    @jax.jit
    def loss(shift):
        return log_score(Forecast(mean + shift, var=var), y)

    kept = np.arange(200) != 3
    tolerance = 1e-12 if mean.dtype == np.float64 else 1e-5
    want = scipy.stats.norm(MEAN, np.sqrt(VAR)).logpdf(Y)[kept].mean()
    np.testing.assert_allclose(loss(jnp.zeros_like(mean[0])), want, rtol=tolerance)
    gradient = jax.grad(loss)(jnp.zeros_like(mean[0]))
    np.testing.assert_allclose(gradient, ((Y - MEAN) / VAR)[kept].mean(), rtol=10 * tolerance)
    assert np.isfinite(jax.grad(lambda s: rmse(mean + s, y))(jnp.zeros_like(mean[0])))


def test_numpy_is_scored_in_float64_whatever_jax_is_set_to():
    with jax.enable_x64(False):
        got = log_density_student_t(MEAN, np.sqrt(VAR), DF, Y)
    assert got.dtype == np.float64
    np.testing.assert_allclose(got, scipy.stats.t(DF, MEAN, np.sqrt(VAR)).logpdf(Y), rtol=1e-11)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_half_a_step_of_the_gamma_function_keeps_its_digits(dtype):
    """log Γ(x + ½) - log Γ(x): in float32 a plain difference is off by a tenth already at x = 1e5."""
    x = np.array([0.25, 1.0, 7.5, 39.0, 41.0, 1e3, 1e5, 1e7])
    want = np.log(scipy.special.poch(x, 0.5))
    got = log_gamma_step(jnp, jnp.asarray(x, dtype))
    np.testing.assert_allclose(
        got, want, rtol={"float32": 2e-5, "float64": 2e-12}[dtype], atol=1e-6 if dtype == "float32" else 0
    )


def integrated(distribution, y):
    """∫ F² below y and ∫ (1 - F)² above it."""
    below = scipy.integrate.quad(lambda z: distribution.cdf(z) ** 2, -np.inf, y, epsabs=1e-12, epsrel=1e-11, limit=400)
    above = scipy.integrate.quad(lambda z: distribution.sf(z) ** 2, y, np.inf, epsabs=1e-12, epsrel=1e-11, limit=400)
    return below[0] + above[0]


CASES = [(0.0, 1.0, 0.0), (1.0, 0.3, 1.2), (-2.0, 4.0, 5.0), (10.0, 0.01, 9.9)]


@pytest.mark.parametrize(("mean", "scale", "y"), CASES)
def test_gaussian_crps_is_the_integral_of_its_definition(mean, scale, y):
    got = crps_gaussian(np.array([mean]), np.array([scale**2]), np.array([y]))[0]
    np.testing.assert_allclose(got, integrated(scipy.stats.norm(mean, scale), y), rtol=1e-8)


@pytest.mark.parametrize("df", [1.5, 2.0, 3.0, 30.0, 500.0])
@pytest.mark.parametrize(("mean", "scale", "y"), CASES)
def test_student_crps_is_the_integral_of_its_definition(mean, scale, y, df):
    got = crps_student_t(*(np.array([a]) for a in (mean, scale, df, y)))[0]
    np.testing.assert_allclose(got, integrated(scipy.stats.t(df, mean, scale), y), rtol=1e-7)


def test_student_crps_is_infinite_without_a_mean_and_gaussian_with_many_degrees_of_freedom():
    one = np.ones(1)
    assert crps_student_t(one, one, one, one)[0] == np.inf
    np.testing.assert_allclose(
        crps_student_t(one, one, 1e9 * one, 3 * one), crps_gaussian(one, one, 3 * one), rtol=1e-7
    )


def test_crps_without_spread_is_the_absolute_error():
    np.testing.assert_allclose(crps_gaussian(np.zeros(2), np.array([0.0, 1e-30]), np.full(2, -3.0)), 3.0)


def test_points_score_by_the_energy_form():
    """E|X - y| - E|X - X'|/2 over all pairs."""
    rng = np.random.default_rng(4)
    points, y = rng.normal(size=(5, 2, 7)), rng.normal(size=(5, 2))
    pairs = np.abs(points[..., :, None] - points[..., None, :]).mean(axis=(-1, -2))
    want = np.abs(points - y[..., None]).mean(axis=-1) - 0.5 * pairs
    np.testing.assert_allclose(crps_points(points, y), want, rtol=1e-12)


def test_quantiles_as_points_approach_the_closed_form():
    levels = (np.arange(2000) + 0.5) / 2000
    for y in (-1.0, 0.0, 2.5):
        got = crps_points(scipy.stats.norm.ppf(levels)[None], np.array([y]))
        np.testing.assert_allclose(got, crps_gaussian(np.zeros(1), np.ones(1), np.array([y])), rtol=1e-3)


def test_pit_is_the_distribution_function():
    y, df = np.linspace(-6, 6, 25), np.full(25, 3.5)
    np.testing.assert_allclose(
        pit_gaussian(np.full(25, 1.0), np.full(25, 4.0), y), scipy.stats.norm(1, 2).cdf(y), rtol=1e-10
    )
    want = scipy.stats.t(3.5, 1, 2).cdf(y)
    np.testing.assert_allclose(pit_student_t(np.full(25, 1.0), np.full(25, 2.0), df, y), want, rtol=1e-9)


@pytest.mark.parametrize("df", [2.0, 20.0, 49.0, 51.0, 1e3, 1e6])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_pit_of_a_student_keeps_its_digits_with_many_degrees_of_freedom(dtype, df):
    z = np.array([-3.0, -0.1, 1e-3, 2.0])
    got = pit_student_t(*(jnp.asarray(a, dtype) for a in (0 * z, 0 * z + 1, 0 * z + df, z)))
    np.testing.assert_allclose(got, scipy.stats.t(df).cdf(z), rtol=0, atol=PIT_TOL[dtype])


def test_pit_of_a_right_forecast_is_uniform_and_of_a_wrong_one_is_not():
    """Kolmogorov-Smirnov at T = 4000: 0.031 is passed by chance once in a thousand."""
    y = np.random.default_rng(0).normal(size=4000)
    right, narrow = Forecast(np.zeros(4000), var=np.ones(4000)), Forecast(np.zeros(4000), var=np.full(4000, 0.7))
    got = float(pit(right, y))
    assert got < 0.031 < float(pit(narrow, y))
    np.testing.assert_allclose(got, scipy.stats.kstest(pit.losses(right, y), "uniform").statistic, rtol=1e-12)


def test_randomised_pit_of_counts_is_uniform_and_the_middle_one_is_its_mean():
    rng = np.random.default_rng(1)
    y = rng.poisson(2.0, size=4000).astype(float)
    points = np.broadcast_to(scipy.stats.poisson(2.0).ppf((np.arange(1000) + 0.5) / 1000), (4000, 1000))
    spread = pit_points(points, y, rng.uniform(size=4000))
    assert scipy.stats.kstest(spread, "uniform").statistic < 0.031
    poisson = scipy.stats.poisson(2.0)
    np.testing.assert_allclose(pit_points(points, y), 0.5 * (poisson.cdf(y) + poisson.cdf(y - 1)), atol=1e-3)


@pytest.mark.parametrize("level", [0.5, 0.9])
def test_coverage_counts_values_inside_the_interval(level):
    rng = np.random.default_rng(2)
    y, mean, scale, df = rng.normal(size=300), rng.normal(size=300), rng.gamma(2.0, size=300), rng.uniform(3, 30, 300)
    low, high = scipy.stats.t(df, mean, scale).interval(level)
    student = Forecast(mean, scale=scale, df=df)
    np.testing.assert_array_equal(coverage(level).losses(student, y), (low <= y) & (y <= high))
    low, high = scipy.stats.norm(mean, scale).interval(level)
    gaussian = Forecast(mean, var=scale**2)
    np.testing.assert_array_equal(coverage(level).losses(gaussian, y), (low <= y) & (y <= high))


def test_coverage_of_counts_includes_the_ends_of_the_interval():
    y, poisson = np.arange(10.0), scipy.stats.poisson(3.0)
    forecast = Forecast(np.full(10, 3.0), below=poisson.cdf(y - 1), upto=poisson.cdf(y))
    low, high = poisson.interval(0.9)
    np.testing.assert_array_equal(coverage(0.9).losses(forecast, y), (low <= y) & (y <= high))
    points = np.broadcast_to(poisson.ppf((np.arange(5000) + 0.5) / 5000), (10, 5000))
    np.testing.assert_array_equal(coverage(0.9).losses(Forecast(y, points=points), y), (low <= y) & (y <= high))


def test_crps_and_pit_of_the_missing_and_the_broken():
    mean, y, one = np.array([0.5, np.nan, 0.5]), np.array([np.nan, 1.0, 1.0]), np.ones(3)
    for forecast in (
        Forecast(mean, var=one),
        Forecast(mean, scale=one, df=3 * one),
        Forecast(mean, points=mean[:, None]),
    ):
        np.testing.assert_array_equal(np.isnan(crps.losses(forecast, y)), [True, False, False])
        assert crps.losses(forecast, y)[1] == np.inf
        np.testing.assert_array_equal(coverage().losses(forecast, y)[:2], [np.nan, 0.0])
        assert pit.losses(forecast, y)[1] == 0.0


def test_gradient_of_the_gaussian_crps_is_that_of_the_integral():
    """d CRPS / d mean = 1 - 2 F(y): a slope that tuning can follow, jitted, around a missing value."""
    y = jnp.array([1.5, jnp.nan])
    slope = jax.jit(jax.grad(lambda m: crps(Forecast(jnp.stack([m, m]), var=jnp.ones_like(y)), y)))(
        jnp.zeros_like(y[0])
    )
    np.testing.assert_allclose(slope, 1 - 2 * scipy.stats.norm.cdf(1.5), rtol=1e-5)
