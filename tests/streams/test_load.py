"""The generated load: the same for the same key, and with the faults that it promises, where it says they are."""

import jax
import numpy as np
import pytest

from filtax.streams import hourly_load

FIELDS = ("time", "X", "y", "truth", "outliers")


@pytest.mark.parametrize("key", [5, jax.random.key(5)])
def test_equal_keys_give_equal_streams(key):
    one, two = hourly_load(600, key=key), hourly_load(600, key=key)
    for field in FIELDS:
        np.testing.assert_array_equal(getattr(one, field), getattr(two, field))


def test_other_keys_give_other_streams():
    keys = (0, 1, jax.random.key(0), jax.random.key(1))
    loads = [hourly_load(400, key=key).truth for key in keys]
    assert all(np.abs(a - b).max() > 0.01 for i, a in enumerate(loads) for b in loads[:i])


def test_raw_and_typed_keys_are_the_same_key():
    one, two = hourly_load(400, key=jax.random.key(7)), hourly_load(400, key=jax.random.PRNGKey(7))
    np.testing.assert_array_equal(one.y, two.y)


def test_a_longer_stream_changes_nothing_global():
    np.random.seed(0)  # noqa: NPY002 - the point is that the generator leaves it alone
    want = np.random.random()  # noqa: NPY002
    np.random.seed(0)  # noqa: NPY002
    hourly_load(400, key=0)
    assert np.random.random() == want  # noqa: NPY002


def test_time_runs_by_the_hour_from_a_monday():
    time = hourly_load(400, key=0).time
    assert time.dtype == "datetime64[h]"
    assert (np.diff(time) == np.timedelta64(1, "h")).all()
    assert time[0].astype("datetime64[D]").astype(int) % 7 == 4  # day 0 of the epoch was a Thursday


def test_the_faults_are_where_the_stream_says():
    stream = hourly_load(4000, key=2)
    error = np.abs(stream.y - stream.truth)
    assert stream.outliers.sum() == 8  # 0.2 %
    assert error[stream.outliers].min() > 0.4
    assert error[~stream.outliers & ~stream.missing].max() < 0.05
    assert not stream.missing[stream.outliers].any()
    assert not (stream.missing | stream.outliers)[:168].any()
    assert np.isfinite(stream.truth).all()
    assert np.isfinite(stream.X).all()


def test_what_was_not_written_is_not_a_wrong_reading():
    stream = hourly_load(400, key=0, missing=0.5, outliers=0.5)
    assert stream.outliers.sum() > 80
    assert not stream.missing[stream.outliers].any()


def test_the_meter_is_silent_for_thirty_hours_and_now_and_then():
    """Binomial(3800, 0.01): outside 20 to 60 with odds below 1e-3."""
    stream = hourly_load(4000, key=2)
    assert stream.missing[1600:1630].all()
    assert 20 <= stream.missing.sum() - 30 <= 60


def test_the_level_shifts_by_what_was_asked():
    """Against the same key without a shift: the difference is the step itself."""
    step = hourly_load(1000, key=4, shift=0.3).truth - hourly_load(1000, key=4, shift=0.0).truth
    np.testing.assert_allclose(step, np.where(np.arange(1000) < 600, 0.0, 0.3), atol=1e-12)
    assert hourly_load(1000, key=4, shift=0.3).changes == (600,)
    assert hourly_load(1000, key=4, shift=0.0).changes == ()


def test_there_is_a_daily_and_a_weekly_cycle():
    truth = hourly_load(26 * 168, key=0, shift=0.0).truth
    power = np.abs(np.fft.rfft(truth - truth.mean())) ** 2
    weeks = len(truth) // 168
    by_period = {hours: power[len(truth) // hours] for hours in (12, 24, 168)}
    background = np.median(power[2 * weeks :])
    assert all(p > 100 * background for p in by_period.values())
    assert max(by_period, key=by_period.get) == 24


def test_weekends_are_quieter():
    """Weather has a standard deviation of 0.02 and lasts ten hours; a dip of 0.09 over ten weeks is far outside it."""
    truth = hourly_load(10 * 168, key=1, shift=0.0).truth.reshape(10, 7, 24).mean((0, 2))
    assert truth[5:].max() < truth[:5].min() - 0.04


def test_a_stream_can_be_free_of_faults():
    stream = hourly_load(600, key=0, missing=0.0, outliers=0.0)
    assert not stream.missing.any()
    assert not stream.outliers.any()


@pytest.mark.parametrize(
    ("options", "words"),
    [({"hours": 100}, "two weeks"), ({"missing": 0.9}, "missing"), ({"outliers": -0.1}, "outliers")],
)
def test_bad_arguments_are_refused_in_a_sentence(options, words):
    with pytest.raises(ValueError, match=words):
        hourly_load(**{"hours": 400, "key": 0, **options})
