"""LoFi on a perceptron with ten outputs: milliseconds a step by rank, process noise and shape of the diagonal.

    python -m benchmarks scalable                       the case of `make bench`, 784-100-10, on this machine
    python -m benchmarks.scalable --device-sizes        D = 9e4, 1e6 and 1e7 at rank 50, for an accelerator
    python -m benchmarks.scalable --device-sizes --ranks 10 --least 2e7 --largest 2e8 --steps 12       D = 1e8
    python -m benchmarks.scalable --spares 10,20,40     the same network with other numbers of spare columns

float32 throughout, and products as exact as that: those of the belief that tensor cores of a CUDA device make are sums
of three in TF32 (`benchmarks.passes` compares them with float64). A run is one `scan` whose state is given up to it, of
labels under a softmax; the bound is reading the Jacobian and the factor once and writing the factor's new columns, as a
copy of that many bytes takes here.
"""

import argparse
import itertools
import json

import numpy as np

from benchmarks.harness import Bar, Result, Row, alternate, machine, spread, table
from benchmarks.scalable_peers import TOOK, published

SIZES, RANKS = (784, 100, 10), (10, 50)
STEPS, DEVICE_STEPS = 24, 50  # data in one run; on a device as many as where the targets were measured
QUICK = (20, 10, 4)
DEVICE = {
    "D = 9e4": (784, 113, 10),
    "D = 1e6": (784, 1000, 203, 10),
    "D = 1e7": (784, 3000, 2540, 10),
    "D = 1e8": (784, 9300, 10000, 10),
}
LIMITS = {10: 8.0, 50: 20.0}  # ms a step on the CPU that the targets were measured on
SPREAD, NOISES, FORMS = 0.01, (0.0, 1e-6), ("diagonal", "spherical")
PEER = "as written down, cut each time"


def parameters(sizes) -> int:
    """D of a perceptron.

    >>> parameters((784, 100, 10))
    79510
    """
    return sum((a + 1) * b for a, b in itertools.pairwise(sizes))


def ours(sizes, steps: int, rank: int, form: str, q: float, spare: int | None = None):
    """A run of `scan` over labels; the belief is updated in place from run to run, and every evidence kept in `found`.

    They are looked at when the clock has stopped (`sound`): on a device, asking takes as long as three steps do.
    """
    import jax
    import jax.numpy as jnp

    import filtax as fx
    from filtax.models import mlp
    from filtax.posteriors import Extended

    net = mlp(sizes)
    rng = np.random.default_rng(0)
    X = jnp.asarray(rng.normal(size=(steps, sizes[0])), "float32")
    Y = jnp.asarray(rng.integers(0, sizes[-1], size=steps), "float32")
    posterior = Extended(form, rank=rank, spare=spare)
    prior = fx.priors.additive_inflation(q) if q else fx.priors.static()
    model = fx.models.nonlinear(net.apply, likelihood=fx.models.categorical())
    method = fx.method("LG+C-Static", model=model, posterior=posterior, prior=prior)
    keep = ("log_evidence",)
    run = jax.jit(lambda method, state, X, Y: method.scan(state, X, Y, keep=keep, complete=True), donate_argnums=1)
    state = method.init(params=net.init(jax.random.key(0), "float32"), cov=SPREAD)
    held = [jax.tree.map(jnp.copy, state)]

    def call():
        held[0], info = run(method, held[0], X, Y)
        call.found.append(jax.block_until_ready(info.log_evidence))

    call.found = []
    return call


def sound(call) -> None:
    """Refuse the times of runs of `ours` of which an evidence is not finite."""
    if not all(np.isfinite(evidence).all() for evidence in call.found):
        raise AssertionError("the evidence is not finite: these times count for nothing.")


def copied(numbers: int):
    """Read and write that many float32 numbers."""
    import jax
    import jax.numpy as jnp

    run = jax.jit(lambda a: a + 1.0, donate_argnums=0)
    held = [jnp.zeros(numbers, jnp.float32)]

    def call():
        held[0] = jax.block_until_ready(run(held[0]))

    return call


