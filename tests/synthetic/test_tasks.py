"""Streams of tasks: who sees which image, and how."""

import jax
import numpy as np
import pytest
from scipy.interpolate import RegularGridInterpolator

from filtax.datasets import Images
from filtax.synthetic import permuted_tasks, rotated_tasks, split_tasks

RNG = np.random.default_rng(0)
PIXELS = RNG.integers(0, 256, size=(120, 8, 8)).astype(np.uint8)
LABELS = np.arange(120, dtype=np.uint8) % 6
IMAGES = Images(PIXELS, LABELS, 255 - PIXELS, LABELS[::-1].copy())
MAKERS = [permuted_tasks, rotated_tasks, split_tasks]


def pooled(pixels, side):
    """Means over squares by plain loops, (N, side, side)."""
    pool = pixels.shape[1] // side
    cells = [[pixels[:, i : i + pool, j : j + pool].mean((1, 2)) for j in range(0, 8, pool)] for i in range(0, 8, pool)]
    return np.array(cells).transpose(2, 0, 1)


def found(view, seen):
    """For each row of `seen` the number of the one row of `view` that equals it."""
    same = np.abs(view.reshape(len(view), -1)[None] - seen[:, None]).max(axis=2) < 1e-9
    assert (same.sum(axis=1) == 1).all()
    return same.argmax(axis=1)


@pytest.mark.parametrize("make", MAKERS)
def test_tasks_are_a_function_of_images_and_key(make):
    first, again, other = (make(IMAGES, 3, 10, 5, key=key, side=4) for key in (3, 3, jax.random.key(3)))
    assert np.array_equal(first.X, again.X)
    assert np.array_equal(first.y_test, again.y_test)
    assert not np.array_equal(first.X, other.X)
    assert first.X.shape == (3, 10, 16)
    assert first.X_test.shape == (3, 5, 16)
    assert len(first) == len(first.names) == 3


@pytest.mark.parametrize("make", MAKERS)
def test_one_task_comes_after_the_other(make):
    made = make(IMAGES, 3, 10, 5, key=0, side=4)
    flat = made.flat
    assert flat.changes == (10, 20)
    assert np.array_equal(flat.X[10:20], made.X[1])
    assert np.array_equal(flat.y[20:], made.y[2])


def test_a_permuted_task_holds_the_pixels_of_images_of_its_own_in_one_order():
    made = permuted_tasks(IMAGES, 3, 10, 5, key=0, side=4)
    for pixels, labels, X, y in (
        (IMAGES.X, IMAGES.y, made.X, made.y),
        (IMAGES.X_test, IMAGES.y_test, made.X_test, made.y_test),
    ):
        small = pooled(pixels, 4).reshape(120, -1) / 255
        at = found(np.sort(small, axis=1), np.sort(X.reshape(-1, 16), axis=1))
        assert len(set(at)) == at.size  # no image twice
        assert np.array_equal(labels[at], y.ravel())
        order = [found(small[rows].T, task.T) for rows, task in zip(at.reshape(3, -1), X, strict=True)]
        assert np.array_equal(order[0], np.arange(16))
        assert not np.array_equal(order[1], order[2])


@pytest.mark.parametrize("degrees", [17.0, 90.0, 144.0, -30.0])
def test_images_are_turned_by_bilinear_interpolation_with_zeros_around(degrees):
    made = rotated_tasks(IMAGES, 2, 10, 5, key=1, side=8, turn=2 * degrees)
    padded = np.pad(PIXELS / 255, ((0, 0), (2, 2), (2, 2)))
    axis = np.arange(-2.0, 10.0) - 3.5
    read = RegularGridInterpolator((axis, axis), np.moveaxis(padded, 0, -1), bounds_error=False, fill_value=0.0)
    places = np.stack(np.meshgrid(axis[2:-2], axis[2:-2], indexing="ij"), axis=-1)
    turn = np.deg2rad(degrees)
    turned = np.moveaxis(read(places @ [[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]]), -1, 0)
    for view, task, y in zip((PIXELS / 255, turned), made.X, made.y, strict=True):
        assert np.array_equal(LABELS[found(view, task)], y)


def test_turned_tasks_turn_counter_clockwise_and_evenly():
    made = rotated_tasks(IMAGES, 2, 10, 5, key=1, side=8)
    assert made.names == ("0°", "90°")
    for i, turns in enumerate((0, 1)):
        at = found(np.rot90(PIXELS, turns, axes=(1, 2)) / 255, made.X[i])
        assert np.array_equal(LABELS[at], made.y[i])
    small = rotated_tasks(IMAGES, 2, 10, 5, key=1, side=2).X
    np.testing.assert_allclose(small[1], pooled(made.X[1].reshape(-1, 8, 8), 2).reshape(10, -1), atol=1e-12)


def test_split_tasks_share_no_class():
    own = split_tasks(IMAGES, 3, 10, 5, key=0, side=8, relabel=False)
    sets = [set(row) for row in own.y]
    assert [len(one) for one in sets] == [2, 2, 2]
    assert set().union(*sets) == set(range(6))
    assert all(set(tested) <= one for tested, one in zip(own.y_test, sets, strict=True))
    at = found(PIXELS / 255, own.X.reshape(-1, 64))
    assert np.array_equal(LABELS[at], own.y.ravel())
    counted = split_tasks(IMAGES, 3, 10, 5, key=0, side=8)
    for mine, theirs, one in zip(counted.y, own.y, sets, strict=True):
        assert np.array_equal(np.sort(list(one))[mine.astype(int)], theirs)
    assert own.names[0] == " ".join(f"{label:g}" for label in sorted(sets[0]))


@pytest.mark.parametrize(
    ("make", "setting", "sentence"),
    [
        (permuted_tasks, {"side": 3}, "a side that divides"),
        (permuted_tasks, {"steps": 61}, r"task 2 needs 61 images, but 59 remain"),
        (rotated_tasks, {"tests": 100}, r"task 2 needs 100 images, but 20 remain"),
        (split_tasks, {"tasks": 7}, "there are 6 classes; ask for at most 3."),
        (split_tasks, {"tasks": 4}, "ask for at most 3, or give relabel=False"),
        (split_tasks, {"tasks": 6, "steps": 21, "relabel": False}, r"task 1 needs 21 images, but 20 remain"),
        (permuted_tasks, {"tasks": 0}, r"tasks=\.\.\."),
    ],
)
def test_what_cannot_be_made_is_said(make, setting, sentence):
    with pytest.raises(ValueError, match=sentence):
        make(IMAGES, **({"tasks": 2, "steps": 5, "tests": 5, "side": 4} | setting), key=0)
