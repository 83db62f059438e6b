import numpy as np
import pytest

from filtax.datasets import whereabouts
from thesis import find, reproduce
from thesis.ewma import Setting

pytestmark = pytest.mark.x64
experiment = find("ewma")
(robust,) = (claim.decide for claim in experiment.claims)
needs_data = pytest.mark.skipif(
    whereabouts("djia") == "absent",
    reason="the Dow Jones set is not at hand: name the folder of data sets in FILTAX_DATA",
)


@pytest.fixture(scope="module")
def found():
    return experiment.run(Setting(), 0, lambda share: None)


@needs_data
def test_averages_are_those_of_the_formulas(found):
    y = found.arrays["y"]
    weights = 0.095 * 0.905 ** np.arange(y.size)
    np.testing.assert_allclose(found.arrays["ewma"], np.convolve(y, weights)[: y.size], atol=1e-12)
    m, s = 0.0, 1.0
    for value, level in zip(y, found.arrays["wolf"], strict=True):
        s += 0.01
        noise = 1.0 + (value - m) ** 2 / 0.05**2
        m, s = (noise * m + s * value) / (s + noise), 1.0 / (1.0 / s + 1.0 / noise)
        assert level == pytest.approx(m, abs=1e-12)


@needs_data
def test_the_wrong_data_are_where_the_thesis_shows_them(found):
    days = found.arrays["dates"][found.arrays["wrong"]]
    assert [str(day)[:7] for day in days] == ["2020-12", "2022-12"]
    assert found.arrays["y"][found.arrays["wrong"]].tolist() == [-0.5, 0.5]
    assert found.numbers["steady"] == pytest.approx((-0.01 + np.sqrt(0.0401)) / 2, abs=1e-12)


@needs_data
def test_the_verdict_and_the_figures(found):
    assert robust(found).text == "holds only if the crash of 2020 counts as an outlier event too"
    for draw in experiment.figures.values():
        assert draw(found).axes


@needs_data
@pytest.mark.nightly
def test_the_report_needs_the_data_alone(tmp_path):
    (found,) = reproduce(["ewma"], out=tmp_path)
    assert found["claims"][0]["verdict"].startswith("holds only if")
