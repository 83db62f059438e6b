"""Intervals and places of forecasts, against scipy's distributions and a root finder that shares no code."""

import numpy as np
import pytest
import scipy.stats
from scipy.optimize import brentq

from filtax.estimators.intervals import Parts, interval, place


def mixtures(seed, C, rows=7):
    rng = np.random.default_rng(seed)
    freedom = np.where(rng.random((rows, C)) < 0.3, np.inf, rng.uniform(1.5, 60.0, (rows, C)))
    weight = rng.dirichlet(np.ones(C), rows)
    return Parts(weight, rng.normal(size=(rows, C)), np.exp(rng.normal(size=(rows, C))), freedom)


def cdf(parts, row, y):
    each = [
        scipy.stats.norm.cdf(y, m, s) if np.isinf(n) else scipy.stats.t.cdf(y, n, m, s)
        for m, s, n in zip(parts.location[row], parts.scale[row], parts.freedom[row], strict=True)
    ]
    return parts.weight[row] @ np.array(each)


@pytest.mark.parametrize("C", [1, 2, 5])
@pytest.mark.parametrize("level", [0.5, 0.9, 0.999])
def test_the_ends_of_the_interval_are_quantiles(C, level):
    parts = mixtures(C, C)
    for end, chance in zip(interval(parts, level), (0.5 - level / 2, 0.5 + level / 2), strict=True):
        for row, value in enumerate(end):
            want = brentq(lambda y, row=row, chance=chance: cdf(parts, row, y) - chance, -1e6, 1e6, xtol=1e-12)
            np.testing.assert_allclose(value, want, rtol=1e-5, atol=1e-6)
            assert abs(cdf(parts, row, value) - chance) < 2e-9


@pytest.mark.parametrize("C", [1, 3])
def test_place_and_density_are_those_of_scipy(C):
    parts = mixtures(10 + C, C)
    y = np.linspace(-3.0, 3.0, len(parts.weight))
    pit, density = place(parts, y)
    for row, value in enumerate(y):
        each = [
            scipy.stats.norm.logpdf(value, m, s) if np.isinf(n) else scipy.stats.t.logpdf(value, n, m, s)
            for m, s, n in zip(parts.location[row], parts.scale[row], parts.freedom[row], strict=True)
        ]
        np.testing.assert_allclose(density[row], scipy.special.logsumexp(each, b=parts.weight[row]), rtol=1e-10)
        np.testing.assert_allclose(pit[row], cdf(parts, row, value), rtol=1e-9)


def test_a_huge_freedom_is_gaussian():
    t = Parts(np.ones((1, 1)), np.zeros((1, 1)), np.ones((1, 1)), np.full((1, 1), 1e9))
    np.testing.assert_allclose(interval(t, 0.9)[1], scipy.stats.norm.ppf(0.95), rtol=1e-9)


def test_a_hypothesis_without_weight_does_not_count():
    parts = Parts(np.array([[1.0, 0.0]]), np.array([[0.0, 1e9]]), np.ones((1, 2)), np.full((1, 2), np.inf))
    np.testing.assert_allclose(interval(parts, 0.9)[1], scipy.stats.norm.ppf(0.95), rtol=1e-7)
