"""A run: read rows, forecast, learn, write, checkpoint; from the start, or from where an earlier one ended."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from filtax import io as store
from filtax.io import InputError, Position, Rejected, Table
from filtax.pipeline._config import Config
from filtax.pipeline._folder import EMPTY, Records, hold, load_state, record_type, to_bytes
from filtax.pipeline._learner import Learned, Learner, Numbers, make
from filtax.pipeline._rows import KEPT, SAMPLE, Block, Plan, blocks, decide, open_source

PATIENCE = 10.0  # seconds after which a checkpoint is due, however few the rows
WAIT = 50  # rows that standard input must give before anything is decided
TIMED = 64  # rows that standard input must give at once for their time to say how long a row takes
BLOCK, KEYED = 4096, 65536  # rows of a block; more with keys, so that each series has some
LOOKED = 1 << 20  # rows ahead of all rows of a block, where known columns are looked at


@dataclass
class Progress:
    """How far a run has come.

    Attributes:
        rows: Rows learned.
        blank: Those without a target.
        rejected: Rows that could not be read.
        outliers, changes: Alarms.
        gaps, missing: Places where steps of a regular clock are missing, and how many.
        seconds: Time spent on all rows but those of the first block of a process, for which programs are compiled, and
            those that came a few at a time.
        untimed: Rows of those.
        stopped: Whether it was asked to stop before the end of its source.
    """

    rows: int = 0
    blank: int = 0
    rejected: int = 0
    outliers: int = 0
    changes: int = 0
    gaps: int = 0
    missing: int = 0
    seconds: float = 0.0
    untimed: int = 0
    stopped: bool = False


Tell = Callable[[Progress, list[Rejected], Learned | None, Learner | None], object]


def run_pipeline(
    config: Config,
    root: Path,
    *,
    home: Path | None = None,
    tell: Tell | None = None,
    stop: Callable[[], bool] | None = None,
    warn: Callable[[str], object] | None = None,
) -> Progress:
    r"""Learn a source to its end, from the latest checkpoint in the folder if there is one.

    Args:
        config: What to do. Where there is a checkpoint, that of the run it belongs to.
        root: Folder of the run; made if it is not there.
        home: Folder of a relative source; the working one if not given.
        tell: Called after each block with the progress, the rows rejected, those learned, and what learned them.
        stop: Asked after each block; True ends the run at a checkpoint.
        warn: Called with a sentence for each newer checkpoint that could not be used.

    Returns:
        How far it came.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from filtax.pipeline import Config, open_run, run_pipeline
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "t.csv"
        ...     _ = path.write_text("x,y\n" + "".join(f"{t % 7},{2 * (t % 7) + 0.5}\n" for t in range(100)))
        ...     done = run_pipeline(Config(str(path), "y", task="regress"), Path(folder) / "run")
        ...     done.rows, open_run(Path(folder) / "run").rows
        (100, 100)
    """
    with hold(root) as folder:
        job = _Job(config, root, folder, home, warn)
        try:
            for block in job.blocks():
                learned = job.learn(block)
                if tell is not None:
                    tell(job.progress, block.rejected, learned, job.learner)
                if stop is not None and stop():
                    job.progress.stopped = True
                    break
            if job.learner is None and not job.progress.stopped:
                why = f"; the first that was rejected: {job.early[0]}" if job.early else ""
                raise InputError(f"{config.source}: not one row could be read{why}.")
            learned = job.save(end=not job.progress.stopped)
            if tell is not None and learned is not None and len(learned.rows):
                tell(job.progress, [], learned, job.learner)
        except InputError:  # the rows before the bad one are kept
            job.save()
            raise
        except KeyboardInterrupt:
            if not job.busy:  # else the block is learned again from the last checkpoint
                job.save()
            raise
        finally:
            job.close()
        return job.progress


class _Job:
    """One process's part of a run.

    Rows that were rejected behind the last good one are read again by a run that goes on, as a line may be completed
    until then. So a checkpoint counts on what was written before them, and on the state before rows that waited.
    """

    def __init__(self, config: Config, root: Path, folder: Path, home: Path | None, warn: Any) -> None:
        self.config, self.root, self.folder, self.home = config, root, folder, home
        self.files: list[str] = []
        self.plan: Plan | None = None
        self.learner: Learner | None = None
        self.records: Records | None = None
        self.table: Table | None = None
        self.position: Position | None = None  # behind the last row of the latest checkpoint
        self.latest: Callable[[], Position] | None = None  # behind the last row since
        self.marks = EMPTY  # of the files behind the last row
        self.behind = 0  # rows rejected since
        self.read, self.progress = 0, Progress()
        self.early: list[Rejected] = []  # rows rejected before the first good one
        self.saved, self.warm, self.busy = (0, perf_counter()), False, False
        if store.generations(folder):
            self._restore(warn)

    def blocks(self) -> Iterator[Block]:
        """The rows that are left."""
        c, eager = self.config, self.config.source == "-"
        try:
            self.table = open_source(c, self.home, self.position)
        except (InputError, OSError) as problem:
            if self.position is None:
                raise
            why = str(problem) if str(problem).endswith("?") else f"{str(problem).rstrip('.')}."
            raise store.Damaged(f"{why} The run in {self.root} cannot go on.") from None
        size = min(c.block or (KEYED if c.key else BLOCK), c.checkpoint_every)
        if c.features or not c.time:  # of each row, all known columns up to its last target are in memory
            size = min(size, max(64, LOOKED // (c.horizon + c.delay)))
        least = 1 if self.learner else WAIT if eager else SAMPLE
        yield from blocks(self.table, size, self.files, eager=eager, least=least)

    def learn(self, block: Block) -> Learned | None:
        """Learn a block."""
        began, self.busy = perf_counter(), True
        if self.learner is None and len(block):
            self._begin(block)
        rejected = [(row, {"event": "rejected", **row.to_json()}) for row in self._rejected(block)]
        learned = None
        if len(block) and self.learner is not None:
            rows = self.learner.read(block, self.read)
            with np.errstate(over="ignore"):
                learned = self.learner.learn(rows)
            if self.records is None:  # a method that cannot run has left nothing
                self.config.write(self.root)
                self.records = Records(self.root, record_type(self.learner), EMPTY)
            self._write(learned, [(self._place(block, row), event) for row, event in rejected])
            self.read, self.latest = self.read + len(block), block.position or self.latest
            self.marks, self.behind = self.records.marks(), 0
        elif self.records is not None:
            for row, event in rejected:
                self.records.event(event)
                self.behind += not row.is_column
        if self.warm and (self.config.source != "-" or len(block) >= TIMED):
            self.progress.seconds += perf_counter() - began
        else:
            self.progress.untimed += len(block)
            self.warm = self.warm or len(block) > 0
        if self.read - self.saved[0] >= self.config.checkpoint_every or perf_counter() - self.saved[1] > PATIENCE:
            self.save()
        self.busy = False
        return learned

    def save(self, end: bool = False) -> Learned | None:
        """Write a checkpoint: first what it counts on, then itself. At the end, also the rows that waited."""
        if self.learner is None or self.records is None or self.plan is None:
            return None
        if self.latest is not None:
            self.position, self.latest = self.latest(), None
        place = None if self.position is None else self.position.to_json()
        stored, learned = to_bytes([self.learner.state(), place]), None
        before = replace(self.progress, rejected=self.progress.rejected - self.behind)
        if end:
            self.busy = True  # an interrupt from here on leaves the checkpoint before
            learned = self.learner.finish()
            self._write(learned, [])
        note = {
            "marks": self.marks,
            "whole": self.records.flush(),
            "read": self.read,
            "files": self.files,
            "before": asdict(before),
            "progress": asdict(self.progress),
            "plan": self.plan.to_json(),
            "done": end,
        }
        store.save(self.folder, stored, config=self.config.to_json(), note=note, held=True)
        self.saved = (self.read, perf_counter())
        return learned

    def close(self) -> None:
        """Close what is open."""
        for each in (self.table, self.records):
            if each is not None:
                each.close()

    def _begin(self, block: Block) -> None:
        self.plan = decide(self.config, block)
        self.config = replace(self.config, task=self.plan.task, version=version("filtax"))
        self.learner = make(self.config, self.plan)

    def _restore(self, warn: Any) -> None:
        self.learner, self.plan, note, self.position = restored(self.config, self.folder, warn)
        if self.position is None:
            raise store.Damaged(f"{self.root}: a run on standard input cannot be resumed; name a file.")
        self.files, self.read, self.marks = note["files"], note["read"], note["marks"]
        self.progress = Progress(**{**note["before"], "stopped": False})
        self.records = Records(self.root, record_type(self.learner), self.marks)
        self.saved = (self.read, perf_counter())

    def _rejected(self, block: Block) -> list[Rejected]:
        """What was rejected with a block and was not met before; with the first rows, all that was until then."""
        known = [] if self.position is None else [self.files.index(self.position.files[-1][0]), self.position.line]
        met = [row for row in block.rejected if [self.files.index(row.file), row.line] >= known]
        self.progress.rejected += sum(not row.is_column for row in met)
        if self.records is not None:
            return met
        self.early = [*self.early, *met][:KEPT]
        return self.early if len(block) else []

    def _place(self, block: Block, row: Rejected) -> float:
        """Where a rejected row stands among the rows of the table."""
        file = self.files.index(row.file)
        return self.read - 0.5 + int(np.sum((block.file < file) | ((block.file == file) & (block.line < row.line))))

    def _write(self, learned: Learned, events: list[tuple[float, dict[str, Any]]]) -> None:
        """Write records and events, in an order that does not depend on how rows were cut."""
        assert self.records is not None
        first = self.records.count
        self.records.append(learned)
        blank = [(int(row), "blank", None) for row in np.flatnonzero(np.isnan(learned.rows.y))]
        self.progress.rows += len(learned.rows)
        self.progress.blank += len(blank)
        keys = list(self.learner.keys) if isinstance(self.learner, Numbers) and self.config.key else []
        every = [*blank, *learned.events]
        found = [(float(learned.released[row]), self._event(learned, keys, first, row, *each)) for row, *each in every]
        for _, event in sorted([*events, *found], key=lambda each: each[0]):
            self.records.event(event)

    def _event(self, learned: Learned, keys: list[str], first: int, row: int, kind: str, value: Any) -> dict[str, Any]:
        assert self.records is not None
        head = learned.rows.head[row]
        event: dict[str, Any] = {"event": kind, "row": int(head["row"]) + 1, "file": self.files[head["file"]]}
        event["line"] = int(head["line"])
        if self.config.time:
            event["time"] = str(head["time"]).removesuffix(".000000")
        if keys:
            event["key"] = keys[head["series"]]
        if kind == "change":
            self.progress.changes += 1
            event["began"] = self.records.earlier(first + row, value)
        elif kind == "outlier":
            self.progress.outliers += 1
            event["tail"] = value
        elif kind == "gap":
            self.progress.gaps, self.progress.missing = self.progress.gaps + 1, self.progress.missing + value
            event["missing"] = value
        return event


def restored(config: Config, folder: Path, warn: Any) -> tuple[Learner, Plan, dict[str, Any], Position | None]:
    """What the newest sound checkpoint of a run holds; a sentence to `warn` for each newer one."""
    state, note, position = load_state(folder, config, warn)
    plan = Plan.from_json(note["plan"])
    learner = make(config, plan)
    learner.restore(state)
    return learner, plan, note, position
