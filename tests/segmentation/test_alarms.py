"""Alarms: bounded memory, in pieces as in one, never ahead of time, and as rare as they were asked to be."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import filtax as fx
from filtax.segmentation import Settings, calibrate, detect, segment, watch
from filtax.segmentation._alarms import causal_scale

pytestmark = pytest.mark.x64
rng = np.random.default_rng(2)
JUMPS = np.r_[rng.normal(size=70), rng.normal(5.0, 1.0, size=60), rng.normal(-2.0, 1.0, size=70)]
rl = fx.method("NIG+RL[50]-PR(hazard=0.01)", model=fx.models.since_change(1.0))
START = dict(mean=jnp.zeros(2), cov=30.0)


@pytest.mark.nightly
def test_a_watch_in_pieces_is_the_watch_of_the_whole():
    _, whole = watch(rl, rl.init(**START), None, JUMPS)
    assert np.flatnonzero(whole.alarm).size == 2
    assert whole.starts is None  # T numbers are kept, not T C
    np.testing.assert_allclose(whole.start[whole.alarm], [70, 130], atol=1)
    state, since, pieces = rl.init(**START), 0, []
    for rows in np.split(JUMPS, [31, 100]):
        state, seen = watch(rl, state, None, rows, since=since)
        since = int(seen.start[seen.alarm][-1]) if seen.alarm.any() else since
        pieces.append(seen)
    for name in ("alarm", "start", "log_odds"):
        np.testing.assert_allclose(np.concatenate([getattr(p, name) for p in pieces]), getattr(whole, name))


def test_odds_are_those_of_the_posterior():
    _, seen = watch(rl, rl.init(**START), None, JUMPS[:90], posterior=True, threshold=1.0)
    assert not seen.alarm.any()  # certainty is never reached
    new = np.exp(np.where(seen.starts[-1] > 0, seen.log_weight[-1], -np.inf)).sum()
    np.testing.assert_allclose(1.0 / (1.0 + np.exp(-seen.log_odds[-1])), new, rtol=1e-9)


def test_no_run_length_is_refused():
    kf = fx.method("LG+C-Static", model=fx.models.linear(noise=1.0))
    with pytest.raises(ValueError, match=r"watch: LG\+C-Static has no run lengths; use RL\[K\]"):
        watch(kf, kf.init(mean=jnp.zeros(1), cov=1.0), np.ones((3, 1)), np.ones(3))


@pytest.mark.nightly
def test_alarms_of_a_part_are_the_first_of_the_whole():
    t = np.arange(260)
    cyclic = 3.0 * np.sin(2 * np.pi * t / 24) + 0.5 * rng.normal(size=260) + np.where(t < 200, 0.0, 12.0)
    for y in (JUMPS, cyclic):
        whole = detect(y)
        assert whole.times
        for length in (20, 50, 75, 101, 150, 190):
            part = detect(y[:length])
            given = [time for time in whole.times if time < length]
            assert part.times == given
            assert part.starts == whole.starts[: len(given)]


def test_detect_names_starts_and_waits():
    alarms = detect(JUMPS)
    np.testing.assert_allclose(alarms.starts, [70, 130], atol=1)
    assert all(4 <= delay <= 10 for delay in alarms.delays)
    gaps = JUMPS.copy()
    gaps[::7] = np.nan
    np.testing.assert_allclose(detect(gaps).starts, [70, 130], atol=2)


def test_units_do_not_matter():
    assert detect(1e6 + 1e3 * JUMPS).starts == detect(JUMPS).starts
    assert segment(1e6 + 1e3 * JUMPS).changes == segment(JUMPS).changes


def test_scale_knows_the_past_only():
    y = JUMPS[:, None]
    z, centre, variance = causal_scale(y, 30)
    np.testing.assert_allclose(centre[150], z[:150].mean(axis=0))
    np.testing.assert_allclose(variance[150], z[:150].var(axis=0)[0])
    np.testing.assert_allclose(centre[3], z[:30].mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(z[:30].std(), 1.0)


def test_a_cycle_is_no_change():
    t = np.arange(240)
    y = 3.0 * np.sin(2 * np.pi * t / 24) + np.cos(4 * np.pi * t / 24) + 0.3 * rng.normal(size=240)
    found = segment(y)
    assert (found.changes, found.best, found.block) == ([], [], 4)
    assert found.period == pytest.approx(24.0, abs=0.5)
    assert segment(y, period=None).changes  # what it would be without


@pytest.mark.nightly
def test_false_alarms_are_as_rare_as_chosen():
    _false_alarms(rate=0.1, runs=400)


@pytest.mark.nightly
def test_false_alarms_are_about_as_rare_as_chosen():
    _false_alarms(rate=0.2, runs=100)


def _false_alarms(rate, runs):
    """Binomial bounds of four standard errors: N streams set the threshold, N fresh ones are counted."""
    plan = Settings(noise=0.5, keep=40, hazard=0.05)
    level = calibrate(rate, 64, key=jax.random.key(0), runs=runs, settings=plan)
    fresh = np.random.default_rng(9).normal(size=(runs, 64))
    count = sum(bool(detect(y, settings=plan, threshold=level, period=None).times) for y in fresh)
    assert abs(count / runs - rate) < 4.0 * np.sqrt(2.0 * rate * (1.0 - rate) / runs)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: calibrate(0.001, 64, key=jax.random.key(0), runs=100), r"simulate more runs"),
        (lambda: Settings(hazard=2.0), r"Settings\(hazard=\.\.\.\) must lie in \[0, 1\]"),
        (lambda: segment([np.nan, np.nan]), r"segment: y has shape \(2, 1\); give at least two readings"),
        (lambda: detect(np.zeros((2, 2, 2))), r"detect: y has shape \(2, 2, 2\)"),
        (lambda: watch(rl, rl.init(**START), None, JUMPS, threshold=1.5), r"watch\(threshold=\.\.\.\) must lie in"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("at", [10, 100])
@pytest.mark.parametrize("reading", [np.inf, 1e30, -1.7e308])
def test_what_is_no_reading_counts_as_missing(reading, at):
    """Within the first readings, which give the unit, and after them; nothing overflows on the way."""
    gap, told = JUMPS.copy(), JUMPS.copy()
    gap[at], told[at] = np.nan, reading
    assert segment(told, period=None).changes == segment(gap, period=None).changes == [70, 130]
    want, got = detect(gap, period=None), detect(told, period=None)
    assert (got.times, got.starts) == (want.times, want.starts)
    assert len(got.starts) == 2


def test_a_cycle_that_shows_while_it_is_waited_for_gives_no_alarm():
    """Two days of hours are enough where they are alike; the one change is reported once, and nothing else."""
    noise, t = np.random.default_rng(4).normal(size=900), np.arange(900)
    y = 10.0 * np.sin(2 * np.pi * t / 24) + noise + np.where(t < 600, 0.0, 40.0)
    alarms = detect(y, warmup=100)
    assert alarms.starts == [600]
    assert alarms.times[0] < 630
    assert alarms.period == pytest.approx(24.0, abs=0.01)
    assert detect(y[:300], warmup=100).times == []
    assert all(time < 48 for time in detect(y[:300]).times)  # till two cycles have come, a turn looks like a change
