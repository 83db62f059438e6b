"""The short form of `make soak`: 2e5 rows in a process of their own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import soak

pytestmark = pytest.mark.x64
SCRIPT = Path(soak.__file__)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
def test_memory_and_programs_stay_as_they_are():
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(SCRIPT.parents[1] / "src"), str(SCRIPT.parent)])}
    arguments = [sys.executable, str(SCRIPT), "200000"]
    done = subprocess.run(arguments, env=environment, capture_output=True, text=True, timeout=600, check=False)
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one["method"] for one in told] == list(soak.METHODS), done.stderr
    assert [one["broken"] for one in told] == [[], [], []], told
    assert done.returncode == 0


def test_the_bars_can_break():
    good = {"method": "KF", "rows": 10**7, "growth_kib": 9.0, "compiled_later": 0, "slower": 1.0, "nis": 1.0}
    good |= {"refused": 0, "counted": True, "finite": True}
    assert soak.broken(good) == []
    for name, bad in {"growth_kib": 1025.0, "compiled_later": 1, "slower": 1.2, "nis": 1.01, "counted": False}.items():
        assert soak.broken({**good, name: bad}) == [name]
