"""How good a run was: errors, coverage and log loss, by step, beside baselines made of the target alone.

Baselines of numbers are the last value and the value a season ago (the running mean where there is no season), of
labels the last one and the most frequent one. All are scored on the rows that all of them forecast.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from filtax.evaluate._comparison import compare_in_words, format_table, join_words
from filtax.evaluate.metrics import Metric, accuracy, mae, rmse
from filtax.forecasting import Clock
from filtax.io._files import write_whole
from filtax.pipeline._learner import Numbers
from filtax.pipeline._rows import Plan, missing_steps
from filtax.pipeline._run import Run, open_run

MEDIAN, MOST = Metric("median", mae.per_step), 100_000  # errors of which a median is taken, at most
LOG_LOSS = Metric("log_loss", mae.per_step)
STRETCHES = 240  # of the rows, in the figure of errors


class Baselines:
    """What the last value, and the value a season ago or the running mean, say k steps before a row.

    >>> from filtax.forecasting import Clock
    >>> rule = Baselines(Plan("regress", (), (), Clock.by_index(2)), (1,))
    >>> part = np.zeros(4, [("series", "i4"), ("time", "f8"), ("y", "f8")])
    >>> part["y"] = [1.0, 9.0, np.nan, 8.0]
    >>> rule.forecast(part)[:, 0].tolist()
    [[nan, 1.0, 9.0, 9.0], [nan, nan, 1.0, 9.0]]
    """

    def __init__(self, plan: Plan, steps: Sequence[int], clocks: Sequence[Clock] = ()) -> None:
        self.plan, self.steps, self.season, self.clocks = plan, steps, plan.clock.season, clocks
        self.names = ("last-value", f"seasonal-naive({self.season})" if self.season > 1 else "running-mean")
        self.back = [self.season * -(-step // self.season) if self.season > 1 else step for step in steps]
        self.memory = max(*self.back, *steps, self.season)
        self.past: dict[
            int, tuple[np.ndarray, float, float, np.ndarray | None]
        ] = {}  # filled values, sum, count, last time

    def forecast(self, part: np.ndarray) -> np.ndarray:
        """Forecasts of the rows of some records: (2, H, T)."""
        said = np.full((2, len(self.steps), len(part)), np.nan)
        for series in np.unique(part["series"]).tolist():
            rows = np.flatnonzero(part["series"] == series)
            said[:, :, rows] = self._of(series, part["time"][rows], part["y"][rows])
        return said

    def _of(self, series: int, time: np.ndarray, y: np.ndarray) -> np.ndarray:
        blank = np.full((2, self.memory), np.nan)
        filled, total, count, last = self.past.get(series, (blank, 0.0, 0.0, None))
        every = np.ones(len(y), np.int64)
        if time.dtype.kind == "M":
            clock = self.clocks[series] if self.clocks else self.plan.clock
            every += missing_steps(clock, last, time)
        cells = np.cumsum(every) - 1
        dense = np.full(cells[-1] + 1, np.nan)
        dense[cells] = y
        seen = np.isfinite(dense)
        latest = np.concatenate([filled[0, -1:], dense[seen]])[np.cumsum(seen)]
        if self.season > 1:
            second = np.concatenate([filled[1], dense])
            for start in range(self.memory, len(second), self.season):
                own = second[start : start + self.season]
                own[:] = np.where(np.isnan(own), second[start - self.season :][: len(own)], own)
            second = second[self.memory :]
        else:
            sums, counts = (
                np.cumsum(np.concatenate([[a], b])) for a, b in ((total, np.where(seen, dense, 0.0)), (count, seen))
            )
            with np.errstate(invalid="ignore", divide="ignore"):
                second = (sums / counts)[1:]
            total, count = sums[-1], counts[-1]
        whole = np.concatenate([filled, np.stack([latest, second])], axis=1)
        self.past[series] = (whole[:, -self.memory :], total, count, time[-1:])
        at = self.memory + cells
        pairs = zip(self.steps, self.back, strict=True)
        return np.stack([[whole[0, at - step], whole[1, at - back]] for step, back in pairs], axis=1)


class LabelBaselines:
    """The last label and the most frequent one, as codes, and the probability that each gives to what comes.

    Each gives its label the share of past rows in which it was right, and spreads the rest over the others.

    >>> said, chance = LabelBaselines(delay=0).forecast(np.array([1.0, 0.0, 0.0]))
    >>> said.tolist()
    [[nan, 1.0, 0.0], [nan, 1.0, 1.0]]
    """

    names = ("last-class", "majority-class")

    def __init__(self, delay: int) -> None:
        self.waits: list[float] = [np.nan] * delay
        self.counts: dict[int, int] = {}
        self.last, self.most, self.right, self.judged = np.nan, np.nan, [0, 0], [0, 0]

    def forecast(self, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Forecasts (2, T), and the probabilities (2, T) of the labels that came."""
        said, chance = np.full((2, len(codes)), np.nan), np.full((2, len(codes)), np.nan)
        for t, code in enumerate(codes.tolist()):
            said[:, t] = self.last, self.most
            if code == code:
                for i, guess in enumerate(said[:, t].tolist()):
                    if guess == guess:
                        sure = (self.right[i] + 1.0) / (self.judged[i] + 2.0)
                        chance[i, t] = sure if guess == code else (1.0 - sure) / max(len(self.counts), 1)
                        self.right[i], self.judged[i] = self.right[i] + (guess == code), self.judged[i] + 1
            self.waits.append(code)
            came = self.waits.pop(0)
            if came == came:
                self.counts[int(came)] = self.counts.get(int(came), 0) + 1
                self.last = came
                if self.most != self.most or self.counts[int(came)] > self.counts[int(self.most)]:
                    self.most = came
        return said, chance


