"""Public tables as bandits: against the files read by hand, and what a trial draws is drawn as the protocol says."""

import csv
import gzip
import os
from pathlib import Path

import numpy as np
import pytest

from thesis.tables import load_table

FOLDER = Path(os.environ.get("FILTAX_DATA", "nowhere")) / "bandits"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="FILTAX_DATA does not name the public data sets")


def rows(name):
    with gzip.open(FOLDER / f"{name}.csv.gz", "rt", newline="") as file:
        return list(csv.DictReader(file))


def test_a_poisonous_mushroom_harms_every_second_time():
    table, held = load_table("mushroom", seed=3), rows("mushroom")
    poison = np.array([row["class"] == "p" for row in held])
    assert table.contexts.shape == (8124, 118)  # 117 letters and the constant
    np.testing.assert_array_equal(table.contexts.sum(axis=1), 23.0)  # one letter of each of 22 columns
    assert len(np.unique(table.contexts, axis=0)) == len({tuple(row.values()) for row in held})
    leave, eat = table.rewards.T
    assert not leave.any()
    assert set(eat[~poison]) == {5.0}
    assert set(eat[poison]) == {5.0, -35.0}
    assert eat[poison].mean() == pytest.approx(-15.0, abs=4 * 20 / np.sqrt(poison.sum()))
    np.testing.assert_array_equal(table.means, np.stack([0.0 * eat, np.where(poison, -15.0, 5.0)], axis=1))
    assert (load_table("mushroom", seed=4).rewards != table.rewards).any()


def test_shuttle_states_are_those_to_learn_from():
    table = load_table("statlog")
    held = [row for row in rows("statlog_shuttle") if row["split"] == "train"]
    np.testing.assert_array_equal(table.rewards.argmax(axis=1) + 1, [int(row["label"]) for row in held])
    assert (table.rewards.sum(axis=1) == 1.0).all()
    numbers = np.array([[float(row[name]) for name in list(row)[:9]] for row in held])
    expected = (numbers - numbers.mean(axis=0)) / numbers.std(axis=0)
    np.testing.assert_allclose(table.contexts, np.column_stack([expected, np.ones(len(held))]), rtol=1e-12, atol=1e-12)


def test_portfolios_are_linear_in_the_moves_with_noise_that_grows():
    table = load_table("stock", seed=1)
    moves = np.load(FOLDER / "showdown_stock.npz")["contexts"]
    np.testing.assert_array_equal(table.contexts[:, :-1], moves)
    weights, left = np.linalg.lstsq(moves, table.means, rcond=None)[:2]
    np.testing.assert_allclose(np.linalg.norm(weights, axis=0), 1.0, rtol=1e-9)
    assert (left < 1e-18).all()
    spread = (table.rewards - table.means).std(axis=0)
    np.testing.assert_allclose(spread, 0.01 * np.arange(1, 9), rtol=4 / np.sqrt(2 * len(moves)))
    assert not np.allclose(load_table("stock", seed=2).means, table.means)


def test_jokes_of_each_trial_are_a_shuffle_of_the_same_forty():
    ratings = np.load(FOLDER / "jester5k.npz")["ratings"]
    forty = np.argsort([-np.isfinite(column).sum() for column in ratings.T], kind="stable")[:40]
    held = ratings[:, forty][np.isfinite(ratings[:, forty]).all(axis=1)]
    arms = []
    for seed in (0, 1):
        table = load_table("jester", seed=seed)
        assert (table.contexts[:, -1] == 1.0).all()
        both = np.concatenate([table.contexts[:, :-1], table.rewards], axis=1)
        assert sorted(map(tuple, both.T.tolist())) == sorted(map(tuple, held.T.astype(float).tolist()))
        arms.append(table.rewards)
    assert not np.array_equal(*arms)


@pytest.mark.nightly
def test_other_tables_guess_a_class():
    for name, shape, classes in (("adult", 48842, 2), ("covertype", 5000, 7)):
        table = load_table(name)
        assert len(table.contexts) == shape
        assert table.rewards.shape == (shape, classes)
        assert (table.rewards.sum(axis=1) == 1.0).all()
        assert np.isfinite(table.contexts).all()
    rich = [row["income"].startswith(">") for row in rows("adult")]
    np.testing.assert_array_equal(load_table("adult").rewards[:, 1], rich)
