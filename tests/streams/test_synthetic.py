"""Small processes: their moments and their equations, from the fields that only the maker knows."""

import jax
import numpy as np
import pytest

from filtax.streams import constant_velocity, drifting_regression, piecewise_regression, tracking_2d

MAKERS = [
    lambda key: drifting_regression(200, key=key),
    lambda key: piecewise_regression(200, key=key),
    lambda key: tracking_2d(200, key=key),
    lambda key: tracking_2d(200, key=key, kind="student"),
    lambda key: tracking_2d(200, key=key, kind="mixture"),
]


@pytest.mark.parametrize("make", MAKERS)
def test_equal_keys_give_equal_streams_and_others_do_not(make):
    one, two, other = make(1), make(1), make(jax.random.key(1))
    np.testing.assert_array_equal(one.y, two.y)
    np.testing.assert_array_equal(one.theta, two.theta)
    assert not np.allclose(one.y, other.y)


@pytest.mark.parametrize("make", [drifting_regression, piecewise_regression])
def test_a_regression_is_theta_dot_x_plus_noise(make):
    """4000 residuals: a sample variance 10 % off has odds below 1e-4."""
    stream = make(4000, key=0, features=4, noise=0.49)
    np.testing.assert_allclose(stream.truth, np.einsum("td,td->t", stream.X, stream.theta), rtol=1e-12)
    np.testing.assert_allclose(np.var(stream.y - stream.truth), 0.49, rtol=0.1)
    np.testing.assert_allclose(np.var(stream.X), 1.0, rtol=0.1)


def test_drifting_parameters_walk_with_the_given_step():
    stream = drifting_regression(4000, key=3, drift=0.2)
    np.testing.assert_allclose(np.diff(stream.theta, axis=0).std(), 0.2, rtol=0.05)


def test_parameters_change_exactly_at_the_changes():
    """Binomial(4999, 0.02): outside 60 to 145 with odds below 1e-4."""
    stream = piecewise_regression(5000, key=0, hazard=0.02)
    moved = np.flatnonzero(np.any(np.diff(stream.theta, axis=0) != 0, axis=1)) + 1
    assert tuple(moved) == stream.changes
    assert 60 <= len(stream.changes) <= 145


def test_hazards_of_zero_and_one_are_the_two_ends():
    assert piecewise_regression(50, key=0, hazard=0.0).changes == ()
    assert piecewise_regression(50, key=0, hazard=1.0).changes == tuple(range(1, 50))


def test_the_object_moves_by_its_equations():
    """The moves left after F are N(0, Q): 4 x 3999 draws, 5 % off has odds below 1e-4."""
    system = constant_velocity(dt=0.5, q=0.2, r=3.0)
    stream = tracking_2d(4000, key=0, system=system)
    moves = stream.theta[1:] - stream.theta[:-1] @ system.F.T
    np.testing.assert_allclose(np.cov(moves.T), system.Q, atol=0.02)
    np.testing.assert_allclose(np.cov((stream.y - stream.truth).T), system.R, atol=0.4)
    np.testing.assert_array_equal(stream.truth, stream.theta[:, :2])
    np.testing.assert_array_equal(stream.X[17], system.H)


def test_time_passes_before_the_first_observation():
    system = constant_velocity(q=0.0)
    np.testing.assert_allclose(tracking_2d(3, key=0, system=system).theta[0], [0.1, 0.1, 1.0, 1.0])


def test_a_mixture_doubles_one_position_in_twenty():
    """Binomial(4000, 0.05): outside 145 to 255 with odds below 1e-4."""
    system = constant_velocity(r=1e-12)
    stream = tracking_2d(4000, key=0, kind="mixture", system=system)
    assert 145 <= stream.outliers.sum() <= 255
    factor = np.where(stream.outliers, 2.0, 1.0)[:, None]
    np.testing.assert_allclose(stream.y, factor * stream.truth, atol=1e-4)


def test_student_errors_have_the_tails_of_two_degrees_of_freedom():
    """|error| / sqrt(r) exceeds 10 with probability about 1 % for t(2.01), and never for a Gaussian."""
    gaussian, student = (tracking_2d(5000, key=0, kind=kind) for kind in ("gaussian", "student"))
    far = lambda stream: np.mean(np.abs(stream.y - stream.truth)[:, 0] > 10 * np.sqrt(10.0))
    assert far(gaussian) == 0.0
    assert 0.005 < far(student) < 0.017  # 0.0098 expected
    median = np.median(np.abs(student.y - student.truth)[:, 0]) / np.sqrt(10.0)
    np.testing.assert_allclose(median, 0.816, rtol=0.08)  # the upper quartile of t(2)


def test_bad_arguments_are_refused_in_a_sentence():
    with pytest.raises(ValueError, match="gaussian, student, mixture"):
        tracking_2d(10, key=0, kind="laplace")
    with pytest.raises(ValueError, match="hazard"):
        piecewise_regression(10, key=0, hazard=1.5)
