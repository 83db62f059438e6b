"""What each CUDA kernel of LoFi earns: ms a step with all kernels, and with each replaced by plain JAX in turn.

    PYTHONPATH=src python benchmarks/cuda_ablation.py                      about five minutes on one GPU
    PYTHONPATH=src python benchmarks/cuda_ablation.py --every --seconds 1200   each kernel under each prior

A network of 1e6 parameters, 10 classes, rank 50, float32; static, with noise at each step (q > 0), and with one
variance for all parameters (spherical). A ratio above 1 is what the kernel earns. Each line is printed when it is
measured; what does not fit in the time is omitted. FILTAX_KERNELS_OFF names the kernels that are switched off.
"""

import argparse
import os
import sys
import time

KINDS = {
    "static": "LoFi(rank=50)+C-Static",
    "q > 0": "LoFi(rank=50)+C-ACI(q=1e-6)",
    "spherical": "LoFi(rank=50, form=spherical)+C-Static",
}
SIZES = {9e4: (784, 110, 20, 10), 1e6: (784, 1100, 110, 10), 1e7: (784, 8000, 450, 10)}
STEPS = 60


def milliseconds(name: str, sizes: tuple[int, ...], repeats: int) -> tuple[float, int]:
    """Least time of a step in a compiled scan, and the number of parameters."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    import filtax as fx

    jax.clear_caches()  # kernels are chosen when a program is traced
    rng = np.random.default_rng(0)
    X = jnp.asarray(rng.normal(size=(STEPS, sizes[0])), jnp.float32)
    y = jnp.asarray(rng.integers(0, sizes[-1], STEPS), jnp.float32)
    net = fx.models.mlp(sizes)
    method = fx.method(name, model=fx.models.nonlinear(net.apply, likelihood=fx.models.categorical()))
    state = method.init(params=net.init(jax.random.key(0)), cov=0.1)
    run = jax.jit(lambda state: method.scan(state, X, y, keep=("log_evidence",))[1].log_evidence)
    evidence = np.asarray(run(state))
    if not np.all(np.isfinite(evidence)):
        raise SystemExit(f"{name}: the evidence is not finite")
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        jax.block_until_ready(run(state))
        times.append(time.perf_counter() - began)
    return 1e3 * min(times) / STEPS, method.belief(state).mean.size


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parameters", type=float, default=1e6, choices=sorted(SIZES))
    parser.add_argument("--every", action="store_true", help="each kernel under each prior")
    parser.add_argument("--seconds", type=float, default=330.0)
    parser.add_argument("--repeats", type=int, default=8)
    arguments = parser.parse_args()
    began = time.perf_counter()
    import jax

    from filtax import _kernels
    from filtax._kernels.cuda_kernels import KERNELS

    groups = {"all kernels": [], "without any": list(KERNELS)}
    singles = {"static": list(KERNELS), "q > 0": ("gram",), "spherical": ("eigenvectors",)}
    print(f"jax {jax.__version__}, {jax.devices()[0]}; kernels: {_kernels.status()}", flush=True)
    for kind, names in singles.items():
        names = list(KERNELS) if arguments.every else names
        whole = 0.0
        for label, off in (groups | {f"without {name}": [name] for name in names}).items():
            if time.perf_counter() - began > arguments.seconds:
                print("the time is up; the rest is omitted.")
                return 0
            os.environ["FILTAX_KERNELS_OFF"] = ",".join(off)
            took, parameters = milliseconds(KINDS[kind], SIZES[arguments.parameters], arguments.repeats)
            whole = whole or took
            print(f"{kind:<10} D = {parameters}  {label:<28} {took:8.3f} ms  x {took / whole:5.2f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
