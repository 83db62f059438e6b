"""Regressions and the tracked object: their laws and equations, from the fields that only the generator knows."""

from itertools import pairwise

import jax
import numpy as np
import pytest
from scipy import stats

from filtax import synthetic

GENERATORS = [
    synthetic.fixed_labels,
    synthetic.fixed_regression,
    synthetic.heavy_tailed_regression,
    synthetic.hourly_load,
    synthetic.jumping_labels,
    synthetic.moons,
    synthetic.noisy_curve,
    synthetic.parabola_regression,
    synthetic.piecewise_polynomial,
    synthetic.rotating_labels,
    synthetic.tracking_2d,
]
TABLE = np.random.default_rng(0).normal(size=(2000, 3)) * [1.0, 10.0, 0.1]
TARGET = np.arange(2000.0)


@pytest.mark.parametrize("generate", GENERATORS)
def test_equal_keys_give_equal_streams_and_others_do_not(generate):
    one, two, other = generate(400, key=1), generate(400, key=1), generate(400, key=jax.random.key(1))
    np.testing.assert_array_equal(one.X, two.X)
    np.testing.assert_array_equal(one.y, two.y)
    assert not np.array_equal(one.y, other.y)
    typed, raw = generate(400, key=jax.random.key(7)), generate(400, key=jax.random.PRNGKey(7))
    np.testing.assert_array_equal(typed.y, raw.y)


@pytest.mark.parametrize("generate", [synthetic.fixed_regression, synthetic.parabola_regression])
def test_least_squares_finds_parameters_that_stay(generate):
    stream = generate(20_000, key=1, theta=(1.0, -3.0), noise=0.25)
    found, *_ = np.linalg.lstsq(stream.X, stream.y, rcond=None)
    np.testing.assert_allclose(found, (1.0, -3.0), atol=0.02)
    assert np.var(stream.y - stream.truth) == pytest.approx(0.25, rel=0.05)
    np.testing.assert_allclose(stream.truth, stream.X @ [1.0, -3.0])
    assert stream.theta.shape == (20_000, 2)


def test_the_parabola_is_over_its_interval():
    x, square = synthetic.parabola_regression(20_000, key=3).X.T
    np.testing.assert_array_equal(square, x**2)
    np.testing.assert_allclose((x.min(), x.max(), x.mean()), (-2.0, 3.0, 0.5), atol=0.03)


@pytest.mark.parametrize(
    "generate",
    [
        synthetic.heavy_tailed_regression,
        synthetic.jumping_labels,
        synthetic.piecewise_polynomial,
    ],
)
def test_parameters_change_exactly_at_the_changes(generate):
    """Binomial(4999, 0.02): outside 60 to 145 with odds below 1e-4."""
    still = {"drift": 0.0} if generate is synthetic.jumping_labels else {}
    stream = generate(5000, key=0, hazard=0.02, **still)
    moved = np.flatnonzero(np.all(np.diff(stream.theta, axis=0) != 0, axis=1)) + 1
    assert tuple(moved) == stream.changes
    assert 60 <= len(stream.changes) <= 145
    assert generate(50, key=0, hazard=0.0, **still).changes == ()
    assert generate(50, key=0, hazard=1.0, **still).changes == tuple(range(1, 50))
    with pytest.raises(ValueError, match=r"hazard=\.\.\.\) must lie in \[0, 1\], got 1.5. It is a probability"):
        generate(10, key=0, hazard=1.5)


def test_a_polynomial_has_its_moments():
    stream = synthetic.piecewise_polynomial(20_000, key=0, hazard=0.5, noise=4.0)
    np.testing.assert_allclose(stream.truth, np.polynomial.polynomial.polyval(stream.X[:, 1], stream.theta.T, False))
    assert np.std(stream.y - stream.truth) == pytest.approx(2.0, rel=0.03)
    assert np.std(stream.X[:, 1]) == pytest.approx(2 / np.sqrt(3), rel=0.03)
    assert stream.theta.std(axis=0) == pytest.approx(3 / np.sqrt(3) * np.ones(3), rel=0.03)


def test_linked_parabolas_meet_and_have_coefficients_of_their_own():
    stream = synthetic.linked_parabolas(4, key=5, hazard=0.05)
    x = stream.X[:, 0]
    assert np.all(np.abs(x) <= 5.0)
    starts = (0, *stream.changes)
    assert len(starts) == 4
    for before, now in pairwise(starts):
        d = x[now] - x[before]
        assert stream.truth[now] == pytest.approx(stream.theta[now - 1] @ [1.0, d, d * d])
        assert not np.isclose(stream.theta[now], stream.theta[now - 1])[1:].any()
    streams = [synthetic.linked_parabolas(key=i) for i in range(300)]
    assert np.mean([len(stream) for stream in streams]) == pytest.approx(500, rel=0.06)
    assert np.concatenate([stream.y - stream.truth for stream in streams]).std() == pytest.approx(0.2, rel=0.01)
    with pytest.raises(ValueError, match="one over a mean length"):
        synthetic.linked_parabolas(key=0, hazard=0.0)


