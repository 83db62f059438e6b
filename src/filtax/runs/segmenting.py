"""A run that cuts a series: its rows are read and kept, then it is cut; both survive a crash."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from filtax import io as store
from filtax.io import InputError, Position, Table, open_table
from filtax.io._source import NAMELESS
from filtax.runs.blocks import KEPT
from filtax.runs.config import Config
from filtax.runs.cutting import Cut, cut_up
from filtax.runs.folder import CHECKPOINT, hold
from filtax.runs.large import power_of
from filtax.runs.streams import place_of, tell_skipped
from filtax.runs.wording import counted

__all__ = ["Segments", "cut_on", "open_segments"]

LONGEST = 20_000  # readings; the posterior of the run length grows with their square


@dataclass(eq=False)
class Segments:
    """The rows of a series, and what was found in them.

    Attributes:
        root: Folder of the run.
        config: What was asked.
        columns: Line, number of the file, time (0 without one) and reading of each row, (T,) each.
        files: Names of the files.
        rejected: The first rows that were left out, as plain values.
        left_out: How many rows were left out; a column without a name is none.
        behind: How many of them behind the last reading: a run that goes on reads those again.
        clock: "local", "number", or None without times.
        cut: What was found; None before.

    >>> Segments(Path("out"), Config("a.csv", "y", task="segment"), {"y": np.zeros(3)}, [], [], None, None).rows
    3
    """

    root: Path
    config: Config
    columns: dict[str, np.ndarray]
    files: list[str]
    rejected: list[dict[str, Any]]
    clock: str | None
    cut: Cut | None
    left_out: int = 0
    behind: int = 0

    @property
    def rows(self) -> int:
        """How many rows."""
        return len(self.columns["y"])

    @property
    def time(self) -> np.ndarray | None:
        """The times as they are, if there are any."""
        times = self.columns["time"]
        return None if self.clock is None else times.view("datetime64[us]") if self.clock == "local" else times

    def note(self) -> dict[str, Any]:
        """Return what a checkpoint holds beside the arrays."""
        found = None if self.cut is None else self.cut.to_json()
        counts = {"rows": self.rows, "left_out": self.left_out, "behind": self.behind}
        return {**counts, "files": self.files, "rejected": self.rejected, "clock": self.clock, "cut": found}


def cut_on(
    config: Config,
    root: Path,
    *,
    home: Path | None = None,
    tell: Callable[[str], object] | None = None,
    warn: Callable[[str], object] | None = None,
) -> Segments:
    r"""Read a series to its end, from the latest checkpoint in the folder if there is one, and cut it.

    Args:
        config: What to do, with the task "segment".
        root: Folder of the run; made if it is not there.
        home: Folder in which a relative source lies; the working one if not given.
        tell: Called with a sentence before the long part.
        warn: Called with a sentence for each newer checkpoint that could not be used.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "t.csv"
        ...     _ = path.write_text("y\n" + "".join(f"{(t * t) % 7 + 90 * (t >= 60)}\n" for t in range(110)))
        ...     cut_on(Config(str(path), "y", task="segment"), Path(folder) / "run").cut.changes
        [60]
    """
    with hold(root) as folder:
        known, position = _restored(config, root, warn) if store.generations(folder) else (None, None)
        if known is None:
            config = replace(config, version=version("filtax"))
        read, position = _read(config, root, known, position, home)
        if known is None or read.rows > known.rows or known.cut is None:
            config.write(root)
            _save(folder, read, position)
            if tell is not None:
                tell(f"{read.rows} rows read; looking for changes ...")
            power = power_of(read.columns["y"], 1.0)
            read.cut = cut_up(np.ldexp(read.columns["y"], -power))
            _save(folder, read, position)
        return read


def open_segments(root: Path, warn: Callable[[str], object] | None = None) -> Segments:
    """Open the folder of a series that was cut; one that is only half done is refused in a sentence.

    >>> open_segments(Path("nowhere"))
    Traceback (most recent call last):
    filtax.io._errors.Missing: nowhere holds no run: ...
    """
    found, _ = _restored(Config.read(root), root, warn)
    if found.cut is None:
        raise ValueError(f"{root}: its series was read and not cut yet; to go on: filtax resume {root}")
    return found


def _restored(config: Config, root: Path, warn: Callable[[str], object] | None) -> tuple[Segments, Position | None]:
    def like(manifest: dict) -> Any:
        note = manifest["note"]
        clock = np.float64 if note["clock"] == "number" else np.int64
        kinds = {"line": np.int64, "file": np.int32, "time": clock, "y": np.float64}
        kinds |= {} if note["cut"] is None else {"probability": np.float64}
        return {name: np.zeros(note["rows"], kind) for name, kind in kinds.items()}

    arrays, manifest = store.load(root / CHECKPOINT, like, config=config.to_json())
    where, words = place_of(manifest)
    tell_skipped(manifest["skipped"], warn, words)
    note = manifest["note"]
    columns = {name: np.asarray(values) for name, values in arrays.items()}
    chance = columns.pop("probability", None)
    cut = None if chance is None else Cut(**note["cut"], probability=chance)
    told = (note["files"], note["rejected"], note["clock"], cut, note["left_out"], note["behind"])
    return Segments(root, config, columns, *told), where


def _save(folder: Path, read: Segments, position: Position | None) -> None:
    state = dict(read.columns) | ({} if read.cut is None else {"probability": read.cut.probability})
    source = None if position is None else position.to_json()
    store.save(folder, state, config=read.config.to_json(), source=source, note=read.note(), held=True)


def _read(
    config: Config, root: Path, known: Segments | None, position: Position | None, home: Path | None
) -> tuple[Segments, Position | None]:
    """The rows that are known and those behind them, and where the source stands behind the last."""
    if known is not None and position is None:
        raise store.Damaged(f"{root}: a run on standard input cannot be resumed; name a file.")
    try:
        asked: dict[str, Any] = {"target": config.target, "time": config.time, "on_bad": config.on_bad}
        table = open_table(config.source, **asked, features=[], start=position, folder=home)
    except (InputError, OSError) as problem:
        if known is None:
            raise
        why = str(problem) if str(problem).endswith("?") else f"{str(problem).rstrip('.')}."
        raise store.Damaged(f"{why} The run in {root} cannot go on.") from None
    return _taken_in(config, root, known, position, table)


def _taken_in(
    config: Config, root: Path, known: Segments | None, position: Position | None, table: Table
) -> tuple[Segments, Position | None]:
    files, rejected = (list(known.files), _before(position, known)) if known else ([], [])
    parts = [known.columns] if known else []
    clock, rows, left_out = (known.clock, known.rows, known.left_out - known.behind) if known else (None, 0, 0)
    behind = 0
    for chunk in table:
        files += [chunk.file] if chunk.file not in files else []
        rejected += [row.to_json() for row in chunk.rejected[: KEPT - len(rejected)]]
        bad = [row.line for row in chunk.rejected if row.reason != NAMELESS]
        left_out += len(bad)
        if not len(chunk):
            behind += len(bad)
            continue
        behind = sum(line > chunk.line[-1] for line in bad)
        if config.target in chunk.texts:
            table.close()
            raise ValueError(f"segment: the target {config.target} holds no numbers; name a column of numbers.")
        parts.append(_columns(config, chunk, files))
        clock = None if chunk.time is None else "local" if chunk.time.dtype.kind == "M" else "number"
        rows += len(chunk)
        position = None if config.source == "-" else table.position(chunk)
        if rows > LONGEST:
            table.close()
            break
    if not 2 <= rows <= LONGEST:
        count = f"more than {LONGEST} readings" if rows > LONGEST else counted(rows, "reading")
        raise ValueError(
            f"segment: {count}; it takes 2 to {LONGEST}. Average them over longer steps, or use "
            "`filtax run`, which tells of changes as they come."
        )
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    if not np.isfinite(columns["y"]).any():
        raise ValueError(f"segment: the target {config.target} is empty in all rows; name another column.")
    cut = None if known is None else known.cut
    return Segments(root, config, columns, files, rejected, clock, cut, left_out, int(behind)), position


def _before(position: Position | None, known: Segments) -> list[dict[str, Any]]:
    """What was left out before a position: what lies behind the last row is read again, and may be complete by now."""
    if position is None:
        return list(known.rejected)
    end = (known.files.index(position.files[-1][0]), position.line)
    return [each for each in known.rejected if (known.files.index(each["file"]), each["line"]) < end]


def _columns(config: Config, chunk: Any, files: list[str]) -> dict[str, np.ndarray]:
    count = len(chunk)
    times = np.zeros(count, np.int64) if chunk.time is None else chunk.time
    times = times.astype("datetime64[us]").view(np.int64) if times.dtype.kind == "M" else times
    number = np.full(count, files.index(chunk.file), np.int32)
    y = np.array(chunk.column(config.target), np.float64)
    return {"line": np.asarray(chunk.line, np.int64), "file": number, "time": times, "y": y}
