"""The regression in one dimension: filters against plain numpy, figures and predicates on made-up runs."""

import numpy as np
import pytest

from thesis import find
from thesis.mlp_1d import RUNS, Setting, _data, _method, _rmedse, _starts, _tail
from thesis.online_methods import learner

MLP = find("mlp-1d")


def extended_kalman(theta, P, x, y, c=np.inf):
    """Forecasts of the extended filter of the formula with IMQ trust, by the textbook."""
    means = []
    for u, datum in zip(x, y, strict=True):
        P = P + 1e-4 * np.eye(4)
        arc = theta[2] * np.pi * u
        mean = theta[0] * u - theta[1] * np.cos(arc) + theta[3] * u**3
        H = np.array([u, -np.cos(arc), theta[1] * np.sin(arc) * np.pi * u, u**3])
        K = P @ H / (H @ P @ H + 1 + (datum - mean) ** 2 / c**2)
        theta, P = theta + K * (datum - mean), P - np.outer(K, H @ P)
        means.append(mean)
    return means


@pytest.mark.x64
def test_wolf_on_the_formula_is_the_textbooks():
    data = _data(Setting(trials=1, steps=40), 0)
    starts = np.asarray(_starts("true", [0, 1], 3))
    x, y = (np.concatenate([data[run][part] for run in RUNS[:2]]) for part in ("x", "y"))
    chosen = [{"p": 0.5, "c": 4.0}, {"p": 0.2, "c": 9.0}]
    mean, trust = learner(_method("true", "WoLF-IMQ"))(chosen, starts, x[..., None], y)
    for i, at in enumerate(chosen):
        expected = extended_kalman(starts[i], at["p"] * np.eye(4), x[i], y[i], at["c"])
        np.testing.assert_allclose(mean[i], expected, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(trust[i] ** 2, 1 / (1 + (y[i] - mean[i]) ** 2 / at["c"] ** 2), rtol=1e-6)


def test_streams_have_the_laws_of_the_text_and_of_the_published_runs():
    data = _data(Setting(trials=2, steps=4000), 0)
    assert (np.diff(data["sorted"]["x"], axis=1) > 0).all()
    for run, share, reach, noise in (("sorted", 0.05, 40, 3), ("unsorted", 0.05, 40, 3), ("published", 0.1, 100, 9)):
        of = data[run]
        np.testing.assert_allclose(of["outliers"].mean(), share, rtol=0.2)
        np.testing.assert_allclose(np.abs(of["y"][of["outliers"]]).max(), reach, rtol=0.02)
        np.testing.assert_allclose(np.var((of["y"] - of["truth"])[~of["outliers"]]), noise, rtol=0.1)


def test_errors_are_medians_and_what_diverged_counts():
    np.testing.assert_allclose(_rmedse(np.array([[1.0, -2.0, 9.0], [np.nan, np.inf, 1.0]])), [2.0, np.inf])
    data = {"x": np.array([[0.0, 2.5, -2.9, 3.0]]), "truth": np.zeros((1, 4))}
    assert _tail(np.array([[100.0, 1.0, -3.0, 2.0]]), data) == [2.0]


@pytest.mark.nightly
def test_the_quick_size():
    result = MLP.run(MLP.sizes["quick"], 0, lambda share: None)
    assert [claim.decide(result).text for claim in MLP.claims] == ["does not hold", "does not hold"]
    published = {name: np.mean(of) for name, of in result.numbers["rmedse"]["MLP"]["published"].items()}
    for name, mean in {"EKF": 7.777, "OGD": 10.216, "WoLF-IMQ": 4.315, "WoLF-TMD": 4.782}.items():
        np.testing.assert_allclose(published[name], mean, rtol=0.1)
