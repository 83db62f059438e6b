"""Levels that move by ten noises while forecasts are young: told of once, in time; what only looks like it is not."""

import numpy as np
import pytest

from filtax.runs.blocks import Block
from filtax.runs.config import Config
from filtax.runs.moves import Moves
from filtax.runs.numbers import NumberStream
from filtax.runs.plan import decide

pytestmark = pytest.mark.x64
RATE = 0.001
KINDS = ("none", "weekends", "walk", "t3 walk", "memory", "line", "t3")


def block(y, step, skip=(), first="2024-01-01"):
    when = (np.datetime64(first, step) + np.arange(len(y))).astype("M8[us]")
    kept = np.setdiff1d(np.arange(len(y)), skip)
    return Block({"y": y[kept]}, {}, when[kept], None, kept, np.zeros(len(kept)), [], None)


@pytest.fixture(scope="module")
def told():
    """What a run with all defaults tells, as (row, began); one program for each step."""
    made = {}

    def learn(y, step, cuts=(), **more):
        rows = block(y, step, **more)
        if step not in made:
            plan = decide(Config("-", "y", time="t", block=1024), rows)
            made[step] = plan, NumberStream(plan).learner
        plan, learner = made[step]
        stream, found = NumberStream(plan, learner=learner), []
        for part in np.split(np.arange(rows.rows), cuts):
            one = rows._replace(
                numbers={"y": rows.numbers["y"][part]}, time=rows.time[part], line=part, file=np.zeros(len(part))
            )
            found += [(int(part[0]) + row, kind, value) for row, kind, value in stream.learn(one)[1]]
            kept, stream = stream.state(), NumberStream(plan, learner=learner)
            stream.restore(kept)
        return [(row, row - value) for row, kind, value in found if kind == "change"]

    return learn


def cycle(seed, step, rows):
    t = np.arange(rows)
    wave = np.sin(2 * np.pi * t / (24 if step == "h" else 7))
    return 50.0 + 5.0 * wave + np.random.default_rng(seed).normal(size=3000)[:rows]


def moved(seed, step, at, size, rows):
    y = cycle(seed, step, rows)
    y[at:] += size if seed % 2 else -size
    return y


@pytest.mark.parametrize(("step", "at"), [("h", 100), ("h", 200), ("h", 250), ("D", 40)])
def test_a_level_that_moves_by_ten_noises_is_told_of_within_a_day(told, step, at):
    """Before, of hours 0 to 2 of 5 were between rows 100 and 300, and of days 1 of 4 at row 40."""
    for seed in range(3):
        [(row, began)] = told(moved(seed, step, at, 10.0, at + 40), step)
        assert row <= at + 24
        assert abs(began - at) <= 1


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("step", "at"),
    [*(("h", at) for at in (60, 100, 150, 200, 250, 300, 400, 600, 900)), *(("D", at) for at in (40, 80, 150))],
)
def test_nine_of_ten_are_told_of_once(told, step, at):
    found = [told(moved(seed, step, at, 10.0, 1500 if step == "h" else 700), step) for seed in range(20)]
    right = [len(each) == 1 and each[0][0] <= at + 24 and abs(each[0][1] - at) <= 4 for each in found]
    assert sum(right) >= 18


