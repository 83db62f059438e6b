"""Losses of points, densities and classes: checked against scipy.stats and scikit-learn."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
import sklearn.metrics

from filtax.evaluate import accuracy, brier, log_score, mae, rmedse, rmse
from filtax.evaluate.arrays import log_gamma_step
from filtax.evaluate.forecast import Forecast
from filtax.evaluate.scores import (
    absolute_error,
    brier_score,
    correct,
    log_density_gaussian,
    log_density_student_t,
    log_probability,
    squared_error,
)

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
