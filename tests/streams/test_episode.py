"""Absurd readings in a row: left out like missing ones, believed as a level, or forgotten when all is as before."""

import numpy as np
import pytest

from filtax.streams import Season, TimedFeatures
from filtax.streams.episode import LASTS

HOURS = np.datetime64("2024-01-01T00") + np.arange(1200)
T = np.arange(1200)


def load(seed=0):
    return 50.0 + 5.0 * np.sin(2 * np.pi * T / 24) + np.random.default_rng(seed).normal(size=1200)


def made(y, cuts=(), **kwargs):
    """All rows, by way of a state where they are cut."""
    maker, parts = TimedFeatures(Season.named("hourly"), **kwargs), []
    state = maker.init()
    for rows in np.split(T[: len(y)], cuts):
        state, part = maker.make(state, HOURS[rows], y[rows])
        parts.append(part)
    return state, type(parts[0])(*(np.concatenate(each) for each in zip(*parts, strict=True)))


def agree(one, two, rows=slice(None)):
    for name in ("X", "base", "scale"):
        np.testing.assert_array_equal(getattr(one, name)[rows], getattr(two, name)[rows], err_msg=name)


@pytest.mark.parametrize(
    "values", [[9999.0] * 2, [-9999.0] * 3, [1e6, -1e6, 3e5, 1e6], [9999.0, np.nan, np.inf, 9999.0]]
)
@pytest.mark.parametrize("at", [70, 700])
def test_up_to_four_are_as_if_they_had_been_blank(at, values):
    """The oracle: the same series with blanks in their place."""
    wrong, blank = load(), load()
    wrong[at : at + len(values)], blank[at : at + len(values)] = values, np.nan
    agree(made(wrong)[1], made(blank)[1])
    odd = made(wrong)[1].absurd
    ranks = np.cumsum(~np.isnan(values)) * ~np.isnan(values)
    assert odd[at : at + len(values)].tolist() == ranks.tolist()
    assert not odd[at + len(values) :].any()


def test_a_fifth_shows_a_level_and_all_of_them_are_learned():
    y = load()
    y[700:] += 1000.0
    _, rows = made(y)
    assert rows.absurd[699:706].tolist() == [0, 1, 2, 3, 4, 5, 0]
    np.testing.assert_array_equal(rows.X[705, 1:5] * rows.scale[705], np.diff(y)[704 - np.arange(1, 5)])
    assert np.abs(rows.base - y)[705:868].max() < 10.0  # until a week ago is when it jumped


@pytest.mark.parametrize("length", [5, 30, LASTS - 20])
@pytest.mark.parametrize("kind", ["still", "wild"])
def test_what_comes_back_is_forgotten(kind, length):
    """Behind the first good reading a run is as if there had been blanks."""
    wrong, blank = load(), load()
    noise = np.random.default_rng(1).normal(size=length) * (1e5 if kind == "wild" else 0.0)
    wrong[700 : 700 + length], blank[700 : 700 + length] = 1e6 + noise, np.nan
    (kept, one), (other, two) = made(wrong), made(blank)
    agree(one, two, slice(701 + length, None))
    assert one.absurd[700 + length] == 2.0  # the first good one is not learned from: it was expected elsewhere
    for name in ("track", "near"):
        np.testing.assert_array_equal(kept[name], other[name])


def test_what_is_there_for_longer_than_the_scale_remembers_is_not():
    y = load()
    y[700 : 702 + LASTS] += 1e6
    _, rows = made(y)
    assert rows.absurd[702 + LASTS] == 1.0
    assert np.abs(rows.X[702 + LASTS + 10 : 702 + LASTS + 30]).max() > 50.0  # yesterday it was there


def test_what_comes_and_goes_is_a_pattern_and_no_error():
    """Machines that run from eight to eighteen, in a series that is quiet otherwise: from the third day on expected.

    Before, the first reading of each day was left out, and so it was never expected. The first day is forgotten.
    """
    y = 10.0 + 8.0 * ((T % 24 >= 8) & (T % 24 < 18)) + 0.05 * np.random.default_rng(0).normal(size=1200)
    _, rows = made(y)
    assert (60 + np.flatnonzero(np.abs(rows.base - y)[60:] > 1.0)).tolist() == [8 + 168, 18 + 168]


def test_where_a_level_has_moved_of_late_the_second_reading_is_believed():
    y = load() + 1000.0 * (T >= 700) + 1000.0 * (T >= 800)
    _, rows = made(y)
    assert rows.absurd[799:803].tolist() == [0, 2, 3, 0]
    assert rows.absurd[705] == 0.0


def test_in_pieces_it_is_the_same():
    y = load()
    y[100:103], y[300:340], y[600:], y[800] = 9999.0, 1e6, y[600:] + 500.0, -1e9
    whole = made(y)
    cut = made(y, [1, 101, 102, 103, 104, 301, 304, 305, 306, 320, 339, 340, 341, 601, 604, 605, 606, 800, 801])
    for name in whole[0]:
        np.testing.assert_array_equal(whole[0][name], cut[0][name], err_msg=name)
    agree(whole[1], cut[1])
    np.testing.assert_array_equal(whole[1].absurd, cut[1].absurd)


def test_no_row_sees_what_came_behind_it():
    y = load()
    y[300:340], y[600:] = 1e6, y[600:] + 500.0
    _, whole = made(y)
    for end in (302, 304, 305, 320, 340, 341, 603, 605, 606):
        _, part = made(y[:end])
        for name in ("X", "base", "scale", "absurd"):
            np.testing.assert_array_equal(getattr(part, name), getattr(whole, name)[:end], err_msg=name)


def test_behind_what_came_back_four_are_errors_as_before():
    wrong, blank = load(), load()
    wrong[600:630], blank[600:630], wrong[700:704], blank[700:704] = 1e6, np.nan, 9999.0, np.nan
    agree(made(wrong)[1], made(blank)[1], slice(631, None))


@pytest.mark.parametrize("end", [800, 1090, 1150])
def test_behind_a_long_gap_it_goes_on_the_same_in_pieces(end):
    y = load()
    y[650:652], y[652:end], y[end : end + 10] = 1e6, np.nan, 1e6
    whole, cut = made(y), made(y, [651, end - 1, end, end + 2, end + 3])
    assert np.isfinite(whole[1].X).all()
    agree(whole[1], cut[1])
    np.testing.assert_array_equal(whole[0]["track"], cut[0]["track"])
