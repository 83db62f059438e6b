"""Segments of parabolas: hypotheses written out in numpy, and the rules of the claims."""

import numpy as np
import pytest

from filtax.synthetic import linked_parabolas
from thesis import Result, find, reproduce, segments

pytestmark = pytest.mark.x64


@pytest.fixture(scope="module")
def stream():
    made = linked_parabolas(3, key=4, hazard=0.06)
    return made.X[:, 0], made.y


def by_hand(x, y, keep, matched):
    """RL[K] with a frame for each hypothesis: forecasts, and how long ago the most probable segment began."""
    start = (np.zeros(3), np.eye(3))
    bank, said, runs = [(1.0, *start, 0, 1)], [], []  # weight, mean, covariance, where it began, run length
    for t in range(len(x)):
        features = lambda began, t=t: np.array([1.0, x[t] - x[began], (x[t] - x[began]) ** 2])
        said.append(sum(w * features(began) @ m for w, m, _, began, _ in bank))
        born = start
        if matched:
            mean = sum(w * m for w, m, *_ in bank)
            born = (mean, sum(w * (P + np.outer(m - mean, m - mean)) for w, m, P, *_ in bank))
        grown = [(0.99 * w, m, P, began, run) for w, m, P, began, run in bank] + [(0.01, *born, t, 0)]
        bank = []
        for w, m, P, began, run in grown:
            f = features(began)
            S = f @ P @ f + 0.04
            weight = w * np.exp(-0.5 * (y[t] - f @ m) ** 2 / S) / np.sqrt(S)
            gain = P @ f / S
            bank.append((weight, m + gain * (y[t] - f @ m), P - np.outer(gain, f @ P), began, run))
        bank = sorted(bank, key=lambda each: -each[0])[:keep]
        runs.append(bank[0][-1])
        total = sum(each[0] for each in bank)
        bank = [(w / total, m, P, began, run + 1) for w, m, P, began, run in bank]
    return np.array(said), np.array(runs)


@pytest.mark.parametrize(("name", "keep", "matched"), [("RL[3]-PR", 3, False), ("RL[2]-MMPR", 2, True)])
def test_forecasts_and_run_lengths_are_those_written_out(stream, name, keep, matched):
    x, y = stream
    said, runs = segments._forecasts(name, x[None], y[None])
    want, ages = by_hand(x, y, keep, matched)
    np.testing.assert_allclose(said[0], want, rtol=1e-6, atol=1e-8)
    np.testing.assert_array_equal(runs[0], ages)


def test_in_one_frame_a_matched_reset_changes_nothing(stream):
    x, y = stream
    static, _ = segments._forecasts("C-Static", x[None], y[None])
    fixed, _ = segments._forecasts("RL[3]-MMPR, one frame", x[None], y[None])
    np.testing.assert_allclose(fixed, static, rtol=1e-7, atol=1e-8)
    features = np.stack([np.ones_like(x), x - x[0], (x - x[0]) ** 2], axis=1)
    past = features[:-1]
    ridge = np.linalg.solve(past.T @ past / 0.04 + np.eye(3), past.T @ y[:-1] / 0.04)
    np.testing.assert_allclose(static[0, -1], features[-1] @ ridge, rtol=1e-8)


def test_data_after_the_end_do_not_count():
    said, y = np.array([[1.0, 2.0, 99.0], [0.0, 0.0, 3.0]]), np.zeros((2, 3))
    there = np.array([[True, True, False], [True, True, True]])
    np.testing.assert_allclose(segments._rmse(said, y, there), [np.sqrt(2.5), np.sqrt(3.0)])


def made(oupr, static, pr, mmpr, more, last, counts):
    luck = np.random.default_rng(0).normal(size=(6, 40)) * 1e-3
    names = ["RL[1]-OUPR", "C-Static", "RL[1]-PR", "RL[1]-MMPR", "RL[5]-PR", "last value"]
    arrays = dict(zip(names, luck + np.array([oupr, static, pr, mmpr, more, last])[:, None], strict=True))
    found = dict(zip(("RL[1]-PR", "RL[1]-MMPR", "RL[1]-OUPR"), counts, strict=True))
    arrays |= {f"{name}, count": np.full(40, count) for name, count in found.items()}
    grid = np.linspace(0, 1, 9)
    arrays |= {"x": grid, "y": grid, "truth": grid, "boundaries": np.array([3]), "lengths": np.full(40, 9)}
    arrays |= {f"{name}, sample{runs}": grid for name in found for runs in ("", " runs")}
    return Result({"methods": names[:-1], "keeps": [1, 5]}, arrays)


