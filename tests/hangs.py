"""A soak against hangs: every method of the catalogue under jit(vmap), in turns. `make nightly` gives it 30 minutes.

python tests/hangs.py MINUTES [NAME ...] runs methods over 300 streams until time is up, on two cores and with the flags
that a user has. There a vmap of LoFi once waited for ever: jaxlib runs a batch of LAPACK in parts, on the threads in
which it also waits for the parts. The methods run in a process of their own, which the first one watches. A method that
does not come back, or that ends the process, is named; the others go on in a new process. The exit code is then 1.
"""

import json
import multiprocessing
import os
import sys
from time import monotonic

import jax
import jax.numpy as jnp
import numpy as np

from catalogue import ROWS

STREAMS, CORES = 300, 2
TURN, TOGETHER = 1.0, 4  # seconds of calls, so many of them on their way at once
PATIENCE = 300.0  # seconds; the first turn of a method includes its compilation


def turns(names, seconds, pipe):
    """Run methods in turns until time is up: send (name, None) before a turn, (name, number of calls) after it."""
    jax.config.update("jax_enable_x64", True)
    programs, until = {}, monotonic() + seconds
    while monotonic() < until:
        for name in names:
            if monotonic() > until:
                return
            pipe.send((name, None))
            if name not in programs:
                row = ROWS[name]
                programs[name] = jax.jit(jax.vmap(row.evidence, (0, None, 0)))
            run, arrays, calls, began = programs[name], streams(ROWS[name]), 0, monotonic()
            while not calls or monotonic() - began < TURN:
                jax.block_until_ready([run(*arrays) for _ in range(TOGETHER)])
                calls += TOGETHER
            pipe.send((name, calls))


def streams(row):
    """Settings, inputs and data of the streams, all different."""
    shifted = np.stack([np.roll(row.Y, by, axis=0) for by in range(STREAMS)])
    return jnp.asarray(row.setting * np.linspace(0.9, 1.0, STREAMS)), row.X, jnp.asarray(shifted)


def watch(names, seconds, patience=PATIENCE, work=turns):
    """The number of calls of each method that came back, and what became of those that did not."""
    calls, lost, until = dict.fromkeys(names, 0), {}, monotonic() + seconds
    context = multiprocessing.get_context("spawn")
    while (left := until - monotonic()) > 0 and len(lost) < len(names):
        ours, theirs = context.Pipe(duplex=False)
        child = context.Process(target=work, args=([name for name in names if name not in lost], left, theirs))
        child.start()
        theirs.close()
        running = None
        try:
            while ours.poll(patience):
                name, count = ours.recv()
                running = name if count is None else None
                calls[name] += count or 0
            what = f"did not come back within {patience:.0f} s"
        except EOFError:
            child.join()
            what = f"ended the process, exit code {child.exitcode}" if child.exitcode else None
        child.kill()
        child.join()
        if what is None:
            break
        if running is None:
            raise RuntimeError(f"no method was running when it {what}")
        lost[running] = what
        print(json.dumps({"method": running, "what": what}), flush=True)
    return calls, lost


def main(minutes, names):
    os.environ.pop("XLA_FLAGS", None)
    if sys.platform == "linux":
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    calls, lost = watch(names or list(ROWS), 60.0 * float(minutes))
    few = min(calls, key=calls.get)
    told = {"methods": len(calls), "calls": sum(calls.values()), "fewest": {few: calls[few]}, "lost": lost}
    print(json.dumps(told), flush=True)
    return int(bool(lost) or calls[few] == 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