@dataclass(eq=False)
class Scores:
    """Scores of a run, and what the figures of its report are drawn from.

    Attributes:
        table: Name to scores, this run first, at the horizon.
        rows: Rows that were scored.
        steps: For each step its errors, coverage and baselines; empty for labels.
        coverage: Share of targets inside of the interval, at the horizon; None for labels.
        keys: For each series its number, name, rows and the mean absolute error of each line, at the horizon, the least
            error first; empty without keys.
        x: Where each stretch of rows ends: microseconds, or number of a row.
        course: Mean error of each line of the table over each stretch.
    """

    table: dict[str, dict[str, float]]
    rows: int
    steps: list[dict[str, Any]] = field(default_factory=list)
    coverage: float | None = None
    keys: list[dict[str, Any]] = field(default_factory=list)
    x: np.ndarray = field(default_factory=lambda: np.zeros(0))
    course: dict[str, np.ndarray] = field(default_factory=dict)


def scores(run: Run) -> Scores:
    """Score a run in one pass over its records."""
    tally = _Labels(run) if run.labels is not None else _Numbers(run)
    stretches = max(1, min(STRETCHES, run.rows))
    sums, counts = np.zeros((2, len(tally.names), stretches))
    x, row = np.full(stretches, np.nan), 0
    for part in run.records():
        number = row + np.arange(len(part))
        row += len(part)
        at = number * stretches // run.rows
        x[at] = part["time"] if run.config.time else number + 1
        for i, error in enumerate(tally.add(part, number)):
            known = np.isfinite(error)
            sums[i] += np.bincount(at[known], error[known], stretches)
            counts[i] += np.bincount(at[known], minlength=stretches)
    found = tally.scores()
    with np.errstate(invalid="ignore"):
        found.course = dict(zip(tally.names, sums / counts, strict=True))
    found.x = x
    return found


def own_name(run: Run) -> str:
    """What the line of a run is called in its table."""
    return run.config.method or "filtax"


