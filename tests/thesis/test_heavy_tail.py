"""Errors of the heavy-tailed regression from normal equations; resets and predicates from made-up runs."""

import numpy as np
import pytest

from thesis import find
from thesis.heavy_tail import PLAIN, STATIC, Setting, _resets, _rolling, _streams

HEAVY = find("heavy-tail")


@pytest.fixture(scope="module")
def small():
    setting = Setting(streams=4, steps=60, hazard=0.03)
    return setting, HEAVY.run(setting, 3, lambda share: None)


@pytest.mark.x64
def test_the_static_filter_is_ridge_regression(small):
    setting, result = small
    rmse = []
    for stream in _streams(setting, 3, None):
        means = [
            stream.X[t] @ np.linalg.solve(np.eye(3) + stream.X[:t].T @ stream.X[:t], stream.X[:t].T @ stream.y[:t])
            for t in range(setting.steps)
        ]
        rmse.append(np.sqrt(np.mean((np.array(means) - stream.truth) ** 2)))
    np.testing.assert_allclose(result.numbers["rmse"][STATIC], rmse, rtol=1e-8)


@pytest.mark.x64
def test_run_lengths_are_those_of_a_table_of_all_segments(small):
    """Adams and MacKay's recursion with one batch regression for each start, in plain numpy."""
    setting, result = small
    forecasts, stream = [], _streams(setting, 3, None)[0]
    log_joint = {0: 0.0}
    for t in range(setting.steps):
        moments = {}
        for start in {*log_joint, t}:
            X, y = stream.X[start:t], stream.y[start:t]
            P = np.linalg.inv(np.eye(3) + X.T @ X)
            moments[start] = stream.X[t] @ P @ X.T @ y, stream.X[t] @ P @ stream.X[t] + 1
        total = np.logaddexp.reduce(list(log_joint.values()))
        prior = {start: value + np.log1p(-setting.hazard) for start, value in log_joint.items()}
        fresh = total + np.log(setting.hazard)
        prior[t] = np.logaddexp(prior[t], fresh) if t in prior else fresh
        norm = np.logaddexp.reduce(list(prior.values()))
        forecasts.append(sum(np.exp(prior[s] - norm) * moments[s][0] for s in prior))
        log_joint = {
            s: prior[s] - 0.5 * np.log(moments[s][1]) - 0.5 * (stream.y[t] - moments[s][0]) ** 2 / moments[s][1]
            for s in prior
        }
    rmse = np.sqrt(np.mean((np.array(forecasts) - stream.truth) ** 2))
    np.testing.assert_allclose(result.numbers["rmse"][PLAIN][0], rmse, rtol=1e-6)


def test_rolling_errors_and_resets():
    square = np.random.default_rng(0).random((2, 30))
    brute = [[np.sqrt(row[max(0, t - 9) : t + 1].mean()) for t in range(30)] for row in square]
    np.testing.assert_allclose(_rolling(square), brute)
    assert _resets(np.array([[0, 0, 2, 2, 0, 5, 5], [0] * 7])) == [(2, [2, 5]), (0, [])]


@pytest.mark.nightly
def test_verdicts_of_the_quick_size():
    result = HEAVY.run(HEAVY.sizes["quick"], 0, lambda share: None)
    assert [claim.decide(result).text for claim in HEAVY.claims] == ["holds", "does not hold", "holds"]
    assert result.numbers["ratio"] <= 0.65
