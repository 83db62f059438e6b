"""The regression in one dimension: filters against plain numpy, figures and predicates on made-up runs."""

import numpy as np
import pytest

from thesis import Result, find
from thesis.mlp_1d import METHODS, RUNS, Setting, _data, _method, _rmedse, _starts, _tail
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


LEVEL = {"EKF": 3.0, "EKF-B": 2.0, "EKF-IW": 1.0, "OGD": 4.0, "WoLF-IMQ": 1.0, "WoLF-TMD": 2.0}


def made_up(part="", model="", name="", factor=1.0, slow=2.0, inlier=0.5):
    rng = np.random.default_rng(0)
    noise = 0.01 * rng.standard_normal(40)
    levels = {
        "rmedse": {"MLP": dict(LEVEL), "true": LEVEL | {"WoLF-TMD": 1.0}},
        "tail": {"true": dict(LEVEL) | {"WoLF-TMD": 1.0}},
    }
    if part:
        levels[part][model][name] *= factor
    tails = np.where(noise >= np.sort(noise)[-3], 0.005, 0.0)  # EKF-IW has the longer ones
    make = lambda of: {n: v * (1 + noise) + (tails if n == "EKF-IW" else 0) for n, v in of.items()}
    numbers: dict = {
        p: {m: {run: make(of) for run in RUNS} for m, of in models.items()} for p, models in levels.items()
    }
    numbers["times"] = {"EKF-IW": [slow] * 5, "WoLF-IMQ": [1.0] * 5}
    numbers["inlier"] = {f"true {run}": inlier for run in RUNS}
    x = np.linspace(-3, 3, 9)
    arrays = {f"{run} {p}": x for run in RUNS for p in ("x", "y", "truth")}
    arrays |= {f"{m} {run} {n}": x for m in ("MLP", "true") for run in RUNS for n in METHODS}
    return Result(numbers, arrays)


@pytest.mark.parametrize(
    ("claim", "change"),
    [
        (0, {"part": "rmedse", "model": "MLP", "name": "WoLF-IMQ", "factor": 2.5}),
        (0, {"part": "rmedse", "model": "MLP", "name": "EKF-IW", "factor": 2.5}),
        (0, {"part": "rmedse", "model": "MLP", "name": "OGD", "factor": 0.1}),
        (0, {"slow": 1.0}),
        (0, {"slow": 3.0}),
        (1, {"part": "rmedse", "model": "true", "name": "WoLF-TMD", "factor": 1.3}),
        (1, {"part": "rmedse", "model": "true", "name": "EKF-IW", "factor": 0.8}),
        (1, {"part": "tail", "model": "true", "name": "EKF", "factor": 0.4}),
        (1, {"part": "tail", "model": "true", "name": "OGD", "factor": 0.3}),
        (1, {"inlier": 0.9}),
    ],
)
def test_each_part_of_a_claim_can_fail(claim, change):
    decide = MLP.claims[claim].decide
    assert decide(made_up()).text == "holds"
    assert decide(made_up(**change)).text == "does not hold"


@pytest.mark.nightly
def test_the_quick_size():
    result = MLP.run(MLP.sizes["quick"], 0, lambda share: None)
    assert [claim.decide(result).text for claim in MLP.claims] == ["does not hold", "does not hold"]
    published = {name: np.mean(of) for name, of in result.numbers["rmedse"]["MLP"]["published"].items()}
    for name, mean in {"EKF": 7.777, "OGD": 10.216, "WoLF-IMQ": 4.315, "WoLF-TMD": 4.782}.items():
        np.testing.assert_allclose(published[name], mean, rtol=0.1)
