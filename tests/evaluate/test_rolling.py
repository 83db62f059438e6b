"""Views: checked against loops that take each window, weight and bucket one by one."""

import datetime

import numpy as np
import pytest

from filtax.evaluate import by_calendar, ewma, expanding, metric, rolling

METRICS = ["rmse", "mae", "rmedse", "coverage", "pit"]


def stream(seed=0, size=60):
    rng = np.random.default_rng(seed)
    losses = rng.uniform(size=size)
    losses[rng.uniform(size=size) < 0.2] = np.nan
    losses[:3] = np.nan
    return losses


def summary(name, losses, weights):
    """The metric of a part of the stream, by its definition."""
    kept = ~np.isnan(losses) & (weights > 0)
    losses, weights = losses[kept], weights[kept]
    if not losses.size:
        return np.nan
    if name == "rmedse":  # a weighted median minimises the weighted absolute deviation
        cost = np.array([weights @ np.abs(losses - centre) for centre in losses])
        return np.sqrt(losses[np.isclose(cost, cost.min(), rtol=1e-12)].mean())
    if name == "pit":
        share = np.array([[weights @ (losses <= v), weights @ (losses < v)] for v in losses]) / weights.sum()
        return np.abs(share - losses[:, None]).max()
    value = weights @ losses / weights.sum()
    return np.sqrt(value) if name == "rmse" else value


@pytest.mark.parametrize("window", [1, 2, 7, 24, 60, 100])
@pytest.mark.parametrize("name", METRICS)
def test_rolling_is_the_metric_of_each_window(name, window):
    losses = stream()
    want = [summary(name, part := losses[max(0, t + 1 - window) : t + 1], np.ones(part.size)) for t in range(60)]
    np.testing.assert_allclose(rolling(losses, window, name), want, rtol=1e-12)


def test_rolling_needs_as_many_scored_steps_as_asked():
    losses = np.array([1.0, np.nan, 3.0, 5.0, np.nan, np.nan])
    np.testing.assert_array_equal(rolling(losses, 3, minimum=2), [np.nan, np.nan, 2.0, 4.0, 4.0, np.nan])


def test_a_huge_loss_leaves_no_trace_in_later_windows():
    """A difference of running sums would be off by about 1e4 here, and NaN after the infinite one."""
    losses = np.array([1.0, 1e20, 2.0, 3.0, np.inf, 4.0, 5.0, 6.0])
    np.testing.assert_array_equal(rolling(losses, 2)[[3, 6, 7]], [2.5, 4.5, 5.5])
    assert rolling(losses, 2)[5] == np.inf


def test_losses_too_large_to_add_up_are_infinite_and_no_warning():
    for view in (rolling([1e308, 1e308], 2), expanding([1e308, 1e308]), ewma([1e308, 1e308], 9.0)):
        np.testing.assert_array_equal(view, [1e308, np.inf])
    assert metric("mae").aggregate([1e308, 1e308]) == np.inf


@pytest.mark.parametrize("name", METRICS)
def test_expanding_is_the_metric_of_all_so_far(name):
    losses = stream(1)
    want = [summary(name, losses[: t + 1], np.ones(t + 1)) for t in range(60)]
    got = expanding(losses, name)
    np.testing.assert_allclose(got, want, rtol=1e-12)
    np.testing.assert_allclose(got[-1], metric(name).aggregate(losses), rtol=1e-12)


@pytest.mark.parametrize("span", [1, 1.5, 5, 40])
@pytest.mark.parametrize("name", METRICS)
def test_ewma_weighs_by_age(name, span):
    losses, keep = stream(2), 1 - 2 / (span + 1)
    want = [summary(name, losses[: t + 1], keep ** np.arange(t, -1.0, -1)) for t in range(60)]
    np.testing.assert_allclose(ewma(losses, span, name), want, rtol=1e-9)


def test_ewma_is_that_of_pandas():
    pandas = pytest.importorskip("pandas")
    losses = stream(3)
    np.testing.assert_allclose(ewma(losses, 12), pandas.Series(losses).ewm(span=12).mean(), rtol=1e-12)


HOURS = np.datetime64("2019-12-30T21:30") + np.arange(60) * np.timedelta64(17, "h")


