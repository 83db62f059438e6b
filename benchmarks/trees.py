"""Two trees of filtax side by side: `python -m benchmarks.trees OLD [NEW]`, each a checkout; NEW is this one if absent.

Each workload runs in a fresh process of each tree, in turns; the table shows the least of the medians and their ratio.
Processes are tuned (`filtax.tune_xla()`) unless `--plain` is given.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent


def regression(rows, D, dtype):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, D)).astype(dtype)
    return X, (X @ rng.normal(size=D) + rng.normal(size=rows)).astype(dtype)


def scan(name, rows, D, dtype="float32"):
    """One compiled scan; seconds a row."""

    def make(fx, jax, jnp):
        method = fx.method(name, model=fx.models.linear(noise=1.0))
        X, y = map(jnp.asarray, regression(rows, D, dtype))
        state = method.init(mean=jnp.zeros(D, dtype), cov=1.0)
        return lambda: jax.block_until_ready(method.scan(state, X, y, keep=("mean", "var"))), rows

    return make


def streams(form, count=500, rows=1000):
    """WoLF filters of 4 states and 2 outputs, one for each stream; seconds a row of a stream."""

    def make(fx, jax, jnp):
        F = jnp.eye(4, dtype="float32") + 0.1 * jnp.eye(4, k=2, dtype="float32")
        prior = fx.priors.linear_dynamics(F=F, Q=0.01 * jnp.eye(4, dtype="float32"))
        name = f"WoLF-IMQ(c=4)+LG(form={form})+C-LSSM"
        method = fx.method(name, model=fx.models.linear(noise=0.25 * jnp.eye(2, dtype="float32")), prior=prior)
        state = method.init(mean=jnp.zeros(4, "float32"), cov=1.0)
        X = jnp.broadcast_to(jnp.eye(2, 4, dtype="float32"), (rows, 2, 4))
        Y = jnp.asarray(np.random.default_rng(0).normal(size=(count, rows, 2)).astype("float32"))
        one = lambda state, X, Y: method.scan(state, X, Y, keep=("belief_mean",))[1].belief_mean
        run = jax.jit(jax.vmap(one, in_axes=(None, None, 0)))
        return lambda: jax.block_until_ready(run(state, X, Y)), rows * count

    return make


def events(verb):
    def make(fx, jax, jnp):
        method = fx.method("LG+C-ACI(q=0.01)", model=fx.models.linear(noise=1.0))
        state = method.init(mean=jnp.zeros(4, "float32"), cov=1.0)
        X, y = regression(200, 4, "float32")
        if verb == "step":

            def run():
                now = state
                for t in range(200):
                    now, info = method.step(now, X[t], y[t])
                    np.asarray(info.mean)

            return run, 200
        fast = getattr(fx, "online", None) or fx.compile
        fast = fast(method, state)

        def run():
            for t in range(200):
                fast.step(X[t], y[t])

        return run, 200

    return make


def network(name, sizes, rows, outputs=1):
    def make(fx, jax, jnp):
        net = fx.models.mlp(sizes)
        rng = np.random.default_rng(0)
        X = jnp.asarray(rng.normal(size=(rows, sizes[0])).astype("float32"))
        y = jnp.asarray((rng.integers(0, outputs, rows) if outputs > 1 else rng.normal(size=rows)).astype("float32"))
        likelihood = {"likelihood": fx.models.categorical()} if outputs > 1 else {"noise": 0.1}
        method = fx.method(name, model=fx.models.nonlinear(net.apply, **likelihood))
        state = method.init(params=net.init(jax.random.key(0)), cov=0.1)
        return lambda: jax.block_until_ready(method.scan(state, X, y, keep=("log_evidence",))), rows

    return make


def gradient(fx, jax, jnp):
    X, y = map(jnp.asarray, regression(500, 4, "float32"))

    def evidence(q, X, y):
        method = fx.method("LG+C-ACI", model=fx.models.linear(noise=1.0), prior=fx.priors.additive_inflation(q))
        state = method.init(mean=jnp.zeros(4, "float32"), cov=1.0)
        return method.scan(state, X, y, keep=("log_evidence",))[1].log_evidence.sum()

    run = jax.jit(jax.value_and_grad(evidence))
    return lambda: jax.block_until_ready(run(jnp.float32(0.01), X, y)), 500


WORKLOADS = {
    "scan, D = 4, float32, 512 rows": scan("LG+C-ACI(q=0.01)", 512, 4),
    "scan, D = 4, float32, 31,912 rows": scan("LG+C-ACI(q=0.01)", 31_912, 4),
    "scan, D = 4, float64, 31,912 rows": scan("LG+C-ACI(q=0.01)", 31_912, 4, "float64"),
    "scan, covariance, D = 4, float64, 31,912 rows": scan("LG(form=covariance)+C-ACI(q=0.01)", 31_912, 4, "float64"),
    "500 WoLF filters, covariance": streams("covariance"),
    "500 WoLF filters, root": streams("root"),
    "step": events("step"),
    "one event, compiled": events("online"),
    "run lengths, RL[10], D = 8": scan("LG+RL[10]-PR(hazard=0.01)", 5000, 8),
    "EKF, 1,021 parameters": network("LG(form=covariance)+C-ACI(q=1e-4)", (50, 16, 12, 1), 200),
    "LoFi, 79,510 parameters, rank 10": network("LoFi(rank=10)+C-Static", (784, 100, 10), 40, outputs=10),
    "NIG + OUPR, root, D = 27, float64": scan("NIG+RL[1]-OUPR(hazard=0.01)", 2000, 27, "float64"),
    "gradient of the evidence, 500 rows": gradient,
}


def child(name, plain):
    import filtax as fx

    if not plain:
        fx.tune_xla()
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", "float64" in name)
    begin = time.perf_counter()
    run, units = WORKLOADS[name](fx, jax, jnp)
    run()
    first = time.perf_counter() - begin
    times = []
    while len(times) < 5 or (sum(times) < 1.0 and len(times) < 200):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    print(json.dumps([statistics.median(times) / units, first]))


def measured(tree, name, plain):
    environment = {**os.environ, "PYTHONPATH": f"{tree}/src", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--child", name, *(["--plain"] if plain else [])]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise SystemExit(f"{name} failed in {tree}:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", nargs="?", type=Path, help="the checkout to compare with")
    parser.add_argument("new", nargs="?", type=Path, default=ROOT)
    parser.add_argument("--only", default="", help="workloads whose name contains this")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--plain", action="store_true", help="without tune_xla()")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        return child(arguments.child, arguments.plain)
    if arguments.old is None:
        parser.error("give the folder of the old tree, such as a git worktree")
    print(f"{'us a row':<48} {'old':>9} {'new':>9} {'ratio':>6}   {'first call, s':>14}")
    for name in WORKLOADS:
        if arguments.only not in name:
            continue
        trees = arguments.old.resolve(), arguments.new.resolve()
        turns = [[measured(tree, name, arguments.plain) for tree in trees] for _ in range(arguments.turns)]
        (old, old_first), (new, new_first) = (
            [min(turn[side][number] for turn in turns) for number in (0, 1)] for side in (0, 1)
        )
        print(f"{name:<48} {1e6 * old:9.3f} {1e6 * new:9.3f} {new / old:6.2f}   {old_first:6.2f} {new_first:6.2f}")


if __name__ == "__main__":
    main()
