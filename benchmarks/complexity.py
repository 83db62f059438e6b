"""How the cost of a step grows with the states D and the inner iterations I (tab:complexity-linear-model).

The exponents are slopes of log time over log size, of the least times of interleaved runs. Two jobs:
a step with dense linear dynamics, whose F P Fᵀ is what makes the D³ of the table, and the update alone. The table
counts a conditioning for each inner iteration; here an iteration costs O(O³) in a form that conditions exactly, and
nothing that grows with D, so what is predicted for our I is 0. An exponent is a claim for large sizes, and small ones
fall short of it: a step has its overhead.
"""

import numpy as np

from benchmarks.harness import Bar, Result, Row, alternate, progress, spread

FILTERS = {  # name: method, exponents in D and I as the thesis has them
    "KF": ("LG(form=covariance)", 3, 0),
    "WoLF-IMQ": ("WoLF-IMQ(c=4)+LG(form=covariance)", 3, 0),
    "WoLF-TMD": ("WoLF-TMD(c=4)+LG(form=covariance)", 3, 0),
    "KF-B": ("OB(iterations={}, form=covariance)", 3, 1),
    "KF-IW": ("IW(iterations={}, form=covariance)", 3, 1),
}
JOBS = {"step with dynamics": ("LSSM", 3), "update alone": ("Static", 2)}  # our own exponents in D
SLACK = 0.3  # of a fitted exponent over the one predicted


def build(name: str, prior: str, D: int, steps: int, inner: int):
    """One run of `steps` steps of a filter with D states and 2 measurements."""
    import jax
    import jax.numpy as jnp

    import filtax as fx

    rng = np.random.default_rng(D)
    F = np.linalg.qr(rng.normal(size=(D, D)))[0].astype(np.float32)
    drift = fx.priors.linear_dynamics(F=0.9 * F, Q=0.1 * np.eye(D, dtype=np.float32)) if prior == "LSSM" else None
    words = f"{FILTERS[name][0].format(inner)}+C-{prior}"
    method = fx.method(words, model=fx.models.linear(noise=0.5 * np.eye(2, dtype=np.float32)), prior=drift)
    state = method.init(mean=np.zeros(D, np.float32), cov=1.0)
    X = jnp.asarray(rng.normal(size=(steps, 2, D)) / np.sqrt(D), jnp.float32)
    Y = jnp.asarray(rng.normal(size=(steps, 2)), jnp.float32)
    return lambda: jax.block_until_ready(method.scan(state, X, Y, keep=("mean",))[1].mean)


def slope(sizes, seconds) -> float:
    """The exponent b of seconds = a size^b, by least squares of the logs.

    >>> round(slope([1, 2, 4], [3.0, 12.0, 48.0]), 6)
    2.0
    """
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def run(process: str, quick: bool) -> Result:
    result = Result()
    for job, (prior, ours) in JOBS.items():
        sizes = (16, 32) if quick else (128, 256, 512) if prior == "LSSM" else (512, 1024, 2048)
        inners = () if prior == "LSSM" else (1, 4) if quick else (1, 2, 4, 8)
        measure(result, job, prior, ours, sizes, inners, 3 if quick else 7)
    return result


def measure(result: Result, job: str, prior: str, ours: int, sizes, inners, repeats: int) -> None:
    progress(f"complexity, {job}: compiling")
    steps = 10 if prior == "LSSM" else 40
    keys = [(name, D, 4) for name in FILTERS for D in sizes]
    keys += [(name, sizes[0], n) for name in FILTERS if FILTERS[name][2] for n in inners if n != 4]
    calls = {str(key): build(key[0], prior, key[1], steps, key[2]) for key in keys}
    times = alternate(calls, repeats, f"complexity, {job}:")
    least = {key: min(times[str(key)]) / steps for key in keys}
    for key in keys:
        name, D, inner = key
        label = f"{name}, D = {D}" + (f", I = {inner}" if FILTERS[name][2] else "")
        result.rows.append(
            Row(job, label, "ours", "covariance", "float32", **spread(times[str(key)], steps), unit="us")
        )
    for name, (_, thesis, thesis_inner) in FILTERS.items():
        found = slope(sizes, [least[name, D, 4] for D in sizes])
        result.notes.append(f"{job}, {name}: exponent in D fitted {found:.2f}, predicted {ours}, thesis {thesis}")
        result.bars.append(Bar(f"{job}, {name}: exponent in D", found, ours + SLACK))
        if thesis_inner and inners:
            found = slope(inners, [least[name, sizes[0], n] for n in inners])
            result.notes.append(f"{job}, {name}: exponent in I fitted {found:.2f}, predicted 0, thesis {thesis_inner}")
            result.bars.append(Bar(f"{job}, {name}: exponent in I", found, SLACK))