def network(result: Result, group: str, sizes, steps: int, ranks, spares=(None,), repeats: int = 5) -> None:
    """Rows of one network: every rank, form and process noise."""
    D, outputs = parameters(sizes), sizes[-1]
    for rank in ranks:
        for form in FORMS:
            kind = f"{group}, {form}, rank {rank}"
            for q in NOISES:
                for spare in spares:
                    name = f"filtax, {'q > 0' if q else 'static'}" + (f", spare {spare}" if spare is not None else "")
                    call = ours(sizes, steps, rank, form, q, spare)
                    times = alternate({name: call}, repeats, f"scalable, {kind}:")[name]
                    sound(call)
                    result.rows.append(Row(kind, name, "ours", form, "float32", **spread(times, steps), unit="ms"))
                    del call  # one belief at a time in memory
            times = alternate({"copy": copied(D * (rank + 3 * outputs) // 2)}, repeats)["copy"]
            result.rows.append(
                Row(kind, "copy of factor and Jacobian", "bound", "-", "float32", **spread(times), unit="ms")
            )


def against(result: Result, group: str, sizes, steps: int, ranks, repeats: int = 5) -> None:
    """A static step and LoFi as it is written down take turns; a bar for their ratio."""
    for rank in ranks:
        for form in FORMS:
            kind, names = f"{group}, {form}, rank {rank}, in turns", ("filtax, static", PEER)
            calls = ours(sizes, steps, rank, form, 0.0), published(sizes, steps, rank, form, SPREAD)
            times = alternate(dict(zip(names, calls, strict=True)), repeats, f"scalable, {kind}:")
            sound(calls[0])
            for name, role in zip(names, ("ours", "peer"), strict=True):
                result.rows.append(Row(kind, name, role, form, "float32", **spread(times[name], steps), unit="ms"))
            if (form, rank) in TOOK:
                ratio = result.seconds(names[0], kind) / result.seconds(names[1], kind)
                result.bars.append(Bar(f"{names[0]} / {PEER}, {kind}", ratio, LIMITS[rank] / TOOK[form, rank]))


def run(process: str, quick: bool) -> Result:
    result = Result()
    sizes, ranks = (QUICK, (2,)) if quick else (SIZES, RANKS)
    name, steps = f"D = {parameters(sizes)}", 4 if quick else STEPS
    network(result, name, sizes, steps, ranks)
    against(result, name, sizes, steps, ranks)
    for row in result.rows:
        rank = int(row.group.split("rank ")[1].partition(",")[0])
        if row.role == "ours" and "turns" not in row.group and rank in LIMITS:
            result.bars.append(Bar(f"{row.name}, {row.form}, {row.group}, ms a step", 1e3 * row.seconds, LIMITS[rank]))
    return result


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="LoFi, by size: float32, products at the highest precision.")
    parser.add_argument("--device-sizes", action="store_true", help="D = 9e4, 1e6 and 1e7 at rank 50")
    parser.add_argument("--ranks", default="", help="ranks, such as 10,50")
    parser.add_argument("--spares", default="", help="numbers of spare columns to compare, such as 10,20,40")
    parser.add_argument("--steps", type=int, help=f"data in one run ({STEPS}; --device-sizes: {DEVICE_STEPS})")
    parser.add_argument("--largest", type=float, default=2e7, help="leave out networks with more parameters")
    parser.add_argument("--least", type=float, default=0, help="leave out networks with fewer parameters")
    options = parser.parse_args(arguments)
    import jax

    device = jax.devices()[0]
    print(json.dumps({"device": device.device_kind, "jax": jax.__version__, "cpu": machine()["cpu"]}), flush=True)
    print("float32, matmul precision highest (passes on one CUDA device: 3 x TF32)", flush=True)
    print("softmax labels, 10 outputs, one step", flush=True)
    spares = [int(number) for number in options.spares.split(",") if number] or [None]
    ranks = [int(number) for number in options.ranks.split(",") if number] or [50] if options.device_sizes else RANKS
    ranks = [int(number) for number in options.ranks.split(",") if number] or ranks
    steps = options.steps or (DEVICE_STEPS if options.device_sizes else STEPS)
    chosen = DEVICE if options.device_sizes else {f"D = {parameters(SIZES)}": SIZES}
    for name, sizes in chosen.items():
        if options.least <= parameters(sizes) <= options.largest:
            result = Result()
            network(result, f"{name} ({parameters(sizes)})", sizes, steps, ranks, spares, repeats=3)
            print(table(result), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
