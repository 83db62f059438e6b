"""The metrics and their summaries: several outputs, rows without a forecast, names, NaN, infinity and weights."""

import numpy as np
import pytest
import scipy.stats

from filtax.evaluate import Forecast
from filtax.evaluate.metrics import (
    accuracy,
    coverage,
    crps,
    log_score,
    mae,
    mean,
    median,
    metric,
    pit,
    rmedse,
    rmse,
    unevenness,
)

NAN, INF = np.nan, np.inf
Z = np.zeros(2)


def test_several_outputs_count_as_the_mean_of_those_that_came():
    y = np.array([[1.0, NAN], [3.0, 5.0], [NAN, NAN]])
    np.testing.assert_array_equal(rmse.losses(np.zeros((3, 2)), y), [1.0, 17.0, NAN])
    assert rmse(np.zeros((3, 2)), y) == 3.0
    assert rmedse(np.zeros((3, 2)), y) == 3.0


def test_log_score_of_several_outputs_is_their_joint_density():
    y = np.array([[1.0, NAN], [3.0, 5.0], [NAN, NAN]])
    logpdf = scipy.stats.norm(0, np.sqrt(2)).logpdf
    got = log_score.losses(Forecast(np.zeros((3, 2)), var=np.full((3, 2), 2.0)), y)
    np.testing.assert_allclose(got, [logpdf(1.0), logpdf(3.0) + logpdf(5.0), NAN], rtol=1e-12)


def test_a_recorded_log_density_is_taken_as_it_is_where_something_came():
    forecast = Forecast(np.zeros((3, 2)), var=np.ones((3, 2)), log_prob=np.array([-1.0, NAN, 0.0]))
    np.testing.assert_array_equal(
        log_score.losses(forecast, np.array([[NAN, 1.0], [1.0, 1.0], [NAN, NAN]])), [-1, -np.inf, NAN]
    )


def test_rows_without_a_forecast_or_a_spread_are_not_scored():
    forecast = Forecast(
        np.array([NAN, 1.0, 1.0]),
        var=np.array([NAN, NAN, 1.0]),
        made=np.array([False, True, True]),
        spread=np.array([False, False, True]),
    )
    y = np.ones(3)
    np.testing.assert_array_equal(mae.losses(forecast, y), [NAN, 0.0, 0.0])
    for chosen in (log_score, crps, coverage(), pit):
        np.testing.assert_array_equal(np.isnan(chosen.losses(forecast, y)), [True, True, False])


def test_the_label_that_was_said_decides_accuracy():
    forecast = Forecast(np.array([[0.4, 0.6], [0.4, 0.6]]), label=np.array([0.0, 1.0]))
    np.testing.assert_array_equal(accuracy.losses(forecast, np.array([0, NAN])), [1.0, NAN])


def test_nothing_scored_is_nan():
    for name in ("rmse", "rmedse", "mae", "log_score", "crps", "pit", "coverage"):
        assert np.isnan(metric(name)(Forecast(np.zeros(2), var=np.ones(2)), np.full(2, NAN)))


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: metric("rsme"), 'Did you mean "rmse"'),
        (lambda: metric("zzz"), "rmse, mae"),
        (lambda: coverage(1.0), r"level=1.0\) must lie strictly between 0 and 1"),
        (lambda: metric("coverage(0)"), "strictly between 0 and 1"),
        (lambda: rmse(np.zeros(3), np.zeros(2)), "3 forecasts but 2 values"),
        (lambda: rmse(np.zeros((2, 3)), np.zeros(2)), "accuracy, brier or log_score"),
        (lambda: crps(np.zeros(2), np.zeros(2)), "no `var`"),
        (lambda: crps(Forecast(Z, var=Z + 1, below=Z, upto=Z), Z), "no ranked score was kept"),
    ],
)
def test_bad_input_is_refused_with_a_sentence(call, says):
    with pytest.raises(ValueError, match=says):
        call()


@pytest.mark.parametrize("values", [[1.0, 2.0, 3.0, 10.0], [5.0], [3.0, 3.0, 1.0]])
def test_equal_weights_are_no_weights(values):
    for statistic, want in ((mean, np.mean), (median, np.median)):
        assert statistic(values) == statistic(values, np.full(len(values), 0.5)) == want(values)
    share = np.array(values) / 20
    want = scipy.stats.kstest(share, "uniform").statistic
    np.testing.assert_allclose([unevenness(share), unevenness(share, np.full(len(values), 0.5))], want)


def test_whole_weights_are_repetitions():
    values, weights = np.array([0.1, 0.9, 0.4, 0.6]), np.array([1, 3, 2, 4])
    for statistic in (mean, median, unevenness):
        np.testing.assert_allclose(statistic(values, weights), statistic(np.repeat(values, weights)))


@pytest.mark.parametrize("weights", [None, [1.0, 1.0, 1.0, 0.0]])
def test_what_is_nan_or_without_weight_does_not_count(weights):
    values = [0.2, NAN, 0.4, 0.2 if weights is None else INF]
    want = (
        {mean: 0.8 / 3, median: 0.2, unevenness: 0.6} if weights is None else {mean: 0.3, median: 0.3, unevenness: 0.6}
    )
    for statistic, value in want.items():
        np.testing.assert_allclose(statistic(values, weights), value)


def test_an_infinite_loss_is_an_infinite_mean_and_no_infinite_median():
    assert mean([INF, 1.0, 2.0]) == INF
    assert median([INF, 1.0, 2.0]) == 2.0
