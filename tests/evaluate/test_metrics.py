"""The metrics and their summaries: several outputs, rows without a forecast, names, NaN, infinity, moving windows."""

import numpy as np
import pytest
import scipy.stats

from filtax.evaluate import Forecast
from filtax.evaluate.metrics import accuracy, coverage, crps, log_score, mae, metric, pit, rmedse, rmse, rolling

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
        (lambda: rolling(Z, 0), r"window=\.\.\.\) must be a whole number of at least 1, got 0"),
        (lambda: rolling(np.ones((2, 2)), 1), r"\(2, 2\)"),
        (lambda: rolling(Z, 1, "rsme"), "rmse"),
    ],
)
def test_bad_input_is_refused_with_a_sentence(call, says):
    with pytest.raises(ValueError, match=says):
        call()


@pytest.mark.parametrize("window", [1, 7, 100])
@pytest.mark.parametrize("name", ["rmse", "mae", "rmedse", "pit"])
def test_rolling_is_the_metric_of_each_window(name, window):
    """Against numpy and scipy, of what is not NaN; NaN where nothing is."""
    rng = np.random.default_rng(0)
    losses = np.where(rng.uniform(size=60) < 0.2, NAN, rng.uniform(size=60))
    losses[:3] = NAN
    want = {
        "rmse": lambda part: np.sqrt(np.mean(part)),
        "mae": np.mean,
        "rmedse": lambda part: np.sqrt(np.median(part)),
        "pit": lambda part: scipy.stats.kstest(part, "uniform").statistic,
    }[name]
    parts = [losses[max(0, t + 1 - window) : t + 1] for t in range(60)]
    scored = [part[~np.isnan(part)] for part in parts]
    np.testing.assert_allclose(rolling(losses, window, name), [want(p) if p.size else NAN for p in scored], rtol=1e-12)


def test_an_infinite_loss_is_an_infinite_mean_and_no_infinite_median():
    assert mae.aggregate([INF, 1.0, 2.0]) == mae.aggregate([1e308, 1e308]) == INF
    assert rmedse.aggregate([INF, 4.0, 1.0]) == 2.0
    np.testing.assert_array_equal(rolling([1.0, 1e20, 2.0, 3.0, INF, 4.0, 5.0], 2)[[3, 5, 6]], [2.5, INF, 4.5])
