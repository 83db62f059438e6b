"""Reports: fair tables, words that fit the numbers, several methods side by side."""

import jax.numpy as jnp
import numpy as np
import pytest

import filtax as fx
from filtax.evaluate import Forecast, Report, Run, compare, prequential
from filtax.evaluate.metrics import mae

NAN = np.nan


def hand_made(**losses):
    runs = {
        name: Run(Forecast(np.zeros(4)), {"mae": np.array(values)}, baseline=not name.startswith("kf"))
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
    assert np.isnan(report.table()["naive"]["mae"])


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
    reports, y = two_reports(metrics=("rmse", "coverage"))
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
    assert "60 rows, 1 missing, 1 refused" in str(both)


def test_what_was_not_run_alike_is_not_compared():
    reports, _ = two_reports(metrics=("mae",))
    late, _ = two_reports(metrics=("mae",), delay=2)
    other, _ = two_reports(metrics=("rmse",))
    for strange in (late, other):
        with pytest.raises(ValueError, match="was not run as 'still' was"):
            compare({"still": reports["still"], "moving": strange["moving"]})
    with pytest.raises(ValueError, match="no reports"):
        compare({})
