"""A run that was made, opened to be read: its configuration, records and events, and its predictions as a table."""

import csv
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
from pyarrow import parquet

from filtax.io._files import PARTIAL, drop, flush_folder, open_no_link, unwritten
from filtax.pipeline._config import Config
from filtax.pipeline._folder import CHECKPOINT, FILES, read_chances, read_events, read_records, record_type
from filtax.pipeline._learner import ENDS, Classes, Learned, Learner, Numbers
from filtax.pipeline._rows import Plan
from filtax.pipeline._runner import restored

GROUP = 65536  # rows of a group in the file
_FORMULA = re.compile(r"[=@\t\r]|[+-](?!(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\Z)")


@dataclass(frozen=True, eq=False)
class Run:
    """A run as its folder holds it.

    Attributes:
        root: The folder.
        config: What was asked.
        plan: What the first rows decided.
        learner: What was learned, all rows included.
        note: What the last checkpoint says beside the arrays.
        kind: Type of the records.
    """

    root: Path
    config: Config
    plan: Plan
    learner: Learner
    note: dict[str, Any]
    kind: np.dtype

    @property
    def rows(self) -> int:
        """Rows that were learned."""
        return self.note["progress"]["rows"]

    @property
    def labels(self) -> list[str] | None:
        """The labels, in order of first appearance; None for numbers."""
        return list(self.learner.codes) if isinstance(self.learner, Classes) else None

    @property
    def keys(self) -> list[str]:
        """Names of the series."""
        return [""] if isinstance(self.learner, Classes) else list(self.learner.keys)

    def records(self, step: int = GROUP) -> Iterator[np.ndarray]:
        """Its records, some at a time: row, line, file, series, time, y, and the columns of predictions.parquet."""
        return read_records(self.root, self.kind, self.note["whole"], step)

    def latest(self, series: int, count: int) -> np.ndarray:
        """The last records of a series."""
        path = self.root / FILES["rows"]
        whole = np.memmap(path, self.kind, "r", shape=(self.rows,)) if self.rows else np.zeros(0, self.kind)
        return whole[np.flatnonzero(whole["series"] == series)[-count:]]

    def events(self) -> Iterator[dict[str, Any]]:
        """Its events, in order."""
        return read_events(self.root, self.note["whole"])


def open_run(root: Path, warn: Callable[[str], object] | None = None) -> Run:
    """Open the folder of a run; what is none is refused in a sentence.

    Args:
        root: The folder.
        warn: Called with a sentence for each newer checkpoint that could not be used.

    Example:
        >>> from pathlib import Path
        >>> from filtax.pipeline import open_run
        >>> open_run(Path("nowhere"))
        Traceback (most recent call last):
        filtax.io._errors.Missing: nowhere holds no run: ...
    """
    config = Config.read(root)
    if config.task == "segment":
        raise ValueError(f"{root} holds a series that was segmented, and no forecasts; name a run of `filtax run`.")
    learner, plan, note, _ = restored(config, root / CHECKPOINT, warn)
    if note["done"]:
        learner.finish()
    return Run(root, config, plan, learner, note, record_type(learner))


def write_predictions(run: Run) -> Path:
    """Write predictions.parquet in one step, in groups of one size: its bytes depend on nothing but the rows."""
    path = run.root / "predictions.parquet"
    write_table(columns_of(run), path, "then `filtax resume` writes it")
    return path


def columns_of(run: Run) -> Iterator[dict[str, np.ndarray]]:
    """Records as columns with the user's names, a group at a time; at least one, which may be empty."""
    records, labels = run.records(), run.labels
    parts = ((part, None) for part in records) if labels is None else read_chances(run.root, run.note["whole"], records)
    empty = True
    for part, chances in parts:
        empty = False
        yield _named(run, part, chances)
    if empty:
        yield _named(run, np.zeros(0, run.kind), None if labels is None else np.zeros((0, 0)))


