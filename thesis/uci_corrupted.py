"""A network that learns from corrupted tables: error and time of six methods on nine sets.

Thesis: subsec:uci-corrupted, tab:uci-description. The network has 20 hidden units, D = 20 n + 41 parameters for n
features (the printed table counts the target as a feature). RMedSE is the root of the median square of the forecast
error against what was observed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.colors import to_hex, to_rgb

from filtax import Log
from filtax.datasets import read_table
from filtax.models import mlp
from filtax.synthetic import corrupted_table
from thesis.experiment import Advance, Experiment, Result, Table, claims
from thesis.figures import COLOURS, INK, Figure, name_points, panels
from thesis.findings import keep
from thesis.online_methods import SPACES as NARROW
from thesis.online_methods import alternating, build, learner, searched, stacked
from thesis.statistics import UNDECIDED, Verdict, all_of, below, holds_if, of_mean, of_median
from thesis.uci_readings import (
    DIVERGED,
    HIDDEN,
    ITERATIONS,
    METHODS,
    PUBLISHED,
    PUBLISHED_TIMES,
    SETS,
    STORED,
    TRIED,
    WOLF,
    reading_table,
    readings,
)

LAWS = {"text": "uniform", "published": "sign"}
WIDEST, LAST = 17, "median so far"
ORDERS, ENOUGH = 8, 1000  # orders of the warm-up rows that a setting is judged by, as long as they have so few rows
SPACES = {  # the published runs had p <= 1, where the error of the warm-up rows still falls
    name: {**space, "p": Log(1e-3, 100.0)} if "p" in space else space for name, space in NARROW.items()
}


@dataclass(frozen=True)
class Setting:
    """Trials; rows of a stream, all if None; settings searched on the warm-up rows; sets whose times are taken.

    `read` trials are run as the published ones were (`uci_readings`), if any.
    """

    trials: int = 3
    rows: int | None = 120
    budget: int = 0
    timed: tuple[str, ...] = ("energy",)
    rounds: int = 7
    read: int = 0


def _run(setting: Setting, seed: int, advance: Advance) -> Result:
    """With few rows all sets go through one program; with all rows each has its own, at its true D."""
    data = {name: {law: _streams(setting, name, seed, law) for law in LAWS} for name in SETS}
    chosen = {name: _chosen(setting, name, seed) for name in SETS}
    error: dict[str, Any] = {law: {name: {} for name in SETS} for law in LAWS}
    groups: list[list[str]] = [[*SETS]] if setting.rows else [[name] for name in SETS]
    done = 0
    for method in METHODS:
        for group in groups:
            compute = partial(_errors, setting, method, group, data, chosen, seed)
            for name, law, errors in keep(f"{method}, {' '.join(group)}", compute):
                error[law][name][method] = errors
            done += 1
            advance(0.7 * done / (len(METHODS) * len(groups)))
    for law in LAWS:
        for name in SETS:
            error[law][name][LAST] = [_rmedse(y - _median_so_far(y)) for _, y in data[name][law]]
    times = {}
    for i, name in enumerate(setting.timed):
        times[name] = keep(f"times, {name}", partial(_times, setting, data[name]["text"], chosen[name], seed))
        advance(0.7 + 0.3 * (i + 1) / len(setting.timed))
    sizes = {name: 20 * data[name]["text"][0][0].shape[1] + 41 for name in SETS}
    numbers = {"rmedse": error, "times": times, "size": sizes, "chosen": chosen}
    numbers["read"] = {name: keep(f"read, {name}", partial(_read, setting, name)) for name in SETS if setting.read}
    tables = (error_table(numbers), time_table(numbers["times"]))
    tables = (*tables, reading_table(numbers["read"])) if numbers["read"] else tables
    return Result(numbers, {}, tables, _notes(setting, chosen))


@lru_cache(maxsize=2)
def _table(name: str) -> tuple[np.ndarray, np.ndarray]:
    columns = np.column_stack(list(read_table(name).values())).astype(float)
    return columns[:, :-1], columns[:, -1]


def _read(setting: Setting, name: str) -> dict[str, Any]:
    return readings(name, *_table(name), trials=setting.read)


def _parts(setting: Setting, name: str, seed: int, law: str, trials: int) -> list[tuple[Any, Any]]:
    """Warm-up rows and the rest of the first trials."""
    X, y = _table(name)
    keys = jax.random.split(jax.random.fold_in(jax.random.key(seed), SETS.index(name)), setting.trials)
    return [corrupted_table(X, y, key=key, law=LAWS[law]) for key in keys[:trials]]


def _streams(setting: Setting, name: str, seed: int, law: str) -> list[tuple[Any, Any]]:
    """Features and corrupted targets of each trial."""
    parts = _parts(setting, name, seed, law, setting.trials)
    return [(after.X[: setting.rows], after.y[: setting.rows]) for _, after in parts]


def _warmups(setting: Setting, name: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The first trial's warm-up rows, (N, T, M) and (N, T): N orders and corruptions of them where they are few."""
    ((before, _),) = _parts(setting, name, seed, "text", 1)
    rows, rng = len(before.y), np.random.default_rng(seed)
    X, y = [before.X], [before.y]
    for _ in range(min(ORDERS, ENOUGH // rows) - 1):
        order = rng.permutation(rows)
        X.append(before.X[order])
        y.append(np.where(rng.random(rows) < 0.1, rng.uniform(-50, 50, rows), before.truth[order]))
    return np.stack(X), np.stack(y)


def _start(features: int, seed: int, width: int | None = None) -> Any:
    """Initial network, the same in every trial; features that are not there have weights of zero, which never move."""
    first, second = mlp((features, HIDDEN, 1)).init(jax.random.key(seed + 314))
    weight = jnp.pad(first["weight"], ((0, (width or features) - features), (0, 0)))
    return ({**first, "weight": weight}, second)


def _method(method: str, features: int) -> Any:
    """From hyper-parameters to a method; no drift, as in the thesis."""
    h = mlp((features, HIDDEN, 1)).apply
    return lambda at: build(method, h, at, drift=0.0, iterations=ITERATIONS, inner=1)


def _errors(setting: Setting, method: str, group: list[str], data: Any, chosen: Any, seed: int) -> Any:
    """RMedSE of each trial of each set and law."""
    width = data[group[0]]["text"][0][0].shape[1] if len(group) == 1 else WIDEST
    keys = [(name, law, trial) for name in group for law in LAWS for trial in range(setting.trials)]
    streams = [data[name][law][trial] for name, law, trial in keys]
    X = np.stack([np.pad(X, ((0, 0), (0, width - X.shape[1]))) for X, _ in streams])
    y, starts = np.stack([y for _, y in streams]), stacked([_start(X.shape[1], seed, width) for X, _ in streams])
    mean, _ = learner(_method(method, width), in_turn=True)([chosen[name][method] for name, _, _ in keys], starts, X, y)
    found: dict[tuple[str, str], list[float]] = {}
    for (name, law, _), forecast, seen in zip(keys, mean, y, strict=True):
        found.setdefault((name, law), []).append(_rmedse(seen - forecast))
    return [(name, law, errors) for (name, law), errors in found.items()]


def _rmedse(error: np.ndarray) -> float:
    error = np.where(np.isfinite(error), error, 1e150)  # what diverged counts as it is
    return float(np.sqrt(np.median(error**2)))


def _median_so_far(y: np.ndarray) -> np.ndarray:
    """A forecast that needs no features: the median of what was seen."""
    return np.array([np.median(y[:t]) if t else 0.0 for t in range(len(y))])


def _chosen(setting: Setting, name: str, seed: int) -> dict[str, dict[str, float]]:
    """Hyper-parameters: stored, or searched on the warm-up rows of the first trial."""
    if not setting.budget:
        return STORED
    X, y = _warmups(setting, name, seed)
    start = jax.tree.map(lambda leaf: np.stack([leaf] * len(y)), _start(X.shape[2], seed))

    def seek(method: str) -> dict[str, float]:
        make = _method(method, X.shape[2])
        return searched(make, SPACES[method], start, X, y, budget=setting.budget, seed=seed, in_turn=True)

    return {method: keep(f"chosen, {name}, {method}", partial(seek, method)) for method in METHODS}


def _times(setting: Setting, streams: Any, chosen: Mapping[str, Any], seed: int) -> dict[str, list[float]]:
    """Seconds a step of alternating warm runs of one stream, at the set's true D."""
    X, y = streams[0]
    start = jax.tree.map(lambda leaf: np.asarray(leaf)[None], _start(X.shape[1], seed))
    learn = {method: learner(_method(method, X.shape[1]), in_turn=True) for method in METHODS}
    runs = {m: partial(learn[m], [chosen[m]], start, X[None], y[None]) for m in METHODS}
    times = alternating(runs, dict.fromkeys(METHODS, setting.rounds))
    return {method: [seconds / len(y) for seconds in of] for method, of in times.items()}


def _notes(setting: Setting, chosen: Mapping[str, Any]) -> tuple[str, ...]:
    rows = "all rows" if setting.rows is None else f"the first {setting.rows} rows after the warm-up"
    how = (
        f"searched with {setting.budget} settings on the warm-up rows of the first trial, in up to {ORDERS} orders, "
        "p up to 100: the published runs stopped at 1, where the error of the warm-up rows still falls"
        if setting.budget
        else "those that the published runs had for kin8nm, on all sets: "
        + ", ".join(f"{n} ({', '.join(f'{k}={v:.3g}' for k, v in of.items())})" for n, of in STORED.items())
    )
    return (
        "Text: a tenth of the targets is replaced by U[-50, 50]. Published runs: by -50 or 50; they tuned on the whole "
        "of their first run, and scaled by the first rows of what they evaluated.",
        f"{setting.trials} trials of {rows}; hyper-parameters are {how}. R = 1, Q = 0, P0 = p I, {ITERATIONS} "
        "revisions in EKF-B and EKF-IW, one step of Adam for a datum. The warm-up targets are corrupted too, "
        "after scaling.",
        "The published errors of the larger sets are not those of a filter in single precision within its range, "
        "p <= 1: on the published rows, from the published start and with p = 1, WoLF-TMD has 0.135 on naval "
        "(published 0.103), and the EKF with the published p 0.61 on kin8nm (0.74). With the covariance rounded to "
        "8 bits before each row, as a matrix unit in bfloat16 rounds F P F' with F = I, they are 0.100 and 0.74: the "
        "covariance stops to shrink, a drift that the text does not have. That the runs were rounded so is inferred "
        "from these numbers; of the other readings of naval within that range none that was tried gives 0.103. Where "
        "p is beyond 1, errors below the published ones are the wider search's, not the published setting's.",
        *(beyond(chosen) if setting.budget else ()),
        "The table of the thesis counts the target as a feature: its D are 20 too many.",
        f"Times: medians of {setting.rounds} alternating warm runs of one stream, sets {', '.join(setting.timed)}.",
        f"Intervals, of 95 %: Student's for the mean over the {setting.trials} trials; for times that of the median "
        "over the rounds, in each of which a method is compared with OGD.",
    )


HOPELESS = 1e100  # the error of a trial whose forecasts are no numbers any more


def published_error(name: str, method: str) -> float | str | None:
    """What was printed of a set and a method: a mean, or how many runs diverged; None of what was not run."""
    found = PUBLISHED[method][SETS.index(name)] if method in PUBLISHED else None
    return DIVERGED.get((name, method)) if found is None else found


def error_table(numbers: Mapping[str, Any]) -> Table:
    """Mean errors of each set and method: published, ours as the text has it, ours with the published outliers."""
    rows = []
    for name in SETS:
        for method in (*METHODS, LAST):
            trials = [numbers["rmedse"][law][name][method] for law in LAWS]
            cells = [cell for values in trials for cell in _mean(values)]
            rows.append((name, method, numbers["size"][name], published_error(name, method), *cells))
    ours = ("ours, U[-50, 50]", "95 %, U[-50, 50]", "ours, -50 or 50", "95 %, -50 or 50")
    columns = ("set", "method", "D", "published", *ours)
    return Table("Mean RMedSE; the published outliers are -50 or 50", columns, rows, ("published",))


def time_table(times: Mapping[str, Mapping[str, list[float]]]) -> Table:
    """Time of a step over that of OGD, medians of rounds, and in microseconds."""
    rows = []
    for name, of in times.items():
        for method in METHODS:
            ratio = np.divide(of[method], of["OGD"])
            old = PUBLISHED_TIMES[method][SETS.index(name)] if method in PUBLISHED_TIMES else None
            ends = of_median(ratio)
            spread = None if ends is None else tuple(round(end, 2) for end in ends)
            micro = round(1e6 * float(np.median(of[method])), 1)
            rows.append((name, method, old, round(float(np.median(ratio)), 2), spread, micro))
    columns = ("set", "method", "published", "ours", "95 %", "microseconds")
    return Table("Time of a step over that of OGD", columns, rows, ("published",))


def _mean(values: list[float]) -> tuple[Any, Any]:
    """A mean and its interval, cut off at 0; or how many trials diverged."""
    lost = sum(not value < HOPELESS for value in values)
    if lost:
        return f"{lost} of {len(values)} trials diverge", None
    ends = of_mean(values)
    return round(float(np.mean(values)), 4), None if ends is None else (round(max(ends[0], 0.0), 4), round(ends[1], 4))


def beyond(chosen: Mapping[str, Mapping[str, Mapping[str, float]]]) -> tuple[str]:
    """A sentence that says where the published range of p does not do, and which p was chosen instead."""
    wide = []
    for name in SETS:
        far = [f"{method} {chosen[name][method]['p']:.3g}" for method in WOLF if chosen[name][method]["p"] > 1]
        wide += [f"{name} ({', '.join(far)})"] if far else []
    return (
        "On naval WoLF comes within 10 % of the published rows only with p beyond the published range: searched up to "
        "p = 1 it had 0.162 (IMQ) and 0.156 (TMD) against 0.107 and 0.103 published, 51 % more. p was chosen "
        f"beyond 1 on: {'; '.join(wide) or 'no set'}.",
    )


def better(result: Result) -> Verdict:
    """IMQ and TMD below OGD on all sets, and below the median of what was seen."""
    error = result.numbers["rmedse"]["text"]
    pairs = [(name, method) for method in WOLF for name in SETS]
    parts = [below(error[name][method], error[name]["OGD"], (f"{name}: {method}", "OGD")) for name, method in pairs]
    worst = [mean_error(result, name, method) / mean_error(result, name, "OGD") - 1 for name, method in pairs]
    poor = [f"{m} on {name}" for name, m in pairs if mean_error(result, name, m) >= mean_error(result, name, LAST)]
    said = f"relative to OGD {100 * min(worst):.0f} to {100 * max(worst):.0f} %"
    less = f"no better than the median of the targets so far: {', '.join(poor)}"
    beside = less if poor else "all beat the median so far"
    failed = [part.evidence for part in parts if part.text != "holds"]
    return Verdict(all_of(*parts).text, "; ".join([said, *failed, beside]))


def quadrant(result: Result) -> Verdict:
    """The points with less error and less time than OGD are WoLF's, all of them, and nobody else's."""
    timed = result.numbers["times"]
    there = [(m, s) for s in timed for m in METHODS if m != "OGD" and max(relative(result, s, m)) < 0]
    wanted = {(m, s) for s in timed for m in WOLF}
    said = ", ".join(f"{m} on {s}" for m, s in there) or "none"
    slow = [1 + relative(result, s, m)[1] for s in timed for m in WOLF]
    verdict = holds_if(set(there) == wanted, f"in the third quadrant: {said}; WoLF takes up to {max(slow):.2f} x OGD")
    return _all_sets(verdict, timed)


def slower(result: Result) -> Verdict:
    """EKF-B and EKF-IW at least twice as slow as the slower WoLF; the EKF at least 1.3 times OGD's error.

    Times are those of the table: over OGD's of the same round, the median of rounds.
    """
    n, parts = result.numbers, []
    for name in n["times"]:
        slow = {m: 1 + relative(result, name, m)[1] for m in METHODS}
        wolf = max(WOLF, key=slow.__getitem__)
        for m in ("EKF-B", "EKF-IW"):
            ratio = slow[m] / slow[wolf]
            said = f"{name}: {m} {ratio:.1f} x {wolf} ({slow[m]:.2f} and {slow[wolf]:.2f} x OGD)"
            parts.append(holds_if(ratio >= 2, said))
    for name in SETS:
        ratio = mean_error(result, name, "EKF") / mean_error(result, name, "OGD")
        parts.append(holds_if(ratio >= 1.3, f"{name}: EKF {ratio:.2f} x OGD's error"))
    return _all_sets(all_of(*parts), n["times"])


def _all_sets(verdict: Verdict, timed: Mapping[str, Any]) -> Verdict:
    """What holds on some sets only is not decided."""
    few = verdict.text == "holds" and len(timed) < len(SETS)
    return Verdict(UNDECIDED if few else verdict.text, verdict.evidence)


def mean_error(result: Result, name: str, method: str) -> float:
    """Mean RMedSE over the trials of the text's law."""
    return float(np.mean(result.numbers["rmedse"]["text"][name][method]))


def relative(result: Result, name: str, method: str) -> tuple[float, float]:
    """Error and time of a method relative to OGD, minus 1."""
    times = result.numbers["times"][name]
    ratio = float(np.median(np.divide(times[method], times["OGD"])))
    return mean_error(result, name, method) / mean_error(result, name, "OGD") - 1, ratio - 1


def draw_quadrants(result: Result) -> Figure:
    """Error against time, both relative to OGD; the name of a set has the colour of the method."""
    figure, axis = panels(1, 1, size=(9.5, 6.0))
    named: list[tuple[str, float, float, str]] = []
    for method, colour, mark in zip((m for m in METHODS if m != "OGD"), COLOURS, "osD^v", strict=False):
        points = [relative(result, name, method) for name in result.numbers["times"]]
        y, x = np.array(points).T + 1
        axis.scatter(x, y, s=45, color=colour, marker=mark, label=method, zorder=3, edgecolor=INK, lw=0.5)
        r, g, b = (0.7 * part for part in to_rgb(colour))
        dark = to_hex((r, g, b))  # for type that small
        named += [(name, *at, dark) for name, *at in zip(result.numbers["times"], x.tolist(), y.tolist(), strict=True)]
    axis.axhline(1.0, color=INK, lw=0.8)
    axis.axvline(1.0, color=INK, lw=0.8)
    axis.set(xscale="log", yscale="log", xlabel="time a step over OGD's", ylabel="RMedSE over OGD's")
    axis.set(title="Corrupted UCI sets; OGD is where the lines cross")
    for side in (axis.xaxis, axis.yaxis):
        side.set_major_formatter("{x:g}")
        side.set_minor_formatter(_sparse)
    axis.tick_params(which="both", labelsize=8)
    axis.margins(0.06)
    axis.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    name_points(figure, axis, named)
    return figure


def _sparse(value: float, _: int) -> str:
    """Words for 2, 3 and 5 of each magnitude: nine of them touch."""
    return f"{value:g}" if f"{value:e}"[0] in "235" else ""


EXPERIMENT = Experiment(
    name="uci-corrupted",
    title="A network online on nine corrupted UCI sets",
    sizes={"quick": Setting(), "full": Setting(trials=20, rows=None, budget=32, timed=SETS, read=3)},
    run=_run,
    figures={"fig:uci-per-step-time": draw_quadrants},
    claims=claims({28: better, 29: quadrant, 30: slower}),
    data=SETS,
    fixed={"spaces": SPACES, "stored": STORED, "iterations": ITERATIONS}
    | {"orders": ORDERS, "enough": ENOUGH, "tried": TRIED},
)
