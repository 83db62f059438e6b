"""A curve with gross errors, learned online by a network and by the true formula, in order of x and at random.

Thesis: experiment:training-neural-network, eq:noisy-sinusoidal, eq:experiment-mlp. RMedSE is the root of the median
square of the forecast error against what was observed.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from thesis.experiment import Advance, Experiment, Result, Table
from thesis.intervals import of_mean
from thesis.mlp_1d_claims import CLAIMS
from thesis.mlp_1d_figures import METHODS, draw_sorted, draw_true, draw_unsorted
from thesis.mlp_1d_settings import PRINTED, PUBLISHED, RUNS, TUNED
from thesis.online_methods import SPACES, build, learner, searched
from thesis.parts import keep

__all__ = ["EXPERIMENT", "Setting", "tuned"]

LAST = "last value"
DRIFT, TAIL = 1e-4, 2.0
ITERATIONS, INNER = 2, {"MLP": 4, "true": 7}


@dataclass(frozen=True)
class Setting:
    """Trials of each kind, their length, and how often times are taken.

    >>> Setting().steps
    1500
    """

    trials: int = 20
    steps: int = 1500
    rounds: int = 5


def _run(setting: Setting, seed: int, advance: Advance) -> Result:
    """Both models, all methods, three kinds of streams at once: one program each."""
    numbers: dict[str, Any] = {"rmedse": {}, "tail": {}, "last": {}, "inlier": {}}
    data = _data(setting, seed)
    arrays: dict[str, np.ndarray] = {
        f"{run} {part}": data[run][part][0] for run in RUNS for part in ("x", "y", "truth")
    }
    kinds = [run for run in RUNS for _ in range(setting.trials)]
    stacked = {part: np.concatenate([data[run][part] for run in RUNS]) for part in ("x", "y", "truth", "outliers")}
    done = 0
    for model in INNER:
        numbers["rmedse"][model] = {run: {} for run in RUNS}
        numbers["tail"][model] = {run: {} for run in RUNS}
        for name in METHODS:
            chosen = [(PUBLISHED if kind == "published" else TUNED)[model][name] for kind in kinds]
            starts, learn = _starts(model, kinds, seed), learner(_method(model, name))
            told = keep(f"{model}, {name}", partial(learn, chosen, starts, stacked["x"][..., None], stacked["y"]))
            for r, run in enumerate(RUNS):
                rows = slice(r * setting.trials, (r + 1) * setting.trials)
                mean, trust = told[0][rows], told[1][rows]
                numbers["rmedse"][model][run][name] = _rmedse(mean - data[run]["y"])
                numbers["tail"][model][run][name] = _tail(mean, data[run])
                arrays[f"{model} {run} {name}"] = mean[0]
                if name == "EKF-B":
                    clean = np.where(data[run]["outliers"], np.nan, trust)
                    numbers["inlier"][f"{model} {run}"] = float(np.nanmean(clean))
            done += 1
            advance(0.9 * done / (2 * len(METHODS)))
    for run in RUNS:
        y = data[run]["y"]
        numbers["last"][run] = _rmedse(np.diff(y, axis=1))
    numbers["times"] = _times(setting, data["unsorted"], seed)
    advance(1.0)
    return Result(numbers, arrays, _tables(numbers), _notes(setting))


def _data(setting: Setting, seed: int) -> dict[str, dict[str, np.ndarray]]:
    """Streams of the text in both orders, and those of the published runs: more and larger errors, more noise."""
    import jax

    from filtax.streams import noisy_curve

    laws = {
        "sorted": {"ordered": True},
        "unsorted": {},
        "published": {"share": 0.1, "reach": 100.0, "noise": 9.0},
    }
    found = {}
    for i, run in enumerate(RUNS):
        keys = jax.random.split(jax.random.fold_in(jax.random.key(seed), i), setting.trials)
        streams = [noisy_curve(setting.steps, key=key, **laws[run]) for key in keys]
        found[run] = {part: np.stack([getattr(s, part) for s in streams]) for part in ("y", "truth", "outliers")}
        found[run]["x"] = np.stack([s.X[:, 0] for s in streams])
    return found


def _curve(theta: Any, x: Any) -> Any:
    """The formula of the data, with its four coefficients unknown."""
    import jax.numpy as jnp

    x = x[0]
    return theta[0] * x - theta[1] * jnp.cos(theta[2] * jnp.pi * x) + theta[3] * x**3


def _method(model: str, name: str) -> Any:
    """From hyper-parameters to a method."""
    from filtax.models.networks import mlp

    h = mlp((1, 10, 10, 1)).apply if model == "MLP" else _curve
    return lambda chosen: build(name, h, chosen, drift=DRIFT, iterations=ITERATIONS, inner=INNER[model])


def _starts(model: str, kinds: Any, seed: int) -> Any:
    """Initial parameters, fresh for each trial."""
    import jax

    from filtax.models.networks import mlp

    keys = jax.random.split(jax.random.fold_in(jax.random.key(seed), 99), len(kinds))
    if model == "MLP":
        return jax.vmap(mlp((1, 10, 10, 1)).init)(keys)
    return 0.01 * jax.vmap(lambda key: jax.random.normal(key, (4,)))(keys)


def _rmedse(error: np.ndarray) -> list[float]:
    error = np.where(np.isfinite(error), error, np.inf)  # what diverged counts as it is
    return np.sqrt(np.median(error**2, axis=1)).tolist()


def _tail(mean: np.ndarray, data: Mapping[str, np.ndarray]) -> list[float]:
    """Median error against the true curve where |x| > 2, in the second half of the stream unless it is sorted."""
    there = np.abs(data["x"]) > TAIL
    error = np.where(there, np.abs(mean - data["truth"]), np.nan)
    return np.nanmedian(error, axis=1).tolist()


def _times(setting: Setting, data: Mapping[str, np.ndarray], seed: int) -> dict[str, list[float]]:
    """Seconds of alternating warm runs of one stream, network model."""
    import jax

    runs = {}
    for name in ("WoLF-IMQ", "EKF-IW"):
        start = jax.tree.map(lambda leaf: leaf[:1], _starts("MLP", [0], seed))
        args = ([TUNED["MLP"][name]], start, data["x"][:1, :, None], data["y"][:1])
        runs[name] = partial(learner(_method("MLP", name)), *args)
        runs[name]()
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(setting.rounds):
        for name, run in runs.items():
            began = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - began)
    return times


def tuned(model: str, name: str, *, seed: int = 314, steps: int = 500, budget: int = 48) -> dict[str, float]:
    """Search the hyper-parameters of a method on warm-up streams: two sorted and two unsorted, of no trial.

    Args:
        model: "MLP" or "true".
        name: As in the tables.
        seed: Of the streams and of the search.
        steps: Length of the streams.
        budget: Settings to try.

    Returns:
        The setting with the least RMedSE, the mean over the four streams.

    >>> sorted(tuned("true", "EKF", steps=20, budget=2))
    ['p']
    """
    data = _data(Setting(trials=2, steps=steps), 10_000 + seed)
    x, y = (np.concatenate([data[run][part] for run in RUNS[:2]]) for part in ("x", "y"))
    starts = _starts(model, range(4), seed)
    return searched(_method(model, name), SPACES[name], starts, x[..., None], y, budget=budget, seed=seed)


def _tables(numbers: Mapping[str, Any]) -> tuple[Table, ...]:
    tables = []
    for model, said in (("MLP", "Network"), ("true", "True formula")):
        rows = []
        for name in METHODS:
            of = [np.array(numbers["rmedse"][model][run][name]) for run in RUNS]
            rows.append((name, PRINTED[model][name], *_cells(of)))
        rows.append((LAST, None, *_cells([np.array(numbers["last"][run]) for run in RUNS])))
        heads = ("sorted", "unsorted", "published law and settings")
        columns = ("method", "published", *(f"{head}{part}" for head in heads for part in ("", ", 95 %")))
        tables.append(Table(f"{said}: RMedSE, mean ± sd over trials", columns, rows, ("published",)))
    return tuple(tables)


def _cells(of: list[np.ndarray]) -> list[Any]:
    """Mean and spread of each, and the interval of the mean."""
    return [cell for v in of for cell in (f"{v.mean():.2f} ± {v.std():.2f}", of_mean(v))]


def _notes(setting: Setting) -> tuple[str, ...]:
    spelled = "; ".join(f"{model}: " + ", ".join(f"{n} {_said(v)}" for n, v in TUNED[model].items()) for model in TUNED)
    return (
        "Text: 5 % of y replaced by U[-40, 40], noise variance 3. Published runs: 10 % by U[-100, 100], variance 9, "
        "and all of them unsorted, those called sorted too. The coefficient is -10 cos, as in the figures.",
        f"R = 1, Q = 1e-4 I, P0 = p I; {ITERATIONS} revisions in EKF-B and EKF-IW; OGD takes {INNER['MLP']} (network) "
        f"and {INNER['true']} (formula) steps of Adam for a datum. Tuned on four warm-up streams of 500 under the "
        f"text's law: {spelled}.",
        f"{setting.trials} trials of {setting.steps} data, each network drawn anew. No trial is dropped. "
        "Intervals, of 95 %, are Student's for the mean over trials; ± is the standard deviation of a trial.",
    )


def _said(chosen: Mapping[str, float]) -> str:
    return "(" + ", ".join(f"{key}={value:.3g}" for key, value in chosen.items()) + ")"


EXPERIMENT = Experiment(
    name="mlp-1d",
    title="Online regression in one dimension with gross errors",
    sizes={"quick": Setting(), "full": Setting(trials=100)},
    run=_run,
    figures={
        "fig:online-mlp-example-run-sorted": draw_sorted,
        "fig:online-mlp-example-run-unsorted": draw_unsorted,
        "fig:sorted-unsorted-clean-measurement": draw_true,
    },
    claims=CLAIMS,
    fixed={
        "searched": SPACES,
        "tuned": TUNED,
        "published": PUBLISHED,
        "drift": DRIFT,
        "iterations": ITERATIONS,
        "inner": INNER,
    },
)
