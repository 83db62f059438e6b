import numpy as np
import pytest

from filtax.synthetic import piecewise_polynomial
from thesis import Result, find
from thesis.q_inflation import Setting

pytestmark = [pytest.mark.x64, pytest.mark.nightly]
SMALL = Setting(streams=4, steps=40, q=(0.0, 0.1, 10.0), sizes=(20, 200), ensembles=3, ensemble_steps=4)
experiment = find("q-inflation")
shape, tends = (claim.decide for claim in experiment.claims)


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


def test_every_figure_is_drawn(small):
    for draw in experiment.figures.values():
        assert draw(small).axes


def made_up(curve, q=(0.0, 0.1, 1.0), streams=60):
    best = int(np.argmin(curve))
    found = {"streams": streams, "share_changed": 0.9, "best": q[best], "interior": 0 < best < 2, "best_of_all": 0.0}
    found |= {"least": min(curve), "none": curve[0], "most": curve[-1]}
    return Result({"used": found, "printed": found})


@pytest.mark.parametrize(
    ("curve", "text"),
    [
        ((2.0, 1.0, 1.2), "holds"),
        ((1.1, 1.0, 1.2), "does not hold"),
        ((2.0, 1.0, 1.1), "does not hold"),
        ((3.0, 2.0, 1.0), "does not hold"),
    ],
)
def test_a_bowl_has_two_sides(curve, text):
    assert shape(made_up(curve)).text == text
    assert shape(made_up(curve, streams=20)).text == "not decided at this size"


@pytest.mark.parametrize(("slope", "text"), [(-0.5, "holds"), (-0.45, "holds"), (-0.3, "does not hold")])
def test_the_slope_decides(slope, text):
    wide = Result({"slope": slope}, {"sizes": np.array([100, 100_000])})
    assert tends(wide).text == text
    assert tends(Result({"slope": slope}, {"sizes": np.array([100, 1000])})).text == "not decided at this size"
