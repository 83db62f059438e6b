"""Continual learning: what a run is made of, and what is reported of it."""

import os
from pathlib import Path

import numpy as np
import pytest

from filtax.datasets import Images
from filtax.synthetic import TaskStream, permuted_tasks
from thesis import continual, find
from thesis.continual import METHODS, SCENARIOS, Learned, Learner, Setting, scores

AT_HAND = Path(os.environ.get("FILTAX_DATA", "absent")).is_dir()
TINY = Setting(tasks=2, steps=6, tests=4, trials=2, side=2, keep=2)


@pytest.fixture(scope="module")
def images():
    """Ten classes of 4 x 4 pixels, each with a level and a slope of its own."""
    rng = np.random.default_rng(0)
    y = np.tile(np.arange(10, dtype=np.uint8), 60)
    ways = rng.uniform(0, 200, size=(10, 4, 4))
    X = np.clip(ways[y] + 20 * rng.normal(size=(600, 4, 4)), 0, 255).astype(np.uint8)
    return Images(X[:400], y[:400], X[400:], y[400:])


@pytest.fixture(scope="module")
def tasks(images):
    return [permuted_tasks(images, 3, 20, 10, key=key, side=2) for key in range(2)]


@pytest.fixture(scope="module")
def learner():
    return Learner("Static", (4, 10), "LG(form=diagonal)", 2, 0)


def test_a_run_is_that_of_the_method_step_by_step(learner, tasks):
    """With known boundaries it is three filters that each learn one task; without, one filter that learns all."""
    at = [{"variance": 0.5, "number": 0.0}, {"variance": 0.1, "number": 0.0}]
    learned = learner.learn(at, tasks, [True, False])
    assert [part.shape for part in learned] == [(2, 3, 20), (2, 3), (2, 3, 3)]
    for b, told in enumerate((True, False)):
        method, first = learner.build(at[b])
        state, one = first, tasks[b]
        for i in range(3):
            X, y = (np.asarray(part, np.float32) for part in (one.X[i], one.y[i]))
            state, infos = method.scan(first if told else state, X, y, keep=("mean",))
            assert np.array_equal(np.asarray(infos.mean).argmax(axis=1) == y, learned.right[b, i])
            theta = np.asarray(method.belief(state).mean)
            said = [_labels(theta, tests) for tests in one.X_test]
            np.testing.assert_allclose(learned.matrix[b, i], np.mean(said == one.y_test, axis=1), atol=1e-6)
    assert learned.before[0] == pytest.approx(np.mean(tasks[0].y_test == 0, axis=1))  # at zero weights 0 is said


def _labels(theta, X):
    """A linear model in numpy: biases, then weights (D, 10)."""
    return (X @ theta[10:].reshape(-1, 10) + theta[:10]).argmax(axis=1)


def test_what_is_chosen_foresees_most(learner, tasks):
    variances = (10.0, 0.5)
    shares = [learner.learn([{"variance": v, "number": 0.0}] * 2, tasks, [False] * 2).right.mean() for v in variances]
    assert shares[0] != shares[1]
    best = variances[int(np.argmax(shares))]
    assert learner.chosen(tasks, variances)["variance"] == learner.chosen(tasks, variances[::-1])["variance"] == best


def test_shuffled_tasks_hold_the_same_images(tasks):
    mixed = continual._shuffled(tasks[0], 1)
    rows = lambda s: np.sort(np.column_stack([s.X.reshape(60, -1), s.y.ravel()]), axis=0)
    assert np.array_equal(rows(mixed), rows(tasks[0]))
    assert not np.array_equal(mixed.X, tasks[0].X)
    where = {row.tobytes(): label for row, label in zip(tasks[0].X.reshape(60, -1), tasks[0].y.ravel(), strict=True)}
    assert all(
        where[row.tobytes()] == label for row, label in zip(mixed.X.reshape(60, -1), mixed.y.ravel(), strict=True)
    )


def test_majority_class_by_hand():
    y = np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    right = continual._majority(TaskStream(np.zeros((2, 3, 1)), y, np.zeros((2, 1, 1)), y[:, :1], ("a", "b")))
    assert right.tolist() == [[False, True, False], [False, True, True]]  # a tie goes to the smaller label


def test_scores_are_means_over_trials():
    matrix = np.array([[[1.0, 0.0], [0.5, 1.0]], [[0.5, 0.5], [0.5, 0.5]]])
    learned = Learned(np.array([[[1, 0]], [[1, 1]]]), np.full((2, 2), 0.25), matrix)
    assert scores(learned) == {
        "foreseen": 0.75,
        "average accuracy": 0.625,
        "accuracy at learning": 0.75,
        "forgetting": 0.25,
        "forward transfer": 0.0,
    }
    assert set(scores(learned, mixed=True)) == {"foreseen", "average accuracy"}


@pytest.mark.nightly
def test_a_small_run_of_all_methods(images, monkeypatch):
    monkeypatch.setattr(continual, "read_images", lambda name: images)
    result = find("continual").run(TINY, 0, lambda share: None)
    assert set(result.numbers["chosen"]["split"]) == set(METHODS)
    assert len(result.tables) == len(SCENARIOS) + 1
    assert len(result.tables[0].rows) == 2 * len(METHODS) + 2
    find("continual").figures["continual-learning"](result).canvas.draw()


@pytest.mark.nightly
@pytest.mark.skipif(not AT_HAND, reason="name the folder of data sets in FILTAX_DATA")
def test_the_quick_size_shows_the_bargain():
    found = find("continual").run(find("continual").sizes["quick"], 0, lambda share: None).numbers["scores"]
    for of in found.values():
        assert of["Static, told"]["foreseen"] > of["Static"]["foreseen"] > of["majority class"]["foreseen"] + 0.2
        assert of["Static"]["average accuracy"] > of["Static, told"]["average accuracy"] + 0.1
        assert of["RL-PR"]["forgetting"] > of["Static"]["forgetting"]
        assert of["Static, shuffled"]["average accuracy"] > of["Static"]["average accuracy"]
