"""The watch over methods that hang: what it tells of those that come back, wait for ever, or end the process."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import hangs


@pytest.mark.x64
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
