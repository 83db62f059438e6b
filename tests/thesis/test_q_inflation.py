import numpy as np
import pytest

from filtax.synthetic import piecewise_polynomial
from thesis import find
from thesis.q_inflation import Setting

pytestmark = [pytest.mark.x64, pytest.mark.nightly]
SMALL = Setting(streams=4, steps=40, q=(0.0, 0.1, 10.0), sizes=(20, 200), ensembles=3, ensemble_steps=4)
experiment = find("q-inflation")


@pytest.fixture(scope="module")
def small():
    return experiment.run(SMALL, 0, lambda share: None)


def kalman_errors(q, stream):
    """Forecast errors of the textbook recursion."""
    m, P, errors = np.zeros(3), np.eye(3), []
    for x, y in zip(stream.X, stream.y, strict=True):
        P = P + q * np.eye(3)
        errors.append(y - x @ m)
        K = P @ x / (x @ P @ x + 1.0)
        m, P = m + K * errors[-1], P - np.outer(K, x @ P)
    return np.array(errors)


def test_errors_are_those_of_the_kalman_filter(small):
    for i in range(SMALL.streams):
        stream = piecewise_polynomial(SMALL.steps, key=i)
        expected = [np.sqrt(np.mean(kalman_errors(q, stream) ** 2)) for q in SMALL.q]
        np.testing.assert_allclose(small.arrays["rmse_used"][:, i], expected, rtol=1e-9)


def test_the_ensemble_comes_nearer(small):
    few, many = small.arrays["enkf"].mean(axis=1)
    assert 0 < many < few
