"""2-D tracking when each trial has a covariance of its own: the plain filter with its guards, beside robust ones.

`LG` alone means the square root here, and so it does in `filtax reproduce tracking`: its reductions are most of the
work, so that doubt adds less to it than to a covariance. Both forms are timed.

A robust filter that iterates may cost its iterations: KF-B and KF-IW are held to 1.3 of them. These two bars divide the
least times of interleaved runs, which a busy machine moves least.
"""

from benchmarks.harness import Bar, Result, Row, alternate, progress, spread
from benchmarks.tracking import problem

GROUP = "means, a covariance for each trial"
INNER = 4
NAMES = {
    "LG": "LG(form=covariance)+C-LSSM",
    "WoLF-IMQ": "WoLF-IMQ(c=4)+LG(form=covariance)+C-LSSM",
    "LG, root": "LG(form=root)+C-LSSM",
    "WoLF-IMQ, root": "WoLF-IMQ(c=4)+LG(form=root)+C-LSSM",
    "KF-B": f"OB(iterations={INNER}, form=covariance)+C-LSSM",
    "KF-IW": f"IW(iterations={INNER}, form=covariance)+C-LSSM",
}


def ours(name: str, setting, Y):
    """The contract path, vmapped over trials; a guarded or a robust gain depends on the data, so nothing is shared."""
    import jax
    import jax.numpy as jnp

    import filtax as fx

    F, Q, H, R, m0, P0 = (jnp.asarray(a) for a in setting)
    kf = fx.method(name, model=fx.models.linear(noise=R), prior=fx.priors.linear_dynamics(F=F, Q=Q))
    state, X, data = kf.init(mean=m0, cov=P0), jnp.broadcast_to(H, (Y.shape[1], 2, 4)), jnp.asarray(Y)
    one = lambda kf, state, X, y: kf.scan(state, X, y, keep=("belief_mean",))[1].belief_mean
    run = jax.jit(jax.vmap(one, in_axes=(None, None, None, 0)))
    return lambda: jax.block_until_ready(run(kf, state, X, data))


def run(process: str, quick: bool) -> Result:
    result = Result()
    setting, Y = problem(*((20, 50) if quick else (500, 1000)))
    progress(f"robust, {process}: compiling")
    calls = {label: ours(name, setting, Y) for label, name in NAMES.items()}
    times = alternate(calls, 5 if quick else 9, f"robust, {process}:")
    for label in NAMES:
        form = "root" if label.endswith("root") else "covariance"
        result.rows.append(Row(GROUP, f"{label}, {process}", "ours", form, "float32", **spread(times[label])))
    seconds = {label: result.seconds(f"{label}, {process}", GROUP) for label in NAMES}
    result.bars.append(Bar(f"WoLF-IMQ / LG, {process}", seconds["WoLF-IMQ"] / seconds["LG"], 1.3))
    result.bars.append(Bar(f"WoLF-IMQ / LG, root, {process}", seconds["WoLF-IMQ, root"] / seconds["LG, root"], 1.3))
    result.bars.append(Bar(f"WoLF-IMQ, {process}, ms", 1e3 * seconds["WoLF-IMQ"], 60.0))
    least = {label: min(times[label]) for label in NAMES}
    for label in ("KF-B", "KF-IW"):
        ratio = least[label] / (INNER * least["LG"])
        result.bars.append(Bar(f"{label}, {INNER} iterations / ({INNER} x LG), {process}, least times", ratio, 1.3))
    return result
