"""A new process: what the import costs above JAX's own, and how long until the first filtered value."""

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


def seconds(code: str, cache: str | None = None) -> float:
    """Wall time of a new interpreter that runs `code`, its start included."""
    environment = dict(os.environ)
    if cache:
        environment |= {
            "JAX_COMPILATION_CACHE_DIR": cache,
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        }
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, check=True)
    return time.perf_counter() - start


def run(process: str, quick: bool) -> Result:
    result = Result()
    times: dict[str, list[float]] = {name: [] for name in [*IMPORTS, "cold", "cached"]}
    with tempfile.TemporaryDirectory() as cache:
        seconds(FIRST, cache)  # fills the cache, and the disk's
        for turn in range(5):
            progress(f"startup: round {turn + 1} of 5")
            for name, code in IMPORTS.items():
                times[name].append(seconds(code))
            times["cached"].append(seconds(FIRST, cache))
            if not quick or turn == 0:
                times["cold"].append(seconds(FIRST))
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
    result.bars.append(Bar("first KF result with a warm compilation cache, s", statistics.median(times["cached"]), 1.3))
    return result
