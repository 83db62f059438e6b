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
FEW = {"plain": 11, "ahead": 3, "labels": 3, "columns": 3}  # a series that is cut has its day in test_segmenting.py
SEED = 22  # so that the few die while they start, and after none, one and two checkpoints
MANY = {"plain": 200, "ahead": 200, "labels": 200, "keys": 200, "columns": 150, "segment": 50}


def write(path, kind, rows):
    """A day's cycle with gross errors and rows that cannot be read; for labels, what they depend on.

    Without times a column, and a level that moves every hundred rows.
    """
    rng = np.random.default_rng(0)
    t = np.arange(rows)
    if kind == "labels":
        a, b = rng.normal(size=(2, rows))
        kinds = np.array(["up", "down", "flat"])[np.where(np.abs(a + b) < 0.5, 2, np.where(a + b > 0.0, 0, 1))]
        lines = [f"{x!r},{z!r},{word}\n" for x, z, word in zip(a.tolist(), b.tolist(), kinds, strict=True)]
        lines[5::97] = ["1,x\n"] * len(lines[5::97])
        path.write_text("a,b,kind\n" + "".join(lines))
        return
    y = 50.0 + 5.0 * np.sin(2 * np.pi * t / 24) + rng.normal(size=rows)
    y[rng.random(rows) < 0.01] = 500.0
    if kind == "columns":
        a = rng.normal(size=rows)
        y += 2.0 * a + 8.0 * (t // 100 % 3)
        lines = [f"{x!r},{v!r}\n" for x, v in zip(a.tolist(), y.tolist(), strict=True)]
        lines[5::97] = ["1,x\n"] * len(lines[5::97])
        path.write_text("a,load\n" + "".join(lines))
        return
    each = 3 if kind == "keys" else 1
    hours = np.datetime64("2024-01-01T00:00") + 60 * (t // each)
    lines = [
        f"{when},{float(v)!r},{'abc'[i % each]},{i % 7}\n" for i, (when, v) in enumerate(zip(hours, y, strict=True))
    ]
    lines[5::97] = [f"{when},x,a,1\n" for when in hours[5::97]]
    path.write_text("when,load,station,wind\n" + "".join(lines))


def work(folder, seed, wanted):
    environment = {
        **os.environ,
        "PYTHONPATH": f"{SOURCE}:{SOURCE.parent}/tests",
        "JAX_COMPILATION_CACHE_DIR": str(folder / "cache"),
    }
    environment |= {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0", "JAX_PLATFORMS": "cpu"}
    kinds = [f"{kind}={kills}" for kind, kills in wanted.items()]
    arguments = [sys.executable, str(WORKER), str(folder), str(seed), *kinds]
    done = subprocess.run(arguments, env=environment, capture_output=True, text=True, timeout=9000, check=False)
    assert done.returncode == 0, done.stderr
    return {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines()}


NIGHTS = [pytest.param({kind: kills}, 600, id=kind, marks=pytest.mark.nightly) for kind, kills in MANY.items()]


@pytest.mark.parametrize(("wanted", "rows"), [pytest.param(FEW, 600, id="few"), *NIGHTS])
def test_a_killed_run_goes_on_bit_for_bit(wanted, rows, tmp_path):
    for kind, kills in wanted.items():
        write(tmp_path / f"{kind}.csv", kind, 170 if kind == "segment" else 1000 + rows * kills)
    died = work(tmp_path, SEED, wanted)
    assert {kind: len(at) for kind, at in died.items()} == wanted  # the files are long enough for all of them
    for kind in wanted:
        for name in ("predictions.parquet", "events.jsonl", "config.toml"):
            whole, killed = ((tmp_path / kind / way / name).read_bytes() for way in ("whole", "killed"))
            assert whole == killed, (kind, name)
