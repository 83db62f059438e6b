"""Runs that are killed go on bit for bit: the short form of what `make nightly` does with 1,000 kills."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import kills


@pytest.mark.x64
def test_killed_runs_go_on_bit_for_bit(tmp_path):
    script = Path(kills.__file__)
    path = os.pathsep.join([str(script.parents[1] / "src"), str(script.parent)])
    arguments = [sys.executable, str(script), "9", "one-step", "known-ahead", "labels"]
    environment = {**os.environ, "PYTHONPATH": path, "JAX_COMPILATION_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run(arguments, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(each["kind"], each["kills"], each["differ"]) for each in told] == [(kind, 3, []) for kind in arguments[3:]]
