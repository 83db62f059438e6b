"""A run that was made, opened to be read: its configuration, records, events and scores."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from filtax import io as store
from filtax.evaluate._comparison import compare_in_words, format_table
from filtax.evaluate.metrics import Metric, accuracy, mae, rmse
from filtax.io._files import write_whole
from filtax.runs.config import Config
from filtax.runs.folder import CHECKPOINT
from filtax.runs.labels import LabelStream
from filtax.runs.large import Errors
from filtax.runs.ledger import read_events, read_records
from filtax.runs.numbers import NumberStream
from filtax.runs.plan import Plan
from filtax.runs.streams import kind_of, make_stream, place_of, tell_skipped

__all__ = ["METRICS", "Run", "microseconds", "open_run", "scores", "verdict", "write_metrics"]

METRICS = "metrics.json"
MOST = 4_000_000  # errors of which the median is taken; of more, of evenly spaced ones
_MEDIAN = Metric("median", mae.per_step)
_CONTESTS = {"regress": [mae, _MEDIAN, rmse], "classify": [accuracy]}


@dataclass(frozen=True, eq=False)
class Run:
    """A run as its folder tells of it.

    Attributes:
        root: The folder.
        config: What was asked.
        note: What the last checkpoint says beside the arrays.
        stream: What was learned.
        kind: Type of the records.

    >>> Run.__name__, "events" in dir(Run)
    ('Run', True)
    """

    root: Path
    config: Config
    note: dict[str, Any]
    stream: NumberStream | LabelStream
    kind: np.dtype

    @property
    def rows(self) -> int:
        """Rows that were learned."""
        return self.note["rows"]

    @property
    def rivals(self) -> tuple[str, ...]:
        """Names of the baselines."""
        return self.stream.rivals.names

    def records(self, step: int = 65536) -> Iterator[np.ndarray]:
        """Its records, some at a time."""
        return read_records(self.root, self.kind, self.rows, step, self._sums[0])

    def events(self) -> Iterator[dict[str, Any]]:
        """Its events, in order."""
        return read_events(self.root, self.note["events"], self._sums[1])

    @property
    def _sums(self) -> Sequence[int | None]:
        return self.note.get("sums") or (None, None)


def open_run(root: Path, warn: Callable[[str], object] | None = None) -> Run:
    """Open the folder of a run; what is none is refused in a sentence.

    Args:
        root: The folder.
        warn: Called with a sentence for each newer checkpoint that could not be used.

    >>> open_run(Path("nowhere"))
    Traceback (most recent call last):
    filtax.io._errors.Missing: nowhere holds no run: ...
    """
    config = Config.read(root)
    if config.task == "segment":
        raise ValueError(f"{root} holds a series that was cut, and no forecasts; name the folder of a `filtax run`.")
    made: list[NumberStream | LabelStream] = []

    def like(manifest: dict) -> Any:
        made.append(make_stream(Plan.from_json(manifest["note"]["plan"]), manifest["note"]))
        return made[-1].state()

    state, manifest = store.load(root / CHECKPOINT, like, config=config.to_json())
    made[-1].restore(state)
    tell_skipped(manifest["skipped"], warn, place_of(manifest)[1])
    note = manifest["note"]
    return Run(root, config, note, made[-1], kind_of(made[-1], note["clock"]))


def scores(run: Run) -> dict[str, Any]:
    r"""The scores of a run and of its baselines, on the rows that all of them forecast.

    Returns:
        `table`, name to scores; `rows` that were scored; and for numbers `coverage`, `log_score` and `pit`, a histogram
        of 20 cells.

    Example:
        >>> import tempfile
        >>> from filtax.runs import Config, carry_on, open_run, scores, verdict
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "t.csv"
        ...     _ = path.write_text("x,y\n" + "".join(f"{t % 7},{2 * (t % 7) + 0.5}\n" for t in range(100)))
        ...     _ = carry_on(Config(str(path), "y", method="LG+C-Static", block=64), Path(folder) / "run")
        ...     run = open_run(Path(folder) / "run")
        ...     scores(run)["table"]["LG+C-Static"]["mae"] < 1.0
        True
    """
    names = ("forecast", *run.rivals)
    label = run.config.task == "classify"
    errors: dict[str, list[np.ndarray]] = {name: [] for name in names}
    step = max(1, -(-run.rows // MOST))
    total = Errors(len(names))
    inside, held, log, seen = 0, 0, 0.0, 0
    pit = np.zeros(20, np.int64)
    for part in run.records():
        both = np.stack([part[name] for name in names])
        ready = np.isfinite(part["y"]) & np.all(np.isfinite(both), axis=0)
        wrong = (both != part["y"]).astype(np.float64)
        off = (
            total.add(wrong[:, ready], 0.0 * part["y"][ready]) if label else total.add(both[:, ready], part["y"][ready])
        )
        for name, values in zip(names, off, strict=True):
            errors[name].append(values[::step])
        if label:
            chance = part["p_true"][np.isfinite(part["p_true"])]
            log, seen = log + float(np.log(np.maximum(chance, 1e-300)).sum()), seen + len(chance)
            continue
        told = np.isfinite(part["pit"])
        seen, log = seen + int(told.sum()), log + float(np.nansum(part["log_score"]))
        band = np.isfinite(part["y"]) & np.isfinite(part["lower"]) & np.isfinite(part["upper"])
        held += int(band.sum())
        inside += int((band & (part["lower"] <= part["y"]) & (part["y"] <= part["upper"])).sum())
        pit += np.histogram(part["pit"][told], bins=20, range=(0.0, 1.0))[0]
    table = {}
    for i, name in enumerate(names):
        own = run.config.method or "" if name == "forecast" else name
        flat = np.concatenate(errors[name]) if errors[name] else np.empty(0)
        if label:
            table[own] = {"accuracy": 1.0 - float(total.mean[i])}
        else:
            middle = 2.0 * float(np.median(0.5 * flat)) if flat.size else float("nan")
            table[own] = {"mae": float(total.mean[i]), "median": middle, "rmse": float(total.root[i])}
    found: dict[str, Any] = {"table": table, "rows": total.count, "log_score": log / seen if seen else None}
    return found if label else {**found, "coverage": inside / held if held else None, "pit": pit.tolist()}


def verdict(run: Run, found: dict[str, Any]) -> tuple[str, str]:
    r"""The table of a run in plain text, and what it says in words.

    Example:
        >>> import tempfile
        >>> from filtax.runs import Config, carry_on, open_run, scores, verdict
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "t.csv"
        ...     _ = path.write_text("x,y\n" + "".join(f"{t % 7},{2 * (t % 7) + 0.5}\n" for t in range(100)))
        ...     _ = carry_on(Config(str(path), "y", method="LG+C-Static", block=64), Path(folder) / "run")
        ...     run = open_run(Path(folder) / "run")
        ...     verdict(run, scores(run))[1]
        'LG+C-Static beats every baseline on mae, median and rmse.'
    """
    own = run.config.method or ""
    words = compare_in_words(found["table"], [own], _CONTESTS[run.config.task])[0]
    return format_table(found["table"], {own: microseconds(run)}), words


def microseconds(run: Run) -> float | None:
    """Time for a row, reading and writing included; None where all went by in one block."""
    progress = run.note["progress"]
    rows = progress["rows"] - progress["untimed"]
    return 1e6 * progress["seconds"] / rows if rows > 0 else None


def write_metrics(run: Run, found: dict[str, Any]) -> Path:
    """Write metrics.json."""
    progress = {name: value for name, value in run.note["progress"].items() if name != "stopped"}
    whole = {**found, **progress, "done": run.note["done"], "words": verdict(run, found)[1]}
    path = run.root / METRICS
    text = json.dumps(_finite(whole), indent=1, allow_nan=False)
    write_whole(path, text.encode() + b"\n")
    return path


def _finite(value: Any) -> Any:
    """NaN and infinity are no JSON: they become null."""
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value
