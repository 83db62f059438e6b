"""A new process: what the import costs above JAX's own, and how long until the first filtered value.

Counted is the time from the start of the interpreter until it says that it is done; what it takes to leave (JAX alone:
0.2 s, since Python frees one by one what it has made) is a note. As at any start but the first, Python finds its byte
code: it is kept in a folder of the benchmark's own, even if the shell that runs it forbids to write any.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time

from benchmarks.harness import ROOT, Bar, Result, Row, progress, spread

IMPORTS = {
    "nothing": "pass",
    "jax": "import jax",
    "jax, equinox": "import jax, equinox",
    "filtax, the statement": "import filtax",
    "jax, filtax in use": "import jax, filtax; filtax.method, filtax.models, filtax.priors",
}
FIRST = """
import jax.numpy as jnp, numpy as np
import filtax as fx
F = jnp.eye(4) + 0.1 * jnp.eye(4, k=2)
prior = fx.priors.linear_dynamics(F=F, Q=0.01 * jnp.eye(4))
kf = fx.method("LG+C-LSSM", model=fx.models.linear(noise=0.25 * jnp.eye(2)), prior=prior)
state = kf.init(mean=jnp.zeros(4), cov=1.0)
X, Y = np.broadcast_to(np.eye(2, 4, dtype=np.float32), (100, 2, 4)), np.ones((100, 2), np.float32)
state, infos = kf.scan(state, X, Y, keep=("mean", "log_evidence"))
assert np.isfinite(np.asarray(infos.mean)).all()
"""


def seconds(code: str, folder: str, cached: bool = False) -> tuple[float, float]:
    """Wall time until a new interpreter has run `code`, its start included, and that which it then takes to end."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = f"{folder}/bytecode"
    if cached:
        environment |= {
            "JAX_COMPILATION_CACHE_DIR": f"{folder}/programs",
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        }
    start = time.perf_counter()
    command = [sys.executable, "-c", f"{code}\nprint('done', flush=True)"]
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as child:
        said = child.stdout.readline() if child.stdout else ""
        done = time.perf_counter() - start
    if said.strip() != "done" or child.returncode:
        raise RuntimeError(f"a new process did not come to the end of:\n{code}")
    return done, time.perf_counter() - start - done


def run(process: str, quick: bool) -> Result:
    result = Result()
    times: dict[str, list[float]] = {name: [] for name in [*IMPORTS, "cold", "cached"]}
    leaving: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        seconds(FIRST, folder, cached=True)  # fills the caches, and the disk's
        for turn in range(5):
            progress(f"startup: round {turn + 1} of 5")
            for name, code in IMPORTS.items():
                times[name].append(seconds(code, folder)[0])
            done, left = seconds(FIRST, folder, cached=True)
            times["cached"].append(done)
            leaving.append(left)
            if not quick or turn == 0:
                times["cold"].append(seconds(FIRST, folder)[0])
    for name in IMPORTS:
        result.rows.append(Row("import", name, "note", "-", "-", **spread(times[name]), unit="s"))
    for name in ("cold", "cached"):
        label = f"first KF result, {name} compilation cache"
        result.rows.append(Row("first result", label, "ours", "default", "float32", **spread(times[name]), unit="s"))
    # The statement alone imports little: names are looked up when they are used. So the bar is on what a user pays.
    above = statistics.median(a - b for a, b in zip(times["jax, filtax in use"], times["jax"], strict=True))
    result.bars.append(Bar("filtax in use above import jax, s", above, 0.25))
    equinox = statistics.median(a - b for a, b in zip(times["jax, equinox"], times["jax"], strict=True))
    result.notes.append(f"equinox alone adds {equinox:.2f} s to jax")
    result.notes.append(f"after the first KF result the process takes {statistics.median(leaving):.2f} s to end")
    result.bars.append(Bar("first KF result with a warm compilation cache, s", statistics.median(times["cached"]), 1.3))
    return result
