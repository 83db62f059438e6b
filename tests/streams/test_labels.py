import jax
import numpy as np
import pytest

from filtax.streams import jumping_labels, rotating_labels


@pytest.mark.parametrize("make", [rotating_labels, jumping_labels])
def test_a_stream_is_a_function_of_its_key(make):
    first, again, other = make(50, key=3), make(50, key=3), make(50, key=jax.random.key(3))
    assert np.array_equal(first.X, again.X)
    assert np.array_equal(first.y, again.y)
    assert not np.array_equal(first.X, other.X)


@pytest.mark.parametrize("make", [rotating_labels, jumping_labels])
def test_labels_come_as_often_as_their_probability_says(make):
    stream = make(20_000, key=0)
    np.testing.assert_allclose(stream.truth, 1 / (1 + np.exp(-(stream.X * stream.theta).sum(axis=1))))
    assert np.abs(stream.X).max() <= 3.0
    middle = np.abs(stream.truth - 0.5) < 0.3
    assert np.mean(stream.y[middle] - stream.truth[middle]) == pytest.approx(0.0, abs=0.03)


def test_a_turn_takes_72_ticks():
    theta = rotating_labels(145, key=0, length=2.0).theta
    np.testing.assert_allclose(np.linalg.norm(theta, axis=1), 2.0)
    np.testing.assert_allclose(theta[72], theta[0], atol=1e-12)
    np.testing.assert_allclose(theta[1] @ theta[0], 4.0 * np.cos(np.pi / 36))


def test_jumps_come_at_their_rate_and_steps_have_their_size():
    stream = jumping_labels(30_000, key=1)
    assert len(stream.changes) / 30_000 == pytest.approx(0.01, rel=0.2)
    moves = np.delete(np.diff(stream.theta, axis=0), np.array(stream.changes) - 1, axis=0)
    assert moves.std() == pytest.approx(0.01, rel=0.02)
    assert np.abs(stream.theta[list(stream.changes)]).max() <= 2.0
    with pytest.raises(ValueError, match="probability a tick"):
        jumping_labels(10, key=0, hazard=2.0)
