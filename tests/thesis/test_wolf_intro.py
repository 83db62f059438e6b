import numpy as np
import pytest
from scipy import stats

from thesis import find
from thesis.wolf_intro import Setting, _stream

pytestmark = pytest.mark.x64
experiment = find("wolf-intro")


@pytest.fixture(scope="module")
def small():
    return experiment.run(Setting(grid=5, updates=20, runs=12), 0, lambda share: None)


def wolf(y, c):
    """Textbook recursion of the moving object, each datum weighed by IMQ; the Kalman filter for c = inf."""
    F, H = np.eye(4) + np.eye(4, k=2), np.eye(2, 4)
    m, P, means, covs = np.array([0.0, 0.0, 1.0, 1.0]), np.eye(4), [], []
    for datum in y:
        m, P = F @ m, F @ P @ F.T + 0.1 * np.eye(4)
        e = datum - H @ m
        w2 = 1.0 / (1.0 + e @ e / c**2)
        P = np.linalg.inv(np.linalg.inv(P) + w2 * H.T @ H)
        m = m + w2 * P @ H.T @ e
        means.append(m)
        covs.append(P)
    return np.array(means), np.array(covs)


@pytest.mark.parametrize(("label", "c"), [("plain", np.inf), ("robust", 2.0)])
def test_tracks_are_those_of_the_textbook(small, label, c):
    means, covs = wolf(small.arrays["y"], c)
    np.testing.assert_allclose(small.arrays[f"{label}_mean"], means, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(small.arrays[f"{label}_cov"], covs, rtol=1e-9, atol=1e-9)
    assert small.arrays["wrong"].sum() == 3


def test_errors_are_the_textbooks_with_an_interval_over_runs(small):
    """The run that is drawn, one of the others made here, and the interval of another library."""
    key = int(np.random.SeedSequence((0, 1)).generate_state(11)[4])
    other = _stream(20, key)
    rmse = lambda means, theta: np.sqrt(np.mean((means - theta)[:, 0] ** 2))
    for label, c in (("plain", np.inf), ("robust", 2.0)):
        found = small.numbers["rmse"][label]
        assert found[0] == pytest.approx(rmse(wolf(small.arrays["y"], c)[0], small.arrays["theta"]), rel=1e-9)
        assert found[5] == pytest.approx(rmse(wolf(other["y"], c)[0], other["theta"]), rel=1e-9)
    assert small.numbers["rmse"]["observed"][5] == pytest.approx(rmse(other["y"], other["theta"][:, :2]), rel=1e-9)
    assert len(set(small.numbers["rmse"]["observed"])) == 12
    (_, *rows) = small.tables[1].rows
    name, shown, middle, ends = rows[0]
    values = small.numbers["rmse"]["robust"]
    assert (name, shown, middle) == ("WoLF-IMQ", values[0], np.median(values))
    assert ends == pytest.approx(tuple(stats.quantile_test(values).confidence_interval()))


def test_influences_over_the_square(small):
    """KL between the two posteriors of the textbook, at one corner."""
    clean = small.arrays["clean"]
    wrong = clean.copy()
    wrong[-1] += (5.0, -5.0)
    (m, P), (n, _) = wolf(wrong, np.inf), wolf(clean, np.inf)
    gap = (m - n)[-1]
    expected = 0.5 * gap @ np.linalg.solve(P[-1], gap)
    assert small.arrays["square_KF"][0, -1] == pytest.approx(expected, rel=1e-8)
    assert (small.arrays["square_KF"][2, 2], small.arrays["square_IMQ"][2, 2]) == pytest.approx((0, 0), abs=1e-12)
