import numpy as np
import pytest

from thesis import Result, find
from thesis.rvga_moons import Setting, shape_of_growth

pytestmark = [pytest.mark.x64, pytest.mark.nightly]
experiment = find("rvga-moons")
(plateaus,) = (claim.decide for claim in experiment.claims)


@pytest.fixture(scope="module")
def small():
    return experiment.run(Setting(seeds=2, steps=12, sampled_steps=6, samples=4), 0, lambda share: None)


def test_curves_are_means_of_zeros_and_ones(small):
    counts = small.arrays["rule"] * (np.arange(12) + 1)
    np.testing.assert_allclose(counts, counts.round(), atol=1e-9)
    assert (np.diff(counts, axis=1, prepend=0) > -1e-9).all()
    assert small.arrays["mean"].shape == (6, 81)
    assert np.isfinite(small.arrays["mean"]).all()
    assert plateaus(small).text == "not decided at this size"
    for draw in experiment.figures.values():
        assert draw(small).axes


def curve(*parts):
    """Straight pieces (length, slope), from one half."""
    return 0.5 + np.cumsum(np.concatenate([np.full(length, slope) for length, slope in parts]))


@pytest.mark.parametrize(
    ("parts", "shaped"),
    [
        ([(60, 2e-3), (120, 0.0), (60, 1e-3)], True),
        ([(60, 2e-3), (120, -1e-4), (60, 1e-3)], True),
        ([(60, 2e-3), (90, 0.0), (60, 1e-3)], False),  # too short
        ([(60, 2e-3), (120, 0.0), (60, 3e-4)], False),  # no second rise
        ([(60, 3e-4), (120, 0.0), (60, 1e-3)], False),  # no first
        ([(60, 2e-3), (120, 2e-4), (60, 1e-3)], False),  # not flat
        ([(120, 0.0), (60, 2e-3), (60, 1e-3)], False),  # flat at first
        ([(60, 2e-3), (30, -1e-3), (40, 1e-3), (30, -1e-3), (60, 0.0)], False),  # the second rise is in the plateau
    ],
)
def test_rise_plateau_rise(parts, shaped):
    assert shape_of_growth(curve(*parts)) is shaped


@pytest.mark.parametrize(
    ("yes", "count", "text"),
    [
        (0, 20, "does not hold"),
        (7, 20, "holds only if the seed is right: 35% of them are"),
        (19, 20, "holds"),
        (5, 5, "not decided at this size"),
    ],
)
def test_the_share_of_seeds_decides(yes, count, text):
    found = {"shaped": [True] * yes + [False] * (count - yes), "share": yes / count, "final": [0.9] * count}
    assert plateaus(Result({"rule": found, "samples": found})).text == text
