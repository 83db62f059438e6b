"""The short form of `make soak`: 2e5 rows in a process of their own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import soak

pytestmark = pytest.mark.x64
SCRIPT = Path(soak.__file__)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
@pytest.mark.parametrize("names", [["KF", "RL[50]"], pytest.param(["LoFi"], marks=pytest.mark.nightly)])
def test_memory_and_programs_stay_as_they_are(names):
    environment = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}  # as a user has it
    environment["PYTHONPATH"] = os.pathsep.join([str(SCRIPT.parents[1] / "src"), str(SCRIPT.parent)])
    arguments = [sys.executable, str(SCRIPT), "200000", *names]
    done = subprocess.run(arguments, env=environment, capture_output=True, text=True, timeout=600, check=False)
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one["method"] for one in told] == names, done.stderr
    assert [one["broken"] for one in told] == [[]] * len(names), told
    assert done.returncode == 0


def test_pace_sees_a_slow_end_through_noise():
    """Half of the chunks are disturbed; without a trend the ends agree to a few per cent, with one they do not."""
    rng = np.random.default_rng(0)
    steady = 1.0 + 0.02 * rng.random(4000) + np.where(rng.random(4000) < 0.5, rng.exponential(2.0, 4000), 0.0)
    for trend, low, high in ((0.0, 0.98, 1.02), (0.2, 1.12, 1.25)):
        tenths = soak.pace(steady + trend * np.linspace(0.0, 1.0, 4000))
        assert len(tenths) == 10
        assert low < tenths[-1] / tenths[0] < high
    assert soak.pace([2.0]) == [2.0]


def test_the_bars_can_break():
    good = {"method": "KF", "rows": 10**7, "growth_kib": 9.0, "compiled_later": 0, "slower": 1.0}
    good |= {"aged": 1.0, "nis": 1.0, "refused": 0, "counted": True, "finite": True}
    assert soak.broken(good) == []
    bad = {"growth_kib": 1025.0, "compiled_later": 1, "slower": 1.2, "aged": 1.11, "nis": 1.01, "counted": False}
    for name, value in bad.items():
        assert soak.broken({**good, name: value}) == [name]


def test_a_process_that_ages_is_seen_through_noise():
    """A fifth slower at the end shows as about that; a few chunks that took ten times as long do not."""
    rng = np.random.default_rng(0)
    steady = 1.0 + 0.05 * rng.random(5000) + np.where(rng.random(5000) < 0.1, 10.0, 0.0)
    assert abs(soak.aged(steady) - 1.0) < 0.02
    assert soak.aged(np.r_[steady[:4500], 1.2 * steady[4500:]]) > 1.15
    assert soak.aged([1.0]) == 1.0
