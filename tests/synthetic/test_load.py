"""The synthetic load: with the faults that it promises where it says they are, and features that never look ahead."""

import numpy as np
import pytest

from filtax.synthetic import hourly_load


def test_time_runs_by_the_hour_from_a_monday():
    time = hourly_load(400, key=0).time
    assert time.dtype == "datetime64[h]"
    assert (np.diff(time) == np.timedelta64(1, "h")).all()
    assert time[0].astype("datetime64[D]").astype(int) % 7 == 4  # day 0 of the epoch was a Thursday


def test_the_faults_are_where_the_stream_says():
    """Binomial(3800, 0.01): outside 20 to 60 with odds below 1e-3."""
    stream = hourly_load(4000, key=2)
    error = np.abs(stream.y - stream.truth)
    assert stream.outliers.sum() == 8  # 0.2 %
    assert error[stream.outliers].min() > 0.4
    assert error[~stream.outliers & ~stream.missing].max() < 0.05
    assert not (stream.missing | stream.outliers)[:168].any()
    assert stream.missing[1600:1630].all()
    assert 20 <= stream.missing.sum() - 30 <= 60
    assert np.isfinite(stream.truth).all()
    many = hourly_load(400, key=0, missing=0.5, outliers=0.5)
    assert many.outliers.sum() > 80
    assert not many.missing[many.outliers].any()
    clean = hourly_load(600, key=0, missing=0.0, outliers=0.0)
    assert not (clean.missing | clean.outliers).any()


def test_the_level_shifts_by_what_was_asked():
    """Against the same key without a shift: the difference is the step itself."""
    shifted, level = (hourly_load(1000, key=4, shift=shift) for shift in (0.3, 0.0))
    np.testing.assert_allclose(shifted.truth - level.truth, np.where(np.arange(1000) < 600, 0.0, 0.3), atol=1e-12)
    assert (shifted.changes, level.changes) == ((600,), ())


def test_there_are_cycles_and_weekends_are_lower():
    """Weather has a standard deviation of 0.02 and lasts ten hours; a dip of 0.09 over ten weeks is far outside it."""
    truth = hourly_load(26 * 168, key=0, shift=0.0).truth
    power = np.abs(np.fft.rfft(truth - truth.mean())) ** 2
    by_period = {hours: power[len(truth) // hours] for hours in (12, 24, 168)}
    assert all(p > 100 * np.median(power[52:]) for p in by_period.values())
    assert max(by_period, key=by_period.get) == 24
    days = truth.reshape(26, 7, 24).mean((0, 2))
    assert days[5:].max() < days[:5].min() - 0.04


def test_features_are_the_calendar_and_past_readings():
    """Lags by hand; where the past is absurd or missing, a reading of the same hour of a day before stands in."""
    stream = hourly_load(2000, key=3, lags=(24, 3), outliers=0.01)
    hour = np.arange(2000)  # from a Monday; the epoch began on a Thursday
    columns = dict(zip(stream.names, stream.X.T, strict=True))
    np.testing.assert_allclose(columns["day cos 2"], np.cos(4 * np.pi * hour / 24), atol=1e-9)
    np.testing.assert_allclose(columns["week sin 1"], np.sin(2 * np.pi * (hour + 4 * 24) / 168), atol=1e-9)
    for lag in (3, 24):
        past, had = stream.y[:-lag], columns[f"lag {lag}"][lag:]
        plain = np.isfinite(past) & ~stream.outliers[:-lag]
        assert np.mean(had[plain] == past[plain]) > 0.97
        replaced = np.flatnonzero(~plain | (had != past))
        assert 60 < len(replaced) < 150
        for t in replaced:
            assert had[t] in stream.y[t % 24 : t : 24]
    assert np.isfinite(stream.X).all()
    first = hourly_load(400, key=3, lags=(24, 3), missing=0.0, outliers=0.0, shift=0.0)
    assert (first.X[1:24, -2] == first.X[1:24, -1]).all()  # too young for the longer lag


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"hours": 100}, "two weeks"),
        ({"missing": 0.9}, "missing"),
        ({"outliers": -0.1}, "outliers"),
        ({"lags": (0,)}, "look ahead"),
    ],
)
def test_bad_arguments_are_refused_in_a_sentence(options, words):
    with pytest.raises(ValueError, match=words):
        hourly_load(**{"hours": 400, "key": 0, **options})
