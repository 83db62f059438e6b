import numpy as np
import pytest

from filtax.streams import moons


def test_points_are_centred_and_scaled():
    stream = moons(12_000, key=0, noise=0.3)
    np.testing.assert_allclose(stream.X.mean(axis=0), 0.0, atol=0.03)
    np.testing.assert_allclose(stream.X.std(axis=0), 1.0, atol=0.03)
    assert stream.y.mean() == pytest.approx(0.5, abs=0.02)


def test_the_truth_is_a_calibrated_probability():
    stream = moons(12_000, key=1, noise=0.4)
    for low in np.arange(0.0, 1.0, 0.2):
        inside = (stream.truth >= low) & (stream.truth < low + 0.2)
        assert stream.y[inside].mean() == pytest.approx(stream.truth[inside].mean(), abs=0.06)


def test_little_noise_leaves_two_half_circles():
    stream = moons(200, key=2, noise=1e-6)
    x, y = stream.X.T * np.sqrt([[0.75], [0.5 - 4 / np.pi**2 + (2 / np.pi - 0.25) ** 2]]) + [[0.5], [0.25]]
    outer = stream.y == 0
    np.testing.assert_allclose(np.hypot(x, y)[outer], 1.0, atol=1e-4)
    np.testing.assert_allclose(np.hypot(x - 1, y - 0.5)[~outer], 1.0, atol=1e-4)
    assert (y[outer] > -1e-4).all()
    assert (y[~outer] < 0.5001).all()
    assert ((stream.truth > 0.5) == (stream.y > 0.5)).all()


def test_noise_must_be_there():
    with pytest.raises(ValueError, match=r"noise=...\) must be above 0, got 0.0"):
        moons(10, key=0, noise=0.0)
