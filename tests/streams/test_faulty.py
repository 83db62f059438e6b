"""Faulty streams: their laws, from the fields that only the maker knows."""

import jax
import numpy as np
import pytest
from scipy import stats

from filtax.streams import corrupted_table, heavy_tailed_regression, noisy_curve

TABLE = np.random.default_rng(0).normal(size=(2000, 3)) * [1.0, 10.0, 0.1]
TARGET = np.arange(2000.0)


@pytest.mark.parametrize("make", [heavy_tailed_regression, noisy_curve])
def test_equal_keys_give_equal_streams_and_others_do_not(make):
    one, two, other = make(50, key=1), make(50, key=1), make(50, key=jax.random.key(1))
    np.testing.assert_array_equal(one.y, two.y)
    assert not np.allclose(one.y, other.y)


def test_heavy_tails_are_those_of_student_and_changes_are_where_theta_jumps():
    stream = heavy_tailed_regression(20_000, key=0)
    x = stream.X[:, 1]
    np.testing.assert_allclose(stream.truth, np.polynomial.polynomial.polyval(x, stream.theta.T, tensor=False))
    assert stats.kstest(stream.y - stream.truth, "t", args=(2.01,)).pvalue > 1e-3
    assert stats.kstest(x, "uniform", args=(-2, 4)).pvalue > 1e-3
    jumped = np.flatnonzero((np.diff(stream.theta, axis=0) != 0).any(axis=1)) + 1
    np.testing.assert_array_equal(jumped, stream.changes)
    assert 150 < len(jumped) < 250  # 200 +- 14
    assert np.abs(stream.theta).max() <= 3
    np.testing.assert_array_equal(heavy_tailed_regression(5, key=0, initial=np.ones(3)).theta[0], np.ones(3))


def test_the_curve_has_the_share_and_the_size_of_errors_it_was_asked_for():
    stream = noisy_curve(20_000, key=0, share=0.2)
    x = stream.X[:, 0]
    np.testing.assert_allclose(stream.truth, 0.2 * x - 10 * np.cos(np.pi * x) + x**3)
    np.testing.assert_allclose(np.var((stream.y - stream.truth)[~stream.outliers]), 3.0, rtol=0.05)
    np.testing.assert_allclose(stream.outliers.mean(), 0.2, atol=0.015)
    assert stats.kstest(stream.y[stream.outliers], "uniform", args=(-40, 80)).pvalue > 1e-3
    np.testing.assert_array_equal(np.sort(x), noisy_curve(20_000, key=0, share=0.2, ordered=True).X[:, 0])


@pytest.mark.parametrize("law", ["uniform", "sign"])
def test_a_table_is_shuffled_scaled_by_its_first_rows_and_corrupted(law):
    before, after = corrupted_table(TABLE, TARGET, key=0, law=law)
    assert (len(before), len(after)) == (200, 1800)
    for column in (before.X[:, 1], before.truth):
        assert (column.min(), column.max()) == (0.0, 1.0)
    truth = np.concatenate([before.truth, after.truth])
    order = np.argsort(truth)
    np.testing.assert_allclose(np.diff(truth[order]), np.diff(truth[order])[0])  # the targets were 0, 1, 2, ...
    X = np.concatenate([before.X, after.X])[order]  # rows stay together
    np.testing.assert_allclose(np.corrcoef(X[:, 0], TABLE[:, 0])[0, 1], 1.0)
    np.testing.assert_array_equal(after.y[~after.outliers], after.truth[~after.outliers])
    wrong = after.y[after.outliers]
    np.testing.assert_allclose(after.outliers.mean(), 0.1, atol=0.03)
    if law == "sign":
        assert set(wrong) == {-50.0, 50.0}
    else:
        assert stats.kstest(wrong, "uniform", args=(-50, 100)).pvalue > 1e-3


def test_a_column_without_range_is_zero():
    _, after = corrupted_table(np.ones((50, 1)), TARGET[:50], key=0)
    assert (after.X == 0).all()


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ValueError, match="hazard"):
        heavy_tailed_regression(5, key=0, hazard=1.5)
    with pytest.raises(ValueError, match="share"):
        noisy_curve(5, key=0, share=-0.1)
    with pytest.raises(ValueError, match="must be one of uniform, sign"):
        corrupted_table(TABLE, TARGET, key=0, law="gauss")
