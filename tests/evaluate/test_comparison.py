"""Reports: fair tables, words that fit the numbers, several methods side by side."""

import json

import jax.numpy as jnp
import numpy as np
import pytest

import filtax as fx
from filtax.evaluate import Forecast, Report, Run, by_calendar, compare, prequential, rolling
from filtax.evaluate.metrics import mae, rmse

NAN = np.nan


def hand_made(**losses):
    runs = {
        name: Run(
            (Forecast(np.zeros(4)),), {"mae": np.array(values)}, baseline=not name.startswith("kf"), microseconds=2.0
        )
        for name, values in losses.items()
    }
    return Report(runs, np.ones(4), (mae,))


def test_a_column_counts_the_rows_that_every_line_has():
    report = hand_made(kf=[9.0, 1.0, 2.0, NAN], naive=[NAN, 3.0, 4.0, 5.0])
    np.testing.assert_array_equal(report.scored("mae"), [False, True, True, False])
    assert report.table() == {"kf": {"mae": 1.5}, "naive": {"mae": 3.5}}


def test_a_line_without_any_score_does_not_empty_the_table():
    report = hand_made(kf=[1.0, 1.0, 2.0, 4.0], naive=[NAN] * 4)
    assert report.table()["kf"]["mae"] == 2.0
    assert report.comparison() == ["kf has no score to compare."]
    assert report.to_dict()["table"]["naive"]["mae"] is None


def two_reports(**options):
    rng = np.random.default_rng(0)
    y = np.cumsum(rng.normal(size=60))
    y[10] = NAN
    reports = {}
    for name, q in (("still", 0.0), ("moving", 1.0)):
        kf = fx.method("LG+C-ACI", model=fx.models.linear(noise=0.1), prior=fx.priors.additive_inflation(q))
        reports[name] = prequential(kf, kf.init(mean=jnp.zeros(1), cov=1.0), np.ones((60, 1)), y, **options)
    return reports, y


def test_several_methods_share_one_table_and_its_rows():
    reports, y = two_reports(metrics=("rmse", "coverage"), horizon=2)
    both = compare(reports)
    assert list(both.runs) == ["still", "moving", "last-value", "running-mean"]
    rows = np.arange(60) > 0
    rows[10] = False
    for name, report in reports.items():
        want = np.sqrt(np.mean((report.forecast.mean - y)[rows] ** 2))
        np.testing.assert_allclose(both.table()[name]["rmse"], want)
        np.testing.assert_allclose(report.table()[report_name(report)]["rmse"], want)
    text = str(both)
    assert text.splitlines()[0].split() == ["rmse", "coverage(0.9)", "us/row"]
    assert "still loses to last-value on rmse" in text
    assert all(values.shape == (2,) for values in both.by_horizon("rmse").values())


def report_name(report):
    return next(name for name, run in report.runs.items() if not run.baseline)


def test_a_row_that_one_method_refused_counts_for_none():
    reports, y = two_reports(metrics=("mae",))
    kf = fx.method("LG+C-Static", model=fx.models.linear(noise=0.1))
    x = np.ones((60, 1))
    x[20] = NAN
    reports["refusing"] = prequential(kf, kf.init(mean=jnp.zeros(1), cov=1.0), x, y, metrics=("mae",))
    both = compare(reports)
    assert not both.scored("mae")[20]
    assert both.refused == 1
    assert both.to_dict()["rows"] == {"all": 60, "missing": 1, "refused": 1}


def test_what_was_not_run_alike_is_not_compared():
    reports, _ = two_reports(metrics=("mae",))
    late, _ = two_reports(metrics=("mae",), delay=2)
    far, _ = two_reports(metrics=("mae",), horizon=2)
    other, _ = two_reports(metrics=("rmse",))
    for strange in (late, far, other):
        with pytest.raises(ValueError, match="was not run as 'still' was"):
            compare({"still": reports["still"], "moving": strange["moving"]})
    with pytest.raises(ValueError, match="no reports"):
        compare({})


def test_the_dictionary_is_json_and_holds_the_table():
    reports, _ = two_reports(delay=1)
    told = json.loads(json.dumps(compare(reports).to_dict(), allow_nan=False))
    assert told["delay"] == 1
    assert told["rows"] == {"all": 60, "missing": 1, "refused": 0}
    assert set(told["microseconds"]) == {"still", "moving"}
    assert told["table"]["last-value"]["rmse"] == compare(reports).table()["last-value"]["rmse"]
    assert told["scored"]["log_score"] < told["scored"]["rmse"] < 60


def test_views_of_every_line():
    time = np.datetime64("2020-01-01T00") + np.arange(60).astype("timedelta64[h]")
    report = two_reports(time=time)[0]["moving"]
    views = report.view("rmse", rolling, 24)
    for name, run in report.runs.items():
        np.testing.assert_array_equal(views[name], rolling(run.losses["rmse"], 24, rmse))
    hours = report.by_calendar("mae", "hour")["last-value"]
    assert hours == by_calendar(report.runs["last-value"].losses["mae"], time, "hour", mae)
    with pytest.raises(ValueError, match="does not know when"):
        two_reports()[0]["moving"].by_calendar("mae", "hour")


def test_a_metric_that_was_no_column_is_worked_out_when_asked_for():
    reports, y = two_reports(metrics=("mae",))
    report = reports["moving"]
    squares = report.view("rmse", rolling, 1)["last-value"]
    np.testing.assert_allclose(squares[1:], np.abs(report.runs["last-value"].forecasts[0].mean - y)[1:])
    assert report.by_horizon("crps")[report_name(report)].shape == (1,)
