"""The pipeline against the bank in plain numpy, and the promises of its verbs."""

import json
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bank_in_numpy
from filtax import forecasting
from filtax.forecasting._clock import Clock
from filtax.forecasting._features import Scale, effects
from filtax.forecasting._layout import Layout
from filtax.forecasting._pipeline import pipeline

pytestmark = pytest.mark.x64
HOURS = np.datetime64("2024-01-01T00") + np.arange(600).astype("timedelta64[h]")


def series(rows, missing=0.05, seed=0):
    rng = np.random.default_rng(seed)
    y = 5.0 + np.sin(np.arange(rows) * 2 * np.pi / 24) + np.cumsum(rng.normal(size=rows)) * 0.1
    y[rng.random(rows) < 0.02] += 8.0
    y[rng.random(rows) < missing] = np.nan
    return y


def prepared(y, steps, times=HOURS, scale=(5.0, 1.5), wakes=(0, 49, 0)):
    clock = Clock.of(times)
    layout = Layout.of(clock, steps)
    rows = layout.rows(clock, times[: len(y)], y, np.zeros((len(y), 0)), np.ones(len(y), bool))
    pipe = pipeline(layout)
    units = replace(Scale.start(0), center=np.array(scale[0]), spread=np.array(scale[1]))
    return clock, pipe, pipe.start(units, wakes), rows


def cut(rows, start, stop):
    return jax.tree.map(lambda leaf: leaf[start:stop], rows)


