"""Values that keep coming back: counted in a small table, and what is measured leaves nothing in it."""

import numpy as np
import pytest

from filtax.streams.recurring import ROOM, Recurring


def looked(values, cuts=()):
    found, state = [], Recurring.none()
    for part in np.split(np.asarray(values, float), cuts):
        recurring = Recurring(state)
        found += [recurring.look(value) for value in part.tolist()]
        state = recurring.arrays()
    return np.array(found)


def test_a_rare_level_is_usual_from_its_third_visit_on():
    y = np.zeros(300)
    y[[50, 51, 120, 121, 122, 200, 260]] = 1.0
    usual = looked(y)
    assert np.flatnonzero(usual & (y == 1.0)).tolist() == [121, 122, 200, 260]  # apart: a spell is one visit
    assert not usual[50]


def test_what_is_measured_is_never_usual_nor_is_a_code_among_it():
    rng = np.random.default_rng(0)
    y = rng.normal(size=2000)
    y[rng.random(2000) < 0.05] = -999.0
    assert not looked(y)[20:].any()
    assert not looked(np.where(rng.random(2000) < 0.6, 0.0, y))[60:].any()  # nor zeros by night: too few are the same


def test_a_code_far_from_few_values_is_no_value_of_theirs():
    rng = np.random.default_rng(1)
    y = rng.choice([0.0, 1.0, 2.0, -999.0], size=1000, p=[0.5, 0.3, 0.15, 0.05])
    usual = looked(y)
    assert not usual[20:][y[20:] == -999.0].any()
    assert usual[20:][y[20:] != -999.0].all()


def test_errors_that_come_once_take_no_room_for_long():
    rng = np.random.default_rng(2)
    y = rng.choice([0.0, 1.0], size=1000)
    y[100::40] = 1000.0 * rng.normal(size=len(y[100::40]))
    usual = looked(y)
    assert usual[50:][np.isin(y[50:], [0.0, 1.0])].mean() > 0.99
    assert not usual[100::40].any()
    assert len(np.unique(y)) > 2 * ROOM


@pytest.mark.parametrize("values", [[np.nan] * 5, [np.inf, 1.0, np.inf], [1e300, -1e300] * 5])
def test_what_is_missing_or_huge_does_no_harm(values):
    assert looked(values).sum() == (6 if len(values) == 10 else 0)


def test_in_pieces_it_is_the_same():
    y = np.random.default_rng(3).choice(11, size=400, p=[0.5, 0.3, *[0.2 / 9] * 9])
    assert looked(y, cuts=[1, 7, 200, 399]).tolist() == looked(y).tolist()
