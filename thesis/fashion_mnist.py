"""Fashion-MNIST learned in one pass: a subspace, PULSE and LoFi by their dimension, and all of them by their time.

The network warms up on data of its own. Hyper-parameters are chosen on the warm-up data alone: the network trains on
three quarters of them, the filter runs over the rest, and then all are trained on.

Thesis: sec:experiments-scalability, fig:fashion-mnist-subspace-rank, fig:fashion-mnist-pulse-rank,
fig:fashion-mnist-lofi-rank, fig:showdown-mnist-lofi-rank.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import matplotlib as mpl
import numpy as np

from filtax import method, models, warmup
from filtax.datasets import read_images
from thesis.experiment import Advance, Experiment, Result, Table, claims
from thesis.figures import COLOURS, GREY, INK, Figure, panels
from thesis.findings import keep
from thesis.statistics import UNDECIDED, Interval, Verdict, all_of, holds_if, holds_only_if, of_mean

STRETCHES = 20  # of the last labels, whose means are taken as independent
GRIDS = {
    "subspace": (1e-3, 1e-2, 1e-1, 1.0),
    "subspace, untrained": (1e-2, 1e-1, 1.0, 10.0),
    "PULSE": (1e-3, 1e-2, 1e-1),
    "LoFi": (3e-3, 1e-2, 3e-2, 1e-1),
    "LoFi, warmed up": (1e-5, 1e-4, 1e-3, 1e-2),
}


@dataclass(frozen=True)
class Setting:
    """Sizes; `pool` makes images smaller by taking means, for the quick size, where the network is a perceptron.

    LoFi by rank is run on several draws of the data and of the first parameters, the rest on the first of them.
    """

    stream: int = 20_000
    last: int = 8_000
    warm: int = 2_000
    epochs: int = 20
    dimensions: tuple[int, ...] = (1, 5, 10, 25, 50, 70, 100)
    wide: tuple[int, ...] = (150, 200, 250)
    few: tuple[int, ...] = (1, 10, 50)
    draws: int = 3
    pool: int = 1


class Task(NamedTuple):
    """The network, its data, and what the warm-up made of it."""

    net: Any
    model: Any
    X: np.ndarray
    y: np.ndarray
    first: Any
    warm: Any
    warm_seconds: float


def _data(setting: Setting, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Warm-up and stream, of the training images in random order, in [0, 1]."""
    images = read_images("fashion-mnist")
    order = np.random.default_rng(seed).permutation(len(images.X))[: setting.warm + setting.stream]
    X = images.X[order].astype("float32") / 255.0
    if setting.pool > 1:
        side = 28 // setting.pool
        X = X.reshape(len(X), side, setting.pool, side, setting.pool).mean((2, 4)).reshape(len(X), -1)
    else:
        X = X[..., None]
    y = images.y[order].astype("float32")
    return X[: setting.warm], y[: setting.warm], X[setting.warm :], y[setting.warm :]


