"""What a forecast knows, and when: checked against a filter in plain numpy, and against steps taken one by one."""

import numpy as np
import pytest

from filtax.evaluate import prequential
from filtax.evaluate.loop import Task, run
from walks import NOISE, TOL, WALK, D, T, stream, walker


def plain_forecast(x, y, dt, t, labels):
    """Mean and variance of y[t] from the labels of rows below `labels`, by a Kalman filter of its own."""
    m, P = np.zeros(D), 2.0 * np.eye(D)
    for s in range(t + 1):
        P = P + WALK * dt[s] * np.eye(D)
        if s == t:
            return x[s] @ m, x[s] @ P @ x[s] + NOISE
        if s < labels and np.isfinite(y[s]):
            gain = P @ x[s] / (x[s] @ P @ x[s] + NOISE)
            m, P = m + gain * (y[s] - x[s] @ m), P - np.outer(gain, x[s] @ P)
    raise AssertionError


@pytest.mark.parametrize(("delay", "timed"), [(0, False), (0, True), (1, True), (3, False), (50, True)])
def test_a_forecast_knows_only_the_labels_that_have_come(delay, timed):
    (x, y, dt), (method, state) = stream(), walker()
    forecast = prequential(method, state, x, y, delay=delay, dt=dt if timed else None, chunk=20).forecast
    want = [plain_forecast(x, y, dt if timed else np.ones(T), t, t - delay) for t in range(T)]
    np.testing.assert_allclose(forecast.mean, [m for m, _ in want], rtol=TOL, atol=TOL)
    np.testing.assert_allclose(forecast.var, [v for _, v in want], rtol=TOL)
    seen = np.isfinite(y)
    log_prob = [-0.5 * ((b - m) ** 2 / v + np.log(2 * np.pi * v)) for (m, v), b in zip(want, y, strict=True)]
    np.testing.assert_allclose(forecast.log_prob[seen], np.array(log_prob)[seen], rtol=TOL, atol=TOL)


@pytest.mark.parametrize("delay", [0, 2])
def test_a_horizon_is_a_forecast_made_earlier(delay):
    """Filed under the row it speaks of, the forecast of horizon h has seen h labels less than the plain one."""
    (x, y, dt), (method, state) = stream(1), walker()
    report = prequential(method, state, x, y, delay=delay, horizon=4, dt=dt, chunk=20)
    for h, forecast in enumerate(report.only.forecasts):
        want = np.array([plain_forecast(x, y, dt, t, t - h - delay) for t in range(T)])
        np.testing.assert_array_equal(forecast.made, np.arange(T) >= h)
        np.testing.assert_allclose(forecast.mean[h:], want[h:, 0], rtol=TOL, atol=TOL)
        np.testing.assert_allclose(forecast.var[h:], want[h:, 1], rtol=TOL)
        assert np.isnan(forecast.mean[:h]).all()


@pytest.mark.parametrize("delay", [0, 3])
def test_steps_taken_one_by_one_agree(delay):
    """Learn what has come with `step`, let time pass over the rest with masked steps, then `predict`."""
    (x, y, _), (method, state) = stream(2), walker()
    forecast = prequential(method, state, x, y, delay=delay, chunk=20).forecast
    learned = [state]
    for t in range(T):
        learned.append(method.step(learned[-1], x[t], y[t])[0])
    for t in range(0, T, 5):
        known = max(t - delay, 0)
        rolled = learned[known]
        for s in range(known, t):
            rolled = method.step(rolled, x[s], y[s], mask=np.array(False))[0]
        dist = method.predict(rolled, x[t])
        np.testing.assert_allclose(forecast.mean[t], dist.mean, rtol=TOL, atol=TOL)
        np.testing.assert_allclose(forecast.upper[t], dist.interval(0.9)[1], rtol=TOL, atol=TOL)


@pytest.mark.parametrize("delay", [0, 2])
def test_chunks_change_nothing_and_every_label_is_learned_in_the_end(delay):
    (x, y, _), (method, state) = stream(3), walker()
    want, _ = method.scan(state, x, y)
    reports = [prequential(method, state, x, y, delay=delay, chunk=chunk) for chunk in (1, 13, 1000)]
    for report in reports:
        np.testing.assert_allclose(report.forecast.mean, reports[0].forecast.mean, rtol=TOL, atol=TOL)
        np.testing.assert_allclose(method.belief(report.state).mean, method.belief(want).mean, rtol=TOL, atol=TOL)
        np.testing.assert_allclose(method.belief(report.state).cov, method.belief(want).cov, rtol=TOL, atol=TOL)
        assert report.microseconds > 0


def test_a_gaussian_may_go_either_way():
    """Through its own `scan`, or through `forecast` and `step` as a stranger would."""
    (x, y, _), (method, state) = stream(6), walker()
    short, long = (run(method, state, Task(x, y, plain=plain)).kept[0] for plain in (True, False))
    for name in ("mean", "var", "log_prob"):
        np.testing.assert_allclose(long[name], short[name], rtol=TOL, atol=TOL)


def test_progress_tells_of_every_row():
    (x, y, _), (method, state) = stream(), walker()
    steps = []
    prequential(method, state, x, y, chunk=16, progress=steps.append)
    assert steps == [16, 16, 8]