def test_heavy_tails_are_those_of_student():
    stream = synthetic.heavy_tailed_regression(20_000, key=0)
    x = stream.X[:, 1]
    np.testing.assert_allclose(stream.truth, np.polynomial.polynomial.polyval(x, stream.theta.T, tensor=False))
    assert stats.kstest(stream.y - stream.truth, "t", args=(2.01,)).pvalue > 1e-3
    assert stats.kstest(x, "uniform", args=(-2, 4)).pvalue > 1e-3
    assert np.abs(stream.theta).max() <= 3
    first = synthetic.heavy_tailed_regression(5, key=0, initial=np.ones(3)).theta[0]
    np.testing.assert_array_equal(first, np.ones(3))


def test_the_curve_has_the_share_and_the_size_of_errors_it_was_asked_for():
    stream = synthetic.noisy_curve(20_000, key=0, share=0.2)
    x = stream.X[:, 0]
    np.testing.assert_allclose(stream.truth, 0.2 * x - 10 * np.cos(np.pi * x) + x**3)
    np.testing.assert_allclose(np.var((stream.y - stream.truth)[~stream.outliers]), 3.0, rtol=0.05)
    np.testing.assert_allclose(stream.outliers.mean(), 0.2, atol=0.015)
    assert stats.kstest(stream.y[stream.outliers], "uniform", args=(-40, 80)).pvalue > 1e-3
    np.testing.assert_array_equal(np.sort(x), synthetic.noisy_curve(20_000, key=0, share=0.2, ordered=True).X[:, 0])


@pytest.mark.parametrize("law", ["uniform", "sign"])
def test_a_table_is_shuffled_scaled_by_its_first_rows_and_corrupted(law):
    before, after = synthetic.corrupted_table(TABLE, TARGET, key=0, law=law)
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
    _, constant = synthetic.corrupted_table(np.ones((50, 1)), TARGET[:50], key=0)
    assert (constant.X == 0).all()


def test_the_object_moves_by_its_equations():
    """The moves that F does not explain are N(0, Q): 4 x 3999 draws, 5 % off has odds below 1e-4."""
    system = synthetic.constant_velocity(dt=0.5, q=0.2, r=3.0)
    stream = synthetic.tracking_2d(4000, key=0, system=system)
    moves = stream.theta[1:] - stream.theta[:-1] @ system.F.T
    np.testing.assert_allclose(np.cov(moves.T), system.Q, atol=0.02)
    np.testing.assert_allclose(np.cov((stream.y - stream.truth).T), system.R, atol=0.4)
    np.testing.assert_array_equal(stream.truth, stream.theta[:, :2])
    np.testing.assert_array_equal(stream.X[17], system.H)
    still = synthetic.tracking_2d(3, key=0, system=synthetic.constant_velocity(q=0.0))
    np.testing.assert_allclose(still.theta[0], [0.1, 0.1, 1.0, 1.0])  # time passes before the first observation


def test_a_mixture_doubles_one_position_in_twenty():
    """Binomial(4000, 0.05): outside 145 to 255 with odds below 1e-4."""
    system = synthetic.constant_velocity(r=1e-12)
    stream = synthetic.tracking_2d(4000, key=0, kind="mixture", system=system)
    assert 145 <= stream.outliers.sum() <= 255
    factor = np.where(stream.outliers, 2.0, 1.0)[:, None]
    np.testing.assert_allclose(stream.y, factor * stream.truth, atol=1e-4)


def test_student_errors_have_the_tails_of_two_degrees_of_freedom():
    """|error| / sqrt(r) exceeds 10 with probability 0.98 % for t(2.01), and never for a Gaussian."""
    sizes = {}
    for kind in ("gaussian", "student"):
        stream = synthetic.tracking_2d(5000, key=0, kind=kind)
        sizes[kind] = np.abs(stream.y - stream.truth)[:, 0] / np.sqrt(10.0)
    assert np.mean(sizes["gaussian"] > 10) == 0.0
    assert 0.005 < np.mean(sizes["student"] > 10) < 0.017
    np.testing.assert_allclose(np.median(sizes["student"]), 0.816, rtol=0.08)  # the upper quartile of t(2)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: synthetic.parabola_regression(5, key=0, theta=(1.0, 2.0, 3.0)), r"shape \(3,\); give 2 numbers"),
        (
            lambda: synthetic.fixed_regression(5, key=0, noise=-1.0),
            r"noise=...\) must be finite and at least 0, got -1",
        ),
        (lambda: synthetic.noisy_curve(5, key=0, share=-0.1), r"share=...\) must lie in \[0, 1\], got -0.1"),
        (lambda: synthetic.corrupted_table(TABLE, TARGET, key=0, law="gauss"), "must be one of uniform, sign"),
        (lambda: synthetic.tracking_2d(10, key=0, kind="laplace"), "gaussian, student, mixture"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()
