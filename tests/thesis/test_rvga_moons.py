import numpy as np
import pytest

from thesis import find
from thesis.rvga_moons import Setting

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
