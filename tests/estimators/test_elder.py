"""The race with a filter that never forgets: its arithmetic by brute force, and the changes that it finds."""

import jax.numpy as jnp
import numpy as np

from filtax.estimators import Classifier, Regressor
from filtax.estimators.memory import TOLD
from filtax.estimators.rivalry import outdone, unsuspected

ALARM, CHANGE, RUN, START = (TOLD.index(name) for name in ("alarm", "change_probability", "runlength", "start"))
RATE = 0.001


def told_of(model, X, y):
    """What each row showed, (T, R): `learn_many`, with nothing thrown away."""
    model._begin()
    keys = model._table.columns([f"x{i}" for i in range(X.shape[1])])
    model._table.admit(keys)
    targets = model._targets(list(y))
    model._make_room()
    _, told = model._engine().learn(model._vector, model._extended(model._rows(keys, X), targets))
    return told


def test_the_race_is_the_best_of_all_starts():
    """Against the largest sum of bounded gains that ends now, over all rows at which it may start."""
    gains = np.random.default_rng(0).normal(0.1, 1.0, size=60)
    limit, race, bounded = 9.0, unsuspected(None), np.minimum(gains, 9.0 / 4.0)
    for t, gain in enumerate(gains):
        race, since = outdone(race, jnp.asarray(gain), jnp.asarray(limit))
        sums = np.cumsum(bounded[: t + 1][::-1])
        want = max(0.0, sums.max())
        np.testing.assert_allclose(float(race.score), want, atol=1e-5)
        length = int(np.argmax(sums)) + 1 if want > 0.0 else 0
        assert int(race.age) == length
        assert int(since) == (length if want > limit else 0)


def test_a_change_that_the_filter_follows_by_itself_is_told_of():
    """Slopes as large as the noise turn round: no row surprises much. One alarm, and it says when, and how sure."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(1024, 3))
    w = np.array([0.6, -0.6, 0.5])
    y = X @ w * np.where(np.arange(1024) < 600, 1.0, -1.0) + rng.normal(size=1024)
    told = told_of(Regressor(false_alarms=1e-4), X, y)
    alarms = np.flatnonzero(told[:, ALARM] == 2)
    assert len(alarms) == 1
    assert 600 <= alarms[0] < 660
    at = told[alarms[0]]
    assert abs(alarms[0] + 1 - at[START] - 600) <= 15
    assert at[CHANGE] >= 1.0 - 1e-4
    assert (at[RUN], told[-1, RUN]) == (at[START] - 1, at[START] - 1 + 1023 - alarms[0])


def test_labels_that_turn_round_are_told_of():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(768, 1))
    chance = 1.0 / (1.0 + np.exp(-2.0 * X[:, 0] * np.where(np.arange(768) < 500, 1.0, -1.0)))
    labels = np.where(rng.random(768) < chance, "yes", "no").tolist()
    told = told_of(Classifier(), X, labels)
    alarms = np.flatnonzero(told[:, ALARM] == 2)
    assert len(alarms) == 1
    assert 500 <= alarms[0] < 560
    assert told[alarms[0], CHANGE] >= 1.0 - RATE
    assert told[-1, RUN] <= 280


def test_nothing_is_told_of_where_nothing_changes():
    """1024 data with one gross error in a hundred, at a rate of one in ten thousand: no alarm but the errors."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(1024, 2))
    y = X @ [1.0, -2.0] + rng.normal(size=1024)
    y[np.arange(60, 1024, 97)] += 40.0
    told = told_of(Regressor(false_alarms=1e-4), X, y)
    assert not (told[:, ALARM] == 2).any()
    assert (told[60::97, ALARM] == 1).all()
    assert (told[:, CHANGE] < 0.9).all()
