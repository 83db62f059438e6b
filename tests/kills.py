"""Runs that are killed at random moments: what they leave when they have gone on is that of a run left in peace.

python tests/kills.py KILLS [KIND ...] kills runs of each kind in turn by SIGKILL, so many in all, resumes them, and
compares predictions, events, configuration and the state of the last checkpoint bit for bit. `make nightly` does 200.
Everything is imported once and each attempt is a fork, in which JAX starts; that no thread runs before is checked.
Prints a line of JSON for each kind: its kills, the runs that ended, after how many checkpoints the attempts died, and
files that differ. The exit code is 1 if one does, or if an attempt ends by itself.
"""

import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

os.environ |= {"OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false", "JAX_PLATFORMS": "cpu"}
os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"

import jax
import jaxlib.lapack  # noqa: F401  # what is imported lazily is a third of the time of an attempt
import numpy as np
import pyarrow.csv
import pyarrow.parquet  # noqa: F401
import safetensors.numpy  # noqa: F401
import scipy.special  # noqa: F401

from filtax import io as store
from filtax.pipeline import Config, run_pipeline, write_outputs
from filtax.pipeline._segments import segment_source, write_segments

SEED = 22
ROWS, FEW = 800, 170
TIMED = {"target": "load", "time": "when", "block": 32, "checkpoint_every": 64}
KINDS = {
    "one-step": TIMED,
    "a-day": {**TIMED, "horizon": 24},
    "known-ahead": {**TIMED, "features": ("wind",), "horizon": 3},
    "keys": {**TIMED, "key": "station"},
    "delay": {**TIMED, "delay": 3},
    "labels": {"target": "kind", "features": ("wind", "load"), "block": 32, "checkpoint_every": 64},
    "no-times": {"target": "load", "features": ("wind", "kind"), "block": 32, "checkpoint_every": 64},
    "segment": {"target": "load", "time": "when", "task": "segment"},
}


def write_table(path, kind):
    """A day's cycle with gross errors, gaps, a level that moves, and rows that cannot be read, also the last one."""
    rng, rows, each = np.random.default_rng(0), FEW if kind == "segment" else ROWS, 3 if kind == "keys" else 1
    t = np.arange(rows)
    y = 50.0 + 5.0 * np.sin(2 * np.pi * t / 24) + rng.normal(size=rows) + 8.0 * (t // 300 % 3)
    y[rng.random(rows) < 0.01] = 500.0
    hours = np.datetime64("2024-01-01T00:00") + 60 * ((t + t // 200) // each)
    words = np.where(y > 50.0, "high", "low")
    cells = zip(hours, y.tolist(), (t // 50 % 7).tolist(), words, np.array([*"abc"])[t % each], strict=True)
    lines = [",".join(map(str, row)) + "\n" for row in cells]
    lines[5::97] = ["2024-01-01,x\n"] * len(lines[5::97])
    path.write_text("when,load,wind,kind,station\n" + "".join(lines) + "2024\n")


def attempt(kind, source, root):
    """Run to the end from where the folder stands; in a fork."""
    jax.config.update("jax_enable_x64", True)
    config = Config.read(root) if (root / "config.toml").exists() else Config(str(source), **KINDS[kind])
    if kind == "segment":
        write_segments(root, segment_source(config, root))
        return
    run_pipeline(config, root)
    write_outputs(root)


def start(kind, source, root):
    """Start an attempt and return the id of its process."""
    if Path("/proc/self/task").exists() and len(os.listdir("/proc/self/task")) > 1:
        raise RuntimeError("a thread runs already: a fork would not have it, and might wait for it for ever")
    child = os.fork()
    if child == 0:
        try:
            attempt(kind, source, root)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return child


def end(child):
    """Wait for an attempt; True if it ended by itself."""
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code not in (0, -signal.SIGKILL):
        raise RuntimeError(f"an attempt ended by itself, with exit code {code}")
    return code == 0


def kill(child, root, seconds, chance):
    """Kill an attempt: mostly just after one of its next checkpoints, else at any moment of so many seconds."""
    if chance.random() < 0.7:
        wanted = newest(root) + 1 + chance.randrange(3)
        until, delay = time.monotonic() + seconds, 0.02 * chance.random()
        while newest(root) < wanted and time.monotonic() < until:
            time.sleep(0.001)
    else:
        delay = seconds * chance.random()
    time.sleep(delay)
    os.kill(child, signal.SIGKILL)  # it is still ours, as it has not been waited for


def newest(root):
    return max(store.generations(root / "checkpoint"), default=0)


def kept(root):
    """What a run left, by name."""
    files = {name: root / name for name in ("predictions.parquet", "events.jsonl", "config.toml")}
    files["state"] = root / "checkpoint" / f"{newest(root):06d}.safetensors"
    return {name: path.read_bytes() for name, path in files.items()}


def torment(kind, kills, folder, chance):
    """Kill runs of a kind so often, and let each end; what there is to say of it."""
    source, root = folder / f"{kind}.csv", folder / kind
    write_table(source, kind)
    end(start(kind, source, root))  # so that the next one finds all programs compiled
    shutil.rmtree(root)
    began = time.monotonic()
    end(start(kind, source, root))
    seconds = time.monotonic() - began
    whole, died, ended, differ = kept(root), [], 0, []
    shutil.rmtree(root)
    while True:
        child = start(kind, source, root)
        if len(died) < kills:
            kill(child, root, seconds, chance)
        if not end(child):
            died.append(newest(root))
            continue
        left, ended = kept(root), ended + 1
        differ += [f"{name} of run {ended}" for name, content in left.items() if content != whole[name]]
        if len(died) >= kills:
            break
        shutil.rmtree(root)
    return {"kind": kind, "kills": len(died), "ended": ended, "after checkpoints": Counter(died), "differ": differ}


def main(kills, names):
    names, chance, wrong = names or list(KINDS), random.Random(SEED), False
    with tempfile.TemporaryDirectory() as folder:
        if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
            jax.config.update("jax_compilation_cache_dir", str(Path(folder) / "cache"))
        for number, kind in enumerate(names):
            told = torment(kind, len(range(number, int(kills), len(names))), Path(folder), chance)
            wrong = wrong or bool(told["differ"])
            print(json.dumps(told), flush=True)
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
