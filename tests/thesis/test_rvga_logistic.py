from unittest import mock

import numpy as np
import pytest

from thesis import find, rvga_logistic
from thesis.rvga_logistic import Setting

pytestmark = pytest.mark.x64
experiment = find("rvga-logistic")
contains, near = (claim.decide for claim in experiment.claims)


@pytest.fixture(scope="module")
def small():
    setting = Setting(streams=2, steps=60, samples=20, sampled_steps=4, linear_steps=10)
    with mock.patch.object(rvga_logistic, "ROUNDS", (1, 4)):  # few compilations
        return experiment.run(setting, 0, lambda share: None)


def test_the_first_label_against_a_fixed_point_by_quadrature(small):
    """mu = s x, Sigma = I - b x xᵀ: the nearest Gaussian moves along x alone, so two numbers are to be found.

    Four iterations come within a thousandth of it.
    """
    x, y = small.arrays["X"][0], small.arrays["y"][0]
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    weights = weights / weights.sum()
    size, m, v = x @ x, 0.0, x @ x
    for _ in range(500):
        p = 1 / (1 + np.exp(-(m + np.sqrt(v) * nodes)))
        score, curvature = y - weights @ p, weights @ (p * (1 - p))
        m, v = 0.5 * m + 0.5 * size * score, size / (1 + curvature * size)
    np.testing.assert_allclose(small.arrays["mean"][0], x * m / size, rtol=1e-3)
    np.testing.assert_allclose(small.arrays["sd"][0] ** 2, 1 - (1 - v / size) * x**2 / size, rtol=1e-3)


def test_the_batch_estimate_is_a_stationary_point(small):
    X, y, theta = (small.arrays[name] for name in ("X", "y", "batch"))
    np.testing.assert_allclose(X.T @ (y - 1 / (1 + np.exp(-X @ theta))), theta, atol=1e-9)


def test_linear_regression_is_contained_and_the_printed_form_does_not(small):
    assert contains(small).text == "holds"
    assert small.numbers["linear"]["printed"][1] > 0.1
    for draw in experiment.figures.values():
        assert draw(small).axes