def series(kind, seed, rows=1500):
    rng, t = np.random.default_rng(1000 + seed), np.arange(rows)
    e, day = rng.normal(size=rows), 50.0 + 5.0 * np.sin(2 * np.pi * t / 24)
    return {
        "none": lambda: day + e,
        "weekends": lambda: day - 6.0 * ((t // 24) % 7 >= 5) + e,
        "walk": lambda: np.cumsum(e),
        "t3 walk": lambda: np.cumsum(rng.standard_t(3, rows)),
        "memory": lambda: 50.0 + np.convolve(e, 0.95 ** np.arange(300))[:rows],
        "line": lambda: day + 0.05 * t + e,
        "t3": lambda: day + rng.standard_t(3, rows),
    }[kind]()


@pytest.mark.nightly
@pytest.mark.parametrize("kind", KINDS)
def test_where_nothing_moves_hardly_anything_is_told(told, kind):
    """The steps of a walk with heavy tails are levels that jump: before there was this watch 19 were told of."""
    count = sum(len(told(series(kind, seed), "h")) for seed in range(20))
    assert count <= (22 if kind == "t3 walk" else 1)


@pytest.mark.parametrize("first", ["2024-01-01", "2024-01-03"])
def test_the_first_weekend_is_no_level_and_a_level_that_moves_with_it_is(told, first):
    """Ten noises from Saturday to Sunday, with a smaller day: before, 4 of 20 were told of on the first Saturday."""
    t = np.arange(400) + 24 * (int(first[-2:]) - 1)
    free = (t // 24) % 7 >= 5
    day = 5.0 * np.sin(2 * np.pi * t / 24)
    for seed in (1, 5):
        noise = np.random.default_rng(1000 + seed).normal(size=1500)[t[0] : t[0] + 400]
        weekly = 50.0 + day * np.where(free, 0.3, 1.0) - 10.0 * free + noise
        assert told(weekly, "h", first=first) == []
    saturday = int(np.argmax(free))
    y = 50.0 + day + noise - 10.0 * (np.arange(400) >= saturday)
    [(row, began)] = told(y, "h", first=first)
    assert began == saturday
    assert row == 168 + 24


@pytest.mark.parametrize(("gap", "size"), [(40, 10.0), (72, -10.0), (120, 10.0)])
def test_a_second_level_within_the_week_is_told_of_too(told, gap, size):
    """Further on, or back: the odds looked at a step that was told of already, and none of these was told."""
    t = np.arange(1000)
    for seed in range(2):
        y = cycle(seed, "h", 1000) + 10.0 * (t >= 700) + size * (t >= 700 + gap)
        assert [abs(began - at) <= 4 for (_, began), at in zip(told(y, "h"), (700, 700 + gap), strict=True)] == [
            True
        ] * 2


def test_rows_of_minutes_need_not_wait_for_a_day(told):
    """Thirty noises at row 500 of 1440: nothing was told of before the next day, however far a level moved."""
    t = np.arange(700)
    for seed in range(2):
        y = 50.0 + 20.0 * np.sin(2 * np.pi * t / 1440) + np.random.default_rng(seed).normal(size=700)
        assert told(y, "m") == []
        [(_, began)] = told(y + (30.0 if seed else -30.0) * (t >= 500), "m")
        assert abs(began - 500) <= 4


@pytest.mark.parametrize(("at", "size"), [(450, 10.0), (504, -10.0)])
def test_a_level_that_moves_against_a_weekend_is_told_of_once(told, at, size):
    """Up on a Friday evening, down with a Monday: compared with the day before they went back; the second came late."""
    t = np.arange(700)
    for seed in range(2):
        weekly = 50.0 + 5.0 * np.sin(2 * np.pi * t / 24) - 6.0 * ((t // 24) % 7 >= 5)
        [(row, began)] = told(weekly + np.random.default_rng(seed).normal(size=700) + size * (t >= at), "h")
        assert row <= at + 24
        assert abs(began - at) <= 4


@pytest.mark.parametrize("first", ["2024-01-04", "2024-01-06"])
def test_a_weekend_among_the_very_first_rows_is_no_level(told, first):
    """A Thursday and a Saturday: in 6 of 10 series the weekend, or its end, was told of."""
    t = np.arange(300) + 24 * (int(first[-2:]) - 1)
    for seed in range(5):
        y = 50.0 + 5.0 * np.sin(2 * np.pi * t / 24) - 6.0 * ((t // 24) % 7 >= 5)
        assert told(y + np.random.default_rng(seed).normal(size=300), "h", first=first) == []


def test_what_a_forecast_repeats_a_cycle_later_is_no_change(told):
    """A level that moved by a thousand noises was told of again a day later, and by the averages after 12 weeks."""
    for seed in range(2):
        assert [began for _, began in told(moved(seed, "h", 90, 1000.0, 300), "h")] == [90]
        assert [began for _, began in told(moved(seed, "D", 40, 1000.0, 150), "D")] == [40]


@pytest.mark.parametrize(("at", "value"), [(40, 1e5), (200, -9999.0)])
def test_a_day_of_errors_is_told_of_where_it_begins_and_ends_and_never_again(told, at, value):
    """Before, there was a third change after five weeks, and the end of the first was named six rows early."""
    for seed in range(2):
        y = cycle(seed, "h", 1000)
        y[at : at + 30] = value
        assert [began for _, began in told(y, "h")] == [at, at + 30]


def test_a_level_is_told_of_once_though_the_averages_were_still_learning(told):
    """Before, 6 of 20 were told of a second time, three weeks later."""
    for seed in (0, 3):
        assert [began for _, began in told(moved(seed, "h", 400, 10.0, 950), "h")] == [400]


def test_missing_rows_only_let_time_pass(told):
    [(row, began)] = told(moved(1, "h", 200, 10.0, 300), "h", skip=(150, 198, 205, 206))
    assert began == 200 - 2
    assert row == began + 24


def test_in_pieces_and_by_way_of_a_checkpoint_it_is_the_same(told):
    y = moved(1, "h", 200, 10.0, 500) + 30.0 * (np.arange(500) >= 400)
    whole = told(y, "h")
    assert [began for _, began in whole] == [200, 400]
    assert told(y, "h", cuts=[1, 130, 200, 201, 215, 224, 225, 300, 405]) == whole


def test_series_side_by_side_are_each_its_own():
    rng, t = np.random.default_rng(0), np.arange(260)
    y = np.stack([rng.normal(size=260) + 10.0 * (t >= at) for at in (120, 150)], axis=1).ravel()
    tail = np.where(np.isin(np.arange(520), [2 * 120, 2 * 150 + 1]), 1e-4, 0.5)
    watch = Moves(RATE, (24, 168))
    watch.make_room(2)
    slot, cell = np.arange(520) % 2, 19723 * 24 + np.arange(520) // 2  # from a Monday on
    found = sorted(watch.look(slot, cell, y, np.zeros(520), tail, []))
    assert found == [(2 * 174 + 1, "change", 24), (2 * 192, "change", 72)]  # a Saturday waits for the week


def test_one_alarm_is_enough_and_says_when_it_began():
    y, at = np.random.default_rng(0).normal(size=140) + 10.0 * (np.arange(140) >= 100), np.arange(140)
    tail, zero = np.where(at == 100, 1e-4, 0.5), np.zeros(140, int)
    assert Moves(RATE, ()).look(zero, at, y, 0.0 * y, tail, []) == [(124, "change", 24)]
    assert Moves(RATE, ()).look(zero, at, y, 0.0 * y, tail, [(110, 10)]) == []
    assert Moves(RATE, ()).look(zero, at, y, 0.0 * y, tail, [(110, 5)]) == [(110, "change", 10)]
    back = np.where(at >= 108, y - 10.0, y)  # a few that were off are no level
    assert Moves(RATE, ()).look(zero, at, back, 0.0 * y, tail, []) == []
    assert Moves(RATE, ()).look(zero, at, 0.0 * y, 0.0 * y, tail, []) == []
