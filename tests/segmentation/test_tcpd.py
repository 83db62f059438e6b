"""The Turing change-point set: a few series every day, the whole set against its bars every night."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks import tcpd
from filtax.evaluate import covering, f1
from filtax.segmentation import ONLINE, RETROSPECTIVE, detect, segment

FOLDER = Path(os.environ.get("FILTAX_DATA", "absent")) / "tcpd"
pytestmark = [
    pytest.mark.x64,
    pytest.mark.skipif(
        not FOLDER.is_dir(),
        reason="the Turing change-point set is not at hand: name the folder of data sets in FILTAX_DATA",
    ),
]


@pytest.fixture(scope="module")
def series():
    return {one.name: one for one in tcpd.load(FOLDER)}


def test_the_dam_at_aswan(series):
    """1899 is the 29th year; all who saw a change saw this one."""
    nile = series["nile"]
    assert segment(nile.y).changes == segment(nile.y).best == [28]
    alarms = detect(nile.y)
    assert alarms.starts == [28]
    assert alarms.delays[0] < 60  # it waits long to be sure: the change comes before the unit of the stream is known
    assert f1(nile.told, [28]) == 1.0


def test_an_epidemic_that_comes_back_is_no_change(series):
    measles = series["measles"]
    found = segment(measles.y)
    assert found.period == pytest.approx(104.4, rel=0.03)  # two years of weeks
    assert found.changes == []


def test_missing_years_are_passed_over(series):
    coal = series["uk_coal_employ"]
    assert np.isnan(coal.y).sum() == 2
    assert segment(coal.y).changes
    assert covering(coal.told, detect(coal.y).starts, len(coal.y)) > 0.4


@pytest.fixture(scope="module")
def neighbourhood(series):
    return tcpd.neighbours(list(series.values()), say=lambda line: None)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("row", "task", "bar"),
    [
        ("default", "marginals", (0.75, 0.68)),
        ("default", "best", (0.75, 0.68)),
        ("default", "online", (0.68, 0.60)),
        ("median", "marginals", (0.72, 0.65)),
        ("median", "best", (0.72, 0.65)),
        ("least", "marginals", (0.72, 0.65)),
        ("least", "online", (0.68, 0.60)),
    ],
)
def test_the_32_real_series_meet_the_bars(neighbourhood, row, task, bar):
    assert np.all(np.array(neighbourhood[row][task]) >= bar)


@pytest.mark.nightly
def test_series_that_chose_nothing_do_better_than_no_change(series):
    """Made series and several at once: neither served to choose a number."""
    held_out = [s for s in series.values() if s.name.startswith("quality_control") or s.y.shape[1] > 1]
    results = {one.name: tcpd.judge(one, RETROSPECTIVE, ONLINE) for one in held_out}
    means = tcpd.averages(results, list(results))
    assert np.all(np.array(means["marginals"]) > means["no change"])