class _Numbers:
    """Sums over the rows of a run of numbers, for each line of the table and each step or key."""

    def __init__(self, run: Run) -> None:
        self.run, self.steps = run, run.config.steps
        clocks = [track.clock for track in run.learner.tracks] if isinstance(run.learner, Numbers) else []
        self.rules = Baselines(run.plan, [step + run.config.delay for step in self.steps], clocks)
        self.names = (own_name(run), *self.rules.names)
        H, K = len(self.steps), len(run.keys)
        self.sums, self.squares, self.rows = np.zeros((3, H)), np.zeros((3, H)), np.zeros(H)
        self.inside, self.judged = np.zeros(H), np.zeros(H)
        self.of_keys, self.rows_of_keys = np.zeros((3, K)), np.zeros(K)
        self.stride, self.kept = max(1, -(-run.rows // MOST)), [[] for _ in self.steps]

    def add(self, part: np.ndarray, number: np.ndarray) -> np.ndarray:
        """Take in some records; errors of each line at the horizon (3, T)."""
        rules, y = self.rules.forecast(part), part["y"]
        errors, ready = np.zeros((3, len(part))), np.zeros(len(part), bool)
        for j, step in enumerate(self.steps):
            mark = "" if j == len(self.steps) - 1 else f"_{step}"
            with np.errstate(over="ignore", invalid="ignore"):
                errors = np.abs(np.stack([part[f"forecast{mark}"], *rules[:, j]]) - y)
                ready = np.isfinite(errors).all(axis=0)
                self.sums[:, j] += errors[:, ready].sum(axis=1)
                self.squares[:, j] += np.square(errors[:, ready]).sum(axis=1)
            self.rows[j] += ready.sum()
            lines = 1 if mark else 3  # of baselines, medians are shown at the horizon alone
            self.kept[j].append(errors[:lines, ready & (number % self.stride == 0)])
            low, high = part[f"lower{mark}"], part[f"upper{mark}"]
            self.judged[j] += (np.isfinite(y) & np.isfinite(low) & np.isfinite(high)).sum()
            self.inside[j] += ((low <= y) & (y <= high)).sum()
        series, K = part["series"][ready], len(self.rows_of_keys)
        self.of_keys += [np.bincount(series, error, K) for error in errors[:, ready]]
        self.rows_of_keys += np.bincount(series, minlength=K)
        return errors

    def scores(self) -> Scores:
        """The scores of all rows."""
        with np.errstate(invalid="ignore", divide="ignore"):
            means, roots, covered = self.sums / self.rows, np.sqrt(self.squares / self.rows), self.inside / self.judged
        medians = [
            np.median(np.concatenate(kept, axis=1), axis=1) if n else np.full(3, np.nan)
            for kept, n in zip(self.kept, self.rows, strict=True)
        ]
        steps = [
            {
                "step": step,
                "mae": means[0, j],
                "median": medians[j][0],
                "rmse": roots[0, j],
                "coverage": covered[j],
                "rows": int(self.rows[j]),
                "baselines": dict(zip(self.names[1:], means[1:, j].tolist(), strict=True)),
            }
            for j, step in enumerate(self.steps)
        ]
        table = {
            name: {"mae": float(means[i, -1]), "median": float(medians[-1][i]), "rmse": float(roots[i, -1])}
            for i, name in enumerate(self.names)
        }
        coverage = float(covered[-1]) if np.isfinite(covered[-1]) else None
        return Scores(table, int(self.rows[-1]), steps, coverage, self._keys())

    def _keys(self) -> list[dict[str, Any]]:
        if not self.run.config.key:
            return []
        known = np.flatnonzero(self.rows_of_keys)
        means = (self.of_keys[:, known] / self.rows_of_keys[known]).T
        found = [
            {"series": series, "key": self.run.keys[series], "rows": int(self.rows_of_keys[series])}
            | dict(zip(self.names, line, strict=True))
            for series, line in zip(known.tolist(), means.tolist(), strict=True)
        ]
        return sorted(found, key=lambda each: each[self.names[0]])


class _Labels:
    """Sums over the rows of a run of labels."""

    def __init__(self, run: Run) -> None:
        self.rules = LabelBaselines(run.config.delay)
        self.names = (own_name(run), *self.rules.names)
        self.right, self.loss, self.rows = np.zeros(3), np.zeros(3), 0

    def add(self, part: np.ndarray, number: np.ndarray) -> np.ndarray:
        """Take in some records; whether each line was wrong (3, T)."""
        said, chance = self.rules.forecast(part["y"])
        said, chance = np.concatenate([part["forecast"][None], said]), np.concatenate([part["p_true"][None], chance])
        ready = np.isfinite(part["y"]) & np.isfinite(said).all(axis=0)
        self.right += (said == part["y"])[:, ready].sum(axis=1)
        self.loss -= np.log(np.maximum(chance[:, ready], 1e-300)).sum(axis=1)
        self.rows += int(ready.sum())
        return np.where(ready, said != part["y"], np.nan)

    def scores(self) -> Scores:
        """The scores of all rows."""
        with np.errstate(invalid="ignore", divide="ignore"):
            lines = zip(self.names, self.right / self.rows, self.loss / self.rows, strict=True)
        return Scores({name: {"accuracy": right, "log_loss": loss} for name, right, loss in lines}, self.rows)


def contests(run: Run) -> list[Metric]:
    """The columns of the table."""
    return [mae, MEDIAN, rmse] if run.labels is None else [accuracy, LOG_LOSS]


def verdict(run: Run, found: Scores) -> tuple[str, str]:
    """The table of a run in plain text, and what it says in words."""
    own = own_name(run)
    words = compare_in_words(found.table, [own], contests(run))[0]
    return format_table(found.table, {own: microseconds(run)}), words


def steps_in_words(steps: list[dict[str, Any]]) -> str:
    """What the steps show, in a sentence; empty where there is one.

    >>> near = {"step": 1, "mae": 1.0, "coverage": 0.9, "rows": 9, "baselines": {"last-value": 2.0}}
    >>> steps_in_words([near, {**near, "step": 2, "mae": 3.0, "coverage": 0.91}])
    'Step 1 to 2: mae 1 to 3, coverage 90.0% to 91.0%; mae not below that of last-value at step 2.'
    """
    known = [each for each in steps if each["rows"]]
    if len(steps) < 2 or not known:
        return ""
    holds = [each["coverage"] for each in known if each["coverage"] == each["coverage"]]
    text = f"Step {known[0]['step']} to {known[-1]['step']}: mae {known[0]['mae']:.4g} to {known[-1]['mae']:.4g}"
    text += f", coverage {min(holds):.1%} to {max(holds):.1%}" if holds else ""
    best = {each["step"]: min(each["baselines"], key=each["baselines"].__getitem__) for each in known}
    lost = [each for each in known if each["mae"] >= each["baselines"][best[each["step"]]]]
    if not lost:
        return f"{text}; mae below that of every baseline at every step."
    names = ", ".join(dict.fromkeys(best[each["step"]] for each in lost))
    return f"{text}; mae not below that of {names} at step {', '.join(str(each['step']) for each in lost)}."


def microseconds(run: Run) -> float | None:
    """Time for a row, reading and writing included; None where all came in one block."""
    progress = run.note["progress"]
    rows = progress["rows"] - progress["untimed"]
    return 1e6 * progress["seconds"] / rows if rows > 0 else None


def write_metrics(run: Run, found: Scores) -> Path:
    """Write metrics.json."""
    progress = {name: value for name, value in run.note["progress"].items() if name != "stopped"}
    own = {"table": found.table, "scored": found.rows, "steps": found.steps}
    own |= {} if run.labels else {"coverage": found.coverage}
    whole = {**own, **progress, "done": run.note["done"], "words": verdict(run, found)[1]}
    path = run.root / "metrics.json"
    write_whole(path, json.dumps(_finite(whole), indent=1, allow_nan=False).encode() + b"\n")
    return path


def compare_runs(
    folders: Sequence[Path], warn: Callable[[str], object] | None = None
) -> tuple[list[tuple[str, ...]], list[str]]:
    """A table of runs of one task beside the best baseline of each, and what it says in words.

    Args:
        folders: Of the runs.
        warn: As for `open_run`.
    """
    runs = [open_run(folder, warn) for folder in folders]
    if len({run.config.task for run in runs}) > 1:
        raise ValueError("compare: some runs forecast numbers, others labels; compare runs of one task.")
    every, columns = [scores(run) for run in runs], contests(runs[0])
    first = columns[0]
    rows = [("run", "method", "rows", *(each.name for each in columns), "covered", f"best baseline ({first.name})")]
    sentences, own = [], [found.table[own_name(run)][first.name] for run, found in zip(runs, every, strict=True)]
    for run, found, value in zip(runs, every, own, strict=True):
        rivals = {name: line[first.name] for name, line in found.table.items() if name != own_name(run)}
        best = _best(rivals, first)
        covered = "-" if found.coverage is None else f"{found.coverage:.1%}"
        cells = (*(f"{each:.4g}" for each in found.table[own_name(run)].values()), covered)
        rows.append((str(run.root), own_name(run), str(found.rows), *cells, f"{best} {rivals[best]:.4g}"))
        if value != rivals[best] and _best({"own": value, "best": rivals[best]}, first) == "best":
            sentences.append(f"{run.root} loses to {best} on {first.name}.")
    late = [run.config.horizon + run.config.delay for run in runs]
    if len({(run.config.target, far, each.rows) for run, far, each in zip(runs, late, every, strict=True)}) > 1:
        words = "These runs differ in target, horizon or rows: their scores are not of the same thing."
        return rows, [words, *sentences]
    if len(runs) > 1:
        top = own[int(_best({str(i): value for i, value in enumerate(own)}, first))]
        names = [str(run.root) for run, value in zip(runs, own, strict=True) if value == top]
        equal, who = len(names) == len(runs), join_words(names)
        what = f"{first.name} ({top:.4g})."
        sentences.insert(0, f"{who} are equal on {what}" if equal else f"Best on {first.name}: {who} ({top:.4g}).")
    return rows, sentences


def _best(values: dict[str, float], by: Metric) -> str:
    sign = 1.0 if by.lower_is_better else -1.0
    known = {name: value for name, value in values.items() if value == value} or values
    return min(known, key=lambda name: sign * known[name])


def _finite(value: Any) -> Any:
    """NaN and infinity are no JSON: they become null."""
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_finite(each) for each in value]
    return (float(value) if np.isfinite(value) else None) if isinstance(value, float) else value
