"""Baselines: checked against loops that look at the past only, and by changing the future."""

import itertools

import numpy as np
import pytest
import scipy.stats

from filtax.evaluate import Forecast, last_class, last_value, majority_class, running_mean, seasonal_naive
from filtax.evaluate.metrics import accuracy, coverage, crps, log_score

PERIOD = 5
DELAYS = [0, 1, 4, 5, 11]


def numbers(seed=0, size=80, missing=0.3):
    rng = np.random.default_rng(seed)
    y = np.cumsum(rng.normal(size=size))
    y[rng.uniform(size=size) < missing] = np.nan
    return y


def said_last(past, t):
    return next((v for v in past[::-1] if np.isfinite(v)), np.nan)


def said_mean(past, t):
    return np.nanmean(past) if np.isfinite(past).any() else np.nan


def said_season(past, t):
    same = [past[s] for s in range(len(past) - 1, -1, -1) if (t - s) % PERIOD == 0 and np.isfinite(past[s])]
    return same[0] if same else said_last(past, t)


NUMBERS = [(last_value(), said_last), (running_mean(), said_mean), (seasonal_naive(PERIOD), said_season)]


@pytest.mark.parametrize("delay", DELAYS)
@pytest.mark.parametrize(("baseline", "said"), NUMBERS, ids=lambda v: getattr(v, "name", ""))
def test_it_says_what_a_loop_over_the_past_says(baseline, said, delay):
    y = numbers()
    forecast = baseline(y, delay=delay)
    errors = []
    for t in range(len(y)):
        past = y[: max(0, t - delay)]
        want = said(past, t)
        np.testing.assert_allclose(forecast.mean[t], want, rtol=1e-12)
        assert forecast.made[t] == (np.isfinite(want) or np.isnan(y[t]))
        known = np.array([e for s, e in errors if s < t - delay and np.isfinite(e)])
        if np.isfinite(want) and known.size >= 3:
            np.testing.assert_allclose(forecast.df[t], known.size)
            np.testing.assert_allclose(forecast.scale[t], np.sqrt(np.mean(known**2)), rtol=1e-12)
        else:
            assert np.isnan(forecast.scale[t])
        errors.append((t, y[t] - want))


def labels(seed=3, size=60):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, size=size).astype(float)
    y[rng.uniform(size=size) < 0.2] = np.nan
    return y


@pytest.mark.parametrize("delay", [0, 2])
def test_label_baselines_say_what_a_loop_over_the_past_says(delay):
    y = labels()
    last, most = last_class(3)(y, delay=delay), majority_class(3)(y, delay=delay)
    tried = []
    for t in range(len(y)):
        past = y[: max(0, t - delay)]
        past = past[np.isfinite(past)]
        hits = [hit for s, hit in tried if s < t - delay]
        if past.size:
            counts = np.bincount(past.astype(int), minlength=3)
            assert most.label[t] == counts.argmax()
            np.testing.assert_allclose(most.mean[t], (counts + 1) / (past.size + 3))
            again = (sum(hits) + 1) / (len(hits) + 3)
            assert last.label[t] == past[-1]
            np.testing.assert_allclose(last.mean[t], np.where(np.arange(3) == past[-1], again, (1 - again) / 2))
            if np.isfinite(y[t]):
                tried.append((t, y[t] == past[-1]))
        else:
            assert np.isnan(last.label[t])
            assert np.isnan(most.label[t])
    np.testing.assert_allclose(last.mean.sum(axis=1), 1.0)


@pytest.mark.parametrize("delay", [0, 3])
@pytest.mark.parametrize("baseline", [b for b, _ in NUMBERS] + [last_class(3), majority_class(3)], ids=lambda b: b.name)
def test_the_future_changes_nothing(baseline, delay):
    """Rows from 40 on are replaced: forecasts of rows up to 40 + delay must not move by a bit."""
    y = labels(size=80)
    other = y.copy()
    other[40:] = np.where(np.isnan(other[40:]), 1.0, (other[40:] + 1) % 3)
    one, two = baseline(y, delay=delay), baseline(other, delay=delay)
    for field in ("mean", "scale", "df", "label"):
        a, b = getattr(one, field), getattr(two, field)
        if a is not None:
            np.testing.assert_array_equal(a[: 41 + delay], b[: 41 + delay])
    assert not np.array_equal(one.mean, two.mean, equal_nan=True)


