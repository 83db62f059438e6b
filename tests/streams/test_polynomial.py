import numpy as np
import pytest

from filtax.streams import piecewise_polynomial


def test_theta_jumps_where_it_says_and_nowhere_else():
    stream = piecewise_polynomial(500, key=3, hazard=0.05)
    jumps = 1 + np.flatnonzero((np.diff(stream.theta, axis=0) != 0).all(axis=1))
    assert tuple(jumps) == stream.changes
    assert len(jumps) > 10
    assert np.abs(stream.theta).max() <= 3
    np.testing.assert_allclose(stream.truth, np.polynomial.polynomial.polyval(stream.X[:, 1], stream.theta.T, False))


def test_moments():
    stream = piecewise_polynomial(20_000, key=0, hazard=0.5, noise=4.0)
    assert np.std(stream.y - stream.truth) == pytest.approx(2.0, rel=0.03)
    assert np.std(stream.X[:, 1]) == pytest.approx(2 / np.sqrt(3), rel=0.03)
    assert stream.theta.std(axis=0) == pytest.approx(3 / np.sqrt(3) * np.ones(3), rel=0.03)
    assert len(stream.changes) == pytest.approx(10_000, rel=0.05)


def test_equal_keys_give_equal_streams():
    a, b, c = (piecewise_polynomial(50, key=key) for key in (1, 1, 2))
    assert (a.y == b.y).all()
    assert (a.y != c.y).all()


def test_a_hazard_is_a_probability():
    with pytest.raises(ValueError, match=r"hazard=...\) must lie in \[0, 1\], got 2.0"):
        piecewise_polynomial(10, key=0, hazard=2.0)
    assert not piecewise_polynomial(10, key=0, hazard=0.0).changes
