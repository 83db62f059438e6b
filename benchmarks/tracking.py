"""2-D tracking: a Kalman filter with 4 states and 2 measurements, 500 trials of 1000 steps, float32."""

import numpy as np

from benchmarks import bound, tracking_peers
from benchmarks.harness import Bar, Result, Row, alternate, progress, spread
from benchmarks.tracking_peers import FULL, MEANS


def problem(trials: int, steps: int) -> tuple[tuple, np.ndarray]:
    """(F, Q, H, R, m0, P0) of a nearly constant velocity, and simulated measurements (trials, steps, 2)."""
    dt = 0.1
    F = np.eye(4) + dt * np.eye(4, k=2)
    Q = 0.1 * np.diag([dt**3 / 3, dt**3 / 3, dt, dt]) + 0.1 * dt**2 / 2 * (np.eye(4, k=2) + np.eye(4, k=-2))
    H, R = np.eye(2, 4), 0.25 * np.eye(2) + 0.05
    rng = np.random.default_rng(1)
    z, Y = rng.normal(size=(trials, 4)), np.empty((trials, steps, 2))
    for t in range(steps):
        z = z @ F.T + rng.multivariate_normal(np.zeros(4), Q, size=trials)
        Y[:, t] = z @ H.T + rng.multivariate_normal(np.zeros(2), R, size=trials)
    arrays = (F, Q, H, R, np.zeros(4), np.eye(4))
    return tuple(np.ascontiguousarray(a, np.float32) for a in arrays), Y.astype(np.float32)


def ours(setting, Y, form: str):
    """{group: call}: the contract path, vmapped over trials, on a stream known to be complete."""
    import jax
    import jax.numpy as jnp

    import filtax as fx

    F, Q, H, R, m0, P0 = (jnp.asarray(a) for a in setting)
    prior = fx.priors.linear_dynamics(F=F, Q=Q)
    kf = fx.method(f"LG(form={form})+C-LSSM", model=fx.models.linear(noise=R), prior=prior)
    state, X, data = kf.init(mean=m0, cov=P0), jnp.broadcast_to(H, (Y.shape[1], 2, 4)), jnp.asarray(Y)

    def means(kf, state, X, y):
        return (kf.scan(state, X, y, keep=("belief_mean",), complete=True)[1].belief_mean,)

    def full(kf, state, X, y):
        _, info = kf.scan(state, X, y, keep=("belief_mean", "belief_cov", "log_evidence"), complete=True)
        return info.belief_mean, info.belief_cov, info.log_evidence.sum()

    def bind(filter_one):
        run = jax.jit(jax.vmap(filter_one, in_axes=(None, None, None, 0)))
        return lambda: jax.block_until_ready(run(kf, state, X, data))

    return {MEANS: bind(means), FULL: bind(full)}


def contestants(result: Result, setting, Y, process: str):
    """[(group, name, role, form, dtype, call)] in the order in which they are shown."""
    found = []
    for form in ("covariance", "root"):
        found += [(g, f"filtax, {process}", "ours", form, "float32", c) for g, c in ours(setting, Y, form).items()]
    for full, group in ((False, MEANS), (True, FULL)):
        kind, call = bound.kalman(setting, Y, full)
        if call:
            found.append((group, f"{kind}, 2 threads", "bound", "covariance", "float32", call))
    for name, module, form, dtype, build in tracking_peers.PEERS:
        if process == "tuned" and name != "dynamax":
            continue  # far away, and most do not read XLA's flags: once is enough
        if (package := result.peer(module)) is not None:
            found += [(group, name, "peer", form, dtype, call) for group, call in build(package, setting, Y).items()]
    return found


def agree(found, result: Result) -> None:
    """Refuse to time contestants that do not compute the same thing; the first dynamax or C row is the yardstick."""
    outputs = [(name, form, [np.asarray(part) for part in call()]) for _, name, _, form, _, call in found]
    reference = next(out for name, _, out in outputs if not name.startswith("filtax"))[0]
    worst = 0.0
    for name, form, out in outputs:
        gap = float(np.abs(out[0][:, -1] - reference[:, -1]).max())
        if not gap <= 1e-3:
            raise AssertionError(f"The final means of {name} ({form}) are {gap:.2g} from the others; expected 1e-3.")
        worst = max(worst, gap)
    result.notes.append(f"final means of all rows agree to {worst:.1e}")


def run(process: str, quick: bool) -> Result:
    result = Result()
    trials, steps = (20, 50) if quick else (500, 1000)
    setting, Y = problem(trials, steps)
    progress(f"tracking, {process}: compiling and checking")
    found = contestants(result, setting, Y, process)
    agree(found, result)
    slow = ("simdkalman", "statsmodels", "cuthbert")
    labels = [f"{name} ({form}, {group})" for group, name, _, form, _, _ in found]
    calls = {label: f[-1] for label, f in zip(labels, found, strict=True)}
    near = {label: call for label, call in calls.items() if not label.startswith(slow)}
    far = {label: call for label, call in calls.items() if label.startswith(slow)}
    times = alternate(near, 5 if quick else 11, f"tracking, {process}:") | alternate(far, 5, f"tracking, {process}:")
    for label, (group, name, role, form, dtype, _) in zip(labels, found, strict=True):
        result.rows.append(Row(group, name, role, form, dtype, **spread(times[label])))
    bars(result, process)
    return result


def bars(result: Result, process: str) -> None:
    for group in (FULL, MEANS):
        mine = min(
            row.seconds for row in result.rows if row.role == "ours" and row.form == "covariance" and row.group == group
        )
        for row in result.rows:
            if row.group == group and row.name == "dynamax":
                result.bars.append(Bar(f"filtax {process} / dynamax ({group})", mine / row.seconds, 1.0))
            if row.group == group and row.role == "bound":
                limit = 2.0 if process == "tuned" else 3.0
                result.bars.append(Bar(f"filtax {process} / {row.name} ({group})", mine / row.seconds, limit))
