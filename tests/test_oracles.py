"""The oracles against scipy and numbers worked out by hand: an oracle that is wrong would make every test agree."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.optimize
import scipy.special
import scipy.stats

from oracles import (
    batch_regression,
    enumerate_segmentations,
    exact_update,
    joint_conditioning,
    kalman_filter,
    logistic_newton,
    poisson_newton,
    softmax_newton,
    solve_exactly,
)

TIGHT = dict(rtol=1e-12, atol=1e-13)


def spd(rng, size):
    A = rng.normal(size=(size, size))
    return A @ A.T + np.eye(size)


def system(seed, T, D, O):
    """A random time-varying linear system and data from nowhere in particular."""
    rng = np.random.default_rng(seed)
    many = lambda size: np.array([spd(rng, size) for _ in range(T)])
    F, b = rng.normal(size=(T, D, D)) / np.sqrt(D), rng.normal(size=(T, D))
    return rng.normal(size=D), spd(rng, D), F, b, many(D), rng.normal(size=(T, O, D)), many(O), rng.normal(size=(T, O))


def test_batch_regression_by_hand():
    """Prior N(0, 1), noise 1, data (x=1, y=1) and (x=1, y=2): precision 3, mean 3/3, y jointly normal."""
    got = batch_regression(np.ones((2, 1)), np.array([1.0, 2.0]), np.zeros(1), np.eye(1), 1.0)
    np.testing.assert_allclose([got.mean[0], got.cov[0, 0]], [1.0, 1 / 3], **TIGHT)
    want = scipy.stats.multivariate_normal(np.zeros(2), [[2.0, 1.0], [1.0, 2.0]]).logpdf([1.0, 2.0])
    np.testing.assert_allclose(got.log_evidence, want, **TIGHT)


def test_joint_conditioning_by_hand():
    """A random walk seen once: prior variance 1 plus step 1, noise 2, so half of y=4 is believed."""
    one = np.ones((1, 1, 1))
    got = joint_conditioning(np.zeros(1), np.eye(1), one, np.zeros((1, 1)), one, one, 2 * one, np.array([[4.0]]))
    np.testing.assert_allclose([got.mean[0], got.cov[0, 0]], [2.0, 1.0], **TIGHT)
    np.testing.assert_allclose(got.log_evidence, scipy.stats.norm(0, 2).logpdf(4.0), **TIGHT)


@pytest.mark.parametrize(("T", "D", "O"), [(1, 1, 1), (5, 3, 2), (4, 2, 5)])
def test_kalman_filter_is_joint_conditioning(T, D, O):
    """The recursion and the big matrix share only the density; some elements and one whole row are missing."""
    parts = system(3, T, D, O)
    parts[-1][0, 0] = np.nan
    if T > 2:
        parts[-1][2] = np.nan
    want, got = joint_conditioning(*parts), kalman_filter(*parts)
    np.testing.assert_allclose(got.mean[-1], want.mean, **TIGHT)
    np.testing.assert_allclose(got.cov[-1], want.cov, **TIGHT)
    np.testing.assert_allclose(got.log_evidence.sum(), want.log_evidence, **TIGHT)


def check_newton(step, mean, cov, log_likelihood):
    """Gradient and Hessian by central differences of the log posterior."""
    log_posterior = lambda theta: log_likelihood(theta) - 0.5 * (theta - mean) @ np.linalg.solve(cov, theta - mean)
    eps, D = 1e-4, len(mean)
    E = eps * np.eye(D)
    gradient = np.array([log_posterior(mean + e) - log_posterior(mean - e) for e in E]) / (2 * eps)
    f = lambda e, g: log_posterior(mean + e + g)
    hessian = np.array([[f(e, g) - f(e, -g) - f(-e, g) + f(-e, -g) for g in E] for e in E]) / (4 * eps**2)
    np.testing.assert_allclose(step.mean, mean - np.linalg.solve(hessian, gradient), rtol=1e-5)
    np.testing.assert_allclose(step.cov, -np.linalg.inv(hessian), rtol=1e-5, atol=1e-6)


def test_newton_steps_follow_the_scipy_densities():
    rng = np.random.default_rng(5)
    mean, cov, x, J = rng.normal(size=3), spd(rng, 3), rng.normal(size=3), rng.normal(size=(4, 3))
    bernoulli = lambda theta: scipy.stats.bernoulli(scipy.special.expit(x @ theta)).logpmf(1)
    check_newton(logistic_newton(mean, cov, x, 1.0), mean, cov, bernoulli)
    poisson = lambda theta: scipy.stats.poisson(np.exp(x @ theta)).logpmf(4)
    check_newton(poisson_newton(mean, cov, x, 4.0), mean, cov, poisson)
    softmax = lambda theta: scipy.stats.multinomial(1, scipy.special.softmax(J @ theta)).logpmf([0, 0, 1, 0])
    check_newton(softmax_newton(mean, cov, J, 2), mean, cov, softmax)


def test_two_data_have_four_segmentations():
    """Each written out: no change, change at 2, change at 1, change at both."""
    log_evidence = {(0, 1): -1.0, (0, 2): -2.5, (1, 1): -1.1, (1, 2): -2.7, (2, 2): -0.4}
    joint = np.array([0.81 * np.exp(-2.5), 0.09 * np.exp(-1.4), 0.09 * np.exp(-2.7), 0.01 * np.exp(-1.5)])
    got = enumerate_segmentations(lambda start, stop: log_evidence[start, stop], 0.1, 2)
    np.testing.assert_allclose(got.log_evidence, np.log(joint.sum()), **TIGHT)
    want = np.array([joint[1] + joint[3], joint[2], joint[0]]) / joint.sum()
    np.testing.assert_allclose(got.runlength, want, **TIGHT)


def test_fractions_solve_exactly():
    """A Hilbert matrix, whose inverse has whole numbers, and a system that needs a row exchange."""
    hilbert = [[Fraction(1, i + j + 1) for j in range(3)] for i in range(3)]
    eye = [[Fraction(int(i == j)) for j in range(3)] for i in range(3)]
    assert solve_exactly(hilbert, eye) == [[9, -36, 30], [-36, 192, -180], [30, -180, 180]]
    assert solve_exactly([[0, Fraction(2)], [Fraction(4), 0]], [[Fraction(1)], [Fraction(1)]]) == [
        [Fraction(1, 4)],
        [Fraction(1, 2)],
    ]


@pytest.mark.parametrize("delta", [2.0**-10, 2.0**-20, 2.0**-33])
def test_exact_update_of_the_ill_conditioned_example(delta):
    """H = [[1,1,1],[1,1,1+d]], R = d^2 I, P = I: the third variance in closed form, where floats have nothing left."""
    H = np.array([[1, 1, 1], [1, 1, 1 + delta]])
    got = exact_update(np.zeros(3), np.eye(3), H, delta**2 * np.eye(2), np.zeros(2))
    d = Fraction(delta)
    a, c, e = 3 + d**2, 3 + d, 2 + (1 + d) ** 2 + d**2
    left, right = 1, 1 + d
    explained = (left * left * e - 2 * left * right * c + right * right * a) / (a * e - c * c)
    np.testing.assert_allclose(got.cov[2, 2], float(1 - explained), rtol=1e-15)
    assert np.linalg.eigvalsh(got.cov).min() > -1e-15