@pytest.mark.parametrize("steps", [(1,), (1, 2, 3), (2, 24, 25, 30)], ids=str)
def test_forecasts_and_weights_are_those_of_plain_numpy(steps):
    y = series(420)
    clock, pipe, packed, rows = prepared(y, steps)
    _, out = pipe.advance(packed, rows)
    where = clock.moments(HOURS[: 420 + max(steps)])
    forecasts, weights = bank_in_numpy.run(
        y,
        where.slot,
        where.week,
        where.calendar,
        effects(pipe.layout, "clock"),
        steps=steps,
        season=24,
        weeks=168,
        center=5.0,
        spread=1.5,
        wakes=(0, 49),
    )
    np.testing.assert_allclose(out.weights, weights, atol=1e-7)
    np.testing.assert_allclose(out.forecast, forecasts, rtol=1e-8, atol=1e-8)
    low, high = 5.0 + 1.5 * bank_in_numpy.intervals((y - 5.0) / 1.5, (forecasts - 5.0) / 1.5, where.slot, steps)
    np.testing.assert_allclose(out.lower, low, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(out.upper, high, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("steps", [(1, 2, 3), (1, 24)], ids=["a small state", "a large state"])
def test_rows_in_any_batches_learned_or_only_asked_about_have_the_same_bits(steps):
    _, pipe, packed, rows = prepared(series(150), steps)
    _, whole = pipe.advance(packed, rows)
    at = 0
    for end, asked in ((70, 40), (71, 0), (71, 3), (72, 1), (150, 0)):
        stop = end + asked
        packed, out = pipe.advance(packed, cut(rows, at, stop), asked=asked)
        jax.tree.map(np.testing.assert_array_equal, out.take(slice(end - at)), whole.take(slice(at, end)))
        if asked:  # the first of them comes next
            jax.tree.map(np.testing.assert_array_equal, out.take(end - at), whole.take(end))
        at = end


def test_what_comes_later_changes_nothing_that_was_said():
    y, end = series(260), 180
    _, pipe, packed, rows = prepared(y, (1, 6, 24))
    _, plain = pipe.advance(packed, rows)
    for later in (np.full(80, np.nan), np.random.default_rng(1).normal(size=80) * 1e3):
        _, other = pipe.advance(packed, prepared(np.concatenate([y[:end], later]), (1, 6, 24))[3])
        jax.tree.map(lambda a, b: np.testing.assert_array_equal(a[: end + 1], b[: end + 1]), plain, other)
        assert not np.array_equal(plain.forecast[end + 1 :], other.forecast[end + 1 :])


def test_many_series_at_once_are_each_as_alone():
    pipe = prepared(series(80), (1, 2))[1]
    starts, rows = zip(*[prepared(series(80, seed=seed), (1, 2))[2:] for seed in range(3)], strict=True)
    states = jax.vmap(pipe.unpack)(jnp.stack(starts))
    _, outs = jax.jit(jax.vmap(pipe.scan))(states, jax.tree.map(lambda *leaves: np.stack(leaves), *rows))
    for k in range(3):
        _, alone = pipe.advance(starts[k], rows[k])
        np.testing.assert_allclose(outs.forecast[k], alone.forecast, rtol=1e-9)
        np.testing.assert_allclose(outs.upper[k], alone.upper, rtol=1e-9)


class Trend(forecasting.Expert):
    """An expert of one's own: the last value, and the slope of the last day."""

    names = ("trend",)

    def forecast(self, state, view):
        slope = (view.last - view.history.recent[24]) / 24.0
        return view.last + view.steps * slope


def test_an_expert_of_ones_own_carries_the_forecast_where_it_is_right():
    y = 0.5 * np.arange(300.0)
    own = forecasting.Series(steps=(1, 5), experts=[forecasting.baseline("last"), Trend()])
    out = own.learn(y, HOURS[:300])
    assert own.names == ("last", "trend", "autoregression")
    np.testing.assert_allclose(out.forecast[200:250, 1], y[204:254], atol=0.2)
    assert out.weights[250, 1] > 0.5


@pytest.mark.parametrize("names", [(), "trend"])
def test_an_expert_without_names_is_refused(names):
    with pytest.raises(ValueError, match="; name its forecasts"):
        forecasting.Series(experts=[Trend(names=names)]).learn(np.ones(300), HOURS[:300])


def test_batches_and_single_rows_agree_while_the_plan_is_made():
    y = series(260, missing=0.1)
    known = np.random.default_rng(3).normal(size=(260, 1))
    batch = forecasting.Series(steps=3, known=1).learn(y, HOURS[:260], known)
    single, parts = forecasting.Series(steps=3, known=1), []
    for t in range(260):
        parts.append(single.learn(y[t : t + 1], HOURS[t : t + 1], known[t : t + 3]))
    np.testing.assert_array_equal(np.concatenate([part.forecast[:, 0] for part in parts]), batch.forecast[:, 0])
    np.testing.assert_array_equal(np.concatenate([part.upper[:, 0] for part in parts]), batch.upper[:, 0])


def test_what_a_series_says_ahead_is_what_it_says_when_the_row_comes():
    y = series(150)
    one = forecasting.Series(steps=4)
    one.learn(y[:149], HOURS[:149])
    ahead = one.ahead()
    out = one.learn(y[149:], HOURS[149:150])
    jax.tree.map(np.testing.assert_array_equal, ahead, out.take(0))


def test_a_season_is_found_without_times():
    y = np.sin(np.arange(700) * 2 * np.pi / 24)
    one = forecasting.Series(steps=24)
    one.learn(y)
    assert one.pipe.layout.season == 24
    np.testing.assert_allclose(one.ahead().forecast, np.sin(np.arange(700, 724) * 2 * np.pi / 24), atol=0.02)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: s.ahead(), "has not seen a row"),
        (lambda s: forecasting.Series(steps=0), "must be at least 1"),
        (lambda s: s.learn(np.ones((5, 2))), r"y has shape \(5, 2\)"),
        (lambda s: s.learn([1.0, 2.0], HOURS[:1]), r"times has shape \(1,\); give \(2,\)"),
        (lambda s: s.learn([1.0], known=np.ones((1, 2))), r"known has shape \(1, 2\); give \(1, 0\)"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call(forecasting.Series())


def test_what_is_not_finite_is_missing():
    y = series(200)
    bad = np.where(np.arange(200) == 120, np.inf, y)
    gap = np.where(np.arange(200) == 120, np.nan, y)
    one, two = (forecasting.Series().learn(values, HOURS[:200]) for values in (bad, gap))
    np.testing.assert_array_equal(one.forecast, two.forecast)
    assert np.all(np.isfinite(one.forecast[60:]))


def test_a_series_that_is_restored_goes_on_in_the_same_bits():
    y, known = series(500), np.random.default_rng(5).normal(size=(500, 2))
    for times in (None, HOURS[:500]):
        for cut in (0, 3, 30, 200, 450):
            whole = forecasting.Series(steps=(1, 3), known=2)
            if cut:
                whole.learn(y[:cut], None if times is None else times[:cut], known[: cut + 2])
            settings = json.loads(json.dumps(whole.settings()))
            other = forecasting.Series.restore(settings, whole.arrays())
            rest = y[cut:], None if times is None else times[cut:], known[cut:]
            jax.tree.map(np.testing.assert_array_equal, other.learn(*rest), whole.learn(*rest))


def test_what_comes_due_was_said_so_many_rows_before():
    y = series(300)
    out = forecasting.Series(steps=(1, 4)).learn(y, HOURS[:300])
    np.testing.assert_array_equal(out.due[:, 0, 0], out.forecast[:, 0])
    np.testing.assert_array_equal(out.due[3:, 1, 0], out.forecast[:-3, 1])
    assert np.isnan(out.due[:3, 1]).all()


def test_a_gap_in_a_regular_clock_is_as_rows_without_a_target():
    y, there = series(500), np.ones(500, bool)
    there[[150, 300, 301, 302]] = False
    gap = forecasting.Series(steps=(1, 3)).learn(y[there], HOURS[:500][there])
    blank = forecasting.Series(steps=(1, 3)).learn(np.where(there, y, np.nan), HOURS[:500])
    np.testing.assert_array_equal(gap.due[:, :, 0], blank.due[there][:, :, 0])


def test_columns_serve_from_the_first_rows_whatever_their_units():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4)) * [1e-3, 1.0, 50.0, 1e6] + [0.0, 3.0, -7.0, 1e8]
    y = 2.0 + X @ [1e3, 1.0, 0.02, -1e-6] + 0.1 * rng.normal(size=600)
    one = forecasting.Series(known=4, season=1)
    out = one.learn(y, known=X)
    error = np.abs(out.forecast[:, 0] - y)
    assert error[20:60].mean() < 0.6
    assert error[300:].mean() < 0.1
    fresh = rng.normal(size=(5, 4)) * [1e-3, 1.0, 50.0, 1e6] + [0.0, 3.0, -7.0, 1e8]
    before = one.arrays()
    np.testing.assert_allclose(one.predict(fresh).forecast[:, 0], 2.0 + fresh @ [1e3, 1.0, 0.02, -1e-6], atol=0.3)
    jax.tree.map(np.testing.assert_array_equal, before, one.arrays())


