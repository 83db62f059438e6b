"""A long run: memory that does not grow, nothing compiled again, steps that stay as quick. `make soak` takes 1e7 rows.

python tests/soak.py ROWS [NAME ...] prints a line of JSON for each method and exits with 1 if one breaks a bar. Time is
that of the processor, not of the clock; of each tenth of the run the quicker chunks count. A machine that is shared
grows slower by itself, though, as others take its caches: so now and then the same rows are also learned from the state
as it was after the first rows, side by side, to see how much longer the old state takes (`slower`). That leaves out
what a process itself may come to suffer from, so the steps of its last 1e6 rows are held against those of its first 1e6
as well, the median over chunks (`aged`).
"""

import json
import os
import sys
from pathlib import Path
from time import process_time

import jax
import numpy as np

import filtax as fx

WARM, CHUNK, LOOKS, PAIRED, END = 100_000, 2_000, 20, 10, 1_000_000
GROWTH, SLOWER = 1024.0, 1.1  # KiB behind the first rows; processor time of a chunk at the end against the start
HAZARD, WALK = 0.002, 1e-4


def drifting(rng, before, rows=CHUNK):
    """A regression whose weights walk at random."""
    walk = np.zeros(10) if before is None else before
    X = rng.normal(size=(rows, 10))
    weights = walk + np.cumsum(np.sqrt(WALK) * rng.normal(size=(rows, 10)), axis=0)
    return X, np.sum(X * weights, axis=1) + rng.normal(size=rows), weights[-1]


def jumping(rng, before, rows=CHUNK):
    """A level that jumps."""
    level = 3.0 * rng.normal() if before is None else before
    changed = rng.random(rows) < HAZARD
    levels = np.concatenate([[level], 3.0 * rng.normal(size=changed.sum())])[np.cumsum(changed)]
    return np.ones((rows, 1)), levels + rng.normal(size=rows), levels[-1]


def curved(rng, before, rows=CHUNK):
    """What a small network can follow."""
    X = rng.normal(size=(rows, 2))
    return X, np.sin(2.0 * X[:, 0]) * X[:, 1] + 0.1 * rng.normal(size=rows), None


def network(params, x):
    return params["v"] @ jax.numpy.tanh(params["w"] @ x + params["b"])


def weights():
    rng = np.random.default_rng(1)
    return {"w": rng.normal(size=(8, 2)), "b": rng.normal(size=8), "v": 0.1 * rng.normal(size=8)}


def _kf():
    method = fx.method(f"LG+C-ACI(q={WALK})", model=fx.models.linear(noise=1.0))
    return method, method.init(mean=np.zeros(10), cov=WALK)


def _rl():
    method = fx.method(f"LG+RL[50]-PR(hazard={HAZARD})", model=fx.models.linear(noise=1.0))
    return method, method.init(mean=np.zeros(1), cov=9.0)


def _lofi():
    method = fx.method("LoFi(rank=10)+C-ACI(q=1e-6)", model=fx.models.nonlinear(network, noise=0.01))
    return method, method.init(params=weights(), cov=1.0)


METHODS = {"KF": (_kf, drifting), "RL[50]": (_rl, jumping), "LoFi": (_lofi, curved)}


def resident():
    """Resident memory of this process in KiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1024.0


def soak(name, rows):
    build, source = METHODS[name]
    method, state = build()
    rng, before, compiled = np.random.default_rng(0), None, []
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, *_, **__: compiled.append(event) if "backend_compile" in event else None
    )
    times, ratios, sizes, squares, programs, refused, young = [], [], [], 0.0, 0, 0, state
    learn = lambda state, X, Y: jax.block_until_ready(method.scan(state, X, Y, keep=("mean", "var", "ok")))
    for number, first in enumerate(range(0, rows, CHUNK)):
        X, Y, before = source(rng, before)
        other = timed(learn, young, X, Y)[1] if number % (2 * PAIRED) == 0 else None  # now before, now behind
        (state, infos), taken = timed(learn, state, X, Y)
        times.append(taken)
        if number % (2 * PAIRED) == PAIRED:
            other = timed(learn, young, X, Y)[1]
        if other is not None:
            ratios.append(taken / other)
        squares += float(np.sum((Y - np.asarray(infos.mean)) ** 2 / np.asarray(infos.var)))
        refused += int((~np.asarray(infos.ok)).sum())
        if first + CHUNK == WARM:
            programs, young, ratios = len(compiled), state, []
        if first + CHUNK >= WARM:
            sizes.append(resident())
    tenths = pace(times[WARM // CHUNK :])
    return {
        "method": name,
        "rows": rows,
        "growth_kib": float(np.median(sizes[-LOOKS:]) - np.median(sizes[:LOOKS])),  # buffers come and go
        "compiled_later": len(compiled) - programs,
        "us_a_row": [round(1e6 * each / CHUNK, 2) for each in tenths],
        "aged": aged(times[WARM // CHUNK :]),
        "slower": float(np.median(ratios[-max(1, len(ratios) // 5) :])),
        "nis": squares / rows,
        "refused": refused,
        "counted": int(state.t) == rows,
        "finite": bool(np.isfinite(np.asarray(method.belief(state).mean)).all()),
    }


def timed(run, *arguments):
    """What a call returned, and how long the processor was at it."""
    began = process_time()
    return run(*arguments), process_time() - began


def pace(times):
    """The lower quartile of the time of a chunk in each tenth of a run."""
    return [float(np.quantile(part, 0.25)) for part in np.array_split(times, min(10, len(times)))]


def aged(times):
    """How much longer a step takes in the last rows than in the first: medians over the chunks of each."""
    count = min(END // CHUNK, len(times) // 2)
    return float(np.median(times[-count:]) / np.median(times[:count])) if count else 1.0


def broken(told):
    """The bars that a method breaks. The forecasts of the first two are calibrated: their squares have mean one."""
    band = 4.0 * np.sqrt(3.0 / told["rows"])
    bars = {
        "growth_kib": told["growth_kib"] <= GROWTH,
        "compiled_later": told["compiled_later"] == 0,
        "slower": told["slower"] <= SLOWER or told["rows"] < 1_000_000,  # too few chunks on a machine that is shared
        "aged": told["aged"] <= SLOWER or told["rows"] < 2 * END + WARM,
        "nis": told["method"] == "LoFi" or abs(told["nis"] - 1.0) < band,
        "counted": told["counted"] and told["finite"] and not told["refused"],
    }
    return [name for name, kept in bars.items() if not kept]


def main(rows, names):
    jax.config.update("jax_enable_x64", True)
    failed = False
    for name in names or METHODS:
        told = soak(name, int(float(rows)))
        told["broken"] = broken(told)
        failed = failed or bool(told["broken"])
        print(json.dumps(told), flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
