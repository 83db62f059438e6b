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
