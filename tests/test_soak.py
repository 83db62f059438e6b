"""The short forms of `make soak` and of the watch over methods that hang, in processes of their own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import hangs
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


def test_methods_come_back():
    """The short form of what `make nightly` does for 30 minutes."""
    script = Path(hangs.__file__)
    path = os.pathsep.join([str(script.parents[1] / "src"), str(script.parent)])
    arguments = [sys.executable, str(script), "0.1", "regression"]
    done = subprocess.run(
        arguments, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["methods"], told["lost"]) == (1, {})
    assert told["calls"] > 0
