"""Runs that are killed: everything is imported once, each attempt is a fork of it, and JAX starts in the fork.

What is imported lazily is imported here, too: it is a third of the time of an attempt.

Arguments: a folder, a seed, and NAME=KILLS for each kind of run, whose table is NAME.csv there. Makes NAME/whole
without a kill and NAME/killed with them; prints for each kind its name and the checkpoint at which each attempt died.
"""

import os
import random
import signal
import sys
import time
from pathlib import Path

import jax
import jaxlib.lapack  # noqa: F401
import pyarrow.csv
import pyarrow.parquet  # noqa: F401
import safetensors.numpy  # noqa: F401
import scipy.linalg
import scipy.special  # noqa: F401

from filtax import io as store
from filtax.pipeline import Config, run_pipeline, write_outputs
from filtax.pipeline._segments import segment_source, write_segments

STEP = {"block": 32, "checkpoint_every": 64}
KINDS = {
    "plain": {"target": "load", "time": "when", **STEP},
    "ahead": {"target": "load", "time": "when", "features": ("wind",), "horizon": 3, **STEP},
    "labels": {"target": "kind", **STEP},
    "columns": {"target": "load", **STEP},  # no times
    "keys": {"target": "load", "time": "when", "key": "station", **STEP},
    "segment": {"target": "load", "time": "when", "task": "segment"},
}


def attempt(kind: str, source: Path, root: Path) -> None:
    jax.config.update("jax_enable_x64", True)
    config = Config.read(root) if (root / "config.toml").exists() else Config(str(source), **KINDS[kind])
    if kind == "segment":
        write_segments(root, segment_source(config, root))
        return
    run_pipeline(config, root)
    write_outputs(root)


def started(kind: str, source: Path, root: Path) -> int:
    child = os.fork()
    if child == 0:
        attempt(kind, source, root)
        os._exit(0)
    return child


def kill_and_resume(kind: str, source: Path, root: Path, kills: int, chance: random.Random) -> list[int]:
    """Go on until an attempt ends by itself; at which checkpoints the others were killed."""
    died: list[int] = []
    latest = lambda: max(store.generations(root / "checkpoint"), default=0)
    while True:
        before, child = latest(), started(kind, source, root)
        if len(died) < kills:
            if chance.random() < 0.8:  # most die while they learn, some while they start
                behind = before + (0 if kind == "segment" else chance.randrange(3))
                while latest() <= behind:
                    if os.waitpid(child, os.WNOHANG)[0]:
                        return died
                    time.sleep(0.001)
            time.sleep(chance.random() * 0.02)
            os.kill(child, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if code == 0:
            return died
        if code != -signal.SIGKILL:
            sys.exit(f"{kind}: an attempt ended by itself, {code}")
        died.append(latest())


def main(folder: Path, seed: int, wanted: dict[str, int]) -> None:
    chance = random.Random(seed)
    for kind, kills in wanted.items():
        source = folder / f"{kind}.csv"
        kill_and_resume(kind, source, folder / kind / "whole", 0, chance)
        print(kind, *kill_and_resume(kind, source, folder / kind / "killed", kills, chance), flush=True)


if __name__ == "__main__":
    pairs = [each.split("=") for each in sys.argv[3:]]
    main(Path(sys.argv[1]), int(sys.argv[2]), {name: int(kills) for name, kills in pairs})
