"""Regression with heavy tails and changes: an outlier is not a change, if the model may doubt a datum.

Thesis: experiment:heavy-tail-regression. Errors are those of the forecast against the clean regression function.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from filtax import method, models
from filtax.evaluate import f1
from filtax.segmentation import watch
from filtax.synthetic import heavy_tailed_regression
from thesis.experiment import Advance, Experiment, Result, Table, claims
from thesis.figures import COLOURS, DASHES, GREY, INK, Figure, boxes, panels
from thesis.statistics import Verdict, all_of, below, holds_if, of_median

STATIC, PLAIN, WOLF = "LG+C-Static", "LG+RL[inf]-PR", "WoLF+RL[inf]-PR"
WINDOW = 10
LAST = "last value"
LAWS = {"text": None, "published": np.ones(3)}  # of theta_0: U[-3, 3]^3, and (1, 1, 1)
PUBLISHED = {STATIC: 2.53, PLAIN: 1.70, WOLF: 1.24, LAST: None}
MARGIN, EARLIEST = 5, 50


@dataclass(frozen=True)
class Setting:
    """Streams and their length; the hazard and the soft threshold c are those of the thesis."""

    streams: int = 100
    steps: int = 300
    hazard: float = 0.01
    c: float = 4.0


def _run(setting: Setting, seed: int, advance: Advance) -> Result:
    """All methods on the same streams, under both laws of the first parameters."""
    found = {}
    for done, (law, initial) in enumerate(LAWS.items()):
        streams = _streams(setting, seed, initial)
        found[law] = (streams, _learn(setting, streams))
        advance(0.4 * (done + 1))
    streams, runs = found["text"]
    numbers = _measure(streams, runs)
    numbers["published"] = {name: run["rmse"] for name, run in found["published"][1].items()}
    numbers["ratio"] = float(np.median(np.divide(numbers["rmse"][WOLF], numbers["rmse"][PLAIN])))
    chosen = _chosen(streams)
    arrays = _sample(setting, streams[chosen], {name: run["mean"][chosen] for name, run in runs.items()})
    advance(1.0)
    notes = (
        "Text: theta_0 ~ U[-3, 3]^3. Published runs: theta_0 = (1, 1, 1), in the last column. Both: mean 0 and "
        f"covariance I at the start of a segment, noise variance 1, hazard {setting.hazard:g}, c = {setting.c:g} in "
        "the unit of y; nothing is tuned.",
        "The published run weighed hypotheses by a density with a variance in place of a standard deviation, and a new "
        "segment did not learn from its first datum. Corrected, LG+RL[inf]-PR is worse (each outlier starts a segment, "
        "and is learned by it), WoLF+RL[inf]-PR better.",
        f"A reset is a step at which the most probable start of the segment moves ahead; there are "
        f"{numbers['true_changes']:.1f} changes a stream. F1 (margin {MARGIN}) is of the distinct starts moved to.",
    )
    return Result(numbers, arrays, _tables(setting, numbers), notes)


def _streams(setting: Setting, seed: int, initial: Any) -> list:
    keys = jax.random.split(jax.random.key(seed), setting.streams)
    return [heavy_tailed_regression(setting.steps, key=k, hazard=setting.hazard, initial=initial) for k in keys]


def _methods(setting: Setting) -> dict[str, Any]:
    runs = f"RL[inf](capacity={setting.steps + 1})-PR(hazard={setting.hazard})"  # room for all: nothing is given up
    names = {STATIC: "LG+C-Static", PLAIN: f"LG+{runs}", WOLF: f"WoLF-IMQ(c={setting.c})+{runs}"}
    return {label: method(name, model=models.linear(noise=1.0)) for label, name in names.items()}


def _learn(setting: Setting, streams: list) -> dict[str, dict[str, np.ndarray]]:
    """Forecasts, errors and the most probable start of the segment: (N, T) each."""
    X, y, truth = (np.stack([getattr(stream, name) for stream in streams]) for name in ("X", "y", "truth"))
    runs = {}
    for label, filter_ in _methods(setting).items():
        state = filter_.init(mean=jnp.zeros(3), cov=1.0)
        scan = jax.vmap(lambda X, y, f=filter_, s=state: f.scan(s, X, y, keep=("mean", "runlength"))[1])
        infos = jax.jit(scan)(X, y)
        start = np.maximum(np.arange(setting.steps) - np.asarray(infos.runlength), 0)
        runs[label] = {"mean": np.asarray(infos.mean), "start": start}
    runs[LAST] = {"mean": np.concatenate([np.zeros_like(y[:, :1]), y[:, :-1]], axis=1), "start": np.zeros_like(y)}
    for run in runs.values():
        run["square"] = (run["mean"] - truth) ** 2
        run["rmse"] = np.sqrt(run["square"].mean(axis=1))
    return runs


def _measure(streams: list, runs: Mapping[str, Mapping[str, np.ndarray]]) -> dict[str, Any]:
    found = {name: _resets(runs[name]["start"]) for name in (PLAIN, WOLF)}
    changed = [i for i, stream in enumerate(streams) if stream.changes]
    first = {i: streams[i].changes[0] for i in changed if streams[i].changes[0] > EARLIEST}
    rolling = {name: _rolling(run["square"]) for name, run in runs.items()}
    halves = {
        "before": {name: [float(of[i, :at].mean()) for i, at in first.items()] for name, of in rolling.items()},
        "after": {name: [float(of[i, at:].mean()) for i, at in first.items()] for name, of in rolling.items()},
    }
    return {
        "rmse": {name: run["rmse"].tolist() for name, run in runs.items()},
        "resets": {name: [count for count, _ in of] for name, of in found.items()},
        "f1": {n: [f1([streams[i].changes], of[i][1], MARGIN) for i in changed] for n, of in found.items()},
        "true_changes": float(np.mean([len(stream.changes) for stream in streams])),
        "true": [len(stream.changes) for stream in streams],
        **halves,
    }


def _resets(starts: np.ndarray) -> list[tuple[int, list[int]]]:
    """For each stream, how often the most probable start moved ahead, and where to."""
    moved = np.diff(starts, axis=1, prepend=starts[:, :1]) > 0
    return [(int(m.sum()), sorted({int(s) for s in row[m]})) for row, m in zip(starts, moved, strict=True)]


def _rolling(square: np.ndarray) -> np.ndarray:
    """Root of the mean square of the last `WINDOW` errors, fewer at the beginning: (N, T)."""
    total = np.cumsum(np.pad(square, ((0, 0), (1, 0))), axis=1)
    end = np.arange(1, square.shape[1] + 1)
    begin = np.maximum(end - WINDOW, 0)
    return np.sqrt((total[:, end] - total[:, begin]) / (end - begin))


def _chosen(streams: list) -> int:
    """The stream that is drawn: the first with four changes after step 50, else the one with the most changes."""
    counts = [len(stream.changes) for stream in streams]
    good = [i for i, s in enumerate(streams) if len(s.changes) == 4 and s.changes[0] > EARLIEST]
    return good[0] if good else int(np.argmax(counts))


def _sample(setting: Setting, stream: Any, means: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What the figures show of one stream."""
    arrays = {"x": stream.X[:, 1], "y": stream.y, "theta": stream.theta, "changes": np.array(stream.changes, int)}
    for name, mean in means.items():
        if name != LAST:
            arrays[f"rolling {name}"] = _rolling((mean - stream.truth)[None] ** 2)[0]
    for label, filter_ in _methods(setting).items():
        if label == STATIC:
            continue
        state = filter_.init(mean=jnp.zeros(3), cov=1.0)
        seen = watch(filter_, state, stream.X, stream.y, posterior=True)[1]
        starts, weight = np.asarray(seen.starts), np.asarray(seen.log_weight)
        image = np.full((setting.steps, setting.steps), -np.inf)
        for t in range(setting.steps):
            np.logaddexp.at(image[:, t], t - starts[t], weight[t])
        arrays[f"posterior {label}"] = image.astype(np.float32)
    return arrays