def test_a_column_that_begins_to_vary_late_is_learned():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 2)) * 40.0
    X[:1500, 1] = np.nan
    y = X[:, 0] + np.where(np.isnan(X[:, 1]), 0.0, X[:, 1]) + rng.normal(size=3000)
    whole = forecasting.Series(known=2, season=1).learn(y, known=X)
    assert np.abs(whole.forecast[2500:, 0] - y[2500:]).mean() < 2.0
    one = forecasting.Series(known=2, season=1)
    parts = [one.learn(y[a:b], known=X[a:b]).forecast for a, b in ((0, 1400), (1400, 1501), (1501, 3000))]
    np.testing.assert_array_equal(np.concatenate(parts), whole.forecast)


def test_a_method_of_the_library_takes_the_place_of_the_filters():
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(400, 3)), np.array([1.0, -2.0, 0.5])
    one = forecasting.Series(known=3, season=1, method="LG+C-Static")
    out = one.learn(X @ w + 5.0, known=X)
    assert "LG+C-Static" in one.names
    np.testing.assert_allclose(out.forecast[-50:, 0], X[-50:] @ w + 5.0, atol=0.1)
    with pytest.raises(ValueError, match="draws at random"):
        forecasting.Series(method="PF(size=10)+C-Static")


def test_one_gross_error_does_not_become_the_unit():
    y = series(400, missing=0.0)
    bad = y.copy()
    bad[10] = 1e7
    clean, dirty = (forecasting.Series().learn(values, HOURS[:400]) for values in (y, bad))
    error = [np.mean(np.abs(out.forecast[200:, 0] - y[200:])) for out in (clean, dirty)]
    assert error[1] < 1.25 * error[0]


def test_a_gap_among_the_rows_that_come_next_changes_no_bit():
    y, there = series(400, missing=0.0), np.ones(400, bool)
    there[[150, 200, 201, 300]] = False
    y, times = y[there], HOURS[:400][there]
    known = np.random.default_rng(1).normal(size=(len(y), 1))
    y = y + 5.0 * known[:, 0]
    whole = forecasting.Series(steps=3, known=1).learn(y, times, known).due
    one, parts = forecasting.Series(steps=3, known=1), []
    for start, stop in ((0, 149), (149, 198), (198, 295), (295, 297), (297, len(y))):
        parts.append(one.learn(y[start:stop], times[start : stop + 2], known[start : stop + 2]).due)
    np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_intervals_hold_where_most_targets_are_the_same():
    rng = np.random.default_rng(0)
    hours = np.datetime64("2024-01-01T00") + np.arange(6000).astype("timedelta64[h]")
    y = np.where(rng.random(6000) < 0.9, 0.0, rng.exponential(size=6000) * 10.0)
    _, low, high = forecasting.Series().learn(y, hours).due[300:, 0].T
    inside = (low <= y[300:]) & (y[300:] <= high)
    assert all(0.86 < part.mean() < 1.0 for part in np.array_split(inside, 4))


def test_an_interval_without_width_holds_a_target_that_stays():
    rng = np.random.default_rng(0)
    y = np.where(rng.random(1500) < 0.01, rng.exponential(size=1500) * 1e8, 0.0)
    _, low, high = forecasting.Series().learn(y).due[600:, 0].T
    inside = (low <= y[600:]) & (y[600:] <= high)
    assert inside[y[600:] == 0.0].mean() > 0.95


def test_the_unit_may_be_very_large_or_small():
    y = series(300)
    plain = forecasting.Series().learn(y, HOURS[:300])
    for unit in (1e-290, 1e290):
        scaled = forecasting.Series().learn(y * unit, HOURS[:300])
        np.testing.assert_allclose(scaled.forecast[60:] / unit, plain.forecast[60:], rtol=1e-2)


def test_a_forecast_that_is_not_wanted_is_not_issued():
    y, wanted = series(300), np.arange(300) % 24 == 8
    one = forecasting.Series(steps=(17, 40), stride=24)
    out = one.learn(y, HOURS[:300], issue=wanted)
    assert np.isnan(out.forecast[~wanted]).all()
    assert np.isfinite(out.forecast[wanted][3:]).all()
    at = np.flatnonzero(wanted)[5:10]
    np.testing.assert_array_equal(out.due[at + 16, 0, 0], out.forecast[at, 0])