def test_outputs_are_forecast_one_by_one():
    y = np.stack([numbers(1), numbers(2)], axis=1)
    both = seasonal_naive(PERIOD)(y)
    for column in range(2):
        alone = seasonal_naive(PERIOD)(y[:, column])
        np.testing.assert_array_equal(both.mean[:, column], alone.mean)
        np.testing.assert_array_equal(both.df[:, column], alone.df)


def test_the_spread_of_white_noise_is_honest():
    """4000 draws: the share inside 90 % has a standard error of 0.005; the scores approach those of the truth."""
    y = np.random.default_rng(5).normal(3.0, 2.0, size=4000)
    forecast = running_mean()(y)
    truth = Forecast(np.full(4000, 3.0), var=np.full(4000, 4.0))
    assert abs(float(coverage(0.9)(forecast, y)) - 0.9) < 0.015
    for score in (log_score, crps):
        kept = np.where(forecast.spread, y, np.nan)
        np.testing.assert_allclose(score(forecast, kept), score(truth, kept), atol=5e-3)


def test_whole_numbers_have_probabilities_that_sum_to_one():
    """A density would grow without bound as the spread shrinks, and beat every honest count forecast."""
    past = np.array([3.0, 3.0, 4.0, 3.0, 3.0, 3.0, 2.0, 3.0])
    total, places = 0.0, []
    for count in range(-40, 60):
        forecast = last_value()(np.append(past, count), whole=True)
        total += np.exp(forecast.log_prob[-1])
        places.append((forecast.below[-1], forecast.upto[-1]))
    np.testing.assert_allclose(total, 1.0, atol=1e-3)  # the tails beyond
    for (_, upto), (below, _) in itertools.pairwise(places):
        np.testing.assert_allclose(upto, below, rtol=1e-12)
    student = scipy.stats.t(7, 3.0, np.sqrt(np.mean(np.diff(past) ** 2)))
    forecast = last_value()(np.append(past, 5.0), whole=True)
    np.testing.assert_allclose(forecast.log_prob[-1], np.log(student.cdf(5.5) - student.cdf(4.5)), rtol=1e-9)


def test_a_constant_stream_is_scored_as_points_but_has_no_spread():
    y = np.full(10, 7.0)
    forecast = last_value()(y)
    assert forecast.made[1:].all()
    assert not forecast.spread.any()
    assert np.isnan(log_score(forecast, y))


def test_labels_of_zero_and_one_are_forecast_by_the_probability_of_one():
    y = np.array([1.0, 1.0, 0.0, 1.0])
    many, lone = majority_class(2)(y), majority_class()(y)
    np.testing.assert_array_equal(lone.mean, many.mean[:, 1])
    assert accuracy(lone, y) == accuracy(many, y) == pytest.approx(2 / 3)


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("baseline", [b for b, _ in NUMBERS] + [last_class(3), majority_class(3)], ids=lambda b: b.name)
def test_short_streams_and_long_delays(baseline, size):
    forecast = baseline(np.ones(size), delay=7)
    assert len(forecast.mean) == size
    assert not forecast.made.any()


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: last_value()(np.ones(3), delay=-1), r"last-value\(delay=-1\)"),
        (lambda: last_class(3)(np.ones(3), delay=-1), r"last-class\(delay=-1\)"),
        (lambda: seasonal_naive(0), r"period=0"),
        (lambda: last_class(1), r"classes=1"),
        (lambda: majority_class(3)(np.ones((3, 2))), r"\(3, 2\)"),
    ],
)
def test_bad_input_is_refused_with_a_sentence(call, says):
    with pytest.raises(ValueError, match=says):
        call()