def _tables(setting: Setting, numbers: Mapping[str, Any]) -> tuple[Table, ...]:
    def told(values: Any) -> tuple[float, Any, str]:
        low, middle, high = np.quantile(values, (0.25, 0.5, 0.75))
        return float(middle), of_median(values), f"{low:.2f} to {high:.2f}"

    n = numbers
    heads = ("ours", "ours, theta_0 = (1, 1, 1)")
    error = Table(
        f"RMSE of {setting.streams} streams: medians, their intervals, and the middle half of the streams",
        ("method", "published", *(f"{head}{part}" for head in heads for part in ("", ", 95 %", ", quartiles"))),
        [(name, PUBLISHED[name], *told(v), *told(n["published"][name])) for name, v in n["rmse"].items()],
        published=("published",),
    )
    resets = [(name, *told(n["resets"][name])[:2], *told(n["f1"][name])[:2]) for name in (PLAIN, WOLF)]
    counts = Table("Resets a stream, and F1: medians", ("method", "resets", "95 %", "F1", "F1, 95 %"), resets)
    halves = [
        (name, *told(n["before"][name])[:2], *told(n["after"][name])[:2])
        for name in (STATIC, PLAIN, WOLF)
        if n["before"][name]
    ]
    title = f"Mean rolling RMSE, streams whose first change comes after step {EARLIEST}: medians"
    return error, counts, Table(title, ("method", "before it", "before, 95 %", "after it", "after, 95 %"), halves)


def _lowest(result: Result) -> Verdict:
    """WoLF below both others, and below the last value."""
    rmse = result.numbers["rmse"]
    return all_of(*[below(rmse[WOLF], rmse[other], (WOLF, other)) for other in (PLAIN, STATIC, LAST)])


