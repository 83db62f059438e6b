"""Timed features: nothing looks ahead, chunks do not matter, and the numbers are those of plain indexing."""

import numpy as np
import pytest

from filtax.streams import Season, TimedFeatures
from filtax.streams.grid import Grid

HOURS = np.datetime64("2024-01-01T00", "h") + np.arange(24 * 7 * 5)
HOURLY = Season.named("hourly")


def load(seed: int = 0) -> np.ndarray:
    t = np.arange(len(HOURS))
    rng = np.random.default_rng(seed)
    return 500.0 + 50.0 * np.cos(2 * np.pi * t / 24) + 20.0 * (t // 24 % 7 >= 5) + rng.normal(size=len(t))


def made(y, *, maker=None, time=HOURS):
    maker = maker or TimedFeatures(HOURLY)
    return maker.make(maker.init(), time, y)[1]


CYCLES = {
    **{"hourly": (24, 168), "daily": (7,), "weekly": (52,), "monthly": (12,), "quarterly": (4,), "yearly": ()},
    **{"minutely": (1440, 10080), "secondly": (), "quarter-hourly": (96, 672)},
}


@pytest.mark.parametrize(("name", "cycles"), CYCLES.items())
def test_the_step_is_inferred_from_times_with_gaps(name, cycles):
    unit = {"monthly": "M", "quarterly": "M", "yearly": "Y"}.get(name, "s")
    count = {"quarterly": 3}.get(name, 1) if unit != "s" else int(Season.named(name).step)
    time = (np.datetime64("2020-01-01", unit) + count * np.delete(np.arange(40), [3, 17, 18])).astype("datetime64[us]")
    season = Season.of(time)
    assert (season.name, season.cycles) == (name, cycles)
    np.testing.assert_allclose(
        season.elapsed(time), np.diff(np.delete(np.arange(40), [3, 17, 18]), prepend=-1), rtol=0.02
    )


def test_other_steps_have_no_word():
    assert Season.of(np.datetime64("2024-01-01", "s") + 600 * np.arange(9)).name == "every 600 s"
    assert Season.of(np.datetime64("2024-01-01", "s") + 600 * np.arange(9)).cycles == (144, 1008)
    assert Season.of(HOURS[::12]).cycles == (2, 14)  # two readings are the fewest that make a cycle
    assert Season.of(np.array([0.0, 0.5, 1.0])) == Season(0.5, "numbered")
    assert Season.of(HOURS[:1]).name == "single"
    with pytest.raises(ValueError, match="must be one of secondly"):
        Season.named("fortnightly")


@pytest.mark.parametrize("H", [1, 3, 24, 30, 168])
def test_rows_are_those_of_plain_indexing(H):
    """Against slices of the series itself, once the longest cycle is known."""
    y = load()
    maker = TimedFeatures(HOURLY, horizon=H)
    rows = made(y, maker=maker)
    t = np.arange(600, len(y))
    season = 168 * -(-H // 168)
    change = y[t - season] - y[t - season - H] if season > H else 0.0 * y[t]
    if season == H:  # H is a week: a day ago is not known, eight days ago are
        first = 24 * -(-H // 24)
        change = y[t - first] - y[t - first - H] if first > H else change
    np.testing.assert_allclose(rows.base[t], y[t - H] + change, rtol=1e-12)
    names = list(maker.names)
    for end, length in maker.changes:
        column = rows.X[:, names.index(f"change over {length} until {end} ago")]
        old = np.arange(max(end + length, 2 * H), len(y))  # before that there is no error to make a unit of
        np.testing.assert_allclose(column[old] * rows.scale[old], y[old - end] - y[old - end - length], atol=1e-9)
        assert end >= H
    np.testing.assert_allclose(rows.base + rows.scale * rows.target, np.where(np.isnan(rows.target), np.nan, y))
    np.testing.assert_allclose(rows.restore(rows.target), np.where(np.isnan(rows.target), np.nan, y))


@pytest.mark.parametrize("H", [1, 5, 24])
def test_no_row_sees_what_is_not_known_yet(H):
    y, other = load(), load()
    other[400:] = 1e6 * np.random.default_rng(1).normal(size=len(y) - 400)
    maker = TimedFeatures(HOURLY, horizon=H)
    one, two = made(y, maker=maker), made(other, maker=maker)
    seen = 400 + H  # the first row that may know of reading 400
    for name in ("X", "base", "scale"):
        np.testing.assert_array_equal(getattr(one, name)[:seen], getattr(two, name)[:seen])
    assert one.base[seen] == pytest.approx(y[seen - H] + y[seen - 168] - y[seen - 168 - H])


@pytest.mark.parametrize("H", [1, 24])
def test_chunks_do_not_matter_and_the_state_is_arrays(H):
    y = load()
    y[[50, 300, 301]] = np.nan
    y[500] = 0.0
    keep = np.delete(np.arange(len(y)), [200, 201, 333])
    time, y = HOURS[keep], y[keep]
    maker = TimedFeatures(HOURLY, horizon=H)
    whole = made(y, maker=maker, time=time)
    state, parts = maker.init(), []
    for cut in np.array_split(np.arange(len(y)), 61):
        state, part = maker.make(state, time[cut], y[cut])
        parts.append(part)
        state = {name: np.array(value.tolist(), value.dtype) for name, value in state.items()}  # through a checkpoint
    for name in whole._fields:
        np.testing.assert_array_equal(np.concatenate([getattr(part, name) for part in parts]), getattr(whole, name))
    _, nothing = maker.make(state, time[:0], y[:0])
    assert nothing.X.shape == (0, len(maker.names))


def test_level_and_unit_do_not_matter():
    one, two = made(load()), made(1000.0 * load() - 7e4)
    np.testing.assert_allclose(one.X, two.X, atol=1e-6)
    np.testing.assert_allclose(one.target, two.target, atol=1e-6)


def test_a_gap_in_time_shifts_no_lag():
    """Rows that never came are steps all the same: yesterday stays yesterday."""
    y = load()
    keep = np.delete(np.arange(len(y)), np.arange(400, 410))
    whole, holed = made(y), made(y[keep], time=HOURS[keep])
    rows = [t for t in range(411, len(y)) if not {t - 168, t - 169} & set(range(400, 410))]
    places = np.searchsorted(keep, rows)
    np.testing.assert_allclose(holed.base[places], whole.base[rows])
    np.testing.assert_allclose(holed.base[keep == 410], y[409 - 168] + (y[399] - y[399 - 168]) + y[242] - y[241])


@pytest.mark.parametrize("wrong", [0.0, 1e9, -1e9, np.inf])
def test_one_absurd_reading_is_not_seen_by_the_rows_behind_it(wrong):
    y, gap = load(), load()
    y[500], gap[500] = wrong, np.nan
    one, two = made(y), made(gap)
    np.testing.assert_array_equal(one.X, two.X)
    np.testing.assert_array_equal(one.base, two.base)
    assert np.isfinite(one.X).all()


@pytest.mark.parametrize("at", [6, 9, 12, 13])
def test_a_gross_error_among_the_first_readings_is_absurd(at):
    y, gap = load(), load()
    y[at], gap[at] = 1e9, np.nan
    one, two = made(y), made(gap)
    assert np.flatnonzero(one.absurd).tolist() == [at]
    np.testing.assert_array_equal(one.X, two.X)
    np.testing.assert_array_equal(one.scale, two.scale)


@pytest.mark.parametrize("at", [0, 2, 4, 5])
@pytest.mark.parametrize("H", [1, 3])
def test_before_anything_can_be_absurd_the_scale_is_at_most_a_few_of_the_latest_errors(at, H):
    y = np.random.default_rng(0).normal(size=60)
    clean = y.copy()
    y[at] = 1e9
    maker, time = TimedFeatures(Season(1.0, "numbered"), H), np.arange(60.0)
    state, first = maker.make(maker.init(), time[:8], y[:8])
    _, rest = maker.make(state, time[8:], y[8:])
    whole = made(y, maker=maker, time=time)
    np.testing.assert_array_equal(np.concatenate([first.scale, rest.scale]), whole.scale)
    assert not whole.absurd.any()
    assert whole.scale[40] < 6.0 * made(clean, maker=maker, time=time).scale[40]


def test_a_holiday_is_not_absurd_and_has_no_echo():
    """A smooth day unlike the week before is kept, and so is the same day a week later."""
    y = 500.0 + 50.0 * np.cos(2 * np.pi * np.arange(len(HOURS)) / 24) + 0.01 * load(1) % 0.1
    y[24 * 14 : 24 * 15] = np.linspace(y[24 * 14 - 1], y[24 * 15], 24)
    grid = Grid(1, (24, 168), 400)
    _, cells = grid.extend(grid.init(), np.arange(len(y)), y)
    np.testing.assert_array_equal(cells.value(1)[1:], y[:-1])


def test_the_scale_is_the_mean_error_of_late_and_hardly_moved_by_one_reading():
    """Without cycles the simplest forecast is the last value; its errors count alike, then the latest 200, capped."""
    y = np.random.default_rng(0).normal(size=2000).cumsum()
    y[1000:] += 50.0
    maker = TimedFeatures(Season(1.0, "numbered"))
    rows = made(y, maker=maker, time=np.arange(2000.0))
    errors = np.abs(np.diff(y))
    np.testing.assert_allclose(rows.scale[100], errors[:99].mean(), rtol=0.05)
    late = 0.995 ** np.arange(999)[::-1]
    np.testing.assert_allclose(rows.scale[1000], late @ errors[:999] / late.sum(), rtol=0.02)
    assert rows.scale[1005] < 1.1 * rows.scale[999]


@pytest.mark.parametrize("minutes", [0, 12, 29, 31])
def test_clocks_that_are_a_little_off_fall_on_the_same_steps(minutes):
    late = np.random.default_rng(0).integers(-600, 600, size=len(HOURS)) * (np.arange(len(HOURS)) > 0)
    time = HOURS.astype("datetime64[s]") + 60 * minutes + late
    np.testing.assert_array_equal(made(load(), time=time).base, made(load()).base)


@pytest.mark.parametrize(("H", "late"), [(1, 4), (2, 1)])
def test_a_level_that_moved_is_believed_when_more_readings_say_so_than_may_be_errors(H, late):
    y = load()
    y[500:] += 1000.0
    rows = made(y, maker=TimedFeatures(Season.named("hourly"), H))
    assert abs(rows.base[500 + late] - y[500 + late]) > 900.0
    assert abs(rows.base[500 + late + H] - y[500 + late + H]) < 70.0


def test_the_first_rows_have_no_unit_and_are_not_learned_from():
    rows = made(load())
    assert np.isfinite(rows.X).all()
    assert np.isnan(rows.restore(0.0)).tolist() == [True, True] + [False] * (len(HOURS) - 2)
    assert np.isnan(rows.target[:12]).all()
    assert np.isfinite(rows.target[14:]).all()
    constant = made(np.full(len(HOURS), 3.0))
    assert np.isfinite(constant.X).all()
    np.testing.assert_array_equal(constant.base[1:], 3.0)


def test_the_calendar():
    maker = TimedFeatures(HOURLY, daily=1, weekly=1)
    rows = made(load(), maker=maker)
    names = list(maker.names)
    noon = np.flatnonzero(HOURS.astype(str) == "2024-01-10T12")[0]
    assert rows.X[noon, names.index("day cos 1")] == pytest.approx(-1.0)
    monday = np.flatnonzero(HOURS.astype(str) == "2024-01-15T00")[0]
    assert rows.X[monday, names.index("week cos 1")] == pytest.approx(1.0)
    assert not [name for name in TimedFeatures(Season.named("daily")).names if name.startswith("day")]
    assert not [name for name in TimedFeatures(Season(1.0, "numbered")).names if "cos" in name]


@pytest.mark.parametrize("horizon", [0, -1, True])
def test_a_horizon_is_a_whole_number(horizon):
    with pytest.raises(ValueError, match="horizon"):
        TimedFeatures(HOURLY, horizon=horizon)


def test_elapsed_steps_go_on_from_the_row_before():
    np.testing.assert_allclose(HOURLY.elapsed(HOURS[5:7], HOURS[2]), [3.0, 1.0])
    np.testing.assert_allclose(Season(0.5, "numbered").elapsed(np.array([2.0, 3.0]), 1.0), [2.0, 2.0])
    months = np.array(["2024-02-29", "2024-03-31", "2024-06-30"], "datetime64[D]")
    np.testing.assert_allclose(Season.named("monthly").elapsed(months, np.datetime64("2024-01-31")), [1.0, 1.0, 3.0])
    assert HOURLY.elapsed(HOURS[:0]).shape == (0,)
