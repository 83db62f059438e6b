"""Events one at a time from Python, the result read back as numpy: latency of the contract path and of the fast one."""

import time
from collections.abc import Callable

import numpy as np

from benchmarks.events_peers import filterpy, floor, numpy_kalman, numpy_regression, river
from benchmarks.harness import Bar, Result, Row, progress
from benchmarks.tracking import problem

LOOP, CHUNK, REGRESSION = "KF(4,2), one event", "KF(4,2), per event of a chunk", "Bayesian regression, d=10, one event"


def latencies(
    contestants: dict[str, Callable[[int], object]], events: int, rounds: int, label: str
) -> dict[str, np.ndarray]:
    """Seconds of every single event; contestants take turns by the round, the first round only warms up."""
    times: dict[str, list[np.ndarray]] = {name: [] for name in contestants}
    spoken = time.perf_counter()
    for turn in range(rounds + 1):
        for name, event in contestants.items():
            if time.perf_counter() - spoken > 2.0:
                spoken = time.perf_counter()
                progress(f"{label} {name}: round {turn} of {rounds}")
            stamps = np.empty(events + 1)
            stamps[0] = time.perf_counter()
            for i in range(events):
                event(i)
                stamps[i + 1] = time.perf_counter()
            if turn:
                times[name].append(np.diff(stamps))
    return {name: np.stack(rows) for name, rows in times.items()}


def record(
    result: Result, group: str, name: str, role: str, form: str, dtype: str, times: np.ndarray, per: int = 1
) -> None:
    """A row from the median of the rounds' medians; the tail goes into a note."""
    middle = np.median(times, axis=1) / per
    best, worst = float(middle.min()), float(middle.max())
    result.rows.append(Row(group, name, role, form, dtype, float(np.median(middle)), best, worst, "us"))
    tail = f"p50 {1e6 * np.median(times) / per:.1f}, p99 {1e6 * np.quantile(times, 0.99) / per:.1f} us"
    result.notes.append(f"{group}: {name}: {tail}")


def tracker(setting, form: str = "covariance"):
    """(method, state, H) of the tracking problem."""
    import jax.numpy as jnp

    import filtax as fx

    F, Q, H, R, m0, P0 = (jnp.asarray(a) for a in setting)
    kf = fx.method(
        f"LG(form={form})+C-LSSM", model=fx.models.linear(noise=R), prior=fx.priors.linear_dynamics(F=F, Q=Q)
    )
    return kf, kf.init(mean=m0, cov=P0), np.asarray(H)


def contract(method, state, xs, ys):
    """`step` as a user writes it; what is read back is the forecast."""
    held = [state]

    def event(i):
        held[0], info = method.step(held[0], xs[i % len(xs)], ys[i % len(ys)])
        return np.asarray(info.mean)

    return event


def fast(method, state, xs, ys):
    """`fx.online`: the state stays packed inside, numpy goes in and comes out."""
    import filtax as fx

    compiled = fx.online(method, state, xs[0], ys[0])
    return lambda i: np.asarray(compiled.step(xs[i % len(xs)], ys[i % len(ys)]).mean)


def regression(result: Result, process: str, events: int, rounds: int) -> None:
    """Predict and learn, ten features, beside river and a rank-one update by hand."""
    import jax.numpy as jnp

    import filtax as fx

    rng = np.random.default_rng(3)
    xs = rng.normal(size=(512, 10)).astype(np.float32)
    ys = (xs @ rng.normal(size=10) + 0.5 * rng.normal(size=512)).astype(np.float32)
    method = fx.method("LG(form=covariance)+C-Static", model=fx.models.linear(noise=0.25))
    state = method.init(mean=jnp.zeros(10), cov=1.0)
    found = {
        f"filtax.step, {process}": ("ours", "covariance", "float32", contract(method, state, xs, ys)),
        f"filtax.online, {process}": ("ours", "covariance", "float32", fast(method, state, xs, ys)),
        "numpy by hand": ("bound", "covariance", "float32", numpy_regression(xs, ys)),
    }
    if (package := result.peer("river.linear_model")) is not None:
        found["river"] = ("peer", "precision", "float64", river(package, xs, ys))
    times = latencies({k: v[-1] for k, v in found.items()}, events, rounds, "events:")
    for name, (role, form, dtype, _) in found.items():
        record(result, REGRESSION, name, role, form, dtype, times[name])


def chunks(result: Result, setting, ys, process: str, rounds: int) -> None:
    """512 events, promised to be complete, through `scan`; numpy in and out."""
    kf, state, H = tracker(setting)
    held, X = [state], np.broadcast_to(H, (512, 2, 4)).copy()

    def event(i):
        held[0], info = kf.scan(held[0], X, ys, keep=("mean",), complete=True)
        return np.asarray(info.mean)

    times = latencies({"chunk": event}, 100, rounds, "events:")["chunk"]
    record(result, CHUNK, f"filtax.scan(complete=True), {process}", "ours", "covariance", "float32", times, per=512)
    limit = 0.2 if process == "tuned" else 4.0
    result.bars.append(Bar(f"chunks of 512, {process}, us per event", 1e6 * result.rows[-1].seconds, limit))


def tracking(result: Result, setting, ys, process: str, events: int, rounds: int) -> None:
    """The Kalman filter, one event after the other."""
    found = {}
    for form in ("covariance", "root"):  # the latter is the default
        kf, state, H = tracker(setting, form)
        xs, label = [H] * 512, "" if form == "covariance" else "root, "
        found |= {
            f"filtax.step, {label}{process}": ("ours", form, "float32", contract(kf, state, xs, ys)),
            f"filtax.online, {label}{process}": ("ours", form, "float32", fast(kf, state, xs, ys)),
        }
    found |= {
        "one jitted addition": ("note", "-", "float32", floor(ys)),
        "numpy by hand": ("bound", "covariance", "float32", numpy_kalman(setting, ys)),
    }
    if (package := result.peer("filterpy.kalman")) is not None:
        found["filterpy"] = ("peer", "covariance", "float64", filterpy(package, setting, ys))
    times = latencies({k: v[-1] for k, v in found.items()}, events, rounds, "events:")
    for name, (role, form, dtype, _) in found.items():
        record(result, LOOP, name, role, form, dtype, times[name])
    for name, (role, *_) in found.items():
        if role == "ours":
            limit = 45.0 if name.startswith("filtax.step") else 16.0
            result.bars.append(Bar(f"{name}, KF(4,2), us per event", 1e6 * result.seconds(name, LOOP), limit))


def run(process: str, quick: bool) -> Result:
    result = Result()
    events, rounds = (50, 5) if quick else (2000, 7)
    setting, Y = problem(1, 512)
    chunks(result, setting, Y[0], process, rounds)
    tracking(result, setting, Y[0], process, events, rounds)
    regression(result, process, events, rounds)
    return result
