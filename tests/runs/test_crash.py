"""kill -9 at any time, then go on: what is left must be, bit for bit, what an uninterrupted run leaves."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.x64  # the worker computes in 64 bits, whatever this process does
WORKER = Path(__file__).parent / "crash_worker.py"
SOURCE = Path(__file__).parents[2] / "src"


def write(path, rows):
    rng = np.random.default_rng(0)
    t = np.arange(rows)
    y = 50.0 + 5.0 * np.sin(2 * np.pi * t / 24) + rng.normal(size=rows)
    y[rng.random(rows) < 0.01] = 500.0
    hours = np.datetime64("2024-01-01T00:00") + 60 * t
    lines = [f"{when},{float(value)!r}\n" for when, value in zip(hours, y, strict=True)]
    for i in range(5, rows, 97):
        lines[i] = f"{hours[i]},x\n"
    path.write_text("when,load\n" + "".join(lines))


def work(source, folder, kills, seed, cache):
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "JAX_COMPILATION_CACHE_DIR": str(cache)}
    environment |= {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0", "JAX_PLATFORMS": "cpu"}
    arguments = [sys.executable, str(WORKER), str(source), str(folder), str(kills), str(seed)]
    done = subprocess.run(arguments, env=environment, capture_output=True, text=True, timeout=9000, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


MANY = [pytest.param(250, 100_000, seed, id=f"many-{seed}", marks=pytest.mark.nightly) for seed in range(2, 6)]


@pytest.mark.parametrize(("kills", "rows", "seed"), [pytest.param(20, 6000, 1, id="few"), *MANY])
def test_a_killed_run_goes_on_bit_for_bit(kills, rows, seed, tmp_path):
    source = tmp_path / "load.csv"
    write(source, rows)
    assert work(source, tmp_path / "whole", 0, 0, tmp_path / "cache") == []
    died = work(source, tmp_path / "killed", kills, seed, tmp_path / "cache")
    assert len(died) == kills  # the file is long enough for all of them
    for name in ("predictions.parquet", "events.jsonl", "config.toml"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "killed" / name).read_bytes(), name
