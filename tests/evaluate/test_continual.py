"""Scores of continual learning against matrices worked out by hand."""

import numpy as np
import pytest

from filtax.evaluate.continual import (
    average_accuracy,
    backward_transfer,
    forgetting,
    forward_transfer,
    learning_accuracy,
)

# Three tasks. The first falls from 0.9 to 0.6 to 0.7; the second is best before it is tested last; the third is new.
MATRIX = np.array([[0.90, 0.30, 0.10], [0.60, 0.80, 0.20], [0.70, 0.50, 1.00]])
BEFORE = np.array([0.1, 0.2, 0.4])


def test_by_hand_after_three_tasks_and_after_two_of_them():
    for score, after_three, after_two in (
        (average_accuracy, (0.70 + 0.50 + 1.00) / 3, (0.60 + 0.80) / 2),
        (learning_accuracy, (0.90 + 0.80 + 1.00) / 3, 0.85),
        (forgetting, (0.20 + 0.30) / 2, 0.30),
        (backward_transfer, (-0.20 - 0.30) / 2, -0.30),
        (lambda a: forward_transfer(a, BEFORE), ((0.30 - 0.2) + (0.20 - 0.4)) / 2, (0.1 - 0.2) / 2),
    ):
        assert score(MATRIX) == pytest.approx(after_three)
        assert score(MATRIX[:2]) == pytest.approx(after_two)
    assert forward_transfer(MATRIX[:1], BEFORE) == pytest.approx(0.1)


def test_forgetting_is_from_the_best_and_not_from_the_first():
    rising = np.array([[0.5, 0.0, 0.0], [0.9, 0.6, 0.0], [0.8, 0.7, 0.5]])
    assert forgetting(rising) == pytest.approx((0.1 - 0.1) / 2)
    assert backward_transfer(rising) == pytest.approx((0.3 + 0.1) / 2)


def test_trials_keep_their_axes():
    trials = np.stack([MATRIX, MATRIX.T, np.eye(3)])[:, None]
    for score in (average_accuracy, learning_accuracy, forgetting, backward_transfer):
        np.testing.assert_allclose(score(trials)[:, 0], [score(one) for one in trials[:, 0]])
    assert forward_transfer(trials, BEFORE).shape == (3, 1)
    np.testing.assert_allclose(forward_transfer(trials, BEFORE)[2, 0], -0.3)


@pytest.mark.parametrize(
    ("score", "matrix", "sentence"),
    [
        (average_accuracy, [0.5, 0.5], r"shape \(2,\)"),
        (average_accuracy, [[0.5], [0.5]], "at least K"),
        (forgetting, [[0.5, 0.5]], "at least 2"),
        (backward_transfer, [[50.0, 60.0], [10.0, 20.0]], r"lie in \[0, 1\]"),
        (learning_accuracy, [[np.nan]], r"lie in \[0, 1\]"),
    ],
)
def test_what_is_no_matrix_of_accuracies_is_refused(score, matrix, sentence):
    with pytest.raises(ValueError, match=sentence):
        score(matrix)


def test_transfer_needs_an_accuracy_before_each_task():
    with pytest.raises(ValueError, match="each of 3 tasks"):
        forward_transfer(MATRIX, [0.1, 0.1])
    with pytest.raises(ValueError, match="two or more"):
        forward_transfer([[0.5]], [0.1])
