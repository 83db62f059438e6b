"""Continual learning: one network, task after task, with boundaries known or unknown.

Images of digits in three streams of tasks: pixels in another order, images turned further, pairs of classes. Every
method learns each image once. What counts is how many labels are foreseen as they come, and what is left of earlier
tasks at the end; the two pull apart. Hyper-parameters are chosen on a first stream, of other images.

Thesis: the task of online continual learning in chapter 3, for which it has no experiment.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from filtax import method, models
from filtax.datasets import Images, read_images
from filtax.evaluate import majority_class
from filtax.evaluate.continual import average_accuracy, forgetting, forward_transfer, learning_accuracy
from filtax.synthetic import TaskStream, permuted_tasks, rotated_tasks, split_tasks
from thesis.experiment import Advance, Experiment, Result, Table
from thesis.figures import COLOURS, GREY, INK, Figure, panels
from thesis.findings import keep
from thesis.online_methods import stacked
from thesis.statistics import of_mean

METHODS = {  # what each is in the grammar; K is the number of hypotheses kept
    "Static": "C-Static",
    "ACI": "C-ACI(q={number})",
    "OU": "C-OU(rate={number})",
    "CPP-OU": "CPP-OU(rate={number}, steps=1)",
    "OUPR": "RL[1]-OUPR(hazard={number})",
    "RL-PR": "RL[{keep}]-PR(hazard={number})",
}
GRIDS = {
    "Static": (0.0,),
    "ACI": (1e-4, 1e-3, 1e-2),
    "OU": (0.999, 0.99, 0.95),
    "CPP-OU": (1e-3, 1e-2, 1e-1),
    "OUPR": (1e-4, 1e-2, 1e-1),
    "RL-PR": (1e-4, 1e-2, 1e-1),
}
TOGETHER = 6  # streams and settings in one call: one shape for choosing and for the report, so one compilation


class Learned(NamedTuple):
    """What B runs over N tasks of T images left."""

    right: np.ndarray  # (B, N, T): whether the label was the most probable one before it was seen
    before: np.ndarray  # (B, N): accuracy on the tests of each task before anything was learned
    matrix: np.ndarray  # (B, N, N): after each task, on the tests of each task


class Learner:
    """One of `METHODS` on one network; it compiles once.

    Two sizes make a linear model, which starts at zero; RL-PR keeps `keep` hypotheses; `seed` is of the first weights.
    """

    def __init__(self, name: str, sizes: tuple[int, ...], posterior: str, keep: int, seed: int) -> None:
        net = models.mlp(sizes)
        self.model = models.nonlinear(net.apply, likelihood=models.categorical())
        drawn = net.init(jax.random.key(seed), "float32")
        self.first = drawn if len(sizes) > 2 else jax.tree.map(lambda leaf: 0.0 * leaf, drawn)
        self.name, self.text = name, f"{posterior}+{METHODS[name]}".replace("{keep}", str(keep))
        self.compiled = jax.jit(jax.vmap(_one))

    def build(self, at: Mapping[str, float]) -> tuple[Any, Any]:
        """The method of a setting, and its first state."""
        filter_ = method(self.text.replace("{number}", repr(at["number"])), model=self.model)
        return filter_, filter_.init(params=self.first, cov=at["variance"])

    def learn(self, at: Sequence[Mapping[str, float]], tasks: Sequence[TaskStream], told: Sequence[bool]) -> Learned:
        """Learn B streams of tasks, each with a setting of its own, told or not told where a task begins."""
        runs, spare = list(range(len(at))), -len(at) % TOGETHER
        pieces = []
        for start in range(0, len(at), TOGETHER):
            some = (runs + spare * runs[-1:])[start : start + TOGETHER]
            method, state = stacked([self.build(at[i]) for i in some])
            rows = [
                np.stack([getattr(tasks[i], part) for i in some]).astype(np.float32)
                for part in ("X", "y", "X_test", "y_test")
            ]
            begins = np.zeros(rows[1].shape, bool)
            begins[:, 1:, 0] = np.array([told[i] for i in some])[:, None]
            pieces.append([np.asarray(part) for part in self.compiled(method, state, *rows, begins)])
        return Learned(*(np.concatenate(parts)[: len(at)] for parts in zip(*pieces, strict=True)))

    def chosen(self, tasks: Sequence[TaskStream], variances: Sequence[float]) -> dict[str, float]:
        """The setting with which most labels of these streams were foreseen, nothing told; the first of equals."""
        grid = [{"variance": v, "number": number} for number in GRIDS[self.name] for v in variances]
        at = [setting for setting in grid for _ in tasks]
        found = self.learn(at, [*tasks] * len(grid), [False] * len(at)).right
        return grid[int(np.argmax(found.reshape(len(grid), -1).mean(axis=1)))]


def _one(method: Any, state: Any, X: Any, y: Any, X_test: Any, y_test: Any, begins: Any) -> tuple[Any, Any, Any]:
    """One stream: labels foreseen, and the tests of all tasks before the first task and after each."""

    def tested(state: Any) -> Any:
        said = jax.vmap(jax.vmap(lambda x: jnp.argmax(method.predict(state, x, plugin=True).mean)))(X_test)
        return jnp.mean(said.astype(y_test.dtype) == y_test, axis=1, dtype=y_test.dtype)

    def learned(state: Any, rows: tuple) -> tuple[Any, tuple]:
        X, y, begins = rows
        state, infos = method.scan(state, X, y, keep=("mean",), changed=begins, complete=True)
        return state, (jnp.argmax(infos.mean, axis=-1).astype(y.dtype) == y, tested(state))

    before = tested(state)
    _, (right, matrix) = jax.lax.scan(learned, state, (X, y, begins))
    return right, before, matrix


SCENARIOS = {"permuted": permuted_tasks, "rotated": rotated_tasks, "split": split_tasks}
CLASSES = 10
COLUMNS = ("foreseen", "average accuracy", "accuracy at learning", "forgetting", "forward transfer")
NOTES = (
    "Foreseen: share of labels that were the most probable one before they were seen. The rest is measured on tests: "
    "the mean over all tasks at the end (Chaudhry et al. 2018), on each task just after it, what was lost since the "
    "best time (Chaudhry et al. 2018), and the accuracy on the next task before it begins, less that of the first "
    "state (Lopez-Paz and Ranzato 2017). Tests take the means of the weights.",
    "A known boundary resets every belief. 'Static, told' is thus a filter that learns the current task alone: "
    "who is not told can hardly foresee more, and it remembers nothing. 'Static, shuffled' sees all tasks mixed: what "
    "one network of this size can hold at once.",
    "The number of each method and the variance of the weights at the start are those with which most labels of a "
    "first stream were foreseen, its boundaries unknown; it has other images, and other orders of pixels or classes.",
    "The interval, of 95 %, is Student's for the mean over streams; of few streams it is wide, and the pairs of "
    "methods, which have the same streams, differ less than it says.",
    "Pairs of classes are counted 0 and 1 in each task; the network does not know which pair it sees.",
)


@dataclass(frozen=True)
class Setting:
    """Tasks of `steps` images each, `side` pixels square; `hidden` units, none for a linear model."""

    tasks: int = 4
    steps: int = 150
    tests: int = 100
    trials: int = 3
    first: int = 1
    side: int = 7
    hidden: tuple[int, ...] = ()
    posterior: str = "LG(form=diagonal)"
    keep: int = 2
    variances: tuple[float, ...] = (0.05, 0.2)
    data: str = "mnist"

    def of(self, scenario: str) -> int:
        """Number of tasks; there are only so many pairs of classes."""
        return min(self.tasks, CLASSES // 2) if scenario == "split" else self.tasks


def _run(setting: Setting, seed: int, advance: Advance) -> Result:
    sizes = (setting.side**2, *setting.hidden, CLASSES)
    streams = {scenario: _streams(setting, scenario, seed) for scenario in SCENARIOS}
    numbers: dict[str, Any] = {of: {s: {} for s in SCENARIOS} for of in ("chosen", "scores", "intervals")}
    arrays: dict[str, np.ndarray] = {}
    for i, name in enumerate(METHODS):
        learner = Learner(name, sizes, setting.posterior, setting.keep, seed)
        for j, (scenario, (first, tasks)) in enumerate(streams.items()):
            choose = partial(learner.chosen, first, setting.variances)
            at = numbers["chosen"][scenario][name] = keep(f"{scenario}, {name}, chosen", choose)
            kinds = {name: tasks, f"{name}, told": tasks}
            if name == "Static":
                kinds["Static, shuffled"] = [_shuffled(one, seed) for one in tasks]
            for kind, learned in keep(f"{scenario}, {name}", partial(_all, learner, at, kinds)).items():
                of = Learned(*learned)
                arrays |= {f"{scenario}, {kind}, {part}": getattr(of, part) for part in Learned._fields}
                numbers["scores"][scenario][kind] = scores(of, mixed=kind.endswith("shuffled"))
                numbers["intervals"][scenario][kind] = of_mean(of.right.reshape(len(of.right), -1).mean(axis=1))
            advance((i + (j + 1) / len(streams)) / len(METHODS))
    for scenario, (_, tasks) in streams.items():
        arrays[f"{scenario}, majority"] = right = np.stack([_majority(one) for one in tasks])
        numbers["scores"][scenario]["majority class"] = {"foreseen": float(right.mean())}
        numbers["intervals"][scenario]["majority class"] = of_mean(right.reshape(len(right), -1).mean(axis=1))
    tables = tuple(_table(setting, scenario, numbers) for scenario in SCENARIOS)
    return Result(numbers, arrays, (*tables, _choices(setting, numbers["chosen"])), NOTES)


def _streams(setting: Setting, scenario: str, seed: int) -> tuple[list[TaskStream], list[TaskStream]]:
    """Streams to choose on, and those of the report, of other images; pixels centred and scaled by the former."""
    images = read_images(setting.data)
    half, part = len(images.X) // 2, 3 * len(images.X) // 8
    before = Images(images.X[:part], images.y[:part], images.X[part:half], images.y[part:half])
    after = Images(images.X[half:], images.y[half:], images.X_test, images.y_test)
    keys = np.random.SeedSequence((seed, list(SCENARIOS).index(scenario))).generate_state(
        setting.first + setting.trials
    )
    size = {"tasks": setting.of(scenario), "steps": setting.steps, "tests": setting.tests, "side": setting.side}
    make = SCENARIOS[scenario]
    first = [make(before, **size, key=int(key)) for key in keys[: setting.first]]
    tasks = [make(after, **size, key=int(key)) for key in keys[setting.first :]]
    level, spread = np.mean([one.X.mean() for one in first]), np.mean([one.X.std() for one in first])

    def scaled(streams: list[TaskStream]) -> list[TaskStream]:
        return [replace(s, X=(s.X - level) / spread, X_test=(s.X_test - level) / spread) for s in streams]

    return scaled(first), scaled(tasks)


def _all(learner: Learner, at: dict[str, float], kinds: dict[str, list[TaskStream]]) -> dict[str, Learned]:
    """Runs of each kind with one setting, in one call; a kind whose name ends in "told" knows the boundaries."""
    tasks = [one for streams in kinds.values() for one in streams]
    told = [kind.endswith("told") for kind, streams in kinds.items() for _ in streams]
    learned = learner.learn([at] * len(tasks), tasks, told)
    parts = zip(*(np.split(part, len(kinds)) for part in learned), strict=True)
    return {kind: Learned(*each) for kind, each in zip(kinds, parts, strict=True)}


def _shuffled(tasks: TaskStream, seed: int) -> TaskStream:
    """The same images with the tasks mixed."""
    order = np.random.default_rng(seed).permutation(tasks.y.size)
    X, y = tasks.flat.X[order].reshape(tasks.X.shape), tasks.y.reshape(-1)[order].reshape(tasks.y.shape)
    return TaskStream(X, y, tasks.X_test, tasks.y_test, tasks.names)


def _majority(tasks: TaskStream) -> np.ndarray:
    """Whether the class seen most was right, (N, T)."""
    y = tasks.flat.y
    return np.asarray(majority_class(CLASSES)(y).label == y).reshape(tasks.y.shape)


def scores(learned: Learned, *, mixed: bool = False) -> dict[str, float]:
    """Scores of runs, the mean over them; of mixed tasks only what does not ask for their order."""
    matrix = learned.matrix.astype(np.float64)
    found = {"foreseen": learned.right, "average accuracy": average_accuracy(matrix)}
    if not mixed:
        found |= {"accuracy at learning": learning_accuracy(matrix), "forgetting": forgetting(matrix)}
        found |= {"forward transfer": forward_transfer(matrix, learned.before)}
    return {name: float(np.mean(value)) for name, value in found.items()}


def _table(setting: Setting, scenario: str, numbers: dict[str, Any]) -> Table:
    ends = numbers["intervals"][scenario]
    first, *others = COLUMNS
    rows = [
        (name, row.get(first), ends[name], *(row.get(column) for column in others))
        for name, row in numbers["scores"][scenario].items()
    ]
    title = f"{scenario}: {setting.of(scenario)} tasks of {setting.steps}, mean of {setting.trials} streams"
    return Table(title, ("", first, f"{first}, 95 %", *others), rows)


def _choices(setting: Setting, chosen: dict[str, dict[str, dict[str, float]]]) -> Table:
    rows = [
        (scenario, name, METHODS[name].format(number=f"{at['number']:g}", keep=setting.keep), at["variance"])
        for scenario, of in chosen.items()
        for name, at in of.items()
    ]
    return Table("Chosen on the first stream", ("tasks", "method", "in the grammar", "variance at the start"), rows)


SPAN = 50  # labels of a moving mean


def draw(result: Result) -> Figure:
    """A column for each kind of task: labels foreseen, boundaries unknown; and accuracy on the tasks so far."""
    a = result.arrays
    scenarios = list(result.numbers["scores"])
    figure, axes = panels(2, len(scenarios), size=(11.0, 6.0), sharey="row")
    lines = [(name, name, colour, "-", 1.3) for name, colour in zip(METHODS, COLOURS, strict=False)]
    lines.append(("Static, told", "Static, boundaries known", INK, "--", 1.0))
    for (above, below), scenario in zip(axes.T, scenarios, strict=True):
        _, N, T = a[f"{scenario}, majority"].shape
        for name, words, colour, dashes, width in lines:
            right = a[f"{scenario}, {name}, right"].reshape(-1, N * T).mean(axis=0)
            above.plot(np.arange(N * T) + 1, _moving(right), color=colour, ls=dashes, lw=width, label=words)
            matrix = a[f"{scenario}, {name}, matrix"]
            so_far = [average_accuracy(matrix[:, : k + 1]).mean() for k in range(N)]
            below.plot(np.arange(N) + 1, so_far, color=colour, ls=dashes, lw=width, marker="o", ms=3)
        usual = a[f"{scenario}, majority"].reshape(-1, N * T).mean(axis=0)
        above.plot(np.arange(N * T) + 1, _moving(usual), color=GREY, ls=":", label="majority class")
        mixed = average_accuracy(a[f"{scenario}, Static, shuffled, matrix"]).mean()
        below.axhline(mixed, color=GREY, ls="-.", lw=1.0, label="Static, all tasks shuffled")
        for boundary in range(T, N * T, T):
            above.axvline(boundary, color=GREY, lw=0.5, alpha=0.5)
        above.set(title=scenario, xlabel="images seen", xlim=(0, N * T), ylim=(0, 1))
        below.set(xlabel="tasks learned", xticks=range(1, N + 1), ylim=(0, 1))
    axes[0, 0].set_ylabel(f"labels foreseen, mean of {SPAN}")
    axes[1, 0].set_ylabel("accuracy on the tasks so far")
    axes[0, -1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    axes[1, -1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def _moving(values: np.ndarray) -> np.ndarray:
    """Mean of the latest SPAN values, of fewer at the beginning."""
    total = np.cumsum(np.concatenate([[0.0], values]))
    end = np.arange(1, len(values) + 1)
    start = np.maximum(end - SPAN, 0)
    return (total[end] - total[start]) / (end - start)


EXPERIMENT = Experiment(
    name="continual",
    title="Continual learning: task after task, boundaries known or not",
    sizes={"quick": Setting(), "full": Setting(10, 300, 500, 5, 1, 7, (20,), "LoFi(rank=10)", 4, (0.03, 0.1, 0.3))},
    run=_run,
    figures={"continual-learning": draw},
    data=("mnist",),
    fixed={"methods": METHODS, "grids": GRIDS},
)
