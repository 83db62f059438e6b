"""Runs that are killed: everything is imported once, each attempt is a fork of it, and JAX starts in the fork.

What is imported lazily is imported here, too: it is a third of the time of an attempt.

Arguments: source, folder, kills, seed. Prints how many attempts were killed, and the rows at which each died.
"""

import os
import random
import signal
import sys
import time
from pathlib import Path

import jax
import jaxlib.lapack  # noqa: F401
import pyarrow.csv  # noqa: F401
import safetensors.numpy  # noqa: F401
import scipy.linalg
import scipy.special  # noqa: F401

from filtax import store
from filtax.runs import Config, carry_on
from filtax.runs.job import CHECKPOINT
from filtax.runs.outputs import write_outputs


def attempt(source: str, root: Path) -> None:
    jax.config.update("jax_enable_x64", True)
    config = Config(source, "load", time="when", method="LG+C-Static", block=32, every=64)
    known = Config.read(root) if (root / "config.toml").exists() else config
    carry_on(known, root)
    write_outputs(root)


def main(source: str, folder: str, kills: int, seed: int) -> None:
    root, chance, died = Path(folder), random.Random(seed), []
    while True:
        before = max(store.generations(root / CHECKPOINT), default=0)
        child = os.fork()
        if child == 0:
            attempt(source, root)
            os._exit(0)
        if len(died) < kills:
            if chance.random() < 0.8:  # most die while they learn, some while they start
                while max(store.generations(root / CHECKPOINT), default=0) <= before + chance.randrange(3):
                    if os.waitpid(child, os.WNOHANG)[0]:
                        print(*died)
                        return
                    time.sleep(0.001)
            time.sleep(chance.random() * 0.02)
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if os.waitstatus_to_exitcode(status) == 0:
            break
        if os.waitstatus_to_exitcode(status) != -signal.SIGKILL:
            sys.exit(f"an attempt ended by itself: {status}")
        died.append(max(store.generations(root / CHECKPOINT), default=0))
    print(*died)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