def _tasks(setting: Setting, seed: int) -> tuple[Task, Task]:
    """What hyper-parameters are chosen on, and what is reported: the first is made of warm-up data alone."""
    side = 28 // setting.pool
    net = models.mlp((side * side, 30, 20, 10)) if setting.pool > 1 else models.lenet5(extra=True)
    model = models.nonlinear(net.apply, likelihood=models.categorical())
    first = net.init(jax.random.key(seed), "float32")
    X_warm, y_warm, X, y = _data(setting, seed)
    split = setting.warm * 3 // 4

    def task(X_warm: np.ndarray, y_warm: np.ndarray, X: np.ndarray, y: np.ndarray) -> Task:
        began = time.perf_counter()
        stride = max(1, setting.epochs * -(-len(y_warm) // 64) // (2 * max(setting.dimensions + setting.wide)))
        warm = warmup(
            model,
            first,
            X_warm,
            y_warm,
            1e-3,
            epochs=setting.epochs,
            batch=64,
            stride=stride,
            each="step",
            key=jax.random.key(seed + 1),
        )
        return Task(net, model, X, y, first, warm, time.perf_counter() - began)

    return task(X_warm[:split], y_warm[:split], X_warm[split:], y_warm[split:]), task(X_warm, y_warm, X, y)


def _method(task: Task, kind: str, d: int, cov: float) -> tuple[Any, Any]:
    """A method and its first state, with one variance for what the choice is about."""
    match kind:
        case "subspace":
            model = models.subspace(task.model, task.warm.directions(d, "centred"), task.warm.params)
            filter_ = method("LG(form=covariance)+C-Static", model=model)
            return filter_, filter_.init(cov=cov)
        case "subspace, untrained":
            model = models.subspace(task.model, task.warm.directions(d, "uncentred"), task.first)
            filter_ = method("LG(form=covariance)+C-Static", model=model)
            return filter_, filter_.init(cov=cov)
        case "PULSE":
            model = models.subspace(task.model, task.warm.directions(d, "centred", last=True), task.warm.params, True)
            filter_ = method("PULSE(hidden=covariance, last=covariance)+C-Static", model=model)
            return filter_, filter_.init(cov=(cov, cov))
        case _:
            filter_ = method(f"LoFi(rank={d})+C-Static", model=task.model)
            return filter_, filter_.init(params=task.first if kind == "LoFi" else task.warm.params, cov=cov)


def learner(task: Task, kind: str, d: int) -> Callable[[float], tuple[np.ndarray, float]]:
    """One pass of a method over the stream of a task, compiled once for every variance at the start.

    `kind` is a name of `GRIDS`, d the dimension of the subspace, or the rank. Returned is a function of the variance:
    whether each label was the most probable before it was seen, (T,), and the seconds.
    """

    def right(filter_: Any, state: Any, X: Any, y: Any) -> Any:
        return filter_.scan(state, X, y, keep=("mean",))[1].mean.argmax(-1).astype(y.dtype) == y

    X, y = jax.device_put((task.X, task.y))
    compiled = jax.jit(right).lower(*_method(task, kind, d, 1.0), X, y).compile()

    def run(cov: float) -> tuple[np.ndarray, float]:
        filter_, state = jax.block_until_ready(_method(task, kind, d, cov))
        began = time.perf_counter()
        found = jax.block_until_ready(compiled(filter_, state, X, y))
        return np.asarray(found), time.perf_counter() - began

    return run


def _chosen(task: Task, kind: str, d: int) -> float:
    """The variance with which most of the labels held back were right."""
    run = learner(task, kind, d)
    scores = [run(cov)[0].mean() for cov in GRIDS[kind]]
    return GRIDS[kind][int(np.argmax(scores))]


def _plan(setting: Setting) -> Iterator[tuple[str, int]]:
    for d in setting.dimensions + setting.wide:
        yield "subspace", d
    for d in setting.few:
        yield "subspace, untrained", d
    for d in setting.dimensions:
        yield "PULSE", d
        yield "LoFi", d
    for d in setting.few:
        yield "LoFi, warmed up", d


def _run(setting: Setting, seed: int, advance: Advance) -> Result:
    held_back, task = _tasks(setting, seed)
    plan, rows, curves, covs, intervals = list(_plan(setting)), [], {}, {}, []
    whole = len(plan) + (setting.draws - 1) * len(setting.dimensions)
    for done, (kind, d) in enumerate(plan):
        words = f"{kind}, d={d}"
        covs[words] = cov = keep(f"{words}, chosen", partial(_chosen, held_back, kind, d))
        right, seconds = keep(words, lambda of=(task, kind, d), cov=cov: learner(*of)(cov))
        rows.append((kind, d, float(1 - right[-setting.last :].mean()), seconds))
        intervals.append(_interval(right[-setting.last :]))
        curves[f"{kind}/{d}"] = _ewma(right)
        advance((done + 1) / whole)
    where = keep("where", partial(_where, task))
    majority = float(1 - np.bincount(task.y[-setting.last :].astype(int)).max() / setting.last)
    last = 1 - np.mean(task.y[-setting.last :] == task.y[-setting.last - 1 : -1])
    numbers = {
        "rows": rows,
        "intervals": intervals,
        "draws": _draws(setting, seed, lambda done: advance((len(plan) + done) / whole)),
        "cov": covs,
        "majority": majority,
        "last_class": float(last),
        "parameters": task.net.size,
        **where,
    }
    return Result(numbers, curves, (_table(setting, numbers),), _notes(setting, numbers))


def _where(task: Task) -> dict[str, Any]:
    """The device, and how long the warm-up took on it: what was run elsewhere keeps both."""
    return {"device": jax.devices()[0].device_kind, "warm_seconds": task.warm_seconds}


def _draws(setting: Setting, seed: int, advance: Advance) -> list[tuple[int, float]]:
    """(rank, misclassification) of LoFi, of all draws but the first."""
    found = []
    for draw in range(1, setting.draws):
        held_back, task = _tasks(setting, seed + 1000 * draw)
        for d in setting.dimensions:
            cov = keep(f"LoFi, d={d}, draw {draw}, chosen", partial(_chosen, held_back, "LoFi", d))
            right, _ = keep(f"LoFi, d={d}, draw {draw}", lambda of=(task, "LoFi", d), cov=cov: learner(*of)(cov))
            found.append((d, float(1 - right[-setting.last :].mean())))
            advance(len(found))
    return found


def _table(setting: Setting, numbers: dict[str, Any]) -> Table:
    return Table(
        f"Misclassification of the last {setting.last:,}, and seconds of {setting.stream:,} steps",
        ("method", "d", "misclassification", "95 %", "seconds"),
        [
            *(
                (kind, d, error, ends, s)
                for (kind, d, error, s), ends in zip(numbers["rows"], numbers["intervals"], strict=True)
            ),
            ("majority class", None, numbers["majority"], None, None),
            ("last class", None, numbers["last_class"], None, None),
        ],
    )


def _notes(setting: Setting, numbers: dict[str, Any]) -> tuple[str, ...]:
    return (
        f"The network has {numbers['parameters']:,} parameters; it ran on {numbers['device']}. The warm-up took "
        f"{numbers['warm_seconds']:.1f} s, which the seconds do not include.",
        "Variances at the start, chosen on warm-up data alone: "
        + ", ".join(f"{k} {v:g}" for k, v in numbers["cov"].items())
        + ".",
        f"Intervals, of 95 %, are Student's over stretches of {setting.last // STRETCHES} labels: they tell of other "
        "images, not of other first networks or orders.",
        "Published: no numbers. The nearest public run of LoFi (random start, 20,000 steps) ends at 0.27 to 0.30.",
    )


def _interval(right: np.ndarray) -> Interval:
    """Of the share missed, by the means of stretches of the stream: neighbours share the state of the filter."""
    return of_mean([1 - part.mean() for part in np.array_split(right, STRETCHES)])


def _ewma(right: np.ndarray, span: int = 100) -> np.ndarray:
    out, level, beta = np.empty(len(right)), 0.0, 2.0 / (span + 1)
    for t, value in enumerate(right):
        level = level + beta * (value - level) if t else float(value)
        out[t] = level
    return out


PULSE_AT, WIDE = 70, 100  # dimensions that the last claim names


def _by(result: Result, kind: str, column: int = 2) -> dict[int, float]:
    """Errors by dimension, or seconds, which are the next column."""
    return {row[1]: row[column] for row in result.numbers["rows"] if row[0] == kind}


def _dense_memory(result: Result) -> Verdict:
    D = models.mlp((784, 100, 100, 100, 10)).size
    return holds_if(D == 99_710 and round(4 * D**2 / 1e9, 1) == 39.8, f"{D:,} parameters, {4 * D**2 / 1e9:.1f} GB")


def _subspace(result: Result) -> Verdict:
    trained, untrained = _by(result, "subspace"), _by(result, "subspace, untrained")
    few = [d for d in trained if d <= 10]
    chance = all(trained[d] >= 0.85 for d in few)
    d, error = np.array(list(trained)), np.array(list(trained.values()))
    rank = np.corrcoef(d.argsort().argsort(), (-error).argsort().argsort())[0, 1]
    grows = holds_if(rank > 0.8, f"rank correlation of d and accuracy {rank:.2f}")
    seen = ", ".join(f"d={k}: {trained[k]:.3f}" for k in few)
    if chance:
        return all_of(holds_if(True, f"with d <= 10 {seen}"), grows)
    other = {d: error for d, error in untrained.items() if d <= 10}
    told = f"offset trained {seen}; untrained " + ", ".join(f"d={d}: {error:.3f}" for d, error in other.items())
    return all_of(holds_only_if(all(e >= 0.85 for e in other.values()), "the offset is untrained", told), grows)


def _pulse(result: Result) -> Verdict:
    pulse, subspace = _by(result, "PULSE"), _by(result, "subspace")
    ours, other = (max(errors.values()) - min(errors.values()) for errors in (pulse, subspace))
    return all_of(
        holds_if(subspace[1] - pulse[1] >= 0.10, f"d = 1: subspace {subspace[1]:.3f}, PULSE {pulse[1]:.3f}"),
        holds_if(ours < other / 2, f"ranges {ours:.3f} and {other:.3f}"),
    )


def _lofi(result: Result) -> Verdict:
    seconds = _by(result, "LoFi", 3)
    all_draws = [*_by(result, "LoFi").items(), *result.numbers["draws"]]
    errors = {d: float(np.mean([error for rank, error in all_draws if rank == d])) for d in seconds}
    low, high = min(seconds), max(seconds)
    spread = max(errors.values()) - min(errors.values())
    ratio = seconds[high] / seconds[low]
    return all_of(
        holds_if(
            spread <= 0.03,
            f"errors from {min(errors.values()):.3f} to {max(errors.values()):.3f}, means of "
            f"{len(all_draws) // len(errors)} draws",
        ),
        holds_if(ratio >= 1.5, f"rank {high} takes {ratio:.2f} times as long as rank {low}"),
    )


def _showdown(result: Result) -> Verdict:
    lofi, pulse, subspace = (_by(result, kind) for kind in ("LoFi", "PULSE", "subspace"))
    if max(pulse) < PULSE_AT or max(subspace) < WIDE:
        said = f"the claim is about PULSE at {PULSE_AT} and a subspace of {WIDE} or more"
        return Verdict(UNDECIDED, f"{said}; the largest that were run are {max(pulse)} and {max(subspace)}")
    times = {kind: _by(result, kind, 3) for kind in ("LoFi", "PULSE", "subspace")}
    middle, d = float(np.median(list(lofi.values()))), min(pulse, key=lambda k: abs(k - PULSE_AT))
    ratio = times["PULSE"][d] / times["LoFi"][d]
    wide = max(subspace)
    near = min(times["LoFi"], key=lambda k: abs(k - wide))
    return all_of(
        holds_if(abs(pulse[d] - middle) <= 0.02, f"PULSE at {d}: {pulse[d]:.3f}, median LoFi {middle:.3f}"),
        holds_if(0.35 <= ratio <= 0.65, f"time ratio {ratio:.2f}"),
        holds_if(abs(subspace[wide] - middle) <= 0.02, f"subspace at {wide}: {subspace[wide]:.3f}"),
        holds_if(times["subspace"][wide] < times["LoFi"][near], f"its time {times['subspace'][wide]:.3g} s"),
    )


def _by_dimension(result: Result, kinds: tuple[str, ...]) -> Figure:
    figure, (left, right) = panels(1, 2, size=(9.5, 3.4))
    rows = [row for row in result.numbers["rows"] if row[0] in kinds]
    shades = mpl.colormaps["viridis"]
    of_first = [row for row in rows if row[0] == kinds[0]]
    for i, (kind, d, *_) in enumerate(of_first):
        curve = result.arrays[f"{kind}/{d}"]
        left.plot(curve, color=shades(0.9 * i / max(1, len(of_first) - 1)), lw=0.9, label=f"{d}")
    left.set(xlabel="data seen", ylabel="accuracy, EWMA of 100", title=kinds[0], ylim=(0, 1))
    left.legend(title="dimension", ncols=2, loc="lower right")
    for kind, marker in zip(kinds, "os", strict=False):
        points = [(d, error) for name, d, error, _ in rows if name == kind]
        right.plot(*zip(*points, strict=True), marker=marker, label=kind)
    right.axhline(result.numbers["majority"], color=GREY, ls="--", label="majority class")
    right.set(xlabel="dimension", ylabel="misclassification", title="Last part of the stream", ylim=(0, 1))
    right.legend()
    return figure


def _draw_showdown(result: Result) -> Figure:
    figure, axis = panels(size=(8.0, 4.2))
    kinds = list(dict.fromkeys(row[0] for row in result.numbers["rows"]))
    for kind, colour, marker in zip(kinds, COLOURS, "os^Dv", strict=False):
        points = [(seconds, error, d) for name, d, error, seconds in result.numbers["rows"] if name == kind]
        axis.plot([p[0] for p in points], [p[1] for p in points], color=colour, marker=marker, ls="", label=kind)
        for seconds, error, d in points:
            axis.annotate(str(d), (seconds, error), textcoords="offset points", xytext=(4, 3), fontsize=7, color=colour)
        best = min(points, key=lambda point: point[1])
        axis.axhline(best[1], color=colour, ls="--", lw=0.9, alpha=0.8)
        axis.axhline(np.median([p[1] for p in points]), color=colour, ls=":", lw=0.9, alpha=0.8)
    axis.plot([], [], color=INK, ls="--", lw=0.9, label="best dimension of each")
    axis.plot([], [], color=INK, ls=":", lw=0.9, label="median over dimensions")
    shown = [row[2] for row in result.numbers["rows"] if row[0] != "subspace, untrained"]
    room = 0.3 * (max(shown) - min(shown)) + 0.002
    title = f"Error and time, by dimension (majority class: {result.numbers['majority']:.2f})"
    axis.set(xlabel="seconds for the stream", ylabel="misclassification", title=title)
    axis.set(ylim=(min(shown) - room, max(shown) + room))  # an untrained subspace of few dimensions is off the scale
    axis.legend()
    return figure


EXPERIMENT = Experiment(
    name="fashion-mnist",
    title="Filters of a network by their dimension: subspace, PULSE, LoFi",
    sizes={"quick": Setting(600, 300, 300, 10, (1, 10), (30,), (1,), draws=2, pool=2), "full": Setting()},
    run=_run,
    figures={
        "fig:fashion-mnist-subspace-rank": partial(_by_dimension, kinds=("subspace", "subspace, untrained")),
        "fig:fashion-mnist-pulse-rank": partial(_by_dimension, kinds=("PULSE",)),
        "fig:fashion-mnist-lofi-rank": partial(_by_dimension, kinds=("LoFi", "LoFi, warmed up")),
        "fig:showdown-mnist-lofi-rank": _draw_showdown,
    },
    claims=claims({37: _dense_memory, 38: _subspace, 39: _pulse, 40: _lofi, 41: _showdown}),
    data=("fashion-mnist",),
    fixed={"grids": GRIDS},
)
