"""A user's table: 100,000 rows of 30 numbers and a target, from CSV to predictions on disk, all defaults.

Each run is a new process. Timed is what follows the imports: reading, compiling, learning, and writing the predictions,
with the compilation cache that the command line turns on. Memory is the most that the process held, for a table and for
one four times as long.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.harness import ROOT, Bar, Result, Row, progress, spread

COLUMNS, ROWS, ROUNDS = 30, 100_000, 5
GROUP = f"{ROWS:,} x {COLUMNS}, from CSV to predictions"
CODE = """
import json, resource, sys, time
from pathlib import Path
import jax, pyarrow.parquet, scipy.special
from filtax._xla import cache_compilations
import filtax.pipeline
from filtax.pipeline._run import write_predictions
jax.config.update("jax_enable_x64", True)
cache_compilations(Path(sys.argv[3]))
start = time.perf_counter()
config = filtax.pipeline.Config(sys.argv[1], "y")
filtax.pipeline.run_pipeline(config, Path(sys.argv[2]))
write_predictions(filtax.pipeline.open_run(Path(sys.argv[2])))
seconds = time.perf_counter() - start
print(json.dumps([seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))
"""


def write(path: Path, rows: int, labels: bool) -> None:
    """A linear or a logistic world."""
    rng = np.random.default_rng(0)
    X, weights = rng.normal(size=(rows, COLUMNS)), rng.normal(size=COLUMNS)
    y = X @ weights + rng.normal(size=rows)
    told = np.where(y > 0.0, 1.0, 0.0) if labels else y
    head = ",".join([*(f"x{i}" for i in range(COLUMNS)), "y"])
    form = ["%.6g"] * COLUMNS + (["%d"] if labels else ["%.6g"])
    np.savetxt(path, np.column_stack([X, told]), fmt=",".join(form), header=head, comments="")


def once(folder: Path, name: str, turn: int) -> tuple[float, float]:
    """Seconds, and the most MiB, of one run in a process of its own."""
    where = [str(folder / f"{name}.csv"), str(folder / f"{name}-{turn}"), str(folder / "cache")]
    done = subprocess.run(
        [sys.executable, "-c", CODE, *where], cwd=ROOT, env=dict(os.environ), check=True, capture_output=True, text=True
    )
    seconds, most = json.loads(done.stdout.splitlines()[-1])
    return seconds, most


def run(process: str, quick: bool) -> Result:
    result = Result()
    rows = 2000 if quick else ROWS
    with tempfile.TemporaryDirectory() as held:
        folder = Path(held)
        for name, labels, length in (("linear", False, rows), ("logistic", True, rows), ("long", False, 4 * rows)):
            progress(f"table: writing {name}.csv")
            write(folder / f"{name}.csv", length, labels)
        for name in ("linear", "logistic"):
            times = []
            for turn in range(1 + (1 if quick else ROUNDS)):
                progress(f"table: {name}, round {turn}")
                times.append(once(folder, name, turn)[0])
            result.rows.append(Row(GROUP, name, "ours", "covariance", "float64", **spread(times[1:]), unit="s"))
            if not quick:
                result.bars.append(Bar(f"{name}, seconds after the imports", result.seconds(name, GROUP), 3.0))
        most = {name: once(folder, name, 99)[1] for name in ("linear", "long")}
    result.notes.append(
        f"memory at most {most['linear']:.0f} MiB, of a table four times as long {most['long']:.0f} MiB"
    )
    if not quick:
        result.bars.append(Bar("memory of four times the rows / of the rows", most["long"] / most["linear"], 1.1))
    return result