def _segments(result: Result) -> Verdict:
    """LG resets at least three times too often; WoLF at most half as often, at most twice too often, and in place."""
    n = result.numbers
    plain, wolf, true = np.median(n["resets"][PLAIN]), np.median(n["resets"][WOLF]), n["true_changes"]
    f1 = float(np.median(n["f1"][WOLF])) if n["f1"][WOLF] else 0.0
    parts = [
        holds_if(plain >= 3 * true, f"LG resets {plain:g} times a stream, {true:.2g} changes are true"),
        holds_if(wolf <= plain / 2, f"WoLF resets {wolf:g} times"),
        holds_if(wolf <= 2 * true, f"WoLF's {wolf:g} against twice the truth, {2 * true:.2g}"),
        holds_if(f1 >= 0.6, f"F1 of WoLF's resets {f1:.2f}"),
    ]
    return all_of(*parts)


def _deteriorates(result: Result) -> Verdict:
    """C-Static below LG+RL[inf]-PR up to the first change, and worse after it than before."""
    n = result.numbers
    before, after = n["before"], n["after"]
    return all_of(
        below(before[STATIC], before[PLAIN], ("before it C-Static", PLAIN)),
        below(before[STATIC], after[STATIC], ("C-Static before", "after")),
    )


def draw_sample(result: Result) -> Figure:
    """The data of each segment, with its true curve."""
    a = result.arrays
    edges = [0, *a["changes"], len(a["x"])]
    count = len(edges) - 1
    columns = min(count, 3)
    figure, axes = panels(-(-count // columns), columns, size=(9.0, 2.6 * -(-count // columns)))
    grid = np.linspace(-2.0, 2.0, 100)
    axes = np.atleast_1d(axes).ravel()
    for i, axis in enumerate(axes):
        if i >= count:
            axis.set_axis_off()
            continue
        low, high = edges[i], edges[i + 1]
        theta = a["theta"][low]
        curve = theta[0] + theta[1] * grid + theta[2] * grid**2
        axis.scatter(a["x"][low:high], a["y"][low:high], s=10, color=COLOURS[0], alpha=0.7, lw=0)
        axis.plot(grid, curve, color=INK)
        axis.set(title=f"steps {low} to {high - 1}", xlabel="x" if i >= count - columns else None, xlim=(-2.1, 2.1))
    axes[0].set_ylabel("y")
    return figure


def draw_errors(result: Result) -> Figure:
    """Rolling error of one stream, and the errors of all."""
    figure, (left, right) = panels(1, 2, size=(10.0, 3.4), width_ratios=(1.5, 1.0))
    names = (STATIC, PLAIN, WOLF)
    for name, colour, dash in zip(names, COLOURS, DASHES, strict=False):
        left.plot(result.arrays[f"rolling {name}"], color=colour, ls=dash, lw=1.4, label=name)
    for change in result.arrays["changes"]:
        left.axvline(change, color=GREY, ls=":")
    left.set(xlabel="step", ylabel=f"RMSE of the last {WINDOW}", title="One stream; dotted: true changes")
    left.legend(fontsize=8)
    boxes(right, [result.numbers["rmse"][n] for n in names], [n.replace("+", "+\n", 1) for n in names])
    right.set(ylabel="RMSE", title="All streams", ylim=(0, None))
    return figure


def draw_posteriors(result: Result) -> Figure:
    """Log posterior of the run length, and the path of its mode."""
    figure, axes = panels(1, 2, size=(10.0, 3.6), sharey=True)
    for axis, name in zip(axes, (PLAIN, WOLF), strict=True):
        image = result.arrays[f"posterior {name}"]
        axis.imshow(image, origin="lower", aspect="auto", cmap="Greys", vmin=-12, vmax=0, interpolation="none")
        axis.plot(image.argmax(axis=0), color=COLOURS[1], lw=1.0, label="mode")
        for change in result.arrays["changes"]:
            axis.axvline(change, color=GREY, ls=":", lw=1.0)
        axis.set(title=name, xlabel="step t")
    longest = max(int(result.arrays[f"posterior {name}"].argmax(axis=0).max()) for name in (PLAIN, WOLF))
    axes[0].set(ylabel="run length", ylim=(0, 1.15 * longest + 5))
    axes[0].legend(loc="upper left")
    figure.colorbar(axes[0].images[0], ax=axes, label="log p(r | y)", pad=0.01)
    return figure


EXPERIMENT = Experiment(
    name="heavy-tail",
    title="Regression with heavy tails and changing parameters",
    sizes={"quick": Setting(), "full": Setting(streams=1000)},
    run=_run,
    figures={
        "fig:segements-tdlist-lr": draw_sample,
        "fig:outliers-lr-res": draw_errors,
        "fig:bocd-lr-stress": draw_posteriors,
    },
    claims=claims({33: _lowest, 34: _segments, 35: _deteriorates}),
    fixed={"laws": LAWS},
)
