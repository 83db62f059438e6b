"""What a forecast knows and when, against a filter in plain numpy; and every kind of forecast with its own scores."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import filtax as fx
from filtax.evaluate import last_value, prequential, seasonal_naive
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
def test_chunks_change_nothing_and_every_label_is_learned_in_the_end(delay):
    (x, y, _), (method, state) = stream(3), walker()
    want, _ = method.scan(state, x, y)
    reports = [prequential(method, state, x, y, delay=delay, chunk=chunk) for chunk in (1, 13, 1000)]
    for report in reports:
        np.testing.assert_allclose(report.forecast.mean, reports[0].forecast.mean, rtol=TOL, atol=TOL)
        np.testing.assert_allclose(method.belief(report.state).mean, method.belief(want).mean, rtol=TOL, atol=TOL)
        np.testing.assert_allclose(method.belief(report.state).cov, method.belief(want).cov, rtol=TOL, atol=TOL)
        assert report.only.microseconds > 0


def kinds():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(T, D))
    eta = x @ np.array([1.0, -1.0])
    numbers, labels = eta + rng.normal(scale=0.5, size=T), (rng.uniform(size=T) < 1 / (1 + np.exp(-eta))).astype(float)
    linear = fx.models.linear
    yield "student", "NIG+C-Static", linear(noise=1.0), D, x, numbers
    counts = rng.poisson(np.exp(0.5 * eta)).astype(float)
    yield "counts", "LG+C-Static", linear(likelihood=fx.models.poisson()), D, x, counts
    yield "yes-no", "LG+C-Static", linear(likelihood=fx.models.bernoulli()), D, x, labels
    classes = rng.integers(0, 3, size=T).astype(float)
    yield "classes", "LG+C-Static", linear(likelihood=fx.models.categorical()), 3 * D, x, classes
    yield "without-x", "Cj+C-Static", fx.models.poisson(), 1, None, rng.poisson(3.0, size=T).astype(float)
    both = np.stack([numbers, -numbers + rng.normal(size=T)], axis=1)
    both[3, 0] = both[4, :] = np.nan
    yield "outputs", "LG+C-ACI(q=0.01)", linear(noise=jnp.array([0.2, 0.4])), D, np.stack([x, x[::-1]], axis=1), both


KINDS = {name: rest for name, *rest in kinds()}


def started(kind):
    name, model, size, x, y = KINDS[kind]
    method = fx.method(name, model=model)
    y = np.where(np.arange(T) == 7, np.nan, y) if y.ndim == 1 else y
    return method, method.init(mean=jnp.full(size, 0.5), cov=0.5), x, y


@jax.jit
def told(dist, y):
    """What a distribution says at y, asked directly."""
    said = {"mean": dist.mean, "log_prob": dist.log_prob(jnp.nan_to_num(y), jnp.isfinite(y).reshape(-1))}
    if hasattr(dist, "log_probability") or hasattr(dist, "log_yes"):
        return said
    low, high = dist.interval(0.9)
    return said | {"inside": (low <= y.reshape(low.shape)) & (y.reshape(low.shape) <= high)}


@functools.cache
def ran(kind, delay):
    method, state, x, y = started(kind)
    return prequential(method, state, x, y, delay=delay, period=5, chunk=20)


SLOW = dict.fromkeys(("counts", "without-x"), pytest.mark.nightly)  # the quantiles of a count take long to compile


@pytest.mark.parametrize(
    ("kind", "delay"), [*(pytest.param(kind, 2, marks=SLOW.get(kind, ())) for kind in KINDS), ("student", 0)]
)
def test_every_kind_of_forecast_is_scored_by_its_own_distribution(kind, delay):
    """Mean, log density and interval are those of `predict` on a state that was rolled by hand."""
    method, state, x, y = started(kind)
    report = ran(kind, delay)
    row = lambda t: None if x is None else x[t]
    learned = [state]
    for t in range(T):
        learned.append(method.step(learned[-1], row(t), y[t])[0])
    for t in (0, 1, 4, 7, 12, 25, T - 1):
        known = max(t - delay, 0)
        rolled = learned[known]
        for s in range(known, t):
            rolled = method.step(rolled, row(s), np.full(y.shape[1:], np.nan))[0]
        want = told(method.predict(rolled, row(t)), jnp.asarray(y[t]))
        np.testing.assert_allclose(report.forecast.mean[t], want["mean"], rtol=TOL, atol=TOL)
        came = np.isfinite(y[t])
        if not came.any():
            assert all(np.isnan(losses[t]) for losses in report.losses.values())
            continue
        np.testing.assert_allclose(report.losses["log_score"][t], want["log_prob"], rtol=20 * TOL, atol=20 * TOL)
        if "inside" in want:
            np.testing.assert_allclose(report.losses["coverage(0.9)"][t], np.mean(np.asarray(want["inside"])[came]))


def test_what_is_missing_or_refused_is_not_scored_and_is_counted():
    (x, y, _), (method, state) = stream(7, missing=0.0), walker()
    x[3, 0], y[5], y[8] = np.nan, np.inf, np.nan
    report = prequential(method, state, x, y, mask=np.arange(T) != 11)
    assert report.refused == 2
    assert "40 rows, 2 missing, 2 refused" in str(report)
    unscored = np.isin(np.arange(T), [3, 5, 8, 11])
    for losses in report.losses.values():
        np.testing.assert_array_equal(np.isnan(losses), unscored)
    for line in report.runs.values():
        assert np.isnan(line.losses["rmse"][unscored]).all()


def test_an_impossible_label_is_refused_and_not_scored():
    method, state, x, y = started("classes")
    y = np.where(np.arange(T) == 4, 9.0, y)
    report = prequential(method, state, x, y)
    assert report.refused == 1
    assert np.isnan(report.losses["accuracy"][4])


def test_a_datum_that_the_method_could_not_take_is_scored_in_full():
    """Density zero: the worst log score there is, not a row omitted."""
    (x, y, _), (method, state) = stream(8, missing=0.0), walker()
    y[20] = float(jnp.finfo(state.initial.mean.dtype).max) ** 0.6  # a number, but its square is none
    report = prequential(method, state, x, y)
    assert report.losses["log_score"][20] == -np.inf
    assert np.isfinite(report.losses["log_score"][21])
    assert report.refused == 0


def test_intervals_cover_what_they_promise_with_every_delay():
    """A right model: 4000 dependent rows, a standard error of about 0.006 in each share; errors grow with the delay."""
    rng = np.random.default_rng(9)
    rows, F, Q = 4000, 0.9, 0.5
    z = np.zeros(rows)
    for t in range(1, rows):
        z[t] = F * z[t - 1] + rng.normal(scale=np.sqrt(Q))
    y = z + rng.normal(scale=0.6, size=rows)
    prior = fx.priors.linear_dynamics(F=jnp.array([[F]]), Q=jnp.array([[Q]]))
    method = fx.method("LG+C-LSSM", model=fx.models.linear(noise=0.36), prior=prior)
    state = method.init(mean=jnp.zeros(1), cov=1.0)
    tables = [prequential(method, state, np.ones((rows, 1)), y, delay=delay).table() for delay in (0, 2, 5)]
    errors = [table["LG+C-LSSM"]["rmse"] for table in tables]
    assert np.all(np.diff(errors) > 0)
    for table in tables:
        assert abs(table["LG+C-LSSM"]["coverage(0.9)"] - 0.9) < 0.02
        assert table["LG+C-LSSM"]["rmse"] < table["last-value"]["rmse"]


def test_baselines_know_no_more_than_the_method():
    (x, y, _), (method, state) = stream(10), walker()
    report = prequential(method, state, x, y, delay=3, baselines=(last_value(), seasonal_naive(2)))
    np.testing.assert_array_equal(report.runs["seasonal-naive(2)"].forecast.mean, seasonal_naive(2)(y, delay=3).mean)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"X": np.ones((T - 1, D))}, "39 inputs but 40 targets"),
        ({"dt": np.ones(3)}, "3 lengths dt but 40 targets"),
        ({"mask": np.ones((T, 2), bool)}, r"mask has shape \(40, 2\)"),
        ({"Y": np.ones(0), "X": np.ones((0, D))}, "no rows"),
        ({"delay": -1}, r"delay=...\) must be a whole number of at least 0, got -1"),
        ({"chunk": 0}, r"chunk=...\) must be a whole number of at least 1, got 0"),
        ({"metrics": ("rsme",)}, 'Did you mean "rmse"'),
        ({"metrics": ()}, "no metric"),
        ({"period": 0}, "period=0"),
    ],
)
def test_bad_input_is_refused_with_a_sentence(change, says):
    (x, y, _), (method, state) = stream(), walker()
    with pytest.raises(ValueError, match=says):
        prequential(method, state, **({"X": x, "Y": y} | change))
