"""How the cost of a step grows with the parameters D, the dimension d and the outputs O (tab:complexity-scalability).

LoFi, the subspace filter and PULSE on a perceptron 64-h-16-O, one of the three sizes at a time; an exponent is the
slope of log time over log size, of the least times of interleaved runs. The algebra predicts at most 1 in each: the
Jacobian, and what is multiplied with it, are D d O numbers at most, and LoFi's cut, D d² of it, is shared by d/O data.
The table of the thesis has (d + O)² for LoFi, which cuts after every datum, and leaves the Jacobian out for PULSE.
"""

import numpy as np

from benchmarks.complexity import SLACK, slope
from benchmarks.harness import Bar, Result, Row, alternate, progress, spread

STEPS = 20
AT = {"D": 1024, "d": 20, "O": 8}  # the others while one changes; D by way of the hidden width h
SWEEPS = {"D": (512, 1024, 2048, 4096), "d": (10, 20, 40, 80), "O": (2, 4, 8, 16)}
THESIS = {"LoFi": {"D": 1, "d": 2, "O": 2}, "subspace": {"D": 1, "d": 3, "O": 0}, "PULSE": {"D": 0, "d": 3, "O": 3}}
PREDICTED = 1


def build(name: str, h: int, d: int, outputs: int):
    """One run of a filter, and the number of parameters of its network."""
    import jax
    import jax.numpy as jnp

    import filtax as fx

    net = fx.models.mlp((64, h, 16, outputs))
    model = fx.models.nonlinear(net.apply, noise=np.ones(outputs, np.float32))
    params = net.init(jax.random.key(0), "float32")
    D = sum(leaf.size for leaf in jax.tree.leaves(params))
    rng = np.random.default_rng(d)
    X = jnp.asarray(rng.normal(size=(STEPS, 64)), "float32")
    Y = jnp.asarray(rng.normal(size=(STEPS, outputs)), "float32")
    if name == "LoFi":
        method, start = fx.method(f"LoFi(rank={d})+C-Static", model=model), {"params": params, "cov": 0.01}
    else:
        last = name == "PULSE"
        rows = D - 17 * outputs if last else D
        directions = fx.models.random_directions(rows, d, key=jax.random.key(1), dtype="float32")
        inside = fx.models.subspace(model, directions, params, last=last)
        method = fx.method("PULSE+C-Static" if last else "LG+C-Static", model=inside)
        start = {"cov": (0.01, 0.01) if last else 0.01}
    state = method.init(**start)
    return lambda: jax.block_until_ready(method.scan(state, X, Y, keep=("mean",))[1].mean), D


def run(process: str, quick: bool) -> Result:
    result = Result()
    for size, values in SWEEPS.items():
        measure(result, size, values[:2] if quick else values, 3 if quick else 7)
    return result


def measure(result: Result, size: str, values, repeats: int) -> None:
    """Rows and fitted exponents of one size."""
    progress(f"scaling, {size}: compiling")
    calls, sizes = {}, list(values)
    for name in THESIS:
        for i, value in enumerate(values):
            at = AT | {size: value}
            calls[f"{name}, {size} = {value}"], D = build(name, at["D"], at["d"], at["O"])
            sizes[i] = D if size == "D" else value
    times = alternate(calls, repeats, f"scaling, {size}:")
    for label, each in times.items():
        result.rows.append(Row(f"growth with {size}", label, "ours", "-", "float32", **spread(each, STEPS), unit="ms"))
    for name, thesis in THESIS.items():
        found = slope(sizes, [min(times[f"{name}, {size} = {value}"]) for value in values])
        result.notes.append(
            f"{name}: exponent in {size} fitted {found:.2f}, predicted {PREDICTED}, thesis {thesis[size]}"
        )
        result.bars.append(Bar(f"{name}: exponent in {size}", found, PREDICTED + SLACK))
