"""Labels of two classes: as frequent as their probability says, with the boundary that was promised."""

import numpy as np
import pytest

from filtax.synthetic import fixed_labels, jumping_labels, moons, rotating_labels


@pytest.mark.parametrize("generate", [fixed_labels, jumping_labels, moons, rotating_labels])
def test_the_truth_is_a_calibrated_probability(generate):
    stream = generate(30_000, key=1, **({"noise": 0.4} if generate is moons else {}))
    assert set(stream.y) == {0.0, 1.0}
    for low in np.arange(0.0, 1.0, 0.2):
        inside = (stream.truth >= low) & (stream.truth < low + 0.2)
        deviation = np.sqrt(np.sum(stream.truth[inside] * (1 - stream.truth[inside]))) / inside.sum()
        assert stream.y[inside].mean() == pytest.approx(stream.truth[inside].mean(), abs=4 * deviation)


def test_the_truth_is_the_sigmoid_of_theta_dot_x():
    fixed = fixed_labels(400, key=2)
    assert (fixed.X[:, 0] == 1.0).all()
    np.testing.assert_allclose(fixed.truth, 1 / (1 + np.exp(0.5 - fixed.X[:, 1:] @ [2.0, -1.0])))
    for generate in (jumping_labels, rotating_labels):
        stream = generate(20_000, key=0)
        np.testing.assert_allclose(stream.truth, 1 / (1 + np.exp(-(stream.X * stream.theta).sum(axis=1))))
        assert 2.99 < np.abs(stream.X).max() <= 3.0


def test_a_turn_takes_72_steps():
    theta = rotating_labels(145, key=0, length=2.0).theta
    np.testing.assert_allclose(np.linalg.norm(theta, axis=1), 2.0)
    np.testing.assert_allclose(theta[72], theta[0], atol=1e-12)
    np.testing.assert_allclose(theta[1] @ theta[0], 4.0 * np.cos(np.pi / 36))


def test_parameters_walk_by_the_drift_between_jumps():
    stream = jumping_labels(30_000, key=1)
    moves = np.delete(np.diff(stream.theta, axis=0), np.array(stream.changes) - 1, axis=0)
    assert moves.std() == pytest.approx(0.01, rel=0.02)
    assert np.abs(stream.theta[list(stream.changes)]).max() <= 2.0


def test_moons_are_centred_and_scaled():
    stream = moons(12_000, key=0, noise=0.3)
    np.testing.assert_allclose(stream.X.mean(axis=0), 0.0, atol=0.03)
    np.testing.assert_allclose(stream.X.std(axis=0), 1.0, atol=0.03)
    assert stream.y.mean() == pytest.approx(0.5, abs=0.02)
    with pytest.raises(ValueError, match=r"noise=...\) must be finite and above 0, got 0.0"):
        moons(10, key=0, noise=0.0)


def test_little_noise_leaves_two_half_circles():
    stream = moons(200, key=2, noise=1e-6)
    x, y = stream.X.T * np.sqrt([[0.75], [0.5 - 4 / np.pi**2 + (2 / np.pi - 0.25) ** 2]]) + [[0.5], [0.25]]
    outer = stream.y == 0
    np.testing.assert_allclose(np.hypot(x, y)[outer], 1.0, atol=1e-4)
    np.testing.assert_allclose(np.hypot(x - 1, y - 0.5)[~outer], 1.0, atol=1e-4)
    assert (y[outer] > -1e-4).all()
    assert (y[~outer] < 0.5001).all()
    assert ((stream.truth > 0.5) == (stream.y > 0.5)).all()