def name_columns(config: Config, found: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The columns `file`, `key`, `time` and `y` under the user's names; one that is taken gets an underscore."""
    own = {"key": config.key, "time": config.time, "y": config.target}
    named: dict[str, np.ndarray] = {}
    for name, values in found.items():
        title = own.get(name, name)
        while title in named or (title != name and title in found):
            title = f"{title}_"
        named[str(title)] = values
    return named


def texts_of(labels: list[str], codes: np.ndarray) -> np.ndarray:
    """Labels of codes; None for NaN."""
    known = np.isfinite(codes)
    return np.array([*labels, None], object)[np.where(known, np.nan_to_num(codes), len(labels)).astype(int)]


def head_columns(
    config: Config, learner: Learner, head: np.ndarray, files: Sequence[str] = ()
) -> dict[str, np.ndarray]:
    """Where rows stood, as columns: line, file if there are several, key and time if there are any."""
    found: dict[str, np.ndarray] = {"line": head["line"]}
    if len(files) > 1:
        found["file"] = np.array(files, object)[head["file"]]
    if config.key and isinstance(learner, Numbers):
        found["key"] = np.array(list(learner.keys), object)[head["series"]]
    if config.time:
        found["time"] = head["time"]
    return found


def plain_columns(config: Config, learner: Learner, learned: Learned) -> dict[str, np.ndarray]:
    """What `filtax run --print` shows of rows that were learned."""
    rows = learned.rows
    found = head_columns(config, learner, rows.head)
    if isinstance(learner, Numbers):
        return {**found, **dict(zip(ENDS, learned.columns[:, :3].T, strict=True)), "y": rows.y}
    labels = list(learner.codes)
    said = {"forecast": texts_of(labels, learned.columns[:, 0]), "probability": learned.columns[:, 1]}
    return {**found, **said, "y": texts_of(labels, rows.y)}


def _named(run: Run, part: np.ndarray, chances: np.ndarray | None) -> dict[str, np.ndarray]:
    found = {**head_columns(run.config, run.learner, part, run.note["files"]), "y": part["y"]}
    found |= {name: part[name] for name in run.learner.names}
    found["outlier"] = part["outlier"] > 0.0
    if run.labels is not None and chances is not None:
        found["y"], found["forecast"] = (texts_of(run.labels, part[name]) for name in ("y", "forecast"))
        wide = np.full((len(part), len(run.labels)), np.nan)
        wide[:, : chances.shape[1]] = np.where(chances > 0.0, chances, np.nan)  # a label not met yet has none
        found |= {f"p({label})": wide[:, code] for code, label in enumerate(run.labels)}
    return name_columns(run.config, found)


def write_table(parts: Iterable[dict[str, np.ndarray]], path: Path, after: str = "") -> int:
    """Write columns to a file, .parquet or else CSV, in one step: whole, or not at all, as where there are none.

    What is not known, NaN or None, is null in Parquet and an empty field of CSV.
    """
    aside, writer, count, size = path.with_name(path.name + PARTIAL), None, 0, 0
    try:
        aside.parent.mkdir(parents=True, exist_ok=True)
        drop(aside)
        with open(aside, "xb", opener=open_no_link) as raw:
            for columns in parts:
                count, size = count + 1, size + sum(values.nbytes for values in columns.values())
                if path.suffix == ".parquet":
                    named = {name: pyarrow.array(each, from_pandas=True) for name, each in columns.items()}
                    table = pyarrow.table(named)
                    writer = writer or parquet.ParquetWriter(raw, table.schema, compression="zstd")
                    writer.write_table(table.cast(writer.schema), row_group_size=GROUP)
                else:
                    with open(raw.fileno(), "w", encoding="utf-8", newline="", closefd=False) as text:
                        write_csv(columns, text, count == 1)
            if writer is not None:
                writer.close()
            raw.flush()
            os.fsync(raw.fileno())
        if count:
            os.replace(aside, path)
            flush_folder(path.parent)
    except OSError as problem:
        if problem.filename is not None and Path(problem.filename) not in (aside, aside.parent):  # it was the source
            raise
        raise unwritten(path, problem, f"up to {size}" if size else None, after) from problem
    finally:
        drop(aside)
    return count


def write_csv(columns: dict[str, np.ndarray], to: Any, head: bool) -> None:
    r"""Write columns as lines of CSV; what is not known is an empty field, and a formula has a ' before it.

    >>> import sys
    >>> write_csv({"line": np.array([2, 3]), "forecast": np.array([0.5, np.nan])}, sys.stdout, True)
    line,forecast
    2,0.5
    3,
    """
    writer = csv.writer(to, lineterminator="\n")
    if head:
        writer.writerow(map(_inert, columns))
    plain = []
    for values in columns.values():
        if values.dtype.kind == "M":
            plain.append([str(moment).removesuffix(".000000") for moment in values])
        else:
            plain.append(["" if value is None or value != value else _inert(value) for value in values.tolist()])
    writer.writerows(zip(*plain, strict=True))
    to.flush()


def _inert(value: Any) -> Any:
    """A cell; with a ' before it where a spreadsheet would compute it. A text that is a number is no formula."""
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value
