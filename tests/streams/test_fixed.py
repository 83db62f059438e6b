"""Streams whose parameters stay: their laws, by least squares and by counting."""

import numpy as np
import pytest

from filtax.streams import fixed_labels, fixed_regression, parabola_regression


def test_regressions_have_the_noise_and_the_parameters_they_were_given():
    for stream in (
        fixed_regression(20_000, key=1, theta=(1.0, -3.0), noise=0.25),
        parabola_regression(20_000, key=1, theta=(1.0, -3.0), noise=0.25),
    ):
        found, *_ = np.linalg.lstsq(stream.X, stream.y, rcond=None)
        np.testing.assert_allclose(found, (1.0, -3.0), atol=0.02)
        assert np.var(stream.y - stream.truth) == pytest.approx(0.25, rel=0.05)
        np.testing.assert_allclose(stream.truth, stream.X @ [1.0, -3.0])
        assert stream.theta.shape == (20_000, 2)


def test_the_parabola_is_over_its_interval():
    x, square = parabola_regression(20_000, key=3).X.T
    np.testing.assert_array_equal(square, x**2)
    np.testing.assert_allclose((x.min(), x.max(), x.mean()), (-2.0, 3.0, 0.5), atol=0.03)


def test_labels_are_ones_as_often_as_the_truth_says():
    stream = fixed_labels(40_000, key=2)
    assert stream.X.shape == (40_000, 3)
    assert (stream.X[:, 0] == 1.0).all()
    np.testing.assert_allclose(stream.truth, 1 / (1 + np.exp(0.5 - stream.X[:, 1:] @ [2.0, -1.0])))
    for low in np.arange(0.0, 1.0, 0.2):
        inside = (stream.truth >= low) & (stream.truth < low + 0.2)
        assert stream.y[inside].mean() == pytest.approx(stream.truth[inside].mean(), abs=0.03)


def test_equal_keys_give_equal_streams_and_others_do_not():
    for make in (fixed_labels, fixed_regression, parabola_regression):
        one, same, other = make(30, key=4), make(30, key=4), make(30, key=5)
        np.testing.assert_array_equal(one.X, same.X)
        np.testing.assert_array_equal(one.y, same.y)
        assert (one.X != other.X).any()


def test_what_cannot_be_is_refused_in_a_sentence():
    with pytest.raises(ValueError, match=r"parabola_regression\(theta=...\) has shape \(3,\); give 2 numbers"):
        parabola_regression(5, key=0, theta=(1.0, 2.0, 3.0))
    with pytest.raises(ValueError, match=r"fixed_regression\(noise=...\) must be at least 0, got -1.0"):
        fixed_regression(5, key=0, noise=-1.0)
