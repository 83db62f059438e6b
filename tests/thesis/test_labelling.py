"""Moving class boundaries: errors against a filter in plain numpy, the sweep against RL[K] itself, and the rules."""

import numpy as np
import pytest
from scipy import stats

from filtax import method
from filtax.models import bernoulli, linear
from filtax.synthetic import jumping_labels, rotating_labels
from thesis import labelling, reproduce

STEPS = 60
SMALL = labelling.Setting(trials=10, steps=STEPS, budget=2, swept=10, keeps=(2, 4), hazards=(0.1, 0.4))


@pytest.fixture(scope="module")
def streams():
    return labelling._streams(jumping_labels, 10, STEPS, (0, 1))


def static():
    return method("LG(form=covariance)+C-ACI(q=0.01)", model=linear(likelihood=bernoulli()))


def missed_by_hand(X, y, q):
    """The extended Kalman filter of a logistic regression whose parameters walk, in numpy."""
    mean, cov, missed = np.zeros(2), np.eye(2), 0
    for x, label in zip(X, y, strict=True):
        cov = cov + q * np.eye(2)
        p = 1 / (1 + np.exp(-mean @ x))
        missed += (p > 0.5) != label
        gain = cov @ x / (1 + p * (1 - p) * x @ cov @ x)
        mean = mean + gain * (label - p)
        cov = cov - p * (1 - p) * np.outer(gain, x @ cov)
    return missed / len(y)


def test_errors_are_those_of_a_filter_in_numpy(streams):
    X, Y, _ = streams
    ours = labelling._errors([labelling._build("C-ACI", q) for q in (0.01, 0.5)], X, Y)
    theirs = [[missed_by_hand(x, y, q) for x, y in zip(X, Y, strict=True)] for q in (0.01, 0.5)]
    np.testing.assert_allclose(ours, theirs, atol=1e-6)


def test_the_sweep_is_that_of_bounded_run_lengths(streams):
    X, Y, _ = streams
    swept = labelling.sweep_errors((2, 4), (0.1, 0.4), X, Y, lambda share: None)
    plain = [
        method(f"LG(form=covariance)+RL[2]-PR(hazard={h})", model=linear(likelihood=bernoulli())) for h in (0.1, 0.4)
    ]
    np.testing.assert_allclose(swept[0], labelling._errors(plain, X, Y), atol=1e-9)
    assert np.any(swept[0] != swept[1])


def test_a_small_run_and_its_baselines(monkeypatch):
    monkeypatch.setattr(labelling, "FILTERS", ("RL[1]-OUPR",))
    monkeypatch.setattr(labelling, "_build", lambda name, number: static())  # one filter for all: few compilations
    shares = []
    result = labelling.compare(SMALL, 0, shares.append, rotating_labels, {"RL[1]-OUPR": (None, 0.5)})
    _, Y, truth = labelling._streams(rotating_labels, 10, STEPS, (0, 1))
    last = np.mean(np.concatenate([np.zeros((10, 1)), Y[:, :-1]], axis=1) != Y, axis=1)
    np.testing.assert_allclose(result.arrays["last label"], last)
    np.testing.assert_allclose(result.arrays["true parameters"], np.mean((truth > 0.5) != Y, axis=1))
    majority = [np.mean([(y[:t].mean() > 0.5 if t else False) != y[t] for t in range(STEPS)]) for y in Y]
    np.testing.assert_allclose(result.arrays["majority"], majority)
    assert set(result.numbers["chosen"]) == set(labelling.FILTERS)
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1.0)
    grid = result.tables[1]
    assert grid.columns == ("K", "0.100", "0.100, 95 %", "0.400", "0.400, 95 %")
    errors = result.arrays["sweep"][1, 1]
    assert grid.rows[1][0] == 4
    assert grid.rows[1][3] == pytest.approx(errors.mean())
    ends = stats.t.interval(0.95, errors.size - 1, errors.mean(), stats.sem(errors))
    assert grid.rows[1][4] == pytest.approx(ends, rel=1e-6)
    assert len(labelling.draw_errors(result).axes) == 1
    assert len(labelling.draw_sweep(result).axes[0].lines) == 3


@pytest.mark.nightly
def test_verdicts_and_bars_of_the_quick_size(tmp_path):
    turning, jumping = reproduce(["periodic-drift", "drift-jumps"], out=tmp_path)
    assert [claim["verdict"] for claim in turning["claims"]] == ["holds", "holds"]
    assert turning["tables"][0]["rows"][0][2] <= 0.14
    assert [claim["verdict"] for claim in jumping["claims"]] == ["holds", "not decided at this size"]