@pytest.mark.parametrize(
    ("bucket", "key"),
    [
        ("hour", lambda t: t.hour),
        ("weekday", lambda t: t.weekday()),
        ("month", lambda t: t.month),
        ("h", lambda t: t.strftime("%Y-%m-%dT%H")),
        ("D", lambda t: t.strftime("%Y-%m-%d")),
        ("W", lambda t: (t - datetime.timedelta(days=t.weekday())).strftime("%Y-%m-%d")),
        ("M", lambda t: t.strftime("%Y-%m")),
        ("Y", lambda t: str(t.year)),
        (lambda time: time < np.datetime64("2020-01-10"), lambda t: t < datetime.datetime(2020, 1, 10)),
    ],
)
@pytest.mark.parametrize("name", ["rmse", "rmedse"])
def test_buckets_are_those_of_the_calendar(bucket, key, name):
    losses = stream(4)
    keys = [key(time) for time in HOURS.astype("datetime64[s]").tolist()]
    want = {}
    for k in sorted(set(keys)):
        part = losses[[other == k for other in keys]]
        want[k] = summary(name, part, np.ones(part.size))
    got = by_calendar(losses, HOURS, bucket, name)
    assert list(got) == list(want)
    np.testing.assert_allclose(list(got.values()), list(want.values()), rtol=1e-12)


def test_dates_before_1970_and_plain_datetimes_are_understood():
    assert by_calendar([1.0], [datetime.datetime(1969, 12, 31, 23)], "hour") == {23: 1.0}
    assert by_calendar([1.0], np.array(["1969-12-31"], "datetime64[D]"), "weekday") == {2: 1.0}  # a Wednesday
    assert by_calendar([1.0], np.array(["1969-12-31"], "datetime64[D]"), "month") == {12: 1.0}


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: rolling([1.0], 0), "window=0"),
        (lambda: rolling([1.0], 2, minimum=0), "minimum=0"),
        (lambda: ewma([1.0], 0.5), "span=0.5"),
        (lambda: ewma([1.0], float("nan")), "span=nan"),
        (lambda: expanding(np.ones((2, 2))), r"\(2, 2\)"),
        (lambda: expanding([1.0], "rsme"), "rmse"),
        (lambda: by_calendar([1.0], ["2020-01-01", "2020-01-02"], "D"), "1 losses but 2 times"),
        (lambda: by_calendar([1.0, 2.0], ["2020-01-01", "NaT"], "D"), "row 1"),
        (lambda: by_calendar([1.0], ["2020-01-01"], "fortnight"), "fortnight"),
        (lambda: by_calendar([1.0], ["yesterday"], "D"), "datetime64"),
    ],
)
def test_bad_input_is_refused_with_a_sentence(call, says):
    with pytest.raises(ValueError, match=says):
        call()


def test_times_with_a_zone_count_by_its_clock():
    """They were put into UTC: midnight in Berlin is 22 o'clock there in summer."""
    pandas = pytest.importorskip("pandas")
    berlin = datetime.timezone(datetime.timedelta(hours=2))
    aware = [datetime.datetime(2024, 7, 1, hour, tzinfo=berlin) for hour in (0, 8, 16)]
    index = pandas.date_range("2024-07-01", periods=3, freq="8h", tz="Europe/Berlin")
    plain = (aware, np.array(aware, object), index, index.tz_localize(None), list(index))
    series = (pandas.Series(index), pandas.Series(aware, dtype=object), pandas.Index(aware, dtype=object))
    for time in (*plain, *series, series[0].astype(object)[::-1][::-1]):
        assert by_calendar([1.0, 2.0, 3.0], time, "hour") == {0: 1.0, 8: 2.0, 16: 3.0}
    with pytest.raises(ValueError, match=r"by_calendar: time must be numpy.datetime64 or dates that convert"):
        by_calendar([1.0], ["2024-07-01T00:00+02:00"], "hour")


@pytest.mark.parametrize("name", ["mae", "rmedse", "pit"])
def test_ewma_keeps_its_value_over_a_gap_of_any_length(name):
    """The weights of all that was seen fade alike; they sank below what a float holds, and 1 or NaN was left."""
    losses = np.r_[0.1, 0.9, 0.4, np.full(1000, np.nan), 0.3]
    want = summary(name, losses[:3], (1 / 3) ** np.arange(2.0, -1.0, -1))
    got = ewma(losses, 2, name)
    np.testing.assert_allclose(got[2:-1], want, rtol=1e-12)
    np.testing.assert_allclose(got[-1], summary(name, losses[-1:], np.ones(1)), rtol=1e-12)
