"""R-VGA by samples on the 81-parameter network of the moons: memory and time of a step against the samples S.

The compiler says how many bytes it set aside beside arguments and results. Rows of a Jacobian for each sample are S D
numbers; a curvature for each sample would be S D².
"""

import numpy as np

from benchmarks.harness import Bar, Result, Row, alternate, progress, spread

GROUP = "one step"
INNER = 4
MOST = 4  # times S D + 4 D² numbers: draws, rows, what the network keeps between layers, and a few of the belief's size


def build(samples: int):
    """A call that makes one step, the bytes that XLA sets aside for it, and D."""
    import jax

    import filtax as fx
    from filtax import bone
    from thesis.expfam_moons import moons_model

    net, model = moons_model()
    method = fx.method(f"RVGA(iterations={INNER}, samples={samples})+C-Static", model=model)
    state = method.init(params=net.init(jax.random.key(0), "float32"), cov=0.3, key=jax.random.key(1))
    x, y = np.ones(2, np.float32), np.float32(1.0)
    program = bone._step.lower(method, state, x, y, None, None, None).compile()
    held = program.memory_analysis().temp_size_in_bytes
    return lambda: jax.block_until_ready(method.step(state, x, y)[1].mean), held, net.size


def run(process: str, quick: bool) -> Result:
    result = Result()
    sizes = (50, 100) if quick else (126, 250, 500, 1000)
    progress("variational: compiling")
    built = {S: build(S) for S in sizes}
    D = built[sizes[-1]][2]
    times = alternate({f"S = {S}": built[S][0] for S in sizes}, 3 if quick else 7, "variational:")
    for S in sizes:
        result.rows.append(Row(GROUP, f"S = {S}, I = {INNER}", "ours", "root", "float32", **spread(times[f"S = {S}"])))
        held = built[S][1]
        result.notes.append(f"S = {S}, D = {D}: {held / 2**20:.2f} MiB aside, {held / (4 * S * D):.2f} x S D numbers")
    S, held = sizes[-1], built[sizes[-1]][1]
    result.bars.append(Bar(f"bytes aside / (S D + 4 D² numbers), S = {S}", held / (4 * D * (S + 4 * D)), MOST))
    return result