@pytest.mark.parametrize(
    ("result", "texts"),
    [
        (made(0.3, 1, 1.2, 1.1, 0.5, 0.5, (20, 5, 2)), ("holds", "holds")),
        (made(0.3, 1, 0.2, 1.1, 0.5, 0.5, (20, 9, 2)), ("does not hold", "does not hold")),
        (made(0.3, 1, 1.2, 1.1, 0.2, 0.5, (4, 5, 2)), ("holds only if rivals keep one hypothesis", "does not hold")),
        (
            made(0.3, 1, 1.2, 1.1, 0.2, 0.2, (20, 5, 4)),
            ("holds only if rivals keep one hypothesis and the last value is omitted", "does not hold"),
        ),
    ],
)
def test_rules_and_figures(result, texts):
    assert tuple(claim.decide(result).text for claim in find("segments").claims) == texts
    assert len(segments.draw_forecasts(result).axes) == 4 + 3
    assert len(segments.draw_counts(result).axes) == 1


@pytest.mark.parametrize(
    ("errors", "counts", "says", "differ"),
    [
        (
            (1.2, 1.1, 0.3),
            (20, 5, 2),
            "by error RL[1]-OUPR, RL[1]-MMPR, RL[1]-PR; by count RL[1]-MMPR, RL[1]-OUPR",
            True,
        ),
        ((1.2, 1.1, 0.3), (20, 6, 2), "by count RL[1]-MMPR as RL[1]-OUPR, RL[1]-PR", False),  # 4 ± 2, both
        ((1.2, 0.3, 0.5), (20, 4, 3), "by count RL[1]-MMPR, RL[1]-OUPR, RL[1]-PR", False),
        ((1.2, 0.3, 0.3), (20, 6, 3), "by error RL[1]-MMPR as RL[1]-OUPR, RL[1]-PR", False),
        ((0.2, 0.5, 0.3), (20, 6, 2), "by count RL[1]-MMPR as RL[1]-OUPR, RL[1]-PR", True),
    ],
)
def test_a_tie_is_no_order(errors, counts, says, differ):
    """Of forecasts and counts: only two methods of which each is ahead in one of them are ranked otherwise."""
    names = ("RL[1]-PR", "RL[1]-MMPR", "RL[1]-OUPR")
    arrays = {name: np.full(40, error) for name, error in zip(names, errors, strict=True)}
    arrays |= {f"{name}, count": np.full(40, count) for name, count in zip(names, counts, strict=True)}
    verdict = find("segments").claims[1].decide(Result({}, arrays))
    assert says in verdict.evidence
    assert verdict.text == ("holds" if differ else "does not hold")


def test_a_tie_is_not_the_lowest_and_noise_is_not_a_tie():
    result = made(0.3, 1, 0.3, 1.1, 0.5, 0.5, (20, 5, 2))
    verdict = find("segments").claims[0].decide(result)
    assert verdict.text == "does not hold"
    assert "RL[1]-PR 0.3" in verdict.evidence.split("alike within 10 %")[0]
    wide = {**result.arrays, "RL[1]-PR": 0.3 + np.random.default_rng(1).normal(size=40)}
    assert find("segments").claims[0].decide(Result(result.numbers, wide)).text == "not decided at this size"


@pytest.mark.nightly
def test_verdicts_of_the_quick_size(tmp_path):
    (found,) = reproduce(["segments"], out=tmp_path)
    assert [claim["verdict"] for claim in found["claims"]] == ["does not hold", "does not hold"]
    assert "alike within 10 %" in found["claims"][0]["evidence"]  # with RL[1]-PR: not below it, nor above
