"""A gross error among the first rows: it is told of once a scale is known, and neither scale nor lags keep it."""

import numpy as np
import pytest

from filtax.runs.blocks import Block
from filtax.runs.config import Config
from filtax.runs.numbers import NumberStream
from filtax.runs.plan import decide

pytestmark = pytest.mark.x64
ROWS = 120
T = np.arange(ROWS)
HOURS = np.datetime64("2024-01-01T00", "us") + 3_600_000_000 * T
METHOD = "WoLF-MD(c=4)+NIG+C-Static"


def block(y, rows=slice(None), *, timed):
    y = y[rows]
    return Block({"y": y}, {}, HOURS[rows] if timed else None, None, T[rows], np.zeros(len(y)), [], None)


@pytest.fixture(scope="module")
def learn():
    """What is said and found in a series, by one program for all."""
    plans = {
        timed: decide(Config("-", "y", time=time, method=METHOD, block=128), block(np.sin(T), timed=timed))
        for timed, time in ((True, "when"), (False, None))
    }
    learners = {timed: NumberStream(plan).learner for timed, plan in plans.items()}

    def learn(y, *, timed, cut=ROWS):
        stream = NumberStream(plans[timed], learner=learners[timed])
        parts = [
            stream.learn(block(y, rows, timed=timed)) for rows in (slice(0, cut), slice(cut, ROWS)) if y[rows].size
        ]
        width = np.concatenate([said["upper"] - said["lower"] for said, _ in parts])
        return width, [(row + i * cut, kind) for i, (_, found) in enumerate(parts) for row, kind, _ in found]

    return learn


def series(seed, noise="normal"):
    rng = np.random.default_rng(seed)
    drawn = {"normal": rng.normal, "t3": lambda size: rng.standard_t(3, size), "lognormal": rng.lognormal}[noise]
    return 5.0 * np.sin(2 * np.pi * T / 24) + drawn(size=ROWS)


@pytest.mark.parametrize("at", [6, 8, 12, 40])
@pytest.mark.parametrize("timed", [True, False])
def test_a_gross_error_among_the_first_rows_is_told_of(learn, timed, at):
    y = series(0)
    y[at] += 1e4
    told = [] if at < 8 and not timed else [(at, "distrusted")]  # without features the first units are those of 8 rows
    assert learn(y, timed=timed)[1] == told
    assert learn(y, timed=timed, cut=at + 1)[1] == told


@pytest.mark.parametrize("at", [0, 1, 3, 5, 6, 7, 12])
@pytest.mark.parametrize("timed", [True, False])
def test_it_does_not_widen_the_intervals_for_long(learn, timed, at):
    """They were 21 to 74 times as wide, and 132 times where the first 8 rows gave the unit, the error among them."""
    wrong, right = series(0), series(0)
    wrong[at] += 1e4
    (wide, _), (usual, _) = (learn(y, timed=timed) for y in (wrong, right))
    assert np.array_equal(learn(wrong, timed=timed, cut=13)[0], wide, equal_nan=True)
    assert np.median(wide[60:]) < 1.5 * np.median(usual[60:])


@pytest.mark.parametrize("noise", ["normal", "t3", "lognormal"])
@pytest.mark.parametrize("timed", [True, False])
def test_good_rows_are_not_called_wrong_before_much_is_known(learn, timed, noise):
    first = 62 if timed else 58  # rows before the usual limit holds
    found = [event for seed in range(20) for event in learn(series(seed, noise), timed=timed)[1]]
    assert not [row for row, kind in found if kind == "distrusted" and row < first]


@pytest.mark.parametrize("timed", [True, False])
def test_a_series_that_stood_still_has_no_scale_to_be_far_off_by(learn, timed):
    y = np.repeat([0.0, 50.0], [20, ROWS - 20])
    assert not [row for row, kind in learn(y, timed=timed)[1] if kind == "distrusted" and row <= 20]
