"""The prequential loop: checked against a filter in plain numpy, and against steps taken one by one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import filtax as fx
from filtax.evaluate import last_value, prequential, seasonal_naive
from filtax.evaluate.loop import Task, run

T, D, NOISE, WALK = 40, 2, 0.3, 0.05
TOL = 1e-9 if jax.config.jax_enable_x64 else 2e-4


def stream(seed=0, missing=0.2):
    rng = np.random.default_rng(seed)
    theta = np.cumsum(rng.normal(scale=np.sqrt(WALK), size=(T, D)), axis=0)
    x = rng.normal(size=(T, D))
    y = np.sum(theta * x, axis=1) + rng.normal(scale=np.sqrt(NOISE), size=T)
    y[rng.uniform(size=T) < missing] = np.nan
    return x, y, rng.uniform(0.5, 2.0, size=T)


def walker():
    method = fx.method(f"LG+C-ACI(q={WALK})", model=fx.models.linear(noise=NOISE))
    return method, method.init(mean=jnp.zeros(D), cov=2.0)


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


@pytest.mark.parametrize("timed", [False, True])
@pytest.mark.parametrize("delay", [0, 1, 3, 50])
def test_a_forecast_knows_only_the_labels_that_have_come(delay, timed):
    (x, y, dt), (method, state) = stream(), walker()
    forecast = prequential(method, state, x, y, delay=delay, dt=dt if timed else None, chunk=16).forecast
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
    report = prequential(method, state, x, y, delay=delay, horizon=4, dt=dt, chunk=16)
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
    forecast = prequential(method, state, x, y, delay=delay, chunk=7).forecast
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
    reports = [prequential(method, state, x, y, delay=delay, chunk=chunk) for chunk in (1, 13, 40, 1000)]
    for report in reports:
        np.testing.assert_allclose(report.forecast.mean, reports[0].forecast.mean, rtol=TOL, atol=TOL)
        np.testing.assert_allclose(method.belief(report.state).mean, method.belief(want).mean, rtol=TOL, atol=TOL)
        np.testing.assert_allclose(method.belief(report.state).cov, method.belief(want).cov, rtol=TOL, atol=TOL)
        assert report.microseconds > 0


def test_log_scores_add_up_to_the_evidence():
    (x, y, _), (method, state) = stream(4), walker()
    report = prequential(method, state, x, y)
    _, infos = method.scan(state, x, y)
    np.testing.assert_allclose(np.nansum(report.losses["log_score"]), infos.log_evidence.sum(), rtol=TOL)


def kinds():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(T, D))
    eta = x @ np.array([1.0, -1.0])
    numbers, labels = eta + rng.normal(scale=0.5, size=T), (rng.uniform(size=T) < 1 / (1 + np.exp(-eta))).astype(float)
    linear = fx.models.linear
    yield "student", "NIG+C-Static", linear(noise=1.0), D, x, numbers
    yield (
        "counts",
        "LG+C-Static",
        linear(likelihood=fx.models.poisson()),
        D,
        x,
        rng.poisson(np.exp(0.5 * eta)).astype(float),
    )
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


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("delay", [0, 2])
def test_every_kind_of_forecast_is_scored_by_its_own_distribution(kind, delay):
    """Mean, log density, coverage and PIT are those of `predict` on a state that was rolled by hand."""
    method, state, x, y = started(kind)
    report = prequential(method, state, x, y, delay=delay, chunk=16)
    learned = [state]
    for t in range(T):
        learned.append(method.step(learned[-1], None if x is None else x[t], y[t])[0])
    for t in range(0, T, 3):
        known = max(t - delay, 0)
        rolled = learned[known]
        for s in range(known, t):
            rolled = method.step(rolled, None if x is None else x[s], np.full(y.shape[1:], np.nan))[0]
        dist = method.predict(rolled, None if x is None else x[t])
        np.testing.assert_allclose(report.forecast.mean[t], dist.mean, rtol=TOL, atol=TOL)
        if not np.isfinite(y[t]).any():
            assert all(np.isnan(losses[t]) for losses in report.losses.values())
            continue
        mask = np.isfinite(y[t]).reshape(-1)
        want = dist.log_prob(jnp.nan_to_num(y[t]), jnp.asarray(mask))
        np.testing.assert_allclose(report.losses["log_score"][t], want, rtol=20 * TOL, atol=20 * TOL)
        if "coverage(0.9)" in report.losses:
            low, high = dist.interval(0.9)
            inside = np.mean(((low <= y[t]) & (y[t] <= high))[np.isfinite(y[t])])
            np.testing.assert_allclose(report.losses["coverage(0.9)"][t], inside)
            np.testing.assert_allclose(report.forecast.lower[t], low, rtol=20 * TOL, atol=20 * TOL)


@pytest.mark.parametrize("kind", KINDS)
def test_the_usual_columns_and_lines(kind):
    method, state, x, y = started(kind)
    report = prequential(method, state, x, y, period=5)
    labelled = kind in ("yes-no", "classes")
    lines = (
        ["last-class", "majority-class"]
        if labelled
        else ["last-value", "seasonal-naive(5)", "naive-plus-change(5)", "running-mean"]
    )
    columns = ["accuracy", "brier", "log_score"] if labelled else ["rmse", "mae", "log_score", "crps", "coverage(0.9)"]
    assert list(report.runs) == [method.name, *lines]
    assert all(list(line) == columns for line in report.table().values())
    assert all(np.isfinite(value) for line in report.table().values() for value in line.values())


def test_a_gaussian_goes_the_long_way_too():
    """Asked for its distribution function and ranked score at each step, it gives what its mean and variance say."""
    (x, y, _), (method, state) = stream(6), walker()
    short = run(method, state, Task(x, y)).kept[0]
    long = run(method, state, Task(x, y, plain=False, ranked=True)).kept[0]
    report = prequential(method, state, x, y, metrics=("crps", "pit"))
    seen = np.isfinite(y)
    for name in short:
        np.testing.assert_allclose(long[name], short[name], rtol=TOL, atol=TOL)
    np.testing.assert_allclose(long["ranked"][seen], report.losses["crps"][seen], rtol=max(TOL, 1e-6))
    np.testing.assert_allclose(long["upto"][seen], report.losses["pit"][seen], rtol=max(TOL, 1e-6))


def test_what_is_missing_or_refused_is_not_scored_and_is_counted():
    (x, y, _), (method, state) = stream(7, missing=0.0), walker()
    x[3, 0], y[5], y[8] = np.nan, np.inf, np.nan
    report = prequential(method, state, x, y, mask=np.arange(T) != 11)
    assert report.refused == 2
    assert "40 rows, 2 missing, 2 refused" in str(report)
    unscored = np.isin(np.arange(T), [3, 5, 8, 11])
    for losses in report.losses.values():
        np.testing.assert_array_equal(np.isnan(losses), unscored)
    for run in report.runs.values():
        assert np.isnan(run.losses["rmse"][unscored]).all()


def test_an_impossible_label_is_refused_and_not_scored():
    method, state, x, y = started("classes")
    y = np.where(np.arange(T) == 4, 9.0, y)
    report = prequential(method, state, x, y)
    assert report.refused == 1
    assert np.isnan(report.losses["accuracy"][4])


def test_a_datum_that_the_method_could_not_take_is_scored_in_full():
    """Density zero: the worst log score there is, not a row left out."""
    (x, y, _), (method, state) = stream(8, missing=0.0), walker()
    y[20] = 1e18
    report = prequential(method, state, x, y)
    assert report.losses["log_score"][20] < -1e20
    assert report.refused == 0


def test_progress_tells_of_every_row():
    (x, y, _), (method, state) = stream(), walker()
    steps = []
    prequential(method, state, x, y, chunk=16, progress=steps.append)
    assert steps == [16, 16, 8]


def test_labels_that_are_whole_numbers_and_jax_arrays_are_welcome():
    method, state, x, y = started("classes")
    y = np.nan_to_num(y).astype(int)
    one, two = prequential(method, state, x, y), prequential(method, state, jnp.asarray(x), jnp.asarray(y))
    np.testing.assert_array_equal(one.forecast.mean, two.forecast.mean)


def test_intervals_cover_what_they_promise_at_every_horizon():
    """A right model: 4000 dependent rows, a standard error of about 0.006 in each share."""
    rng = np.random.default_rng(9)
    rows, F, Q = 4000, 0.9, 0.5
    z = np.zeros(rows)
    for t in range(1, rows):
        z[t] = F * z[t - 1] + rng.normal(scale=np.sqrt(Q))
    y = z + rng.normal(scale=0.6, size=rows)
    prior = fx.priors.linear_dynamics(F=jnp.array([[F]]), Q=jnp.array([[Q]]))
    method = fx.method("LG+C-LSSM", model=fx.models.linear(noise=0.36), prior=prior)
    state = method.init(mean=jnp.zeros(1), cov=1.0)
    report = prequential(method, state, np.ones((rows, 1)), y, horizon=5, delay=1, baselines=(last_value(),))
    shares = report.by_horizon("coverage(0.9)")
    assert shares["LG+C-LSSM"].shape == (5,)
    assert np.all(np.abs(shares["LG+C-LSSM"] - 0.9) < 0.02)
    errors = report.by_horizon("rmse")
    assert np.all(np.diff(errors["LG+C-LSSM"]) > 0)
    assert np.all(errors["LG+C-LSSM"] < errors["last-value"])


def test_baselines_know_no_more_than_the_method():
    (x, y, _), (method, state) = stream(10), walker()
    report = prequential(method, state, x, y, delay=3, baselines=(last_value(), seasonal_naive(2)), horizon=2)
    for h, forecast in enumerate(report.runs["seasonal-naive(2)"].forecasts):
        np.testing.assert_array_equal(forecast.mean, seasonal_naive(2)(y, delay=3 + h).mean)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"X": np.ones((T - 1, D))}, "39 inputs but 40 targets"),
        ({"dt": np.ones(3)}, "3 lengths dt but 40 targets"),
        ({"time": np.arange(3)}, "3 times but 40 targets"),
        ({"mask": np.ones((T, 2), bool)}, r"mask has shape \(40, 2\)"),
        ({"Y": np.ones(0), "X": np.ones((0, D))}, "no rows"),
        ({"delay": -1}, r"delay=-1\) must be 0"),
        ({"horizon": 0}, r"horizon=0\) must be 1"),
        ({"chunk": 0}, r"chunk=0\) must be 1"),
        ({"level": 1.5}, r"level=1.5\) must lie strictly between 0 and 1"),
        ({"metrics": ("rsme",)}, 'Did you mean "rmse"'),
        ({"period": 0}, "period=0"),
    ],
)
def test_bad_input_is_refused_with_a_sentence(change, says):
    (x, y, _), (method, state) = stream(), walker()
    with pytest.raises(ValueError, match=says):
        prequential(method, state, **({"X": x, "Y": y} | change))
